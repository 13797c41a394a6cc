package pick_test

import (
	"math"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestScoreExample is the worked example of the package comment.
func TestScoreExample(t *testing.T) {
	for _, tt := range []struct {
		name            string
		placed          int64
		marlow, juniper float64
		want            string
	}{
		{"at first", 0, 1.8625, 0.225 + 0.1125 + 0.12/0.17, "marlow"},
		{"the fourth of a burst", 3, 1.8625 - 0.6/0.7, 0.225 + 0.1125 + 0.12/0.17, "juniper"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cs := []pick.Candidate{
				candidate("marlow", week(0.30, 0.75), fiveHour(0.20), readAgo(time.Minute), unseen(tt.placed)),
				candidate("juniper", week(0.10, 0.25), fiveHour(0.85), readAgo(time.Minute)),
			}
			d := pick.Pick(now, score, settings(), ordinary, cs)
			wantChosen(t, cs, d, tt.want)
			if !near(d.Parts[0].Score, tt.marlow) || !near(d.Parts[1].Score, tt.juniper) {
				t.Errorf("scores: got %v and %v, want %v and %v", d.Parts[0].Score, d.Parts[1].Score, tt.marlow, tt.juniper)
			}
			if d.Reason != pick.ByScore {
				t.Errorf("reason: got %q, want %q", d.Reason, pick.ByScore)
			}
		})
	}
}

// TestScoreTerms checks each term alone, by the formulas of the package comment.
func TestScoreTerms(t *testing.T) {
	fable := pick.Request{Key: "k", Family: "fable", Model: "claude-fable-5"}
	weeklyOf := func(family string, u, elapsed float64) change {
		return window(account.WeeklyOf(family), u, time.Duration((1-elapsed)*float64(account.Week)))
	}
	tests := []struct {
		name string
		r    pick.Request
		c    pick.Candidate
		want pick.Terms
	}{
		{name: "nothing known of any window", c: candidate("a"), want: pick.Terms{Short: 1}},
		{name: "a week half over", c: candidate("a", week(0.20, 0.50)), want: pick.Terms{Expiring: 0.40, Pace: 0.425 - 0.20, Short: 1}},
		{name: "ahead of pace", c: candidate("a", week(0.90, 0.50)), want: pick.Terms{Expiring: 0.05, Pace: 0.425 - 0.90, Short: 1}},
		{name: "over full", c: candidate("a", week(1.20, 0.50)), want: pick.Terms{Pace: 0.425 - 1.20, Short: 1}},
		{name: "far over full: pace is clamped", c: candidate("a", week(3, 0.50)), want: pick.Terms{Pace: -1, Short: 1}},
		{name: "less than nothing", c: candidate("a", week(-0.50, 0.50)), want: pick.Terms{Expiring: 0.50, Pace: 0.425, Short: 1}},
		{name: "a week without a told reset has not begun", c: candidate("a", window(account.Weekly, 0.3, 0)), want: pick.Terms{Pace: -0.30, Short: 1}},
		{name: "a week at its reset is empty", c: candidate("a", resetNow(account.Weekly, 0.9)), want: pick.Terms{Short: 1}},
		{name: "a reset more than a week away", c: candidate("a", window(account.Weekly, 0.2, 2*account.Week)), want: pick.Terms{Pace: -0.20, Short: 1}},
		{name: "the family's own week binds when it is worse", c: candidate("a", week(0.20, 0.50), weeklyOf("opus", 0.60, 0.50)), want: pick.Terms{Expiring: 0.20, Pace: 0.425 - 0.60, Short: 1}},
		{name: "another family's week does not", c: candidate("a", week(0.20, 0.50), weeklyOf("haiku", 0.60, 0.50)), want: pick.Terms{Expiring: 0.40, Pace: 0.425 - 0.20, Short: 1}},
		{name: "five hours 1 ulp below the line", c: candidate("a", fiveHour(math.Nextafter(0.80, 0))), want: pick.Terms{Short: 1}},
		{name: "five hours exactly at 0.80", c: candidate("a", fiveHour(0.80)), want: pick.Terms{Short: 1}},
		{name: "five hours half way down", c: candidate("a", fiveHour(0.885)), want: pick.Terms{Short: 0.5}},
		{name: "five hours 1 ulp below 0.97", c: candidate("a", fiveHour(math.Nextafter(0.97, 0))), want: pick.Terms{Short: 0}},
		{name: "five hours exactly at 0.97", c: candidate("a", fiveHour(0.97)), want: pick.Terms{Short: 0}},
		{name: "five hours over 0.97", c: candidate("a", fiveHour(0.98)), want: pick.Terms{Short: 0}},
		{name: "five hours over full", c: candidate("a", fiveHour(1.08)), want: pick.Terms{Short: 0}},
		{name: "five hours past their reset", c: candidate("a", window(account.FiveHour, 0.99, -1)), want: pick.Terms{Short: 1}},
		{name: "expensive, all room left for the default family", r: fable, c: candidate("a"), want: pick.Terms{Short: 1, Model: -1}},
		{name: "expensive, default family partly used", r: fable, c: candidate("a", weeklyOf("sonnet", 0.75, 0.5)), want: pick.Terms{Short: 1, Model: -0.25}},
		{name: "expensive, default family blocked", r: fable,
			c:    candidate("a", block(account.Block{Cause: account.Weekly, Window: account.Weekly, Family: "sonnet"}, time.Hour)),
			want: pick.Terms{Short: 1}},
		{name: "expensive, default family blocked until now", r: fable,
			c:    candidate("a", block(account.Block{Cause: account.Weekly, Window: account.Weekly, Family: "sonnet"}, 0)),
			want: pick.Terms{Short: 1, Model: -1}},
		{name: "expensive, default family only paused", r: fable,
			c:    candidate("a", block(account.Block{Cause: account.CauseThrottle, Family: "sonnet"}, time.Second)),
			want: pick.Terms{Short: 1, Model: -1}},
		{name: "expensive, a window that binds it says nothing of the default family", r: fable, c: candidate("a", weeklyOf("fable", 0.5, 0.5)), want: pick.Terms{Expiring: 0.25, Pace: 0.425 - 0.5, Short: 1, Model: -1}},
		{name: "expensive by name in another case", r: pick.Request{Family: "fable", Model: "Claude-FABLE-5"}, c: candidate("a"), want: pick.Terms{Short: 1, Model: -1}},
		{name: "load over all headroom", c: candidate("a", unseen(3)), want: pick.Terms{Short: 1, Load: -0.6}},
		{name: "load over half the headroom", c: candidate("a", fiveHour(0.5), unseen(3)), want: pick.Terms{Short: 1, Load: -1.2}},
		{name: "load over no headroom is floored", c: candidate("a", fiveHour(1.5), unseen(1)), want: pick.Terms{Load: -20}},
		{name: "more load seen than placed", c: candidate("a", unseen(-7)), want: pick.Terms{Short: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.r
			if r.Model == "" {
				r = ordinary
			}
			p := pick.Pick(now, score, settings(), r, []pick.Candidate{tt.c}).Parts[0]
			g, w := p.Terms, tt.want
			if !near(g.Expiring, w.Expiring) || !near(g.Pace, w.Pace) || !near(g.Short, w.Short) || !near(g.Model, w.Model) || !near(g.Load, w.Load) {
				t.Errorf("got %+v, want %+v", g, w)
			}
			if !near(p.Score, g.Expiring+g.Pace+g.Short+g.Model+g.Load) {
				t.Errorf("score: got %v, want the sum of %+v", p.Score, g)
			}
		})
	}
}

