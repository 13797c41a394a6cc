package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/event"
	"holdfast/internal/store"
)

func eventsOf(t *testing.T, s *store.Store, since, now time.Time) []event.Event {
	t.Helper()
	events, _, err := s.Events(soon(t), since, now)
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	return events
}

var eventTests = []test{
	{"NoneIsEmpty", func(t *testing.T, h Harness) {
		now := newDay()
		if got := eventsOf(t, h.stores(t, 1)[0], now.Add(-time.Hour), now); len(got) != 0 {
			t.Errorf("got %v, want none", got)
		}
	}},
	{"OldestFirstAcrossDays", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		midnight := newDay()
		first := event.Event{At: midnight.Add(-time.Second), Kind: event.Moved, Account: "a", From: "b", What: "cooldown"}
		second := event.Event{At: midnight, Kind: event.CooldownBegan, Account: "a", What: account.FiveHour, Until: midnight.Add(time.Hour)}
		ss[0].Note(second, event.Event{Kind: event.Unparked, Account: "a"}) // which counts as of now
		ss[1].Note(first, second)                                           // noticed by two processes
		for _, s := range ss {
			if err := s.WriteEvents(soon(t), midnight.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if s.Noted() {
				t.Error("what was written is noted still")
			}
		}
		want := []event.Event{first, second, {At: midnight.Add(time.Minute), Kind: event.Unparked, Account: "a"}}
		if d := cmp.Diff(want, eventsOf(t, ss[0], midnight.Add(-time.Hour), midnight.Add(time.Hour))); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if got := eventsOf(t, ss[0], midnight, midnight); len(got) != 1 {
			t.Errorf("at midnight: got %v, want one", got)
		}
	}},
	{"FoldNotesWhatChanged", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		id, day := newAccount(), newDay()
		_, err := s.Fold(soon(t), id, store.StateRecord{}, func(st account.State) (account.State, bool) {
			return st.Reject(account.Rejection{At: day, Kind: account.Funds, Rule: "credit-balance"}, account.Rules{}), true
		})
		if err != nil {
			t.Fatal(err)
		}
		if !s.Within(time.Minute).Noted() {
			t.Error("a parking was not noted")
		}
		if err := s.WriteEvents(soon(t), day); err != nil {
			t.Fatal(err)
		}
		if got := eventsOf(t, s, day, day); len(got) != 1 || got[0].Kind != event.Parked || got[0].Account != id {
			t.Errorf("got %v, want one parking", got)
		}
	}},
	{"ADayIsBounded", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		day := newDay()
		for i := range 2000 {
			s.Note(event.Event{At: day.Add(time.Duration(i) * time.Second), Kind: event.Moved, What: fmt.Sprint(i)})
			if i%500 == 499 {
				if err := s.WriteEvents(soon(t), day); err != nil {
					t.Fatal(err)
				}
			}
		}
		events, dropped, err := s.Events(soon(t), day, day.Add(time.Hour))
		if err != nil || len(events)+dropped != 2000 || dropped == 0 || len(events) < 1000 {
			t.Errorf("got %d events, %d dropped and error %v", len(events), dropped, err)
		}
	}},
}
