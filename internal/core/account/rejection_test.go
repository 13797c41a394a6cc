package account_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
)

// TestSpentWindow: a spent window blocks its own scope until its told reset, under the
// ceiling of its length; 5 minutes when none was told.
func TestSpentWindow(t *testing.T) {
	tests := []struct {
		name   string
		window string
		reset  time.Duration // 0: none told
		want   time.Duration
	}{
		{"five hours, told", account.FiveHour, 2 * time.Hour, 2 * time.Hour},
		{"five hours, exactly its ceiling", account.FiveHour, 5 * time.Hour, 5 * time.Hour},
		{"five hours, over its ceiling", account.FiveHour, 5*time.Hour + 1, 5 * time.Hour},
		{"five hours, days away", account.FiveHour, 6 * day, 5 * time.Hour},
		{"five hours, untold", account.FiveHour, 0, 5 * time.Minute},
		{"week, told", account.Weekly, 6 * day, 6 * day},
		{"week, exactly its ceiling", account.Weekly, 7 * day, 7 * day},
		{"week, over its ceiling", account.Weekly, 7*day + 1, 7 * day},
		{"week, untold", account.Weekly, 0, 5 * time.Minute},
		{"another length, told", "30d", 20 * day, 7 * day},
		{"another length, a day away", "30d", day, day},
		{"a reset 1 ns away", account.Weekly, 1, 1},
		{"a reset in the past is not told", account.Weekly, -time.Hour, 5 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := refuse(spent(0, tt.window, "", tt.reset))
			for _, family := range []string{"", "opus", "haiku"} {
				wantUntil(t, s, family, tt.want)
			}
		})
	}
	t.Run("a reset at the very instant is not told", func(t *testing.T) {
		r := spent(0, account.Weekly, "", 0)
		r.Spent[0].ResetAt = r.At
		wantUntil(t, refuse(r), "opus", 5*time.Minute)
	})
	t.Run("two windows each by its own", func(t *testing.T) {
		r := spent(0, account.FiveHour, "", 2*time.Hour)
		r.Spent = append(r.Spent, account.Spent{Window: account.Weekly, Family: "opus", ResetAt: at(3 * day)})
		s := refuse(r)
		wantUntil(t, s, "haiku", 2*time.Hour)
		wantUntil(t, s, "opus", 3*day)
	})
}

// TestModelCapScope is the field case model-cap-scope: only a window named for a family
// narrows the scope.
func TestModelCapScope(t *testing.T) {
	t.Run("a", func(t *testing.T) {
		s := refuse(spent(0, account.WeeklyOf("opus"), "opus", 3*day))
		wantUsable(t, s, time.Second, "haiku", "")
		wantUntil(t, s, "opus", 3*day)
	})
	t.Run("b", func(t *testing.T) {
		r := spent(0, account.FiveHour, "", 3*time.Hour)
		r.Model, r.Family = "claude-haiku-4", "haiku"
		wantUntil(t, refuse(r), "opus", 3*time.Hour)
	})
	t.Run("d", func(t *testing.T) {
		s := refuse(spent(0, account.WeeklyOf("opus"), "opus", 3*day))
		s = s.Observe(poll(time.Hour, window(account.WeeklyOf("opus"), 0, 7*day)), 0, rules)
		wantUsable(t, s, time.Hour, "opus")
	})
	t.Run("untold", func(t *testing.T) {
		wantUntil(t, refuse(spent(0, account.WeeklyOf("opus"), "opus", 0)), "opus", 5*time.Minute)
	})
}

// TestThrottle: until the told instant, from 1 s to 5 min; 5 s where none was told.
func TestThrottle(t *testing.T) {
	tests := []struct {
		name     string
		until    time.Duration // of an hour before: none told
		perModel bool
		want     time.Duration
	}{
		{"retry-after of 12 s", 12 * time.Second, false, 12 * time.Second},
		{"untold", -time.Hour, false, 5 * time.Second},
		{"at once", 0, false, 5 * time.Second},
		{"in the past", -time.Second, false, 5 * time.Second},
		{"less than a second", time.Second - 1, false, time.Second},
		{"a second", time.Second, false, time.Second},
		{"3 s", 3 * time.Second, false, 3 * time.Second},
		{"at the ceiling", 5 * time.Minute, false, 5 * time.Minute},
		{"over the ceiling", 5*time.Minute + 1, false, 5 * time.Minute},
		{"per model", 12 * time.Second, true, 12 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := account.Rejection{Kind: account.Throttle, At: t0, Family: "opus", Model: "claude-opus", PerModel: tt.perModel}
			if tt.until != -time.Hour {
				r.Until = at(tt.until)
			}
			s := refuse(r)
			wantUntil(t, s, "opus", tt.want)
			if tt.perModel {
				wantUsable(t, s, 0, "haiku")
			} else {
				wantUntil(t, s, "haiku", tt.want)
			}
			b, _ := blockedUntil(s, t0, "opus", "claude-opus")
			if !b.Pause() {
				t.Error("got an allowance spent, want a pause")
			}
		})
	}
	t.Run("burst-429-read-as-exhaustion: usable at T0+15s", func(t *testing.T) {
		s := account.State{}.Observe(answer(0, window(account.FiveHour, 0.30, 5*time.Hour), window(account.Weekly, 0.41, 6*day)), 0, rules)
		s = s.Reject(account.Rejection{Kind: account.Throttle, At: t0, Until: at(12 * time.Second)}, rules)
		wantUsable(t, s, 15*time.Second, "opus")
	})
	t.Run("no reading ends a pause", func(t *testing.T) {
		s := refuse(account.Rejection{Kind: account.Throttle, At: t0, Family: "opus", PerModel: true, Until: at(time.Minute)})
		s = s.Observe(poll(time.Second, window(account.WeeklyOf("opus"), 0, day), window(account.Weekly, 0, day)), 0, rules)
		wantUntil(t, s, "opus", time.Minute)
	})
}

