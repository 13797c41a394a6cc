package status

import (
	"fmt"
	"time"

	"holdfast/internal/core/account"
)

// LastPoll describes the newest round of looks at usage endpoints.
type LastPoll struct {
	// At is when it began, whether somebody was due in it or not.
	At time.Time `json:"at"`
	// Looks are one for each account that was ever looked at.
	Looks []Look `json:"looks"`
}

// Look is the newest look at one account.
type Look struct {
	Account string    `json:"account"`
	At      time.Time `json:"at"`
	// ReadAt is when a look last brought a reading; null for never.
	ReadAt *time.Time `json:"read_at"`
	// Failures counts the looks that failed since then, and Error says why the last one did.
	// NextAt is the earliest instant of the next.
	Failures int       `json:"failures"`
	Error    string    `json:"error,omitempty"`
	NextAt   time.Time `json:"next_at"`
}

func lastPoll(in Input) *LastPoll {
	if in.Poll.RoundAt.IsZero() {
		return nil
	}
	p := &LastPoll{At: second(in.Poll.RoundAt), Looks: []Look{}}
	for _, a := range in.Catalog.Accounts {
		c := in.Poll.Clocks[a.ID]
		if c.LookedAt.IsZero() {
			continue
		}
		l := Look{Account: a.Name, At: second(c.LookedAt), Failures: c.Failures, Error: c.Trouble, NextAt: second(c.NextAt)}
		if !c.ReadAt.IsZero() {
			at := second(c.ReadAt)
			l.ReadAt = &at
		}
		p.Looks = append(p.Looks, l)
	}
	return p
}

// text is a line on the round, and one for each account that is backed off from.
func (p LastPoll) text(at time.Time) []string {
	lines := []string{"last poll: " + Span(at.Sub(p.At)) + " ago"}
	for _, l := range p.Looks {
		if l.Failures > 0 {
			lines = append(lines, l.Text(at))
		}
	}
	return lines
}

// Text says of an account whose look failed how often, why, and when the next is, for a
// terminal.
func (l Look) Text(at time.Time) string {
	times := "time"
	if l.Failures > 1 {
		times = "times in a row"
	}
	return fmt.Sprintf("%s: its usage could not be looked up, %d %s (%s); next try %s", l.Account, l.Failures, times, Plain(l.Error), instant(l.NextAt, at))
}

// WindowsOf is what a reading told of windows, in the order of the report.
func WindowsOf(r account.Reading, now time.Time) []Window {
	return windows(now, account.State{}.Observe(r, 0, account.Rules{}))
}
