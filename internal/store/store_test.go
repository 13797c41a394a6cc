package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pin"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
)

// backend is a memstore whose calls a test can count or replace.
type backend struct {
	*memstore.Backend
	gets, puts, deletes int
	get                 func(ctx context.Context, keys []store.Key) ([]store.Record, error)
	put                 func(ctx context.Context, r store.Record) (store.Record, error)
	delete              func(ctx context.Context) error
}

func newBackend() *backend { return &backend{Backend: memstore.New()} }

func (b *backend) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	b.gets++
	if b.get != nil {
		return b.get(ctx, keys)
	}
	return b.Backend.Get(ctx, keys)
}

func (b *backend) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	b.puts++
	if b.put != nil {
		return b.put(ctx, r)
	}
	return b.Backend.Put(ctx, r, cond)
}

func (b *backend) Delete(ctx context.Context, key store.Key, revision int64) error {
	b.deletes++
	if b.delete != nil {
		return b.delete(ctx)
	}
	return b.Backend.Delete(ctx, key, revision)
}

func addKey(t *testing.T, s *store.Store, id string) {
	t.Helper()
	_, err := s.ChangeCatalog(t.Context(), func(c catalog.Catalog) (catalog.Catalog, error) {
		c.Keys = append(c.Keys[:len(c.Keys):len(c.Keys)], catalog.ClientKey{ID: id})
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadIsOneRoundTrip(t *testing.T) {
	b := newBackend()
	s := store.New(b)
	v, err := s.Read(t.Context(), store.Query{
		Catalog: true, Pins: []string{"k", "l"}, States: []account.ID{"a", "b"}, Credentials: []account.ID{"a", "b"},
	})
	if err != nil || b.gets != 1 {
		t.Errorf("got %d calls and error %v, want 1 and none", b.gets, err)
	}
	if v.Catalog.Catalog == nil || len(v.Pins) != 0 || len(v.States) != 2 || len(v.Credentials) != 0 {
		t.Errorf("got %+v, want an empty catalog, zero states and nothing else", v)
	}
	if v, err := s.Read(t.Context(), store.Query{}); err != nil || b.gets != 1 || v.Catalog.Catalog != nil {
		t.Errorf("nothing asked: got %d more calls and error %v, want none", b.gets-1, err)
	}
}

func TestUnchangedCatalogIsDecodedOnce(t *testing.T) {
	s := store.New(newBackend())
	addKey(t, s, "one")
	read := func() *catalog.Catalog {
		v, err := s.Read(t.Context(), store.Query{Catalog: true})
		if err != nil {
			t.Fatal(err)
		}
		return v.Catalog.Catalog
	}
	first := read()
	if second := read(); second != first {
		t.Error("got another decoding of the same revision, want the same one")
	}
	addKey(t, s, "two")
	if third := read(); third == first || len(third.Keys) != 2 || len(first.Keys) != 1 {
		t.Errorf("got %d keys, and %d in what was read before, want 2 and 1", len(third.Keys), len(first.Keys))
	}
}

// calls are those that a request or a command waits for.
var calls = map[string]func(ctx context.Context, s *store.Store) error{
	"Read": func(ctx context.Context, s *store.Store) error {
		_, err := s.Read(ctx, store.Query{Catalog: true})
		return err
	},
	"ClaimPin": func(ctx context.Context, s *store.Store) error {
		_, _, err := s.ClaimPin(ctx, "k", pin.Record{}, time.Now())
		return err
	},
	"ReplacePin": func(ctx context.Context, s *store.Store) error {
		_, _, err := s.ReplacePin(ctx, "k", pin.Record{})
		return err
	},
	"Fold": func(ctx context.Context, s *store.Store) error {
		_, err := s.Fold(ctx, "a", store.StateRecord{}, func(st account.State) (account.State, bool) { return st, true })
		return err
	},
	"Place": func(ctx context.Context, s *store.Store) error { _, _, err := s.Place(ctx, "a", 3); return err },
	"ChangeCatalog": func(ctx context.Context, s *store.Store) error {
		_, err := s.ChangeCatalog(ctx, func(c catalog.Catalog) (catalog.Catalog, error) { return c, nil })
		return err
	},
	"Credential": func(ctx context.Context, s *store.Store) error { _, err := s.Credential(ctx, "a"); return err },
	"PutCredential": func(ctx context.Context, s *store.Store) error {
		_, _, err := s.PutCredential(ctx, "a", []byte("sealed"), 0)
		return err
	},
	"TakeLease": func(ctx context.Context, s *store.Store) error {
		_, _, err := s.TakeLease(ctx, "x", "holder", time.Now(), time.Now())
		return err
	},
	"ReleaseLease": func(ctx context.Context, s *store.Store) error {
		return s.ReleaseLease(ctx, store.Lease{For: "x"}, time.Now())
	},
	"Renewals": func(ctx context.Context, s *store.Store) error {
		_, err := s.Renewals(ctx, []account.ID{"a"})
		return err
	},
	"PutRenewal": func(ctx context.Context, s *store.Store) error {
		_, _, err := s.PutRenewal(ctx, "a", store.Renewal{})
		return err
	},
	"Forget":   func(ctx context.Context, s *store.Store) error { return s.Forget(ctx, "a") },
	"KeyCheck": func(ctx context.Context, s *store.Store) error { _, err := s.KeyCheck(ctx); return err },
	"KeepKeyCheck": func(ctx context.Context, s *store.Store) error {
		_, err := s.KeepKeyCheck(ctx, []byte("sealed"))
		return err
	},
}

// silent is a backend that never answers.
type silent struct{ store.Backend }

func (silent) Get(ctx context.Context, _ []store.Key) ([]store.Record, error) {
	return nil, unanswered(ctx)
}
func (silent) Put(ctx context.Context, _ store.Record, _ store.Condition) (store.Record, error) {
	return store.Record{}, unanswered(ctx)
}
func (silent) Add(ctx context.Context, _ store.Key, _ int64) (int64, error) {
	return 0, unanswered(ctx)
}
func (silent) Delete(ctx context.Context, _ store.Key, _ int64) error { return unanswered(ctx) }

func unanswered(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
}

func TestCallsEndInTime(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // so the time is the bubble's own
				s := store.New(silent{})
				patient := s.Within(15 * time.Second)
				for _, c := range []struct {
					s    *store.Store
					want time.Duration
				}{{s, store.CallTimeout}, {patient, 15 * time.Second}, {s, store.CallTimeout}} {
					begun := time.Now()
					err := call(context.Background(), c.s)
					if !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("got %v, want ErrUnavailable", err)
					}
					if took := time.Since(begun); took != c.want {
						t.Errorf("got an end after %v, want %v", took, c.want)
					}
				}
			})
		})
	}
}

