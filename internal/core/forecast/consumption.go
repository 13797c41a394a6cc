package forecast

import (
	"math"
	"slices"
	"time"
)

// Sample is how full a window was read to be.
type Sample struct {
	At time.Time
	// Utilization is a fraction; 1 is full.
	Utilization float64
	// ResetAt is zero where none was told.
	ResetAt time.Time
}

// stretch is consumption spread evenly over a time.
type stretch struct {
	from, to time.Time
	amount   float64
}

// within is the part of a stretch that lies between two instants.
func (s stretch) within(from, to time.Time) (amount float64, covered time.Duration) {
	whole := s.to.Sub(s.from)
	if s.from.After(from) {
		from = s.from
	}
	if s.to.Before(to) {
		to = s.to
	}
	covered = to.Sub(from)
	if covered <= 0 || whole <= 0 {
		return 0, 0
	}
	return s.amount * float64(covered) / float64(whole), covered
}

// rounding is what a provider's rounding to whole percents may take off between two samples
// of one cycle.
const rounding = 0.0101

// consumption turns samples into stretches, in order of time. Values that are no number, and
// samples of one instant but the last, are left out.
func consumption(samples []Sample, length time.Duration) []stretch {
	ordered := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool {
		return math.IsNaN(s.Utilization) || math.IsInf(s.Utilization, 0) || s.Utilization < 0
	})
	slices.SortStableFunc(ordered, func(a, b Sample) int { return a.At.Compare(b.At) })
	var all []stretch
	for i := 1; i < len(ordered); i++ {
		a, b := ordered[i-1], ordered[i]
		if !a.At.Before(b.At) {
			continue
		}
		if sameCycle(a, b, length) {
			all = append(all, stretch{a.At, b.At, max(0, b.Utilization-a.Utilization)})
			continue
		}
		if from := began(a, b, length); from.Before(b.At) {
			all = append(all, stretch{from, b.At, b.Utilization})
		}
	}
	return all
}

// sameCycle reports whether no reset lies between two samples.
func sameCycle(a, b Sample, length time.Duration) bool {
	if !a.ResetAt.IsZero() && !b.At.Before(a.ResetAt) {
		return false
	}
	if b.Utilization < a.Utilization-rounding {
		return false
	}
	if a.ResetAt.IsZero() || b.ResetAt.IsZero() {
		return true
	}
	// Providers tell one reset with a few seconds' difference; a rolling one moves on.
	return b.ResetAt.Sub(a.ResetAt).Abs() < max(length/4, time.Hour/2) || b.Utilization >= a.Utilization
}

// began is when the cycle of b began, given that it is not that of a.
func began(a, b Sample, length time.Duration) time.Time {
	if !a.ResetAt.IsZero() && a.ResetAt.After(a.At) && !a.ResetAt.After(b.At) {
		return a.ResetAt
	}
	if start := b.ResetAt.Add(-length); length > 0 && !b.ResetAt.IsZero() && start.After(a.At) && !start.After(b.At) {
		return start
	}
	return a.At
}

// rateBetween is consumption per day, and how much of the time was covered.
func rateBetween(all []stretch, from, to time.Time) (perDay float64, covered time.Duration) {
	var amount float64
	for _, s := range all {
		a, c := s.within(from, to)
		amount += a
		covered += c
	}
	if covered <= 0 {
		return 0, 0
	}
	return amount / days(covered), covered
}

// spread is the standard deviation of a day's consumption, over whole days before now that
// are covered by half at least; false with fewer than three.
func spread(all []stretch, now time.Time) (float64, bool) {
	var each []float64
	for i := range weekDays {
		to := now.Add(-time.Duration(i) * day)
		if perDay, covered := rateBetween(all, to.Add(-day), to); covered >= day/2 {
			each = append(each, perDay)
		}
	}
	if len(each) < 3 {
		return 0, false
	}
	var mean, sum float64
	for _, v := range each {
		mean += v / float64(len(each))
	}
	for _, v := range each {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(each)-1)), true
}

const (
	day      = 24 * time.Hour
	weekDays = 7
	week     = weekDays * day
	// shapeAfter is how much must be covered before a week's shape is believed: two weeks, but
	// for a day's worth of gaps.
	shapeAfter = 13 * day
	hours      = weekDays * 24
)

func days(d time.Duration) float64 { return float64(d) / float64(day) }

// shape is the weight of each hour of the week, UTC; their mean is 1.
type shape [hours]float64

func hourOf(t time.Time) int {
	t = t.UTC()
	return int(t.Weekday())*24 + t.Hour()
}

// shapeOf weighs the hours of the week by what was consumed in them; false where less than two
// weeks are covered, or nothing was consumed.
func shapeOf(all []stretch) (shape, bool) {
	var amount, covered [hours]float64
	var total time.Duration
	for _, s := range all {
		total += s.to.Sub(s.from)
		for at := s.from; at.Before(s.to); {
			next := at.Truncate(time.Hour).Add(time.Hour)
			a, c := s.within(at, next)
			amount[hourOf(at)] += a
			covered[hourOf(at)] += c.Hours()
			at = next
		}
	}
	if total < shapeAfter {
		return shape{}, false
	}
	var raw shape
	for h := range raw {
		if covered[h] > 0 {
			raw[h] = amount[h] / covered[h]
		}
	}
	var smooth shape
	var sum float64
	for h := range smooth {
		// A neighbour's half: what people do moves by an hour from week to week.
		smooth[h] = (raw[h] + raw[(h+1)%hours]/2 + raw[(h+hours-1)%hours]/2) / 2
		sum += smooth[h]
	}
	if sum <= 0 {
		return shape{}, false
	}
	for h := range smooth {
		smooth[h] *= hours / sum
	}
	return smooth, true
}

// mean is the average weight between two instants.
func (s shape) mean(from, to time.Time) float64 {
	var sum, weight float64
	for at := from; at.Before(to); {
		next := at.Truncate(time.Hour).Add(time.Hour)
		if next.After(to) {
			next = to
		}
		h := next.Sub(at).Hours()
		sum += s[hourOf(at)] * h
		weight += h
		at = next
	}
	if weight == 0 {
		return 0
	}
	return sum / weight
}
