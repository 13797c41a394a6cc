package e2e_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/upstreamtest"
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
	b := withAccounts(t)
	b.serve()
	c := newClaudeCode(t, b.front.url, b.key)
	soonest := time.Now().Add(72 * time.Minute).Truncate(time.Second)
	b.one.Always(upstreamtest.FiveHourSpent(soonest))
	b.two.Always(upstreamtest.FiveHourSpent(soonest.Add(2 * time.Hour)))

	got := c.start("hello")
	if got.code == 0 {
		t.Errorf("exit: got 0 with %q, want a failure", got.stdout)
	}
	for _, want := range []string{"spent", soonest.UTC().Format(time.RFC3339)} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("on the screen: got %q, want %q in it", got.stdout, want)
		}
	}
	// One refusal from each account, and one from the program: the client doesn't hammer.
	if n := len(b.up.Requests()); n != 2 {
		t.Errorf("upstream requests: got %d, want 2, one to each account", n)
	}
	if n := len(b.front.exchanges()); n != 1 {
		t.Errorf("requests of the client: got %d, want 1", n)
	}

	// Now that it is known, nobody upstream is asked again.
	if again := c.start("hello again"); again.code == 0 || !strings.Contains(again.stdout, soonest.UTC().Format(time.RFC3339)) {
		t.Errorf("second attempt: got exit %d and %q, want a failure that names the reset", again.code, again.stdout)
	}
	if n := len(b.up.Requests()); n != 2 {
		t.Errorf("upstream requests after a second attempt: got %d, want still 2", n)
	}
	for _, e := range b.front.exchanges() {
		if e.status != 429 || e.answered.Get("X-Holdfast-Error") != "exhausted" ||
			e.answered.Get("Anthropic-Ratelimit-Unified-Status") != "rejected" {
			t.Errorf("answer: got %d %v, want 429 exhausted with unified status rejected", e.status, e.answered)
		}
	}
}