func TestFirstKeyCheckStays(t *testing.T) {
	s := store.New(newBackend())
	if got, err := s.KeyCheck(t.Context()); err != nil || got.Revision != 0 || got.Sealed != nil {
		t.Errorf("of a new store: got revision %d and error %v, want none", got.Revision, err)
	}
	for _, ours := range []string{"first", "second"} {
		if got, err := s.KeepKeyCheck(t.Context(), []byte(ours)); err != nil || string(got.Sealed) != "first" || got.Revision != 1 {
			t.Errorf("kept %s: got %q, revision %d and error %v, want the first", ours, got.Sealed, got.Revision, err)
		}
	}
	if got, err := s.KeyCheck(t.Context()); err != nil || string(got.Sealed) != "first" || got.Revision != 1 {
		t.Errorf("got %q, revision %d and error %v, want the first", got.Sealed, got.Revision, err)
	}
}

func TestFoldGivesUpToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.put = func(_ context.Context, r store.Record) (store.Record, error) { // somebody is always faster
			return store.Record{Key: r.Key, Revision: int64(b.puts), Body: []byte(`{"organization":"theirs"}`)}, store.ErrConflict
		}
		var seen []string
		_, err := store.New(b).Fold(t.Context(), "a", store.StateRecord{}, func(st account.State) (account.State, bool) {
			seen = append(seen, st.Organization)
			return st, true
		})
		if !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, want ErrConflict", err)
		}
		if len(seen) < 16 || seen[0] != "" || seen[1] != "theirs" {
			t.Errorf("got changes of %q, want at least 16 tries, from what was stored", seen)
		}
	})
}

func TestFoldThatIsNotStored(t *testing.T) {
	b := newBackend()
	cause := fmt.Errorf("%w: no disk", store.ErrUnavailable)
	b.put = func(context.Context, store.Record) (store.Record, error) { return store.Record{}, cause }
	base := store.StateRecord{State: account.State{Organization: "before"}, Revision: 4, Placed: 2}
	got, err := store.New(b).Fold(t.Context(), "a", base, func(st account.State) (account.State, bool) {
		st.Organization = "after"
		return st, true
	})
	if !errors.Is(err, cause) || got.Organization != "before" || got.Revision != 4 || got.Placed != 2 {
		t.Errorf("got %+v and error %v, want the state as it was, and the cause", got, err)
	}
	if b.puts != 1 {
		t.Errorf("got %d tries, want 1: the write may have been applied", b.puts)
	}
}

