package account_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
)

// TestBelieved is field case a-clock-that-was-ahead: each kind of instant is believed up to its
// limit and not beyond, and what is believed is left as it is.
func TestBelieved(t *testing.T) {
	now := t0
	state := func(set func(*account.State)) account.State {
		s := account.State{Windows: map[string]account.Window{}, Blocks: map[string]account.Block{}, Refuses: map[string]account.Refused{}}
		set(&s)
		return s
	}
	const month = 30 * day
	block := func(b account.Block, until time.Duration) func(*account.State) {
		return func(s *account.State) {
			b.Since, b.Until = now.Add(month), now.Add(until)
			s.Blocks["b"] = b
		}
	}
	window := func(name string, observed, reset time.Duration) func(*account.State) {
		return func(s *account.State) {
			s.Windows[name] = account.Window{Utilization: 0.99, HasUtilization: true, ObservedAt: now.Add(observed), ResetAt: now.Add(reset)}
		}
	}
	const slack = 2 * time.Minute
	for _, c := range []struct {
		name string
		set  func(*account.State)
		want bool // believed
	}{
		{"a longer pause", block(account.Block{Cause: account.CauseBare}, 5*time.Minute+slack+1), false},
		{"more than five hours", block(account.Block{Cause: account.FiveHour, Window: account.FiveHour}, 5*time.Hour+slack+1), false},
		{"what a right clock made", func(s *account.State) {
			s.Blocks["b"] = account.Block{Cause: account.CauseBare, Since: now.Add(slack), Until: now.Add(time.Hour)} // as its owner set bare_pause
		}, true},
		{"more than a week", block(account.Block{Cause: account.Weekly, Window: account.Weekly}, 7*day+slack+1), false},
		{"an observation of two minutes ahead", window(account.Weekly, slack, time.Hour), true},
		{"one of later", window(account.Weekly, slack+1, time.Hour), false},
		{"a reset a week away", window(account.Weekly, 0, 7*day+slack), true},
		{"one of later than a week", window(account.Weekly, 0, 7*day+slack+1), false},
		{"a reset of the five-hour window", window(account.FiveHour, 0, 5*time.Hour+slack+1), false},
		{"a month", window("30d", 0, 30*day), true},
		{"a window of an unknown length", window("kestrel", 0, 32*day), true},
		{"and later", window("kestrel", 0, 32*day+1), false},
		{"a parking", func(s *account.State) { s.Parked = &account.Parked{Since: now.Add(slack + 1)} }, false},
		{"the owner's word", func(s *account.State) { s.ClearedAt = now.Add(30 * day) }, false},
		{"a refusal of an hour", func(s *account.State) { s.Refuses["r"] = account.Refused{Since: now, Until: now.Add(time.Hour)} }, true},
		{"a longer one", func(s *account.State) {
			s.Refuses["r"] = account.Refused{Since: now.Add(month), Until: now.Add(month + time.Hour)}
		}, false},
	} {
		s := state(c.set)
		got, changed := s.Believed(now)
		if changed == c.want {
			t.Errorf("%s: believed %v, want %v", c.name, !changed, c.want)
		}
		if again, twice := got.Believed(now); twice {
			t.Errorf("%s: what is left is not believed either: %+v", c.name, again)
		}
	}
	// Void blocks are gone; a figure of the future is kept as of now, so that a newer one wins.
	s, _ := state(window(account.Weekly, 30*day, 3*day)).Believed(now)
	s = s.Observe(account.Reading{At: now, Windows: []account.WindowReading{{Name: account.Weekly, Utilization: 0.2, HasUtilization: true, ResetAt: now.Add(3 * day)}}}, 0, account.Rules{})
	if got := s.Windows[account.Weekly].Utilization; got != 0.2 {
		t.Errorf("got %v, want the newer reading of now", got)
	}
	for until, kept := range map[time.Duration]int{5*time.Hour + slack: 1, 5*time.Hour + slack + 1: 0, month: 0} {
		s, _ = state(block(account.Block{Cause: account.FiveHour, Window: account.FiveHour}, until)).Believed(now)
		if len(s.Blocks) != kept {
			t.Errorf("until %v: got %+v, want %d blocks", until, s.Blocks, kept)
		}
	}
}
