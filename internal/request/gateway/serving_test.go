package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/serving"
	"holdfast/internal/request/gateway"
	"holdfast/internal/store"
	"holdfast/internal/store/sqlitestore"
	"holdfast/internal/test/upstreamtest"
)

// order chooses policy order with a threshold, and waits until servers have seen it.
func (b *bench) order(threshold float64) {
	b.t.Helper()
	b.change(func(c catalog.Catalog) catalog.Catalog {
		next, err := c.SetPolicy(account.Anthropic, catalog.Order, threshold)
		if err != nil {
			b.t.Fatal(err)
		}
		return next
	})
	b.clock.advance(2 * time.Second)
}

// at sets how full an account's windows are read to be.
func (b *bench) at(name string, u float64) {
	b.t.Helper()
	b.fold(name, func(s account.State) account.State {
		return s.Observe(reading(b.clock.now(), u, u), 0, account.Rules{})
	})
}

// switches is the history as words, newest first.
func (b *bench) switches() []string {
	b.t.Helper()
	history, err := b.store.Switches(b.t.Context(), account.Anthropic)
	if err != nil {
		b.t.Fatal(err)
	}
	words := []string{}
	for _, s := range history {
		words = append(words, fmt.Sprintf("%s(%s) %s(%s) %s %s", s.From.Name, fullness(s.From), s.To.Name, fullness(s.To), s.Mode, s.Reason))
	}
	return words
}

func fullness(a serving.Account) string {
	if a.Utilization == nil {
		return "?"
	}
	return fmt.Sprintf("%.2f", *a.Utilization)
}

// recorded waits for the history to be as wanted: it is written beside the answer, whose
// end the client may hear of first.
func (b *bench) recorded(want ...string) {
	b.t.Helper()
	var got []string
	deadline := time.Now().Add(5 * time.Second)
	b.await("the history", func() bool {
		got = b.switches()
		return strings.Join(got, "\n") == strings.Join(want, "\n") || time.Now().After(deadline)
	})
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		b.t.Fatalf("got history\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// serves waits until the record says who serves.
func (b *bench) serves(want string) {
	b.t.Helper()
	b.await("the record to say that "+want+" serves", func() bool {
		v, err := b.store.Read(b.t.Context(), store.Query{Serving: []account.Provider{account.Anthropic}})
		if err != nil {
			b.t.Fatal(err)
		}
		return v.Serving[account.Anthropic].Name == want
	})
}

// TestThresholdSwitchesThereAndBack: two processes on one store, of which now one and now
// the other sees a changed threshold first. Each change is one entry.
func TestThresholdSwitchesThereAndBack(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	open := func() *store.Store {
		backend, err := sqlitestore.Open(dir, "unused.key")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { backend.Close() })
		return store.New(backend)
	}
	b.store = open()
	b.addAccount("marlow", account.Key)
	b.addAccount("juniper", account.Key)
	b.key = b.newKey(catalog.ClientKey{Name: "agents"})
	_, one := b.process(open(), nil)
	_, two := b.process(open(), nil)
	sessions := 0
	fresh := func(url, want string) {
		t.Helper()
		sessions++
		if r := b.served(ask{url: url, session: session(sessions)}); r.account() != want || r.pin() != "new" {
			t.Fatalf("got %s, pin %s, want %s, new", r.account(), r.pin(), want)
		}
	}

	b.order(0.80)
	b.at("marlow", 0.5)
	b.at("juniper", 0.1)
	fresh(one, "marlow")
	b.serves("marlow")
	fresh(two, "marlow")
	b.recorded() // the first is no switch

	there := "marlow(0.50) juniper(0.10) reorder quota"
	b.order(0.30)
	fresh(one, "juniper")
	b.recorded(there)
	fresh(two, "juniper")
	fresh(one, "juniper")
	b.recorded(there)

	back := "juniper(0.10) marlow(0.50) reorder returned"
	b.order(0.80)
	fresh(two, "marlow")
	b.recorded(back, there)
	fresh(one, "marlow")
	fresh(two, "marlow")
	b.recorded(back, there)

	// A conversation stays where it is, whoever serves.
	if r := b.served(ask{url: one, session: session(3)}); r.account() != "juniper" || r.pin() != "kept" {
		t.Errorf("got %s, pin %s, want juniper, kept", r.account(), r.pin())
	}
	b.recorded(back, there)
}

// TestLateProcessUndoesNoSwitch: a process that has not seen the new threshold yet goes by
// the old one, and writes nothing.
func TestLateProcessUndoesNoSwitch(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.order(0.80)
	b.at("marlow", 0.5)
	b.served(ask{session: session(1)})
	b.serves("marlow")
	// Its clock stands still an hour ahead, so that its catalog does not age, and its
	// readings seem to be the newest.
	still := b.clock.now().Add(time.Hour)
	_, late := b.process(b.store, func(o *gateway.Options) { o.Now = func() time.Time { return still } })
	b.served(ask{url: late, session: session(2)})
	b.order(0.30)
	if r := b.served(ask{session: session(3)}); r.account() != "juniper" {
		t.Fatalf("got %s, want juniper", r.account())
	}
	there := "marlow(0.50) juniper(0.20) reorder quota"
	b.recorded(there)
	if r := b.served(ask{url: late, session: session(4)}); r.account() != "marlow" {
		t.Fatalf("got %s, want marlow: it knows the old threshold only", r.account())
	}
	b.served(ask{session: session(5)})
	b.recorded(there)
}

// TestSwitchByAnAnswer: the answer that cools the serving account is the switch, and its
// reset the way back, by itself.
func TestSwitchByAnAnswer(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.order(0.80)
	b.served(ask{session: session(1)})
	b.serves("marlow")
	b.account("marlow").Queue(upstreamtest.FiveHourSpentTersely(b.clock.now().Add(time.Hour)))
	if r := b.served(ask{session: session(2)}); r.account() != "juniper" {
		t.Fatalf("got %s, want juniper", r.account())
	}
	b.recorded("marlow(1.01) juniper(0.20) reorder cooldown")
	b.clock.advance(time.Hour + time.Second)
	if r := b.served(ask{session: session(3)}); r.account() != "marlow" || r.pin() != "new" {
		t.Fatalf("got %s, pin %s, want marlow, new", r.account(), r.pin())
	}
	b.recorded("juniper(0.20) marlow(0.20) reorder returned", "marlow(1.01) juniper(0.20) reorder cooldown")
	if r := b.served(ask{session: session(2)}); r.account() != "juniper" || r.pin() != "kept" {
		t.Errorf("got %s, pin %s, want juniper, kept: its cache is there", r.account(), r.pin())
	}
}

// TestManyPicksOneEntry: many new conversations in two processes see the same switch.
func TestManyPicksOneEntry(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.order(0.80)
	b.served(ask{session: session(1)})
	b.serves("marlow")
	_, other := b.process(b.store, nil)
	b.at("marlow", 0.85)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if r := b.do(ask{url: []string{b.url, other}[i%2], session: session(100 + i)}); r.status != http.StatusOK || r.account() != "juniper" {
				t.Errorf("got %d by %s, want 200 by juniper", r.status, r.account())
			}
		})
	}
	all.Wait()
	b.recorded("marlow(0.85) juniper(0.20) reorder quota")
}

