package status

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
)

// NoAccounts is what a listing of accounts says when there is none.
const NoAccounts = "There are no accounts yet. Add one: holdfast account add NAME --provider anthropic --key-env ANTHROPIC_API_KEY"

// WriteText writes the report for a terminal.
func (r Report) WriteText(w io.Writer) error {
	if len(r.Accounts) == 0 {
		_, err := fmt.Fprintln(w, NoAccounts)
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ACCOUNT\tPROVIDER\tSTATE\tFIVE-HOUR\tWEEKLY\tOTHER WINDOWS\tREAD\tPINS\tIN FLIGHT")
	for _, a := range r.Accounts {
		inFlight := "-"
		if a.InFlight != nil {
			inFlight = fmt.Sprint(*a.InFlight)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n",
			a.Name, a.Provider, a.Standing(r.At), windowText(a.Windows, account.FiveHour, r.At), windowText(a.Windows, account.Weekly, r.At),
			otherText(a.Windows), readText(a.Windows, r.At), a.LivePins, inFlight)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, a := range r.Accounts {
		for _, b := range a.BlockedModels {
			fmt.Fprintf(w, "%s: %s\n", a.Name, b.Text(r.At))
		}
	}
	fmt.Fprintln(w)
	for _, p := range r.Providers {
		line := fmt.Sprintf("%s: policy %s, best headroom %s", p.Name, p.Policy, percent(p.BestHeadroom))
		if p.Policy == catalog.Order {
			line += ", serving " + orNone(p.Serving)
		}
		if p.SoonestReset != nil {
			line += ", next reset " + instant(*p.SoonestReset, r.At)
		}
		fmt.Fprintln(w, line)
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
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	if a.Until != nil {
		text += " until " + instant(*a.Until, at)
	}
	return text
}

// windowText tells of one window, if it is known.
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
	what := "model " + b.Model + " waits"
	if b.Model == "" {
		what = "models of family " + b.Family + " wait"
	}
	return what + " until " + instant(b.Until, at) + ": " + b.Reason
}

func otherText(windows []Window) string {
	var parts []string
	for _, w := range windows {
		if w.Utilization != nil && w.Name != account.FiveHour && w.Name != account.Weekly {
			parts = append(parts, w.Name+" "+percent(*w.Utilization))
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

func instant(t, at time.Time) string {
	return t.Format("2006-01-02 15:04Z") + " (in " + Span(t.Sub(at)) + ")"
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
