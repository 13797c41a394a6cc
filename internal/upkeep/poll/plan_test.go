package poll_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/store"
	"holdfast/internal/upkeep/poll"
)

var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

const (
	fresh    = 10 * time.Minute
	interval = 5 * time.Minute
)

var settings = catalog.Settings{FreshFor: fresh, PollInterval: interval}

// read is a state with one reading of a window.
func read(window string, at time.Time, source account.Source) account.State {
	return account.State{}.Observe(account.Reading{At: at, Source: source, Windows: []account.WindowReading{
		{Name: window, Utilization: 0.5, HasUtilization: true},
	}}, 0, account.Rules{})
}

// spent is a state that cools since an instant.
func spent(s account.State, family string, at time.Time) account.State {
	return s.Reject(account.Rejection{Kind: account.WindowSpent, At: at, Spent: []account.Spent{{
		Window: account.Weekly, Family: family, ResetAt: at.Add(100 * time.Hour),
	}}}, account.Rules{})
}

func parked(kind account.RejectionKind, at time.Time) account.State {
	return account.State{}.Reject(account.Rejection{Kind: kind, At: at, Rule: "no"}, account.Rules{})
}

func TestPlan(t *testing.T) {
	const ns = time.Nanosecond
	answered := store.Clock{AnswerAt: t0.Add(-time.Hour)}
	overage := account.State{}.Observe(account.Reading{At: t0.Add(-time.Second), Source: account.FromAnswer, Overage: account.Overage{Available: true},
		Windows: []account.WindowReading{{Name: account.Weekly, Utilization: 1, HasUtilization: true, ResetAt: t0.Add(time.Hour)}}}, 0, account.Rules{})
	throttled := read(account.Weekly, t0.Add(-time.Second), account.FromAnswer).Reject(
		account.Rejection{Kind: account.Throttle, At: t0.Add(-time.Second), Until: t0.Add(time.Minute)}, account.Rules{})
	tests := []struct {
		name      string
		state     account.State
		clock     store.Clock
		unwatched bool
		want      poll.Result
		asked     poll.Result // when the owner asks for everybody
	}{
		{"never looked at", account.State{}, store.Clock{}, false, poll.Due, poll.Due},
		{"no usage endpoint", account.State{}, store.Clock{}, true, poll.Unwatched, poll.Unwatched},
		{"due at this instant", account.State{}, store.Clock{NextAt: t0}, false, poll.Due, poll.Due},
		{"due in a nanosecond", account.State{}, store.Clock{NextAt: t0.Add(ns)}, false, poll.Waiting, poll.Due},
		{"backed off from", account.State{}, store.Clock{NextAt: t0.Add(ns), Failures: 1}, false, poll.BackingOff, poll.BackingOff},
		{"backed off from until now", account.State{}, store.Clock{NextAt: t0, Failures: 9}, false, poll.Due, poll.Due},

		{"the interval was shortened", account.State{}, store.Clock{LookedAt: t0.Add(-6 * time.Minute), NextAt: t0.Add(24 * time.Hour)}, false, poll.Due, poll.Due},
		{"the interval was shortened just now", account.State{}, store.Clock{LookedAt: t0.Add(-6*time.Minute + ns), NextAt: t0.Add(24 * time.Hour)}, false, poll.Waiting, poll.Due},
		{"backed off from by a longer interval", account.State{}, store.Clock{LookedAt: t0.Add(-30 * time.Minute), NextAt: t0.Add(24 * time.Hour), Failures: 9}, false, poll.BackingOff, poll.BackingOff},
		{"backed off from by a longer interval for long", account.State{}, store.Clock{LookedAt: t0.Add(-36 * time.Minute), NextAt: t0.Add(24 * time.Hour), Failures: 9}, false, poll.Due, poll.Due},
		{"a clock two minutes ahead", account.State{}, store.Clock{LookedAt: t0.Add(2 * time.Minute), NextAt: t0.Add(7 * time.Minute)}, false, poll.Waiting, poll.Due},
		{"a clock that was wrong", account.State{}, store.Clock{LookedAt: t0.Add(2*time.Minute + ns), NextAt: t0.Add(7 * time.Minute)}, false, poll.Due, poll.Due},

		{"answers that tell, just not silent", read(account.Weekly, t0.Add(-fresh+ns), account.FromAnswer), answered, false, poll.Fresh, poll.Due},
		{"answers that tell, silent for ten minutes", read(account.Weekly, t0.Add(-fresh), account.FromAnswer), answered, false, poll.Due, poll.Due},
		{"answers that tell, looked at since", read(account.Weekly, t0.Add(-6*time.Minute), account.FromPoll), answered, false, poll.Fresh, poll.Due},
		{"answers that never tell, looked at since", read(account.Weekly, t0.Add(-6*time.Minute), account.FromPoll), store.Clock{}, false, poll.Due, poll.Due},
		{"answers that report the minute only", read(account.Tokens, t0.Add(-time.Second), account.FromAnswer), answered, false, poll.Due, poll.Due},

		{"cooling, fresh", spent(read(account.FiveHour, t0.Add(-time.Second), account.FromAnswer), "", t0.Add(-time.Second)), answered, false, poll.Due, poll.Due},
		{"a family cooling, fresh", spent(read(account.FiveHour, t0.Add(-time.Second), account.FromAnswer), "fable", t0.Add(-time.Second)), answered, false, poll.Due, poll.Due},
		{"cooling, clock not due", spent(account.State{}, "", t0.Add(-time.Minute)), store.Clock{NextAt: t0.Add(ns)}, false, poll.Waiting, poll.Due},
		{"cooled until now, fresh", spent(read(account.FiveHour, t0.Add(-time.Second), account.FromAnswer), "", t0.Add(-100*time.Hour)), answered, false, poll.Fresh, poll.Due},
		{"guarding overage, fresh", overage, answered, false, poll.Due, poll.Due},
		{"a pause, fresh: no reading ends it", throttled, answered, false, poll.Fresh, poll.Due},

		{"parked for its credential", parked(account.BadCredential, t0.Add(-99*time.Hour)), store.Clock{}, false, poll.Parked, poll.Parked},
		{"parked for something unknown", account.State{Parked: &account.Parked{Since: t0.Add(-99 * time.Hour)}}, store.Clock{}, false, poll.Parked, poll.Parked},
		{"parked for funds for just under half an hour", parked(account.Funds, t0.Add(-30*time.Minute+ns)), store.Clock{}, false, poll.Parked, poll.Due},
		{"parked for funds for half an hour", parked(account.Funds, t0.Add(-30*time.Minute)), store.Clock{}, false, poll.Due, poll.Due},
		{"parked for funds, clock not due", parked(account.Funds, t0.Add(-time.Hour)), store.Clock{NextAt: t0.Add(ns)}, false, poll.Waiting, poll.Due},
		{"parked for funds again", parked(account.Funds, t0.Add(-time.Hour+ns)), store.Clock{Unparked: 1, UnparkedAt: t0.Add(-time.Hour)}, false, poll.Parked, poll.Due},
		{"parked for funds again for an hour", parked(account.Funds, t0.Add(-time.Hour)), store.Clock{Unparked: 1, UnparkedAt: t0.Add(-time.Hour)}, false, poll.Due, poll.Due},
		{"parked for funds over and over", parked(account.Funds, t0.Add(-24*time.Hour+ns)), store.Clock{Unparked: 50, UnparkedAt: t0.Add(-25 * time.Hour)}, false, poll.Parked, poll.Due},
		{"parked for funds over and over, a day ago", parked(account.Funds, t0.Add(-24*time.Hour)), store.Clock{Unparked: 50, UnparkedAt: t0.Add(-25 * time.Hour)}, false, poll.Due, poll.Due},
		{"parked for funds over and over, long ago", parked(account.Funds, t0.Add(-30*time.Minute)), store.Clock{Unparked: 50, UnparkedAt: t0.Add(-48 * time.Hour)}, false, poll.Due, poll.Due},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := poll.Subject{State: tt.state, Clock: tt.clock, Watched: !tt.unwatched}
			if got := poll.Plan(s, t0, settings, false); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if got := poll.Plan(s, t0, settings, true); got != tt.asked {
				t.Errorf("asked by the owner: got %s, want %s", got, tt.asked)
			}
		})
	}
}

