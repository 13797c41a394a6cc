package xai_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/provider/xai"
	"holdfast/internal/wire/body"
)

const session = "00000000-0000-4000-8000-00000000000a"

func TestSession(t *testing.T) {
	long := strings.Repeat("x", 257)
	for _, c := range []struct {
		name                   string
		h                      http.Header
		f                      body.Facts
		session, agent, source string
	}{
		{name: "a turn", h: grokCLI, f: body.Facts{PromptCacheKey: session}, session: session, source: "x-grok-session-id"},
		{name: "the first title, both empty", h: http.Header{"X-Grok-Session-Id": {""}, "X-Grok-Conv-Id": {" "}}},
		{name: "an empty session beside a conversation", h: http.Header{"X-Grok-Session-Id": {""}, "X-Grok-Conv-Id": {"c1"}}, session: "c1", source: "x-grok-conv-id"},
		{name: "a summary goes with its session", h: http.Header{"X-Grok-Session-Id": {session}, "X-Grok-Conv-Id": {"turn-summary-0001"}},
			f: body.Facts{PromptCacheKey: "turn-summary-0001"}, session: session, source: "x-grok-session-id"},
		{name: "a title refresh goes with its session", h: http.Header{"X-Grok-Session-Id": {session}, "X-Grok-Conv-Id": {"title-refresh-0001"}}, session: session, source: "x-grok-session-id"},
		{name: "a permission check goes with its session", h: http.Header{"X-Grok-Session-Id": {session}, "X-Grok-Conv-Id": {"perm-classifier-0001"}}, session: session, source: "x-grok-session-id"},
		{name: "a conversation id alone is a name", h: http.Header{"X-Grok-Conv-Id": {"dream-journal"}}, session: "dream-journal", source: "x-grok-conv-id"},
		{name: "upper case", h: http.Header{"X-Grok-Session-Id": {strings.ToUpper(session)}}, session: session, source: "x-grok-session-id"},
		{name: "never these", h: http.Header{
			"X-Grok-Conv-Group-Id": {"g"}, "X-Grok-Req-Id": {"r"}, "X-Grok-Turn-Idx": {"3"}, "X-Grok-Agent-Id": {"a"}, "X-Grok-User-Id": {"u"}, "X-Request-Id": {"q"}, "X-Userid": {"u"},
		}},
		{name: "the agent is of no session", h: http.Header{"X-Grok-Session-Id": {session}, "X-Grok-Agent-Id": {"a"}, "X-Claude-Code-Agent-Id": {"b"}}, session: session, source: "x-grok-session-id"},
		{name: "opencode", h: http.Header{"X-Session-Id": {"ses_1"}, "X-Session-Affinity": {"ses_1"}, "Session-Id": {"ses_1"}}, session: "ses_1", source: "x-session-id"},
		{name: "Codex", h: http.Header{"Session-Id": {session}, "X-Client-Request-Id": {session}}, session: session, source: "session-id"},
		{name: "Codex, in the body", f: body.Facts{SessionID: "s", PromptCacheKey: "p"}, session: "s", source: "client_metadata.session_id"},
		{name: "a session header before the cache key", h: http.Header{"X-Session-Id": {"ses_1"}}, f: body.Facts{PromptCacheKey: "p"}, session: "ses_1", source: "x-session-id"},
		{name: "cache key", f: body.Facts{PromptCacheKey: "p", UserID: "user_x_session_" + session}, session: "p", source: "prompt_cache_key"},
		{name: "Claude Code", h: http.Header{"X-Claude-Code-Session-Id": {session}, "X-Claude-Code-Agent-Id": {"a1"}}, session: session, agent: "a1", source: "x-claude-code-session-id"},
		{name: "Claude Code, older", f: body.Facts{UserID: "user_x_account__session_" + session}, session: session, source: "metadata.user_id"},
		{name: "Claude Code, as JSON", f: body.Facts{UserID: `{"device_id":"d","session_id":"` + session + `"}`}, session: session, source: "metadata.user_id"},
		{name: "a user is no session", f: body.Facts{UserID: "user-7"}},
		{name: "a user in JSON is no session", f: body.Facts{UserID: `{"session_id":7}`}},
		{name: "too long", h: http.Header{"X-Grok-Session-Id": {long}}},
		{name: "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := xai.Provider{}.Inspect("POST", "/v1/responses", c.h, c.f)
			if r.Session != c.session || r.Agent != c.agent || r.Source != c.source {
				t.Errorf("got session %q, agent %q, source %q; want %q, %q, %q", r.Session, r.Agent, r.Source, c.session, c.agent, c.source)
			}
		})
	}
}

func TestKnownBackground(t *testing.T) {
	for _, c := range []struct {
		session, conversation string
		want                  bool
	}{
		{session, "turn-summary-0001", true},
		{session, "title-refresh-0001", true},
		{session, "promptsuggest-0001", true},
		{session, session, false},
		{session, "perm-classifier-0001", false}, // somebody waits for it
		{session, "btw-0001", false},
		{session, "", false},
		{"", "turn-summary-0001", false}, // not the Grok CLI's
		{"", "", false},
	} {
		h := http.Header{"X-Grok-Session-Id": {c.session}, "X-Grok-Conv-Id": {c.conversation}}
		if got := (xai.Provider{}).Inspect("POST", "/v1/responses", h, body.Facts{}).KnownBackground; got != c.want {
			t.Errorf("session %q, conversation %q: got %v, want %v", c.session, c.conversation, got, c.want)
		}
		beside := c.session != "" && c.conversation != "" && c.conversation != c.session
		if got := (xai.Provider{}).Inspect("POST", "/v1/responses", h, body.Facts{}).SideCall; got != beside {
			t.Errorf("session %q, conversation %q: got a side call %v, want %v", c.session, c.conversation, got, beside)
		}
	}
}
