package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"holdfast/internal/store"
)

var getTests = []test{
	{"UnknownIsAbsent", func(t *testing.T, h Harness) {
		b := h.open(t)
		known, unknown := newKey(), newKey()
		want := create(t, b, store.Record{Key: known, Body: []byte("known")})
		found, err := b.Get(soon(t), []store.Key{unknown, known})
		if err != nil || len(found) != 1 {
			t.Fatalf("got %d records and error %v, want 1 and none", len(found), err)
		}
		same(t, "the known one", found[0], want)
		absent(t, b, unknown)
	}},
	{"KindsAreApart", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		create(t, b, store.Record{Key: key, Body: []byte("x")})
		absent(t, b, store.Key{Kind: newKind(), ID: key.ID})
	}},
	{"ManyKeys", func(t *testing.T, h Harness) {
		b := h.open(t)
		kind := newKind()
		var keys []store.Key
		for i := range 150 { // more than the 100 that DynamoDB takes at once
			key := store.Key{Kind: kind, ID: fmt.Sprintf("%03d", i)}
			keys = append(keys, key)
			if i%2 == 0 {
				create(t, b, store.Record{Key: key, Body: []byte(key.ID)})
			}
		}
		found, err := b.Get(soon(t), keys)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, r := range found {
			if seen[r.ID] || string(r.Body) != r.ID || r.Kind != kind || r.Revision != 1 {
				t.Errorf("got %s, want each record once and as written", words(r))
			}
			seen[r.ID] = true
		}
		if len(seen) != 75 {
			t.Errorf("got %d records, want the 75 that exist", len(seen))
		}
	}},
	{"SeesOtherHandles", func(t *testing.T, h Harness) {
		hs := h.handles(t, 2)
		key := newKey()
		absent(t, hs[1], key)
		r := create(t, hs[0], store.Record{Key: key, Body: []byte("1")})
		same(t, "after another handle created it", get(t, hs[1], key), r)
		for i := range 3 {
			r = put(t, hs[i%2], store.Record{Key: key, Body: fmt.Append(nil, i)}, store.Condition{Revision: r.Revision})
			same(t, "after another handle changed it", get(t, hs[1-i%2], key), r)
		}
		if _, err := hs[0].Add(soon(t), key, 0); err != nil {
			t.Fatal(err)
		}
		r.Count = 1
		same(t, "after another handle counted", get(t, hs[1], key), r)
		if err := hs[0].Delete(soon(t), key, r.Revision); err != nil {
			t.Fatal(err)
		}
		absent(t, hs[1], key)
	}},
}

var putTests = []test{
	{"CreatesOnce", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		first := create(t, b, store.Record{Key: key, Body: []byte("first")})
		same(t, "created", first, store.Record{Key: key, Revision: 1, Body: []byte("first")})
		conflict(t, b, store.Record{Key: key, Body: []byte("second")}, store.Condition{}, first)
	}},
	{"RevisionRisesByOne", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		create(t, b, store.Record{Key: key})
		for revision := int64(1); revision < 5; revision++ {
			got := put(t, b, store.Record{Key: key, Body: fmt.Append(nil, revision)}, store.Condition{Revision: revision})
			same(t, "replaced", got, store.Record{Key: key, Revision: revision + 1, Body: fmt.Append(nil, revision)})
			same(t, "read back", get(t, b, key), got)
		}
	}},
	{"StaleRevisionIsConflict", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		create(t, b, store.Record{Key: key, Body: []byte("1")})
		stored := put(t, b, store.Record{Key: key, Body: []byte("2")}, store.Condition{Revision: 1})
		for _, revision := range []int64{0, 1, 3} {
			conflict(t, b, store.Record{Key: key, Body: []byte("stale")}, store.Condition{Revision: revision}, stored)
		}
	}},
	{"NothingToReplaceIsConflict", func(t *testing.T, h Harness) {
		b := h.open(t)
		r := store.Record{Key: newKey(), Body: []byte("x")}
		conflict(t, b, r, store.Condition{Revision: 1}, store.Record{})
		conflict(t, b, r, store.Condition{Revision: 1, ExpiredBy: instant()}, store.Record{})
	}},
}