func TestClockAfterReading(t *testing.T) {
	before := store.Clock{Failures: 4, Trouble: "it answers 429", AnswerAt: t0, PointAt: t0}
	for _, tt := range []struct {
		jitter float64
		want   time.Duration
	}{{0, 5 * time.Minute}, {0.5, 5*time.Minute + 30*time.Second}, {0.999, 6*time.Minute - 60*time.Millisecond}} {
		got := poll.Read(before, t0, interval, tt.jitter, false)
		want := store.Clock{NextAt: t0.Add(tt.want), LookedAt: t0, ReadAt: t0, AnswerAt: t0, PointAt: t0}
		if got != want {
			t.Errorf("jitter %v: got %+v, want %+v", tt.jitter, got, want)
		}
	}
}

// TestBackoff: doubling from the interval to half an hour, and no shorter than a minute.
func TestBackoff(t *testing.T) {
	for _, tt := range []struct {
		name     string
		interval time.Duration
		jitter   float64
		want     []time.Duration
	}{
		{"the default", 5 * time.Minute, 0, []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, 30 * time.Minute}},
		{"with jitter", 5 * time.Minute, 0.5, []time.Duration{330 * time.Second, 660 * time.Second, 1320 * time.Second, 30 * time.Minute}},
		{"below a round", time.Second, 0, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute}},
		{"above the ceiling", time.Hour, 0.5, []time.Duration{time.Hour, time.Hour}},
		{"the longest there is", 87600 * time.Hour, 0.9, []time.Duration{87600 * time.Hour, 87600 * time.Hour}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := store.Clock{ReadAt: t0.Add(-time.Hour)}
			for i, want := range tt.want {
				c = poll.Failed(c, t0, tt.interval, tt.jitter, "it answers 429")
				if got := c.NextAt.Sub(t0); got != want || c.Failures != i+1 || c.Trouble != "it answers 429" || !c.ReadAt.Equal(t0.Add(-time.Hour)) {
					t.Errorf("failure %d: got %v (%+v), want %v", i+1, got, c, want)
				}
			}
		})
	}
	if got := poll.Failed(store.Clock{Failures: 1 << 40}, t0, interval, 0, "").NextAt.Sub(t0); got != 30*time.Minute {
		t.Errorf("after very many failures: got %v, want half an hour", got)
	}
}

// TestUnparkedTooOften: a provider whose usage endpoint shows room while it refuses is believed less and less.
func TestUnparkedTooOften(t *testing.T) {
	c, now := store.Clock{}, t0
	for i, want := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 16 * time.Hour, 24 * time.Hour, 24 * time.Hour} {
		if got := poll.ReadParked(c, now, 0).NextAt.Sub(now); got != want {
			t.Errorf("after %d times: got %v, want %v", i, got, want)
		}
		now = now.Add(want)
		c = poll.Read(c, now, interval, 0, true)
	}
	now = now.Add(48 * time.Hour)
	if got := poll.ReadParked(c, now, 0).NextAt.Sub(now); got != 30*time.Minute {
		t.Errorf("two days later: got %v, want half an hour", got)
	}
	if got := poll.Read(c, now, interval, 0, true).Unparked; got != 1 {
		t.Errorf("two days later: got %d times, want 1", got)
	}
}
