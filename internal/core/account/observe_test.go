package account_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
)

// TestCooldownOutlivesReset is the field case cooldown-outlives-reset: a week spent, and
// given back early.
func TestCooldownOutlivesReset(t *testing.T) {
	refused := account.State{}.
		Observe(answer(0, said(window(account.Weekly, 1.0, 6*day), account.Rejected)), 0, rules).
		Reject(spent(0, account.Weekly, "", 6*day), rules)
	wantUntil(t, refused, "opus", 6*day)
	given := poll(time.Hour, window(account.Weekly, 0, 7*day))
	cured := refused.Observe(given, 0, rules)
	wantUsable(t, cured, time.Hour, "opus", "haiku", "")
	t.Run("restart", func(t *testing.T) {
		wantUntil(t, roundTrip(t, refused), "opus", 6*day)
		wantUsable(t, roundTrip(t, cured), time.Hour+10*time.Minute, "opus")
	})
	t.Run("no relapse by what is older", func(t *testing.T) {
		late := cured.Reject(spent(30*time.Minute, account.Weekly, "", 6*day), rules).
			Observe(answer(30*time.Minute, said(window(account.Weekly, 1, 6*day), account.Rejected)), 0, rules)
		wantUsable(t, late, time.Hour, "opus")
		if got := late.Windows[account.Weekly].At(at(time.Hour)); got != 0 {
			t.Errorf("got utilization %v, want 0", got)
		}
	})
	t.Run("a new rejection blocks again", func(t *testing.T) {
		wantUntil(t, cured.Reject(spent(2*time.Hour, account.Weekly, "", 6*day), rules), "opus", 6*day)
	})
	t.Run("whoever folds first", func(t *testing.T) {
		s := account.State{}.Observe(given, 0, rules).Reject(spent(0, account.Weekly, "", 6*day), rules)
		wantUsable(t, s, time.Hour, "opus")
	})
}

// TestEndsBlock: which readings, newer than a rejection, end the block.
func TestEndsBlock(t *testing.T) {
	week, opus := account.Weekly, account.WeeklyOf("opus")
	account5h := spent(0, account.FiveHour, "", 3*time.Hour)
	accountWeek := spent(0, week, "", 3*day)
	opusByWeek := spent(0, week, "opus", 3*day) // Anthropic's weekly cap, learned by an opus request
	opusByOwn := spent(0, opus, "opus", 3*day)
	tests := []struct {
		name string
		no   account.Rejection
		r    account.Reading
		ends bool
	}{
		{"room in the window", accountWeek, answer(1, window(week, 0.99, 3*day)), true},
		{"1 ns older", accountWeek, answer(-1, window(week, 0.99, 3*day)), false},
		{"of the same instant", accountWeek, answer(0, window(week, 0.99, 3*day)), false},
		{"at its cap", accountWeek, answer(1, window(week, 1, 3*day)), false},
		{"rejected whatever the figure", accountWeek, answer(1, said(window(week, 0.5, 3*day), account.Rejected)), false},
		{"only said to be allowed", accountWeek, answer(1, account.WindowReading{Name: week, Status: account.Allowed}), true},
		{"only warned of", accountWeek, answer(1, account.WindowReading{Name: week, Status: account.Warning}), true},
		{"only a reset told", accountWeek, answer(1, account.WindowReading{Name: week, ResetAt: at(day)}), false},
		{"another window", accountWeek, answer(1, window(account.FiveHour, 0, time.Hour)), false},
		{"a family's window", accountWeek, answer(1, window(opus, 0, day)), false},
		{"five hours", account5h, poll(1, window(account.FiveHour, 0.5, 3*time.Hour)), true},
		{"the week says nothing of five hours", account5h, poll(1, window(week, 0, 3*day)), false},
		{"family by the week: another family's answer", opusByWeek, answer(1, window(week, 0.5, 3*day)), false},
		{"family by the week: the usage endpoint", opusByWeek, poll(1, window(week, 0.5, 3*day)), true},
		{"family by the week: its own window", opusByWeek, answer(1, window(opus, 0.5, 3*day)), true},
		{"family by the week: another family's window", opusByWeek, answer(1, window(account.WeeklyOf("haiku"), 0.5, 3*day)), false},
		{"family by its own: an answer", opusByOwn, answer(1, window(opus, 0.5, 3*day)), true},
		{"family by its own: the usage endpoint", opusByOwn, poll(1, window(opus, 0.5, 3*day)), true},
		{"family by its own: the week", opusByOwn, poll(1, window(week, 0, 3*day)), false},
		{"family by its own of another length: an answer", spent(0, "30d:opus", "opus", 3*day), answer(1, window("30d:opus", 0.5, 3*day)), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for way, s := range map[string]account.State{
				"in order":       refuse(tt.no).Observe(tt.r, 0, rules),
				"reading first":  account.State{}.Observe(tt.r, 0, rules).Reject(tt.no, rules),
				"stored between": roundTrip(t, account.State{}.Observe(tt.r, 0, rules)).Reject(tt.no, rules),
			} {
				if got := usable(s, time.Minute, "opus"); got != tt.ends {
					t.Errorf("%s: got usable %v, want %v", way, got, tt.ends)
				}
			}
		})
	}
	t.Run("a newer reading of no room does not undo an older one of room", func(t *testing.T) {
		s := account.State{}.Observe(answer(2, window(week, 1, 3*day)), 0, rules).
			Observe(answer(1, window(week, 0.5, 3*day)), 0, rules).Reject(accountWeek, rules)
		wantUsable(t, s, time.Minute, "opus")
	})
	t.Run("folding a rejection again changes nothing", func(t *testing.T) {
		s := refuse(accountWeek).Observe(answer(1, window(week, 0.5, 3*day)), 0, rules).Reject(accountWeek, rules)
		wantUsable(t, s, time.Minute, "opus")
	})
}

