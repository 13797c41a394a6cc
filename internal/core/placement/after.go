package placement

import (
	"slices"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
)

// Lost plans anew after another process won the race for the pin, which s.Pin now is.
func Lost(s Situation) Plan {
	if s.Sent == 0 {
		return Begin(s)
	}
	held, ok := s.pinned()
	if !ok || held < 0 || !pick.StandPinned(s.Now, s.Request, s.Candidates[held], s.Settings).Usable() {
		return Plan{Step: HandBack, Why: "lost"}
	}
	return s.serve(held, Keep, "adopted")
}

// CanMove reports whether an error that comes before any content could still be answered
// by another account: whether holding the beginning of an answer back is worth it.
func CanMove(s Situation, at int) bool {
	_, held := s.pinned()
	if s.Sent >= MaxSends || s.Stay || s.Owner != "" || s.Unowned || (held && !s.Fresh && s.bound()) {
		return false
	}
	s.Candidates = slices.Clone(s.Candidates)
	s.Candidates[at].Tried = true
	return s.pickNext().Step == Serve
}

// After plans what follows a rejection by the account last sent to, candidate at, whose
// state already includes it.
func After(s Situation, at int, r account.Rejection) Plan {
	handBack := Plan{Step: HandBack, Chosen: at, Why: string(r.Kind)}
	switch r.Kind {
	case account.Overload, account.ClientFault, account.Network, account.NotAnswered:
		return handBack
	default: // another account might not refuse it
	}
	if s.Owner != "" {
		return s.owned(handBack, r, at)
	}
	if !goesOn(r.Kind) && s.Sent > 1 { // one hop, and this answer is the hop's
		return handBack
	}
	_, held := s.pinned()
	if held && !s.Fresh || !held && s.Uploads == s.Candidates[at].Account.ID {
		if s.mustStay() {
			return s.owned(handBack, r, at)
		}
		st := pick.StandPinned(s.Now, s.Request, untried(s.Candidates[at]), s.Settings)
		if r.Kind == account.Unrenewed { // no state says it, since nothing is held against the account
			st = pick.Standing{Reason: pick.Cooldown, Until: r.Until}
			if r.Until.IsZero() {
				return handBack
			}
		}
		if st.Usable() || !s.longerThanMoveAfter(st) {
			return handBack
		}
	} else if s.Stay {
		return s.owned(handBack, r, at)
	}
	next := s.pickNext()
	if next.Step != Serve && r.Thing() == (account.Thing{}) {
		next = s.whatever().pickNext() // those who may refuse one thing are better than nobody
	}
	switch {
	case next.Step != Serve:
		return s.spent(handBack, r, at)
	case s.Sent >= MaxSends: // an account is ready, so no answer may say that none can serve
		return Plan{Step: Refuse, Refusal: Refusal{Cause: Busy}, Why: string(Busy)}
	case s.refusedAside(r):
		next.Pin = NoPin
	}
	return next
}

// goesOn reports whether a request goes on from account to account after such a rejection:
// it says that this account cannot serve it for long. After any other it makes one hop.
func goesOn(k account.RejectionKind) bool {
	switch k {
	case account.WindowSpent, account.ModelWindow, account.Access, account.TooLarge, account.Funds, account.BadCredential:
		return true
	default:
		return false
	}
}

// refusedAside reports whether a rejection of a request for another model than its
// conversation's is no word on the conversation: it was about that model, or about a thing
// that the request asked for.
func (s Situation) refusedAside(r account.Rejection) bool {
	if !s.Aside {
		return false
	}
	switch r.Kind {
	case account.ModelWindow, account.Entitlement, account.Access, account.TooLarge, account.Bare:
		return true
	default:
		return r.PerModel
	}
}

// Undone plans for a request whose conversation was moved from an account, where the one
// that it was moved to cannot read what the conversation carries. The conversation is back,
// and bound from now on: the client waits for its account.
func Undone(s Situation, from account.ID) Plan {
	held := s.index(from)
	if held < 0 {
		return s.refuseHeld(held, pick.Standing{Reason: removed})
	}
	st := pick.StandPinned(s.Now, s.Request, untried(s.Candidates[held]), s.Settings)
	return s.refuseHeld(held, st)
}

func untried(c pick.Candidate) pick.Candidate {
	c.Tried = false
	return c
}

// pickNext picks an account that can be used now, to move or hop to. An account that is
// to be probed, or is picked only for want of a better one, is not worth a hop.
func (s Situation) pickNext() Plan {
	d := pick.Pick(s.Now, s.Policy, s.Settings, s.Request, s.Candidates)
	if d.Chosen < 0 || !pick.Stand(s.Now, s.Request, s.Candidates[d.Chosen], s.Settings).Usable() {
		return Plan{Step: HandBack}
	}
	change := NoPin
	if s.Pins {
		change = Move
		if _, held := s.pinned(); !held {
			change = New
		}
	}
	return Plan{Step: Serve, Chosen: d.Chosen, Pin: change, Trial: d.Trial && s.Pins, Decision: &d, Why: "hop"}
}

// spent chooses between the upstream's own words and ours when no other account can take
// the request. Where others are spent too, or need their owner, only we know which of them
// comes back first; one account alone speaks for itself, with whatever it offers beside its
// refusal.
func (s Situation) spent(handBack Plan, r account.Rejection, at int) Plan {
	if p := s.owned(handBack, r, at); p.Step == Refuse {
		return p
	}
	if r.Thing() != (account.Thing{}) {
		if p, ok := s.paused(); ok {
			return p
		}
	}
	if (r.Kind != account.WindowSpent && r.Kind != account.ModelWindow) || s.Policy.Name == catalog.Order {
		return handBack
	}
	others := 0 // that come back by themselves, or by their owner's hand
	for i, c := range s.Candidates {
		st := pick.Stand(s.Now, s.Request, untried(c), s.Settings)
		if i != at && (st.Blocked() || st.Reason == pick.Parked) {
			others++
		}
	}
	if others == 0 {
		return handBack
	}
	return Plan{Step: Refuse, Refusal: s.nobody(), Why: "spent"}
}

// owned turns the upstream's word on our credential into ours: a client would take it for
// its own login failing.
func (s Situation) owned(handBack Plan, r account.Rejection, at int) Plan {
	if r.Kind != account.BadCredential && r.Kind != account.Funds {
		return handBack
	}
	refusal := Refusal{Cause: NoAccount, Bound: s.mustStay()}
	refusal.Owner = []Need{{s.Candidates[at].Account.Name, r.Reason()}}
	if !refusal.Bound {
		if all := s.nobody(); all.Cause != NoAccount || len(all.Owner) > 0 {
			refusal = all // others come back by themselves, or need their owner too
		}
	}
	return Plan{Step: Refuse, Refusal: refusal, Why: string(r.Kind)}
}
