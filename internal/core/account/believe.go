package account

import (
	"maps"
	"time"
)

// Ahead is how far ahead of ours an instant of something that was observed may lie: clocks of
// machines differ a little. What lies further ahead came from a clock that was wrong, whoever
// wrote it, and is not believed.
const Ahead = 2 * time.Minute

// longest is how far ahead a reset may lie where the length of its window is not known.
const longest = 32 * 24 * time.Hour

// Believed is the state as it is to be judged at an instant, and whether something in it was
// not believed. What was observed in times to come counts as of now. A block or a refusal
// that ends later than its kind allows is void, and so is a reset later than a length of its
// window away.
func (s State) Believed(now time.Time) (State, bool) {
	if s.believable(now) {
		return s, false
	}
	s = s.clone()
	// An instant before now, so that evidence of now is newer.
	past := now.Add(-time.Nanosecond)
	clamp := func(t time.Time) time.Time {
		if ahead(t, now) {
			return past
		}
		return t
	}
	for name, w := range s.Windows {
		w.ObservedAt, w.OpenAt, w.PollOpenAt = clamp(w.ObservedAt), clamp(w.OpenAt), clamp(w.PollOpenAt)
		if w.ResetAt.After(now.Add(longestReset(name))) {
			w.ResetAt = time.Time{}
		}
		s.Windows[name] = w
	}
	maps.DeleteFunc(s.Blocks, func(_ string, b Block) bool { return b.unbelievable(now) })
	for k, b := range s.Blocks {
		b.Since, b.EndedAt = clamp(b.Since), clamp(b.EndedAt)
		s.Blocks[k] = b
	}
	maps.DeleteFunc(s.Refuses, func(_ string, r Refused) bool { return r.unbelievable(now) })
	for k, r := range s.Refuses {
		r.Since = clamp(r.Since)
		s.Refuses[k] = r
	}
	if s.Parked != nil && ahead(s.Parked.Since, now) {
		parked := *s.Parked
		parked.Since = past
		s.Parked = &parked
	}
	if s.Ending != nil && ahead(s.Ending.Since, now) {
		ending := *s.Ending
		ending.Since = past
		s.Ending = &ending
	}
	s.RoomAt, s.ReadAt, s.ProbedAt, s.ClearedAt = clamp(s.RoomAt), clamp(s.ReadAt), clamp(s.ProbedAt), clamp(s.ClearedAt)
	return s, true
}

func ahead(t, now time.Time) bool { return t.After(now.Add(Ahead)) }

// unbelievable reports whether a block was made by a clock that was wrong, and ends later than
// one of its kind could that was made now. One that was made by a right clock lasts as long as
// whoever made it saw fit.
func (b Block) unbelievable(now time.Time) bool {
	return ahead(b.Since, now) && b.Until.After(now.Add(b.ceiling()+Ahead))
}

// unbelievable is the same of a refusal.
func (r Refused) unbelievable(now time.Time) bool {
	return ahead(r.Since, now) && r.Until.After(now.Add(FeatureMemory+Ahead))
}

// ceiling is the longest that a block of its kind lasts from its evidence on.
func (b Block) ceiling() time.Duration {
	switch {
	case b.Pause():
		return ThrottleCeiling
	case b.Window == FiveHour:
		return FiveHourCeiling
	}
	return ToldCeiling
}

// longestReset is how far ahead the reset of a window may lie.
func longestReset(window string) time.Duration {
	if length := Length(window); length > 0 {
		return length + Ahead
	}
	return longest
}

func (s State) believable(now time.Time) bool {
	for name, w := range s.Windows {
		if ahead(w.ObservedAt, now) || ahead(w.OpenAt, now) || ahead(w.PollOpenAt, now) || w.ResetAt.After(now.Add(longestReset(name))) {
			return false
		}
	}
	for _, b := range s.Blocks {
		if ahead(b.Since, now) || ahead(b.EndedAt, now) {
			return false
		}
	}
	for _, r := range s.Refuses {
		if ahead(r.Since, now) {
			return false
		}
	}
	return !(s.Parked != nil && ahead(s.Parked.Since, now) || s.Ending != nil && ahead(s.Ending.Since, now) ||
		ahead(s.RoomAt, now) || ahead(s.ReadAt, now) || ahead(s.ProbedAt, now) || ahead(s.ClearedAt, now))
}
