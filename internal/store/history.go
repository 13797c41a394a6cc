package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"holdfast/internal/core/account"
)

const (
	// HistoryFor is how long points of history are kept.
	HistoryFor = 15 * 24 * time.Hour
	// HistoryEvery is the least time between two points of an account.
	HistoryEvery = 5 * time.Minute

	day = 24 * time.Hour
)

// Point is how full an account's windows were read to be at an instant.
type Point struct {
	// At is in whole seconds.
	At time.Time
	// Windows are those that were read since the point before, and no others.
	Windows map[string]PointWindow
}

// PointWindow is one window of a point.
type PointWindow struct {
	// Utilization is a fraction, in steps of a ten-thousandth.
	Utilization float64
	// ResetAt is in whole seconds; zero where none was told.
	ResetAt time.Time
}

// AddHistory adds a point to an account's history, in one read and one write. A point that
// is not at least HistoryEvery newer than the newest of its day, or says nothing, is left
// out, and the answer is then false.
func (s *Store) AddHistory(ctx context.Context, id account.ID, p Point) (bool, error) {
	if len(p.Windows) == 0 {
		return false, nil
	}
	p.At = p.At.UTC().Truncate(time.Second)
	written, err := s.reread(ctx, "history", Record{Key: historyKey(id, p.At), DeleteAfter: p.At.Truncate(day).Add(day + HistoryFor)}, func(stored Record) ([]byte, error) {
		var d pointsOfDay
		if stored.Revision > 0 && json.Unmarshal(stored.Body, &d) != nil {
			d = pointsOfDay{} // a day that cannot be read is begun anew
		}
		return marshal(&d, d.add(p))
	})
	return written.Revision > 0, err
}

// History reads an account's points from since to now, the oldest first, in one round trip.
// Points older than HistoryFor at now are not among them, whether the backend still has
// them or not.
func (s *Store) History(ctx context.Context, id account.ID, since, now time.Time) ([]Point, error) {
	if oldest := now.Add(-HistoryFor); since.Before(oldest) {
		since = oldest
	}
	keys := historyKeys(id, since, now)
	if len(keys) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	records, err := s.backend.Get(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	var points []Point
	for _, r := range records {
		if r.Revision == 0 {
			continue
		}
		var d pointsOfDay
		if json.Unmarshal(r.Body, &d) != nil {
			continue
		}
		for _, p := range d.points() {
			if !p.At.Before(since) && !p.At.After(now) {
				points = append(points, p)
			}
		}
	}
	slices.SortFunc(points, func(a, b Point) int { return a.At.Compare(b.At) })
	return points, nil
}

func historyKey(id account.ID, at time.Time) Key {
	return Key{KindHistory, string(id) + "/" + at.UTC().Format(time.DateOnly)}
}

// historyKeys are those of every day from since to now.
func historyKeys(id account.ID, since, now time.Time) []Key {
	var keys []Key
	for at := since.UTC().Truncate(day); !at.After(now); at = at.Add(day) {
		keys = append(keys, historyKey(id, at))
	}
	return keys
}

// pointsOfDay is the stored form: a day of points every five minutes is some 10 KB, so that
// the writes of a table, which are paid for by size, stay cheap.
type pointsOfDay struct {
	// Day is midnight UTC, in seconds since the epoch.
	Day int64 `json:"day"`
	// Windows are named once; a row has two numbers for each, in this order, and may be
	// shorter than all of them.
	Windows []string `json:"windows"`
	// Rows are [seconds since Day, then for each window: utilization in ten-thousandths or
	// untold, reset in seconds since Day or untold].
	Rows [][]int64 `json:"rows"`
}

const (
	untold = -1
	steps  = 1e4
	// fullest bounds what is kept of a utilization, so that any fits.
	fullest = 1e6
)

// add appends a point, unless one as new is there.
func (d *pointsOfDay) add(p Point) bool {
	if len(d.Rows) == 0 {
		d.Day = p.At.Truncate(day).Unix()
	}
	at := p.At.Unix() - d.Day
	if n := len(d.Rows); n > 0 && len(d.Rows[n-1]) > 0 && at < d.Rows[n-1][0]+int64(HistoryEvery/time.Second) {
		return false
	}
	row := []int64{at}
	for _, name := range slices.Sorted(maps.Keys(p.Windows)) {
		i := slices.Index(d.Windows, name)
		if i < 0 {
			i = len(d.Windows)
			d.Windows = append(d.Windows, name)
		}
		for len(row) < 3+2*i {
			row = append(row, untold)
		}
		w := p.Windows[name]
		if u := min(max(w.Utilization, 0), fullest); !math.IsNaN(u) {
			row[1+2*i] = int64(math.Round(u * steps))
		}
		if !w.ResetAt.IsZero() {
			row[2+2*i] = w.ResetAt.Unix() - d.Day
		}
	}
	d.Rows = append(d.Rows, row)
	return true
}

// points decodes the rows. What cannot be read is left out.
func (d *pointsOfDay) points() []Point {
	var all []Point
	for _, row := range d.Rows {
		if len(row) == 0 {
			continue
		}
		p := Point{At: time.Unix(d.Day+row[0], 0).UTC(), Windows: map[string]PointWindow{}}
		for i, name := range d.Windows {
			if len(row) < 3+2*i || row[1+2*i] < 0 {
				continue
			}
			w := PointWindow{Utilization: float64(row[1+2*i]) / steps}
			if reset := row[2+2*i]; reset != untold {
				w.ResetAt = time.Unix(d.Day+reset, 0).UTC()
			}
			p.Windows[name] = w
		}
		all = append(all, p)
	}
	return all
}
