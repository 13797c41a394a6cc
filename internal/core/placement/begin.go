package placement

import (
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
)

// Begin plans the first send.
func Begin(s Situation) Plan {
	if s.Owner != "" {
		return s.atOwner(s.index(s.Owner))
	}
	if held, ok := s.pinned(); ok && !s.beside(held) {
		return s.stayOrMove(held)
	}
	if s.Unowned && s.several() {
		return Plan{Step: Refuse, Refusal: Refusal{Cause: Unowned, Object: true}, Why: string(Unowned)}
	}
	if i, ok := s.withParent(); ok {
		return s.background(i, s.serve(i, s.newPin(), "parent"))
	}
	if i := s.index(s.Uploads); i >= 0 {
		return s.uploadTo(i)
	}
	return s.pickNew()
}

// uploadTo plans for an upload whose client key's others went to candidate i: it goes there,
// or waits for a moment, for as long as that takes uploads.
func (s Situation) uploadTo(i int) Plan {
	st := pick.StandPinned(s.Now, s.whatever().Request, s.Candidates[i], s.Settings)
	switch {
	case st.Usable(), s.asksAnyway(st) && !s.longerThanMoveAfter(st):
		return s.background(i, s.serve(i, s.newPin(), "uploads"))
	case !s.longerThanMoveAfter(st):
		return s.refuseBlocked(i, st, false)
	}
	return s.pickNew()
}

// newPin is the pin change of serving a request whose conversation has no pin.
func (s Situation) newPin() PinChange {
	if s.Pins {
		return New
	}
	return NoPin
}

// pinned returns the index of the account that the live pin names; −1 if that account is
// gone. It is false when there is no live pin.
func (s Situation) pinned() (int, bool) {
	if s.Pin == nil || !s.Pin.Live(s.Now) {
		return -1, false
	}
	return s.index(s.Pin.Account), true
}

func (s Situation) index(id account.ID) int {
	for i, c := range s.Candidates {
		if c.Account.ID == id {
			return i
		}
	}
	return -1
}

func (s Situation) bound() bool { return s.Bound || (s.Pin != nil && s.Pin.Bound) }

// removed is the standing of an account that has left the catalog.
const removed pick.Reason = "removed"

func (s Situation) serve(i int, change PinChange, why string) Plan {
	return Plan{Step: Serve, Chosen: i, Pin: change, Why: why}
}

// stayOrMove plans for a conversation whose live pin names candidate held.
func (s Situation) stayOrMove(held int) Plan {
	keep := NoPin
	if s.Pins {
		keep = Keep
	}
	if held < 0 {
		return s.leave(held, pick.Standing{Reason: removed})
	}
	// What the account once refused moves nobody by itself: asking again costs one request,
	// leaving the account's cache much more. If it is refused again, After moves. A request
	// larger than a limit there cannot but be refused, and has no cache there to leave.
	// A request that has no cache there leaves none either.
	asked := s.again()
	if s.Aside || !s.Pins {
		asked = s
	}
	st := pick.StandPinned(s.Now, asked.Request, s.Candidates[held], s.Settings)
	if st.Reason == pick.Refuses {
		if p := s.pickNext(); p.Step == Serve && !s.mustStay() {
			if s.Aside {
				p.Pin = NoPin
			}
			return p
		}
		st = pick.StandPinned(s.Now, s.whatever().Request, s.Candidates[held], s.Settings)
	}
	if st.Usable() {
		return s.background(held, s.serve(held, keep, "pinned"))
	}
	if s.probeDue(held) {
		p := s.serve(held, keep, "probe")
		p.Probe = true
		return p
	}
	if s.asksAnyway(st) {
		if p := s.pickNext(); p.Step == Serve && !s.mustStay() && s.longerThanMoveAfter(st) {
			if s.Aside && st.Reason == pick.ModelBlocked {
				p.Pin = NoPin
			}
			return p
		}
		return s.serve(held, keep, "order")
	}
	if !s.longerThanMoveAfter(st) {
		return s.refuseBlocked(held, st, false)
	}
	return s.leave(held, st)
}

// asksAnyway reports whether a pinned conversation is sent to its account although the
// allowance there is said to be spent: policy "order" never gives up on its accounts, and
// a request that must stay may be one that the provider admits all the same. A block
// that guards paid overage is respected always.
func (s Situation) asksAnyway(st pick.Standing) bool {
	if st.Reason != pick.Cooldown && st.Reason != pick.ModelBlocked {
		return false
	}
	return st.Block.Cause != account.CauseOverage && (s.Policy.Name == catalog.Order || s.Stay)
}

func (s Situation) mustStay() bool { return s.Stay || s.Owner != "" || s.Unowned || s.bound() }

