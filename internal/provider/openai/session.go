package openai

import (
	"net/http"
	"strings"

	"holdfast/internal/body"
)

// sessionHeaders are the headers in which clients name their session, with the names that
// the source metric shows; the first that is not empty counts. None of them changes within
// a conversation. Codex's thread-id, x-client-request-id and x-codex-window-id are not
// among them: a sub-agent has a thread of its own, and reads and writes what is encrypted
// for the account of its session.
var sessionHeaders = []struct{ header, source string }{
	{"Session-Id", "session-id"},                   // Codex, opencode
	{"Session_id", "session_id"},                   // Codex, older
	{"Conversation_id", "conversation_id"},         // Codex, oldest
	{"X-Session-Id", "x-session-id"},               // opencode
	{"X-Session-Affinity", "x-session-affinity"},   // opencode, pi
	{"X-Opencode-Session", "x-opencode-session"},   // opencode
	{"X-Grok-Session-Id", "x-grok-session-id"},     // Grok CLI
	{"X-Grok-Conv-Id", "x-grok-conv-id"},           // Grok CLI
	{"X-Kilocode-Taskid", "x-kilocode-taskid"},     // Kilo
	{"X-Client-Session-Id", "x-client-session-id"}, // Copilot CLI
	{"X-Mux-Workspace-Id", "x-mux-workspace-id"},   // Mux
	{"X-Coder-Chat-Id", "x-coder-chat-id"},         // Coder
	{"X-Litellm-Session-Id", "x-litellm-session-id"},
}

// longestSession bounds what is taken for a session's id, in bytes.
const longestSession = 256

// session finds the client's own session and where it was found. Both are empty when the
// request names none.
func session(h http.Header, f body.Facts) (id, source string) {
	for _, s := range sessionHeaders {
		for _, value := range h[s.header] {
			if id = sessionID(value); id != "" {
				return id, s.source
			}
		}
	}
	if id = sessionID(f.SessionID); id != "" {
		return id, "client_metadata.session_id"
	}
	if id = sessionID(f.PromptCacheKey); id != "" {
		return id, "prompt_cache_key"
	}
	return "", ""
}

// sessionID trims an id; one too long to be an id is none.
func sessionID(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > longestSession {
		return ""
	}
	return text
}

// isCodex reports whether a request comes from Codex: it says so as originator
// (codex_cli_rs, codex_exec, codex_vscode, codex-tui, Codex Desktop) or in its User-Agent,
// or it has one of the headers that only Codex sends.
func isCodex(h http.Header) bool {
	if hasWord(h.Get("Originator")) || hasWord(h.Get("User-Agent")) {
		return true
	}
	for name, values := range h {
		if len(values) > 0 && strings.TrimSpace(values[0]) != "" && strings.HasPrefix(name, "X-Codex-") {
			return true
		}
	}
	return false
}

// hasWord reports whether a client's name for itself begins with Codex as a word.
func hasWord(name string) bool {
	const word = "codex"
	name = strings.TrimSpace(name)
	if len(name) < len(word) || !strings.EqualFold(name[:len(word)], word) {
		return false
	}
	return len(name) == len(word) || strings.IndexByte("_-/ ", name[len(word)]) >= 0
}