// TestServed: a good answer to the family ends what blocks the family's allowance.
func TestServed(t *testing.T) {
	tests := []struct {
		name   string
		no     account.Rejection
		family string
		when   time.Duration
		ends   bool
	}{
		{"own window", spent(0, account.WeeklyOf("opus"), "opus", 3*day), "opus", 1, true},
		{"by the week", spent(0, account.Weekly, "opus", 3*day), "opus", 1, true},
		{"of the same instant", spent(0, account.Weekly, "opus", 3*day), "opus", 0, false},
		{"older", spent(0, account.Weekly, "opus", 3*day), "opus", -1, false},
		{"another family", spent(0, account.Weekly, "opus", 3*day), "haiku", 1, false},
		{"no family", spent(0, account.Weekly, "", 3*day), "", 1, false},
		{"the whole account's is a reading's to end", spent(0, account.Weekly, "", 3*day), "opus", 1, false},
		{"a pause", account.Rejection{Kind: account.Throttle, At: t0, Family: "opus", PerModel: true, Until: at(5 * time.Minute)}, "opus", 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := refuse(tt.no).Served(account.Ask{Family: tt.family}, at(tt.when))
			if got := usable(s, time.Minute, "opus"); got != tt.ends {
				t.Errorf("got usable %v, want %v", got, tt.ends)
			}
		})
	}
	t.Run("no relapse by an older rejection", func(t *testing.T) {
		s := refuse(spent(0, account.Weekly, "opus", 3*day)).Served(account.Ask{Family: "opus"}, at(2)).Reject(spent(1, account.Weekly, "opus", 3*day), rules)
		wantUsable(t, s, time.Minute, "opus")
	})
	t.Run("nor a guard of overage", func(t *testing.T) {
		r := answer(0, window(account.WeeklyOf("fable"), 1, day))
		r.Overage.Available = true
		s := account.State{}.Observe(r, 0, rules).Served(account.Ask{Family: "fable"}, at(1))
		wantUntil(t, s, "fable", day)
	})
}

