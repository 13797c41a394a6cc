// Package checkup is the look that one takes at an account before relying on it.
//
// Of puts side by side what is known of one account and of its siblings, the other
// accounts of its provider: how full each window is and when it resets, whether the
// cycles are aligned, whether the plans are the same, who logged in, whether somebody else
// seems to use the account, when the login ends, and how old each figure is.
//
// # Verdicts
//
// A verdict is given only where the figures carry it. Everything else is Unknown, with a
// word on what is missing; Unknown is never read as a good sign.
//
// Whether somebody else uses an account is told by its windows alone: one that fills in a
// time without requests of ours is filled by somebody. Requests of ours can show late and
// the last one may still run, so a time counts as ours until Settles after the last sign of
// a request. A window that fills while ours run tells nothing: how much each of them takes
// is not known.
//
// The package does no I/O and reads no clock; it never asks a provider anything and decides
// nothing about who is picked.
package checkup

import (
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
)

// Verdict is what a comparison came to.
type Verdict string

// Verdicts. Which of them a field can have, it says.
const (
	Unknown Verdict = "unknown"

	Aligned Verdict = "aligned"
	Offset  Verdict = "offset"

	Same      Verdict = "same"
	Different Verdict = "different"

	Personal Verdict = "personal"
	Team     Verdict = "team"

	Seen    Verdict = "seen"
	NotSeen Verdict = "not_seen"
)

const (
	// AlignedWithin is how far apart the resets of aligned cycles may be.
	AlignedWithin = time.Hour
	// Settles is how long after the last sign of a request of ours its use may still show.
	Settles = 15 * time.Minute
	// leastQuiet is how long the account has to have been without requests of ours, between
	// readings, before it means something that nothing has risen.
	leastQuiet = time.Hour
	// leastRise is the smallest rise that counts: providers tell whole percents, and one of
	// them may be rounding.
	leastRise = 0.015
	// cycle is the shortest window whose resets are compared; shorter ones begin with use.
	cycle = 24 * time.Hour
)

// Input is what is known of an account and its siblings.
type Input struct {
	Now     time.Time
	Account account.Account
	State   account.State
	// Owner is Personal, Team or Unknown, as the login says it; Principal is the
	// provider's word for who logged in, empty when not known.
	Owner     Verdict
	Principal string
	Siblings  []Sibling
	// Points are earlier readings and the newest, oldest first, each with the windows
	// that it told.
	Points []Point
	// Ours are the times in which requests of ours used the account, or one of SharedWith, or
	// may have.
	Ours []Span
}

// Sibling is another account of the same provider.
type Sibling struct {
	Account account.Account
	State   account.State
}

// Point is how full windows were read to be at an instant.
type Point struct {
	At      time.Time
	Windows map[string]Figure
}

// Figure is a utilization, a fraction, and when it resets; zero when not told.
type Figure struct {
	Utilization float64
	ResetAt     time.Time
}

// Span is a time from an instant to a later one.
type Span struct{ From, To time.Time }

// Report is what came of it.
type Report struct {
	Cycles []Cycle `json:"cycles"`
	Plans  Plans   `json:"plans"`
	Owner  Owner   `json:"owner"`
	Others Others  `json:"others"`
}

// Cycle compares the resets of a window of the account and of a sibling.
type Cycle struct {
	Window  string `json:"window"`
	Sibling string `json:"sibling"`
	// Verdict is Aligned, Offset or Unknown.
	Verdict Verdict `json:"verdict"`
	// After is how much later than the sibling's the account's window resets, in seconds,
	// by the shorter way round: negative where it resets earlier. Null when unknown.
	After *int64 `json:"after_seconds"`
}

// Plans compares the account's plan with its siblings'.
type Plans struct {
	// Verdict is Same, Different or Unknown.
	Verdict Verdict `json:"verdict"`
	// Different are the siblings with another plan, Unknown those whose plan is not known.
	Different []string `json:"different"`
	Unknown   []string `json:"unknown"`
}

// Owner says whose login it is.
type Owner struct {
	// Verdict is Personal, Team or Unknown.
	Verdict   Verdict `json:"verdict"`
	Principal string  `json:"principal,omitempty"`
	// SharedWith are siblings that have the same limits, as account.Together tells it: they
	// spend one allowance.
	SharedWith []string `json:"shared_with"`
}

// Others says whether somebody else seems to use the account.
type Others struct {
	// Verdict is Seen, NotSeen or Unknown.
	Verdict Verdict `json:"verdict"`
	// Quiet is how long the account was watched without requests of ours, in seconds.
	Quiet int64 `json:"quiet_seconds"`
	// Rises are what rose in that time.
	Rises []Rise `json:"rises"`
}

