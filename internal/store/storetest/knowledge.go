package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/store"
)

var rules = account.Rules{BarePause: 5 * time.Second}

func reading(at time.Time, window string, utilization float64) account.Reading {
	return account.Reading{At: at, Source: account.FromAnswer, Windows: []account.WindowReading{
		{Name: window, Utilization: utilization, HasUtilization: true, ResetAt: at.Add(5 * time.Hour), Status: account.Allowed},
	}}
}

// fold folds a reading in as the gateway does, from the state as last read.
func fold(t *testing.T, s *store.Store, id account.ID, base store.StateRecord, r account.Reading) store.StateRecord {
	t.Helper()
	next, err := s.Fold(soon(t), id, base, func(st account.State) (account.State, bool) {
		folded := st.Observe(r, 0, rules)
		return folded, account.WorthStoring(st, folded, account.RedateEvery)
	})
	if err != nil {
		t.Errorf("fold: got %v, want no error", err)
	}
	return next
}

func readState(t *testing.T, s *store.Store, id account.ID) store.StateRecord {
	t.Helper()
	v, err := s.Read(soon(t), store.Query{States: []account.ID{id}})
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	return v.States[id]
}

var stateTests = []test{
	{"UnseenIsZero", func(t *testing.T, h Harness) {
		if d := cmp.Diff(store.StateRecord{}, readState(t, h.stores(t, 1)[0], newAccount())); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}},
	{"OlderReadingIgnored", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		id, now := newAccount(), instant()
		fold(t, ss[0], id, store.StateRecord{}, reading(now, account.Weekly, 0.5))
		// The second process knows nothing yet, and its answer came before the first's.
		fold(t, ss[1], id, store.StateRecord{}, reading(now.Add(-time.Minute), account.Weekly, 0.9))
		for i, s := range ss {
			w := readState(t, s, id).Windows[account.Weekly]
			if w.Utilization != 0.5 || !w.ObservedAt.Equal(now) {
				t.Errorf("handle %d: got %v at %v, want 0.5 at %v", i, w.Utilization, w.ObservedAt, now)
			}
		}
	}},
	{"ForgottenStaysForgotten", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		id, now := newAccount(), instant()
		known := fold(t, ss[0], id, store.StateRecord{}, reading(now, account.Weekly, 0.5))
		if err := ss[1].ForgetState(soon(t), id); err != nil {
			t.Fatal(err)
		}
		late := fold(t, ss[0], id, known, reading(now.Add(time.Minute), account.Weekly, 0.6))
		if got := late.Windows[account.Weekly].Utilization; got != 0.6 {
			t.Errorf("got %v for the one who folded, want 0.6", got)
		}
		if d := cmp.Diff(store.StateRecord{}, readState(t, ss[0], id)); d != "" {
			t.Errorf("stored (-want +got):\n%s", d)
		}
		fold(t, ss[0], id, store.StateRecord{}, reading(now.Add(2*time.Minute), account.Weekly, 0.7))
		if got := readState(t, ss[1], id).Windows[account.Weekly].Utilization; got != 0.7 {
			t.Errorf("begun anew: got %v, want 0.7", got)
		}
	}},
	{"NewerReadingWins", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		id, now := newAccount(), instant()
		fold(t, ss[0], id, store.StateRecord{}, reading(now, account.Weekly, 0.5))
		fold(t, ss[1], id, store.StateRecord{}, reading(now.Add(time.Minute), account.Weekly, 0.6))
		if got := readState(t, ss[0], id).Windows[account.Weekly].Utilization; got != 0.6 {
			t.Errorf("got %v, want 0.6", got)
		}
	}},
	{"ConcurrentFoldsAllSurvive", func(t *testing.T, h Harness) {
		const writers = 16
		ss := h.stores(t, 4)
		id, now := newAccount(), instant()
		together(writers, func(i int) {
			s := ss[i%len(ss)]
			fold(t, s, id, store.StateRecord{}, reading(now, fmt.Sprintf("%dh", i+6), float64(i)/100))
		})
		st := readState(t, ss[0], id)
		for i := range writers {
			name := fmt.Sprintf("%dh", i+6)
			if w, ok := st.Windows[name]; !ok || w.Utilization != float64(i)/100 {
				t.Errorf("window %s: got %v (there: %v), want %v", name, w.Utilization, ok, float64(i)/100)
			}
		}
		if st.Revision != writers {
			t.Errorf("got revision %d, want %d: one for each fold", st.Revision, writers)
		}
	}},
	{"NotWorthItWritesNothing", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		id, now := newAccount(), instant()
		first := fold(t, s, id, store.StateRecord{}, reading(now, account.Weekly, 0.5))
		again := reading(now.Add(time.Second), account.Weekly, 0.5)
		again.Windows[0].ResetAt = now.Add(5 * time.Hour)
		if got := fold(t, s, id, first, again); got.Revision != 1 {
			t.Errorf("answered: got revision %d, want 1", got.Revision)
		}
		if got := readState(t, s, id); got.Revision != 1 {
			t.Errorf("stored: got revision %d, want 1", got.Revision)
		}
	}},
	{"CountSurvivesFold", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		id, now := newAccount(), instant()
		place(t, ss[0], id, 0, 1, true)
		st := fold(t, ss[1], id, readState(t, ss[1], id), reading(now, account.Weekly, 0.5))
		if st.Placed != 1 || st.Revision != 1 {
			t.Errorf("folded: got placed %d and revision %d, want 1 and 1", st.Placed, st.Revision)
		}
		place(t, ss[0], id, 0, 2, true)
		st = readState(t, ss[1], id)
		if st.Placed != 2 || st.Revision != 1 || st.Windows[account.Weekly].Utilization != 0.5 {
			t.Errorf("got placed %d, revision %d, windows %v, want 2, 1 and weekly at 0.5", st.Placed, st.Revision, st.Windows)
		}
	}},
}

