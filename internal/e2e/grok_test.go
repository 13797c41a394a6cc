package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/upstreamtest"
)

// grokPlans makes a bench with two Grok subscriptions, in their order.
func grokPlans(t *testing.T) *bench {
	t.Helper()
	b, _, _ := withLogins(t, "xai", upstreamtest.StartXAI(t))
	return b
}

// The Grok CLI asks for more than its turn: a title before it has named its session, a
// summary and a new title under the session's id, and its base's host for a sign of life.
func TestGrokKeepsItsAccount(t *testing.T) {
	b := grokPlans(t)
	p := b.serve()
	g := newGrok(t, b.front.url, b.key)
	answered(t, "first turn", g.start("hello"), byAccount(b.one))

	kinds := map[string]int{}
	session := ""
	// learn checks whose the requests so far were, and forgets them.
	learn := func(turn string) {
		t.Helper()
		for _, r := range turns(b.up.Requests()) {
			kind := grokKind(r)
			kinds[kind]++
			if id := r.Header.Get("x-grok-session-id"); kind == "title" {
				continue // it has no session, and is served all the same
			} else if session == "" {
				session = id
			} else if id != session {
				t.Errorf("%s: %s: got session %q, want %q", turn, kind, id, session)
			}
			if r.Account != "one" {
				t.Errorf("%s: %s: got account %s, want one", turn, kind, r.Account)
			}
		}
		b.up.Forget()
	}
	learn("first turn")

	// New conversations go to the other account from now on; this one does not.
	b.run(nil, "account", "order", "xai", "two", "one")
	b.settled(newGrok(t, b.front.url, b.key), byAccount(b.two))
	for _, r := range turns(b.up.Requests()) {
		if grokKind(r) == "title" {
			kinds["title"]++
		}
	}
	b.up.Forget()
	answered(t, "second turn", g.turn("go on"), byAccount(b.one))
	answered(t, "third turn", g.turn("and on"), byAccount(b.one))
	learn("second and third turn")
	// What it asks for beside its turns it may give up when it ends.
	for range 5 {
		if kinds["summary"] > 0 && kinds["title-refresh"] > 0 {
			break
		}
		answered(t, "a further turn", g.turn("and on"), byAccount(b.one))
		learn("a further turn")
	}
	if kinds["turn"] < 3 || kinds["title"] == 0 || kinds["summary"] == 0 || kinds["title-refresh"] == 0 {
		t.Errorf("got requests %v, want turns, titles without session, summaries and a title refresh", kinds)
	}
	for _, e := range b.front.exchanges() {
		if e.status != http.StatusOK {
			t.Errorf("%s %s: got status %d, want 200", e.method, e.path, e.status)
		}
		if e.method == http.MethodGet && e.path == "/" && e.account() != "" {
			t.Error("GET /: was answered by an account")
		}
	}
	if strings.Contains(p.output(), session) {
		t.Error("the log holds the conversation's own id")
	}
}

// grokKind is what a request of the Grok CLI is for.
func grokKind(r *upstreamtest.Request) string {
	conversation := r.Header.Get("x-grok-conv-id")
	switch {
	case r.Header.Get("x-grok-session-id") == "":
		return "title"
	case strings.HasPrefix(conversation, "turn-summary-"):
		return "summary"
	case strings.HasPrefix(conversation, "title-refresh-"):
		return "title-refresh"
	}
	return "turn"
}

// settled runs new sessions until one is answered as wanted: a program that is running
// sees a command's change within two seconds.
func (b *bench) settled(g grok, want string) {
	b.t.Helper()
	for range 20 {
		if strings.Contains(g.start("hello").stdout, want) {
			return
		}
	}
	b.t.Fatalf("no new session was answered %q", want)
}

// The refusals in which xAI tells that an allowance is spent. With each the client stops and
// says why, and the conversation stays where its reasoning can be read.
func TestGrokStopsWhenItsPlanIsSpent(t *testing.T) {
	for _, c := range []struct {
		name, refusal string
		// unknown: nothing was ever learnt of the account's allowance, so neither is when it
		// returns, nor whether the subscription is still there.
		unknown bool
		says    string
		state   string
		// requests is how often the client asks in a turn: after a 429 once more, by itself.
		requests int
	}{
		{"402", "balance-exhausted", false, "usage balance exhausted", "cooldown", 1},
		{"403", "spending-limit", false, "run out of credits", "cooldown", 1},
		{"429", "out-of-credits", false, "ran out of credits", "cooldown", 2},
		{"402 of unknown allowance", "balance-exhausted", true, "only one account can continue this conversation, and it needs its owner", "parked", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBenchOn(t, upstreamtest.StartXAI(t))
			add := func(name string, n int) *upstreamtest.Account {
				l := newLogin("xai", name, n, time.Now().Add(6*time.Hour).Truncate(time.Second))
				if !c.unknown {
					return b.addLogin("xai", l)
				}
				b.secrets = append(b.secrets, l.access, l.refresh)
				b.imported("xai", l, "--no-check")
				return b.up.Account(l.name, l.access)
			}
			b.one, b.two = add("one", 1), add("two", 2)
			b.serve()
			g := newGrok(t, b.front.url, b.key)
			answered(t, "first turn", g.start("hello"), byAccount(b.one))
			b.one.Always(upstreamtest.XAIRefusal(c.refusal))
			if !c.unknown {
				b.full(b.one)
			}
			b.up.Forget()
			before := len(b.front.exchanges())
			got := g.turn("go on")
			if got.code == 0 || !strings.Contains(got.all(), c.says) {
				t.Errorf("second turn: got exit %d and %q, want a failure that says %q", got.code, got.all(), c.says)
			}
			b.until("one", c.state, func(s shown) bool { return s.State == c.state })
			posts := 0
			for _, e := range b.front.exchanges()[before:] {
				if e.method == http.MethodPost {
					posts++
				}
			}
			if posts != c.requests {
				t.Errorf("second turn: got %d requests of the client, want %d", posts, c.requests)
			}
			if n := len(turns(b.two.Requests())); n != 0 {
				t.Errorf("requests to the other account: got %d, want none: what the conversation remembers is encrypted for the first", n)
			}
			answered(t, "another session", newGrok(t, b.front.url, b.key).start("hello, you"), byAccount(b.two))
		})
	}
}
