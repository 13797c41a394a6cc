// Package pin is the record that a conversation belongs to an account, and the
// arithmetic of its life.
//
// A pin is claimed by a conditional write, touched while the conversation goes on, and
// moved when its account cannot serve. It ends a while after the last activity; that is
// judged by our clock, here, and never by a store's own expiry. The package decides when
// a pin has expired and when a touch is due. It does not choose accounts (package pick)
// nor whether a conversation may move (package placement), and it does no I/O.
package pin

import (
	"time"

	"holdfast/internal/core/account"
)

// Record is a pin.
type Record struct {
	Account account.ID `json:"account"`
	// Provider is kept so that a listing can tell pins apart without their account.
	Provider account.Provider `json:"provider"`
	// Bound conversations carry state that only their account can read: they never move.
	Bound bool `json:"bound,omitempty"`
	// Model is the one that the conversation began with, or moved with; empty if unknown.
	Model     string    `json:"model,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// MovedAt is when the pin last moved; zero when it never did.
	MovedAt time.Time `json:"moved_at,omitzero"`
	// TouchedAt is the activity that the stored expiry was reckoned from.
	TouchedAt time.Time `json:"touched_at"`
	ExpiresAt time.Time `json:"expires_at"`
	// Void: the conversation's first turn failed before any content, so nothing came of the pin
	// and no listing counts it as made.
	Void bool `json:"void,omitempty"`
	// Kept counts requests that found the pin, by the hour they were counted in
	// (hours since the epoch); hours older than a day are dropped.
	Kept map[int64]int64 `json:"kept,omitempty"`

	// Revision is the stored record's; 0 for one never stored.
	Revision int64 `json:"-"`
}

// maxTouchEvery bounds how often a pin is written for activity alone.
const maxTouchEvery = time.Minute

// TouchEvery is the least time between two touches: a minute, or a quarter of the
// pin's life if that is shorter.
func TouchEvery(ttl time.Duration) time.Duration { return min(maxTouchEvery, ttl/4) }

// expiry includes one touch interval, so that activity which was not written yet never
// lets a pin end early.
func expiry(now time.Time, ttl time.Duration) time.Time { return now.Add(ttl + TouchEvery(ttl)) }

// New is a pin made now.
func New(a account.Account, bound bool, now time.Time, ttl time.Duration) Record {
	return Record{Account: a.ID, Provider: a.Provider, Bound: bound, CreatedAt: now, TouchedAt: now, ExpiresAt: expiry(now, ttl)}
}

// Of is the pin of a conversation with a model.
func (r Record) Of(model string) Record {
	r.Model = model
	return r
}

// Live reports whether the pin still holds: it ends at the instant ExpiresAt.
func (r Record) Live(now time.Time) bool { return r.Account != "" && now.Before(r.ExpiresAt) }

// TouchDue reports whether activity now is worth a write: the last one is a touch
// interval old, or the conversation has become bound.
func (r Record) TouchDue(bound bool, now time.Time, ttl time.Duration) bool {
	return (bound && !r.Bound) || now.Sub(r.TouchedAt) >= TouchEvery(ttl)
}

// Touch is the pin after activity now, carrying kept more requests into its counts.
func (r Record) Touch(bound bool, kept int64, now time.Time, ttl time.Duration) Record {
	r.Bound = r.Bound || bound
	r.TouchedAt = now
	r.ExpiresAt = expiry(now, ttl)
	return r.count(kept, now)
}

// Move is the pin after it went to another account now.
func (r Record) Move(to account.ID, now time.Time, ttl time.Duration) Record {
	r.Account, r.MovedAt, r.TouchedAt = to, now, now
	r.ExpiresAt = expiry(now, ttl)
	return r
}

// Rehome is the pin after its account turned out, before anything was cached there, to be
// another one: no move, only a better beginning.
func (r Record) Rehome(to account.ID, now time.Time, ttl time.Duration) Record {
	moved := r.MovedAt
	r = r.Move(to, now, ttl)
	r.MovedAt = moved
	return r
}

// End is the pin ended now: nothing came of it.
func (r Record) End(now time.Time) Record {
	r.ExpiresAt, r.Void = now, true
	return r
}

// Counted is the pin with kept more requests in its counts, its life as it was.
func (r Record) Counted(kept int64, now time.Time) Record { return r.count(kept, now) }

// Hour is the bucket of Kept that an instant falls in.
func Hour(t time.Time) int64 { return t.Unix() / 3600 }

const keptHours = 24

func (r Record) count(kept int64, now time.Time) Record {
	hour := Hour(now)
	counts := make(map[int64]int64, len(r.Kept)+1)
	for h, n := range r.Kept {
		if h > hour-keptHours {
			counts[h] = n
		}
	}
	if kept > 0 {
		counts[hour] += kept
	}
	r.Kept = counts
	if len(counts) == 0 {
		r.Kept = nil
	}
	return r
}
