package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/provider/openai"
	"holdfast/internal/wire/body"
)

const (
	session = "3b1e6c1a-5d0f-4a55-9c0b-0a4f2f7d1c11"
	another = "7c2d9e40-0b1a-4c3d-8e5f-6a7b8c9d0e1f"
)

func TestSession(t *testing.T) {
	for _, c := range []struct {
		name            string
		h               map[string]string
		f               body.Facts
		session, source string
	}{
		{"Codex", map[string]string{"session-id": session, "thread-id": session, "x-client-request-id": session, "x-codex-window-id": session + ":0"},
			body.Facts{SessionID: another, PromptCacheKey: another}, session, "session-id"},
		{"a sub-agent of Codex is of its session", map[string]string{"session-id": session, "thread-id": another, "x-client-request-id": another,
			"x-openai-subagent": "review", "x-codex-parent-thread-id": session}, body.Facts{PromptCacheKey: another}, session, "session-id"},
		{"Codex, older", map[string]string{"session_id": session}, body.Facts{PromptCacheKey: another}, session, "session_id"},
		{"Codex, oldest", map[string]string{"conversation_id": session}, body.Facts{PromptCacheKey: another}, session, "conversation_id"},
		{"new before old", map[string]string{"conversation_id": another, "session_id": another, "session-id": session}, body.Facts{}, session, "session-id"},
		{"old before oldest", map[string]string{"conversation_id": another, "session_id": session}, body.Facts{}, session, "session_id"},
		{"an empty header names no session", map[string]string{"session-id": "", "session_id": " ", "conversation_id": session}, body.Facts{}, session, "conversation_id"},
		{"an endless header names no session", map[string]string{"session-id": strings.Repeat("x", 5000)}, body.Facts{PromptCacheKey: "k"}, "k", "prompt_cache_key"},
		{"client metadata", nil, body.Facts{SessionID: session, PromptCacheKey: another}, session, "client_metadata.session_id"},
		{"cache key", nil, body.Facts{PromptCacheKey: session}, session, "prompt_cache_key"},
		{"opencode", map[string]string{"x-session-id": "ses_7", "x-session-affinity": "ses_7", "session-id": "ses_7"}, body.Facts{}, "ses_7", "session-id"},
		{"opencode, older", map[string]string{"x-session-id": "ses_7", "x-session-affinity": "ses_7"}, body.Facts{PromptCacheKey: "k"}, "ses_7", "x-session-id"},
		{"pi", map[string]string{"x-session-affinity": "p-1"}, body.Facts{}, "p-1", "x-session-affinity"},
		{"LiteLLM", map[string]string{"x-litellm-session-id": "l"}, body.Facts{}, "l", "x-litellm-session-id"},
		{"never a thread, a window, a turn or a request", map[string]string{"thread-id": session, "x-client-request-id": session,
			"x-codex-window-id": session + ":0", "x-codex-turn-state": "t", "x-codex-parent-thread-id": session, "x-request-id": session}, body.Facts{}, "", ""},
		{"never a user", nil, body.Facts{UserID: "owner"}, "", ""},
		{"nothing", nil, body.Facts{}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range c.h {
				h.Set(k, v)
			}
			r := openai.Provider{}.Inspect("POST", "/v1/responses", h, c.f)
			if r.Session != c.session || r.Source != c.source || r.Agent != "" {
				t.Errorf("got %q of agent %q from %q, want %q from %q", r.Session, r.Agent, r.Source, c.session, c.source)
			}
		})
	}
}
