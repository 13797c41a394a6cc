package e2e_test

import (
	"net/http"
	"testing"

	"holdfast/internal/test/upstreamtest"
)

// opencode with a model of OpenAI's asks Anthropic for its titles: one session, at two
// providers.
func TestOpenCodeAtTwoProviders(t *testing.T) {
	b := withAccounts(t)
	openai := upstreamtest.StartOpenAI(t)
	t.Cleanup(func() { b.checkUpstream(openai) })
	for _, name := range []string{"three", "four"} {
		key := "sk-proj-e2e-account-" + name + "-SECRET"
		b.secrets = append(b.secrets, key)
		b.run([]string{"E2E_ACCOUNT_KEY=" + key}, "account", "add", name, "--provider", "openai", "--key-env", "E2E_ACCOUNT_KEY", "--base-url", openai.URL)
		openai.Account(name, key).Always(upstreamtest.OpenAIGood(upstreamtest.OpenAIKey(480, 29_000)))
	}
	b.serve()
	o := newOpenCode(t, b.front.url, b.key)
	answered(t, "first turn", o.startWith("openai/gpt-5.5", "hello"), "by account")
	answered(t, "second turn", o.turnWith("openai/gpt-5.5", "go on"), "by account")

	requests := turns(openai.Requests())
	if len(requests) != 2 {
		t.Fatalf("requests at OpenAI: got %d, want one for each turn", len(requests))
	}
	session := requests[0].Header.Get("session-id")
	for i, r := range requests {
		if r.Path != "/v1/responses" || r.Account != requests[0].Account {
			t.Errorf("turn %d: got %s at account %s, want /v1/responses at %s", i+1, r.Path, r.Account, requests[0].Account)
		}
		if id := r.Header.Get("session-id"); id == "" || id != session {
			t.Errorf("turn %d: got session %q, want one for all turns, %q", i+1, id, session)
		}
	}
	titles := b.up.Requests()
	if len(titles) == 0 {
		t.Error("requests at Anthropic: got none, want that of the title")
	}
	for _, r := range titles {
		if r.Path != "/v1/messages" || r.Header.Get("x-session-id") != session {
			t.Errorf("request at Anthropic: got %s with session %q, want /v1/messages with %q", r.Path, r.Header.Get("x-session-id"), session)
		}
	}
	for _, e := range b.front.exchanges() {
		if e.status != http.StatusOK {
			t.Errorf("%s %s: got status %d, want 200", e.method, e.path, e.status)
		}
	}
	// A session is a conversation at each provider, with a pin at each.
	pins := map[string]int{}
	for _, e := range b.front.exchanges() {
		pins[e.path+" "+e.pin()]++
	}
	if pins["/v1/responses new"] != 1 || pins["/v1/responses kept"] != 1 || pins["/v1/messages new"] != 1 {
		t.Errorf("X-Holdfast-Pin: got %v, want one new at each provider, and kept from then on", pins)
	}
}
