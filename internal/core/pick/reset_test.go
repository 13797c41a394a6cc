package pick_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
)

func TestSoonestReset(t *testing.T) {
	weekIn := func(u float64, in time.Duration) change { return window(account.Weekly, u, in) }
	const day = 24 * time.Hour
	tests := []struct {
		name string
		cs   []pick.Candidate
		want string
	}{
		{"soonest, however full", []pick.Candidate{candidate("a", weekIn(0.1, 2*day)), candidate("b", weekIn(0.96, 1*day))}, "b"},
		{"by 1 ns", []pick.Candidate{candidate("a", weekIn(0.1, day+1)), candidate("b", weekIn(0.9, day))}, "b"},
		{"not at the line", []pick.Candidate{candidate("a", weekIn(0.1, 2*day)), candidate("b", weekIn(0.97, 1*day))}, "a"},
		{"nor with another window at the line", []pick.Candidate{candidate("a", weekIn(0.1, 2*day)), candidate("b", weekIn(0.1, day), fiveHour(0.97))}, "a"},
		{"the same reset: the least load", []pick.Candidate{candidate("a", weekIn(0.1, day), unseen(1)), candidate("b", weekIn(0.1, day))}, "b"},
		{"a reset at this instant counts as a week away", []pick.Candidate{candidate("a", resetNow(account.Weekly, 0.9)), candidate("b", weekIn(0.1, 6*day))}, "b"},
		{"a reset that has come counts as a week away", []pick.Candidate{candidate("a", weekIn(0.9, -1)), candidate("b", weekIn(0.1, 6*day))}, "b"},
		{"as does one never told", []pick.Candidate{candidate("a", weekIn(0.1, 0)), candidate("b", weekIn(0.9, 6*day))}, "b"},
		{"accounts without a week come after", []pick.Candidate{candidate("a", window(account.Tokens, 0.1, time.Minute)), candidate("b", weekIn(0.9, 6*day))}, "b"},
		{"even after an untold reset", []pick.Candidate{candidate("a"), candidate("b", weekIn(0.9, 0))}, "b"},
		{"and before those at the line", []pick.Candidate{candidate("a"), candidate("b", weekIn(0.98, day))}, "a"},
		{"all at the line: the least full", []pick.Candidate{candidate("a", weekIn(0.99, day)), candidate("b", weekIn(0.98, 2*day))}, "b"},
		{"which counts any window", []pick.Candidate{candidate("a", weekIn(0.98, day), fiveHour(1)), candidate("b", weekIn(0.99, 2*day))}, "b"},
		{"equally full: the soonest", []pick.Candidate{candidate("a", weekIn(0.98, 2*day)), candidate("b", weekIn(0.98, day))}, "b"},
		{"all at their cap: the least full", []pick.Candidate{candidate("a", weekIn(1.5, day)), candidate("b", weekIn(1.1, 2*day))}, "b"},
		{"two unread ones: the least load", []pick.Candidate{candidate("a", unread(4)), candidate("b", unread(3))}, "b"},
		{"unread after its trials comes last", []pick.Candidate{candidate("a", unread(3)), candidate("b", weekIn(1.5, day))}, "b"},
		{"a key is not tried first: it has no week", []pick.Candidate{key(unread(0)), candidate("b", weekIn(0.96, 6*day))}, "b"},
		{"nor does it come last", []pick.Candidate{candidate("a", weekIn(0.97, day)), key(unread(0)), candidate("b", unread(3))}, "key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			keyed(t, func(t *testing.T, r pick.Request) {
				d := pick.Pick(now, reset, settings(), r, tt.cs)
				wantChosen(t, tt.cs, d, tt.want)
				if d.Reason != pick.ByReset {
					t.Errorf("reason: got %q, want %q", d.Reason, pick.ByReset)
				}
			})
		})
	}
}

// key is an account that is paid by use.
func key(changes ...change) pick.Candidate {
	c := candidate("key", changes...)
	c.Account.Kind = account.Key
	return c
}

// TestSoonestResetSpreadsKeys: accounts without a weekly window share a burst evenly, and
// what comes in a trickle too, by the hash of the conversation.
func TestSoonestResetSpreadsKeys(t *testing.T) {
	for name, placing := range map[string]int64{"burst": 1, "trickle": 0} {
		t.Run(name, func(t *testing.T) {
			cs := []pick.Candidate{candidate("a"), candidate("b"), candidate("c")}
			got := make([]int, 3)
			for i := range 300 {
				r := ordinary
				r.Key = fmt.Sprint(i)
				d := pick.Pick(now, reset, settings(), r, cs)
				got[d.Chosen]++
				cs[d.Chosen].Placed += placing
			}
			for _, n := range got {
				if n < 70 || n > 130 || (placing == 1 && n != 100) {
					t.Errorf("got %v of 300, want 100 each", got)
				}
			}
		})
	}
}
