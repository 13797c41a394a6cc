// Package alarmstate says what state CloudWatch puts an alarm in, given its definition and
// the data points there are, by the rules that AWS publishes ("Alarm evaluation" and
// "Configuring how CloudWatch alarms treat missing data" in CloudWatch's user guide).
// Stand-ins of AWS evaluate alarms by rules of their own; a test decides by these.
//
// # The rules
//
// A data point is the statistic of one period. The most recent Periods data points decide:
// if at least ToAlarm of them breach the threshold, the alarm is raised. Where points are
// missing among those, older ones of the evaluation range stand in for them, which reaches
// further back than Periods; only where the whole range has fewer points than Periods are
// the missing ones filled in, as few as needed, with what Missing says.
//
// How far the range reaches is not published. The guide's examples have five periods for
// three; Range takes that surplus of two for all.
//
// # Never
//
// It does not know the treatments "missing" and "ignore", under which a state depends on
// the one before, nor percentiles, anomaly bands and metric math: no alarm here has one.
// It is pure, and for tests alone.
package alarmstate

import (
	"fmt"
	"time"
)

// Treatments of missing data.
const (
	Breaching    = "breaching"
	NotBreaching = "notBreaching"
)

// Comparisons of a data point, on the left, with the threshold.
const (
	AtLeast = "GreaterThanOrEqualToThreshold"
	Above   = "GreaterThanThreshold"
	Below   = "LessThanThreshold"
	AtMost  = "LessThanOrEqualToThreshold"
)

// Definition is an alarm as CloudWatch has it, in CloudWatch's words.
type Definition struct {
	Name, Namespace, Metric string
	// Dimensions by name.
	Dimensions map[string]string
	// Statistic is Minimum, Maximum, Sum, Average or SampleCount.
	Statistic string
	Period    time.Duration
	// Periods are looked at, and so many of them must breach: EvaluationPeriods and
	// DatapointsToAlarm, of which the latter is the former where it was not given.
	Periods, ToAlarm int
	Comparison       string
	Threshold        float64
	Missing          string
	// Actions are done when the alarm is raised, OKActions when it is over.
	Actions, OKActions []string
	// Off: neither are done.
	Off bool
}

// Range is how many periods an evaluation looks back over.
func (d Definition) Range() int { return d.Periods + 2 }

// Raised reports whether the alarm is raised at now, when points are the data points there
// are by the begin of their period. Of the periods those count that are over.
func (d Definition) Raised(now time.Time, points map[time.Time]float64) (bool, error) {
	if d.Missing != Breaching && d.Missing != NotBreaching {
		return false, fmt.Errorf("alarm %s treats missing data as %q, which depends on the state before", d.Name, d.Missing)
	}
	if d.Period <= 0 || d.ToAlarm < 1 || d.ToAlarm > d.Periods {
		return false, fmt.Errorf("alarm %s looks for %d of %d periods of %v", d.Name, d.ToAlarm, d.Periods, d.Period)
	}
	known := map[time.Time]float64{} // whatever the points' zone
	for at, v := range points {
		known[at.UTC()] = v
	}
	last := now.UTC().Truncate(d.Period)
	counted, breaching := 0, 0
	for back := 1; back <= d.Range() && counted < d.Periods; back++ {
		v, there := known[last.Add(-time.Duration(back)*d.Period)]
		if !there {
			continue
		}
		counted++
		bad, err := d.breaches(v)
		if err != nil {
			return false, err
		}
		if bad {
			breaching++
		}
	}
	if d.Missing == Breaching {
		breaching += d.Periods - counted
	}
	return breaching >= d.ToAlarm, nil
}

func (d Definition) breaches(v float64) (bool, error) {
	switch d.Comparison {
	case AtLeast:
		return v >= d.Threshold, nil
	case Above:
		return v > d.Threshold, nil
	case Below:
		return v < d.Threshold, nil
	case AtMost:
		return v <= d.Threshold, nil
	}
	return false, fmt.Errorf("alarm %s compares by %q", d.Name, d.Comparison)
}

// Notices are the instants at which an alarm that was made at begin notifies, up to end: at
// each change of its state, the first one included, for which the definition has actions. An
// alarm begins without data, and is evaluated once in each period. points are all data points
// by the begin of their period; on is when somebody turned its actions on, zero where nobody
// did.
func (d Definition) Notices(begin, end, on time.Time, points map[time.Time]float64) ([]time.Time, error) {
	const none = -1 // INSUFFICIENT_DATA
	state := none
	var at []time.Time
	for now := begin.Add(d.Period); !now.After(end); now = now.Add(d.Period) {
		seen := map[time.Time]float64{}
		for of, v := range points {
			if !of.Add(d.Period).After(now) {
				seen[of] = v
			}
		}
		raised, err := d.Raised(now, seen)
		if err != nil {
			return nil, err
		}
		next, actions := 0, d.OKActions
		if raised {
			next, actions = 1, d.Actions
		}
		acts := !d.Off || (!on.IsZero() && !now.Before(on))
		if next != state && acts && len(actions) > 0 {
			at = append(at, now)
		}
		state = next
	}
	return at, nil
}
