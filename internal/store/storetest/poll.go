package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/store"
)

func readPoll(t *testing.T, s *store.Store) store.PollRecord {
	t.Helper()
	p, err := s.Poll(soon(t))
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	return p
}

// setClock writes one account's clock from whatever was last read.
func setClock(t *testing.T, s *store.Store, id account.ID, c store.Clock) {
	t.Helper()
	changeClock(t, s, readPoll(t, s), id, c)
}

func changeClock(t *testing.T, s *store.Store, base store.PollRecord, id account.ID, c store.Clock) {
	t.Helper()
	_, err := s.ChangePoll(soon(t), base, func(p store.Poll) store.Poll {
		clocks := map[account.ID]store.Clock{id: c}
		for other, clock := range p.Clocks {
			if other != id {
				clocks[other] = clock
			}
		}
		p.Clocks = clocks
		return p
	})
	if err != nil {
		t.Errorf("change the poll: got %v, want no error", err)
	}
}

var pollTests = []test{
	{"ClocksComeBack", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		id, now := newAccount(), instant()
		want := store.Clock{
			NextAt: now.Add(time.Minute), LookedAt: now, ReadAt: now.Add(-time.Hour), Failures: 3, Trouble: "it answers 429",
			AnswerAt: now.Add(-2 * time.Hour), Unparked: 1, UnparkedAt: now.Add(-time.Minute), PointAt: now,
		}
		setClock(t, ss[0], id, want)
		if d := cmp.Diff(want, readPoll(t, ss[1]).Clocks[id]); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}},
	{"StaleChangesAllSurvive", func(t *testing.T, h Harness) {
		const writers = 12
		ss := h.stores(t, 4)
		base, now := readPoll(t, ss[0]), instant()
		ids := make([]account.ID, writers)
		for i := range ids {
			ids[i] = newAccount()
		}
		together(writers, func(i int) { // each from what was read before any of them wrote
			changeClock(t, ss[i%len(ss)], base, ids[i], store.Clock{NextAt: now.Add(time.Duration(i) * time.Minute)})
		})
		clocks := readPoll(t, ss[0]).Clocks
		for i, id := range ids {
			if want := now.Add(time.Duration(i) * time.Minute); !clocks[id].NextAt.Equal(want) {
				t.Errorf("writer %d: got %v, want %v", i, clocks[id].NextAt, want)
			}
		}
	}},
	{"InASnapshotThatIsWhole", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		id := newAccount()
		setClock(t, s, id, store.Clock{Failures: 2})
		for whole, want := range map[bool]int{true: 2, false: 0} {
			snap, err := s.Snapshot(soon(t), whole)
			if err != nil || snap.Poll.Clocks[id].Failures != want {
				t.Errorf("whole %v: got %d failures and error %v, want %d and none", whole, snap.Poll.Clocks[id].Failures, err, want)
			}
		}
	}},
}

// point is one of the weekly window alone.
func point(at time.Time, utilization float64) store.Point {
	return store.Point{At: at, Windows: map[string]store.PointWindow{account.Weekly: {Utilization: utilization, ResetAt: at.Add(time.Hour).Truncate(time.Second)}}}
}

func addPoint(t *testing.T, s *store.Store, id account.ID, p store.Point, want bool) {
	t.Helper()
	if added, err := s.AddHistory(soon(t), id, p); err != nil || added != want {
		t.Errorf("add a point of %v: got %v and error %v, want %v and none", p.At, added, err, want)
	}
}

func pointsOf(t *testing.T, s *store.Store, id account.ID, since, now time.Time) []store.Point {
	t.Helper()
	points, err := s.History(soon(t), id, since, now)
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	return points
}

