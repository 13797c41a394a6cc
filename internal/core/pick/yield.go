package pick

import (
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// slack absorbs what binary fractions add to decimal ones, or lack: room of exactly
// background_headroom is room enough, and 1 - 0.9 is at a threshold of 0.1.
const slack = 1e-9

// Yields reports whether a background request for a new conversation is to be turned away
// because the best headroom among the accounts that could serve it is below
// background_headroom. Accounts that cool could serve it, and have none; a pause says
// nothing about headroom. Where no account could ever serve it, there is nothing to yield
// to, and it is false.
//
// retryAt is the soonest instant at which an account has that headroom again, as far as
// resets were told; else one poll_interval from now, when a newer reading may be there.
// It is zero when the request need not yield.
func Yields(now time.Time, s catalog.Settings, r Request, cs []Candidate) (yield bool, retryAt time.Time) {
	for _, c := range cs {
		st := Stand(now, r, c, s)
		if !st.Usable() && !st.Blocked() {
			continue
		}
		room, at := roomAt(now, s, r, c)
		if room {
			return false, time.Time{}
		}
		yield = true
		if !at.IsZero() && (retryAt.IsZero() || at.Before(retryAt)) {
			retryAt = at
		}
	}
	if yield && retryAt.IsZero() {
		retryAt = now.Add(s.PollInterval)
	}
	return yield, retryAt
}

// YieldsPinned is Yields for a conversation that is pinned to the candidate, whose
// headroom alone counts. It is false where the candidate is not usable: whether the
// conversation then waits or moves is not decided here, and where it moves, Yields counts.
func YieldsPinned(now time.Time, s catalog.Settings, r Request, c Candidate) (yield bool, retryAt time.Time) {
	if !StandPinned(now, r, c, s).Usable() {
		return false, time.Time{}
	}
	c.Account.Draining = false
	return Yields(now, s, r, []Candidate{c})
}

// roomAt reports whether an account has the headroom for background traffic, and if not,
// when it has again: when its block and every window that stands in the way have ended.
// The instant is zero when one of them has no told end.
func roomAt(now time.Time, s catalog.Settings, r Request, c Candidate) (room bool, at time.Time) {
	room, told := true, true
	ends := func(t time.Time) {
		room = false
		told = told && !t.IsZero()
		if t.After(at) {
			at = t
		}
	}
	for _, b := range BlocksFor(now, r, c) {
		if !b.Pause() {
			ends(b.Until)
		}
	}
	for name, w := range c.State.Windows {
		u, known := utilization(now, w)
		if known && account.Binds(name, r.Family) && u > 1-s.BackgroundHeadroom+slack {
			ends(w.ResetAt)
		}
	}
	if !told {
		at = time.Time{}
	}
	return room, at
}
