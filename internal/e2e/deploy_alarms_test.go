package e2e_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/account"
	"holdfast/internal/alarm"
	"holdfast/internal/alarmstate"
	"holdfast/internal/awstest"
	"holdfast/internal/catalog"
	"holdfast/internal/cloudwatch"
	"holdfast/internal/functiontest"
	"holdfast/internal/metric"
	"holdfast/internal/store"
	"holdfast/internal/upstreamtest"
)

// raised are the alarms that are raised at an instant, by the data points there are, in
// short: without the stack's or the table's name.
func (s *stack) raised(t *testing.T, now time.Time, definitions map[string]alarmstate.Definition) []string {
	t.Helper()
	return s.raisedBy(t, definitions, func(d alarmstate.Definition) (bool, error) {
		return d.Raised(now, s.Points(d, now.Add(-time.Duration(d.Range()+1)*d.Period), now))
	})
}

func (s *stack) raisedBy(t *testing.T, definitions map[string]alarmstate.Definition, raised func(alarmstate.Definition) (bool, error)) []string {
	t.Helper()
	names := []string{}
	for name, d := range definitions {
		is, err := raised(d)
		if err != nil {
			t.Fatal(err)
		}
		if is {
			short := strings.TrimPrefix(strings.TrimPrefix(name, alarm.Prefix(s.Table)), functiontest.Stack+"-")
			names = append(names, short)
		}
	}
	slices.Sort(names)
	return names
}

// ifItLasts are the alarms that are raised if what the poller measured last goes on so: the
// functions here live by the machine's clock, and a test doesn't wait for minutes.
func (s *stack) ifItLasts(t *testing.T) []string {
	t.Helper()
	now := time.Now()
	return s.raisedBy(t, s.Alarms(), func(d alarmstate.Definition) (bool, error) {
		lasting := map[time.Time]float64{}
		if v, _, there := s.Newest(d); there {
			for back := range d.Range() + 1 {
				lasting[now.UTC().Truncate(d.Period).Add(-time.Duration(back)*d.Period)] = v
			}
		}
		return d.Raised(now, lasting)
	})
}

// round lets the deployed poller make a round now, and looks that it measured.
func (s *stack) round(t *testing.T) {
	t.Helper()
	known := store.New(s.owner(t))
	for range 5 {
		base, err := known.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := known.ChangePoll(t.Context(), base, func(p store.Poll) store.Poll { // its last round was a minute ago
			p.RoundAt = p.RoundAt.Add(-time.Minute)
			return p
		}); err != nil {
			t.Fatal(err)
		}
		// What is measured in one second cannot be told apart afterwards.
		begins := time.Now().Truncate(time.Second).Add(time.Second)
		<-time.After(time.Until(begins))
		if err := s.Invoke("Poller"); err != nil {
			t.Fatal(err)
		}
		rounds := s.Alarms()[functiontest.Stack+"-poller-silent"]
		if v, at, there := s.Newest(rounds); !there || v < 1 || at.Before(begins) {
			t.Errorf("rounds: got %v at %v (there: %v), want one now", v, at, there)
		}
		after, err := known.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !after.RoundAt.Before(begins) { // else the schedule's own came in between
			return
		}
	}
	t.Fatal("the poller made no round when asked")
}

// newest is the newest value of a metric with one dimension.
func (s *stack) newest(t *testing.T, name metric.Name, dimensions ...string) float64 {
	t.Helper()
	d := alarmstate.Definition{Namespace: metric.Namespace, Metric: string(name), Dimensions: map[string]string{}, Statistic: "Maximum"}
	for i := 0; i < len(dimensions); i += 2 {
		d.Dimensions[dimensions[i]] = dimensions[i+1]
	}
	v, _, there := s.Newest(d)
	if !there {
		t.Errorf("%s of %q: there is none", name, dimensions)
		return -1
	}
	return v
}

