package pick_test

import (
	"math"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
)

// TestRanks: a rank decides whatever the score. The first candidate of each pair has
// everything else in its favour.
func TestRanks(t *testing.T) {
	good := []change{week(0, 0.99), fiveHour(0)}
	poor := []change{week(0.96, 0.01), fiveHour(0.96), unseen(50)}
	with := func(name string, cs ...[]change) pick.Candidate {
		var all []change
		for _, c := range cs {
			all = append(all, c...)
		}
		return candidate(name, all...)
	}
	tests := []struct {
		name string
		cs   []pick.Candidate
		want string
	}{
		{"exactly at the line", []pick.Candidate{with("a", good, []change{fiveHour(0.97)}), with("b", poor)}, "b"},
		{"1 ulp below the line", []pick.Candidate{with("a", good, []change{fiveHour(math.Nextafter(0.97, 0))}), with("b", poor)}, "a"},
		{"any window counts", []pick.Candidate{with("a", good, []change{window(account.Tokens, 0.99, time.Minute)}), with("b", poor)}, "b"},
		{"the family's window counts", []pick.Candidate{with("a", good, []change{window("weekly:opus", 0.99, time.Hour)}), with("b", poor)}, "b"},
		{"another family's does not", []pick.Candidate{with("a", good, []change{window("weekly:haiku", 0.99, time.Hour)}), with("b", poor)}, "a"},
		{"a reset 1 ns away still counts", []pick.Candidate{with("a", good, []change{window(account.FiveHour, 0.99, 1)}), with("b", poor)}, "b"},
		{"a reset at this instant does not", []pick.Candidate{with("a", good, []change{resetNow(account.FiveHour, 0.99)}), with("b", poor)}, "a"},
		{"nor one that is past", []pick.Candidate{with("a", good, []change{window(account.FiveHour, 0.99, -1)}), with("b", poor)}, "a"},
		{"at its cap is worse than at the line", []pick.Candidate{with("a", good, []change{fiveHour(1)}), with("b", good, []change{fiveHour(0.99), unseen(50)})}, "b"},
		{"read as rejected is at its cap", []pick.Candidate{with("a", good, []change{rejected(account.FiveHour, time.Hour)}), with("b", good, []change{fiveHour(0.99), unseen(50)})}, "b"},
		{"whatever figure stands beside it", []pick.Candidate{with("a", good, []change{func(c *pick.Candidate) {
			c.State.Windows[account.FiveHour] = account.Window{Utilization: 0.5, HasUtilization: true, Status: account.Rejected, ResetAt: now.Add(time.Hour)}
		}}), with("b", good, []change{fiveHour(0.99), unseen(50)})}, "b"},
		{"rejected until its reset only", []pick.Candidate{with("a", good, []change{rejected(account.FiveHour, -1)}), with("b", poor)}, "a"},
		{"at its cap still serves when there is nothing else", []pick.Candidate{with("a", []change{fiveHour(1)}), candidate("b", cooling(time.Hour))}, "a"},
		{"unread after its trials is worst", []pick.Candidate{candidate("a", unread(3)), with("b", good, []change{fiveHour(1.2), unseen(50)})}, "b"},
		{"unread after its trials still serves when there is nothing else", []pick.Candidate{candidate("a", unread(3)), candidate("b", parked)}, "a"},
		{"two unread ones share", []pick.Candidate{candidate("a", unread(4)), candidate("b", unread(3))}, "b"},
		{"a trial before all", []pick.Candidate{with("a", good), candidate("b", unread(2))}, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			keyed(t, func(t *testing.T, r pick.Request) {
				wantChosen(t, tt.cs, pick.Pick(now, score, settings(), r, tt.cs), tt.want)
			})
		})
	}
}

// TestTrials: an account never seen is picked first until its third trial is used or a
// reading comes.
func TestTrials(t *testing.T) {
	for _, p := range []catalog.Policy{score, reset} {
		t.Run(string(p.Name), func(t *testing.T) {
			tests := []struct {
				name   string
				placed int64
				read   bool
				want   string
				trial  bool
			}{
				{"first", 0, false, "newcomer", true},
				{"third", 2, false, "newcomer", true},
				{"used up", 3, false, "known", false},
				{"a reading came", 1, true, "known", false},
			}
			for _, tt := range tests {
				c := candidate("newcomer", unread(tt.placed))
				if tt.read {
					c.State.ReadAt = now
					c.State.Windows = map[string]account.Window{account.FiveHour: {Utilization: 0.99, HasUtilization: true}}
				}
				cs := []pick.Candidate{candidate("known", week(0.5, 0.5), fiveHour(0.5)), c}
				d := pick.Pick(now, p, settings(), ordinary, cs)
				wantChosen(t, cs, d, tt.want)
				if d.Trial != tt.trial || (d.Reason == pick.ByTrial) != tt.trial {
					t.Errorf("%s: got trial %v by %q, want %v", tt.name, d.Trial, d.Reason, tt.trial)
				}
			}
			cs := []pick.Candidate{candidate("a", unread(2)), candidate("b", unread(1)), candidate("c", unread(2))}
			keyed(t, func(t *testing.T, r pick.Request) {
				wantChosen(t, cs, pick.Pick(now, p, settings(), r, cs), "b")
			})
		})
	}
}

