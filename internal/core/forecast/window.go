package forecast

import (
	"math"
	"time"
)

// Window is what is known of one window.
type Window struct {
	Name string
	// Length is from reset to reset; 0 is not known.
	Length time.Duration
	// Utilization is the newest figure, a fraction, and ObservedAt when it was read.
	Utilization float64
	ObservedAt  time.Time
	// ResetAt is zero where none was told.
	ResetAt time.Time
	// Samples are the figures before, in any order.
	Samples []Sample
}

// Range is a figure with what eight of ten cases stay within.
type Range struct {
	Low, Mid, High float64
}

// Outlook is what becomes of a window.
type Outlook struct {
	Name string
	// Utilization is the figure now, carried forward from when it was read.
	Utilization Range
	// ResetAt is the next reset; zero where it is not known.
	ResetAt time.Time
	// Known is false where nothing was consumed in covered time that could be told: no
	// samples, or all at one instant. The rest is then empty.
	Known bool
	// Recent and Usual are rates in windows a day.
	Recent, Usual float64
	// Covered is the share of the last week that has samples.
	Covered time.Duration
	// Shaped says that the week's shape is known.
	Shaped bool
	// DryAt is when the window is full; zero: not before its reset. DryFrom and DryTo are the
	// range; DryTo is zero where the low course does not run dry.
	DryAt, DryFrom, DryTo time.Time
	// AtReset is how full the window is just before its reset, above 1 where it would run dry.
	AtReset Range

	course course
	window Window
}

// course is what is consumed from an instant on.
type course struct {
	from          time.Time
	usual, recent float64 // per day
	ratio         float64 // of recent to what the shape would have had, where there is one
	fade          time.Duration
	deviation     float64 // of a day's consumption
	shape         shape
	shaped        bool
}

// band is how many standard deviations eight of ten cases stay within.
const band = 1.2816

// Of reckons a window's outlook as of an instant.
func Of(w Window, now time.Time) Outlook {
	o := Outlook{Name: w.Name, ResetAt: w.ResetAt, window: w}
	samples := append(append([]Sample(nil), w.Samples...), Sample{w.ObservedAt, w.Utilization, w.ResetAt})
	all := consumption(samples, w.Length)
	span := day
	if w.Length > 0 && w.Length <= day {
		span = time.Hour
	}
	c := course{from: w.ObservedAt, fade: span, ratio: 1}
	c.usual, o.Covered = rateBetween(all, now.Add(-week), now)
	o.Known = o.Covered > 0
	recently := time.Duration(0)
	if c.recent, recently = rateBetween(all, now.Add(-span), now); recently < span/4 {
		c.recent = c.usual // too little of it is known to differ
	}
	c.shape, c.shaped = shapeOf(all)
	if c.shaped {
		if had := c.usual * c.shape.mean(now.Add(-span), now); had > 0 {
			c.ratio = min(max(c.recent/had, 0.25), 4)
		}
	}
	var enough bool
	if c.deviation, enough = spread(all, now); !enough {
		c.deviation = c.usual / 2
	}
	o.course = c
	o.Recent, o.Usual, o.Shaped = c.recent, c.usual, c.shaped
	o.ResetAt = nextReset(w.ResetAt, w.Length, now)
	o.Utilization = o.At(now)
	if !o.Known {
		return o
	}
	if o.ResetAt.IsZero() {
		return o
	}
	o.AtReset = o.At(o.ResetAt.Add(-1))
	o.DryAt = o.dry(now, func(r Range) float64 { return r.Mid })
	o.DryFrom = o.dry(now, func(r Range) float64 { return r.High })
	o.DryTo = o.dry(now, func(r Range) float64 { return r.Low })
	return o
}

// nextReset is the first reset after now, of those a length apart; zero where it cannot be
// known.
func nextReset(reset time.Time, length time.Duration, now time.Time) time.Time {
	if reset.IsZero() || reset.After(now) {
		return reset
	}
	if length <= 0 {
		return time.Time{}
	}
	passed := now.Sub(reset)/length + 1
	return reset.Add(passed * length)
}

// At is how full the window is at an instant, now or later, above 1 where it would have run
// dry. Past a reset it counts from that reset on.
func (o Outlook) At(t time.Time) Range {
	w := o.window
	from, begun := w.ObservedAt, w.Utilization
	if !w.ResetAt.IsZero() && !t.Before(w.ResetAt) {
		from, begun = w.ResetAt, 0
		if w.Length > 0 {
			from = w.ResetAt.Add(t.Sub(w.ResetAt) / w.Length * w.Length)
		}
	}
	mid := o.course.between(from, t)
	off := band * o.course.deviation * math.Sqrt(max(0, days(t.Sub(from))))
	return Range{begun + max(0, mid-off), begun + mid, begun + mid + off}
}

// dry is when a course reaches the window's end before its reset, to the minute; zero if it
// does not.
func (o Outlook) dry(now time.Time, of func(Range) float64) time.Time {
	last := o.ResetAt.Add(-1)
	if of(o.At(now)) >= 1 {
		return now
	}
	step := max(o.ResetAt.Sub(now)/512, time.Minute)
	for at := now; at.Before(last); at = at.Add(step) {
		next := at.Add(step)
		if next.After(last) {
			next = last
		}
		if of(o.At(next)) < 1 {
			continue
		}
		low, high := at, next
		for high.Sub(low) > time.Second {
			middle := low.Add(high.Sub(low) / 2)
			if of(o.At(middle)) >= 1 {
				high = middle
			} else {
				low = middle
			}
		}
		return high.Round(time.Second)
	}
	return time.Time{}
}

// between is what is consumed between two instants.
func (c course) between(from, to time.Time) float64 {
	if !to.After(from) {
		return 0
	}
	// The share of the difference that is still there, integrated over the time: with x days
	// since c.from and f days of fading, f·(e^(−x₁/f) − e^(−x₂/f)).
	f := days(c.fade)
	faded := func(a, b time.Time) float64 {
		return f * (math.Exp(-days(a.Sub(c.from))/f) - math.Exp(-days(b.Sub(c.from))/f))
	}
	if !c.shaped {
		return max(0, c.usual*days(to.Sub(from))+(c.recent-c.usual)*faded(from, to))
	}
	var sum float64
	for at := from; at.Before(to); {
		next := at.Truncate(time.Hour).Add(time.Hour)
		if next.After(to) {
			next = to
		}
		weight := c.shape[hourOf(at)] * c.usual
		sum += weight * (days(next.Sub(at)) + (c.ratio-1)*faded(at, next))
		at = next
	}
	return max(0, sum)
}