// TestBare: a 429 without limit headers pauses the model for 5 s; a second model within
// 5 s shows that it is the account. Never longer.
func TestBare(t *testing.T) {
	const a, b, c = "claude-opus-5", "claude-opus-4", "claude-haiku-4"
	pausedAt := func(s account.State, when time.Duration, model string) bool {
		return causes(s, when, "any", model) != ""
	}
	tests := []struct {
		name    string
		refused []account.Rejection
		// ends of the pauses of a, b and an unrelated model; 0 for none
		a, b, c time.Duration
	}{
		{"one model", []account.Rejection{bare(0, a)}, 5 * time.Second, 0, 0},
		{"the same model again", []account.Rejection{bare(0, a), bare(3*time.Second, a)}, 8 * time.Second, 0, 0},
		{"two models", []account.Rejection{bare(0, a), bare(3*time.Second, b)}, 8 * time.Second, 8 * time.Second, 8 * time.Second},
		{"two models, folded the other way round", []account.Rejection{bare(3*time.Second, b), bare(0, a)}, 8 * time.Second, 8 * time.Second, 8 * time.Second},
		{"two models 1 ns less than 5 s apart", []account.Rejection{bare(0, a), bare(5*time.Second-1, b)}, 10*time.Second - 1, 10*time.Second - 1, 10*time.Second - 1},
		{"two models 5 s apart", []account.Rejection{bare(0, a), bare(5*time.Second, b)}, 5 * time.Second, 10 * time.Second, 0},
		{"no model named", []account.Rejection{bare(0, "")}, 0, 0, 0},
		{"one of two not named", []account.Rejection{bare(0, ""), bare(1, a)}, 5*time.Second + 1, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := refuse(tt.refused...)
			for model, end := range map[string]time.Duration{a: tt.a, b: tt.b, c: tt.c} {
				last := tt.refused[len(tt.refused)-1].At.Sub(t0)
				if first := tt.refused[0].At.Sub(t0); first > last {
					last = first
				}
				if end > last && !pausedAt(s, end-1, model) {
					t.Errorf("%s 1 ns before %v: got usable, want paused", model, end)
				}
				if pausedAt(s, max(end, last), model) {
					t.Errorf("%s at %v: got paused, want usable", model, end)
				}
			}
		})
	}
	t.Run("the setting", func(t *testing.T) {
		s := account.State{}.Reject(bare(0, a), account.Rules{BarePause: 2 * time.Second})
		if !pausedAt(s, 2*time.Second-1, a) || pausedAt(s, 2*time.Second, a) {
			t.Error("got another pause than bare_pause")
		}
	})
	t.Run("bare-429-amplified: models do not pile up", func(t *testing.T) {
		var s account.State
		for i := range 100 {
			s = s.Reject(bare(time.Duration(i)*time.Minute, "model-"+string(rune('a'+i%26))+string(rune('a'+i/26))), rules)
		}
		if len(s.Blocks) != 1 {
			t.Errorf("got %d blocks, want the last model's alone", len(s.Blocks))
		}
	})
}

// TestEntitlement: the account lacks the feature for an hour; nothing cools.
func TestEntitlement(t *testing.T) {
	no := func(when time.Duration) account.Rejection {
		return account.Rejection{Kind: account.Entitlement, At: at(when), Feature: "long-context", Family: "opus", Model: "claude-opus"}
	}
	for name, s := range map[string]account.State{
		"once": refuse(no(0)), "again, folded late": refuse(no(0), no(-time.Minute)),
	} {
		for d, want := range map[time.Duration]bool{0: true, time.Hour - 1: true, time.Hour: false, time.Hour + 1: false} {
			if got := refusesFeature(s, d, "long-context"); got != want {
				t.Errorf("%s at %v: got lacking %v, want %v", name, d, got, want)
			}
		}
		if refusesFeature(s, 0, "other") {
			t.Errorf("%s: got another feature refused too", name)
		}
		wantUsable(t, s, 0, "opus")
		if s.Parked != nil {
			t.Errorf("%s: got parked", name)
		}
	}
}

