package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/test/upstreamtest"
)

// tooLargePage is how an edge refuses a body that is more than it takes.
func tooLargePage() upstreamtest.Script {
	return upstreamtest.Raw(http.StatusRequestEntityTooLarge, http.Header{"Content-Type": {"text/html; charset=UTF-8"}},
		[]byte("<html><head><title>413 Request Entity Too Large</title></head></html>"))
}

// TestClaudeCodeStopsAtAPage is field case a-refusal-that-is-a-web-page: Claude Code does not
// send a body again that the edge does not take.
func TestClaudeCodeStopsAtAPage(t *testing.T) {
	b := withAccounts(t)
	b.serve()
	b.one.Always(tooLargePage())
	b.two.Always(tooLargePage())
	got := newClaudeCode(t, b.front.url, b.key).start("hello")
	if got.code == 0 {
		t.Errorf("got exit 0 with %q, want a failure", got.stdout)
	}
	if n := len(b.up.Requests()); n != 1 {
		t.Errorf("got %d requests upstream, want 1; it says %q", n, got.all())
	}
}

// TestCodexStopsAtAPage is the same with Codex, which tries a few times of its own accord, as
// it does without a gateway.
func TestCodexStopsAtAPage(t *testing.T) {
	b, _ := codexPlans(t)
	b.serve()
	b.one.Always(tooLargePage())
	b.two.Always(tooLargePage())
	got := newCodex(t, b.front.url, b.key).start("hello")
	if got.code == 0 || !strings.Contains(got.all(), "413") {
		t.Errorf("got exit %d with %q, want a failure that tells the status", got.code, got.all())
	}
	const own = 6 // one, and five more
	if n := len(turns(b.up.Requests())); n == 0 || n > own {
		t.Errorf("got %d requests upstream, want at most the client's own %d", n, own)
	}
}