var countTests = []test{
	{"MakesTheRecord", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		count(t, b, key, 0, 1)
		count(t, b, key, 0, 2)
		same(t, "read back", get(t, b, key), store.Record{Key: key, Count: 2})
	}},
	{"CountedIsNotYetPut", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		count(t, b, key, 0, 1)
		conflict(t, b, store.Record{Key: key, Body: []byte("x")}, store.Condition{Revision: 1}, store.Record{Key: key, Count: 1})
		want := store.Record{Key: key, Revision: 1, Body: []byte("x"), Count: 1}
		same(t, "put", create(t, b, store.Record{Key: key, Body: []byte("x")}), want)
		same(t, "read back", get(t, b, key), want)
	}},
	{"PutKeepsIt", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		create(t, b, store.Record{Key: key, Body: []byte("1")})
		count(t, b, key, 0, 1)
		count(t, b, key, 0, 2)
		got := put(t, b, store.Record{Key: key, Body: []byte("2"), Count: 77}, store.Condition{Revision: 1})
		want := store.Record{Key: key, Revision: 2, Body: []byte("2"), Count: 2}
		same(t, "put", got, want)
		same(t, "read back", get(t, b, key), want)
	}},
	{"ChangesNothingElse", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		want := create(t, b, store.Record{Key: key, Body: []byte("x"), ExpiresAt: instant()})
		count(t, b, key, 0, 1)
		want.Count = 1
		same(t, "read back", get(t, b, key), want)
	}},
	{"StopsAtTheLimit", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		for n := int64(1); n <= 3; n++ {
			count(t, b, key, 3, n)
		}
		for range 2 {
			if n, err := b.Add(soon(t), key, 3); n != 3 || !errors.Is(err, store.ErrConflict) {
				t.Errorf("got %d and error %v, want 3 and ErrConflict", n, err)
			}
		}
		count(t, b, key, 0, 4)
		if n, err := b.Add(soon(t), key, 3); n != 4 || !errors.Is(err, store.ErrConflict) {
			t.Errorf("beyond the limit: got %d and error %v, want 4 and ErrConflict", n, err)
		}
	}},
}

func count(t *testing.T, b store.Backend, key store.Key, limit, want int64) {
	t.Helper()
	if n, err := b.Add(soon(t), key, limit); n != want || err != nil {
		t.Fatalf("add: got %d and error %v, want %d and none", n, err, want)
	}
}

var bodyTests = []test{
	{"Binary", func(t *testing.T, h Harness) {
		b := h.open(t)
		body := make([]byte, 256)
		for i := range body {
			body[i] = byte(i)
		}
		keeps(t, b, body)
	}},
	{"Empty", func(t *testing.T, h Harness) {
		b := h.open(t)
		keeps(t, b, nil)
		keeps(t, b, []byte{})
	}},
	{"Large", func(t *testing.T, h Harness) {
		keeps(t, h.open(t), bytes.Repeat([]byte("0123456789abcdef"), 16<<10)) // 256 KiB
	}},
	{"CallerMayReuseItsBytes", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		body := []byte("as written")
		create(t, b, store.Record{Key: key, Body: body})
		copy(body, "overwritten")
		if got := string(get(t, b, key).Body); got != "as written" {
			t.Errorf("got %q, want %q", got, "as written")
		}
	}},
}

// keeps checks that a body comes back as it was, to the writer, to a reader and to the
// loser of a race.
func keeps(t *testing.T, b store.Backend, body []byte) {
	t.Helper()
	key := newKey()
	created := create(t, b, store.Record{Key: key, Body: body})
	told, err := b.Put(soon(t), store.Record{Key: key, Body: []byte("other")}, store.Condition{})
	if !errors.Is(err, store.ErrConflict) {
		t.Fatalf("got error %v, want ErrConflict", err)
	}
	for what, r := range map[string]store.Record{"writer": created, "reader": get(t, b, key), "loser": told} {
		if !bytes.Equal(r.Body, body) {
			t.Errorf("%s: got %d other bytes, want the %d written", what, len(r.Body), len(body))
		}
	}
}