func TestOverageGuard(t *testing.T) {
	const reset = 3 * time.Hour
	charged, available := account.Overage{Charged: true}, account.Overage{Available: true}
	with := func(r account.Reading, o account.Overage, claim string) account.Reading {
		r.Overage, r.Claim = o, claim
		return r
	}
	capped := said(window(account.FiveHour, 1, reset), account.Rejected)
	tests := []struct {
		name string
		r    account.Reading
		end  time.Duration // 0 for no block
	}{
		{"room left", with(answer(0, window(account.FiveHour, 0.99, reset)), available, account.FiveHour), 0},
		{"at its cap, the next would be charged", with(answer(0, window(account.FiveHour, 1, reset)), available, account.FiveHour), reset},
		{"the same by the usage endpoint", with(poll(0, window(account.FiveHour, 1, reset)), available, ""), reset},
		{"rejected, the next would be charged", with(answer(0, said(window(account.FiveHour, 0.9, reset), account.Rejected)), available, account.FiveHour), reset},
		{"at its cap without overage: merely full", with(answer(0, window(account.FiveHour, 1, reset)), account.Overage{}, account.FiveHour), 0},
		{"charged", with(answer(0, capped), charged, account.FiveHour), reset},
		{"charged though the window shows room", with(answer(0, window(account.FiveHour, 0.9, reset)), charged, account.FiveHour), reset},
		{"charged for what was not read", with(answer(0, window(account.FiveHour, 0.9, reset)), charged, ""), 5 * time.Minute},
		{"until the ceiling", with(answer(0, window(account.FiveHour, 1, 9*time.Hour)), available, ""), 5 * time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := account.State{}.Observe(tt.r, 0, rules)
			if tt.end == 0 {
				wantUsable(t, s, 0, "opus")
			} else {
				wantUntil(t, s, "opus", tt.end)
				if got := causes(s, 1, "opus", ""); got != account.CauseOverage {
					t.Errorf("got blocked by %q, want %q", got, account.CauseOverage)
				}
			}
			allowed := account.State{}.Observe(tt.r, 0, account.Rules{Overage: true})
			wantUsable(t, allowed, 0, "opus")
		})
	}
	t.Run("a family's window guards the family", func(t *testing.T) {
		s := account.State{}.Observe(with(answer(0, window(account.WeeklyOf("fable"), 1, day)), available, ""), 0, rules)
		wantUntil(t, s, "fable", day)
		wantUsable(t, s, 0, "opus")
	})
	t.Run("two windows, each until its own end", func(t *testing.T) {
		s := account.State{}.Observe(with(answer(0, capped, window(account.Weekly, 1, 3*day)), available, ""), 0, rules)
		wantUntil(t, s, "opus", 3*day)
		s = s.Observe(poll(time.Minute, window(account.Weekly, 0.2, 3*day)), 0, rules)
		wantUntil(t, s, "opus", reset)
	})
	t.Run("charged for the window at its cap, whatever the claim", func(t *testing.T) {
		s := account.State{}.Observe(with(answer(0, capped, window(account.Weekly, 0.5, 3*day)), charged, account.Weekly), 0, rules)
		wantUntil(t, s, "opus", reset)
	})
	t.Run("room again ends it", func(t *testing.T) {
		s := account.State{}.Observe(with(answer(0, capped), charged, account.FiveHour), 0, rules)
		wantUsable(t, s.Observe(poll(1, window(account.FiveHour, 0.1, 5*time.Hour)), 0, rules), 1, "opus")
	})
	t.Run("charged after room had come", func(t *testing.T) {
		s := account.State{}.Observe(with(answer(0, capped), charged, account.FiveHour), 0, rules).
			Observe(poll(1, window(account.FiveHour, 0.1, reset)), 0, rules).
			Observe(with(answer(2, window(account.FiveHour, 0.9, reset)), charged, account.FiveHour), 0, rules)
		wantUntil(t, s, "opus", reset)
	})
}

// TestObserveWindow: per window the newer reading wins, and what it lacks is kept.
func TestObserveWindow(t *testing.T) {
	name := account.FiveHour
	base := window(name, 0.4, 2*time.Hour)
	tests := []struct {
		name  string
		rs    []account.Reading
		now   time.Duration
		u     float64
		has   bool
		reset time.Duration // 0 for none
	}{
		{"one", []account.Reading{answer(0, base)}, 0, 0.4, true, 2 * time.Hour},
		{"newer", []account.Reading{answer(0, base), answer(1, window(name, 0.1, 3*time.Hour))}, 1, 0.1, true, 3 * time.Hour},
		{"older", []account.Reading{answer(0, base), answer(-1, window(name, 0.1, 3*time.Hour))}, 0, 0.4, true, 2 * time.Hour},
		{"the same instant", []account.Reading{answer(0, base), answer(0, window(name, 0.1, 3*time.Hour))}, 0, 0.4, true, 2 * time.Hour},
		{"no utilization", []account.Reading{answer(0, base), answer(1, account.WindowReading{Name: name, ResetAt: at(3 * time.Hour)})}, 1, 0.4, true, 3 * time.Hour},
		{"no reset", []account.Reading{answer(0, base), answer(1, account.WindowReading{Name: name, Utilization: 0.5, HasUtilization: true})}, 1, 0.5, true, 2 * time.Hour},
		{"no reset, after the old one", []account.Reading{answer(0, base), answer(2*time.Hour, account.WindowReading{Name: name, Utilization: 0.5, HasUtilization: true})}, 3 * time.Hour, 0.5, true, 0},
		{"no utilization, after the old reset", []account.Reading{answer(0, base), answer(2*time.Hour, account.WindowReading{Name: name, Status: account.Allowed})}, 3 * time.Hour, 0, true, 0},
		{"no utilization, 1 ns before the old reset", []account.Reading{answer(0, base), answer(2*time.Hour-1, account.WindowReading{Name: name, Status: account.Allowed})}, 2*time.Hour - 1, 0.4, true, 2 * time.Hour},
		{"another window", []account.Reading{answer(0, base), answer(1, window(account.Weekly, 0.9, day))}, 1, 0.4, true, 2 * time.Hour},
		{"never a utilization", []account.Reading{answer(0, account.WindowReading{Name: name, Status: account.Allowed})}, 0, 0, false, 0},
		{"past its reset", []account.Reading{answer(0, base)}, 2 * time.Hour, 0, true, 2 * time.Hour},
		{"1 ns before its reset", []account.Reading{answer(0, base)}, 2*time.Hour - 1, 0.4, true, 2 * time.Hour},
		{"above full", []account.Reading{answer(0, window(name, 1.08, time.Hour))}, 0, 1.08, true, time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s account.State
			for _, r := range tt.rs {
				s = s.Observe(r, 0, rules)
			}
			w := s.Windows[name]
			var reset time.Time
			if tt.reset != 0 {
				reset = at(tt.reset)
			}
			if got := w.At(at(tt.now)); got != tt.u || w.HasUtilization != tt.has || !w.ResetAt.Equal(reset) {
				t.Errorf("got %v (%v) until %v, want %v (%v) until %v", got, w.HasUtilization, w.ResetAt, tt.u, tt.has, reset)
			}
		})
	}
}

