package storetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/serving"
	"holdfast/internal/store"
)

// newProvider is a provider that no other test has.
func newProvider() account.Provider { return account.Provider("suite-" + unique()) }

func readServing(t *testing.T, s *store.Store, p account.Provider) store.ServingRecord {
	t.Helper()
	v, err := s.Read(soon(t), store.Query{Serving: []account.Provider{p}})
	if err != nil {
		t.Fatalf("read: got %v, want no error", err)
	}
	return v.Serving[p]
}

// switchTo is the change that somebody asks for who sees that an account serves.
func switchTo(name string, at time.Time) func(serving.Record) (serving.Record, bool) {
	return func(r serving.Record) (serving.Record, bool) {
		if r.Name == name {
			return r, false
		}
		next := serving.Record{Account: account.ID("id-" + name), Name: name, At: at}
		if r.Name == "" {
			return next, true
		}
		next.Switches = []serving.Switch{{
			N: r.Count() + 1, At: at, From: serving.Account{ID: r.Account, Name: r.Name}, To: serving.Account{ID: next.Account, Name: name},
			Mode: serving.Reorder, Reason: serving.Quota,
		}}
		if !r.Full() {
			next.Switches = append(next.Switches, r.Switches...)
		}
		return next, true
	}
}

func changeServing(t *testing.T, s *store.Store, p account.Provider, base store.ServingRecord, name string) store.ServingRecord {
	t.Helper()
	r, err := s.ChangeServing(soon(t), p, base, switchTo(name, instant()))
	if err != nil {
		t.Errorf("change: got %v, want no error", err)
	}
	return r
}

// history reads the switches and checks that each is there once, newest first.
func history(t *testing.T, s *store.Store, p account.Provider, want int) []serving.Switch {
	t.Helper()
	switches, err := s.Switches(soon(t), p)
	if err != nil {
		t.Fatalf("switches: got %v, want no error", err)
	}
	if len(switches) != want {
		t.Fatalf("got %d switches, want %d", len(switches), want)
	}
	for i, sw := range switches {
		if sw.N != int64(want-i) {
			t.Errorf("got switch %d at %d, want %d", sw.N, i, want-i)
		}
		if i > 0 && switches[i].To.Name != switches[i-1].From.Name {
			t.Errorf("switch %d ends at %s, and the next begins at %s", sw.N, sw.To.Name, switches[i-1].From.Name)
		}
	}
	return switches
}

