package pick_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/internal/core/pick"
)

// TestBurst places sixty conversations before any reading can show one: they spread in
// proportion to headroom.
func TestBurst(t *testing.T) {
	tests := []struct {
		name  string
		cs    []pick.Candidate
		want  []int
		slack int
	}{
		{"equal except in headroom", []pick.Candidate{
			candidate("a", fiveHour(0.20)), candidate("b", fiveHour(0.60)),
		}, []int{40, 20}, 1},
		{"three accounts", []pick.Candidate{
			candidate("a", fiveHour(0.10)), candidate("b", fiveHour(0.40)), candidate("c", fiveHour(0.70)),
		}, []int{30, 20, 10}, 1},
		{"all alike", []pick.Candidate{
			candidate("a", fiveHour(0.50)), candidate("b", fiveHour(0.50)), candidate("c", fiveHour(0.50)),
		}, []int{20, 20, 20}, 1},
		// The other terms differ by 0.6 here and tilt the spread, but do not decide it.
		{"headroom that the other terms see too", []pick.Candidate{
			candidate("a", week(0.20, 0.50)), candidate("b", week(0.60, 0.50)),
		}, []int{40, 20}, 4},
		// Nothing goes to an account at the line while another is below it.
		{"one at the line", []pick.Candidate{
			candidate("a", fiveHour(0.50)), candidate("b", fiveHour(0.98)),
		}, []int{60, 0}, 0},
		// Trials first, and no more than three of them.
		{"one never seen", []pick.Candidate{
			candidate("a", fiveHour(0.20)), candidate("b", fiveHour(0.60)), candidate("c", unread(0)),
		}, []int{38, 19, 3}, 1},
		{"none ever read", []pick.Candidate{candidate("a", unread(3)), candidate("b", unread(3))}, []int{30, 30}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make([]int, len(tt.cs))
			for i := range 60 {
				r := ordinary
				r.Key = fmt.Sprintf("conversation %d", i)
				at := now.Add(time.Duration(i) * time.Second / 60)
				d := pick.Pick(at, score, settings(), r, tt.cs)
				got[d.Chosen]++
				tt.cs[d.Chosen].Placed++
			}
			for i, n := range tt.want {
				if got[i] < n-tt.slack || got[i] > n+tt.slack {
					t.Errorf("got %v, want %v within %d", got, tt.want, tt.slack)
					break
				}
			}
		})
	}
}

// TestReadingEndsLoad: once a reading has taken the placements into account they weigh
// no more.
func TestReadingEndsLoad(t *testing.T) {
	cs := []pick.Candidate{candidate("a", week(0.2, 0.5), unseen(5)), candidate("b", week(0.3, 0.5))}
	wantChosen(t, cs, pick.Pick(now, score, settings(), ordinary, cs), "b")
	cs[0].State.LoadSeen = cs[0].Placed
	wantChosen(t, cs, pick.Pick(now, score, settings(), ordinary, cs), "a")
}