// TestDefaultFamilies checks which families a pattern names.
func TestDefaultFamilies(t *testing.T) {
	tests := []struct {
		patterns []string
		family   string
		want     float64 // model term: -1 when the family's spent window does not count
	}{
		{[]string{"*sonnet*"}, "sonnet", 0},
		{[]string{"claude-sonnet-*"}, "sonnet", 0},
		{[]string{"Claude-Sonnet-5"}, "sonnet", 0},
		{[]string{"claude-sonnet-*"}, "sonn", -1},
		{[]string{"*haiku*"}, "sonnet", -1},
		{[]string{"*haiku*", "*sonnet*"}, "sonnet", 0},
		{[]string{"[sonnet"}, "opus", -1},
		{nil, "sonnet", -1},
		{[]string{"*SONNET*"}, "sonnet", 0},
		// A window that binds the request would reward being full.
		{[]string{"*fable*"}, "fable", -1},
	}
	for _, tt := range tests {
		s := settings()
		s.DefaultModels = tt.patterns
		c := candidate("a", window(account.WeeklyOf(tt.family), 1, time.Hour))
		r := pick.Request{Family: "fable", Model: "claude-fable-5"}
		if got := pick.Pick(now, score, s, r, []pick.Candidate{c}).Parts[0].Terms.Model; got != tt.want {
			t.Errorf("%q naming %s: got a model term of %v, want %v", tt.patterns, tt.family, got, tt.want)
		}
	}
}

func TestExpensivePatterns(t *testing.T) {
	for pattern, want := range map[string]float64{
		"*fable*": -1, "*FABLE*": -1, "claude-fable-?": -1, "fable": 0, "claude-[": 0, "": 0,
	} {
		s := settings()
		s.ExpensiveModels = []string{"other", pattern}
		r := pick.Request{Family: "fable", Model: "Claude-Fable-5"}
		if got := pick.Pick(now, score, s, r, []pick.Candidate{candidate("a")}).Parts[0].Terms.Model; got != want {
			t.Errorf("%q: got a model term of %v, want %v", pattern, got, want)
		}
	}
}