var servingTests = []test{
	{"NobodyIsZero", func(t *testing.T, h Harness) {
		s, p := h.stores(t, 1)[0], newProvider()
		if r := readServing(t, s, p); r.Revision != 0 || r.Account != "" {
			t.Errorf("got %+v, want the zero record", r)
		}
		history(t, s, p, 0)
	}},
	{"NotWorthItWritesNothing", func(t *testing.T, h Harness) {
		s, p := h.stores(t, 1)[0], newProvider()
		first := changeServing(t, s, p, store.ServingRecord{}, "marlow")
		if r := changeServing(t, s, p, first, "marlow"); r.Revision != 1 || readServing(t, s, p).Revision != 1 {
			t.Errorf("got revision %d, want 1", r.Revision)
		}
	}},
	{"OneSwitchIsOneEntry", func(t *testing.T, h Harness) {
		const racers = 16
		ss, p := h.stores(t, 4), newProvider()
		base := changeServing(t, ss[0], p, store.ServingRecord{}, "marlow")
		together(racers, func(i int) { changeServing(t, ss[i%len(ss)], p, base, "juniper") })
		for _, s := range ss {
			if r := readServing(t, s, p); r.Name != "juniper" || r.Revision != 2 {
				t.Errorf("got %s at revision %d, want juniper at 2", r.Name, r.Revision)
			}
			history(t, s, p, 1)
		}
	}},
	{"FirstIsMadeOnce", func(t *testing.T, h Harness) {
		ss, p := h.stores(t, 4), newProvider()
		together(8, func(i int) { changeServing(t, ss[i%len(ss)], p, store.ServingRecord{}, "marlow") })
		if r := readServing(t, ss[0], p); r.Revision != 1 || r.Name != "marlow" {
			t.Errorf("got %s at revision %d, want marlow at 1", r.Name, r.Revision)
		}
		history(t, ss[0], p, 0)
	}},
	{"HistoryOutgrowsTheRecord", func(t *testing.T, h Harness) {
		const switches = 3*serving.Recent + 1
		ss, p := h.stores(t, 2), newProvider()
		base := changeServing(t, ss[0], p, store.ServingRecord{}, "a")
		for i := range switches {
			name := []string{"b", "a"}[i%2]
			together(4, func(j int) { changeServing(t, ss[j%2], p, base, name) })
			base = readServing(t, ss[0], p)
			if len(base.Switches) > serving.Recent {
				t.Fatalf("got %d switches in the record, want at most %d", len(base.Switches), serving.Recent)
			}
			history(t, ss[1], p, i+1)
		}
	}},
	{"StoppedBetweenPastAndRecord", func(t *testing.T, h Harness) {
		p := newProvider()
		stopped := &stopping{Backend: h.open(t), before: store.Key{Kind: store.KindServing, ID: string(p)}}
		first, second := store.New(stopped).Within(patience), h.stores(t, 1)[0]
		base := changeServing(t, first, p, store.ServingRecord{}, "a")
		for i := range serving.Recent {
			base = changeServing(t, first, p, base, []string{"b", "a"}[i%2])
		}
		stopped.stops.Store(true) // the past is written, and the record is not
		if _, err := first.ChangeServing(soon(t), p, base, switchTo("b", instant())); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
		history(t, second, p, serving.Recent)
		changeServing(t, second, p, base, "b")
		history(t, second, p, serving.Recent+1)
	}},
	{"ProvidersApart", func(t *testing.T, h Harness) {
		s, one, other := h.stores(t, 1)[0], newProvider(), newProvider()
		changeServing(t, s, one, changeServing(t, s, one, store.ServingRecord{}, "a"), "b")
		changeServing(t, s, other, store.ServingRecord{}, "c")
		v, err := s.Read(soon(t), store.Query{Serving: []account.Provider{one, other, newProvider()}})
		if err != nil || len(v.Serving) != 2 || v.Serving[one].Name != "b" || v.Serving[other].Name != "c" {
			t.Errorf("got %+v and error %v, want b and c", v.Serving, err)
		}
		history(t, s, other, 0)
	}},
	{"Recorded", func(t *testing.T, h Harness) {
		// The catalog is everybody's, so this asks only for what is true of any: who serves is
		// written down for a provider under policy order, and once.
		ss := h.stores(t, 2)
		a := account.Account{ID: newAccount(), Name: "suite-" + unique(), Provider: account.XAI, AddedAt: instant()}
		add := func(c catalog.Catalog) (catalog.Catalog, error) {
			c.Accounts = append(slices.Clone(c.Accounts), a)
			return c, nil
		}
		if _, err := ss[0].ChangeCatalog(soon(t), add); err != nil {
			t.Fatal(err)
		}
		together(4, func(i int) {
			s := ss[i%2]
			looks, err := s.LookServing(soon(t), time.Now)
			if err := errors.Join(err, s.RecordServing(soon(t), looks)); err != nil {
				t.Errorf("record: got %v, want no error", err)
			}
		})
		if r := readServing(t, ss[0], account.XAI); r.Account == "" || r.Revision == 0 {
			t.Errorf("got %+v, want somebody to serve", r)
		}
		if r := readServing(t, ss[0], account.Anthropic); r.Revision != 0 {
			t.Errorf("under another policy: got %+v, want nothing", r)
		}
	}},
}

// stopping is a handle whose process ends before it writes a key, once stops is set.
type stopping struct {
	store.Backend
	before store.Key
	stops  atomic.Bool
}

func (s *stopping) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	if s.stops.Load() && r.Key == s.before {
		return store.Record{}, store.ErrUnavailable
	}
	return s.Backend.Put(ctx, r, cond)
}
