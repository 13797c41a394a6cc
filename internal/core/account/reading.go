package account

import (
	"slices"
	"strings"
	"time"
)

// Names of windows. Others are named by their length, as LengthName gives it.
const (
	FiveHour     = "five-hour"
	Weekly       = "weekly"
	Requests     = "requests"
	Tokens       = "tokens"
	InputTokens  = "input-tokens"
	OutputTokens = "output-tokens"
)

// Week is the length of the weekly window.
const Week = 7 * 24 * time.Hour

// PerMinute reports whether a window is one of those that are named by what they count. They
// fill and empty within minutes, so they tell nothing of an allowance, and nothing that
// could be planned by or measured once a minute.
func PerMinute(window string) bool {
	switch strings.TrimPrefix(window, ProjectWindow) {
	case Requests, Tokens, InputTokens, OutputTokens:
		return true
	}
	return false
}

// WeeklyOf names the weekly window of one model family.
func WeeklyOf(family string) string { return Weekly + ":" + family }

// FamilyOf returns the model family a window is scoped to; empty when it binds the
// whole account.
func FamilyOf(window string) string {
	_, family, _ := strings.Cut(window, ":")
	return family
}

// Binds reports whether a window counts for a request of the model family.
func Binds(window, family string) bool {
	f := FamilyOf(window)
	return f == "" || f == family
}

// WindowStatus is the provider's own verdict on one window; empty when it gave none.
type WindowStatus string

const (
	Allowed  WindowStatus = "allowed"
	Warning  WindowStatus = "allowed_warning"
	Rejected WindowStatus = "rejected"
)

// Source tells how a reading was come by.
type Source string

const (
	// FromAnswer is read off the headers or events of an answer to a client's request.
	FromAnswer Source = "answer"
	// FromPoll is read off the provider's usage endpoint.
	FromPoll Source = "poll"
)

// WindowReading is what one answer said of one window. A value that was missing or
// could not be read is left out alone: HasUtilization false, or a zero ResetAt.
type WindowReading struct {
	Name           string
	Utilization    float64 // fraction, 0 empty, 1 full; above 1 possible
	HasUtilization bool
	ResetAt        time.Time
	Status         WindowStatus
}

// mostUtilization is the most that a window is believed to be filled: a figure beyond is
// absurd, and no page, sum or metric could do anything with it.
const mostUtilization = 100

// Overage is what an answer said of paid extra usage beyond the plan.
type Overage struct {
	// Available: the next request beyond a full plan window would be served and charged.
	Available bool
	// Charged: this answer was served from overage.
	Charged bool
}

// Reading is everything one answer or look said about an account's limits.
type Reading struct {
	At time.Time // the instant that it describes: when the response headers arrived
	// Sent is when the request was sent, for an answer that was not streamed: its headers
	// describe the moment before its work, so against a refusal it counts as of then. Zero
	// where the headers came before the work, as of a stream: it then counts as of At.
	Sent    time.Time
	Source  Source
	Windows []WindowReading
	// Claim names the window that decided the provider's verdict; empty when not told.
	Claim   string
	Overage Overage
	// Organization is the provider's id of whoever owns the credential; empty when not told.
	Organization string
}

// Cleaned returns the reading with every word in it as clean returns it.
func (r Reading) Cleaned(clean func(string) string) Reading {
	r.Claim, r.Organization = clean(r.Claim), clean(r.Organization)
	for i, w := range r.Windows {
		if name := clean(w.Name); name != w.Name {
			r.Windows = slices.Clone(r.Windows)
			r.Windows[i].Name = name
		}
	}
	return r
}

// against is the instant as of which the reading counts against a refusal.
func (r Reading) against() time.Time {
	if r.Sent.IsZero() {
		return r.At
	}
	return r.Sent
}

// Empty reports whether the reading says nothing about any window.
func (r Reading) Empty() bool { return len(r.Windows) == 0 }
