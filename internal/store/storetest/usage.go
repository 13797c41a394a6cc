package storetest

import (
	"crypto/rand"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/usage"
	"holdfast/internal/store"
)

// newDay is a day that no other test uses.
func newDay() time.Time {
	n, _ := rand.Int(rand.Reader, big.NewInt(2_000_000))
	return time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, 200*int(n.Int64()%10_000))
}

// of is a batch with one row.
func of(hour time.Time, number int64, account string, requests int64) usage.Batch {
	return usage.Batch{Hour: hour, Number: number, Rows: usage.Rows{
		{Account: account, Model: "claude-opus-5", Key: "laptop", Agent: "claude-cli"}: {Requests: requests, Output: 10 * requests},
	}}
}

func addUsage(t *testing.T, s *store.Store, process string, b usage.Batch) {
	t.Helper()
	if err := s.AddUsage(soon(t), process, b); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

func usageOf(t *testing.T, s *store.Store, since, now time.Time) []store.UsageSpan {
	t.Helper()
	spans, err := s.Usage(soon(t), since, now)
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	return spans
}

// sum is all requests of spans.
func sum(spans []store.UsageSpan) (n int64) {
	for _, span := range spans {
		for _, c := range span.Rows {
			n += c.Requests
		}
	}
	return n
}

var usageTests = []test{
	{"NoneIsEmpty", func(t *testing.T, h Harness) {
		now := newDay()
		if got := usageOf(t, h.stores(t, 1)[0], now.Add(-3*time.Hour), now); len(got) != 0 {
			t.Errorf("got %v, want none", got)
		}
	}},
	{"ABatchIsCountedOnce", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		hour := newDay().Add(10 * time.Hour)
		addUsage(t, ss[0], "one", of(hour, 1, "a", 2))
		addUsage(t, ss[1], "one", of(hour, 1, "a", 2))
		addUsage(t, ss[1], "two", of(hour, 1, "a", 3))
		addUsage(t, ss[0], "one", of(hour, 2, "b", 5))
		want := []store.UsageSpan{{From: hour, Length: time.Hour, Rows: usage.Rows{
			{Account: "a", Model: "claude-opus-5", Key: "laptop", Agent: "claude-cli"}: {Requests: 5, Output: 50},
			{Account: "b", Model: "claude-opus-5", Key: "laptop", Agent: "claude-cli"}: {Requests: 5, Output: 50},
		}}}
		if d := cmp.Diff(want, usageOf(t, ss[0], hour, hour.Add(time.Minute))); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}},
	{"ProcessesAtOnce", func(t *testing.T, h Harness) {
		ss := h.stores(t, 4)
		hour := newDay().Add(10 * time.Hour)
		together(4, func(i int) {
			for n := range int64(5) {
				// As the gateway does: what was not written is written again, under its number.
				for ss[i].AddUsage(soon(t), string(rune('a'+i)), of(hour, n+1, "a", 1)) != nil {
				}
			}
		})
		if got := sum(usageOf(t, ss[0], hour, hour)); got != 20 {
			t.Errorf("got %d requests, want 20", got)
		}
	}},
	{"HoursAndThenDays", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		now := newDay().Add(10*time.Hour + 30*time.Minute)
		number := int64(0)
		add := func(ago time.Duration, requests int64) {
			number++
			addUsage(t, s, "one", of(now.Add(-ago).Truncate(time.Hour), number, "a", requests))
		}
		add(0, 1)
		add(3*time.Hour, 2)
		add(6*24*time.Hour, 4)
		add(20*24*time.Hour, 8)
		add(20*24*time.Hour+2*time.Hour, 16) // the same day
		add(89*24*time.Hour, 32)
		for _, c := range []struct {
			since   time.Duration
			want    int64
			longest time.Duration
		}{
			{0, 1, time.Hour}, {3 * time.Hour, 3, time.Hour}, {7 * 24 * time.Hour, 7, time.Hour}, {21 * 24 * time.Hour, 31, 24 * time.Hour}, {200 * 24 * time.Hour, 63, 24 * time.Hour},
		} {
			got := usageOf(t, s, now.Add(-c.since), now)
			if sum(got) != c.want || got[0].Length != c.longest {
				t.Errorf("since %v: got %d requests, the oldest of %v; want %d of %v", c.since, sum(got), got[0].Length, c.want, c.longest)
			}
		}
	}},
}