// unconfigured is the stack between its deployment and the first account: nothing is wrong.
func unconfigured(t *testing.T, s *stack) {
	s.round(t)
	for _, p := range account.Providers {
		for name, want := range map[metric.Name]float64{metric.Exhausted: 0, metric.LeastUtilization: 0, metric.ReadyAccounts: 0, metric.ReadingAge: 0} {
			if got := s.newest(t, name, metric.Provider, string(p)); got != want {
				t.Errorf("%s of %s: got %v, want %v", name, p, got, want)
			}
		}
	}
	if got := s.ifItLasts(t); len(got) != 0 {
		t.Errorf("raised: %q, want none", got)
	}
	if log := s.Log("Poller"); strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, `"level":"WARN"`) {
		t.Errorf("the poller's log: got %s, want no trouble", log)
	}
}

// polled is a round on a normal day.
func polled(t *testing.T, s *stack) {
	s.round(t)
	for _, c := range []struct {
		name       metric.Name
		dimensions []string
		want       float64
	}{
		{metric.ReadyAccounts, []string{"Provider", "anthropic"}, 2},
		{metric.ReadyAccounts, []string{"Provider", "openai"}, 1},
		{metric.ReadyAccounts, []string{"Provider", "xai"}, 2},
		{metric.Exhausted, []string{"Provider", "anthropic"}, 0},
		{metric.Exhausted, []string{"Provider", "openai"}, 0},
		{metric.Exhausted, []string{"Provider", "xai"}, 0},
		{metric.ReadingAge, []string{"Provider", "anthropic"}, 0}, // by key, without a usage endpoint
		{metric.Serving, []string{"Provider", "xai", "Account", "bracken"}, 1},
		{metric.Serving, []string{"Provider", "xai", "Account", "sedge"}, 0},
		{metric.Parked, []string{"Account", "tansy"}, 0},
		{metric.RefreshFailures, []string{"Account", "tansy"}, 0},
		{metric.Utilization, []string{"Account", "tansy", "Window", "five-hour"}, 0.20},
		{metric.Utilization, []string{"Account", "tansy", "Window", "weekly"}, 0.30},
		{metric.Utilization, []string{"Account", "bracken", "Window", "weekly"}, 0.12},
		{metric.LeastUtilization, []string{"Provider", "xai"}, 0.12},
		{metric.LeastUtilization, []string{"Provider", "openai"}, 0.30},
	} {
		if got := s.newest(t, c.name, c.dimensions...); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%s of %q: got %v, want %v", c.name, c.dimensions, got, c.want)
		}
	}
	if age := s.newest(t, metric.ReadingAge, "Provider", "openai"); age < 0 || age > 600 {
		t.Errorf("ReadingAge of openai: got %v, want some seconds", age)
	}
	if got := s.ifItLasts(t); len(got) != 0 {
		t.Errorf("raised: %q, want none", got)
	}
	want := map[string]bool{}
	for _, name := range []string{"one-parked", "two-parked", "tansy-parked", "tansy-renewal", "bracken-parked", "bracken-renewal", "sedge-parked", "sedge-renewal"} {
		want[alarm.Prefix(s.Table)+name] = true
	}
	for name, d := range s.Alarms() {
		if strings.HasPrefix(name, alarm.Prefix(s.Table)) {
			if !want[name] || !cmp.Equal(d.Actions, []string{s.Outputs["AlarmTopicArn"]}) || d.Missing != alarmstate.NotBreaching {
				t.Errorf("alarm %+v: want one of %v, to the topic", d, want)
			}
			delete(want, name)
		}
	}
	if len(want) != 0 {
		t.Errorf("there are no alarms %v", want)
	}
}

// scheduled looks for the schedule's own rounds: those that nobody here asked for. It ticks
// on the minute.
func scheduled(t *testing.T, s *stack) {
	for end := time.Now().Add(90 * time.Second); ; <-time.After(time.Second) {
		log := s.Log("Poller")
		if strings.Count(log, "START RequestId") > s.Invoked("Poller") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the poller ran only when asked, by its log:\n%s", log)
		}
	}
}

