package anthropic_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/provider/anthropic"
	"holdfast/internal/wire/body"
)

const (
	session = "3b1e6c1a-5d0f-4a55-9c0b-0a4f2f7d1c11"
	another = "7c2d9e40-0b1a-4c3d-8e5f-6a7b8c9d0e1f"
)

func deviceHash() string { return strings.Repeat("9f2c", 16) }

// Cases of session-id-format-change: every usable form gives the same session.
func TestUserID(t *testing.T) {
	for _, c := range []struct{ name, userID, want string }{
		{"underscores, no account", "user_" + deviceHash() + "_account__session_" + session, session},
		{"underscores, account", "user_" + deviceHash() + "_account_" + another + "_session_" + session, session},
		{"underscores, upper case", "user_" + deviceHash() + "_account__session_" + strings.ToUpper(session), session},
		{"object", `{"device_id":"d-7","account_uuid":"","session_id":"` + session + `"}`, session},
		{"object, other order", `{"session_id":"` + session + `","account_uuid":"` + another + `","device_id":"d-7"}`, session},
		{"object, more keys", `{"zeta":{"session_id":"x"},"device_id":"d-7","n":[1],"session_id":"` + session + `","parent_session_id":"` + another + `"}`, session},
		{"object, upper case", `{"session_id":"` + strings.ToUpper(session) + `"}`, session},
		{"object, spaces", "  { \"session_id\" : \"" + session + "\" }\n", session},
		{"object, a key that only looks alike", `{"Session_ID":"` + session + `"}`, ""},
		{"object, parent only", `{"parent_session_id":"` + session + `"}`, ""},
		{"object, empty", `{"device_id":"d-7","account_uuid":"","session_id":""}`, ""},
		{"object, number", `{"session_id":5}`, ""},
		{"object, null", `{"session_id":null}`, ""},
		{"object, placeholder", `{"session_id":"undefined"}`, ""},
		{"object, cut", `{"device_id":"d-7","session_id":"` + session, ""},
		{"object, something behind", `{"session_id":"` + session + `"}x`, ""},
		{"list", `["` + session + `"]`, ""},
		{"underscores, cut", "user_" + deviceHash() + "_account__session_" + session[:20], ""},
		{"underscores, something behind", "user_" + deviceHash() + "_account__session_" + session + "_x", ""},
		{"underscores, no session", "user_" + deviceHash() + "_account_" + another, ""},
		{"bare uuid", session, ""},
		{"bare word", "marlow", ""},
		{"empty", "", ""},
		{"5 kB word", strings.Repeat("x", 5000), ""},
		{"5 kB object", `{"pad":"` + strings.Repeat("x", 5000) + `","session_id":"` + session + `"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := anthropic.Provider{}.Inspect("POST", "/v1/messages", http.Header{}, body.Facts{UserID: c.userID})
			wantSource := ""
			if c.want != "" {
				wantSource = "metadata.user_id"
			}
			if r.Session != c.want || r.Source != wantSource || r.Agent != "" {
				t.Errorf("got %q from %q, want %q from %q", r.Session, r.Source, c.want, wantSource)
			}
		})
	}
}

func TestSession(t *testing.T) {
	userID := "user_" + deviceHash() + "_account__session_" + session
	for _, c := range []struct {
		name                   string
		h                      map[string]string
		f                      body.Facts
		session, agent, source string
	}{
		{"Claude Code", map[string]string{"x-claude-code-session-id": session}, body.Facts{UserID: userID},
			session, "", "x-claude-code-session-id"},
		{"Claude Code, upper case", map[string]string{"x-claude-code-session-id": strings.ToUpper(session)}, body.Facts{},
			session, "", "x-claude-code-session-id"},
		{"sub-agent", map[string]string{"x-claude-code-session-id": session, "x-claude-code-agent-id": "a1"}, body.Facts{},
			session, "a1", "x-claude-code-session-id"},
		{"nested sub-agent", map[string]string{"x-claude-code-session-id": session, "x-claude-code-agent-id": "a2", "x-claude-code-parent-agent-id": "a1"}, body.Facts{},
			session, "a2", "x-claude-code-session-id"},
		{"sub-agent without the session header", map[string]string{"x-claude-code-agent-id": "a1"}, body.Facts{UserID: userID},
			session, "a1", "metadata.user_id"},
		{"sub-agent of nobody", map[string]string{"x-claude-code-agent-id": "a1"}, body.Facts{},
			"", "", ""},
		{"empty header", map[string]string{"x-claude-code-session-id": ""}, body.Facts{UserID: userID},
			session, "", "metadata.user_id"},
		{"blank header", map[string]string{"x-claude-code-session-id": "  "}, body.Facts{},
			"", "", ""},
		{"endless header", map[string]string{"x-claude-code-session-id": strings.Repeat("x", 5000)}, body.Facts{UserID: userID},
			session, "", "metadata.user_id"},
		{"opencode", map[string]string{"x-session-id": "ses_7", "x-session-affinity": "ses_7"}, body.Facts{},
			"ses_7", "", "x-session-id"},
		{"opencode beside a stray agent", map[string]string{"x-session-id": "ses_7", "x-claude-code-agent-id": "a1"}, body.Facts{},
			"ses_7", "", "x-session-id"},
		{"pi", map[string]string{"x-session-affinity": "p-1"}, body.Facts{}, "p-1", "", "x-session-affinity"},
		{"Codex-style", map[string]string{"session_id": session}, body.Facts{}, session, "", "session_id"},
		{"Codex-style, newer", map[string]string{"session-id": session}, body.Facts{}, session, "", "session-id"},
		{"Grok, session empty", map[string]string{"x-grok-session-id": "", "x-grok-conv-id": "g-1"}, body.Facts{}, "g-1", "", "x-grok-conv-id"},
		{"Grok's folder", map[string]string{"x-grok-conv-group-id": "g-9"}, body.Facts{}, "", "", ""},
		{"Kilo", map[string]string{"x-kilocode-taskid": "k"}, body.Facts{}, "k", "", "x-kilocode-taskid"},
		{"Copilot CLI", map[string]string{"x-client-session-id": "c", "x-interaction-id": "turn-1"}, body.Facts{}, "c", "", "x-client-session-id"},
		{"VS Code's turn", map[string]string{"x-interaction-id": "turn-1"}, body.Facts{}, "", "", ""},
		{"Mux", map[string]string{"x-mux-workspace-id": "m"}, body.Facts{}, "m", "", "x-mux-workspace-id"},
		{"Coder", map[string]string{"x-coder-chat-id": "c"}, body.Facts{}, "c", "", "x-coder-chat-id"},
		{"LiteLLM", map[string]string{"x-litellm-session-id": "l"}, body.Facts{}, "l", "", "x-litellm-session-id"},
		{"per-request ids", map[string]string{"x-client-request-id": session, "x-request-id": session, "request-id": session}, body.Facts{},
			"", "", ""},
		{"client metadata", nil, body.Facts{SessionID: strings.ToUpper(session), PromptCacheKey: "k", UserID: userID},
			session, "", "client_metadata.session_id"},
		{"cache key before the user's id", nil, body.Facts{PromptCacheKey: "k", UserID: userID},
			"k", "", "prompt_cache_key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range c.h {
				h.Set(k, v)
			}
			r := anthropic.Provider{}.Inspect("POST", "/v1/messages", h, c.f)
			if r.Session != c.session || r.Agent != c.agent || r.Source != c.source {
				t.Errorf("got %q %q from %q, want %q %q from %q", r.Session, r.Agent, r.Source, c.session, c.agent, c.source)
			}
		})
	}
}

func FuzzUserID(f *testing.F) {
	f.Add("user_" + deviceHash() + "_account__session_" + session)
	f.Add(`{"device_id":"d-7","account_uuid":"","session_id":"` + session + `"}`)
	f.Add(`{"session_id":5}`)
	f.Add("marlow")
	f.Fuzz(func(t *testing.T, userID string) {
		r := anthropic.Provider{}.Inspect("POST", "/v1/messages", http.Header{}, body.Facts{UserID: userID})
		if (r.Session == "") != (r.Source == "") {
			t.Fatalf("%q: got session %q from %q", userID, r.Session, r.Source)
		}
		if r.Session == "" {
			return
		}
		// What is found is a UUID, is in the text, and gives the same in every form.
		if len(r.Session) != 36 || r.Session != strings.ToLower(r.Session) {
			t.Fatalf("%q: got %q, want a lower-case UUID", userID, r.Session)
		}
		for _, again := range []string{"user__account__session_" + r.Session, `{"session_id":"` + r.Session + `"}`} {
			if got := (anthropic.Provider{}).Inspect("POST", "/v1/messages", http.Header{}, body.Facts{UserID: again}).Session; got != r.Session {
				t.Errorf("%q: got %q, want %q", again, got, r.Session)
			}
		}
	})
}
