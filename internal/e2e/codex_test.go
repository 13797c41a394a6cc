package e2e_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/upstreamtest"
)

// codexPlans makes a bench with two Codex subscriptions that look the same.
func codexPlans(t *testing.T) (b *bench, workspaces map[string]string) {
	t.Helper()
	b, one, two := withLogins(t, "openai", upstreamtest.StartOpenAI(t))
	for _, a := range []*upstreamtest.Account{b.one, b.two} {
		a.Always(upstreamtest.OpenAIGood(codexRoom()))
	}
	return b, map[string]string{one.name: one.workspace, two.name: two.workspace}
}

func codexRoom() http.Header {
	return upstreamtest.CodexPlan(20, time.Now().Add(3*time.Hour), 30, time.Now().Add(80*time.Hour))
}

func TestCodexKeepsItsAccount(t *testing.T) {
	b, workspaces := codexPlans(t)
	p := b.serve()
	c := newCodex(t, b.front.url, b.key)
	answered(t, "first turn", c.start("hello"), "by account")
	home := firstAccount(b)
	// From here on the account looks much fuller than the other, and its week ends later.
	home.Always(upstreamtest.OpenAIGood(upstreamtest.CodexPlan(88, time.Now().Add(3*time.Hour), 92, time.Now().Add(90*time.Hour))))
	answered(t, "second turn", c.turn("go on"), byAccount(home))
	answered(t, "third turn", c.turn("and on"), byAccount(home))

	checkPins(t, b.front, "new", "kept", "kept")
	requests := turns(b.up.Requests())
	if len(requests) != 3 {
		t.Fatalf("upstream requests: got %d, want one for each turn", len(requests))
	}
	session := requests[0].Header.Get("session-id")
	for i, r := range requests {
		e := b.front.exchanges()[i]
		if r.Account != home.Name || e.account() != home.Name {
			t.Errorf("turn %d: got account %s, and %s told, want %s", i+1, r.Account, e.account(), home.Name)
		}
		if r.Path != upstreamtest.CodexResponses {
			t.Errorf("turn %d: got path %s, want that of the plans' backend", i+1, r.Path)
		}
		if got := r.Header.Get("Chatgpt-Account-Id"); got != workspaces[home.Name] {
			t.Errorf("turn %d: got workspace %q, want the account's own, %q", i+1, got, workspaces[home.Name])
		}
		// What the client sent goes on as it came: its body, and the headers that are its own.
		if !bytes.Equal(r.Body, e.sent.Bytes()) || r.Header.Get("Content-Encoding") != e.asked.Get("Content-Encoding") {
			t.Errorf("turn %d: got a body of %d bytes, want the client's own %d", i+1, len(r.Body), e.sent.Len())
		}
		for name, values := range e.asked {
			if strings.HasPrefix(name, "X-Codex-") || name == "Session-Id" || name == "Thread-Id" || name == "Originator" || name == "User-Agent" {
				if got := r.Header.Get(name); got != values[0] || got == "" {
					t.Errorf("turn %d: %s: got %q, want the client's own %q", i+1, name, got, values[0])
				}
			}
		}
		if id := r.Header.Get("session-id"); id == "" || id != session {
			t.Errorf("turn %d: got session %q, want one for all turns, %q", i+1, id, session)
		}
		if !strings.Contains(p.output(), session) {
			continue
		}
		t.Errorf("turn %d: the log holds the conversation's own id", i+1)
	}
	if !strings.Contains(string(requests[2].Body), upstreamtest.Text(requests[1])) {
		t.Error("the third turn does not carry the second answer")
	}
	// The limits are those of the account that serves.
	for i, want := range []string{"20", "88", "88"} {
		if got := b.front.exchanges()[i].answered.Get("X-Codex-Primary-Used-Percent"); got != want {
			t.Errorf("turn %d: X-Codex-Primary-Used-Percent: got %q, want %q", i+1, got, want)
		}
	}
	// Who is new goes where the week ends sooner.
	answered(t, "another session", newCodex(t, b.front.url, b.key).start("hello"), byAccount(b.other(home.Name)))
}

func TestCodexStopsWhenItsPlanIsSpent(t *testing.T) {
	b, _ := codexPlans(t)
	b.serve()
	c := newCodex(t, b.front.url, b.key)
	answered(t, "first turn", c.start("hello"), "by account")
	home := firstAccount(b)
	other := b.other(home.Name)
	answered(t, "second turn", c.turn("go on"), byAccount(home))

	home.Always(upstreamtest.UsageLimitReached(time.Now().Add(3 * time.Hour)))
	b.full(home)
	stopped := func(turn string, got result) {
		t.Helper()
		if got.code == 0 || !strings.Contains(got.all(), "usage limit") {
			t.Errorf("%s: got exit %d and %q, want a failure that names the usage limit", turn, got.code, got.all())
		}
	}
	before := len(b.front.exchanges())
	stopped("third turn, which the plan rejects", c.turn("and on"))
	if n := len(b.front.exchanges()) - before; n != 1 {
		t.Errorf("third turn: got %d requests of the client, want 1: nothing is tried again", n)
	}
	b.until(home.Name, "a cooldown", func(s shown) bool { return s.State == "cooldown" })
	stopped("fourth turn", c.turn("and now?"))
	if n := len(turns(home.Requests())); n != 3 {
		t.Errorf("requests to the account: got %d, want 3: once it is known to be spent, it is not asked again", n)
	}

	// Its reasoning can be read by its account alone: the conversation waits for that one.
	if n := len(turns(other.Requests())); n != 0 {
		t.Errorf("requests to the other account: got %d, want none: a conversation of Codex does not move", n)
	}
	for i, e := range b.front.exchanges()[before:] {
		if e.status != http.StatusTooManyRequests || e.pin() != "kept" && e.answered.Get("X-Holdfast-Error") == "" {
			t.Errorf("answer %d after the plan is spent: got %d %v, want 429", i, e.status, e.answered)
		}
	}

	answered(t, "another session", newCodex(t, b.front.url, b.key).start("hello"), byAccount(other))

	// The week goes on: once the account serves again, so does the conversation.
	home.Always(upstreamtest.OpenAIGood(codexRoom()))
	b.run(nil, "account", "clear", home.Name)
	b.until(home.Name, "ready", func(s shown) bool { return s.State == "ready" })
	answered(t, "fifth turn", c.turn("there you are"), byAccount(home))
}

// Codex that is told to use WebSockets asks for one, is refused with 426, and goes on over
// HTTP at once.
func TestCodexDoesWithoutWebSocket(t *testing.T) {
	b, _ := codexPlans(t)
	b.serve()
	c := newCodex(t, b.front.url, b.key, "supports_websockets = true")
	answered(t, "first turn", c.start("hello"), "by account")
	seen := b.front.exchanges()
	var upgrades, posts int
	for _, e := range seen {
		switch {
		case e.method == http.MethodGet && e.path == "/v1/responses":
			upgrades++
			if e.status != http.StatusUpgradeRequired {
				t.Errorf("upgrade: got status %d, want 426", e.status)
			}
		case e.method == http.MethodPost:
			posts++
		}
	}
	if upgrades != 1 || posts != 1 {
		t.Errorf("got %d upgrades and %d requests, want one of each", upgrades, posts)
	}
	if n := len(turns(b.up.Requests())); n != 1 {
		t.Errorf("upstream requests: got %d, want 1: no upgrade goes on", n)
	}
}