func place(t *testing.T, s *store.Store, id account.ID, limit, want int64, counted bool) {
	t.Helper()
	n, ok, err := s.Place(soon(t), id, limit)
	if err != nil || n != want || ok != counted {
		t.Errorf("place: got %d, %v and error %v, want %d, %v and none", n, ok, err, want, counted)
	}
}

var placeTests = []test{
	{"LimitExact", func(t *testing.T, h Harness) {
		const limit, racers = 3, 24
		ss := h.stores(t, 4)
		id := newAccount()
		answers := make([]int64, racers)
		together(racers, func(i int) {
			n, ok, err := ss[i%len(ss)].Place(soon(t), id, limit)
			switch {
			case err != nil:
				t.Errorf("place: got %v, want no error", err)
			case ok:
				answers[i] = n
			case n != limit:
				t.Errorf("turned away: got a count of %d, want %d", n, limit)
			}
		})
		slices.Sort(answers)
		if got := answers[racers-limit:]; !slices.Equal(got, []int64{1, 2, 3}) || answers[racers-limit-1] != 0 {
			t.Errorf("got counts %v, want 1, 2 and 3 once each", answers)
		}
		if st := readState(t, ss[0], id); st.Placed != limit {
			t.Errorf("stored: got %d, want %d", st.Placed, limit)
		}
	}},
	{"WithoutLimitCountsAll", func(t *testing.T, h Harness) {
		const racers = 24
		ss := h.stores(t, 4)
		id := newAccount()
		answers := make([]int64, racers)
		together(racers, func(i int) {
			n, ok, err := ss[i%len(ss)].Place(soon(t), id, 0)
			if err != nil || !ok {
				t.Errorf("place: got %v and error %v, want true and none", ok, err)
			}
			answers[i] = n
		})
		slices.Sort(answers)
		for i, n := range answers {
			if n != int64(i)+1 {
				t.Fatalf("got counts %v, want each of 1 to %d once", answers, racers)
			}
		}
	}},
}

var catalogTests = []test{
	{"ConcurrentChangesAllSurvive", func(t *testing.T, h Harness) {
		const writers = 16
		ss := h.stores(t, 4)
		ids := make([]string, writers)
		together(writers, func(i int) {
			ids[i] = unique()
			if _, err := addKey(t, ss[i%len(ss)], ids[i]); err != nil {
				t.Errorf("change: got %v, want no error", err)
			}
		})
		for i, s := range ss {
			has := keyIDs(t, s)
			for _, id := range ids {
				if !slices.Contains(has, id) {
					t.Errorf("handle %d: got no key %s, want all %d", i, id, writers)
				}
			}
		}
	}},
	{"SeenByOtherHandles", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		keyIDs(t, ss[1])
		id := unique()
		changed, err := addKey(t, ss[0], id)
		if err != nil {
			t.Fatal(err)
		}
		v, err := ss[1].Read(soon(t), store.Query{Catalog: true})
		if err != nil {
			t.Fatal(err)
		}
		if v.Catalog.Revision < changed.Revision || !slices.Contains(keyIDs(t, ss[1]), id) {
			t.Errorf("got revision %d, want at least %d, with key %s", v.Catalog.Revision, changed.Revision, id)
		}
	}},
	{"RefusedChangeWritesNothing", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		id := unique()
		refusal := errors.New("no such account")
		_, err := s.ChangeCatalog(soon(t), func(c catalog.Catalog) (catalog.Catalog, error) {
			c.Keys = append(slices.Clone(c.Keys), catalog.ClientKey{ID: id})
			return c, refusal
		})
		if !errors.Is(err, refusal) {
			t.Errorf("got %v, want the refusal itself", err)
		}
		if slices.Contains(keyIDs(t, s), id) {
			t.Errorf("got key %s, want it not stored", id)
		}
	}},
}

func addKey(t *testing.T, s *store.Store, id string) (store.CatalogRecord, error) {
	t.Helper()
	return s.ChangeCatalog(soon(t), func(c catalog.Catalog) (catalog.Catalog, error) {
		c.Keys = append(slices.Clone(c.Keys), catalog.ClientKey{ID: id, Name: id, CreatedAt: instant()})
		return c, nil
	})
}

func keyIDs(t *testing.T, s *store.Store) []string {
	t.Helper()
	v, err := s.Read(soon(t), store.Query{Catalog: true})
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	var ids []string
	for _, k := range v.Catalog.Keys {
		ids = append(ids, k.ID)
	}
	return ids
}

