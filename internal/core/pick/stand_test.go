package pick_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
)

func TestStand(t *testing.T) {
	longContext := ordinary
	longContext.Features = []string{"long-context"}
	sized := ordinary
	sized.Size = 10
	again := func(r pick.Request) pick.Request {
		r.Again = true
		return r
	}
	lacks := func(in time.Duration) change {
		return refuses(account.Thing{Feature: "long-context"}, 0, in)
	}
	weekly := account.Block{Cause: account.Weekly, Window: account.Weekly}
	opus := account.Block{Cause: account.WeeklyOf("opus"), Window: account.WeeklyOf("opus"), Family: "opus"}
	haiku := account.Block{Cause: account.WeeklyOf("haiku"), Window: account.WeeklyOf("haiku"), Family: "haiku"}
	bare := account.Block{Cause: account.CauseBare, Model: ordinary.Model}
	overage := account.Block{Cause: account.CauseOverage, Window: account.Weekly}
	throttle := account.Block{Cause: account.CauseThrottle}
	tests := []struct {
		name   string
		r      pick.Request
		c      pick.Candidate
		want   pick.Reason
		until  time.Duration // from now; 0 for none
		cause  string
		pinned pick.Reason
	}{
		{name: "usable", c: candidate("a")},
		{name: "the provider cannot serve it there", c: candidate("a", foreign), want: pick.NotServed, pinned: pick.NotServed},
		{name: "the key may not use it", c: candidate("a", denied), want: pick.NotAllowed, pinned: pick.NotAllowed},
		{name: "tried already", c: candidate("a", tried), want: pick.Tried, pinned: pick.Tried},
		{name: "parked", c: candidate("a", parked), want: pick.Parked, pinned: pick.Parked},
		{name: "draining gets no new ones and keeps the old", c: candidate("a", drain), want: pick.Draining},
		{name: "cooling", c: candidate("a", cooling(time.Hour)), want: pick.Cooldown, until: time.Hour, cause: account.FiveHour, pinned: pick.Cooldown},
		{name: "1 ns before the end", c: candidate("a", cooling(1)), want: pick.Cooldown, until: 1, cause: account.FiveHour, pinned: pick.Cooldown},
		{name: "at the end", c: candidate("a", cooling(0))},
		{name: "the block that ends last counts", c: candidate("a", cooling(time.Hour), block(weekly, 2*time.Hour)), want: pick.Cooldown, until: 2 * time.Hour, cause: account.Weekly, pinned: pick.Cooldown},
		{name: "a pause of the account", c: candidate("a", block(throttle, time.Minute)), want: pick.Paused, until: time.Minute, cause: account.CauseThrottle, pinned: pick.Paused},
		{name: "a pause of the model", c: candidate("a", block(bare, 5*time.Second)), want: pick.Paused, until: 5 * time.Second, cause: account.CauseBare, pinned: pick.Paused},
		{name: "a pause of another model", r: pick.Request{Model: "claude-opus-4", Family: "opus"}, c: candidate("a", block(bare, 5*time.Second))},
		{name: "overage is guarded", c: candidate("a", block(overage, time.Hour)), want: pick.Cooldown, until: time.Hour, cause: account.CauseOverage, pinned: pick.Cooldown},
		{name: "until the owner allows it", c: candidate("a", block(overage, time.Hour), allowOverage)},
		{name: "which lifts nothing else", c: candidate("a", block(overage, 2*time.Hour), cooling(time.Hour), allowOverage), want: pick.Cooldown, until: time.Hour, cause: account.FiveHour, pinned: pick.Cooldown},
		{name: "two that end together: the first by cause", c: candidate("a", block(weekly, time.Hour), cooling(time.Hour)), want: pick.Cooldown, until: time.Hour, cause: account.FiveHour, pinned: pick.Cooldown},
		{name: "the family is blocked", c: candidate("a", block(opus, time.Hour)), want: pick.ModelBlocked, until: time.Hour, cause: account.WeeklyOf("opus"), pinned: pick.ModelBlocked},
		{name: "another family is blocked", c: candidate("a", block(haiku, time.Hour))},
		{name: "lacks the feature", r: longContext, c: candidate("a", lacks(time.Minute)), want: pick.Refuses, until: time.Minute, pinned: pick.Refuses},
		{name: "lacks two features: the longer", r: pick.Request{Model: ordinary.Model, Features: []string{"extra", "long-context"}},
			c: candidate("a", lacks(time.Minute), refuses(account.Thing{Feature: "extra"}, 0, time.Hour)), want: pick.Refuses, until: time.Hour, pinned: pick.Refuses},
		{name: "lacked the feature until now", r: longContext, c: candidate("a", lacks(0))},
		{name: "lacks a feature that is not asked for", c: candidate("a", lacks(time.Minute))},
		{name: "what it cannot do comes before what it must wait for", r: longContext, c: candidate("a", lacks(time.Minute), cooling(time.Hour)), want: pick.Refuses, until: time.Minute, pinned: pick.Refuses},
		{name: "refuses the model", c: candidate("a", refuses(account.Thing{Model: ordinary.Model}, 0, time.Minute)), want: pick.Refuses, until: time.Minute, pinned: pick.Refuses},
		{name: "refuses another model", c: candidate("a", refuses(account.Thing{Model: "other"}, 0, time.Minute))},
		{name: "refuses the model, and is asked again", r: again(ordinary), c: candidate("a", refuses(account.Thing{Model: ordinary.Model}, 0, time.Minute))},
		{name: "too large, and asked again", r: again(sized), c: candidate("a", refuses(account.Thing{Model: ordinary.Model, Limit: account.Tokens}, 9, time.Minute)), want: pick.Refuses, until: time.Minute, pinned: pick.Refuses},
		{name: "small enough", r: sized, c: candidate("a", refuses(account.Thing{Model: ordinary.Model, Limit: account.Tokens}, 11, time.Minute))},
		{name: "its owner comes before the clock", c: candidate("a", parked, cooling(time.Hour)), want: pick.Parked, pinned: pick.Parked},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.r
			if r.Model == "" {
				r = ordinary
			}
			got := pick.Stand(now, r, tt.c, settings())
			if got.Reason != tt.want || got.Block.Cause != tt.cause {
				t.Errorf("got %q by %q, want %q by %q", got.Reason, got.Block.Cause, tt.want, tt.cause)
			}
			var until time.Time
			if tt.until != 0 {
				until = now.Add(tt.until)
			}
			if !got.Until.Equal(until) {
				t.Errorf("until: got %v, want %v", got.Until, until)
			}
			if got.Usable() != (tt.want == "") {
				t.Errorf("usable: got %v with reason %q", got.Usable(), got.Reason)
			}
			if pinned := pick.StandPinned(now, r, tt.c, settings()); pinned.Reason != tt.pinned {
				t.Errorf("pinned: got %q, want %q", pinned.Reason, tt.pinned)
			}
		})
	}
}