// A figure that can be read and is absurd is clamped: it would be a metric that is refused.
func TestObserveClamps(t *testing.T) {
	for told, want := range map[float64]float64{1.3: 1.3, 100: 100, 101: 100, 1e298: 100} {
		s := account.State{}.Observe(poll(0, window(account.Weekly, told, 6*day)), 0, rules)
		if got := s.Windows[account.Weekly].Utilization; got != want {
			t.Errorf("told %v: got %v, want %v", told, got, want)
		}
	}
}

func TestObserveMarks(t *testing.T) {
	var s account.State
	if s.Seen() {
		t.Error("got seen, want never seen")
	}
	if s = s.Observe(account.Reading{At: t0, Organization: "org"}, 4, rules); s.Seen() || s.LoadSeen != 0 || s.Organization != "org" {
		t.Errorf("a reading of no window: got %+v, want the organization alone", s)
	}
	s = s.Observe(answer(time.Minute, window(account.FiveHour, 0.1, time.Hour)), 4, rules)
	if !s.Seen() || !s.ReadAt.Equal(at(time.Minute)) || s.LoadSeen != 4 || s.Organization != "org" {
		t.Errorf("first reading: got %+v", s)
	}
	s = s.Observe(answer(0, window(account.Weekly, 0.1, time.Hour)), 5, rules)
	if !s.ReadAt.Equal(at(time.Minute)) || s.LoadSeen != 5 {
		t.Errorf("an older reading that saw more: got %v and %d, want %v and 5", s.ReadAt, s.LoadSeen, at(time.Minute))
	}
	s = s.Observe(answer(2*time.Minute, window(account.FiveHour, 0.1, time.Hour)), 3, rules)
	if s.LoadSeen != 5 {
		t.Errorf("a newer reading whose request was sent earlier: got %d, want 5", s.LoadSeen)
	}
}

