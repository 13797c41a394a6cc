package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/pin"
	"holdfast/internal/placement"
	"holdfast/internal/provider"
	"holdfast/internal/refresh"
)

// maxPlans bounds how often a plan is made anew because another process was faster.
const maxPlans = 8

// run carries plans out until the client has an answer.
func (x *exchange) run(p placement.Plan) {
	var last *answer // the upstream's, not yet handed on
	defer func() {
		if last != nil {
			last.close()
		}
	}()
	for range maxPlans {
		x.logPlan(p)
		switch p.Step {
		case placement.Refuse:
			x.restorePin()
			x.refuse(x.renderRefusal(p.Refusal))
			return
		case placement.HandBack:
			if last == nil { // no answer that may be handed back
				x.restorePin()
				x.refuse(x.withoutAnswer())
				return
			}
			if x.sit.Sent > 1 {
				x.restorePin()
			}
			x.handBack(last)
			return
		case placement.Serve:
		}
		lost, err := x.secure(&p)
		if err != nil {
			x.storeFailed(err)
			return
		}
		if lost {
			continue // p is the new plan
		}
		x.recordServing(p)
		if last != nil {
			last.close()
			last = nil
		}
		var next bool
		if last, p, next = x.attempt(p.Chosen); !next {
			return
		}
	}
	x.report.err = errors.New("the plan changed too often")
	x.refuse(contended(x.g.now()))
}

// secure makes the writes that a plan depends on: the try of a blocked account, a trial,
// the pin. When another process was faster it puts the new plan into p and returns true.
// A trial that was counted before the pin was lost is given away; that is rare, and the
// account gets its others.
func (x *exchange) secure(p *placement.Plan) (lost bool, err error) {
	ctx, i := x.r.Context(), p.Chosen
	id := x.sit.Candidates[i].Account.ID
	if p.Probe {
		ours := false
		interval := x.sit.Settings.ProbeInterval
		x.sit.Now = x.g.now()
		now := x.sit.Now
		err := x.fold(ctx, i, func(s account.State) (account.State, bool) {
			ours = now.Sub(s.ProbedAt) >= interval
			return s.Probed(now), ours
		})
		if err != nil {
			return false, err
		}
		if !ours {
			*p = x.replan()
			return true, nil
		}
	}
	if p.Trial {
		n, ours, err := x.g.store.Place(ctx, id, x.sit.Settings.TrialRequests)
		if err != nil {
			return false, err
		}
		x.g.placements.correct(id, n)
		if !ours {
			x.sit.Candidates[i].Placed = n
			*p = x.replan()
			return true, nil
		}
	}
	won, err := x.securePin(p)
	if err != nil {
		return false, err
	}
	if !won {
		x.sit.Fresh, x.moved = false, nil // the pin is the winner's, and not ours to restore
		*p = placement.Lost(x.sit)
		return true, nil
	}
	if p.Pin != placement.New && p.Pin != placement.Move {
		return false, nil
	}
	// A reading that comes with this conversation's own answers is newer than its placement.
	x.sit.Candidates[i].Placed++
	if !p.Trial {
		x.beside("count a placement", func(ctx context.Context) error {
			n, _, err := x.g.store.Place(ctx, id, 0)
			x.g.placements.correct(id, n)
			return err
		})
	}
	return false, nil
}

func (x *exchange) replan() placement.Plan {
	x.sit.Now = x.g.now()
	if x.sit.Sent == 0 {
		return x.plan()
	}
	return placement.Lost(x.sit)
}

// securePin claims, moves or touches the pin as the plan says. It is false when another
// process changed it; x.sit.Pin is then the winner's.
func (x *exchange) securePin(p *placement.Plan) (won bool, err error) {
	g, ctx, now := x.g, x.r.Context(), x.g.now()
	a := x.sit.Candidates[p.Chosen].Account
	ttl := x.pinTTL()
	var stored pin.Record
	switch p.Pin {
	case placement.NoPin:
		x.pinSaid = "none"
		return true, nil
	case placement.Keep:
		x.pinSaid = "kept"
		x.keep(*x.sit.Pin, now, ttl)
		return true, nil
	case placement.New:
		stored, won, err = g.store.ClaimPin(ctx, x.who.Key, pin.New(a, x.sit.Bound, now, ttl), now)
		if won {
			x.sit.Fresh, x.pinSaid = true, "new"
		}
	case placement.Move:
		next := x.sit.Pin.Move(a.ID, now, ttl)
		if x.sit.Fresh {
			next = x.sit.Pin.Rehome(a.ID, now, ttl)
		}
		before := *x.sit.Pin
		stored, won, err = g.store.ReplacePin(ctx, x.who.Key, next)
		if won && !x.sit.Fresh {
			x.pinSaid = "moved"
			if x.moved == nil {
				x.moved = &before
			}
		}
	}
	if err != nil {
		return false, err
	}
	x.sit.Pin = &stored
	return won, nil
}

