package status

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/forecast"
	"holdfast/internal/store"
)

// ForecastInput is what was read for a forecast.
type ForecastInput struct {
	// Now is the present; For is the time asked about, not before Now. Both are required.
	Now, For time.Time
	Catalog  catalog.Catalog
	// States are as judged: those of accounts that share limits together.
	States map[account.ID]account.State
	// Points is the history of each account, at most of store.HistoryFor.
	Points map[account.ID][]store.Point
}

// Forecast says when windows run dry, how full they are at a time, and whether the accounts of
// each provider together last the week.
type Forecast struct {
	At        time.Time          `json:"at"`
	For       time.Time          `json:"for"`
	Providers []ProviderForecast `json:"providers"`
	Accounts  []AccountForecast  `json:"accounts"`
}

// ProviderForecast is a week's demand beside what the accounts allow.
type ProviderForecast struct {
	Name account.Provider `json:"name"`
	// Demand and Allowance are in points, of which a week's window of one account has 100; null
	// where they are not known. Unknown then says why.
	Demand    *float64 `json:"demand"`
	Allowance *float64 `json:"allowance"`
	Unknown   string   `json:"unknown,omitempty"`
	// DryAt is when no account has room, if that is within a week; ResetAt is the first reset
	// after it.
	DryAt   *time.Time `json:"dry_at"`
	ResetAt *time.Time `json:"reset_at"`
	// Needed is how many accounts like the first the demand takes; 0 where it is not known.
	Needed int `json:"accounts_needed"`
	// Cycles is "aligned" or "offset"; empty with one account.
	Cycles string `json:"cycles,omitempty"`
}

// AccountForecast is one account's part.
type AccountForecast struct {
	Name     string           `json:"name"`
	Provider account.Provider `json:"provider"`
	// Windows are those that last longer than a minute; none for an API key, which is paid by
	// use.
	Windows []WindowForecast `json:"windows"`
}

// WindowForecast is one window's part. Rates are fractions of the window a day.
type WindowForecast struct {
	Name string `json:"name"`
	// Utilization is the figure at At, carried forward from ObservedAt.
	Utilization float64    `json:"utilization"`
	ObservedAt  time.Time  `json:"observed_at"`
	ResetsAt    *time.Time `json:"resets_at"`
	// Known is false where no rate is known; the rest is then null or 0.
	Known      bool    `json:"known"`
	RateRecent float64 `json:"rate_recent"`
	RateWeek   float64 `json:"rate_week"`
	// Shaped says that the hours of the week are told apart.
	Shaped bool `json:"shaped"`
	// DryAt is when the window is full, if that is before its reset, with the range of eight
	// cases in ten.
	DryAt   *time.Time `json:"dry_at"`
	DryFrom *time.Time `json:"dry_from"`
	DryTo   *time.Time `json:"dry_to"`
	// AtReset and Then are how full the window is at its reset, and at For.
	AtReset *Span80 `json:"at_reset"`
	Then    *Span80 `json:"then"`
}

// Span80 is a figure and what eight cases in ten stay within.
type Span80 struct {
	Low  float64 `json:"low"`
	Mid  float64 `json:"mid"`
	High float64 `json:"high"`
}

// alignedAbove is how bunched resets are that count as aligned: of two, those less than half a
// day apart.
const alignedAbove = 0.85

// ForecastOf reckons a forecast.
func ForecastOf(in ForecastInput) Forecast {
	f := Forecast{At: second(in.Now), For: second(in.For), Providers: []ProviderForecast{}, Accounts: []AccountForecast{}}
	for _, p := range account.Providers {
		of := in.Catalog.Of(p)
		if len(of) == 0 {
			continue
		}
		var members []forecast.Member
		for _, a := range of {
			entry := AccountForecast{Name: a.Name, Provider: p, Windows: []WindowForecast{}}
			s := in.States[a.ID]
			for _, w := range windows(in.Now, s) {
				if w.Utilization == nil || account.PerMinute(w.Name) {
					continue
				}
				o := forecast.Of(windowOf(w.Name, s.Windows[w.Name], in.Points[a.ID]), in.Now)
				entry.Windows = append(entry.Windows, windowForecast(w, o, in.For))
				if w.Name == account.Weekly && s.Parked == nil {
					members = append(members, forecast.Member{Name: a.Name, Plan: strings.ToLower(a.Plan), Weekly: o})
				}
			}
			f.Accounts = append(f.Accounts, entry)
		}
		f.Providers = append(f.Providers, providerForecast(p, members, in.Now))
	}
	return f
}

func windowOf(name string, w account.Window, points []store.Point) forecast.Window {
	out := forecast.Window{Name: name, Length: account.Length(name), Utilization: w.Utilization, ObservedAt: w.ObservedAt, ResetAt: w.ResetAt}
	for _, p := range points {
		if at, there := p.Windows[name]; there {
			out.Samples = append(out.Samples, forecast.Sample{At: p.At, Utilization: at.Utilization, ResetAt: at.ResetAt})
		}
	}
	return out
}