var expiryTests = []test{
	{"Milliseconds", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		at := instant().Add(time.Hour + 7*time.Millisecond)
		created := create(t, b, store.Record{Key: key, ExpiresAt: at.Add(999_999 * time.Nanosecond)})
		want := store.Record{Key: key, Revision: 1, ExpiresAt: at}
		same(t, "put", created, want)
		same(t, "read back", get(t, b, key), want)
	}},
	{"PutReplacesIt", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		create(t, b, store.Record{Key: key, ExpiresAt: instant()})
		later := instant().Add(time.Minute)
		same(t, "later", put(t, b, store.Record{Key: key, ExpiresAt: later}, store.Condition{Revision: 1}),
			store.Record{Key: key, Revision: 2, ExpiresAt: later})
		same(t, "never", put(t, b, store.Record{Key: key}, store.Condition{Revision: 2}), store.Record{Key: key, Revision: 3})
		same(t, "read back", get(t, b, key), store.Record{Key: key, Revision: 3})
	}},
	{"PastIsStillReturned", func(t *testing.T, h Harness) {
		b := h.open(t)
		at := instant().Add(-3 * time.Hour)
		want := create(t, b, store.Record{Key: newKey(), Body: []byte("x"), ExpiresAt: at, DeleteAfter: at.Add(24 * time.Hour)})
		same(t, "read back", get(t, b, want.Key), want)
	}},
	{"TakenOverFromItsInstantOn", func(t *testing.T, h Harness) {
		b := h.open(t)
		at := instant().Add(-3 * time.Hour)
		for _, c := range []struct {
			name  string
			by    time.Time
			taken bool
		}{
			{"a millisecond early", at.Add(-time.Millisecond), false},
			{"a nanosecond early", at.Add(-time.Nanosecond), false},
			{"at the instant", at, true},
			{"a nanosecond late", at.Add(time.Nanosecond), true},
			{"hours late", at.Add(3 * time.Hour), true},
		} {
			t.Run(c.name, func(t *testing.T) {
				key := newKey()
				old := create(t, b, store.Record{Key: key, Body: []byte("old"), ExpiresAt: at})
				next := store.Record{Key: key, Body: []byte("new"), ExpiresAt: at.Add(time.Hour)}
				if !c.taken {
					conflict(t, b, next, store.Condition{ExpiredBy: c.by}, old)
					return
				}
				got := put(t, b, next, store.Condition{ExpiredBy: c.by})
				next.Revision = 2
				same(t, "taken over", got, next)
				same(t, "read back", get(t, b, key), next)
			})
		}
	}},
	{"NeverIsNotTakenOver", func(t *testing.T, h Harness) {
		b := h.open(t)
		old := create(t, b, store.Record{Key: newKey(), Body: []byte("old")})
		conflict(t, b, store.Record{Key: old.Key}, store.Condition{ExpiredBy: instant().Add(time.Hour)}, old)
		key := newKey()
		create(t, b, store.Record{Key: key})
		count(t, b, key, 0, 1)
		conflict(t, b, store.Record{Key: key}, store.Condition{ExpiredBy: instant()}, store.Record{Key: key, Revision: 1, Count: 1})
	}},
	{"RevisionStillCounts", func(t *testing.T, h Harness) {
		b := h.open(t)
		now := instant()
		key := newKey()
		create(t, b, store.Record{Key: key, ExpiresAt: now.Add(time.Hour)})
		got := put(t, b, store.Record{Key: key, Body: []byte("2")}, store.Condition{Revision: 1, ExpiredBy: now})
		same(t, "live, with the right revision", got, store.Record{Key: key, Revision: 2, Body: []byte("2")})
	}},
}

var deleteTests = []test{
	{"Twice", func(t *testing.T, h Harness) {
		b := h.open(t)
		r := create(t, b, store.Record{Key: newKey(), Body: []byte("x")})
		for range 2 {
			if err := b.Delete(soon(t), r.Key, r.Revision); err != nil {
				t.Fatalf("got %v, want no error", err)
			}
			absent(t, b, r.Key)
		}
	}},
	{"Unknown", func(t *testing.T, h Harness) {
		b := h.open(t)
		for _, revision := range []int64{0, 1} {
			if err := b.Delete(soon(t), newKey(), revision); err != nil {
				t.Errorf("revision %d: got %v, want no error", revision, err)
			}
		}
	}},
	{"StaleRevisionIsConflict", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		create(t, b, store.Record{Key: key, Body: []byte("1")})
		stored := put(t, b, store.Record{Key: key, Body: []byte("2")}, store.Condition{Revision: 1})
		for _, revision := range []int64{0, 1, 3} {
			if err := b.Delete(soon(t), key, revision); !errors.Is(err, store.ErrConflict) {
				t.Errorf("revision %d: got %v, want ErrConflict", revision, err)
			}
		}
		same(t, "stored", get(t, b, key), stored)
	}},
	{"CountedButNeverPut", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		count(t, b, key, 0, 1)
		if err := b.Delete(soon(t), key, 1); !errors.Is(err, store.ErrConflict) {
			t.Errorf("revision 1: got %v, want ErrConflict", err)
		}
		if err := b.Delete(soon(t), key, 0); err != nil {
			t.Errorf("revision 0: got %v, want no error", err)
		}
		absent(t, b, key)
	}},
	{"ThenCreatedAnew", func(t *testing.T, h Harness) {
		b := h.open(t)
		key := newKey()
		create(t, b, store.Record{Key: key, Body: []byte("old"), ExpiresAt: instant()})
		count(t, b, key, 0, 1)
		if err := b.Delete(soon(t), key, 1); err != nil {
			t.Fatal(err)
		}
		conflict(t, b, store.Record{Key: key, Body: []byte("late")}, store.Condition{Revision: 1}, store.Record{})
		want := store.Record{Key: key, Revision: 1, Body: []byte("new")}
		same(t, "created", create(t, b, store.Record{Key: key, Body: []byte("new")}), want)
		same(t, "read back", get(t, b, key), want)
	}},
}