// TestEachWeightTurnsAPick has, per weight, a pick that goes the other way without it.
func TestEachWeightTurnsAPick(t *testing.T) {
	fable := pick.Request{Key: "k", Family: "fable", Model: "claude-fable-5"}
	tests := []struct {
		name    string
		without func(*catalog.Settings)
		r       pick.Request
		cs      []pick.Candidate
	}{
		// a would lose 0.5 of a week soon, b is a little further behind its pace.
		{"weight_expiring", func(s *catalog.Settings) { s.WeightExpiring = 0 }, ordinary, []pick.Candidate{
			candidate("a", week(0.40, 0.90)), // expiring 0.54, pace 0.365
			candidate("b", week(0.05, 0.50)), // expiring 0.475, pace 0.375
		}},
		// b has more that expires, but is so far ahead of its pace that a serves.
		{"weight_pace", func(s *catalog.Settings) { s.WeightPace = 0 }, ordinary, []pick.Candidate{
			candidate("a", week(0.00, 0.30)), // expiring 0.30, pace 0.255
			candidate("b", week(0.60, 0.90)), // expiring 0.36, pace 0.165
		}},
		{"weight_short", func(s *catalog.Settings) { s.WeightShort = 0 }, ordinary, []pick.Candidate{
			candidate("a", week(0.30, 0.50), fiveHour(0.10)),
			candidate("b", week(0.20, 0.50), fiveHour(0.95)),
		}},
		{"weight_model", func(s *catalog.Settings) { s.WeightModel = 0 }, fable, []pick.Candidate{
			candidate("a", week(0.30, 0.50), window("weekly:sonnet", 0.90, time.Hour)),
			candidate("b", week(0.20, 0.50)),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := settings()
			wantChosen(t, tt.cs, pick.Pick(now, score, s, tt.r, tt.cs), "a")
			tt.without(&s)
			wantChosen(t, tt.cs, pick.Pick(now, score, s, tt.r, tt.cs), "b")
		})
	}
}

// TestModelTermSteersOnlyExpensiveRequests has the same accounts serve another request.
func TestModelTermSteersOnlyExpensiveRequests(t *testing.T) {
	cs := []pick.Candidate{
		candidate("a", week(0.30, 0.50), window("weekly:sonnet", 0.90, time.Hour)),
		candidate("b", week(0.20, 0.50)),
	}
	wantChosen(t, cs, pick.Pick(now, score, settings(), ordinary, cs), "b")
}

func TestFreshness(t *testing.T) {
	// fresh and full reads 0.4 lower than old; each term of the old reading is drawn to
	// the mean of the two by its age.
	tests := []struct {
		name string
		age  time.Duration
		f    float64
	}{
		{"from the future", -time.Minute, 1},
		{"just read", 0, 1},
		{"exactly ten minutes", 10 * time.Minute, 1},
		{"twenty minutes", 20 * time.Minute, 0.5},
		{"a hundred minutes", 100 * time.Minute, 0.1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cs := []pick.Candidate{
				candidate("old", week(0.20, 0.50), readAgo(tt.age)),
				candidate("new", week(0.60, 0.50)),
				candidate("never", unread(9)),                      // no part in the mean
				candidate("cools", week(0, 1), cooling(time.Hour)), // nor has this
			}
			d := pick.Pick(now, score, settings(), ordinary, cs)
			wantChosen(t, cs, d, "old")
			// expiring 0.40 and 0.20, mean 0.30; pace 0.225 and -0.175, mean 0.025.
			want := pick.Terms{Expiring: 0.30 + tt.f*0.10, Pace: 0.025 + tt.f*0.20, Short: 1}
			if got := d.Parts[0].Terms; !near(got.Expiring, want.Expiring) || !near(got.Pace, want.Pace) || !near(got.Short, want.Short) {
				t.Errorf("old: got %+v, want %+v", got, want)
			}
			if got := d.Parts[1].Terms; !near(got.Expiring, 0.20) || !near(got.Pace, -0.175) {
				t.Errorf("new: got %+v, want it undiscounted", got)
			}
			if got := d.Parts[0].Freshness; !near(got, tt.f) {
				t.Errorf("freshness: got %v, want %v", got, tt.f)
			}
		})
	}
}

// TestFreshnessTurnsAPick: what looked better an hour ago no longer beats what looks
// good now, because a third account draws the mean down.
func TestFreshnessTurnsAPick(t *testing.T) {
	cs := []pick.Candidate{
		candidate("old", week(0.10, 0.50)),
		candidate("new", week(0.20, 0.50)),
		candidate("poor", week(0.90, 0.50)),
	}
	wantChosen(t, cs, pick.Pick(now, score, settings(), ordinary, cs), "old")
	cs[0] = candidate("old", week(0.10, 0.50), readAgo(time.Hour))
	wantChosen(t, cs, pick.Pick(now, score, settings(), ordinary, cs), "new")
}
