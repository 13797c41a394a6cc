package account_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
)

// t0 is the instant that everything here is reckoned from.
var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

var rules = account.Rules{BarePause: 5 * time.Second}

// day in the tests is a plain 24 hours.
const day = 24 * time.Hour

// window is a reading of one window; reset is an offset from t0.
func window(name string, u float64, reset time.Duration) account.WindowReading {
	return account.WindowReading{Name: name, Utilization: u, HasUtilization: true, ResetAt: at(reset)}
}

func said(w account.WindowReading, s account.WindowStatus) account.WindowReading {
	w.Status = s
	return w
}

func reading(when time.Duration, source account.Source, windows ...account.WindowReading) account.Reading {
	return account.Reading{At: at(when), Source: source, Windows: windows}
}

func answer(when time.Duration, windows ...account.WindowReading) account.Reading {
	return reading(when, account.FromAnswer, windows...)
}

func poll(when time.Duration, windows ...account.WindowReading) account.Reading {
	return reading(when, account.FromPoll, windows...)
}

// spent is a rejection for one window; a reset of 0 tells none.
func spent(when time.Duration, window, family string, reset time.Duration) account.Rejection {
	sp := account.Spent{Window: window, Family: family}
	if reset != 0 {
		sp.ResetAt = at(reset)
	}
	kind := account.WindowSpent
	if family != "" {
		kind = account.ModelWindow
	}
	return account.Rejection{Kind: kind, At: at(when), Spent: []account.Spent{sp}}
}

func bare(when time.Duration, model string) account.Rejection {
	return account.Rejection{Kind: account.Bare, At: at(when), Model: model, Family: "opus"}
}

// refuse folds rejections into a state never seen.
func refuse(rs ...account.Rejection) account.State {
	var s account.State
	for _, r := range rs {
		s = s.Reject(r, rules)
	}
	return s
}

// usable reports whether nothing blocks a request at an instant.
func usable(s account.State, when time.Duration, family string) bool {
	return len(blocksFor(s, at(when), account.Ask{Family: family, Model: "claude-" + family})) == 0
}

// wantUntil checks that requests of a family are blocked up to, and not at, an instant.
func wantUntil(t *testing.T, s account.State, family string, end time.Duration) {
	t.Helper()
	b, blocked := blockedUntil(s, at(end-1), family, "claude-"+family)
	if !blocked {
		t.Errorf("%s 1 ns before %v: got usable, want blocked", family, end)
	} else if !b.Until.Equal(at(end)) {
		t.Errorf("%s: got blocked until %v, want %v", family, b.Until.Sub(t0), end)
	}
	for _, d := range []time.Duration{end, end + 1} {
		if b, blocked := blockedUntil(s, at(d), family, "claude-"+family); blocked {
			t.Errorf("%s at %v: got blocked by %s, want usable", family, d, b.Cause)
		}
	}
}

func wantUsable(t *testing.T, s account.State, when time.Duration, families ...string) {
	t.Helper()
	for _, f := range families {
		if b, blocked := blockedUntil(s, at(when), f, "claude-"+f); blocked {
			t.Errorf("%q at %v: got blocked by %s until %v, want usable", f, when, b.Cause, b.Until.Sub(t0))
		}
	}
}

// causes lists what blocks a request at an instant.
func causes(s account.State, when time.Duration, family, model string) string {
	var names []string
	for _, b := range blocksFor(s, at(when), account.Ask{Family: family, Model: model}) {
		names = append(names, b.Cause)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
