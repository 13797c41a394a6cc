package refresh

import (
	"testing"
	"time"

	"holdfast/internal/core/credential"
	"holdfast/internal/store"
	"holdfast/internal/upkeep/presence"
)

// judge decides alone, and so is looked at alone: what stands in the way, and when it ends.
func TestJudge(t *testing.T) {
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	login := func(generation int64, ends time.Duration) credential.Credential {
		return credential.Credential{Refresh: credential.NewSecret("r"), ExpiresAt: now.Add(ends), Generation: generation}
	}
	mark := func(by string, age time.Duration, lost bool) *store.Spending {
		return &store.Spending{Token: "t", Generation: 2, By: by, Since: now.Add(-age), Lost: lost}
	}
	const old, young = 100 * time.Second, 100*time.Second - 1
	const long, short = time.Minute, time.Minute - 1
	for _, c := range []struct {
		name   string
		s      stand
		us     stance
		want   verdict
		stored *credential.Credential
	}{
		{name: "nothing stands in the way", want: begin},
		{name: "a later one is stored", stored: ptr(login(3, time.Hour)), want: adopt},
		{name: "a later one is stored, which ends now", stored: ptr(login(3, 0)), want: begin},
		{name: "a later one is stored, of unknown end", stored: &credential.Credential{Generation: 3}, want: adopt},
		{name: "no refresh token", s: stand{token: "none"}, want: nothing},
		{name: "refused before", s: stand{renewal: store.Renewal{Refused: []string{"u", "t"}}}, want: refused},
		{name: "another was refused before", s: stand{renewal: store.Renewal{Refused: []string{"u"}}}, want: begin},
		{name: "refused, as this process alone knows", us: stance{refused: true}, want: refused},
		{name: "backed off from", s: stand{renewal: store.Renewal{RetryAt: now.Add(1)}}, want: later},
		{name: "backed off from until now", s: stand{renewal: store.Renewal{RetryAt: now}}, want: begin},
		{name: "backed off from by a wrong clock", s: stand{renewal: store.Renewal{RetryAt: now.Add(time.Hour)}}, want: begin},
		{name: "another's mark", s: stand{renewal: store.Renewal{Spending: mark("h", time.Second, false)}}, want: wait},
		{name: "another's mark, watched for less than 45 s", s: stand{renewal: store.Renewal{Spending: mark("h", time.Minute, false)}}, us: stance{watched: 45*time.Second - 1}, want: wait},
		{name: "another's mark, silent for 45 s", s: stand{renewal: store.Renewal{Spending: mark("h", time.Minute, false)}}, us: stance{watched: 45 * time.Second}, want: silent},
		{name: "another's, old but not watched", s: stand{renewal: store.Renewal{Spending: mark("h", old, false)}}, us: stance{watched: short}, want: silent},
		{name: "another's, watched but not old", s: stand{renewal: store.Renewal{Spending: mark("h", young, false)}}, us: stance{watched: long}, want: silent},
		{name: "another's, old and watched", s: stand{renewal: store.Renewal{Spending: mark("h", old, false)}}, us: stance{watched: long}, want: repeat},
		{name: "of one that is gone", s: stand{renewal: store.Renewal{Spending: mark("h", 0, false)}}, us: stance{other: presence.Gone}, want: repeat},
		{name: "of one that is gone, backed off from", s: stand{renewal: store.Renewal{Spending: mark("h", 0, false), RetryAt: now.Add(1)}}, us: stance{other: presence.Gone}, want: later},
		{name: "of one that lives here, old but not watched", s: stand{renewal: store.Renewal{Spending: mark("h", 10*time.Minute, false)}}, us: stance{watched: 2*time.Minute - 1, other: presence.Here}, want: silent},
		{name: "of one that lives here, watched but not old", s: stand{renewal: store.Renewal{Spending: mark("h", 10*time.Minute-1, false)}}, us: stance{watched: 2 * time.Minute, other: presence.Here}, want: silent},
		{name: "of one that lives here, old and watched", s: stand{renewal: store.Renewal{Spending: mark("h", 10*time.Minute, false)}}, us: stance{watched: 2 * time.Minute, other: presence.Here}, want: repeat},
		// Field case a-clock-that-was-ahead: the mark's own instant is not waited for.
		{name: "another's, of a clock two minutes ahead", s: stand{renewal: store.Renewal{Spending: mark("h", -2*time.Minute, false)}}, us: stance{watched: long}, want: silent},
		{name: "another's, of a clock that was wrong", s: stand{renewal: store.Renewal{Spending: mark("h", -30*24*time.Hour, false)}}, us: stance{watched: long}, want: repeat},
		{name: "another's, of a clock that was wrong, not watched", s: stand{renewal: store.Renewal{Spending: mark("h", -30*24*time.Hour, false)}}, want: wait},
		{name: "another's, on another token", s: stand{renewal: store.Renewal{Spending: &store.Spending{Token: "u", By: "h", Since: now}}}, want: begin},
		{name: "ours, never sent", s: stand{renewal: store.Renewal{Spending: mark("us", 0, false)}}, want: begin},
		{name: "ours, sent", s: stand{renewal: store.Renewal{Spending: mark("us", 0, false)}}, us: stance{sent: true}, want: repeat},
		{name: "lost, nobody at it", s: stand{renewal: store.Renewal{Spending: mark("", 0, true)}}, want: repeat},
		{name: "lost, and backed off from", s: stand{renewal: store.Renewal{Spending: mark("", 0, true), RetryAt: now.Add(1)}}, want: later},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.stored, c.s.revision, c.us.holder = login(2, 0), 5, "us"
			if c.stored != nil {
				c.s.stored = *c.stored
			}
			if c.s.token == "none" {
				c.s.token = ""
			} else {
				c.s.token = "t"
			}
			c.s.held = login(2, 0)
			if got := c.s.judge(now, c.us); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	if got := (stand{held: login(2, 0)}).judge(now, stance{}); got != missing {
		t.Errorf("no credential: got %d, want %d", got, missing)
	}
}

func ptr[T any](v T) *T { return &v }

func TestNextTry(t *testing.T) {
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for failures, want := range map[int]time.Duration{
		0: 5 * time.Second, 1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 6: 160 * time.Second,
		7: 5 * time.Minute, 100: 5 * time.Minute,
	} {
		if got := nextTry(now, failures).Sub(now); got != want {
			t.Errorf("after %d failures: got %v, want %v", failures, got, want)
		}
	}
}
