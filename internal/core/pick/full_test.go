package pick_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
)

func TestFullest(t *testing.T) {
	s := account.State{Windows: map[string]account.Window{
		account.FiveHour:         {Utilization: 0.5, HasUtilization: true, ResetAt: now.Add(time.Hour)},
		account.Weekly:           {Utilization: 0.4, HasUtilization: true, ResetAt: now.Add(24 * time.Hour)},
		account.WeeklyOf("opus"): {Utilization: 0.9, HasUtilization: true, ResetAt: now.Add(24 * time.Hour)},
		account.Tokens:           {Status: account.Allowed},
	}}
	for _, tt := range []struct {
		name, family string
		when         time.Duration
		window       string
		full         float64
	}{
		{"whole account", "haiku", 0, account.FiveHour, 0.5},
		{"the family's own", "opus", 0, account.WeeklyOf("opus"), 0.9},
		{"no family", "", 0, account.FiveHour, 0.5},
		{"at a reset", "haiku", time.Hour, account.Weekly, 0.4},
		{"1 ns before it", "haiku", time.Hour - 1, account.FiveHour, 0.5},
		{"all reset: the first by name", "opus", 24 * time.Hour, account.FiveHour, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at, r := now.Add(tt.when), pick.Request{Family: tt.family}
			for range 20 { // maps have no order
				if name, full, known := pick.Fullest(at, r, s); name != tt.window || full != tt.full || !known {
					t.Fatalf("got %s %v %v, want %s %v", name, full, known, tt.window, tt.full)
				}
			}
			if room, known := pick.Room(at, r, s); room != 1-tt.full || !known {
				t.Errorf("room: got %v %v, want %v", room, known, 1-tt.full)
			}
		})
	}
	if room, known := pick.Room(now, pick.Request{}, account.State{}); room != 1 || known {
		t.Errorf("a state never seen: got room %v, %v, want 1 and that nothing is known", room, known)
	}
	for name, w := range map[string]account.Window{
		"over full":               {Utilization: 1.08, HasUtilization: true, ResetAt: now.Add(time.Hour)},
		"rejected at 40 %":        {Utilization: 0.4, HasUtilization: true, Status: account.Rejected, ResetAt: now.Add(time.Hour)},
		"rejected without figure": {Status: account.Rejected, ResetAt: now.Add(time.Hour)},
	} {
		if room, known := pick.Room(now, pick.Request{}, account.State{Windows: map[string]account.Window{account.FiveHour: w}}); room != 0 || !known {
			t.Errorf("%s: got room %v, %v, want 0", name, room, known)
		}
	}
}

func TestBlockedIsTheLast(t *testing.T) {
	block := func(cause string, until time.Duration) account.Block {
		return account.Block{Cause: cause, Window: cause, Since: now, Until: now.Add(until)}
	}
	s := account.State{Blocks: map[string]account.Block{"a": block(account.FiveHour, 2*time.Hour), "b": block(account.Weekly, 72*time.Hour), "c": block("30d", 72*time.Hour)}}
	for range 20 { // maps have no order
		if b, _ := pick.Blocked(now, pick.Request{}, pick.Of(account.Account{}, s)); b.Cause != "30d" {
			t.Fatalf("got %s, want 30d: the first by name of those that end last", b.Cause)
		}
	}
}