var historyTests = []test{
	{"NoneIsEmpty", func(t *testing.T, h Harness) {
		now := instant()
		if got := pointsOf(t, h.stores(t, 1)[0], newAccount(), now.Add(-store.HistoryFor), now); len(got) != 0 {
			t.Errorf("got %v, want none", got)
		}
	}},
	{"OldestFirstAcrossDays", func(t *testing.T, h Harness) {
		ss := h.stores(t, 2)
		id := newAccount()
		midnight := time.Date(2027, 3, 5, 0, 0, 0, 0, time.UTC)
		var want []store.Point
		for i, p := range []store.Point{
			{At: midnight.Add(-store.HistoryFor), Windows: map[string]store.PointWindow{account.Weekly: {Utilization: 0.01}}},
			{At: midnight.Add(-time.Second), Windows: map[string]store.PointWindow{
				account.FiveHour: {Utilization: 0.4237, ResetAt: midnight.Add(5 * time.Hour)}, account.Weekly: {Utilization: 1.25},
			}},
			{At: midnight, Windows: map[string]store.PointWindow{account.WeeklyOf("fable"): {Utilization: 1, ResetAt: midnight.Add(-time.Hour)}}},
			{At: midnight.Add(5 * time.Minute), Windows: map[string]store.PointWindow{
				account.Weekly: {Utilization: 0, ResetAt: midnight.Add(7 * 24 * time.Hour)}, account.WeeklyOf("fable"): {Utilization: 0.5},
			}},
		} {
			addPoint(t, ss[i%2], id, p, true)
			want = append(want, p)
		}
		addPoint(t, ss[0], newAccount(), point(midnight, 0.9), true)
		for _, c := range []struct {
			name       string
			since, now time.Time
			want       []store.Point
		}{
			{"the oldest at its last instant, and nothing from after", time.Time{}, midnight, want[:3]},
			{"and an hour later", time.Time{}, midnight.Add(time.Hour), want[1:]},
			{"from midnight on", midnight, midnight.Add(time.Hour), want[2:]},
			{"from a later day on", midnight.Add(48 * time.Hour), midnight.Add(time.Hour), nil},
		} {
			if d := cmp.Diff(c.want, pointsOf(t, ss[1], id, c.since, c.now)); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, d)
			}
		}
	}},
	{"OnePointInFiveMinutes", func(t *testing.T, h Harness) {
		s := h.stores(t, 1)[0]
		id := newAccount()
		at := time.Date(2027, 3, 5, 10, 0, 0, 0, time.UTC)
		addPoint(t, s, id, point(at, 0.1), true)
		addPoint(t, s, id, point(at, 0.2), false)
		addPoint(t, s, id, point(at.Add(-time.Hour), 0.2), false)
		addPoint(t, s, id, point(at.Add(store.HistoryEvery-time.Second), 0.3), false)
		addPoint(t, s, id, point(at.Add(store.HistoryEvery), 0.4), true)
		addPoint(t, s, id, store.Point{At: at.Add(time.Hour)}, false)
		if got := pointsOf(t, s, id, at, at.Add(time.Hour)); len(got) != 2 || got[0].Windows[account.Weekly].Utilization != 0.1 || got[1].Windows[account.Weekly].Utilization != 0.4 {
			t.Errorf("got %v, want the points of 0.1 and 0.4", got)
		}
	}},
	{"WritersOfOneInstant", func(t *testing.T, h Harness) {
		ss := h.stores(t, 4)
		id := newAccount()
		at := time.Date(2027, 3, 5, 10, 0, 0, 0, time.UTC)
		added := make([]bool, 8)
		together(len(added), func(i int) {
			var err error
			if added[i], err = ss[i%len(ss)].AddHistory(soon(t), id, point(at, 0.5)); err != nil {
				t.Errorf("got %v, want no error", err)
			}
		})
		n := 0
		for _, ok := range added {
			if ok {
				n++
			}
		}
		if got := pointsOf(t, ss[0], id, at, at); n != 1 || len(got) != 1 {
			t.Errorf("got %d added and %v, want one", n, got)
		}
	}},
	{"ADayStaysSmall", func(t *testing.T, h Harness) {
		b := h.open(t)
		s := store.New(b).Within(patience)
		id := newAccount()
		midnight := time.Date(2027, 3, 5, 0, 0, 0, 0, time.UTC)
		p := store.Point{Windows: map[string]store.PointWindow{}}
		for i := range 6 { // more windows than any plan has
			p.Windows[account.WeeklyOf(fmt.Sprintf("family-%d", i))] = store.PointWindow{Utilization: 0.98765, ResetAt: midnight.Add(account.Week)}
		}
		// The first two points tell what every further one adds.
		size := func() int {
			return len(get(t, b, store.Key{Kind: store.KindHistory, ID: string(id) + "/2027-03-05"}).Body)
		}
		p.At = midnight.Add(20 * time.Hour)
		addPoint(t, s, id, p, true)
		first := size()
		p.At, p.Windows = p.At.Add(store.HistoryEvery), maps.Clone(p.Windows)
		addPoint(t, s, id, p, true)
		if day := first + int(24*time.Hour/store.HistoryEvery)*(size()-first); day > 100_000 {
			t.Errorf("a day takes %d bytes, want far below the 400 KB of an item", day)
		}
		if body := get(t, b, store.Key{Kind: store.KindHistory, ID: string(id) + "/2027-03-05"}).Body; !json.Valid(body) {
			t.Errorf("got %q, want JSON", body)
		}
	}},
}
