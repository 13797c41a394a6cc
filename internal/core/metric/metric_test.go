package metric_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/metric"
)

var noon = time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)

// values spells data as NAME{VALUE OF DIMENSION,…} to their values.
func values(t *testing.T, data []metric.Datum) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, d := range data {
		var of []string
		for _, each := range d.Dimensions {
			of = append(of, each.Value)
		}
		key := string(d.Name) + "{" + strings.Join(of, ",") + "}"
		if _, twice := out[key]; twice {
			t.Errorf("%s: given twice", key)
		}
		if !d.Defined() {
			t.Errorf("%s: not as Definitions has it", key)
		}
		out[key] = d.Value
	}
	return out
}

// A request writes a datum only when an alarm has something to hear.
func TestOfRequest(t *testing.T) {
	if got := metric.OfRequest(metric.Request{}); len(got) != 0 {
		t.Errorf("an ordinary request: got %v, want no data", got)
	}
	want := map[string]float64{"StoreUnavailable{t}": 1}
	if diff := cmp.Diff(want, values(t, metric.OfRequest(metric.Request{Table: "t", StoreUnavailable: true}))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// read is a state with windows read at an instant, each full to a fraction until a reset.
func read(at time.Time, windows map[string]float64, reset time.Time) account.State {
	r := account.Reading{At: at, Source: account.FromAnswer}
	for name, u := range windows {
		r.Windows = append(r.Windows, account.WindowReading{Name: name, Utilization: u, HasUtilization: true, ResetAt: reset})
	}
	return account.State{}.Observe(r, 0, account.Rules{})
}

// remaining is the utilization of a window that has a share left, as floating point has it.
func remaining(left float64) float64 { return 1 - left }

func spent(s account.State, at time.Time, window string, reset time.Time) account.State {
	return s.Reject(account.Rejection{Kind: account.WindowSpent, At: at, Spent: []account.Spent{{Window: window, ResetAt: reset}}}, account.Rules{})
}

func parked(s account.State, at time.Time) account.State {
	return s.Reject(account.Rejection{Kind: account.BadCredential, At: at, Rule: "renewal-refused"}, account.Rules{})
}

func TestOfFleet(t *testing.T) {
	soon, later := noon.Add(90*time.Minute), noon.Add(50*time.Hour)
	login := func(name string, p account.Provider) account.Account {
		return account.Account{ID: account.ID("id-" + name), Name: name, Provider: p, Kind: account.Subscription, AddedAt: noon.Add(-24 * time.Hour)}
	}
	key := account.Account{ID: "id-key", Name: "key", Provider: account.OpenAI, Kind: account.Key, AddedAt: noon.Add(-time.Hour)}
	marlow, juniper := login("marlow", account.Anthropic), login("juniper", account.Anthropic)
	bracken, sedge := login("bracken", account.XAI), login("sedge", account.XAI)
	half := read(noon.Add(-2*time.Minute), map[string]float64{account.FiveHour: 0.5, "weekly:fable": 1, account.Requests: 1}, soon)
	full := read(noon.Add(-7*time.Minute), map[string]float64{account.Weekly: 0.97}, later)

	for _, c := range []struct {
		name string
		in   metric.Fleet
		want map[string]float64 // all data
	}{
		{"nothing is configured", metric.Fleet{}, map[string]float64{}},
		{
			"the minimum counts, and a model family's window or a per-minute one does not",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow, juniper}}, Watched: map[account.ID]bool{marlow.ID: true, juniper.ID: true},
				States: map[account.ID]account.State{marlow.ID: full, juniper.ID: half}, Failures: map[account.ID]int{juniper.ID: metric.FailuresInARow - 1},
			},
			map[string]float64{},
		},
		{
			"a login whose renewal fails",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow, juniper}},
				States:  map[account.ID]account.State{marlow.ID: full, juniper.ID: half}, Failures: map[account.ID]int{juniper.ID: metric.FailuresInARow},
			},
			map[string]float64{"NeedsOwner{t,juniper}": metric.RenewalFailing},
		},
		{
			"parked and failing: parked is what its owner is to mend first",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow, juniper}},
				States:  map[account.ID]account.State{marlow.ID: half, juniper.ID: parked(half, noon)}, Failures: map[account.ID]int{juniper.ID: 7},
			},
			map[string]float64{"NeedsOwner{t,juniper}": metric.Parked},
		},
		{
			"at the line, and the other one cools",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow, juniper}},
				States:  map[account.ID]account.State{marlow.ID: full, juniper.ID: spent(half, noon.Add(-time.Minute), account.FiveHour, soon)},
			},
			map[string]float64{"Exhausted{t,anthropic}": 1},
		},
		{
			"all cool",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{juniper}},
				States:  map[account.ID]account.State{juniper.ID: spent(half, noon.Add(-time.Minute), account.FiveHour, soon)},
			},
			map[string]float64{"Exhausted{t,anthropic}": 1},
		},
		{
			"parked ones are left out, and none is left",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{juniper}}, Watched: map[account.ID]bool{juniper.ID: true},
				States: map[account.ID]account.State{juniper.ID: parked(half, noon.Add(-time.Hour))},
			},
			map[string]float64{"Exhausted{t,anthropic}": 1, "NeedsOwner{t,juniper}": metric.Parked}, // and not blind: it cannot be looked at
		},
		{"keys alone are neither exhausted nor blind", metric.Fleet{Catalog: catalog.Catalog{Accounts: []account.Account{key}}}, map[string]float64{}},
		{
			"a key whose project is at its limit of this minute has room in the next",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{key}},
				States:  map[account.ID]account.State{key.ID: read(noon, map[string]float64{"project-requests": 1}, noon.Add(time.Minute))},
			},
			map[string]float64{},
		},
		{
			"a watched account that was never read is as old as itself",
			metric.Fleet{Catalog: catalog.Catalog{Accounts: []account.Account{marlow}}, Watched: map[account.ID]bool{marlow.ID: true}},
			map[string]float64{"ReadingAge{t,anthropic}": 86400},
		},
		{
			"the newest reading counts, up to twenty minutes and not beyond",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow, juniper, bracken}}, Watched: map[account.ID]bool{marlow.ID: true, juniper.ID: true, bracken.ID: true},
				States: map[account.ID]account.State{
					marlow.ID:  read(noon.Add(-time.Hour), map[string]float64{account.Weekly: 0.2}, later),
					juniper.ID: read(noon.Add(-metric.Blind), map[string]float64{account.Weekly: 0.2}, later),
					bracken.ID: read(noon.Add(-metric.Blind-time.Second), map[string]float64{account.Weekly: 0.2}, later),
				},
			},
			map[string]float64{"ReadingAge{t,xai}": 1201},
		},
		{
			"policy order: the threshold is its line",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{bracken, sedge}},
				States: map[account.ID]account.State{
					bracken.ID: read(noon, map[string]float64{account.Weekly: 0.85}, later), sedge.ID: read(noon, map[string]float64{account.Weekly: 0.8}, later),
				},
			},
			map[string]float64{"Exhausted{t,xai}": 1},
		},
		{
			"policy order: what is left may lack a trifle of the threshold", // 1 - 0.9 is below 0.1
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{bracken}, Policies: map[account.Provider]catalog.Policy{account.XAI: {Name: catalog.Order, Threshold: 0.1}}},
				States:  map[account.ID]account.State{bracken.ID: read(noon, map[string]float64{account.Weekly: remaining(0.9)}, later)},
			},
			map[string]float64{"Exhausted{t,xai}": 1},
		},
		{
			"a window that is refused is full, though nobody told how full", // as a weekly cap's rejection of one family leaves it
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow}},
				States: map[account.ID]account.State{marlow.ID: account.State{}.Observe(account.Reading{
					At: noon.Add(-time.Minute), Source: account.FromAnswer,
					Windows: []account.WindowReading{{Name: account.Weekly, Status: account.Rejected, ResetAt: later}},
				}, 0, account.Rules{})},
			},
			map[string]float64{"Exhausted{t,anthropic}": 1},
		},
		{
			"past its reset a window is empty",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow}},
				States:  map[account.ID]account.State{marlow.ID: read(noon.Add(-time.Hour), map[string]float64{account.Weekly: 1}, noon)},
			},
			map[string]float64{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Now, c.in.Table = noon, "t"
			if diff := cmp.Diff(c.want, values(t, metric.OfFleet(c.in))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// What a person reads of a round, whatever the alarms hear.
func TestFiguresOf(t *testing.T) {
	soon, later := noon.Add(90*time.Minute), noon.Add(50*time.Hour)
	number := func(v float64) *float64 { return &v }
	added := noon.Add(-24 * time.Hour)
	marlow := account.Account{ID: "1", Name: "marlow", Provider: account.Anthropic, Kind: account.Subscription, AddedAt: added}
	bracken := account.Account{ID: "2", Name: "bracken", Provider: account.XAI, Kind: account.Subscription, AddedAt: added}
	sedge := account.Account{ID: "3", Name: "sedge", Provider: account.XAI, Kind: account.Subscription, AddedAt: added}
	got := metric.FiguresOf(metric.Fleet{
		Now: noon, Catalog: catalog.Catalog{Accounts: []account.Account{bracken, marlow, sedge}},
		Watched: map[account.ID]bool{marlow.ID: true, bracken.ID: true}, Failures: map[account.ID]int{bracken.ID: 2},
		States: map[account.ID]account.State{
			marlow.ID:  read(noon.Add(-2*time.Minute), map[string]float64{account.FiveHour: 0.5, "weekly:fable": 1, account.Requests: 1}, soon),
			bracken.ID: read(noon.Add(-7*time.Minute), map[string]float64{account.Weekly: 0.85}, later),
			sedge.ID:   parked(account.State{}, noon),
		},
	})
	want := metric.Figures{
		Providers: []metric.ProviderFigures{
			{Provider: account.Anthropic, LeastUtilization: 0.5, Ready: 1, ReadingAge: 120},
			{Provider: account.XAI, LeastUtilization: 0.85, Exhausted: true, Ready: 1, Serving: "bracken", ReadingAge: 420},
		},
		Accounts: []metric.AccountFigures{
			{Account: "marlow", Provider: account.Anthropic, ReadingAge: 120},
			{Account: "bracken", Provider: account.XAI, RenewalFailures: 2, ReadingAge: 420},
			{Account: "sedge", Provider: account.XAI, Parked: true, ReadingAge: 86400},
		},
		Windows: []metric.WindowFigures{
			{Account: "marlow", Window: account.FiveHour, Utilization: number(0.5), HoursToReset: number(1.5)},
			{Account: "marlow", Window: "weekly:fable", Utilization: number(1), HoursToReset: number(1.5)},
			{Account: "bracken", Window: account.Weekly, Utilization: number(0.85), HoursToReset: number(50)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDefinitions(t *testing.T) {
	seen := map[metric.Name]bool{}
	for _, d := range metric.Definitions {
		if seen[d.Name] || len(d.Dimensions) == 0 || d.Unit == "" {
			t.Errorf("%s: defined twice, or without unit or dimensions", d.Name)
		}
		seen[d.Name] = true
	}
	for _, bad := range []metric.Datum{
		{Name: "Unheard"},
		{Name: metric.Exhausted},
		{Name: metric.Exhausted, Dimensions: []metric.Dimension{{Name: metric.Account, Value: "x"}}},
		{Name: metric.Exhausted, Dimensions: []metric.Dimension{{Name: metric.Provider, Value: ""}}},
	} {
		if bad.Defined() {
			t.Errorf("%v counts as defined", bad)
		}
	}
}

// An account that refuses everything for now, as for a host of another region, has no room: no
// pick chooses it.
func TestWhatRefusesEverythingHasNoRoom(t *testing.T) {
	c, err := catalog.Catalog{}.AddAccount(account.Account{ID: "a", Name: "work", Provider: account.OpenAI, Kind: account.Key})
	if err != nil {
		t.Fatal(err)
	}
	s := read(noon, map[string]float64{account.FiveHour: 0.2}, noon.Add(time.Hour))
	s = s.Reject(account.Rejection{Kind: account.Access, At: noon, Feature: account.FeatureRegion}, account.Rules{})
	for at, want := range map[time.Duration]bool{1: true, time.Hour - 1: true, time.Hour: false} {
		got := metric.FiguresOf(metric.Fleet{Now: noon.Add(at), Catalog: c, States: map[account.ID]account.State{"a": s}}).Providers[0]
		if got.Exhausted != want || (got.Ready == 0) != want {
			t.Errorf("after %v: got exhausted %v and %d ready, want %v", at, got.Exhausted, got.Ready, want)
		}
	}
}
