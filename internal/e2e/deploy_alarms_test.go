package e2e_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/alarm"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/metric"
	"holdfast/internal/store"
	"holdfast/internal/test/alarmstate"
	"holdfast/internal/test/deploytest"
	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// points are data points by the metric's name and its dimensions' values, as keyOf spells
// them, and by the begin of their minute.
type points map[string]map[time.Time][]float64

func keyOf(name string, dimensions map[string]string) string {
	key := name
	for _, dimension := range slices.Sorted(maps.Keys(dimensions)) {
		key += " " + dimensions[dimension]
	}
	return key
}

func (p points) add(at time.Time, name string, dimensions map[string]string, v float64) {
	key := keyOf(name, dimensions)
	if p[key] == nil {
		p[key] = map[time.Time][]float64{}
	}
	at = at.UTC().Truncate(time.Minute)
	p[key][at] = append(p[key][at], v)
}

// written adds data as CloudWatch reads them out of a log.
func (p points) written(t *testing.T, lines [][]byte) {
	t.Helper()
	for _, line := range lines {
		data, at, _, err := deploytest.Extract(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, d := range data {
			dimensions := map[string]string{}
			for _, each := range d.Dimensions {
				dimensions[each.Name] = each.Value
			}
			p.add(at, string(d.Name), dimensions, d.Value)
		}
	}
}

// of are an alarm's data points: its statistic of each of its periods.
func (p points) of(t *testing.T, d alarmstate.Definition) map[time.Time]float64 {
	t.Helper()
	gathered := map[time.Time][]float64{}
	for at, values := range p[keyOf(d.Metric, d.Dimensions)] {
		at = at.Truncate(d.Period)
		gathered[at] = append(gathered[at], values...)
	}
	out := map[time.Time]float64{}
	for at, values := range gathered {
		switch d.Statistic {
		case "Minimum":
			out[at] = slices.Min(values)
		case "Maximum":
			out[at] = slices.Max(values)
		case "Sum":
			for _, v := range values {
				out[at] += v
			}
		default:
			t.Fatalf("alarm %s looks at the %s", d.Name, d.Statistic)
		}
	}
	return out
}

// raised are the alarms that are raised at an instant, by the data points there are, in
// short: without the stack's or the table's name.
func (s *stack) raised(t *testing.T, now time.Time, definitions map[string]alarmstate.Definition, p points) []string {
	t.Helper()
	return s.raisedBy(t, definitions, func(d alarmstate.Definition) (bool, error) { return d.Raised(now, p.of(t, d)) })
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

// lastRound is what the poller's last round wrote into its log: the figures, and the data.
func (s *stack) lastRound(t *testing.T) (figures metric.Figures, data [][]byte, at time.Time) {
	t.Helper()
	for line := range strings.Lines(s.Log("Poller")) {
		line := []byte(strings.TrimSpace(line))
		var fleet struct {
			Time    time.Time      `json:"time"`
			Msg     string         `json:"msg"`
			Figures metric.Figures `json:"figures"`
		}
		if json.Unmarshal(line, &fleet) == nil && fleet.Msg == "fleet" {
			figures, data, at = fleet.Figures, nil, fleet.Time
			continue
		}
		if _, _, measured, _ := deploytest.Extract(line); measured {
			data = append(data, line)
		}
	}
	return figures, data, at
}

// ifItLasts are the alarms that are raised if what the poller measured last goes on so: the
// functions here live by the machine's clock, and a test doesn't wait for minutes.
func (s *stack) ifItLasts(t *testing.T) []string {
	t.Helper()
	_, data, _ := s.lastRound(t)
	last := points{}
	last.written(t, data)
	now := time.Now()
	return s.raisedBy(t, s.Alarms(), func(d alarmstate.Definition) (bool, error) {
		lasting := map[time.Time]float64{}
		var v float64
		there := false
		for _, v = range last.of(t, d) {
			there = true
		}
		if d.Metric == "Invocations" { // the platform's own count: it is invoked
			v, there = 1, true
		}
		if there {
			for back := range d.Range() + 1 {
				lasting[now.UTC().Truncate(d.Period).Add(-time.Duration(back)*d.Period)] = v
			}
		}
		return d.Raised(now, lasting)
	})
}

// round lets the deployed poller make a round now, and looks that it wrote down what it
// found.
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
		begins := time.Now()
		if err := s.Invoke("Poller"); err != nil {
			t.Fatal(err)
		}
		if _, _, at := s.lastRound(t); at.Before(begins) {
			t.Errorf("figures: got those of %v, want those of a round now", at)
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

// unconfigured is the stack between its deployment and the first account: nothing is wrong.
func unconfigured(t *testing.T, s *stack) {
	silence := functiontest.Stack + "-poller-silent"
	s.round(t)
	if s.Alarms()[silence].Off {
		t.Error("the alarm about a silent poller is off after the first round, want it on")
	}
	if figures, data, _ := s.lastRound(t); len(figures.Providers)+len(figures.Accounts)+len(figures.Windows)+len(data) != 0 {
		t.Errorf("got figures %+v and data %s, want none", figures, data)
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
	figures, data, _ := s.lastRound(t)
	near := func(v *float64, want float64) bool { return v != nil && *v > want-1e-9 && *v < want+1e-9 }
	providers := map[account.Provider]metric.ProviderFigures{}
	for _, p := range figures.Providers {
		providers[p.Provider] = p
	}
	for provider, ready := range map[account.Provider]int{account.Anthropic: 2, account.OpenAI: 1, account.XAI: 2} {
		if got := providers[provider]; got.Ready != ready || got.Exhausted {
			t.Errorf("%s: got %+v, want %d ready accounts, and room", provider, got, ready)
		}
	}
	if got := providers[account.XAI]; got.Serving != "bracken" || !near(&got.LeastUtilization, 0.12) {
		t.Errorf("xai: got %+v, want bracken to serve, 12 %% full", got)
	}
	if got := providers[account.OpenAI]; !near(&got.LeastUtilization, 0.30) || got.ReadingAge < 0 || got.ReadingAge > 600 {
		t.Errorf("openai: got %+v, want it 30 %% full, read some seconds ago", got)
	}
	if got := providers[account.Anthropic]; got.ReadingAge != 0 { // by key, without a usage endpoint
		t.Errorf("anthropic: got a reading of %v s ago, want none that is waited for", got.ReadingAge)
	}
	for _, a := range figures.Accounts {
		if a.Parked || a.RenewalFailures != 0 {
			t.Errorf("got %+v, want an account that needs nobody", a)
		}
	}
	windows := map[string]*float64{}
	for _, w := range figures.Windows {
		windows[w.Account+" "+w.Window] = w.Utilization
	}
	for name, want := range map[string]float64{"tansy five-hour": 0.20, "tansy weekly": 0.30, "bracken weekly": 0.12} {
		if !near(windows[name], want) {
			t.Errorf("%s: got %v, want %v", name, windows[name], want)
		}
	}
	if len(data) != 0 {
		t.Errorf("measured: got %s, want nothing while nothing is wrong", data)
	}
	if got := s.ifItLasts(t); len(got) != 0 {
		t.Errorf("raised: %q, want none", got)
	}
	want := map[string]bool{}
	for _, name := range []string{"one", "two", "tansy", "bracken", "sedge"} {
		want[alarm.Name(s.Table, name)] = true
	}
	for name, d := range s.Alarms() {
		if strings.HasPrefix(name, alarm.Prefix(s.Table)) {
			if !want[name] || !cmp.Equal(d.Actions, []string{s.Outputs["AlarmTopicArn"]}) || len(d.OKActions) != 0 || d.Missing != alarmstate.NotBreaching {
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
// deployed poller reports it.
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
// the provider, and the deployed poller parks it and reports that. The other one serves on.
func revoked(t *testing.T, s *stack) {
	b := *s.bench
	b.up = s.xai
	l := newLogin("xai", "sorrel", 3, time.Now().Add(-time.Minute).Truncate(time.Second))
	b.secrets = append(b.secrets, l.access, l.refresh)
	b.imported("xai", l, "--no-check")
	s.secrets = b.secrets
	s.round(t)
	s.until("sorrel", "parked", func(shown shown) bool { return shown.State == "parked" })
	if got, want := s.ifItLasts(t), []string{"sorrel"}; !slices.Equal(got, want) {
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

// What becomes of a minute's round other than to go well.
var (
	errSilence = errors.New("the poller is not invoked")
	errRound   = errors.New("the round fails")
)

// scenarios lets half an hour pass in each of the situations that an owner gets into. What a
// round would measure is written as the poller writes it, and read as CloudWatch reads it; the
// alarms are those deployed.
func scenarios(t *testing.T, s *stack) {
	snap, err := store.New(s.owner(t)).Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	const minutes = 30
	after := func(minute int, raised ...string) map[int][]string {
		return map[int][]string{minute: raised, minutes: raised}
	}
	never := map[int][]string{5: nil, 12: nil, 20: nil, minutes: nil}
	for _, c := range []struct {
		name string
		// minute changes what was so a minute before; an error tells what became of the round.
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
			}, raised: map[int][]string{10: nil, 12: {"bracken"}, minutes: {"bracken"}},
		},
		{
			name: "the only login revoked",
			minute: func(l *life, _ time.Time, minute int) error {
				if minute >= 10 {
					l.set("tansy", parked(l.start.Add(10*time.Minute)))
				}
				return nil
			}, raised: after(13, "exhausted-openai", "tansy"),
		},
		{
			name: "a login that cannot be renewed",
			minute: func(l *life, _ time.Time, minute int) error {
				l.fail("tansy", max(0, minute-10))
				return nil
			}, raised: map[int][]string{10: nil, 13: nil, 15: {"tansy"}, minutes: {"tansy"}},
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
			}, raised: map[int][]string{12: nil, 20: nil, 24: nil, 27: {"poller-silent"}, minutes: {"poller-silent"}},
		},
		{
			name: "a round fails now and then",
			minute: func(_ *life, _ time.Time, minute int) error {
				if minute%10 == 5 {
					return errRound
				}
				return nil
			}, raised: never,
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
					return errRound
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
				10: nil, 11: {"store"}, 12: {"store"}, 13: {"poller-errors", "store"}, minutes: {"poller-errors", "store"},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now().UTC().Truncate(time.Hour)
			measured, serving := points{}, map[int]string{}
			poller := map[string]string{"FunctionName": s.Resource("Poller")}
			for minute := range minutes {
				now := start.Add(time.Duration(minute) * time.Minute)
				l := &life{start: start, fleet: metric.Fleet{
					Now: now, Table: s.Table, Catalog: catalog.Catalog{Accounts: snap.Catalog.Accounts}, States: map[account.ID]account.State{},
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
				var became error
				if c.minute != nil {
					became = c.minute(l, now, minute)
				}
				if !errors.Is(became, errSilence) {
					measured.add(now, "Invocations", poller, 1)
				}
				var data []metric.Datum
				if became == nil {
					data = metric.OfFleet(l.fleet)
					for _, p := range metric.FiguresOf(l.fleet).Providers {
						serving[minute] += p.Serving // xAI alone has policy order
					}
				}
				if errors.Is(became, errRound) {
					measured.add(now, "Errors", poller, 1)
				}
				refused := 0
				if c.unavailable != nil {
					refused = c.unavailable(minute)
				}
				for n := range 5 {
					data = append(data, metric.OfRequest(metric.Request{Table: s.Table, StoreUnavailable: n < refused})...)
				}
				measured.written(t, metric.Lines(now.Add(20*time.Second), data))
			}
			for minute, name := range c.serves {
				if serving[minute] != name {
					t.Errorf("after %d minutes: %q serves, want %s", minute, serving[minute], name)
				}
			}
			definitions := s.Alarms()
			for _, minute := range slices.Sorted(maps.Keys(c.raised)) {
				want := c.raised[minute]
				if want == nil {
					want = []string{}
				}
				if diff := cmp.Diff(want, s.raised(t, start.Add(time.Duration(minute)*time.Minute), definitions, measured)); diff != "" {
					t.Errorf("after %d minutes: raised (-want +got)\n%s", minute, diff)
				}
			}
		})
	}
}
