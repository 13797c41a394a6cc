package pin

import (
	"time"

	"holdfast/internal/core/account"
)

// Counts are conversations and requests of a time: Kept requests found the pin of their
// conversation, New and Moved are pins.
type Counts struct {
	Kept, Moved, New int64
}

// Tally sums up pins one by one, however many there are, and keeps none of them.
type Tally struct {
	now time.Time
	// Live counts the pins that have not ended, by account.
	Live map[account.ID]int
	// Day is of the last 24 hours.
	Day Counts
	// Unreadable are records that were no pins.
	Unreadable int

	hour Counts
	// before is what was kept in the hour before this one.
	before int64
}

// NewTally returns an empty tally as of an instant.
func NewTally(now time.Time) *Tally { return &Tally{now: now, Live: map[account.ID]int{}} }

// Add counts a pin, one that has ended too.
func (t *Tally) Add(p Record) {
	if p.Live(t.now) {
		t.Live[p.Account]++
	}
	this := Hour(t.now)
	for hour, n := range p.Kept {
		if hour > this-24 && hour <= this {
			t.Day.Kept += n
		}
		switch hour {
		case this:
			t.hour.Kept += n
		case this - 1:
			t.before += n
		}
	}
	for _, c := range []struct {
		within time.Duration
		counts *Counts
	}{{time.Hour, &t.hour}, {24 * time.Hour, &t.Day}} {
		if !p.Void && t.now.Sub(p.CreatedAt) < c.within {
			c.counts.New++
		}
		if !p.MovedAt.IsZero() && t.now.Sub(p.MovedAt) < c.within {
			c.counts.Moved++
		}
	}
}

// Hour is of the last hour. Requests are counted by the hour of the clock, so of the one
// before this the part is taken that lies within an hour.
func (t *Tally) Hour() Counts {
	c := t.hour
	into := t.now.Sub(t.now.Truncate(time.Hour))
	c.Kept += int64(float64(t.before) * (1 - into.Hours()))
	return c
}
