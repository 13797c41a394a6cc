package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/object"
	"holdfast/internal/core/pin"
	"holdfast/internal/store"
)

const kept = 30 * 24 * time.Hour

// checkOwner checks what a write answered and what is now stored.
func checkOwner(t *testing.T, s *store.Store, key string, got object.Record, ours bool, err error, won bool, want object.Record) {
	t.Helper()
	checkWrite(t, got, ours, err, won, want, func() object.Record { return readOwner(t, s, key) })
}

// readOwner is the stored record, the zero one where none exists.
func readOwner(t *testing.T, s *store.Store, key string) object.Record {
	t.Helper()
	v, err := s.Read(soon(t), store.Query{Owners: []string{key}})
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	return v.Owners[key]
}

func ownerAt(r object.Record, revision int64) object.Record {
	r.Revision = revision
	return r
}

var ownerTests = []test{
	{"FirstStays", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		key, now := unique(), instant()
		first := object.New(anthropic("first"), kept, now)
		got, won, err := ss[0].ClaimOwner(soon(t), key, first, now)
		checkOwner(t, ss[0], key, got, won, err, true, ownerAt(first, 1))
		got, won, err = ss[1].ClaimOwner(soon(t), key, object.New(anthropic("second"), kept, now), now)
		checkOwner(t, ss[1], key, got, won, err, false, ownerAt(first, 1))
	}},
	{"ExpiredIsTakenOver", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		key, made := unique(), instant()
		old := object.New(anthropic("old"), kept, made)
		if _, _, err := ss[0].ClaimOwner(soon(t), key, old, made); err != nil {
			t.Fatal(err)
		}
		end := readOwner(t, ss[1], key).ExpiresAt
		next := object.New(anthropic("next"), kept, end)
		got, won, err := ss[1].ClaimOwner(soon(t), key, next, end.Add(-1))
		checkOwner(t, ss[1], key, got, won, err, false, ownerAt(old, 1))
		got, won, err = ss[1].ClaimOwner(soon(t), key, next, end)
		checkOwner(t, ss[0], key, got, won, err, true, ownerAt(next, 2))
	}},
	{"LateTouchIsLost", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		key, now := unique(), instant()
		r := object.New(anthropic("a"), kept, now)
		if _, _, err := ss[0].ClaimOwner(soon(t), key, r, now); err != nil {
			t.Fatal(err)
		}
		seen := readOwner(t, ss[0], key)
		touched := seen.Touch(now.Add(48 * time.Hour))
		got, won, err := ss[1].ReplaceOwner(soon(t), key, touched)
		checkOwner(t, ss[1], key, got, won, err, true, ownerAt(touched, 2))
		got, won, err = ss[0].ReplaceOwner(soon(t), key, seen.Touch(now.Add(24*time.Hour)))
		checkOwner(t, ss[0], key, got, won, err, false, ownerAt(touched, 2))
	}},
	{"ForgottenTwice", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		key, now := unique(), instant()
		r := object.New(anthropic("a"), kept, now)
		stored, _, err := ss[0].ClaimOwner(soon(t), key, r, now)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := ss[1].ForgetOwner(soon(t), key, stored); err != nil {
				t.Errorf("got %v, want no error", err)
			}
		}
		got, won, err := ss[0].ReplaceOwner(soon(t), key, stored.Touch(now))
		checkOwner(t, ss[0], key, got, won, err, false, object.Record{})
	}},
	{"ForgettingLeavesALaterOne", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		key, now := unique(), instant()
		stored, _, err := s.ClaimOwner(soon(t), key, object.New(anthropic("a"), kept, now), now)
		if err != nil {
			t.Fatal(err)
		}
		touched := stored.Touch(now.Add(48 * time.Hour))
		if _, _, err := s.ReplaceOwner(soon(t), key, touched); err != nil {
			t.Fatal(err)
		}
		if err := s.ForgetOwner(soon(t), key, stored); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if d := cmp.Diff(ownerAt(touched, 2), readOwner(t, s, key)); d != "" {
			t.Errorf("stored (-want +got):\n%s", d)
		}
	}},
	{"ReadBesidePinsAndStates", func(t *testing.T, h Harness) {
		// One key may be a pin's and an object's: kinds keep them apart.
		s := h.stores(t, 1)[0]
		key, id, now := unique(), newAccount(), instant()
		r := object.New(anthropic(id), kept, now)
		if _, _, err := s.ClaimOwner(soon(t), key, r, now); err != nil {
			t.Fatal(err)
		}
		p := pin.New(anthropic("b"), false, now, life)
		if _, _, err := s.ClaimPin(soon(t), key, p, now); err != nil {
			t.Fatal(err)
		}
		place(t, s, id, 0, 1, true)
		v, err := s.Read(soon(t), store.Query{Owners: []string{key, unique()}, Pins: []string{key}, States: []account.ID{id}})
		if err != nil {
			t.Fatal(err)
		}
		want := store.View{
			Owners: map[string]object.Record{key: ownerAt(r, 1)}, Pins: map[string]pin.Record{key: revision(p, 1)},
			States: map[account.ID]store.StateRecord{id: {Placed: 1}}, Credentials: map[account.ID]store.SealedRecord{},
		}
		if d := cmp.Diff(want, v); d != "" {
			t.Errorf("view (-want +got):\n%s", d)
		}
	}},
}