func windowForecast(w Window, o forecast.Outlook, then time.Time) WindowForecast {
	out := WindowForecast{
		Name: w.Name, Utilization: o.Utilization.Mid, ObservedAt: w.ObservedAt, ResetsAt: known(o.ResetAt), Known: o.Known,
	}
	if !o.Known {
		out.Utilization = *w.Utilization
		return out
	}
	out.RateRecent, out.RateWeek, out.Shaped = o.Recent, o.Usual, o.Shaped
	out.DryAt, out.DryFrom, out.DryTo = known(o.DryAt), known(o.DryFrom), known(o.DryTo)
	if !o.ResetAt.IsZero() {
		out.AtReset = (*Span80)(&o.AtReset)
	}
	at := o.At(then)
	out.Then = (*Span80)(&at)
	return out
}

func providerForecast(p account.Provider, members []forecast.Member, now time.Time) ProviderForecast {
	out := ProviderForecast{Name: p}
	if len(members) == 0 {
		out.Unknown = "no account has a weekly window"
		return out
	}
	w := forecast.Together(members, nil, now)
	switch {
	case w.Unequal:
		out.Unknown = "the accounts' plans differ, and how their sizes compare is not known"
		return out
	case !w.Known:
		out.Unknown = "nothing was read often enough yet"
		return out
	}
	out.Demand, out.Allowance, out.Needed = &w.Demand, &w.Allowance, w.Needed
	out.DryAt, out.ResetAt = known(w.DryAt), known(w.ResetAt)
	if len(members) > 1 {
		out.Cycles = "offset"
		if w.Apart >= alignedAbove {
			out.Cycles = "aligned"
		}
	}
	return out
}

// known is an instant for JSON: null for a zero one.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = second(t)
	return &t
}

// Text is a provider's week in one sentence.
func (p ProviderForecast) Text(at time.Time) string {
	if p.Demand == nil {
		return fmt.Sprintf("%s: no forecast for the week: %s", p.Name, p.Unknown)
	}
	demand := math.Round(*p.Demand)
	text := fmt.Sprintf("%s: demand %.0f of %.0f points a week: ", p.Name, demand, *p.Allowance)
	switch fits := *p.Allowance / *p.Demand; {
	case demand == 0:
		text += "nothing was used"
	case fits >= 1:
		text += fmt.Sprintf("fits %.1f times", fits)
	default:
		text = fmt.Sprintf("%s: does not fit: demand %.0f of %.0f points a week", p.Name, demand, *p.Allowance)
	}
	if p.DryAt != nil {
		text += ", dry on " + instant(*p.DryAt, at)
		if p.ResetAt != nil {
			text += ", " + Span(p.ResetAt.Sub(*p.DryAt)) + " before the next reset"
		}
	}
	if p.Needed > 0 && float64(p.Needed)*100 > *p.Allowance {
		text += fmt.Sprintf("; the week takes %d accounts of this size", p.Needed)
	}
	if p.Cycles != "" {
		text += "; cycles are " + p.Cycles
	}
	return text
}

// WriteText writes the forecast for a terminal.
func (f Forecast) WriteText(w io.Writer) error {
	if len(f.Accounts) == 0 {
		_, err := fmt.Fprintln(w, "There is no account yet. Add one with: holdfast account add NAME --provider PROVIDER --key-env VARIABLE")
		return err
	}
	for _, p := range f.Providers {
		fmt.Fprintln(w, p.Text(f.At))
	}
	fmt.Fprintln(w)
	asked := f.For.After(f.At)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	head := "ACCOUNT\tWINDOW\tNOW\tA DAY\tDRY\tRESETS"
	if asked {
		head += "\tTHEN"
	}
	fmt.Fprintln(table, head)
	var without []string
	for _, a := range f.Accounts {
		if len(a.Windows) == 0 {
			without = append(without, a.Name)
		}
		for _, o := range a.Windows {
			row := []string{a.Name, o.Name, percent(o.Utilization), "-", "-", "-"}
			if o.ResetsAt != nil {
				row[5] = brief(*o.ResetsAt, f.At)
			}
			if o.Known {
				row[3], row[4] = "+"+percent(o.RateRecent), o.dryText(f.At)
			}
			if asked {
				row = append(row, o.thenText())
			}
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(without) > 0 {
		fmt.Fprintf(w, "\nNo window of a length is known of %s: API keys are paid by use and have none, and a login shows its windows with its first answer.\n", strings.Join(without, ", "))
	}
	return nil
}

func (o WindowForecast) dryText(at time.Time) string {
	if o.DryAt == nil {
		if o.DryFrom != nil {
			return "perhaps from " + brief(*o.DryFrom, at)
		}
		return "no"
	}
	text := brief(*o.DryAt, at)
	if o.DryFrom != nil && o.DryAt.Sub(*o.DryFrom) > time.Hour {
		text += ", from " + Span(o.DryFrom.Sub(at)) + " on"
	}
	return text
}

func (o WindowForecast) thenText() string {
	if o.Then == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s to %s)", percent(o.Then.Mid), percent(o.Then.Low), percent(o.Then.High))
}

// brief is an instant with its weekday, and how far off it is.
func brief(t, at time.Time) string {
	return t.Format("Mon 15:04Z") + " (" + Span(t.Sub(at)) + ")"
}
