package status

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// NoAccounts is what a listing of accounts says when none exists.
const NoAccounts = "There are no accounts yet. Add one: holdfast account add NAME --provider anthropic|openai|xai --key-env VARIABLE"

// WriteText writes the report for a terminal.
func (r Report) WriteText(w io.Writer) error {
	if len(r.Accounts) == 0 {
		_, err := fmt.Fprintln(w, NoAccounts)
		return err
	}
	// What is in flight is known to a server's own process alone.
	inFlight := slices.ContainsFunc(r.Accounts, func(a Account) bool { return a.InFlight != nil })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "ACCOUNT\tPROVIDER\tSTATE\tFIVE-HOUR\tWEEKLY\tOTHER WINDOWS\tREAD\tPINS"
	if inFlight {
		head += "\tIN FLIGHT"
	}
	fmt.Fprintln(table, head)
	for _, a := range r.Accounts {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d",
			a.Name, a.Provider, a.Standing(r.At), windowText(a.Windows, account.FiveHour, r.At), windowText(a.Windows, account.Weekly, r.At),
			otherText(a.Windows), readText(a.Windows, r.At), a.LivePins)
		if inFlight && a.InFlight != nil {
			fmt.Fprintf(table, "\t%d", *a.InFlight)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, a := range r.Accounts {
		for _, line := range a.Remarks(r.At) {
			fmt.Fprintf(w, "%s: %s\n", a.Name, line)
		}
		if line := a.Expiry(r.At); line != "" {
			fmt.Fprintf(w, "%s: %s\n", a.Name, line)
		}
	}
	fmt.Fprintln(w)
	for _, p := range r.Providers {
		headroom := "unknown"
		if p.BestHeadroom != nil {
			headroom = percent(*p.BestHeadroom)
		}
		line := fmt.Sprintf("%s: policy %s, best headroom %s", p.Name, p.Policy, headroom)
		if p.Policy == catalog.Order {
			line += ", serving " + orNone(p.Serving)
		}
		if p.SoonestReset != nil {
			line += ", next reset " + instant(*p.SoonestReset, r.At)
		}
		fmt.Fprintln(w, line)
	}
	if s := r.LastSwitch; s != nil {
		fmt.Fprintf(w, "last switch: %s (%s ago), %s from %s to %s, %s, %s\n",
			s.At.Format(minute), Span(r.At.Sub(s.At)), s.Provider, s.From.Text(), s.To.Text(), s.Mode, s.Reason)
	}
	if r.LastPoll != nil {
		for _, line := range r.LastPoll.text(r.At) {
			fmt.Fprintln(w, line)
		}
	}
	h, d := r.Totals.LastHour, r.Totals.LastDay
	_, err := fmt.Fprintf(w, "pins: last hour %d kept, %d moved, %d new; last day %d kept, %d moved, %d new\n",
		h.Kept, h.Moved, h.New, d.Kept, d.Moved, d.New)
	return err
}

func orNone(name *string) string {
	if name == nil {
		return "none"
	}
	return *name
}

// Standing is the account's state with its reason and end, for a terminal.
func (a Account) Standing(at time.Time) string {
	text := string(a.State)
	if a.Serving {
		text += ", serving"
	}
	if a.expired(at) && a.State != Parked && a.State != Unreadable {
		text += ", login expired"
	}
	if a.Reason != "" {
		text += " (" + Plain(a.Reason) + ")"
	}
	if a.Until != nil {
		text += " until " + instant(*a.Until, at)
	}
	if a.ParkedSince != nil && !a.ParkedSince.IsZero() {
		text += " since " + a.ParkedSince.Format(minute)
	}
	return text
}

// Remarks are what stands beside an account's standing, for a terminal: its warning, and
// models and features that it may not serve now.
func (a Account) Remarks(at time.Time) []string {
	var lines []string
	if a.Warning != "" {
		lines = append(lines, a.Warning)
	}
	if a.State == Unreadable {
		lines = append(lines, a.Remedy())
	}
	for _, b := range a.BlockedModels {
		lines = append(lines, b.Text(at))
	}
	for _, r := range a.Refuses {
		lines = append(lines, r.Text(at))
	}
	return lines
}

// Expiry says of an account whose login ended, and that does not need its owner, when
// that was and what becomes of it; empty for all others.
func (a Account) Expiry(at time.Time) string {
	if !a.expired(at) || a.NeedsOwner != nil {
		return ""
	}
	e := *a.LoginExpiresAt
	return fmt.Sprintf("login expired at %s (%s ago); it is renewed when it is needed: `holdfast account show %s` says whether it can be", e.Format(minute), Span(at.Sub(e)), a.Name)
}

func (a Account) expired(at time.Time) bool {
	return a.LoginExpiresAt != nil && !at.Before(*a.LoginExpiresAt)
}

// Plain is a text of somebody else's as a terminal may show it: on one line, and without
// control characters.
func Plain(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	return strconv.QuoteToGraphic(text)
}

// windowText describes one window, if it is known.
func windowText(windows []Window, name string, at time.Time) string {
	for _, w := range windows {
		if w.Name == name {
			return w.Text(at)
		}
	}
	return "-"
}

// Text is the window's utilization and how long it lasts, for a terminal.
func (w Window) Text(at time.Time) string {
	switch {
	case w.Utilization == nil:
		return "-"
	case w.ResetsAt == nil:
		return percent(*w.Utilization)
	}
	return percent(*w.Utilization) + " for " + Span(w.ResetsAt.Sub(at))
}

// Text says which models wait, until when and why, for a terminal.
func (b BlockedModel) Text(at time.Time) string {
	what := "model " + Plain(b.Model) + " waits"
	if b.Model == "" {
		what = "models of family " + Plain(b.Family) + " wait"
	}
	return what + " until " + instant(b.Until, at) + ": " + Plain(b.Reason)
}

func otherText(windows []Window) string {
	var parts []string
	for _, w := range windows {
		if w.Utilization != nil && w.Name != account.FiveHour && w.Name != account.Weekly {
			parts = append(parts, Plain(w.Name)+" "+percent(*w.Utilization))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func readText(windows []Window, at time.Time) string {
	var newest time.Time
	for _, w := range windows {
		if w.ObservedAt.After(newest) {
			newest = w.ObservedAt
		}
	}
	if newest.IsZero() {
		return "never"
	}
	return Span(at.Sub(newest)) + " ago"
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// minute is how an instant is written for people.
const minute = "2006-01-02 15:04Z"

func instant(t, at time.Time) string {
	form := minute
	if t.Sub(at) < time.Minute { // a pause
		form = "2006-01-02 15:04:05Z"
	}
	return t.Format(form) + " (in " + Span(t.Sub(at)) + ")"
}

// Span writes a duration the way one says it: its two largest units, rounded down.
func Span(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