// seal writes a sealed credential and checks who won and what is now stored.
func seal(t *testing.T, s *store.Store, id account.ID, sealed string, revision int64, won bool, want store.SealedRecord) {
	t.Helper()
	got, ours, err := s.PutCredential(soon(t), id, []byte(sealed), revision)
	if err != nil || ours != won {
		t.Fatalf("got won %v and error %v, want %v and none", ours, err, won)
	}
	stored, err := s.Credential(soon(t), id)
	if err != nil {
		t.Fatal(err)
	}
	for what, r := range map[string]store.SealedRecord{"answered": got, "stored": stored} {
		if !bytes.Equal(r.Sealed, want.Sealed) || r.Revision != want.Revision {
			t.Errorf("%s: got %q at revision %d, want %q at %d", what, r.Sealed, r.Revision, want.Sealed, want.Revision)
		}
	}
}

var credentialTests = []test{
	{"NoneIsZero", func(t *testing.T, h Harness) {
		got, err := h.stores(t, 1)[0].Credential(soon(t), newAccount())
		if err != nil || got.Sealed != nil || got.Revision != 0 {
			t.Errorf("got %d bytes, revision %d and error %v, want none", len(got.Sealed), got.Revision, err)
		}
	}},
	{"StaleRevisionCannotReplace", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		id := newAccount()
		seal(t, ss[0], id, "one\x00\xff", 0, true, store.SealedRecord{Sealed: []byte("one\x00\xff"), Revision: 1})
		seal(t, ss[1], id, "two", 1, true, store.SealedRecord{Sealed: []byte("two"), Revision: 2})
		for _, stale := range []int64{0, 1} {
			seal(t, ss[0], id, "late", stale, false, store.SealedRecord{Sealed: []byte("two"), Revision: 2})
		}
	}},
	{"ReplacingNoneIsLost", func(t *testing.T, h Harness) {
		seal(t, h.stores(t, 1)[0], newAccount(), "x", 1, false, store.SealedRecord{})
	}},
}

var forgetTests = []test{
	{"Twice", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		id, other, now := newAccount(), newAccount(), instant()
		for _, a := range []account.ID{id, other} {
			seal(t, s, a, "x", 0, true, store.SealedRecord{Sealed: []byte("x"), Revision: 1})
			place(t, s, a, 0, 1, true)
			fold(t, s, a, store.StateRecord{}, reading(instant(), account.Weekly, 0.5))
			addPoint(t, s, a, point(now, 0.5), true)
			setClock(t, s, a, store.Clock{PointAt: now})
		}
		for range 2 {
			if err := s.Forget(soon(t), id); err != nil {
				t.Fatalf("got %v, want no error", err)
			}
			c, err := s.Credential(soon(t), id)
			if st := readState(t, s, id); err != nil || c.Revision != 0 || st.Revision != 0 || st.Placed != 0 {
				t.Errorf("got credential %d, state %d, placed %d, error %v, want nothing left", c.Revision, st.Revision, st.Placed, err)
			}
			if points := pointsOf(t, s, id, now.Add(-time.Hour), now); len(points) != 0 {
				t.Errorf("got history %v, want none", points)
			}
			if clock, ok := readPoll(t, s).Clocks[id]; ok {
				t.Errorf("got clock %+v, want none", clock)
			}
		}
		if got := pointsOf(t, s, other, now.Add(-time.Hour), now); len(got) != 1 {
			t.Errorf("another account: got history %v, want its point", got)
		}
		if _, ok := readPoll(t, s).Clocks[other]; !ok {
			t.Error("another account: got no clock, want its own")
		}
		if st := readState(t, s, other); st.Placed != 1 || st.Revision != 1 {
			t.Errorf("another account: got placed %d, revision %d, want 1 and 1", st.Placed, st.Revision)
		}
	}},
	{"StateAlone", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		id := newAccount()
		seal(t, s, id, "x", 0, true, store.SealedRecord{Sealed: []byte("x"), Revision: 1})
		place(t, s, id, 0, 1, true)
		fold(t, s, id, store.StateRecord{}, reading(instant(), account.Weekly, 0.5))
		now := instant()
		addPoint(t, s, id, point(now, 0.5), true)
		setClock(t, s, id, store.Clock{PointAt: now})
		if err := s.ForgetState(soon(t), id); err != nil {
			t.Fatal(err)
		}
		if points := pointsOf(t, s, id, now.Add(-time.Hour), now); len(points) != 0 {
			t.Errorf("got history %v, want none", points)
		}
		if clock, ok := readPoll(t, s).Clocks[id]; ok {
			t.Errorf("got clock %+v, want none", clock)
		}
		c, err := s.Credential(soon(t), id)
		if st := readState(t, s, id); err != nil || c.Revision != 1 || st.Revision != 0 || st.Placed != 0 || st.Seen() {
			t.Errorf("got credential %d, state %d, placed %d, error %v, want the credential alone", c.Revision, st.Revision, st.Placed, err)
		}
	}},
}