// TestNotFinite: what cannot be read never wins, wherever it stands.
func TestNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, name := range []string{account.FiveHour, account.Weekly, account.WeeklyOf("opus"), account.Tokens} {
			for _, p := range []catalog.Policy{score, reset, order} {
				cs := []pick.Candidate{
					candidate("bad", week(0, 0.99), window(name, bad, time.Hour)),
					candidate("good", week(0.96, 0.01), fiveHour(0.96), unseen(50)),
				}
				d := pick.Pick(now, p, settings(), ordinary, cs)
				wantChosen(t, cs, d, "good")
				for _, part := range d.Parts {
					if math.IsNaN(part.Score) || math.IsInf(part.Score, 0) {
						t.Errorf("%s of %v under %s: got score %v, want a finite one", name, bad, p.Name, part.Score)
					}
				}
			}
		}
	}
	// Nor does an absurd weight make anything but a loser.
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		s := settings()
		s.WeightExpiring = bad
		cs := []pick.Candidate{candidate("bad", week(0.1, 0.9)), candidate("good")}
		wantChosen(t, cs, pick.Pick(now, score, s, ordinary, cs), "good")
	}
}

func TestTies(t *testing.T) {
	cs := []pick.Candidate{candidate("a"), candidate("b"), candidate("c")}
	chosen := map[string]int{}
	for i := range 300 {
		r := ordinary
		r.Key = "conversation " + string(rune('a'+i%26)) + string(rune('a'+i/26))
		first := nameOf(cs, pick.Pick(now, score, settings(), r, cs))
		chosen[first]++
		backwards := []pick.Candidate{cs[2], cs[1], cs[0]}
		if got := nameOf(backwards, pick.Pick(now, score, settings(), r, backwards)); got != first {
			t.Errorf("%s: got %s and, backwards, %s", r.Key, first, got)
		}
		// A third account that was not chosen does not matter: the choice is stable.
		for k, c := range cs {
			if c.Account.Name == first {
				continue
			}
			fewer := append(append([]pick.Candidate{}, cs[:k]...), cs[k+1:]...)
			if got := nameOf(fewer, pick.Pick(now, score, settings(), r, fewer)); got != first {
				t.Errorf("%s without %s: got %s, want %s", r.Key, c.Account.Name, got, first)
			}
		}
	}
	for _, c := range cs {
		if n := chosen[c.Account.Name]; n < 60 || n > 140 {
			t.Errorf("%s was chosen %d times of 300, want about 100", c.Account.Name, n)
		}
	}
	unpinned := ordinary
	unpinned.Key = ""
	for _, p := range []catalog.Policy{score, reset, order} {
		wantChosen(t, cs, pick.Pick(now, p, settings(), unpinned, cs), "a")
	}
}

func TestNobody(t *testing.T) {
	throttled := block(account.Block{Cause: account.CauseThrottle}, time.Minute)
	opus := block(account.Block{Cause: "weekly:opus", Family: "opus"}, time.Hour)
	everything := []pick.Candidate{
		candidate("foreign", foreign), candidate("denied", denied), candidate("tried", tried), candidate("parked", parked),
		candidate("drain", drain), candidate("cools", cooling(time.Hour)), candidate("paused", throttled), candidate("model", opus),
	}
	want := "foreign:not-served denied:not-allowed tried:tried parked:parked drain:draining cools:cooldown paused:paused model:model-blocked"
	for _, p := range []catalog.Policy{score, reset} {
		d := pick.Pick(now, p, settings(), ordinary, everything)
		wantChosen(t, everything, d, "none")
		if got := summary(d); got != want || d.Reason != pick.Nobody {
			t.Errorf("%s: got %q by %q, want %q", p.Name, got, d.Reason, want)
		}
	}
	for _, p := range []catalog.Policy{score, reset, order} {
		if d := pick.Pick(now, p, settings(), ordinary, nil); d.Chosen != -1 || d.Reason != pick.Nobody {
			t.Errorf("%s of nothing: got %d by %q, want -1", p.Name, d.Chosen, d.Reason)
		}
	}
}
