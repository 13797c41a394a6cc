package store_test

import (
	"math"
	"testing"
	"time"

	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
)

// FuzzHistory: whatever a record of history holds, reading it gives an error or points that
// can be reckoned with, and never a panic.
func FuzzHistory(f *testing.F) {
	f.Add([]byte(`{"day":1804118400,"windows":["weekly"],"rows":[[36000,4100,518400],[36300,-1,-1],[36600,4200]]}`))
	f.Add([]byte(`{"day":1804118400,"windows":[],"rows":[[],[1],[2,3,4,5]]}`))
	f.Add([]byte(`{"rows":null}`))
	f.Add([]byte(`{"day":9223372036854775807,"windows":["weekly"],"rows":[[9223372036854775807,-2,9223372036854775807]]}`))
	now := time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte) {
		b := memstore.New()
		key := store.Key{Kind: store.KindHistory, ID: "a/2027-03-04"}
		if _, err := b.Put(t.Context(), store.Record{Key: key, Body: body}, store.Condition{}); err != nil {
			t.Fatal(err)
		}
		s := store.New(b)
		points, err := s.History(t.Context(), "a", now.Add(-time.Hour), now)
		if err != nil && points != nil {
			t.Errorf("got %v beside error %v, want none", points, err)
		}
		for _, p := range points {
			if p.At.Before(now.Add(-time.Hour)) || p.At.After(now) {
				t.Errorf("got a point of %v, want none from outside of what was asked for", p.At)
			}
			for name, w := range p.Windows {
				if w.Utilization < 0 || math.IsNaN(w.Utilization) || math.IsInf(w.Utilization, 0) {
					t.Errorf("window %q: got %v, want a utilization", name, w.Utilization)
				}
			}
		}
		_, _ = s.AddHistory(t.Context(), "a", store.Point{At: now, Windows: map[string]store.PointWindow{"weekly": {Utilization: math.NaN()}}})
	})
}
