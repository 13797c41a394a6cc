package pick_test

import (
	"math"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
)

// TestYields is part of field case background-label-and-starvation.
func TestYields(t *testing.T) {
	throttled := block(account.Block{Cause: account.CauseThrottle}, time.Minute)
	opus := block(account.Block{Cause: "weekly:opus", Family: "opus"}, 3*time.Hour)
	none := time.Duration(-1) // no yielding
	tests := []struct {
		name string
		cs   []pick.Candidate
		in   time.Duration // how long from now to try again
	}{
		{"plenty", []pick.Candidate{candidate("a", fiveHour(0.5))}, none},
		{"exactly 15 %", []pick.Candidate{candidate("a", fiveHour(0.85))}, none},
		{"a little less", []pick.Candidate{candidate("a", fiveHour(0.851))}, 2 * time.Hour},
		{"the fullest window counts", []pick.Candidate{candidate("a", fiveHour(0.1), week(0.9, 0.5))}, account.Week / 2},
		{"all full windows must reset", []pick.Candidate{candidate("a", fiveHour(0.9), window(account.Tokens, 1, time.Minute))}, 2 * time.Hour},
		{"another family's window does not count", []pick.Candidate{candidate("a", window("weekly:haiku", 1, time.Hour))}, none},
		{"a window past its reset is empty", []pick.Candidate{candidate("a", window(account.FiveHour, 0.9, -1))}, none},
		{"the best account counts", []pick.Candidate{candidate("a", fiveHour(0.9)), candidate("b", fiveHour(0.8))}, none},
		{"the soonest account counts", []pick.Candidate{candidate("a", week(0.9, 0.5)), candidate("b", fiveHour(0.9))}, 2 * time.Hour},
		{"an account that could never serve does not", []pick.Candidate{candidate("a", fiveHour(0.9)), candidate("b", parked), candidate("c", denied), candidate("d", foreign), candidate("e", drain), candidate("f", tried)}, 2 * time.Hour},
		{"one that cools has no headroom", []pick.Candidate{candidate("a", fiveHour(0.9)), candidate("b", cooling(time.Hour))}, time.Hour},
		{"nor has one whose model is blocked", []pick.Candidate{candidate("a", opus)}, 3 * time.Hour},
		{"one that pauses has", []pick.Candidate{candidate("a", fiveHour(0.9)), candidate("b", throttled)}, none},
		{"one that pauses longer than it cools has none", []pick.Candidate{candidate("a", throttled, cooling(time.Second))}, time.Second},
		{"block and window must both end", []pick.Candidate{candidate("a", fiveHour(1), cooling(time.Hour))}, 2 * time.Hour},
		{"a guard of overage too", []pick.Candidate{candidate("a", block(account.Block{Cause: account.CauseOverage}, time.Hour))}, time.Hour},
		{"not where overage is allowed", []pick.Candidate{candidate("a", block(account.Block{Cause: account.CauseOverage}, time.Hour), allowOverage)}, none},
		{"whichever ends later", []pick.Candidate{candidate("a", fiveHour(1), cooling(3*time.Hour))}, 3 * time.Hour},
		{"an unread account has all of it", []pick.Candidate{candidate("a", fiveHour(0.9)), candidate("b", unread(3))}, none},
		{"untold reset: the next poll may know", []pick.Candidate{candidate("a", window(account.FiveHour, 0.9, 0))}, 5 * time.Minute},
		{"one untold reset among two", []pick.Candidate{candidate("a", window(account.FiveHour, 0.9, 0), week(0.9, 0.5))}, 5 * time.Minute},
		{"a told reset beats an untold one", []pick.Candidate{candidate("a", window(account.FiveHour, 0.9, 0)), candidate("b", fiveHour(0.9))}, 2 * time.Hour},
		{"a figure that cannot be read is no headroom", []pick.Candidate{candidate("a", window(account.FiveHour, math.NaN(), time.Hour))}, time.Hour},
		{"nobody to yield to", []pick.Candidate{candidate("a", parked)}, none},
		{"no account", nil, none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := ordinary
			r.Background = true
			yield, at := pick.Yields(now, settings(), r, tt.cs)
			if yield != (tt.in != none) {
				t.Fatalf("got yield %v until %v, want %v", yield, at, tt.in != none)
			}
			if tt.in == none && !at.IsZero() {
				t.Errorf("got an instant %v without yielding", at)
			}
			if tt.in != none && !at.Equal(now.Add(tt.in)) {
				t.Errorf("retry: got in %v, want in %v", at.Sub(now), tt.in)
			}
		})
	}
}

// TestYieldsAtItsLine: the line is what the setting says, in decimal.
func TestYieldsAtItsLine(t *testing.T) {
	for percent := range 100 {
		s := settings()
		s.BackgroundHeadroom = float64(percent) / 100
		for _, tt := range []struct {
			u    float64
			want bool
		}{
			{float64(100-percent) / 100, false},
			{float64(100-percent)/100 + 0.001, true},
		} {
			got, _ := pick.Yields(now, s, ordinary, []pick.Candidate{candidate("a", fiveHour(tt.u))})
			if got != tt.want {
				t.Errorf("%v full with a line of %v: got %v, want %v", tt.u, s.BackgroundHeadroom, got, tt.want)
			}
		}
	}
}

func TestYieldsPinned(t *testing.T) {
	tests := []struct {
		name string
		c    pick.Candidate
		want bool
	}{
		{"room", candidate("a", fiveHour(0.5)), false},
		{"none", candidate("a", fiveHour(0.9)), true},
		{"draining with room", candidate("a", fiveHour(0.5), drain), false},
		{"draining without", candidate("a", fiveHour(0.9), drain), true},
		{"cooling: it waits or moves", candidate("a", fiveHour(0.9), cooling(time.Hour)), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, at := pick.YieldsPinned(now, settings(), ordinary, tt.c); got != tt.want || at.IsZero() == tt.want {
				t.Errorf("got %v until %v, want %v", got, at, tt.want)
			}
		})
	}
}