// TestParking: lost money or access, and a refused credential, park the account without
// an end, unless the refused credential has been replaced since.
func TestParking(t *testing.T) {
	no := func(kind account.RejectionKind, when time.Duration, generation int64, code string) account.Rejection {
		return account.Rejection{Kind: kind, At: at(when), Generation: generation, Code: code}
	}
	current := account.State{Generation: 3}
	tests := []struct {
		name string
		rs   []account.Rejection
		want string // reason; empty for not parked
	}{
		{"no money", []account.Rejection{no(account.Funds, 0, 3, "billing_error")}, "billing_error"},
		{"credential refused", []account.Rejection{no(account.BadCredential, 0, 3, "authentication_error")}, "authentication_error"},
		{"a newer credential refused", []account.Rejection{no(account.BadCredential, 0, 4, "authentication_error")}, "authentication_error"},
		{"an older credential refused", []account.Rejection{no(account.BadCredential, 0, 2, "authentication_error")}, ""},
		{"access lost under an older login", []account.Rejection{no(account.Funds, 0, 2, "billing_error")}, ""},
		{"the newest reason", []account.Rejection{no(account.Funds, 0, 3, "old"), no(account.Funds, 1, 3, "new")}, "new"},
		{"whichever way round", []account.Rejection{no(account.Funds, 1, 3, "new"), no(account.Funds, 0, 3, "old")}, "new"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := current
			for _, r := range tt.rs {
				s = s.Reject(r, rules)
			}
			switch {
			case tt.want == "" && s.Parked != nil:
				t.Errorf("got parked for %q, want not parked", s.Parked.Reason)
			case tt.want != "" && (s.Parked == nil || s.Parked.Reason != tt.want):
				t.Errorf("got %+v, want parked for %q", s.Parked, tt.want)
			}
			wantUsable(t, s, 0, "opus") // parking is no cooldown
		})
	}
}

// TestNotTheAccountsDoing: these say nothing about the account.
func TestNotTheAccountsDoing(t *testing.T) {
	before := refuse(spent(0, account.FiveHour, "", time.Hour), bare(0, "claude-opus-5"))
	for _, kind := range []account.RejectionKind{account.Overload, account.ClientFault, account.Network, account.NotAnswered} {
		after := before.Reject(account.Rejection{
			Kind: kind, At: at(time.Second), Model: "claude-haiku-4", Family: "haiku", Until: at(time.Hour), Feature: "f",
			Spent: []account.Spent{{Window: account.Weekly, ResetAt: at(day)}},
		}, rules)
		if account.WorthStoring(before, after, account.RedateEvery) {
			t.Errorf("%s: got a changed state, want none", kind)
		}
		if got := causes(after, 1, "haiku", "claude-haiku-4"); got != account.FiveHour {
			t.Errorf("%s: got blocked by %q, want %q", kind, got, account.FiveHour)
		}
	}
}

// TestCooldownsOnlyExtend: a rejection never shortens what holds.
func TestCooldownsOnlyExtend(t *testing.T) {
	tests := []struct {
		name string
		rs   []account.Rejection
		want time.Duration
	}{
		{"a sooner reset", []account.Rejection{spent(0, account.Weekly, "", 3*day), spent(time.Minute, account.Weekly, "", day)}, 3 * day},
		{"none told after one that was", []account.Rejection{spent(0, account.Weekly, "", 3*day), spent(time.Minute, account.Weekly, "", 0)}, 3 * day},
		{"a later reset", []account.Rejection{spent(0, account.Weekly, "", day), spent(time.Minute, account.Weekly, "", 3*day)}, 3 * day},
		{"a told one after none", []account.Rejection{spent(0, account.Weekly, "", 0), spent(time.Minute, account.Weekly, "", 3*day)}, 3 * day},
		{"none told near the end", []account.Rejection{spent(0, account.Weekly, "", time.Hour), spent(time.Hour-time.Minute, account.Weekly, "", 0)}, time.Hour + 4*time.Minute},
		{"an older one folded late", []account.Rejection{spent(time.Minute, account.Weekly, "", day), spent(0, account.Weekly, "", 3*day)}, 3 * day},
		{"throttles", []account.Rejection{{Kind: account.Throttle, At: t0, Until: at(time.Minute)}, {Kind: account.Throttle, At: at(1), Until: at(6 * time.Second)}}, time.Minute},
		{"windows are apart", []account.Rejection{spent(0, account.Weekly, "", 3*day), spent(time.Minute, account.FiveHour, "", time.Hour)}, 3 * day},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantUntil(t, refuse(tt.rs...), "opus", tt.want) })
	}
}
