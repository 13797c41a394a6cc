package poll

import (
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/store"
)

const (
	// slowest is where doubling ends.
	slowest = 30 * time.Minute
	// soonest is the least that is waited after a failure: a setting shorter than a round
	// must not turn into asking a refusing endpoint every second.
	soonest = time.Minute
	// spread is the share of an interval by which it is lengthened at random.
	spread = 0.2
	// parkedWait is how long after it was parked for funds an account is first looked at, and
	// how often then. Each time that such a parking comes back it doubles, up to
	// parkedLongest: a provider may refuse requests and show room all the same. After
	// parkedMemory that is forgotten.
	parkedWait    = 30 * time.Minute
	parkedLongest = 24 * time.Hour
	parkedMemory  = 48 * time.Hour
)

// Subject is what is known of an account when a round begins.
type Subject struct {
	Account account.Account
	State   account.State
	Clock   store.Clock
	// Watched: its provider has a usage endpoint for it.
	Watched bool
}

// Result says what a round did about an account's usage, or why it did nothing.
type Result string

// What Plan can say.
const (
	// Due: it is to be looked at. In a Report this is never left: see the results of a look.
	Due Result = "due"
	// Unwatched: there is no usage endpoint for it.
	Unwatched Result = "unwatched"
	// Parked: it waits for its owner.
	Parked Result = "parked"
	// BackingOff: the last look failed, and it is not yet time for another.
	BackingOff Result = "backing-off"
	// Waiting: it was looked at a short while ago.
	Waiting Result = "waiting"
	// Fresh: its answers told how it stands a short while ago, and it serves.
	Fresh Result = "fresh"
)

// Results of a look.
const (
	// WasRead: the look brought a reading.
	WasRead Result = "read"
	// HasFailed: it did not.
	HasFailed Result = "failed"
	// NotReached: the round's time was over before the look was; it is due in the next.
	NotReached Result = "not-reached"
)

// Plan says whether an account is to be looked at, or why not. Of the settings, FreshFor is
// how long an answer's word on the allowance spares a look. everybody is the owner's wish to
// ask whatever the clocks say.
func Plan(s Subject, now time.Time, settings catalog.Settings, everybody bool) Result {
	early := now.Before(nextOf(s, now, settings.PollInterval))
	switch parked := s.State.Parked; {
	case !s.Watched:
		return Unwatched
	case parked != nil && parked.Kind != account.Funds:
		return Parked
	case early && s.Clock.Failures > 0:
		return BackingOff
	case everybody:
		return Due
	case parked != nil && now.Before(parked.Since.Add(waitParked(s.Clock, now))):
		return Parked
	case early:
		return Waiting
	case parked != nil || cools(s, now):
		return Due
	case !s.Clock.AnswerAt.IsZero() && now.Before(allowanceAt(s.State, "").Add(settings.FreshFor)):
		return Fresh
	}
	return Due
}

// astray is how far ahead of ours an instant must lie to have come from a clock that was
// wrong. It is not waited for then.
const astray = account.Ahead

// nextOf is the instant from which an account may be looked at: its clock's, unless the
// interval has been shortened since that was set, or it was set by a clock that was wrong.
func nextOf(s Subject, now time.Time, interval time.Duration) time.Time {
	c := s.Clock
	longest := interval
	switch {
	case c.Failures > 0:
		longest = backoff(interval, c.Failures, 1)
	case s.State.Parked != nil:
		longest = parkedLongest
	}
	if latest := c.LookedAt.Add(max(jittered(longest, 1), soonest)); latest.Before(c.NextAt) && !c.LookedAt.IsZero() {
		c.NextAt = latest
	}
	if c.LookedAt.After(now.Add(astray)) {
		return now
	}
	return c.NextAt
}

// cools reports whether the account, or a model family on it, is out of use for something
// that a reading can show to be over. No reading ends a pause.
func cools(s Subject, now time.Time) bool {
	return slices.ContainsFunc(pick.Blocks(now, pick.Of(s.Account, s.State)), func(b account.Block) bool { return !b.Pause() })
}