// TestServingCostsNoRoundTrip: under policy order a request reads the store once, as it
// does under the others, and one that changes nothing writes nothing for it.
func TestServingCostsNoRoundTrip(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.order(0.80)
	counted := &countedGets{Backend: b.backend()}
	_, url := b.process(store.New(counted), nil)
	b.served(ask{url: url, session: session(1)}) // the catalog, and opened credentials
	b.serves("marlow")
	counted.gets.Store(0)
	counted.serving.Store(0)
	b.served(ask{url: url, session: session(2)})
	b.served(ask{url: url, session: session(2)})
	if got := counted.gets.Load(); got != 2 {
		t.Errorf("got %d reads for two requests, want 2", got)
	}
	if got := counted.serving.Load(); got != 0 {
		t.Errorf("got %d writes of who serves, want none", got)
	}
}

// countedGets counts reads, and writes of who serves.
type countedGets struct {
	store.Backend
	gets, serving atomic.Int64
}

func (c *countedGets) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	c.gets.Add(1)
	return c.Backend.Get(ctx, keys)
}

func (c *countedGets) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	if r.Kind == store.KindServing {
		c.serving.Add(1)
	}
	return c.Backend.Put(ctx, r, cond)
}

// TestNotUnderOtherPolicies: who serves is a matter of policy order alone.
func TestNotUnderOtherPolicies(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.served(ask{session: session(1)})
	b.prefer("juniper", "marlow")
	b.served(ask{session: session(2)})
	v, err := b.store.Read(t.Context(), store.Query{Serving: []account.Provider{account.Anthropic}})
	if err != nil || v.Serving[account.Anthropic].Revision != 0 {
		t.Errorf("got %+v and error %v, want no record", v.Serving, err)
	}
}

// TestLossOfTheHistoryFailsNobody: that a switch cannot be written is logged, and the
// request goes on.
func TestLossOfTheHistoryFailsNobody(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.order(0.80)
	_, url := b.process(store.New(&noServing{b.backend()}), nil)
	b.served(ask{url: url, session: session(1)})
	b.await("the log line", func() bool { return strings.Contains(b.log.String(), `"what":"record who serves"`) })
}

// noServing cannot write who serves.
type noServing struct{ store.Backend }

func (n *noServing) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	if r.Kind == store.KindServing {
		return store.Record{}, store.ErrUnavailable
	}
	return n.Backend.Put(ctx, r, cond)
}

// TestServingKeepsOverTheThreshold: where policy order has passed all over, conversations go
// on where the last ones went until that account is five points fuller.
func TestServingKeepsOverTheThreshold(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.order(0.80)
	b.at("marlow", 0.90)
	b.at("juniper", 0.91)
	for i, tt := range []struct {
		marlow, juniper float64
		want            string
	}{{0.90, 0.91, "marlow"}, {0.93, 0.91, "marlow"}, {0.955, 0.91, "marlow"}, {0.96, 0.91, "juniper"}, {0.96, 0.97, "juniper"}} {
		b.at("marlow", tt.marlow)
		b.at("juniper", tt.juniper)
		if r := b.served(ask{session: session(i)}); r.account() != tt.want {
			t.Errorf("at %v and %v: got %s, want %s", tt.marlow, tt.juniper, r.account(), tt.want)
		}
		b.await("the record of who serves", func() bool {
			v, err := b.store.Read(t.Context(), store.Query{Serving: []account.Provider{account.Anthropic}})
			return err == nil && v.Serving[account.Anthropic].Name == tt.want
		})
		b.clock.advance(time.Second)
	}
}