// restorePin undoes what this exchange did to the pin when no account served it after all:
// the conversation's cache is where it was, and one that has none yet begins anew. It is
// only tidy, so a failure is not heeded: the next request plans by what is stored.
func (x *exchange) restorePin() {
	if x.sit.Pin == nil {
		return
	}
	now := x.g.now()
	next := *x.sit.Pin
	switch {
	case x.sit.Fresh:
		next = next.End(now)
		x.pinSaid = "none"
	case x.moved != nil:
		revision := next.Revision
		next = *x.moved
		next.Revision = revision
		x.pinSaid = "kept"
	default:
		return
	}
	if _, _, err := x.g.store.ReplacePin(context.WithoutCancel(x.r.Context()), x.who.Key, next); err != nil {
		x.g.log.Warn("restore the pin", "request", x.id, "error", err)
	}
}

func (x *exchange) pinTTL() time.Duration {
	if x.sit.Bound || (x.sit.Pin != nil && x.sit.Pin.Bound) {
		return x.sit.Settings.BoundPinTTL
	}
	return x.sit.Settings.PinTTL
}

// keep counts a request that found its pin, and touches the pin if that is due.
func (x *exchange) keep(p pin.Record, now time.Time, ttl time.Duration) {
	x.g.kept.add(x.who.Key)
	if p.TouchDue(x.sit.Bound, now, ttl) {
		x.beside("touch the pin", x.touch(p, now, ttl))
	}
}

func (x *exchange) touch(p pin.Record, now time.Time, ttl time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		stored, _, err := x.g.store.ReplacePin(ctx, x.who.Key, p.Touch(x.sit.Bound, x.g.kept.take(x.who.Key), now, ttl))
		if err == nil {
			x.touched.Store(&stored)
		}
		return err // a lost race is no error: the winner touched or moved it
	}
}

// touchLate touches the pin again at the end of an answer that took long: the
// conversation was active until now.
func (x *exchange) touchLate() {
	if x.pinSaid == "none" || x.sit.Pin == nil {
		return
	}
	now, ttl := x.g.now(), x.pinTTL()
	if now.Sub(x.sit.Now) < pin.TouchEvery(ttl) {
		return
	}
	x.writes.Wait()
	p := *x.sit.Pin
	if touched := x.touched.Load(); touched != nil {
		p = *touched
	}
	if p.Live(now) && p.TouchDue(x.sit.Bound, now, ttl) {
		x.beside("touch the pin", x.touch(p, now, ttl))
	}
}

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
	alike := false // by one word at least; most owners have no two such accounts
	for i := range cs {
		s := x.states[cs[i].Account.ID].State
		cs[i].State = s
		for _, o := range cs[:i] { // whose states are not joined yet
			alike = alike || (s.Organization != "" && s.Organization == o.State.Organization) || (s.Principal != "" && s.Principal == o.State.Principal)
		}
	}
	if !alike {
		return
	}
	accounts, states := make([]account.Account, len(cs)), make([]account.State, len(cs))
	for i, c := range cs {
		accounts[i], states[i] = c.Account, c.State
	}
	for i, s := range account.Together(accounts, states) {
		cs[i].State = s
	}
}

// attempt sends to candidate i and deals with the answer. It returns the plan that comes
// next, with the answer that the plan may hand back; next is false when the client has
// its answer, or has left.
func (x *exchange) attempt(i int) (last *answer, p placement.Plan, next bool) {
	c := &x.sit.Candidates[i]
	c.Tried = true
	x.sit.Sent++
	x.report.attempts++
	x.report.account = c.Account.Name
	cred, refused, err := x.credentialFor(i)
	if err != nil {
		x.storeFailed(err)
		return nil, p, false
	}
	if refused.Rejected() {
		return x.rejected(i, nil, refused)
	}
	defer x.g.inFlight.enter(c.Account.ID)()
	for resent := false; ; resent = true {
		a, err := x.send(i, cred)
		if err != nil {
			x.unreachable(err)
			return nil, p, false
		}
		rejection := x.judge(i, a)
		if !rejection.Rejected() {
			if rejection = x.deliver(i, a); !rejection.Rejected() {
				return nil, p, false
			}
		}
		if rejection.Kind == account.NotAnswered {
			a.close()
			x.logRejection(i, a, rejection)
			x.notAnswered(errors.New("something else than the provider answered: " + rejection.Rule))
			return nil, p, false
		}
		if rejection.Kind == account.BadCredential && !resent {
			next, refused := x.credentialAfter(i, cred)
			switch {
			case refused.Kind == account.Unrenewed:
				x.logRejection(i, a, rejection)
				a.close()
				return x.rejected(i, nil, refused)
			case !refused.Rejected():
				x.logRejection(i, a, rejection)
				a.close()
				cred = next
				continue
			}
		}
		return x.rejected(i, a, rejection)
	}
}