// allowanceAt is the instant of the newest reading of any window that is an allowance, from
// a source, or from any where that is empty; zero if there was none. Per-minute windows say
// nothing of an allowance, and are over before the next look.
func allowanceAt(s account.State, source account.Source) time.Time {
	var newest time.Time
	for name, w := range s.Windows {
		if (source == "" || w.Source == source) && !account.PerMinute(name) && w.ObservedAt.After(newest) {
			newest = w.ObservedAt
		}
	}
	return newest
}

// noticed is the clock with what the account's answers have told since.
func noticed(c store.Clock, s account.State) store.Clock {
	if at := allowanceAt(s, account.FromAnswer); at.After(c.AnswerAt) {
		c.AnswerAt = at
	}
	return c
}

// begun is the clock of an account that is about to be looked at. It holds if nobody comes
// back to tell the outcome.
func begun(c store.Clock, now time.Time, interval time.Duration) store.Clock {
	c.LookedAt, c.NextAt = now, now.Add(max(interval, soonest))
	return c
}

// Read is the clock after a look that began at now and brought a reading. jitter is at least
// 0 and below 1; unparked says that the reading ended a parking.
func Read(c store.Clock, now time.Time, interval time.Duration, jitter float64, unparked bool) store.Clock {
	c.LookedAt, c.ReadAt, c.Failures, c.Trouble = now, now, 0, ""
	c.NextAt = now.Add(jittered(interval, jitter))
	if unparked {
		if now.Sub(c.UnparkedAt) >= parkedMemory {
			c.Unparked = 0
		}
		c.Unparked++
		c.UnparkedAt = now
	}
	return c
}

// ReadParked is Read for an account that is still parked for funds.
func ReadParked(c store.Clock, now time.Time, jitter float64) store.Clock {
	return Read(c, now, waitParked(c, now), jitter, false)
}

// Failed is the clock after a look that began at now and failed.
func Failed(c store.Clock, now time.Time, interval time.Duration, jitter float64, trouble string) store.Clock {
	c.LookedAt, c.Trouble = now, trouble
	c.Failures++
	c.NextAt = now.Add(backoff(interval, c.Failures, jitter))
	return c
}

// backoff is how long a number of failures in a row keep from the next look: the interval,
// twice that, and so on up to slowest, or to the interval where that is longer.
func backoff(interval time.Duration, failures int, jitter float64) time.Duration {
	wait := max(interval, soonest)
	most := max(wait, slowest)
	for range failures - 1 {
		if wait >= most {
			break
		}
		wait *= 2
	}
	return min(jittered(min(wait, most), jitter), most)
}

func jittered(d time.Duration, jitter float64) time.Duration {
	return d + time.Duration(spread*jitter*float64(d))
}

// waitParked is how long an account that was parked for funds is left alone.
func waitParked(c store.Clock, now time.Time) time.Duration {
	wait := parkedWait
	if now.Sub(c.UnparkedAt) >= parkedMemory {
		return wait
	}
	for range c.Unparked {
		if wait >= parkedLongest {
			break
		}
		wait *= 2
	}
	return min(wait, parkedLongest)
}

// pointOf is what the state adds to an account's history since the newest point; false when
// that is nothing, or too little time.
func pointOf(s account.State, since time.Time) (store.Point, bool) {
	p := store.Point{Windows: map[string]store.PointWindow{}}
	for name, w := range s.Windows {
		if !w.HasUtilization || account.PerMinute(name) || !w.ObservedAt.After(since) {
			continue
		}
		p.Windows[name] = store.PointWindow{Utilization: w.Utilization, ResetAt: w.ResetAt}
		if w.ObservedAt.After(p.At) {
			p.At = w.ObservedAt
		}
	}
	return p, len(p.Windows) > 0 && !p.At.Before(since.Add(store.HistoryEvery))
}