// TestFoldsLeaveTheOldState: each fold is a new value.
func TestFoldsLeaveTheOldState(t *testing.T) {
	before := refuse(spent(0, account.Weekly, "opus", day), bare(0, "m")).Observe(answer(0, window(account.FiveHour, 0.5, time.Hour)), 0, rules)
	want := encode(t, before)
	before.Observe(poll(1, window(account.Weekly, 0, day)), 0, rules)
	before.Reject(spent(1, account.FiveHour, "", time.Hour), rules)
	before.Reject(account.Rejection{Kind: account.Entitlement, At: at(1), Feature: "f"}, rules)
	before.Reject(account.Rejection{Kind: account.Funds, At: at(1), Code: "c"}, rules)
	before.Served(account.Ask{Family: "opus"}, at(1))
	before.Clear(at(1))
	before.LoggedIn(9)
	before.Probed(at(1))
	if got := encode(t, before); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLateEvidence is field case late-evidence: an answer that was not streamed describes
// the moment before its work, so that it ends no block that is newer than its request; the
// end of a work ends none that is newer than its begin.
func TestLateEvidence(t *testing.T) {
	refused := refuse(spent(time.Second, account.FiveHour, "", 3*time.Hour))
	late := func(sent, arrived time.Duration) account.Reading {
		r := answer(arrived, said(window(account.FiveHour, 0.97, 3*time.Hour), account.Allowed))
		r.Sent = at(sent)
		return r
	}
	for name, ends := range map[string]struct {
		r    account.Reading
		ends bool
	}{
		"sent before the refusal":          {late(0, 3*time.Second), false},
		"sent at its instant":              {late(time.Second, 3*time.Second), false},
		"sent after it":                    {late(time.Second+1, 3*time.Second), true},
		"streamed: its headers came first": {answer(3*time.Second, window(account.FiveHour, 0.97, 3*time.Hour)), true},
	} {
		if got := usable(refused.Observe(ends.r, 0, rules), 4*time.Second, "opus"); got != ends.ends {
			t.Errorf("%s: got usable %t, want %t", name, got, ends.ends)
		}
		// The same whoever folds first.
		first := account.State{}.Observe(ends.r, 0, rules).Reject(spent(time.Second, account.FiveHour, "", 3*time.Hour), rules)
		if got := usable(first, 4*time.Second, "opus"); got != ends.ends {
			t.Errorf("%s, folded first: got usable %t, want %t", name, got, ends.ends)
		}
	}
	t.Run("a look at a parked account", func(t *testing.T) {
		parked := refuse(account.Rejection{Kind: account.Funds, At: at(time.Second), Rule: "credit-balance"})
		look := poll(3*time.Second, window(account.Weekly, 0.2, 3*day))
		look.Sent = at(0)
		if parked.Observe(look, 0, rules).Parked == nil {
			t.Error("a look that was sent before the refusal ends the parking")
		}
		look.Sent = at(time.Second + 1)
		if parked.Observe(look, 0, rules).Parked != nil {
			t.Error("a look that was sent after the refusal does not end the parking")
		}
	})
	t.Run("the end of a probe", func(t *testing.T) {
		opus := refuse(spent(2*time.Second, account.WeeklyOf("opus"), "opus", 3*day))
		if usable(opus.Served(account.Ask{Family: "opus"}, at(time.Second)), 7*time.Second, "opus") {
			t.Error("a stream that began before the refusal ends the block")
		}
	})
}

// TestMarksWithoutAnEnd is field case marks-without-an-end: a window that was read as full
// without a reset counts for five minutes, and is unknown room from then on.
func TestMarksWithoutAnEnd(t *testing.T) {
	full := window(account.Weekly, 1, 0)
	full.ResetAt = time.Time{}
	nearly := full
	nearly.Utilization = 0.98
	some := full
	some.Utilization = 0.9
	rejected := account.WindowReading{Name: account.FiveHour, Status: account.Rejected}
	spentBucket := full
	spentBucket.Name = account.Tokens
	for name, c := range map[string]struct {
		w      account.WindowReading
		lapses bool
	}{
		"full": {full, true}, "so full that nobody is sent there": {nearly, true}, "rejected, without a figure": {rejected, true},
		"a bucket of a key": {spentBucket, true}, "merely full enough to be passed over by some": {some, false},
	} {
		w := account.State{}.Observe(answer(0, c.w), 0, rules).Windows[c.w.Name]
		for when, lapsed := range map[time.Duration]bool{
			0: false, 5*time.Minute - 1: false, 5 * time.Minute: true, 20 * time.Minute: true, 6 * time.Hour: true, 8 * day: true,
		} {
			if got := w.Lapsed(at(when)); got != (lapsed && c.lapses) {
				t.Errorf("%s, after %v: got lapsed %t", name, when, got)
			}
		}
	}
	t.Run("with a reset it is the reset that counts", func(t *testing.T) {
		w := account.State{}.Observe(answer(0, said(window(account.Weekly, 1, 3*day), account.Rejected)), 0, rules).Windows[account.Weekly]
		if w.Lapsed(at(3*day-1)) || !w.Lapsed(at(3*day)) {
			t.Error("got it lapsed before its reset, or not at it")
		}
	})
	t.Run("an empty reset erases none", func(t *testing.T) {
		s := account.State{}.Observe(answer(0, window(account.Weekly, 0.4, 3*day)), 0, rules)
		again := window(account.Weekly, 0.42, 0)
		again.ResetAt = time.Time{}
		w := s.Observe(answer(time.Minute, again), 0, rules).Windows[account.Weekly]
		if w.At(at(time.Minute)) != 0.42 || !w.ResetAt.Equal(at(3*day)) {
			t.Errorf("got %+v, want 0.42 until the reset that was told before", w)
		}
	})
}
