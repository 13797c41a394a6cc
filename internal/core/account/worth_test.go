package account_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
)

func TestWorthStoring(t *testing.T) {
	five, week := account.FiveHour, account.Weekly
	stored := account.State{}.Observe(answer(0, window(five, 0.40, 2*time.Hour), window(week, 0.20, 3*day)), 5, rules)
	blocked := stored.Reject(spent(1, week, "opus", 3*day), rules)
	tests := []struct {
		name string
		from account.State
		fold func(account.State) account.State
		want bool
	}{
		{"nothing", stored, func(s account.State) account.State { return s }, false},
		{"the same again", stored, func(s account.State) account.State {
			return s.Observe(answer(time.Minute, window(five, 0.40, 2*time.Hour), window(week, 0.20, 3*day)), 5, rules)
		}, false},
		{"the same 1 ns before five minutes", stored, func(s account.State) account.State {
			return s.Observe(answer(5*time.Minute-1, window(five, 0.40, 2*time.Hour)), 5, rules)
		}, false},
		{"the same after five minutes", stored, func(s account.State) account.State {
			return s.Observe(answer(5*time.Minute, window(five, 0.40, 2*time.Hour)), 5, rules)
		}, true},
		{"a hair more", stored, func(s account.State) account.State {
			return s.Observe(answer(1, window(five, 0.404, 2*time.Hour)), 5, rules)
		}, false},
		{"a step more", stored, func(s account.State) account.State {
			return s.Observe(answer(1, window(five, 0.41, 2*time.Hour)), 5, rules)
		}, true},
		{"a step less", stored, func(s account.State) account.State {
			return s.Observe(answer(1, window(five, 0.39, 2*time.Hour)), 5, rules)
		}, true},
		{"a reset some seconds off", stored, func(s account.State) account.State {
			return s.Observe(answer(1, window(five, 0.40, 2*time.Hour+59*time.Second)), 5, rules)
		}, false},
		{"a reset a minute off", stored, func(s account.State) account.State {
			return s.Observe(answer(1, window(five, 0.40, 2*time.Hour-time.Minute)), 5, rules)
		}, true},
		{"a warning", stored, func(s account.State) account.State {
			return s.Observe(answer(1, said(window(five, 0.40, 2*time.Hour), account.Warning)), 5, rules)
		}, true},
		{"a window never seen", stored, func(s account.State) account.State {
			return s.Observe(answer(1, window("weekly:opus", 0, day)), 5, rules)
		}, true},
		{"the first figure of a window", account.State{}.Observe(answer(0, account.WindowReading{Name: five}), 5, rules), func(s account.State) account.State {
			return s.Observe(answer(1, account.WindowReading{Name: five, HasUtilization: true}), 5, rules)
		}, true},
		{"an older reading", stored, func(s account.State) account.State {
			return s.Observe(answer(-1, window(five, 0.90, 2*time.Hour)), 5, rules)
		}, false},
		{"load that it takes into account", stored, func(s account.State) account.State {
			return s.Observe(answer(1, window(five, 0.40, 2*time.Hour)), 6, rules)
		}, true},
		{"an organization", stored, func(s account.State) account.State {
			return s.Observe(account.Reading{At: at(1), Organization: "org"}, 5, rules)
		}, true},
		{"a block", stored, func(s account.State) account.State { return s.Reject(spent(1, week, "", 3*day), rules) }, true},
		{"newer evidence for a block", blocked, func(s account.State) account.State {
			return s.Reject(spent(2, week, "opus", 3*day), rules)
		}, true},
		{"older evidence that tells a later end", blocked, func(s account.State) account.State {
			return s.Reject(spent(0, week, "opus", 4*day), rules)
		}, true},
		{"the same rejection again", blocked, func(s account.State) account.State {
			return s.Reject(spent(1, week, "opus", 3*day), rules)
		}, false},
		{"the end of a block", blocked, func(s account.State) account.State { return s.Served(account.Ask{Family: "opus"}, at(2)) }, true},
		{"its end again", blocked.Served(account.Ask{Family: "opus"}, at(2)), func(s account.State) account.State { return s.Served(account.Ask{Family: "opus"}, at(3)) }, false},
		{"an answer that ends nothing", stored, func(s account.State) account.State { return s.Served(account.Ask{Family: "opus"}, at(2)) }, false},
		{"a refused feature", stored, func(s account.State) account.State {
			return s.Reject(account.Rejection{Kind: account.Entitlement, At: at(1), Feature: "f"}, rules)
		}, true},
		{"parked", stored, func(s account.State) account.State {
			return s.Reject(account.Rejection{Kind: account.Funds, At: at(1), Code: "c"}, rules)
		}, true},
		{"overloaded", stored, func(s account.State) account.State {
			return s.Reject(account.Rejection{Kind: account.Overload, At: at(1)}, rules)
		}, false},
		{"cleared", stored, func(s account.State) account.State { return s.Clear(at(1)) }, true},
		{"logged in", stored, func(s account.State) account.State { return s.LoggedIn(2) }, true},
		{"probed", stored, func(s account.State) account.State { return s.Probed(at(1)) }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := account.WorthStoring(tt.from, tt.fold(tt.from), account.RedateEvery); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			// A restart in between makes no difference.
			back := roundTrip(t, tt.from)
			if got := account.WorthStoring(back, tt.fold(back), account.RedateEvery); got != tt.want {
				t.Errorf("after a restart: got %v, want %v", got, tt.want)
			}
		})
	}
	t.Run("parked again for the same reason, newer and once more", func(t *testing.T) {
		no := account.Rejection{Kind: account.Funds, At: at(1), Code: "c"}
		parked := stored.Reject(no, rules)
		if account.WorthStoring(parked, parked.Reject(no, rules), account.RedateEvery) {
			t.Error("the same refusal: got worth storing")
		}
	})
}

// TestWritesOfABusyHour: an answer each second that says what the last one said costs a
// write every five minutes, and no more.
func TestWritesOfABusyHour(t *testing.T) {
	var stored account.State
	writes := 0
	for d := time.Duration(0); d < time.Hour; d += time.Second {
		next := stored.Observe(answer(d, window(account.FiveHour, 0.40, 2*time.Hour), window(account.Weekly, 0.20, 3*day)), 1, rules).Served(account.Ask{Family: "opus"}, at(d))
		if account.WorthStoring(stored, next, account.RedateEvery) {
			stored = next
			writes++
		}
	}
	if writes != 12 {
		t.Errorf("got %d writes, want 12", writes)
	}
}

// That the usage endpoint works is worth a write at once: nobody need try the account then.
func TestFirstLookIsWorthStoring(t *testing.T) {
	told := func(source account.Source, when time.Duration) account.State {
		return account.State{}.Observe(account.Reading{At: at(when), Source: source, Windows: []account.WindowReading{window(account.FiveHour, 1, time.Hour)}}, 0, rules)
	}
	answer, look := told(account.FromAnswer, 0), told(account.FromPoll, time.Second)
	if !account.WorthStoring(answer, look, account.RedateEvery) {
		t.Error("the first look: got false, want true")
	}
	if account.WorthStoring(look, told(account.FromPoll, 2*time.Second), account.RedateEvery) {
		t.Error("the next: got true, want false")
	}
	if account.WorthStoring(look, told(account.FromAnswer, 2*time.Second), account.RedateEvery) {
		t.Error("an answer that says the same: got true, want false")
	}
}
