package metric_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
	"holdfast/internal/metric"
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

func TestOfRequest(t *testing.T) {
	quiet := map[string]float64{"PinsKept{}": 0, "PinsMoved{}": 0, "PinsNew{}": 0, "PinsNone{}": 0, "Yielded{}": 0, "StoreUnavailable{}": 0}
	with := func(more map[string]float64) map[string]float64 {
		all := map[string]float64{}
		for k, v := range quiet {
			all[k] = v
		}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	for _, c := range []struct {
		name string
		in   metric.Request
		want map[string]float64
	}{
		{
			"served from the cache",
			metric.Request{Provider: account.Anthropic, Account: "juniper", Outcome: "served", Pin: "kept", Source: "session", Added: 1500 * time.Microsecond, Prompt: 1000, CacheRead: 900},
			with(map[string]float64{"Requests{anthropic,juniper,served}": 1, "PinsKept{}": 1, "ConversationKey{session}": 1, "AddedLatency{}": 1.5, "CacheReadShare{}": 0.9}),
		},
		{
			"nobody served",
			metric.Request{Provider: account.XAI, Outcome: "refused", StoreUnavailable: true},
			with(map[string]float64{"Requests{xai,none,refused}": 1, "StoreUnavailable{}": 1}),
		},
		{
			"two rejections of a kind and one of another",
			metric.Request{
				Provider: account.OpenAI, Account: "tansy", Outcome: "served", Pin: "new",
				Rejections: []account.RejectionKind{account.WindowSpent, account.Bare, account.WindowSpent},
			},
			with(map[string]float64{"Requests{openai,tansy,served}": 1, "PinsNew{}": 1, "Rejections{window}": 2, "Rejections{bare}": 1}),
		},
		{
			"nothing was read from the cache",
			metric.Request{Provider: account.OpenAI, Account: "tansy", Outcome: "served", Pin: "moved", Prompt: 10},
			with(map[string]float64{"Requests{openai,tansy,served}": 1, "PinsMoved{}": 1, "CacheReadShare{}": 0}),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, values(t, metric.OfRequest(c.in))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
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
		want map[string]float64 // among others
		not  []string
	}{
		{
			"nothing is configured", metric.Fleet{},
			map[string]float64{
				"PollerRounds{}":              1,
				"LeastUtilization{anthropic}": 0,
				"Exhausted{anthropic}":        0,
				"ReadyAccounts{anthropic}":    0,
				"ReadingAge{anthropic}":       0,
				"LeastUtilization{openai}":    0,
				"LeastUtilization{xai}":       0,
				"Exhausted{openai}":           0,
				"Exhausted{xai}":              0,
				"ReadingAge{openai}":          0,
				"ReadingAge{xai}":             0,
				"ReadyAccounts{openai}":       0,
				"ReadyAccounts{xai}":          0,
			},
			nil,
		},
		{
			"the minimum counts, and a model family's window or a per-minute one does not",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow, juniper}}, Watched: map[account.ID]bool{marlow.ID: true, juniper.ID: true},
				States: map[account.ID]account.State{marlow.ID: full, juniper.ID: half}, Failures: map[account.ID]int{juniper.ID: 3},
			},
			map[string]float64{
				"LeastUtilization{anthropic}": 0.5, "Exhausted{anthropic}": 0, "ReadyAccounts{anthropic}": 2,
				"ReadingAge{marlow}": 420, "ReadingAge{juniper}": 120, "ReadingAge{anthropic}": 120,
				"Utilization{juniper,five-hour}": 0.5, "Utilization{juniper,weekly:fable}": 1, "HoursToReset{juniper,five-hour}": 1.5,
				"Utilization{marlow,weekly}": 0.97, "HoursToReset{marlow,weekly}": 50,
				"Parked{marlow}": 0, "RefreshFailures{marlow}": 0, "RefreshFailures{juniper}": 3,
			},
			[]string{"Utilization{juniper,requests}", "Serving{anthropic,marlow}"},
		},
		{
			"at the line, and the other one cools",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow, juniper}},
				States:  map[account.ID]account.State{marlow.ID: full, juniper.ID: spent(half, noon.Add(-time.Minute), account.FiveHour, soon)},
			},
			map[string]float64{"LeastUtilization{anthropic}": 0.97, "Exhausted{anthropic}": 1, "ReadyAccounts{anthropic}": 1},
			nil,
		},
		{
			"all cool",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{juniper}},
				States:  map[account.ID]account.State{juniper.ID: spent(half, noon.Add(-time.Minute), account.FiveHour, soon)},
			},
			map[string]float64{"LeastUtilization{anthropic}": 1, "Exhausted{anthropic}": 1, "ReadyAccounts{anthropic}": 0},
			nil,
		},
		{
			"parked ones are left out, and none is left",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{juniper}}, Watched: map[account.ID]bool{juniper.ID: true},
				States: map[account.ID]account.State{juniper.ID: parked(half, noon.Add(-time.Minute))},
			},
			map[string]float64{
				"LeastUtilization{anthropic}": 1, "Exhausted{anthropic}": 1, "ReadyAccounts{anthropic}": 0, "Parked{juniper}": 1,
				"ReadingAge{anthropic}": 0, // that it waits for its owner is said by Parked
			},
			nil,
		},
		{
			"keys alone are neither exhausted nor blind",
			metric.Fleet{Catalog: catalog.Catalog{Accounts: []account.Account{key}}},
			map[string]float64{"LeastUtilization{openai}": 0, "Exhausted{openai}": 0, "ReadyAccounts{openai}": 1, "ReadingAge{openai}": 0, "Parked{key}": 0},
			[]string{"RefreshFailures{key}", "ReadingAge{key}"},
		},
		{
			"a key whose project is at its limit of this minute has room in the next",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{key}},
				States:  map[account.ID]account.State{key.ID: read(noon, map[string]float64{"project-requests": 1}, noon.Add(time.Minute))},
			},
			map[string]float64{"LeastUtilization{openai}": 0, "Exhausted{openai}": 0},
			[]string{"Utilization{key,project-requests}", "HoursToReset{key,project-requests}"},
		},
		{
			"a watched account that was never read is as old as itself",
			metric.Fleet{Catalog: catalog.Catalog{Accounts: []account.Account{marlow}}, Watched: map[account.ID]bool{marlow.ID: true}},
			map[string]float64{"ReadingAge{marlow}": 86400, "ReadingAge{anthropic}": 86400},
			nil,
		},
		{
			"policy order: the threshold is its line, and one account serves",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{bracken, sedge}},
				States: map[account.ID]account.State{
					bracken.ID: read(noon, map[string]float64{account.Weekly: 0.85}, later), sedge.ID: read(noon, map[string]float64{account.Weekly: 0.8}, later),
				},
			},
			map[string]float64{"LeastUtilization{xai}": 0.8, "Exhausted{xai}": 1, "Serving{xai,bracken}": 0, "Serving{xai,sedge}": 1, "ReadyAccounts{xai}": 2},
			nil,
		},
		{
			"policy order: what is left may lack a trifle of the threshold", // 1 - 0.9 is below 0.1
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{bracken}, Policies: map[account.Provider]catalog.Policy{account.XAI: {Name: catalog.Order, Threshold: 0.1}}},
				States:  map[account.ID]account.State{bracken.ID: read(noon, map[string]float64{account.Weekly: remaining(0.9)}, later)},
			},
			map[string]float64{"Exhausted{xai}": 1},
			nil,
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
			map[string]float64{"LeastUtilization{anthropic}": 1, "Exhausted{anthropic}": 1},
			nil,
		},
		{
			"past its reset a window is empty",
			metric.Fleet{
				Catalog: catalog.Catalog{Accounts: []account.Account{marlow}},
				States:  map[account.ID]account.State{marlow.ID: read(noon.Add(-time.Hour), map[string]float64{account.Weekly: 1}, noon)},
			},
			map[string]float64{"LeastUtilization{anthropic}": 0, "Utilization{marlow,weekly}": 0, "HoursToReset{marlow,weekly}": 0},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Now = noon
			got := values(t, metric.OfFleet(c.in))
			for key, want := range c.want {
				if v, there := got[key]; !there || math.Abs(v-want) > 1e-9 {
					t.Errorf("%s: got %v (there: %v), want %v", key, v, there, want)
				}
			}
			for _, key := range c.not {
				if v, there := got[key]; there {
					t.Errorf("%s: got %v, want none", key, v)
				}
			}
		})
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

// The order of dimensions is part of a definition: alarms name them.
func TestDimensionsInOrder(t *testing.T) {
	d := metric.OfRequest(metric.Request{Provider: account.XAI, Outcome: "served"})[0]
	var names []string
	for _, each := range d.Dimensions {
		names = append(names, each.Name)
	}
	if want := []string{"Provider", "Account", "Outcome"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}
