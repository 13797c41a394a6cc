package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pin"
	"holdfast/internal/store"
)

const life = time.Hour

func anthropic(id account.ID) account.Account {
	return account.Account{ID: id, Name: string(id), Provider: account.Anthropic, Kind: account.Subscription}
}

// claim claims a pin and checks who won it and which pin is now stored.
func claim(t *testing.T, s *store.Store, key string, r pin.Record, now time.Time, won bool, want pin.Record) {
	t.Helper()
	got, ours, err := s.ClaimPin(soon(t), key, r, now)
	checkPin(t, s, key, got, ours, err, won, want)
}

// replace is the same for a touch or a move.
func replace(t *testing.T, s *store.Store, key string, next pin.Record, won bool, want pin.Record) {
	t.Helper()
	got, ours, err := s.ReplacePin(soon(t), key, next)
	checkPin(t, s, key, got, ours, err, won, want)
}

func checkPin(t *testing.T, s *store.Store, key string, got pin.Record, ours bool, err error, won bool, want pin.Record) {
	t.Helper()
	checkWrite(t, got, ours, err, won, want, func() pin.Record { return readPin(t, s, key) })
}

// checkWrite checks what a conditional write answered, and that the same is stored.
func checkWrite[R any](t *testing.T, got R, ours bool, err error, won bool, want R, stored func() R) {
	t.Helper()
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	if ours != won {
		t.Errorf("got won %v, want %v", ours, won)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("answered (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, stored()); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
}

// readPin is the stored pin, the zero Record where none exists.
func readPin(t *testing.T, s *store.Store, key string) pin.Record {
	t.Helper()
	v, err := s.Read(soon(t), store.Query{Pins: []string{key}})
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	return v.Pins[key]
}

func revision(r pin.Record, n int64) pin.Record {
	r.Revision = n
	return r
}

var pinTests = []test{
	{"LoserSeesWinner", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		key, now := unique(), instant()
		first := pin.New(anthropic("first"), false, now, life)
		second := pin.New(anthropic("second"), true, now, life)
		claim(t, ss[0], key, first, now, true, revision(first, 1))
		claim(t, ss[1], key, second, now, false, revision(first, 1))
		claim(t, ss[1], key, second, now.Add(life), false, revision(first, 1))
	}},
	{"ClaimingAgainFindsOurOwn", func(t *testing.T, h Harness) {
		// A claim that was applied though its answer got lost is claimed once more.
		s := h.stores(t, 1)[0]
		key, now := unique(), instant()
		r := pin.New(anthropic("ours"), false, now, life)
		claim(t, s, key, r, now, true, revision(r, 1))
		claim(t, s, key, r, now, false, revision(r, 1))
	}},
	{"ExpiredIsTakenOver", func(t *testing.T, h Harness) {
		// pin-store-races: the record is still there, three hours past its end.
		ss := h.stores(t, 2)
		key, now := unique(), instant()
		old := pin.New(anthropic("old"), false, now.Add(-3*time.Hour-life-pin.TouchEvery(life)), life)
		claim(t, ss[0], key, old, old.CreatedAt, true, revision(old, 1))
		if !old.ExpiresAt.Equal(now.Add(-3 * time.Hour)) {
			t.Fatalf("got an end at %v, want three hours ago", old.ExpiresAt)
		}
		next := pin.New(anthropic("next"), false, now, life)
		claim(t, ss[1], key, next, now, true, revision(next, 2))
		claim(t, ss[0], key, old, now, false, revision(next, 2))
	}},
	{"EndsAtItsInstant", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		made := instant().Add(300 * time.Microsecond) // ends between two milliseconds
		for _, c := range []struct {
			name string
			at   time.Duration // from the stored end
			won  bool
		}{
			{"a millisecond early", -time.Millisecond, false},
			{"a nanosecond early", -time.Nanosecond, false},
			{"at the instant", 0, true},
			{"a nanosecond late", time.Nanosecond, true},
		} {
			t.Run(c.name, func(t *testing.T) {
				key := unique()
				old := pin.New(anthropic("old"), false, made, life)
				if _, _, err := s.ClaimPin(soon(t), key, old, made); err != nil {
					t.Fatal(err)
				}
				stored := readPin(t, s, key)
				now := stored.ExpiresAt.Add(c.at)
				if stored.Live(now) == c.won {
					t.Errorf("got live %v, want %v: the reader and the taker must agree", stored.Live(now), !c.won)
				}
				next := pin.New(anthropic("next"), false, instant().Add(life), life)
				want := stored
				if c.won {
					want = revision(next, 2)
				}
				claim(t, s, key, next, now, c.won, want)
			})
		}
	}},
	{"TouchExtends", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		key, now := unique(), instant()
		r := pin.New(anthropic("a"), false, now, life)
		claim(t, s, key, r, now, true, revision(r, 1))
		touched := readPin(t, s, key).Touch(true, 5, now.Add(time.Minute), life)
		replace(t, s, key, touched, true, revision(touched, 2))
	}},
	{"LateTouchCannotUndoMove", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		key, now := unique(), instant()
		r := pin.New(anthropic("old"), false, now, life)
		claim(t, ss[0], key, r, now, true, revision(r, 1))
		seen := readPin(t, ss[0], key)
		moved := readPin(t, ss[1], key).Move("new", now.Add(time.Second), life)
		replace(t, ss[1], key, moved, true, revision(moved, 2))
		replace(t, ss[0], key, seen.Touch(false, 1, now.Add(time.Minute), life), false, revision(moved, 2))
	}},
	{"MoveStaleRevision", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		key, now := unique(), instant()
		r := pin.New(anthropic("old"), false, now, life)
		claim(t, ss[0], key, r, now, true, revision(r, 1))
		a, b := readPin(t, ss[0], key), readPin(t, ss[1], key)
		first, second := a.Move("first", now, life), b.Move("second", now, life)
		replace(t, ss[0], key, first, true, revision(first, 2))
		replace(t, ss[1], key, second, false, revision(first, 2))
		again := readPin(t, ss[1], key).Move("second", now, life)
		replace(t, ss[1], key, again, true, revision(again, 3))
	}},
	{"MoveOfOneThatIsGone", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		r := revision(pin.New(anthropic("a"), false, instant(), life), 4)
		replace(t, s, unique(), r, false, pin.Record{})
	}},
	{"UnreadableIsReplaced", func(t *testing.T, h Harness) { // field case one-bad-record
		b := h.open(t)
		s := store.New(b).Within(patience)
		now, key := instant(), unique()
		if _, err := b.Put(soon(t), store.Record{Key: store.Key{Kind: store.KindPin, ID: key}, Body: []byte("{"), ExpiresAt: now.Add(life)}, store.Condition{}); err != nil {
			t.Fatal(err)
		}
		v, err := s.Read(soon(t), store.Query{Pins: []string{key}})
		if err != nil || v.Pins[key].Live(now) {
			t.Errorf("got %+v and error %v, want one that has ended", v.Pins[key], err)
		}
		r := pin.New(anthropic("a"), false, now, life)
		if got, won, err := s.ClaimPin(soon(t), key, r, now); err != nil || !won || got.Account != "a" {
			t.Errorf("got %+v, won %v and error %v, want the claim to win", got, won, err)
		}
		if got, won, err := s.ClaimPin(soon(t), key, pin.New(anthropic("b"), false, now, life), now); err != nil || won || got.Account != "a" {
			t.Errorf("then: got %+v, won %v and error %v, want the first to hold", got, won, err)
		}
	}},
	{"ListedWhenEndedToo", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		now := instant()
		want := map[string]pin.Record{}
		for i := range 3 {
			key, made := unique(), now.Add(-time.Duration(i)*2*life)
			r := pin.New(anthropic("a"), i == 1, made, life)
			claim(t, s, key, r, made, true, revision(r, 1))
			want[key] = revision(r, 1)
		}
		got, err := s.Pins(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		for key := range got {
			if _, ours := want[key]; !ours {
				delete(got, key)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("listed (-want +got):\n%s", d)
		}
	}},
}