// unreachable ends an exchange whose attempt brought no HTTP answer.
func (x *exchange) unreachable(err error) {
	if x.gone() {
		return
	}
	x.report.err = err
	if x.sit.Fresh {
		x.restorePin() // nothing was reached, so nothing is cached
	}
	x.refuse(unreachable(x.name, x.report.account))
}

// notAnswered ends an exchange whose attempt brought an answer that no provider gives.
func (x *exchange) notAnswered(err error) {
	x.report.err = err
	if x.sit.Fresh {
		x.restorePin()
	}
	x.refuse(notAnswered(x.name))
}

// rejected folds a rejection into the account's state and plans what follows.
func (x *exchange) rejected(i int, a *answer, r account.Rejection) (*answer, placement.Plan, bool) {
	x.logRejection(i, a, x.sit.Candidates[i].State.Settle(r))
	if err := x.learn(context.WithoutCancel(x.r.Context()), i, lesson{answer: a, rejection: r}); err != nil {
		// The answer is still the client's; what it taught is learnt from the next one.
		x.g.log.Error("write what a rejection taught", "request", x.id, "error", err)
		c := &x.sit.Candidates[i]
		c.State = c.State.Reject(c.State.Settle(r), x.rules(i))
	}
	r = x.sit.Candidates[i].State.Settle(r)
	if st := x.sit.Candidates[i].State; known(st, r) {
		r.Rule = st.Parked.Reason
	}
	if r.Kind == account.Unrenewed {
		x.unrenewed = x.sit.Candidates[i].Account.Name
	}
	x.sit.Now = x.g.now()
	if x.gone() {
		a.close()
		return nil, placement.Plan{}, false
	}
	return a, placement.After(x.sit, i, r), true
}

func (x *exchange) rules(i int) account.Rules {
	return account.Rules{BarePause: x.sit.Settings.BarePause, Overage: x.sit.Candidates[i].Account.Overage}
}

// lesson is what an answer taught of its account.
type lesson struct {
	answer    *answer // its readings; nil when those were learnt before
	rejection account.Rejection
	served    bool // the request was answered well
}

// change is the lesson of candidate i as a change of state.
func (x *exchange) change(i int, l lesson) func(account.State) (account.State, bool) {
	rules, placed, now := x.rules(i), x.sit.Candidates[i].Placed, x.g.now()
	var readings []account.Reading
	if l.answer != nil {
		readings = l.answer.readings // read replaces the list and changes none
	}
	return func(s account.State) (account.State, bool) {
		next := s
		for _, r := range readings {
			next = next.Observe(r, placed, rules)
		}
		if l.answer != nil {
			next = next.LoginOf(l.answer.credential.Principal)
		}
		if l.rejection.Rejected() && !x.saysNothing(l.rejection) && !known(s, l.rejection) {
			next = next.Reject(next.Settle(l.rejection), rules)
		}
		if l.rejection.Rejected() && x.sit.Fresh {
			next = next.Covered(placed) // the conversation is no load here
		}
		if l.served {
			next = next.Served(x.req.Family, x.req.Features, now)
		}
		return next, account.WorthStoring(s, next)
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
// blocked there, or a feature that it needed is said to be lacking.
func (x *exchange) heals(i int) bool {
	st := x.sit.Candidates[i].State
	for _, b := range st.Blocks {
		if b.Family != "" && b.Family == x.req.Family && b.Active(x.sit.Now) {
			return true
		}
	}
	for _, f := range x.req.Features {
		if st.LacksFeature(x.sit.Now, f) {
			return true
		}
	}
	return false
}

// logPlan says why an account was chosen, or why none.
func (x *exchange) logPlan(p placement.Plan) {
	level := slog.LevelDebug
	if p.Decision != nil {
		level = slog.LevelInfo
	}
	ctx := x.r.Context()
	if !x.g.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("request", x.id), slog.String("why", p.Why)}
	if p.Step == placement.Serve {
		attrs = append(attrs, slog.String("account", x.sit.Candidates[p.Chosen].Account.Name))
	}
	if p.Decision != nil {
		attrs = append(attrs, slog.Any("candidates", p.Decision.Parts))
	}
	x.g.log.LogAttrs(ctx, level, "pick", attrs...)
}

// limitHeaders are prefixes of the headers that a rejection's log line shows.
var limitHeaders = []string{"Anthropic-Ratelimit-", "X-Ratelimit-", "X-Codex-", "Retry-After", "X-Should-Retry"}

func (x *exchange) logRejection(i int, a *answer, r account.Rejection) {
	x.report.rejections = append(x.report.rejections, r.Kind)
	attrs := []slog.Attr{
		slog.String("request", x.id), slog.String("account", x.sit.Candidates[i].Account.Name), slog.String("kind", string(r.Kind)),
		slog.String("rule", r.Rule), slog.String("code", r.Code), slog.String("model", r.Model),
	}
	if a != nil {
		attrs = append(attrs, slog.Int("status", a.resp.StatusCode), slog.Any("limits", a.limits()))
	}
	x.g.log.LogAttrs(x.r.Context(), slog.LevelWarn, "rejection", attrs...)
}