func TestBlocked(t *testing.T) {
	tests := []struct {
		c    pick.Candidate
		want bool
	}{
		{candidate("usable"), false},
		{candidate("cooling", cooling(time.Hour)), true},
		{candidate("paused", block(account.Block{Cause: account.CauseThrottle}, time.Second)), true},
		{candidate("model", block(account.Block{Cause: "weekly:opus", Family: "opus"}, time.Hour)), true},
		{candidate("parked", parked), false},
		{candidate("drain", drain), false},
		{candidate("tried", tried), false},
	}
	for _, tt := range tests {
		if got := pick.Stand(now, ordinary, tt.c, settings()).Blocked(); got != tt.want {
			t.Errorf("%s: got blocked %v, want %v", tt.c.Account.Name, got, tt.want)
		}
	}
}

// refuses makes a candidate refuse a thing, of a size in bytes where that is not 0.
func refuses(thing account.Thing, size int64, in time.Duration) change {
	return func(c *pick.Candidate) {
		c.State.Refuses[thing.Key()] = account.Refused{Thing: thing, Size: size, Since: now.Add(in - time.Hour), Until: now.Add(in)}
	}
}

// TestRefusesIsExplained: the reader of a decision sees why an account was passed over.
func TestRefusesIsExplained(t *testing.T) {
	s := account.State{}.Reject(account.Rejection{Kind: account.Access, At: now, Model: ordinary.Model, Rule: "unverified"}, account.Rules{})
	d := pick.Pick(now, catalog.Policy{Name: catalog.Score}, settings(), ordinary, []pick.Candidate{candidate("a", func(c *pick.Candidate) { c.State = s }), candidate("b")})
	want := "unverified until " + now.Add(time.Hour).UTC().Format(time.RFC3339)
	if got := d.Parts[0]; d.Chosen != 1 || got.Passed != pick.Refuses || got.Note != want {
		t.Errorf("got %d chosen and %+v, want the second, and %q", d.Chosen, got, want)
	}
}
