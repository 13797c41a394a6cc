package account_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
)

// TestWhichAccountsShare holds part of field case sharing-across-hosts.
func TestWhichAccountsShare(t *testing.T) {
	key := account.Account{Provider: account.OpenAI, Kind: account.Key}
	login := account.Account{Provider: account.Anthropic, Kind: account.Subscription}
	org := func(name, principal string, w account.Window) account.State {
		return account.State{Organization: name, Principal: principal, Windows: map[string]account.Window{account.FiveHour: w}}
	}
	read := func(when time.Duration, u float64, reset time.Duration) account.Window {
		return account.Window{Utilization: u, HasUtilization: true, ResetAt: at(reset), ObservedAt: at(when)}
	}
	elsewhere := func(a account.Account) account.Account { a.BaseURL = "https://elsewhere.example"; return a }
	at10, none := read(10*time.Minute, 0.5, 3*time.Hour), account.Window{}
	for _, c := range []struct {
		name string
		a, b account.Account
		s, o account.State
		want bool
	}{
		{"keys of one organization", key, key, org("org", "", at10), org("org", "", none), true},
		{"keys of two", key, key, org("org", "", at10), org("other", "", none), false},
		{"keys of which nothing is known", key, key, org("", "", at10), org("", "", none), false},
		{"keys at two providers", key, account.Account{Provider: account.XAI, Kind: account.Key}, org("org", "", at10), org("org", "", none), false},
		{"keys at two hosts", key, elsewhere(key), org("org", "", at10), org("org", "", none), false},
		{"keys at another host", elsewhere(key), elsewhere(key), org("org", "", at10), org("org", "", none), true},
		{"logins of one principal at two hosts", login, elsewhere(login), org("", "user/1", at10), org("", "user/1", none), false},
		{"logins of one organization at two hosts", elsewhere(login), login, org("org", "", at10), org("org", "", none), false},
		{"a key and a login", account.Account{Provider: account.Anthropic, Kind: account.Key}, login, org("org", "", at10), org("org", "", none), false},
		{"logins of one principal", login, login, org("", "user/1", at10), org("", "user/1", none), true},
		{"of two, seats of a team", login, login, org("team", "user/1", at10), org("team", "user/2", at10), false},
		{"of one organization, principal unknown", login, login, org("org", "", at10), org("org", "user/1", read(20*time.Minute, 0.6, 3*time.Hour)), true},
		{"whose windows reset at two instants", login, login, org("org", "", at10), org("org", "", read(20*time.Minute, 0.6, 4*time.Hour)), false},
		{"whose later reading is emptier", login, login, org("org", "", at10), org("org", "", read(20*time.Minute, 0.2, 3*time.Hour)), false},
		{"the same in the other order", login, login, org("org", "", read(20*time.Minute, 0.2, 3*time.Hour)), org("org", "", at10), false},
		{"emptier after the reset", login, login, org("org", "", at10), org("org", "", read(3*time.Hour, 0.1, 8*time.Hour)), true},
		{"a nanosecond before it", login, login, org("org", "", at10), org("org", "", read(3*time.Hour-1, 0.1, 8*time.Hour)), false},
		{"resets told a minute apart", login, login, org("org", "", at10), org("org", "", read(20*time.Minute, 0.5, 3*time.Hour+time.Minute)), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocked := c.s.Reject(spent(15*time.Minute, account.FiveHour, "", 3*time.Hour), rules)
			got := account.Together(at(3*time.Hour), []account.Account{c.a, c.b}, []account.State{blocked, c.o})
			_, shared := blockedUntil(got[1], at(20*time.Minute), "", "")
			if shared != c.want {
				t.Errorf("got shared %v, want %v", shared, c.want)
			}
			if _, itself := blockedUntil(got[0], at(20*time.Minute), "", ""); !itself {
				t.Error("the account lost its own block")
			}
		})
	}
}