// several reports whether more than one account could serve the request, now or later.
func (s Situation) several() bool {
	n := 0
	for _, c := range s.Candidates {
		if c.Serves && c.Allowed {
			n++
		}
	}
	return n > 1
}

// beside reports whether the request only comes along with its conversation, as the upload
// of a file does, and the conversation's account does not serve such a thing at all.
func (s Situation) beside(held int) bool {
	return !s.Pins && held >= 0 && !s.Candidates[held].Serves
}

// atOwner plans for a request that names an object of candidate i's; i is −1 if that
// account is gone.
func (s Situation) atOwner(i int) Plan {
	p := s.byOwner(i)
	p.Refusal.Object = p.Step == Refuse && p.Refusal.Cause != Yielded
	return p
}

func (s Situation) byOwner(i int) Plan {
	if i < 0 {
		return s.refuseHeld(i, pick.Standing{Reason: removed})
	}
	change := s.newPin()
	if held, ok := s.pinned(); ok && change == New {
		change = NoPin
		if held == i {
			change = Keep
		}
	}
	st := pick.StandPinned(s.Now, s.whatever().Request, s.Candidates[i], s.Settings)
	switch {
	case st.Usable():
		return s.background(i, s.serve(i, change, "owner"))
	case s.probeDue(i):
		p := s.serve(i, change, "probe")
		p.Probe = true
		return p
	case s.asksAnyway(st):
		return s.serve(i, change, "owner")
	}
	return s.refuseHeld(i, st)
}

// longerThanMoveAfter reports whether a standing keeps the account from serving for
// longer than the setting move_after. Without an end of its own it does.
func (s Situation) longerThanMoveAfter(st pick.Standing) bool {
	return st.Until.IsZero() || st.Until.Sub(s.Now) > s.Settings.MoveAfter
}

// leave plans for a pinned conversation whose account cannot serve it.
func (s Situation) leave(held int, st pick.Standing) Plan {
	if s.mustStay() {
		return s.refuseHeld(held, st)
	}
	change := NoPin
	if s.Pins && !(s.Aside && (st.Reason == pick.ModelBlocked || st.Reason == pick.Refuses)) {
		change = Move
	}
	p := s.pickNew()
	if p.Step == Serve {
		p.Pin = change
	}
	return p
}

// again is the situation of a request that asks for what an account refused lately, a limit
// that it exceeds aside.
func (s Situation) again() Situation {
	s.Request.Again = true
	return s
}

// whatever is the situation of a request that may be refused as others were before it.
func (s Situation) whatever() Situation {
	s.Request.Size = 0
	return s.again()
}

// refuseHeld is the refusal for a conversation that may not leave its account.
func (s Situation) refuseHeld(held int, st pick.Standing) Plan {
	if !st.Until.IsZero() {
		return s.refuseBlocked(held, st, true)
	}
	r := Refusal{Cause: NoAccount, Bound: true}
	if held >= 0 {
		r.Owner = []Need{s.need(held, st)}
	}
	return Plan{Step: Refuse, Refusal: r, Why: string(st.Reason)}
}

func (s Situation) need(i int, st pick.Standing) Need {
	reason := string(st.Reason)
	if parked := s.Candidates[i].State.Parked; parked != nil {
		reason = parked.Reason
	}
	return Need{s.Candidates[i].Account.Name, reason}
}

func (s Situation) refuseBlocked(held int, st pick.Standing, bound bool) Plan {
	cause := Exhausted
	if st.Block.Pause() {
		cause = Paused
	}
	r := Refusal{Cause: cause, RetryAt: st.Until, Block: st.Block, Account: s.Candidates[held].Account.Name, Bound: bound}
	return Plan{Step: Refuse, Refusal: r, Why: string(st.Reason)}
}

// background turns a background request away from account i, its conversation's own, when
// that has too little headroom left; otherwise the plan stands.
func (s Situation) background(i int, p Plan) Plan {
	if !s.Request.Background {
		return p
	}
	if yields, retryAt := pick.YieldsPinned(s.Now, s.Settings, s.Request, s.Candidates[i]); yields {
		return yielded(retryAt)
	}
	return p
}

func yielded(retryAt time.Time) Plan {
	return Plan{Step: Refuse, Refusal: Refusal{Cause: Yielded, RetryAt: retryAt}, Why: string(Yielded)}
}

// withParent returns the account of a sub-agent's session, if it can take a new
// conversation and its short window has room.
func (s Situation) withParent() (int, bool) {
	if s.Parent == nil || !s.Parent.Live(s.Now) {
		return 0, false
	}
	i := s.index(s.Parent.Account)
	if i < 0 || !pick.Stand(s.Now, s.Request, s.Candidates[i], s.Settings).Usable() {
		return 0, false
	}
	short := s.Candidates[i].State.Windows[account.FiveHour]
	return i, short.At(s.Now) < s.Settings.ShortWindowLine
}

