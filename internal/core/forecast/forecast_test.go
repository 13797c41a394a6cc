package forecast_test

import (
	"math"
	"testing"
	"time"

	"holdfast/internal/core/forecast"
)

// t0 is a Monday, 10:00 UTC.
var t0 = time.Date(2027, 3, 1, 10, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// weekly makes a weekly window as of now from its course before: used at each hour back from
// now, by a function of the time, and its reset.
func weekly(now time.Time, reset time.Time, back time.Duration, perHour func(time.Time) float64) forecast.Window {
	w := forecast.Window{Name: "weekly", Length: 7 * day, ResetAt: reset, ObservedAt: now}
	used, cycle := 0.0, reset.Add(-7*day)
	// From the beginning of the cycle, or of the history, whichever is later to be seen.
	for at := now.Add(-back); !at.After(now); at = at.Add(time.Hour) {
		r := reset
		for r.Add(-7 * day).After(at) {
			r = r.Add(-7 * day)
		}
		if start := r.Add(-7 * day); start.After(cycle.Add(-14*day)) && at.Sub(start) < time.Hour && at.After(now.Add(-back)) {
			used = 0
		}
		if at.After(now.Add(-back)) {
			used += perHour(at)
		}
		w.Samples = append(w.Samples, forecast.Sample{At: at, Utilization: used, ResetAt: r})
		w.Utilization = used
	}
	return w
}

func steady(perDay float64) func(time.Time) float64 {
	return func(time.Time) float64 { return perDay / 24 }
}

func near(a, b time.Time, within time.Duration) bool { return a.Sub(b).Abs() <= within }

// 88 % with 33 hours left at 16 points a day: 12 points are gone in 18 hours.
func TestDryBeforeItsReset(t *testing.T) {
	w := forecast.Window{Name: "weekly", Length: 7 * day, ObservedAt: t0, Utilization: 0.88, ResetAt: t0.Add(33 * time.Hour)}
	for h := 132; h >= 1; h-- {
		w.Samples = append(w.Samples, forecast.Sample{At: t0.Add(-time.Duration(h) * time.Hour), Utilization: 0.88 - 0.16/24*float64(h), ResetAt: w.ResetAt})
	}
	o := forecast.Of(w, t0)
	if !near(o.DryAt, t0.Add(18*time.Hour), time.Minute) {
		t.Errorf("got dry at %v, want in 18 hours", o.DryAt.Sub(t0))
	}
	if math.Abs(o.Recent-0.16) > 1e-9 || math.Abs(o.Usual-0.16) > 1e-9 {
		t.Errorf("got %v a day, of the week %v, want 0.16", o.Recent, o.Usual)
	}
	if got, want := o.AtReset.Mid, 0.88+0.16*33/24; math.Abs(got-want) > 1e-6 {
		t.Errorf("at the reset: got %v, want %v", got, want)
	}
	// Steady days differ by nothing, so the range is the course itself.
	if !near(o.DryFrom, o.DryAt, time.Minute) || !near(o.DryTo, o.DryAt, time.Minute) {
		t.Errorf("got a range from %v to %v", o.DryFrom, o.DryTo)
	}
	if got := o.At(t0.Add(6 * time.Hour)).Mid; math.Abs(got-0.92) > 1e-9 {
		t.Errorf("in six hours: got %v, want 0.92", got)
	}
	// Past the reset it counts from there.
	if got := o.At(w.ResetAt.Add(12 * time.Hour)).Mid; math.Abs(got-0.08) > 1e-9 {
		t.Errorf("twelve hours after the reset: got %v, want 0.08", got)
	}
}

func TestLastsToItsReset(t *testing.T) {
	w := weekly(t0, t0.Add(2*day), 5*day, steady(0.10))
	o := forecast.Of(w, t0)
	if !o.DryAt.IsZero() {
		t.Errorf("got dry at %v, want never: 50 %% and 20 more", o.DryAt)
	}
	if math.Abs(o.AtReset.Mid-0.70) > 1e-6 {
		t.Errorf("at the reset: got %v, want 0.70", o.AtReset.Mid)
	}
}

// A figure that is exactly 0 is a figure, and so is a rate of 0.
func TestNothingUsed(t *testing.T) {
	w := weekly(t0, t0.Add(2*day), 5*day, steady(0))
	o := forecast.Of(w, t0)
	if !o.Known || o.Usual != 0 || !o.DryAt.IsZero() || o.AtReset != (forecast.Range{}) {
		t.Errorf("got %+v, want a known rate of 0", o)
	}
}

// Without samples nothing is known, and nothing is said.
func TestNoData(t *testing.T) {
	for name, w := range map[string]forecast.Window{
		"none":           {Name: "weekly", Length: 7 * day, ObservedAt: t0, Utilization: 0.5, ResetAt: t0.Add(day)},
		"one instant":    {Name: "weekly", Length: 7 * day, ObservedAt: t0, Utilization: 0.5, ResetAt: t0.Add(day), Samples: []forecast.Sample{{At: t0, Utilization: 0.4, ResetAt: t0.Add(day)}}},
		"not a number":   {Name: "weekly", Length: 7 * day, ObservedAt: t0, Utilization: 0.5, ResetAt: t0.Add(day), Samples: []forecast.Sample{{At: t0.Add(-day), Utilization: math.NaN()}}},
		"nothing at all": {},
	} {
		if o := forecast.Of(w, t0); o.Known || !o.DryAt.IsZero() {
			t.Errorf("%s: got %+v, want nothing known", name, o)
		}
	}
}

// After an early reset the new cycle is what counts, and the fall is no consumption.
func TestEarlyReset(t *testing.T) {
	w := forecast.Window{Name: "weekly", Length: 7 * day, ObservedAt: t0, Utilization: 0.12, ResetAt: t0.Add(6 * day)}
	for h := 96; h >= 1; h-- {
		at := t0.Add(-time.Duration(h) * time.Hour)
		u, reset := 0.5+0.12/24*float64(96-h), t0.Add(2*day)
		if h <= 24 {
			u, reset = 0.12/24*float64(24-h), t0.Add(6*day)
		}
		w.Samples = append(w.Samples, forecast.Sample{At: at, Utilization: u, ResetAt: reset})
	}
	o := forecast.Of(w, t0)
	if math.Abs(o.Usual-0.12) > 0.002 {
		t.Errorf("got %v a day, want 0.12", o.Usual)
	}
	if !o.DryAt.IsZero() {
		t.Errorf("got dry at %v, want never: 12 %% and 72 more", o.DryAt)
	}
}

// What was used while nobody looked is spread over the time, and none of it is lost; a gap
// across a reset covers the time after the reset only.
func TestGap(t *testing.T) {
	w := weekly(t0, t0.Add(day), 6*day, steady(0.14))
	var kept []forecast.Sample
	for _, s := range w.Samples {
		if back := t0.Sub(s.At); back < day || back > 3*day {
			kept = append(kept, s)
		}
	}
	w.Samples = kept
	if o := forecast.Of(w, t0); math.Abs(o.Usual-0.14) > 1e-6 || o.Covered != 6*day {
		t.Errorf("got %v a day over %v, want 0.14 over six days", o.Usual, o.Covered)
	}
	reset := t0.Add(-12 * time.Hour)
	across := forecast.Window{Name: "weekly", Length: 7 * day, ObservedAt: t0, Utilization: 0.07, ResetAt: reset.Add(7 * day), Samples: []forecast.Sample{
		{At: t0.Add(-48 * time.Hour), Utilization: 0.6, ResetAt: reset},
	}}
	if o := forecast.Of(across, t0); math.Abs(o.Usual-0.14) > 1e-6 || o.Covered != 12*time.Hour {
		t.Errorf("across a reset: got %v a day over %v, want 0.14 over twelve hours", o.Usual, o.Covered)
	}
}

// Days that differ make the range wide; the middle is their mean.
func TestBurstyDays(t *testing.T) {
	w := weekly(t0, t0.Add(12*time.Hour), 6*day+12*time.Hour, func(at time.Time) float64 {
		if int(t0.Sub(at).Hours()/24)%2 == 1 {
			return 0.2 / 24
		}
		return 0.04 / 24
	})
	o := forecast.Of(w, t0)
	r := o.At(t0.Add(11 * time.Hour))
	// Three days of 20 points and three of 4 deviate by 8.8 points; eight of ten stay within
	// 1.28 times that and the square root of the time.
	if want := 1.2816 * 0.0876 * math.Sqrt(11.0/24); math.Abs(r.High-r.Mid-want) > 0.005 {
		t.Errorf("got %v above the middle, want %v", r.High-r.Mid, want)
	}
	if math.Abs(r.Low-w.Utilization) > 1e-9 {
		t.Errorf("got a low of %v, want today's %v: a window does not empty before its reset", r.Low, w.Utilization)
	}
}

// With two weeks of working days, a Friday evening's forecast knows of the weekend.
func TestShapeOfTheWeek(t *testing.T) {
	friday := time.Date(2027, 3, 19, 18, 0, 0, 0, time.UTC)
	work := func(at time.Time) float64 {
		if at.Weekday() >= time.Monday && at.Weekday() <= time.Friday && at.Hour() >= 9 && at.Hour() < 17 {
			return 0.16 / 8
		}
		return 0
	}
	w := weekly(friday, friday.Add(60*time.Hour), 15*day, work) // resets on Monday, 06:00
	w.Utilization = 0.9
	w.Samples = append(w.Samples[:len(w.Samples)-1], forecast.Sample{At: friday.Add(-time.Hour), Utilization: 0.9, ResetAt: w.ResetAt})
	o := forecast.Of(w, friday)
	if !o.Shaped {
		t.Fatal("fifteen days have no shape")
	}
	if !o.DryAt.IsZero() || o.AtReset.Mid > 0.92 {
		t.Errorf("got dry at %v, %v at the reset; nobody works on the weekend", o.DryAt, o.AtReset.Mid)
	}
	if got := o.At(friday.Add(4*day)).Mid - o.At(friday.Add(3*day)).Mid; math.Abs(got-0.16) > 0.03 {
		t.Errorf("from Monday to Tuesday evening: got %v, want about 0.16", got)
	}
}

// A figure of three hours ago is carried forward.
func TestStaleFigure(t *testing.T) {
	w := weekly(t0.Add(-3*time.Hour), t0.Add(2*day), 4*day, steady(0.24))
	o := forecast.Of(w, t0)
	if got, want := o.Utilization.Mid, w.Utilization+0.03; math.Abs(got-want) > 1e-3 {
		t.Errorf("got %v now, want %v", got, want)
	}
}

// A reset that has come empties the window.
func TestPassedReset(t *testing.T) {
	w := weekly(t0.Add(-2*time.Hour), t0.Add(-time.Hour), 4*day, steady(0.24))
	o := forecast.Of(w, t0)
	if got := o.Utilization.Mid; math.Abs(got-0.01) > 1e-3 {
		t.Errorf("got %v an hour after the reset, want 0.01", got)
	}
	if !o.ResetAt.Equal(t0.Add(7*day - time.Hour)) {
		t.Errorf("got the next reset at %v", o.ResetAt)
	}
}

func member(name, plan string, w forecast.Window, now time.Time) forecast.Member {
	return forecast.Member{Name: name, Plan: plan, Weekly: forecast.Of(w, now)}
}

func TestTogether(t *testing.T) {
	now := t0
	// Two equal accounts of 8 points a day each: 112 of 200.
	a := weekly(now, now.Add(3*day), 7*day, steady(0.08))
	b := weekly(now, now.Add(6*day), 7*day, steady(0.08))
	two := forecast.Together([]forecast.Member{member("a", "max", a, now), member("b", "max", b, now)}, nil, now)
	if math.Abs(two.Demand-112) > 1 || two.Allowance != 200 || math.Abs(two.Fits()-1.786) > 0.02 || !two.DryAt.IsZero() || two.Needed != 2 {
		t.Errorf("two accounts: got %+v, fits %v; want 112 of 200, 1.8 times", two, two.Fits())
	}
	// One account of 16 points a day: 112 of 100, dry before its reset.
	one := weekly(now, now.Add(33*time.Hour), 7*day, steady(0.16))
	alone := forecast.Together([]forecast.Member{member("a", "max", one, now)}, nil, now)
	left := 1 - one.Utilization
	if math.Abs(alone.Demand-112) > 1 || alone.Allowance != 100 || !near(alone.DryAt, now.Add(time.Duration(left/0.16*float64(day))), 10*time.Minute) {
		t.Errorf("one account: got %+v, want 112 of 100, dry in %v", alone, time.Duration(left/0.16*float64(day)))
	}
	if !alone.ResetAt.Equal(now.Add(33 * time.Hour)) {
		t.Errorf("one account: got the reset at %v", alone.ResetAt)
	}
}

// An account added on Wednesday takes its part of one demand; it does not add to it.
func TestAddedInMidWeek(t *testing.T) {
	now := t0
	since := now.Add(-2 * day)
	old := weekly(now, now.Add(3*day), 7*day, func(at time.Time) float64 {
		if at.After(since) {
			return 0.10 / 24
		}
		return 0.20 / 24
	})
	added := weekly(now, now.Add(5*day), 2*day, steady(0.10))
	got := forecast.Together([]forecast.Member{member("old", "max", old, now), member("new", "max", added, now)}, nil, now)
	if math.Abs(got.Demand-140) > 1.5 {
		t.Errorf("got a demand of %v, want 140: 20 points a day, whoever served", got.Demand)
	}
}

func TestUnequalPlans(t *testing.T) {
	now := t0
	members := []forecast.Member{
		member("a", "max-20", weekly(now, now.Add(day), 7*day, steady(0.04)), now),
		member("b", "pro", weekly(now, now.Add(day), 7*day, steady(0.10)), now),
	}
	if got := forecast.Together(members, nil, now); !got.Unequal || got.Known || got.Demand != 0 {
		t.Errorf("got %+v, want nothing added", got)
	}
	// Known to be a quarter as large: 4 + 2.5 points a day of 125.
	got := forecast.Together(members, map[string]float64{"pro": 0.25}, now)
	if got.Allowance != 125 || math.Abs(got.Demand-45.5) > 1 {
		t.Errorf("got %+v, want 45.5 of 125", got)
	}
	if none := forecast.Together(nil, nil, now); none.Known || none.Unequal {
		t.Errorf("no accounts: got %+v", none)
	}
}

func TestApart(t *testing.T) {
	now := t0
	of := func(resets ...time.Duration) float64 {
		var members []forecast.Member
		for _, r := range resets {
			members = append(members, member("a", "", weekly(now, now.Add(r), 2*day, steady(0.1)), now))
		}
		return forecast.Together(members, nil, now).Apart
	}
	if got := of(day, day); math.Abs(got-1) > 1e-9 {
		t.Errorf("aligned: got %v, want 1", got)
	}
	if got := of(day, day+84*time.Hour); math.Abs(got) > 1e-9 {
		t.Errorf("half a week apart: got %v, want 0", got)
	}
}
