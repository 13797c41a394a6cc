package gateway

import (
	"context"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/provider"
	"holdfast/internal/upkeep/refresh"
)

// fold folds what was learnt into candidate i's state, in the store and in the situation.
func (x *exchange) fold(ctx context.Context, i int, change func(account.State) (account.State, bool)) error {
	id := x.sit.Candidates[i].Account.ID
	stored, err := x.g.store.Fold(ctx, id, x.states[id], change)
	if err != nil {
		return err
	}
	x.states[id] = stored
	x.together()
	return nil
}

// together puts the accounts' states into the situation, those that share limits with what
// is known of each other.
func (x *exchange) together() {
	cs := x.sit.Candidates
	accounts, states := make([]account.Account, len(cs)), make([]account.State, len(cs))
	for i, c := range cs {
		accounts[i], states[i] = c.Account, x.states[c.Account.ID].State
	}
	for i, s := range account.Together(x.sit.Now, accounts, states) {
		cs[i].State = s
	}
}

func (x *exchange) rules(i int) account.Rules {
	return account.Rules{BarePause: x.sit.Settings.BarePause, Overage: x.sit.Candidates[i].Account.Overage, FreshFor: x.sit.Settings.FreshFor}
}

// lesson is what an answer taught of its account.
type lesson struct {
	answer    *answer // its readings; nil when those were learnt before
	rejection account.Rejection
	served    bool // the request was answered well, by work that began at began
	began     time.Time
}

// change is the lesson of candidate i as a change of state.
func (x *exchange) change(i int, l lesson) func(account.State) (account.State, bool) {
	rules, placed := x.rules(i), x.sit.Candidates[i].Placed
	seen := placed
	if l.rejection.Rejected() {
		// The figures show no load that a refused request would have been. An account that refuses
		// looks idle, and must not be given more for it.
		seen = 0
	}
	var readings []account.Reading
	if l.answer != nil {
		readings = l.answer.readings // read replaces the list and changes none
	}
	return func(s account.State) (account.State, bool) {
		next, changed := s.Believed(x.g.now())
		if changed {
			x.g.sayUnbelieved(x.sit.Candidates[i].Account)
		}
		for _, r := range readings {
			next = next.Observe(r, seen, rules)
		}
		if l.answer != nil {
			next = next.LoginOf(l.answer.credential.Principal)
		}
		if l.rejection.Rejected() && !x.saysNothing(l.rejection) && !known(s, l.rejection) {
			next = next.Reject(next.Settle(l.rejection), rules)
		}
		if x.sit.Fresh && (l.rejection.Kind == account.Overload || l.rejection.Kind == account.ClientFault) {
			next = next.Returned(placed)
		}
		if l.served {
			next = next.Served(x.sit.Request.Ask(), l.began)
		}
		return next, changed || account.WorthStoring(s, next, rules.Redate())
	}
}

// sayUnbelieved says once of an account that something of the future was not believed.
func (g *Gateway) sayUnbelieved(a account.Account) {
	if _, said := g.unbelieved.LoadOrStore(a.ID, true); !said {
		g.log.Warn("what was known of an account is from the future and is not believed: a clock was wrong, of this machine or of another on the same data", "account", a.Name)
	}
}

// forgetCommon forgets what every account that can be asked refuses: a model that none has is
// the client's mistake, and no account is worse than another for it.
func (x *exchange) forgetCommon(r account.Rejection) {
	thing := r.Thing()
	if r.Kind != account.Access || thing == (account.Thing{}) {
		return
	}
	var refusing []int
	for i, c := range x.sit.Candidates {
		if !c.Serves || !c.Allowed || c.State.Parked != nil {
			continue
		}
		if held, ok := c.State.Refuses[thing.Key()]; !ok || !r.At.Before(held.Until) {
			return
		}
		refusing = append(refusing, i)
	}
	for _, i := range refusing {
		err := x.fold(context.WithoutCancel(x.r.Context()), i, func(s account.State) (account.State, bool) {
			next := s.Forget(thing, r.At)
			return next, account.WorthStoring(s, next, account.RedateEvery)
		})
		if err != nil {
			x.g.log.Error("forget what every account refuses", "request", x.id, "error", err)
		}
	}
}

// saysNothing: asides, such as counting tokens, have rate limits of their own, which say
// nothing of inference.
func (x *exchange) saysNothing(r account.Rejection) bool {
	return x.req.Role == provider.Aside && (r.Kind == account.Throttle || r.Kind == account.Bare)
}

// known reports whether a state says already, and better, what a rejection would: whoever
// was refused a renewal has parked the account with the provider's own word.
func known(s account.State, r account.Rejection) bool {
	return r.Rule == refresh.ReasonRefused && s.Parked != nil
}

// learn folds a lesson into the state that the next plan is made from.
func (x *exchange) learn(ctx context.Context, i int, l lesson) error {
	return x.fold(ctx, i, x.change(i, l))
}

// learnBeside folds a lesson while the answer goes on.
func (x *exchange) learnBeside(what string, i int, l lesson) {
	id := x.sit.Candidates[i].Account.ID
	base, change := x.states[id], x.change(i, l)
	if _, worth := change(base.State); !worth {
		return
	}
	x.beside(what, func(ctx context.Context) error {
		_, err := x.g.store.Fold(ctx, id, base, change)
		return err
	})
}

// heals reports whether a good answer of candidate i is worth telling: its family is
// blocked there, or what it asked for is said to be refused.
func (x *exchange) heals(i int) bool {
	for _, b := range pick.Blocks(x.sit.Now, x.sit.Candidates[i]) {
		if b.Family != "" && b.Family == x.req.Family {
			return true
		}
	}
	_, refused := x.sit.Candidates[i].State.Refused(x.sit.Now, x.sit.Request.Ask())
	return refused
}
