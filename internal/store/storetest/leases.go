package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/store"
)

// take takes a lease for ten minutes and checks whether it is ours.
func take(t *testing.T, s *store.Store, what, holder string, now time.Time, want bool) store.Lease {
	t.Helper()
	l, ours, err := s.TakeLease(soon(t), what, holder, now, now.Add(10*time.Minute))
	if err != nil || ours != want {
		t.Fatalf("take for %s: got %v and error %v, want %v and none", holder, ours, err, want)
	}
	return l
}

func release(t *testing.T, s *store.Store, l store.Lease, now time.Time) {
	t.Helper()
	if err := s.ReleaseLease(soon(t), l, now); err != nil {
		t.Fatalf("release: got %v, want no error", err)
	}
}

var leaseTests = []test{
	{"OfAClockThatWasAhead", func(t *testing.T, h Harness) { // field case a-clock-that-was-ahead
		ss := h.stores(t, 2)
		now, what := instant(), unique()
		ahead := now.Add(30 * 24 * time.Hour)
		if _, ours, err := ss[0].TakeLease(soon(t), what, "ahead", ahead, ahead.Add(time.Minute)); err != nil || !ours {
			t.Fatalf("got %v, %v", ours, err)
		}
		l, ours, err := ss[1].TakeLease(soon(t), what, "right", now, now.Add(time.Minute))
		if err != nil || !ours || l.Holder != "right" {
			t.Errorf("got ours %v of %q and error %v, want it taken", ours, l.Holder, err)
		}
		if _, ours, err := ss[0].TakeLease(soon(t), what, "third", now, now.Add(time.Minute)); err != nil || ours {
			t.Errorf("got ours %v and error %v, want it held", ours, err)
		}
	}},
	{"OneTakeWins", func(t *testing.T, h Harness) {
		const rounds, racers = 20, 8
		ss := h.stores(t, racers)
		now := instant()
		for range rounds {
			what := unique()
			var winners atomic.Int64
			holders := make([]string, racers)
			together(racers, func(i int) {
				holder := unique()
				l, ours, err := ss[i].TakeLease(soon(t), what, holder, now, now.Add(time.Minute))
				if err != nil {
					t.Errorf("take: got %v, want no error", err)
				}
				if ours {
					winners.Add(1)
				}
				if ours != (l.Holder == holder) {
					t.Errorf("got ours %v and the holder %s, want them to agree", ours, l.Holder)
				}
				holders[i] = l.Holder
			})
			for _, holder := range holders {
				if winners.Load() != 1 || holder != holders[0] {
					t.Fatalf("got %d winners and holders %q, want one, told to all", winners.Load(), holders)
				}
			}
		}
	}},
	{"HeldUntilItsEnd", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		what, now := unique(), instant()
		first := take(t, ss[0], what, "first", now, true)
		if told := take(t, ss[1], what, "second", now.Add(10*time.Minute-time.Millisecond), false); told.Holder != "first" || !told.ExpiresAt.Equal(now.Add(10*time.Minute)) {
			t.Errorf("1 ms before its end: got holder %q until %v, want the first's", told.Holder, told.ExpiresAt)
		}
		second := take(t, ss[1], what, "second", now.Add(10*time.Minute), true)
		if second.Generation <= first.Generation {
			t.Errorf("got generation %d after %d, want a higher one", second.Generation, first.Generation)
		}
		release(t, ss[0], first, now.Add(11*time.Minute)) // late
		take(t, ss[0], what, "third", now.Add(11*time.Minute), false)
	}},
	{"GenerationSurvivesRelease", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		what, now := unique(), instant()
		var last int64
		for i := range 3 {
			l := take(t, ss[i%2], what, unique(), now, true)
			if l.Generation <= last {
				t.Errorf("got generation %d after %d, want a higher one", l.Generation, last)
			}
			last = l.Generation
			release(t, ss[i%2], l, now)
			release(t, ss[i%2], l, now) // twice is no error
		}
	}},
	{"TakenAgainByItsHolder", func(t *testing.T, h Harness) { // after a take that seemed to fail
		ss := h.stores(t, 2)
		what, now := unique(), instant()
		first := take(t, ss[0], what, "holder", now, true)
		if again := take(t, ss[1], what, "holder", now.Add(time.Minute), true); again.Generation != first.Generation {
			t.Errorf("got generation %d, want the same, %d", again.Generation, first.Generation)
		}
	}},
	{"OthersAreNotConcerned", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		now := instant()
		take(t, s, unique(), "one", now, true)
		take(t, s, unique(), "other", now, true)
	}},
}

func renewals(t *testing.T, s *store.Store, ids ...account.ID) map[account.ID]store.Renewal {
	t.Helper()
	all, err := s.Renewals(soon(t), ids)
	if err != nil {
		t.Fatalf("read renewals: got %v, want no error", err)
	}
	return all
}

var renewalTests = []test{
	{"WrittenAndRead", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		now := instant()
		id, other := newAccount(), newAccount()
		want := store.Renewal{
			Spending: &store.Spending{Token: "hash", Generation: 3, By: "holder", Since: now, Lost: true},
			Refused:  []string{"one", "two"}, RenewedAt: now.Add(-time.Hour),
			Failures: 2, FailingSince: now.Add(-time.Minute), Failure: "status 503", RetryAt: now.Add(time.Minute),
		}
		stored, ours, err := ss[0].PutRenewal(soon(t), id, want)
		if err != nil || !ours {
			t.Fatalf("got %v and error %v, want it to be written", ours, err)
		}
		want.Revision = 1
		if diff := cmp.Diff(want, stored); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[account.ID]store.Renewal{id: want, other: {}}, renewals(t, ss[1], id, other, id)); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
	}},
	{"NoneAsked", func(t *testing.T, h Harness) {
		if got := renewals(t, h.stores(t, 1)[0]); len(got) != 0 {
			t.Errorf("got %v, want none", got)
		}
	}},
	{"StaleLosesAndIsToldTheWinner", func(t *testing.T, h Harness) {
		const rounds, racers = 20, 6
		ss := h.stores(t, racers)
		for range rounds {
			id := newAccount()
			var winners atomic.Int64
			told := make([]store.Renewal, racers)
			together(racers, func(i int) {
				by := unique()
				got, ours, err := ss[i].PutRenewal(soon(t), id, store.Renewal{Spending: &store.Spending{Token: "t", By: by}})
				if err != nil {
					t.Errorf("put: got %v, want no error", err)
					return
				}
				if ours {
					winners.Add(1)
				}
				if ours != (got.Spending.By == by) {
					t.Errorf("got ours %v and a mark by %s, want them to agree", ours, got.Spending.By)
				}
				told[i] = got
			})
			for _, got := range told {
				if diff := cmp.Diff(told[0], got); diff != "" || winners.Load() != 1 {
					t.Fatalf("got %d winners, want one, told to all (-first +got):\n%s", winners.Load(), diff)
				}
			}
		}
	}},
	{"OfARemovedAccount", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		id := newAccount()
		take(t, s, store.RenewalLease(id), "holder", instant(), true)
		stored, _, err := s.PutRenewal(soon(t), id, store.Renewal{Failures: 1})
		if err == nil {
			err = s.Forget(soon(t), id)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, ours, err := s.PutRenewal(soon(t), id, stored); err != nil || ours || got.Revision != 0 {
			t.Errorf("got revision %d, ours %v and error %v, want a late write to lose to nothing", got.Revision, ours, err)
		}
		take(t, s, store.RenewalLease(id), "another", instant(), true) // of what is forgotten nobody has the lease
	}},
}
