package gateway

import (
	"context"
	"errors"

	"holdfast/internal/core/account"
	"holdfast/internal/core/event"
	"holdfast/internal/core/placement"
	"holdfast/internal/transport/forward"
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
			if x.sit.Sent > 1 || x.sit.Fresh {
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
		x.g.placements.correct(x.g.now(), id, n)
		if !ours {
			x.sit.Candidates[i].Placed = n
			*p = x.replan()
			return true, nil
		}
		x.g.store.Note(event.Event{At: x.g.now(), Kind: event.Trial, Account: id})
	}
	if won, err := x.secureUploads(ctx, i); err != nil {
		return false, err
	} else if !won {
		*p = x.replan()
		return true, nil
	}
	won, err := x.securePin(p)
	if err != nil {
		return false, err
	}
	if !won {
		x.sit.Fresh, x.moved = false, nil // the pin is the winner's, and not ours to restore
		*p = x.place(placement.Lost)
		return true, nil
	}
	hop := p.Decision != nil && x.sit.Sent > 0
	if p.Pin != placement.New && p.Pin != placement.Move && !hop {
		return false, nil
	}
	// A reading that comes with this conversation's own answers is newer than its placement.
	x.sit.Candidates[i].Placed++
	if !p.Trial {
		x.beside("count a placement", func(ctx context.Context) error {
			n, _, err := x.g.store.Place(ctx, id, 0)
			x.g.placements.correct(x.g.now(), id, n)
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
	return x.place(placement.Lost)
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
		if !cred.MeantFor(c.Account.BaseURL) { // the owner is pointing it at another host, and one of the two is not known here yet
			return x.rejected(i, nil, account.Rejection{Kind: account.Unrenewed, At: x.g.now(), Generation: cred.Generation, Rule: hostChanged})
		}
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
			case refused.Kind == account.Unrenewed || refused.Kind == account.Funds:
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
	x.unpin() // nothing was reached, so nothing is cached
	if errors.Is(err, forward.ErrNoHeaders) {
		x.refuse(noHeaders(x.name, x.report.account, x.limits().Headers))
		return
	}
	x.refuse(unreachable(x.name, x.report.account, err))
}

// notAnswered ends an exchange whose attempt brought an answer that no provider gives.
func (x *exchange) notAnswered(err error) {
	x.report.err = err
	x.unpin()
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
		x.unrenewedHost = r.Rule == hostChanged
		x.unrenewed, x.unrenewedUntil = x.sit.Candidates[i].Account.Name, r.Until
	}
	x.refusedFor = r.Kind
	defer x.forgetCommon(r) // the plan must not ask again those that have refused it before
	x.sit.Now = x.g.now()
	if x.gone() {
		a.close()
		return nil, placement.Plan{}, false
	}
	if x.moved != nil && r.Unreadable() {
		x.moved.Bound = true // from now on: what it carries is read by its account alone
		from := x.moved.Account
		return a, x.place(func(s placement.Situation) placement.Plan { return placement.Undone(s, from) }), true
	}
	return a, x.place(func(s placement.Situation) placement.Plan { return placement.After(s, i, r) }), true
}