func TestForgetAmongOtherWriters(t *testing.T) {
	b := newBackend()
	s := store.New(b)
	if _, _, err := s.PutCredential(t.Context(), "a", []byte("sealed"), 0); err != nil {
		t.Fatal(err)
	}
	b.delete = func(ctx context.Context) error { // the credential is changed once more
		b.delete = nil
		_, _, err := s.PutCredential(ctx, "a", []byte("sealed anew"), 1)
		return errors.Join(store.ErrConflict, err)
	}
	if err := s.Forget(t.Context(), "a"); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	if c, err := s.Credential(t.Context(), "a"); err != nil || c.Revision != 0 {
		t.Errorf("got revision %d and error %v, want none left", c.Revision, err)
	}

	if _, _, err := s.PutCredential(t.Context(), "a", []byte("sealed"), 0); err != nil {
		t.Fatal(err)
	}
	b.deletes = 0
	b.delete = func(context.Context) error { return store.ErrConflict }
	if err := s.Forget(t.Context(), "a"); !errors.Is(err, store.ErrConflict) || b.deletes > 100 {
		t.Errorf("always changed: got %v after %d tries, want ErrConflict after a few", err, b.deletes)
	}
}

// The configuration alone cannot be done without.
func TestDamagedRecordsAreNamed(t *testing.T) {
	for _, c := range []struct {
		key   store.Key
		query store.Query
		says  string
	}{
		{store.Key{Kind: store.KindCatalog, ID: "catalog"}, store.Query{Catalog: true}, "decode catalog of catalog"},
	} {
		t.Run(string(c.key.Kind), func(t *testing.T) {
			b := newBackend()
			if _, err := b.Put(t.Context(), store.Record{Key: c.key, Body: []byte("{secret")}, store.Condition{}); err != nil {
				t.Fatal(err)
			}
			_, err := store.New(b).Read(t.Context(), c.query)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want it to say %q, and nothing of the record", err, c.says)
			}
		})
	}
}

func TestWritesThatFail(t *testing.T) {
	b := newBackend()
	b.put = func(context.Context, store.Record) (store.Record, error) { return store.Record{}, store.ErrUnavailable }
	s := store.New(b)
	got, won, err := s.ClaimPin(t.Context(), "k", pin.Record{Account: "a"}, time.Now())
	if !errors.Is(err, store.ErrUnavailable) || won || got.Account != "" {
		t.Errorf("claim: got %+v, %v and error %v, want no pin and ErrUnavailable", got, won, err)
	}
	sealed, won, err := s.PutCredential(t.Context(), "a", []byte("sealed"), 0)
	if !errors.Is(err, store.ErrUnavailable) || won || sealed.Revision != 0 {
		t.Errorf("credential: got %+v, %v and error %v, want none and ErrUnavailable", sealed, won, err)
	}
}

// A state that was removed and made again counts its revisions anew: what was decoded of
// the old one must not answer for it.
func TestForgottenStateIsNotRemembered(t *testing.T) {
	s := store.New(memstore.New())
	learn := func(organization string) {
		t.Helper()
		v, err := s.Read(t.Context(), store.Query{States: []account.ID{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Fold(t.Context(), "a", v.States["a"], func(st account.State) (account.State, bool) {
			st.Organization = organization
			return st, true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	organization := func() string {
		t.Helper()
		v, err := s.Read(t.Context(), store.Query{States: []account.ID{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		return v.States["a"].Organization
	}
	learn("old")
	if got := organization(); got != "old" {
		t.Fatalf("got %q", got)
	}
	if err := s.ForgetState(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	learn("new")
	if got := organization(); got != "new" {
		t.Errorf("got %q, want what was learnt since", got)
	}
}

// manyPins lists pins that are stored nowhere.
type manyPins struct {
	store.Backend
	n int
	// each is called before each record.
	each func(i int)
}

func (m manyPins) List(context.Context, store.Kind) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for i := range m.n {
			m.each(i)
			body := fmt.Appendf(nil, `{"account":"acc-%d","provider":"anthropic","created_at":"2027-03-04T09:30:00Z","touched_at":"2027-03-04T09:30:00Z","expires_at":"2027-03-04T11:00:00Z","kept":{"501000":3}}`, i%3)
			if i == 7 {
				body = []byte("{")
			}
			if !yield(store.Record{Key: store.Key{Kind: store.KindPin, ID: fmt.Sprint(i)}, Revision: 1, Body: body}, nil) {
				return
			}
		}
	}
}

// TestStatusOfAMillion is field case status-of-a-million: pins are counted without being kept,
// so that the memory does not grow with their number. An unreadable one is told and passed.
func TestStatusOfAMillion(t *testing.T) {
	const n = 200_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := heap(), uint64(0)
	pins := manyPins{n: n, each: func(i int) {
		if i%50_000 == 0 {
			most = max(most, heap())
		}
	}}
	got, err := store.New(pins).PinTally(t.Context(), time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	most = max(most, heap())
	if live := got.Live["acc-0"] + got.Live["acc-1"] + got.Live["acc-2"]; live != n-1 || got.Unreadable != 1 || got.Day.New != n-1 {
		t.Errorf("got %d live, %d new, %d unreadable, want %d, %[4]d and 1", live, got.Day.New, got.Unreadable, n-1)
	}
	// A pin alone takes half a kilobyte when it is decoded.
	if most > before+8<<20 {
		t.Errorf("the heap grew by %d KB over %d pins, want less than 8 MB", (most-before)>>10, n)
	}
}
