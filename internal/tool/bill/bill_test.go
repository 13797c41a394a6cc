package main

import (
	"bytes"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/alarm"
	"holdfast/internal/core/metric"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/test/deploytest"
	"holdfast/internal/tool/cost"
)

func deployed(t *testing.T) deployment {
	t.Helper()
	d, err := readDeployment(os.DirFS("../../../infra"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Every alarm and dashboard of infra/ is counted, and every alarm is of a metric that there
// is.
func TestDeployment(t *testing.T) {
	d := deployed(t)
	text, err := os.ReadFile("../../../infra/alarms.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Count(string(text), "Type: AWS::CloudWatch::Alarm"); want == 0 || len(d.alarms) != want || d.dashboards != 1 {
		t.Errorf("got %d alarms and %d dashboards, want %d and 1", len(d.alarms), d.dashboards, want)
	}
	if _, err := readDeployment(os.DirFS(t.TempDir())); err == nil {
		t.Error("got no error for a folder without a deployment")
	}
}

// What a fleet of two is counted to do is what the gateway's manual says of each request: one
// read, and one write for each thing that is noted. With the configuration a read is of one
// item more, and of one for the pin and for each account.
func TestCount(t *testing.T) {
	two := fleet{"2 logins", []account.Provider{account.Anthropic}, 2, account.Subscription}
	c, err := count(t.Context(), two, deployed(t))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]operations{}
	for _, m := range c.requests {
		got[m.name] = m.operations
		if m.logBytes < 300 {
			t.Errorf("%s: got %v bytes logged, want at least a line of the log", m.name, m.logBytes)
		}
	}
	want := map[string]operations{
		"new conversation, cold process": {5 + 3, 1 + 5 + 2, 3 + 2}, // the configuration; then pin, states and credentials; usage
		"new conversation":               {4, 4, 3},                 // claim, placement, reading
		"pinned":                         {1, 4, 0},
		"pinned, touch due":              {2 + 3, 4 + 2, 1 + 2}, // a minute later, so that usage is written too
		"pinned, reading changed":        {2, 4, 1},
		"count_tokens":                   {1, 4, 0},
		"pinned, account rejects":        {5 + 2, 4 + 1, 5 + 1}, // rejection, of a state that has grown over a kilobyte; move, placement, reading; events
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(operations{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// A look each five minutes and up to a fifth more; half of it here, in whole rounds.
	if c.day.looks != 2*roundsPerDay/6 {
		t.Errorf("got %d looks a day, want %d", c.day.looks, 2*roundsPerDay/6)
	}
	if got := len(c.ofAccounts); got != 2 {
		t.Errorf("got %d alarms of two logins, want 2", got)
	}
	// Nothing is wrong, so nothing is measured.
	if c.day.seriesHours != 0 {
		t.Errorf("got %v hours of series, want none", c.day.seriesHours)
	}
}

// What an owner pays while nothing happens, at list prices and without a dashboard.
func TestIdleMonth(t *testing.T) {
	a := assumptions{memory: 128, round: 500 * time.Millisecond, start: 300 * time.Millisecond, cold: 0.02}
	for name, most := range map[string]float64{"3 logins": 3, "12 logins": 5} {
		for _, f := range fleets {
			if f.name != name {
				continue
			}
			c, err := count(t.Context(), f, deployed(t))
			if err != nil {
				t.Fatal(err)
			}
			if got := cost.Total(cost.Bill(c.idle(a), false)); got <= 1 || got > most {
				t.Errorf("%s: got $%.2f a month, want at most $%.2f, and more than the key's", name, got, most)
			}
		}
	}
}

// Panels of the gateway's log ask for fields that its lines have.
func TestPanelsAskForFieldsOfRequests(t *testing.T) {
	two := fleet{"2 logins", []account.Provider{account.Anthropic}, 2, account.Subscription}
	c, err := count(t.Context(), two, deployed(t))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../infra/dashboard.yaml")
	if err != nil {
		t.Fatal(err)
	}
	body, err := deploytest.Dashboard(text, map[string]string{
		"Name": "n", "AWS::Region": "us-east-1", "GatewayLog": "gateway", "PollerLog": "poller", "GatewayFunction": "g", "PollerFunction": "p", "TableName": "t",
	})
	if err != nil {
		t.Fatal(err)
	}
	panels, err := deploytest.Panels(body)
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, p := range panels {
		if p.Query == "" {
			continue
		}
		asked, err := deploytest.Ask(p.Query)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range asked.Fields {
			looked++
			if !c.fields[name] {
				t.Errorf("panel %s asks for %s, which no line has; there are %v", p.Title, name, slices.Sorted(maps.Keys(c.fields)))
			}
		}
	}
	if looked < 10 {
		t.Errorf("looked at %d fields only", looked)
	}
}

// A ledger charges by sizes: pk "pin#a" is 7 bytes, the attributes of a record 28 beside its
// body.
func TestLedger(t *testing.T) {
	ctx, l := t.Context(), &ledger{Backend: memstore.New()}
	key := store.Key{Kind: store.KindPin, ID: "a"}
	check := func(what string, want operations) {
		t.Helper()
		if got := l.take(); got != want {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	put := func(revision int64, bytes int) {
		t.Helper()
		if _, err := l.Put(ctx, store.Record{Key: key, Body: make([]byte, bytes)}, store.Condition{Revision: revision}); err != nil {
			t.Fatal(err)
		}
	}
	put(0, 1024-35)
	check("a kilobyte", operations{1, 0, 1})
	put(1, 1024-34)
	check("a byte more", operations{1, 0, 2})
	put(2, 10)
	check("smaller than before", operations{1, 0, 2})
	if _, err := l.Put(ctx, store.Record{Key: key}, store.Condition{}); err == nil {
		t.Fatal("a put over another's record succeeded")
	}
	check("a refused put", operations{1, 0, 1})
	put(3, 4097)
	check("five kilobytes", operations{1, 0, 5})
	if _, err := l.Get(ctx, []store.Key{key, {Kind: store.KindPin, ID: "nobody"}}); err != nil {
		t.Fatal(err)
	}
	check("five kilobytes and nothing", operations{1, 3, 0})
	if _, err := l.Add(ctx, store.Key{Kind: store.KindState, ID: "b"}, 0); err != nil {
		t.Fatal(err)
	}
	check("a count", operations{1, 0, 1})
	if err := l.Delete(ctx, key, 4); err != nil {
		t.Fatal(err)
	}
	check("a delete", operations{1, 0, 5})
}

// A thousand requests of one kind and a month of rounds, by hand.
func TestQuantities(t *testing.T) {
	c := counted{
		deployment: deployment{alarms: make([]metric.Name, 8), dashboards: 1},
		requests: []made{
			{operations: operations{5, 9, 3}},
			{operations: operations{4, 6, 3}},
			{kind: kind{perThousand: 900, streams: true}, operations: operations{1, 4, 0}, logBytes: 1000},
			{kind: kind{perThousand: 100}, operations: operations{2, 4, 1}, logBytes: 2000},
		},
		day:        day{operations: operations{0, 2400, 240}, logBytes: 24_000, seriesHours: 12},
		ofAccounts: make([]alarm.Alarm, 51),
	}
	a := assumptions{memory: 256, stream: 20 * time.Second, round: time.Second, start: time.Second, cold: 0.1, body: 1 << 20, answer: 0, requests: 10_000}
	near := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) < 1e-9*max(1, math.Abs(x)) })
	thousand := cost.Quantities{
		cost.Requests: 1000,
		cost.Compute:  0.25 * (900*20.1 + 100*1.1),
		cost.Transfer: 1000.0 / 1024,
		cost.Reads:    4000 + 100*(9-6+1),
		cost.Writes:   100,
		cost.Logs:     (900*1000 + 100*2000 + 1000*float64(platformLines)) / (1 << 30),
		cost.KeyCalls: 100,
	}
	if diff := cmp.Diff(thousand, c.perThousand(a), near); diff != "" {
		t.Errorf("a thousand requests (-want +got)\n%s", diff)
	}
	idle := cost.Quantities{
		cost.Requests: 43_800, cost.Compute: 43_800 * 0.125 * 1.1, cost.Schedules: 43_800,
		cost.Reads: 100*730 + 4380, cost.Writes: 10 * 730, cost.Metrics: 0.5, cost.Alarms: 59,
		cost.Calls: (4380 + 730) * 3, cost.Logs: (1000*730 + 43_800*float64(platformLines)) / (1 << 30), cost.Key: 1, cost.KeyCalls: 4380,
	}
	if diff := cmp.Diff(idle, c.idle(a), near); diff != "" {
		t.Errorf("an idle month (-want +got)\n%s", diff)
	}
	busy := idle.Plus(thousand.Times(10))
	if diff := cmp.Diff(busy, c.busy(a), near); diff != "" {
		t.Errorf("a busy month (-want +got)\n%s", diff)
	}
}

// A thousand requests are a thousand.
func TestKinds(t *testing.T) {
	sum := 0.0
	for _, k := range kinds {
		sum += k.perThousand
	}
	if sum != 1000 {
		t.Errorf("got %v requests of a thousand", sum)
	}
}

func TestReport(t *testing.T) {
	q := counted{fleet: fleets[0], requests: make([]made, len(kinds)), day: day{seriesHours: 3}}
	var out bytes.Buffer
	if err := report(&out, assumptions{memory: 128, requests: 1000}, []counted{q, q}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A thousand requests", "A month without a request", "A month with 1000 requests", "with what every account has free", "NeedsOwner", "100,000 streams"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %q in\n%s", want, &out)
		}
	}
}