// Rise is a window that filled between two readings without a request of ours.
type Rise struct {
	Window     string    `json:"window"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Before     float64   `json:"before"`
	Afterwards float64   `json:"after"`
}

// Of makes the report.
func Of(in Input) Report {
	return Report{Cycles: cycles(in), Plans: plans(in), Owner: owner(in), Others: others(in)}
}

func cycles(in Input) []Cycle {
	list := []Cycle{}
	names := []string{}
	for name := range in.State.Windows {
		if account.FamilyOf(name) == "" && account.Length(name) >= cycle {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		own := in.State.Windows[name].ResetAt
		for _, s := range in.Siblings {
			if s.Account.Kind != in.Account.Kind {
				continue
			}
			c := Cycle{Window: name, Sibling: s.Account.Name, Verdict: Unknown}
			if other := s.State.Windows[name].ResetAt; own.After(in.Now) && other.After(in.Now) {
				after := shortest(own.Sub(other), account.Length(name))
				seconds := int64(after / time.Second)
				c.After, c.Verdict = &seconds, Offset
				if after.Abs() <= AlignedWithin {
					c.Verdict = Aligned
				}
			}
			list = append(list, c)
		}
	}
	return list
}

// shortest is a distance within a cycle, by the shorter way round.
func shortest(d, length time.Duration) time.Duration {
	d %= length
	switch {
	case d > length/2:
		d -= length
	case d < -length/2:
		d += length
	}
	return d
}

func plans(in Input) Plans {
	p := Plans{Verdict: Unknown, Different: []string{}, Unknown: []string{}}
	same := 0
	for _, s := range in.Siblings {
		switch {
		case s.Account.Kind != in.Account.Kind:
		case s.Account.Plan == "" || in.Account.Plan == "":
			p.Unknown = append(p.Unknown, s.Account.Name)
		case !strings.EqualFold(s.Account.Plan, in.Account.Plan):
			p.Different = append(p.Different, s.Account.Name)
		default:
			same++
		}
	}
	switch {
	case len(p.Different) > 0:
		p.Verdict = Different
	case same > 0 && len(p.Unknown) == 0:
		p.Verdict = Same
	}
	return p
}

func owner(in Input) Owner {
	o := Owner{Verdict: in.Owner, Principal: in.Principal, SharedWith: []string{}}
	if o.Verdict != Personal && o.Verdict != Team {
		o.Verdict = Unknown
	}
	o.SharedWith = append(o.SharedWith, SharedWith(in)...)
	return o
}

// SharedWith are the names of the siblings that have the same limits: what is asked of one of
// them fills the windows of all.
func SharedWith(in Input) []string {
	accounts, states := []account.Account{in.Account}, []account.State{in.State}
	for _, s := range in.Siblings {
		accounts, states = append(accounts, s.Account), append(states, s.State)
	}
	return account.Sharing(accounts, states, 0)
}

func others(in Input) Others {
	o := Others{Verdict: Unknown, Rises: []Rise{}}
	// One figure after another of each window of some length: those of a minute come and
	// go by themselves.
	last := map[string]Point{}
	var watched []Span
	for _, p := range in.Points {
		for _, name := range sorted(p.Windows) {
			if account.Length(name) < 5*time.Hour && account.FamilyOf(name) == "" {
				continue
			}
			now := p.Windows[name]
			was, known := last[name]
			last[name] = p
			if !known || !quiet(Span{was.At, p.At}, in.Ours) {
				continue
			}
			before := was.Windows[name]
			if !before.ResetAt.IsZero() && !p.At.Before(before.ResetAt) {
				continue // it began anew in between: how much of it was used before is lost
			}
			watched = append(watched, Span{was.At, p.At})
			if now.Utilization-before.Utilization >= leastRise {
				o.Rises = append(o.Rises, Rise{name, was.At.UTC(), p.At.UTC(), before.Utilization, now.Utilization})
			}
		}
	}
	total := together(watched)
	o.Quiet = int64(total / time.Second)
	switch {
	case len(o.Rises) > 0:
		o.Verdict = Seen
	case total >= leastQuiet:
		o.Verdict = NotSeen
	}
	return o
}

func sorted(windows map[string]Figure) []string {
	names := make([]string, 0, len(windows))
	for name := range windows {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// quiet reports whether nothing of ours can show within a time.
func quiet(s Span, ours []Span) bool {
	return !slices.ContainsFunc(ours, func(o Span) bool { return !o.From.After(s.To) && !o.To.Add(Settles).Before(s.From) })
}

// together is how long the spans are, what they share counted once.
func together(spans []Span) time.Duration {
	slices.SortFunc(spans, func(a, b Span) int { return a.From.Compare(b.From) })
	var total time.Duration
	var until time.Time
	for _, s := range spans {
		if s.From.Before(until) {
			s.From = until
		}
		if s.To.After(s.From) {
			total += s.To.Sub(s.From)
			until = s.To
		}
	}
	return total
}