func TestWhatIsShared(t *testing.T) {
	throttled := account.Rejection{Kind: account.Throttle, At: at(0), Until: at(time.Minute)}
	whole := func(r account.Rejection) account.Rejection { r.Whole = true; return r }
	funds := account.Rejection{Kind: account.Funds, At: at(0), Rule: "credit-balance"}
	refuse := func(r account.Rejection) account.State { return account.State{}.Reject(r, rules) }
	is := func(s account.State) (blocked, parked bool) {
		_, blocked = blockedUntil(s, at(time.Second), "opus", "claude-opus-5")
		return blocked, s.Parked != nil
	}
	for _, c := range []struct {
		name            string
		other           account.State
		blocked, parked bool
	}{
		{"a spent window", refuse(spent(0, account.FiveHour, "", time.Hour)), true, false},
		{"a family's", refuse(spent(0, account.WeeklyOf("opus"), "opus", time.Hour)), true, false},
		{"a throttle of the organization", refuse(whole(throttled)), true, false},
		{"a throttle of the project", refuse(throttled), false, false},
		{"a burst", refuse(account.Rejection{Kind: account.Bare, At: at(0), Model: "claude-opus-5"}), false, false},
		{"no money in the organization", refuse(whole(funds)), false, true},
		{"none in the project", refuse(funds), false, false},
		{"a refused credential", refuse(whole(account.Rejection{Kind: account.BadCredential, At: at(0)})), false, false},
		{"a lacking feature", refuse(account.Rejection{Kind: account.Entitlement, At: at(0), Feature: "long-context"}), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := account.State{}.With(c.other)
			if blocked, parked := is(got); blocked != c.blocked || parked != c.parked {
				t.Errorf("got blocked %v, parked %v, want %v, %v", blocked, parked, c.blocked, c.parked)
			}
			if refusesFeature(got, time.Second, "long-context") {
				t.Error("a feature was shared")
			}
			cleared := account.State{}.Clear(at(time.Millisecond)).With(c.other)
			if blocked, parked := is(cleared); blocked || parked {
				t.Errorf("after the owner cleared it: got blocked %v, parked %v", blocked, parked)
			}
		})
	}
	t.Run("a window that another saw open again", func(t *testing.T) {
		open := account.State{}.Observe(account.Reading{At: at(time.Minute), Source: account.FromAnswer, Windows: []account.WindowReading{window(account.FiveHour, 0.1, 6*time.Hour)}}, 0, rules)
		if got := refuse(spent(0, account.FiveHour, "", time.Hour)).With(open); len(blocksFor(got, at(2*time.Minute), account.Ask{Family: "", Model: ""})) > 0 {
			t.Errorf("got %v", got.Blocks)
		}
	})
	t.Run("an own parking stays", func(t *testing.T) {
		own := refuse(account.Rejection{Kind: account.BadCredential, At: at(0), Rule: "unauthorized"})
		if got := own.With(refuse(whole(account.Rejection{Kind: account.Funds, At: at(time.Minute), Rule: "credit-balance"}))); got.Parked.Reason != "unauthorized" {
			t.Errorf("got %+v", got.Parked)
		}
	})
	t.Run("the project's windows stay", func(t *testing.T) {
		o := account.State{}.Observe(account.Reading{At: at(0), Windows: []account.WindowReading{window("project-tokens", 1, time.Hour), window("tokens", 0.5, time.Hour)}}, 0, rules)
		got := account.State{}.With(o)
		if _, ok := got.Windows["project-tokens"]; ok || len(got.Windows) != 1 {
			t.Errorf("got %v", got.Windows)
		}
	})
}

// Joining is the same in whatever order, changes nothing the second time, lets the newest
// win, and leaves its arguments alone.
func TestJoiningProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	make1 := func() account.State {
		var s account.State
		for range 1 + rnd.IntN(8) {
			s = random(rnd, time.Duration(rnd.IntN(120))*time.Minute, nil).fold(s)
		}
		for k, b := range s.Blocks { // of the whole organization, so that all is shared
			b.Whole = true
			s.Blocks[k] = b
		}
		return s
	}
	for n := range 1000 {
		a, b, c := make1(), make1(), make1()
		before := fmt.Sprintf("%+v %+v", a, b)
		ab := a.With(b)
		if fmt.Sprintf("%+v %+v", a, b) != before {
			t.Fatalf("%d: an argument was changed", n)
		}
		same := func(what string, x, y account.State) {
			t.Helper()
			if d := gocmp.Diff(x, y); d != "" {
				t.Fatalf("%d: %s (-first +second)\n%s", n, what, d)
			}
		}
		shared := func(s account.State) account.State {
			return account.State{Windows: s.Windows, Blocks: s.Blocks, ReadAt: s.ReadAt, ProbedAt: s.ProbedAt, RoomAt: s.RoomAt}
		}
		same("not commutative", shared(ab), shared(b.With(a)))
		same("not idempotent", ab, ab.With(b))
		same("the order of others matters", a.With(b, c), a.With(c, b))
		same("not associative", shared(a.With(b).With(c)), shared(a.With(b.With(c))))
		for name, w := range ab.Windows {
			if w.ObservedAt.Before(a.Windows[name].ObservedAt) || w.ObservedAt.Before(b.Windows[name].ObservedAt) {
				t.Fatalf("%d: an older reading of %s won", n, name)
			}
		}
		for k, blk := range ab.Blocks {
			if blk.Since.Before(a.Blocks[k].Since) || blk.Since.Before(b.Blocks[k].Since) {
				t.Fatalf("%d: older evidence for %s won", n, k)
			}
		}
	}
}