var listTests = []test{
	{"YieldsAllOfKind", func(t *testing.T, h Harness) {
		b := h.open(t)
		kind := newKind()
		want := map[string]store.Record{}
		for i := range 300 {
			r := create(t, b, store.Record{
				Key: store.Key{Kind: kind, ID: fmt.Sprintf("id-%03d", i)}, Body: fmt.Append(nil, i),
				ExpiresAt: instant().Add(time.Duration(i-150) * time.Minute), // ended ones too
			})
			want[r.ID] = r
		}
		counted := store.Key{Kind: kind, ID: "counted"}
		count(t, b, counted, 0, 1)
		want[counted.ID] = store.Record{Key: counted, Count: 1}
		create(t, b, store.Record{Key: newKey(), Body: []byte("of another kind")})
		for r, err := range b.List(soon(t), kind) {
			if err != nil {
				t.Fatal(err)
			}
			same(t, "listed", r, want[r.ID])
			delete(want, r.ID) // so that a second one is told
		}
		if len(want) != 0 {
			t.Errorf("got %d records too few", len(want))
		}
	}},
	{"NoneOfKind", func(t *testing.T, h Harness) {
		for r, err := range h.open(t).List(soon(t), newKind()) {
			t.Errorf("got %s and error %v, want nothing", words(r), err)
		}
	}},
	{"StoreWorksMeanwhile", func(t *testing.T, h Harness) {
		b := h.open(t)
		kind := newKind()
		for i := range 3 {
			create(t, b, store.Record{Key: store.Key{Kind: kind, ID: fmt.Sprint(i)}})
		}
		listed := 0
		for r, err := range b.List(soon(t), kind) {
			if err != nil {
				t.Fatal(err)
			}
			put(t, b, store.Record{Key: r.Key, Body: []byte("seen")}, store.Condition{Revision: 1})
			listed++
		}
		if listed != 3 {
			t.Errorf("got %d records, want 3", listed)
		}
	}},
	{"MayStopEarly", func(t *testing.T, h Harness) {
		b := h.open(t)
		kind := newKind()
		for i := range 3 {
			create(t, b, store.Record{Key: store.Key{Kind: kind, ID: fmt.Sprint(i)}})
		}
		for _, err := range b.List(soon(t), kind) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		count(t, b, newKey(), 0, 1) // and the store goes on
	}},
}

var contextTests = []test{
	{"EndedGivesUnavailable", func(t *testing.T, h Harness) {
		b := h.open(t)
		r := create(t, b, store.Record{Key: newKey(), Body: []byte("x")})
		get(t, b, r.Key)
		ctx, cancel := context.WithCancel(soon(t))
		cancel()
		for name, call := range map[string]func() error{
			"get": func() error { _, err := b.Get(ctx, []store.Key{r.Key}); return err },
			"put": func() error { _, err := b.Put(ctx, r, store.Condition{Revision: 1}); return err },
			"add": func() error { _, err := b.Add(ctx, r.Key, 0); return err },
			"delete": func() error {
				return b.Delete(ctx, store.Key{Kind: r.Kind, ID: "other"}, 1)
			},
			"list": func() error {
				for _, err := range b.List(ctx, r.Kind) {
					return err
				}
				return nil
			},
		} {
			if err := call(); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: got %v, want ErrUnavailable", name, err)
			}
		}
		count(t, b, newKey(), 0, 1) // and the store goes on
	}},
}