// allSpent: both accounts of a provider reject, through the deployed gateway, and the
// deployed poller tells of it.
func allSpent(t *testing.T, s *stack) {
	until := time.Now().Add(3 * time.Hour)
	for _, a := range []*upstreamtest.Account{s.one, s.two} {
		a.Always(upstreamtest.FiveHourSpent(until))
	}
	got := s.do(t, ask{session: newSession()})
	if got.status != 429 || got.header.Get("X-Holdfast-Error") != "" && got.header.Get("X-Holdfast-Error") != "exhausted" {
		t.Errorf("got %d %s, want 429", got.status, got.body)
	}
	for _, name := range []string{"one", "two"} {
		s.until(name, "a cooldown", func(shown shown) bool { return shown.State == "cooldown" })
	}
	s.round(t)
	if got, want := s.ifItLasts(t), []string{"exhausted-anthropic"}; !slices.Equal(got, want) {
		t.Errorf("raised: %q, want %q", got, want)
	}
	s.equal()
	for _, name := range []string{"one", "two"} {
		s.run(nil, "account", "clear", name)
	}
	s.round(t)
	if got := s.ifItLasts(t); len(got) != 0 {
		t.Errorf("raised when there is room again: %q, want none", got)
	}
}

// revoked: a login whose access token has ended is due, its refresh token is refused by
// the provider, and the deployed poller parks it and says so. The other one serves on.
func revoked(t *testing.T, s *stack) {
	b := *s.bench
	b.up = s.xai
	l := newLogin("xai", "sorrel", 3, time.Now().Add(-time.Minute).Truncate(time.Second))
	b.secrets = append(b.secrets, l.access, l.refresh)
	b.imported("xai", l, "--no-check")
	s.secrets = b.secrets
	s.round(t)
	s.until("sorrel", "parked", func(shown shown) bool { return shown.State == "parked" })
	if got, want := s.ifItLasts(t), []string{"sorrel-parked"}; !slices.Equal(got, want) {
		t.Errorf("raised: %q, want %q", got, want)
	}
	s.run(nil, "account", "remove", "sorrel")
	for name := range s.Alarms() {
		if strings.Contains(name, "sorrel") {
			t.Errorf("the account is removed, and its alarm %s is still there", name)
		}
	}
}

// life is a provider's accounts in a scenario, minute by minute.
type life struct {
	fleet metric.Fleet
	start time.Time
}

// observed is an account whose windows are read at an instant to be so full.
func observed(at time.Time, full float64) account.State {
	return account.State{}.Observe(account.Reading{At: at, Source: account.FromAnswer, Windows: []account.WindowReading{
		{Name: account.Weekly, Utilization: full, HasUtilization: true, ResetAt: at.Add(50 * time.Hour)},
	}}, 0, account.Rules{})
}

func (l *life) set(name string, state account.State) {
	for _, a := range l.fleet.Catalog.Accounts {
		if a.Name == name {
			l.fleet.States[a.ID] = state
		}
	}
}

func (l *life) fail(name string, times int) {
	for _, a := range l.fleet.Catalog.Accounts {
		if a.Name == name {
			l.fleet.Failures[a.ID] = times
		}
	}
}

func (l *life) drop(gone func(account.Account) bool) {
	l.fleet.Catalog.Accounts = slices.DeleteFunc(slices.Clone(l.fleet.Catalog.Accounts), gone)
}

func cooling(at time.Time) account.State {
	return observed(at, 1).Reject(account.Rejection{Kind: account.WindowSpent, At: at, Spent: []account.Spent{{Window: account.FiveHour, ResetAt: at.Add(3 * time.Hour)}}}, account.Rules{})
}

func parked(at time.Time) account.State {
	return observed(at, 0.3).Reject(account.Rejection{Kind: account.BadCredential, At: at, Rule: "renewal-refused"}, account.Rules{})
}

// errSilence stands for the data of a minute in which nobody measured.
var errSilence = errors.New("nobody measured")

