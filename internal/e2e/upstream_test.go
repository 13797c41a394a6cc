package e2e_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/upstreamtest"
)

// The clients straight at the scripted upstream: what it is worth, and what they send.
// Where one of these fails, the tests with the program between have nothing to say.

func TestClaudeCodeAcceptsTheUpstream(t *testing.T) {
	up := upstreamtest.Start(t)
	one := up.Account("one", "key-one")
	c := newClaudeCode(t, up.URL, "key-one")
	answered(t, "first turn", c.start("hello"), "by account one.")
	answered(t, "second turn", c.turn("and again"), "by account one.")
	got := one.Requests()
	if len(got) != 2 {
		t.Fatalf("requests: got %d, want one for each turn", len(got))
	}
	session := got[0].Header.Get("x-claude-code-session-id")
	if session == "" || got[1].Header.Get("x-claude-code-session-id") != session {
		t.Errorf("session: got %q and then %q, want one", session, got[1].Header.Get("x-claude-code-session-id"))
	}
	if !strings.Contains(string(got[1].Body), "by account one.") {
		t.Error("the second turn does not carry the first answer")
	}
}

func TestClaudeCodeUnderstandsARejection(t *testing.T) {
	up := upstreamtest.Start(t)
	one := up.Account("one", "key-one")
	one.Always(upstreamtest.FiveHourSpent(time.Now().Add(72 * time.Minute)))
	got := newClaudeCode(t, up.URL, "key-one").start("hello")
	if got.code == 0 || !strings.Contains(got.stdout, "429") {
		t.Errorf("got exit %d and %q, want a failure that names 429", got.code, got.stdout)
	}
	if n := len(one.Requests()); n != 1 {
		t.Errorf("requests: got %d, want 1: a spent plan is not tried again", n)
	}
}

func TestOpenCodeAcceptsTheUpstream(t *testing.T) {
	up := upstreamtest.Start(t)
	one := up.Account("one", "key-one")
	answered(t, "first turn", newOpenCode(t, up.URL, "key-one").start("hello"), "by account one.")
	got := one.Requests()
	if len(got) != 2 {
		t.Fatalf("requests: got %d, want its title and its turn", len(got))
	}
	if a, b := got[0].Header.Get("x-session-id"), got[1].Header.Get("x-session-id"); a == "" || a != b {
		t.Errorf("session: got %q and %q, want one", a, b)
	}
}