// pickNew plans for a request that no pin directs.
func (s Situation) pickNew() Plan {
	if s.Request.Background {
		if yields, retryAt := pick.Yields(s.Now, s.Settings, s.Request, s.Candidates); yields {
			return yielded(retryAt)
		}
	}
	d := pick.Pick(s.Now, s.Policy, s.Settings, s.Request, s.Candidates)
	if i, ok := s.toProbe(d.Chosen); ok {
		return Plan{Step: Serve, Chosen: i, Pin: s.newPin(), Probe: true, Why: "probe"}
	}
	if d.Chosen >= 0 {
		return Plan{Step: Serve, Chosen: d.Chosen, Pin: s.newPin(), Trial: d.Trial && s.Pins, Decision: &d, Why: string(d.Reason)}
	}
	if refuses := func(p pick.Part) bool { return p.Passed == pick.Refuses }; slices.ContainsFunc(d.Parts, refuses) {
		if p, ok := s.paused(); ok {
			return p
		}
		return s.whatever().pickNew() // every account that could serve it refuses it: the provider's refusal is the answer
	}
	return Plan{Step: Refuse, Refusal: s.nobody(), Decision: &d, Why: string(d.Reason)}
}

// paused is the plan where an account that may do what others refuse only pauses: it is worth
// its wait, since the refusal would end the client's work. It is false where none does.
func (s Situation) paused() (Plan, bool) {
	r := s.nobody()
	return Plan{Step: Refuse, Refusal: r, Why: string(Paused)}, r.Cause == Paused
}

// nobody says why no candidate can take the request.
func (s Situation) nobody() Refusal {
	r := Refusal{Cause: NoAccount}
	found := false
	for i, c := range s.Candidates {
		c.Tried = false // having been sent to is no reason of the account's
		st := pick.Stand(s.Now, s.Request, c, s.Settings)
		switch st.Reason {
		case pick.Cooldown, pick.Paused, pick.ModelBlocked:
			if !found || st.Until.Before(r.RetryAt) {
				found = true
				r.RetryAt, r.Block, r.Account = st.Until, st.Block, c.Account.Name
			}
		case pick.Parked:
			r.Owner = append(r.Owner, s.need(i, st))
		case pick.Draining:
			r.Draining = true
		default: // not for this request, whatever the time
		}
	}
	if found {
		r.Cause = Exhausted
		if r.Block.Pause() {
			r.Cause = Paused
		}
	}
	return r
}

// toProbe returns an account that is due to be tried with this request, which the policy
// would give to candidate chosen. Under policy "order" only an account that stands before
// that one is worth it: the owner wants the conversation no further down the list.
func (s Situation) toProbe(chosen int) (int, bool) {
	if !s.Pins || s.mustStay() {
		return 0, false
	}
	among := s.Candidates
	if s.Policy.Name == catalog.Order && chosen >= 0 {
		among = among[:chosen]
	}
	for i := range among {
		if s.probeDue(i) {
			return i, true
		}
	}
	return 0, false
}

// probeDue reports whether a blocked account may be tried with this request: its
// allowance is said to be spent, neither the rejection nor the last try is younger than
// the setting probe_interval, and no usage endpoint is looked at that would tell sooner.
// Blocks that guard paid overage are never tried.
func (s Situation) probeDue(i int) bool {
	c := s.Candidates[i]
	st := pick.StandPinned(s.Now, s.Request, c, s.Settings)
	if c.Account.Draining || (st.Reason != pick.Cooldown && st.Reason != pick.ModelBlocked) {
		return false
	}
	last, looked := c.State.ProbedAt, true
	for _, b := range pick.BlocksFor(s.Now, s.Request, c) {
		if b.Cause == account.CauseOverage {
			return false
		}
		if b.Since.After(last) {
			last = b.Since
		}
		looked = looked && (b.Pause() || s.looked(c.State.Windows[b.Window]))
	}
	return !looked && s.Now.Sub(last) >= s.Settings.ProbeInterval
}

// looksMissed is how many intervals without a look show that looking has ended: the
// endpoint refuses, or nobody looks. A reset must not wait for it.
const looksMissed = 2

// looked reports whether a usage endpoint is being looked at that has readings of a window.
func (s Situation) looked(w account.Window) bool {
	at := w.LookedAt()
	return !at.IsZero() && s.Now.Sub(at) < looksMissed*max(s.Settings.ProbeInterval, s.Settings.PollInterval)
}
