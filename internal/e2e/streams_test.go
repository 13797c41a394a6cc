package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/internal/test/upstreamtest"
)

// TestClaudeCodeShowsAWrongKey is field case should-retry with the real client: it asks once
// and shows what we say. Of a 401 that names the header of its keys it would show words of
// its own, that it is not logged in.
func TestClaudeCodeShowsAWrongKey(t *testing.T) {
	b := withAccounts(t)
	b.serve()
	wrong := strings.Replace(b.key, b.key[len(b.key)-1:], "", 1)
	r := newClaudeCode(t, b.front.url, wrong).start("hello")
	if r.code == 0 || !strings.Contains(r.all(), "no valid client key") || !strings.Contains(r.all(), "holdfast key create") {
		t.Errorf("got exit %d and %q, want our sentence", r.code, r.all())
	}
	if n := len(b.front.exchanges()); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestClaudeCodeEndsWithTheStream is field case a-stream-that-is-over with the real client.
func TestClaudeCodeEndsWithTheStream(t *testing.T) {
	b := withAccounts(t)
	const all = 1000 // more than there are events
	for _, name := range []string{"one", "two"} {
		b.account(name).Always(upstreamtest.Good(nil).With(upstreamtest.HeldAfter(all, upstreamtest.NewGate()))) // never opened
	}
	b.serve()
	c := newClaudeCode(t, b.front.url, b.key)
	answered(t, "first turn", c.start("hello"), "by account")
	answered(t, "second turn", c.turn("go on"), byAccount(firstAccount(b)))
	checkPins(t, b.front, "new", "kept")
}

// TestCodexWithALargeOpening is field case the-opening-is-large with the real client: its
// session goes to the plan that serves, and stays there.
func TestCodexWithALargeOpening(t *testing.T) {
	b, _ := codexPlans(t)
	b.serve()
	opening := fmt.Sprintf(`{"type":"response.created","response":{"id":"resp_1","instructions":%q}}`, strings.Repeat("Prefer small steps. ", 15_000))
	spent := "event: response.created\ndata: " + opening + "\n\nevent: response.in_progress\ndata: " + strings.Replace(opening, "created", "in_progress", 1) +
		"\n\nevent: response.failed\ndata: " + `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":40000}}}` + "\n\n"
	var asked atomic.Int64 // whichever account is asked first is spent
	for _, a := range []*upstreamtest.Account{b.one, b.two} {
		a.Always(func(r *upstreamtest.Request) upstreamtest.Answer {
			if asked.Add(1) == 1 {
				return upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"text/event-stream"}}, []byte(spent))(r)
			}
			return upstreamtest.OpenAIGood(codexRoom())(r)
		})
	}
	c := newCodex(t, b.front.url, b.key)
	first := c.start("hello")
	other := b.other(turns(b.up.Requests())[0].Account)
	answered(t, "first turn", first, byAccount(other))
	answered(t, "second turn", c.turn("go on"), byAccount(other))
	checkPins(t, b.front, "new", "kept")
	if n := len(turns(b.up.Requests())); n != 3 {
		t.Errorf("got %d requests upstream, want 3", n)
	}
}
