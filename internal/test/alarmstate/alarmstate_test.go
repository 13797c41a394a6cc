package alarmstate_test

import (
	"testing"
	"time"

	"holdfast/internal/test/alarmstate"
)

var noon = time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)

// drawn makes points of a drawing, of which the last sign is the newest period: 0 is good,
// X breaches a threshold of 1, - is missing.
func drawn(drawing string) map[time.Time]float64 {
	points := map[time.Time]float64{}
	for i, sign := range drawing {
		at := noon.Add(-time.Duration(len(drawing)-i) * time.Minute)
		switch sign {
		case '0':
			points[at] = 0
		case 'X':
			points[at] = 1
		}
	}
	return points
}

func three(toAlarm int, missing string) alarmstate.Definition {
	return alarmstate.Definition{
		Name: "a", Statistic: "Maximum", Period: time.Minute, Periods: 3, ToAlarm: toAlarm,
		Comparison: alarmstate.AtLeast, Threshold: 1, Missing: missing,
	}
}

// The two tables of examples in CloudWatch's user guide, under "Configuring how CloudWatch
// alarms treat missing data": three periods, of which three or two must breach.
func TestPublishedExamples(t *testing.T) {
	for _, c := range []struct {
		drawing                 string
		toAlarm                 int
		breaching, notBreaching bool
	}{
		{"0-X-X", 3, false, false},
		{"0----", 3, false, false},
		{"-----", 3, true, false},
		{"0XX-X", 3, true, true},
		{"--X--", 3, true, false},

		{"0-X-X", 2, true, true},
		{"00X0X", 2, true, true},
		{"0-X--", 2, true, false},
		{"----0", 2, true, false},
		{"---X-", 2, true, false},
	} {
		for missing, want := range map[string]bool{alarmstate.Breaching: c.breaching, alarmstate.NotBreaching: c.notBreaching} {
			if got, err := three(c.toAlarm, missing).Raised(noon, drawn(c.drawing)); err != nil || got != want {
				t.Errorf("%s, %d to alarm, missing data %s: got %v (%v), want %v", c.drawing, c.toAlarm, missing, got, err, want)
			}
		}
	}
}

func TestWhatCounts(t *testing.T) {
	for _, c := range []struct {
		name    string
		drawing string
		now     time.Time
		edit    func(*alarmstate.Definition)
		want    bool
	}{
		{"the newest decide", "XXX000", noon, nil, false},
		{"older ones than those do not", "000XXX", noon, nil, true},
		{"a period that is not over does not count", "0XX0XXX", noon.Add(-time.Second), nil, false},
		{"one that is over does", "0XX0XXX", noon.Add(59 * time.Second), nil, true},
		{"beyond the range nothing is seen", "XXX-----", noon, nil, false},
		{"above", "XXX", noon, func(d *alarmstate.Definition) { d.Comparison = alarmstate.Above }, false},
		{"below", "000", noon, func(d *alarmstate.Definition) { d.Comparison = alarmstate.Below }, true},
		{"not below", "XXX", noon, func(d *alarmstate.Definition) { d.Comparison = alarmstate.Below }, false},
		{"at most", "XXX", noon, func(d *alarmstate.Definition) { d.Comparison = alarmstate.AtMost }, true},
		{"a longer period", "XXXXXX", noon, func(d *alarmstate.Definition) { d.Period, d.Periods, d.ToAlarm = 2*time.Minute, 1, 1 }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := three(3, alarmstate.NotBreaching)
			if c.edit != nil {
				c.edit(&d)
			}
			if got, err := d.Raised(c.now, drawn(c.drawing)); err != nil || got != c.want {
				t.Errorf("got %v (%v), want %v", got, err, c.want)
			}
		})
	}
}

func TestUnknownDefinitions(t *testing.T) {
	for name, edit := range map[string]func(*alarmstate.Definition){
		"missing data":   func(d *alarmstate.Definition) { d.Missing = "ignore" },
		"no treatment":   func(d *alarmstate.Definition) { d.Missing = "" },
		"comparison":     func(d *alarmstate.Definition) { d.Comparison = "LessThanLowerThreshold" },
		"no period":      func(d *alarmstate.Definition) { d.Period = 0 },
		"none to alarm":  func(d *alarmstate.Definition) { d.ToAlarm = 0 },
		"more than seen": func(d *alarmstate.Definition) { d.ToAlarm = 4 },
	} {
		d := three(3, alarmstate.Breaching)
		edit(&d)
		if raised, err := d.Raised(noon, drawn("XXX")); err == nil {
			t.Errorf("%s: got %v, want an error", name, raised)
		}
	}
}
