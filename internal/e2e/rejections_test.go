package e2e_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/upstreamtest"
)

func TestClaudeCodeGoesOnAfterARejection(t *testing.T) {
	b := withAccounts(t)
	b.serve()
	c := newClaudeCode(t, b.front.url, b.key)
	answered(t, "first turn", c.start("hello"), "by account")
	home := firstAccount(b)
	other := b.other(home.Name)
	answered(t, "second turn", c.turn("go on"), byAccount(home))

	home.Queue(upstreamtest.FiveHourSpent(time.Now().Add(3 * time.Hour)))
	third := c.turn("and on")
	answered(t, "third turn, which the account rejects", third, byAccount(other))
	if out := third.all(); strings.Contains(out, "429") || strings.Contains(out, "limit") {
		t.Errorf("third turn: got %q, want nothing of a limit", out)
	}
	b.until(home.Name, "a cooldown", func(s shown) bool { return s.State == "cooldown" })

	// The first account serves again, and the conversation stays all the same: its cache
	// is at the other one now.
	b.run(nil, "account", "clear", home.Name)
	b.until(home.Name, "ready", func(s shown) bool { return s.State == "ready" })
	answered(t, "fourth turn", c.turn("still there?"), byAccount(other))
	answered(t, "fifth turn", c.turn("good"), byAccount(other))

	checkPins(t, b.front, "new", "kept", "moved", "kept", "kept")
	if got := len(home.Requests()); got != 3 {
		t.Errorf("requests to the first account: got %d, want 3, the last of them rejected", got)
	}
	if got := len(other.Requests()); got != 3 {
		t.Errorf("requests to the other account: got %d, want 3", got)
	}
}

func TestClaudeCodeStopsWhenAllIsSpent(t *testing.T) {
	soonest := time.Now().Add(72 * time.Minute).Truncate(time.Second)
	latest := soonest.Add(2 * time.Hour)
	for _, c := range []struct {
		name   string
		resets []time.Time // of the account asked first, and of the one asked next
	}{
		{"the soonest reset is told first", []time.Time{soonest, latest}},
		{"the soonest reset is told last", []time.Time{latest, soonest}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := withAccounts(t)
			b.serve()
			reject := func(r *upstreamtest.Request) upstreamtest.Answer {
				return upstreamtest.FiveHourSpent(c.resets[min(r.Number, 1)])(r)
			}
			b.one.Always(reject)
			b.two.Always(reject)
			agent := newClaudeCode(t, b.front.url, b.key)
			stopped := func(attempt string, got result) {
				t.Helper()
				if got.code == 0 {
					t.Errorf("%s: got exit 0 with %q, want a failure", attempt, got.stdout)
				}
				if want := soonest.UTC().Format(time.RFC3339); !strings.Contains(got.stdout, want) {
					t.Errorf("%s: got %q on the screen, want the reset %s in it", attempt, got.stdout, want)
				}
			}
			stopped("first attempt", agent.start("hello"))
			// One refusal from each account, and one from the program: the client stops at that.
			if n := len(b.up.Requests()); n != 2 {
				t.Errorf("upstream requests: got %d, want 2, one to each account", n)
			}
			if n := len(b.front.exchanges()); n != 1 {
				t.Errorf("requests of the client: got %d, want 1", n)
			}

			// Now that it is known, nobody upstream is asked again.
			stopped("second attempt", agent.start("hello again"))
			if n := len(b.up.Requests()); n != 2 {
				t.Errorf("upstream requests after a second attempt: got %d, want still 2", n)
			}
			if n := len(b.front.exchanges()); n != 2 {
				t.Errorf("requests of the client after a second attempt: got %d, want 2", n)
			}
			for i, e := range b.front.exchanges() {
				if e.status != 429 || e.answered.Get("X-Holdfast-Error") != "exhausted" ||
					e.answered.Get("Anthropic-Ratelimit-Unified-Status") != "rejected" ||
					e.answered.Get("Anthropic-Ratelimit-Unified-Reset") != strconv.FormatInt(soonest.Unix(), 10) {
					t.Errorf("answer %d: got %d %v, want 429 exhausted, unified status rejected and reset %d", i, e.status, e.answered, soonest.Unix())
				}
			}
		})
	}
}