// scenarios lets half an hour pass in each of the situations that an owner gets into, in
// the past, where each has an hour of its own. What a round would measure goes to
// CloudWatch as the poller sends it, and is read back; the alarms are those deployed.
func scenarios(t *testing.T, s *stack) {
	snap, err := store.New(s.owner(t)).Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	const minutes = 30
	blind := []string{"blind-anthropic", "blind-openai", "blind-xai"}
	after := func(minute int, raised ...string) map[int][]string {
		return map[int][]string{minute: raised, minutes: raised}
	}
	never := map[int][]string{5: nil, 12: nil, 20: nil, minutes: nil}
	for i, c := range []struct {
		name string
		// minute changes what was so a minute before; an error tells that no round was made.
		minute func(l *life, now time.Time, minute int) error
		// unavailable is how many requests of a minute are refused for want of the store.
		unavailable func(minute int) int
		// raised are the alarms that are raised at the end of a minute.
		raised map[int][]string
		// serves is who serves at xAI in a minute, where that is looked at.
		serves map[int]string
	}{
		{name: "a normal day", raised: never},
		{
			name: "a quiet night", // looks alone, every five minutes
			minute: func(l *life, now time.Time, minute int) error {
				if minute%5 != 0 {
					for _, a := range l.fleet.Catalog.Accounts {
						l.set(a.Name, observed(now.Add(-time.Duration(minute%5)*time.Minute), 0.3))
					}
				}
				return nil
			}, raised: never,
		},
		{
			name: "API keys only", // of which nothing is ever read
			minute: func(l *life, _ time.Time, _ int) error {
				l.drop(func(a account.Account) bool { return a.Kind != account.Key })
				for _, a := range l.fleet.Catalog.Accounts {
					l.set(a.Name, account.State{})
				}
				return nil
			}, raised: never,
		},
		{
			name: "a provider without accounts",
			minute: func(l *life, _ time.Time, _ int) error {
				l.drop(func(a account.Account) bool { return a.Provider == account.OpenAI })
				return nil
			}, raised: never,
		},
		{
			name: "an account spent", // and another serves: a switch
			minute: func(l *life, now time.Time, minute int) error {
				if minute >= 10 {
					l.set("bracken", cooling(l.start.Add(10*time.Minute)))
				}
				return nil
			}, raised: never, serves: map[int]string{9: "bracken", 10: "sedge", 29: "sedge"},
		},
		{
			name: "switched back and forth",
			minute: func(l *life, now time.Time, minute int) error {
				if minute%2 == 0 {
					l.set("bracken", observed(now, 0.9))
				}
				return nil
			}, raised: never, serves: map[int]string{4: "sedge", 5: "bracken", 6: "sedge"},
		},
		{
			name: "all spent",
			minute: func(l *life, _ time.Time, minute int) error {
				if minute >= 10 {
					l.set("one", cooling(l.start.Add(10*time.Minute)))
					l.set("two", cooling(l.start.Add(10*time.Minute)))
				}
				return nil
			}, raised: map[int][]string{10: nil, 12: nil, 13: {"exhausted-anthropic"}, minutes: {"exhausted-anthropic"}},
		},
		{
			name: "all spent for a moment",
			minute: func(l *life, now time.Time, minute int) error {
				if minute == 10 || minute == 11 {
					l.set("one", cooling(now))
					l.set("two", cooling(now))
				}
				return nil
			}, raised: map[int][]string{11: nil, 12: nil, 13: nil, minutes: nil},
		},
		{
			name: "a login revoked",
			minute: func(l *life, _ time.Time, minute int) error {
				if minute >= 10 {
					l.set("bracken", parked(l.start.Add(10*time.Minute)))
				}
				return nil
			}, raised: map[int][]string{10: nil, 12: {"bracken-parked"}, minutes: {"bracken-parked"}},
		},
		{
			name: "the only login revoked",
			minute: func(l *life, _ time.Time, minute int) error {
				if minute >= 10 {
					l.set("tansy", parked(l.start.Add(10*time.Minute)))
				}
				return nil
			}, raised: after(13, "exhausted-openai", "tansy-parked"),
		},
		{
			name: "a login that cannot be renewed",
			minute: func(l *life, _ time.Time, minute int) error {
				l.fail("tansy", max(0, minute-10))
				return nil
			}, raised: map[int][]string{10: nil, 13: nil, 15: {"tansy-renewal"}, minutes: {"tansy-renewal"}},
		},
		{
			name: "the usage look-up dead", // of one provider, and no answers either
			minute: func(l *life, _ time.Time, _ int) error {
				l.set("tansy", observed(l.start, 0.3))
				return nil
			}, raised: map[int][]string{20: nil, 25: nil, 27: {"blind-openai"}, minutes: {"blind-openai"}},
		},
		{
			name: "the usage look-up dead while answers tell", // of the same
			minute: func(l *life, now time.Time, minute int) error {
				l.set("tansy", observed(now.Add(-time.Duration(minute%10)*time.Minute), 0.3))
				return nil
			}, raised: never,
		},
		{
			name: "the poller dead",
			minute: func(_ *life, _ time.Time, minute int) error {
				if minute >= 10 {
					return errSilence
				}
				return nil
			}, raised: map[int][]string{12: nil, 20: blind, 24: blind, 27: append(slices.Clone(blind), "poller-silent"), minutes: append(slices.Clone(blind), "poller-silent")},
		},
		{
			name: "the poller late", // for three minutes, as with a deployment
			minute: func(_ *life, _ time.Time, minute int) error {
				if minute >= 10 && minute < 13 {
					return errSilence
				}
				return nil
			}, raised: never,
		},
		{
			name: "the store dead", // so that the poller knows nothing either
			minute: func(_ *life, _ time.Time, minute int) error {
				if minute >= 10 {
					return errSilence
				}
				return nil
			},
			unavailable: func(minute int) int {
				if minute >= 10 {
					return 3
				}
				return 0
			},
			raised: map[int][]string{
				10: nil, 11: {"store"}, 13: {"store"}, 20: append(slices.Clone(blind), "store"),
				minutes: append(slices.Clone(blind), "poller-silent", "store"),
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now().UTC().Truncate(time.Minute).Add(-time.Duration(i+2) * time.Hour)
			watch := cloudwatch.New(awstest.Config(s.Endpoint), s.Table, s.Outputs["AlarmTopicArn"])
			for minute := range minutes {
				now := start.Add(time.Duration(minute) * time.Minute)
				l := &life{start: start, fleet: metric.Fleet{
					Now: now, Catalog: catalog.Catalog{Accounts: snap.Catalog.Accounts}, States: map[account.ID]account.State{},
					Watched: map[account.ID]bool{}, Failures: map[account.ID]int{},
				}}
				for _, a := range snap.Catalog.Accounts {
					l.fleet.States[a.ID] = observed(now, 0.3)
					l.fleet.Watched[a.ID] = a.Kind == account.Subscription
				}
				// The accounts are as old as the scenario.
				l.fleet.Catalog.Accounts = slices.Clone(l.fleet.Catalog.Accounts)
				for i := range l.fleet.Catalog.Accounts {
					l.fleet.Catalog.Accounts[i].AddedAt = start.Add(-time.Hour)
				}
				var data []metric.Datum
				if c.minute == nil || c.minute(l, now, minute) == nil {
					data = metric.OfFleet(l.fleet)
				}
				refused := 0
				if c.unavailable != nil {
					refused = c.unavailable(minute)
				}
				for n := range 5 {
					data = append(data, metric.OfRequest(metric.Request{Provider: account.Anthropic, Outcome: "served", StoreUnavailable: n < refused})...)
				}
				if err := watch.Put(t.Context(), now.Add(20*time.Second), data); err != nil {
					t.Fatal(err)
				}
			}
			for minute, name := range c.serves {
				at := start.Add(time.Duration(minute) * time.Minute)
				for _, each := range []string{"bracken", "sedge"} {
					points := s.Points(alarmstate.Definition{
						Namespace: metric.Namespace, Metric: string(metric.Serving), Dimensions: map[string]string{"Provider": "xai", "Account": each},
						Statistic: "Maximum", Period: time.Minute,
					}, at, at.Add(time.Minute))
					if got := points[at] == 1; len(points) != 1 || got != (each == name) {
						t.Errorf("after %d minutes: got %v of %s, want %s to serve", minute, points, each, name)
					}
				}
			}
			definitions := s.Alarms()
			for _, minute := range slices.Sorted(maps.Keys(c.raised)) {
				want := c.raised[minute]
				if want == nil {
					want = []string{}
				}
				if diff := cmp.Diff(want, s.raised(t, start.Add(time.Duration(minute)*time.Minute), definitions)); diff != "" {
					t.Errorf("after %d minutes: raised (-want +got)\n%s", minute, diff)
				}
			}
		})
	}
}
