package xai

import (
	"encoding/json"
	"net/http"
	"strings"

	"holdfast/internal/body"
)

const (
	sessionHeader    = "X-Grok-Session-Id"
	convHeader       = "X-Grok-Conv-Id"
	claudeCodeHeader = "X-Claude-Code-Session-Id"
)

// sessionHeaders are the headers in which clients name their session, with the names
// that the source metric shows; the first that is not empty counts. The Grok CLI sends
// them empty with the first title of a session, and an empty one names nothing.
//
// The requests beside a session (titles, summaries, permission checks) have conversation
// ids of their own, new each time, under the session's id: they go with the session. A
// conversation id that comes alone is a name like any other; xAI's own documentation asks
// every client for one. x-grok-conv-group-id is the same for all sessions of a folder,
// and x-grok-req-id, x-grok-turn-idx and x-grok-agent-id are of one request, turn or
// installation: none of them names a conversation.
var sessionHeaders = []struct{ header, source string }{
	{sessionHeader, "x-grok-session-id"},
	{convHeader, "x-grok-conv-id"},
	{claudeCodeHeader, "x-claude-code-session-id"},
	{"X-Session-Id", "x-session-id"},               // opencode
	{"X-Session-Affinity", "x-session-affinity"},   // opencode, pi
	{"X-Opencode-Session", "x-opencode-session"},   // opencode
	{"Session-Id", "session-id"},                   // Codex and its kin, opencode
	{"Session_id", "session_id"},                   // the same, older
	{"Conversation_id", "conversation_id"},         // the same, older
	{"X-Kilocode-Taskid", "x-kilocode-taskid"},     // Kilo
	{"X-Client-Session-Id", "x-client-session-id"}, // Copilot CLI
	{"X-Mux-Workspace-Id", "x-mux-workspace-id"},   // Mux
	{"X-Coder-Chat-Id", "x-coder-chat-id"},         // Coder
	{"X-Litellm-Session-Id", "x-litellm-session-id"},
}

const (
	// longestSession bounds what is taken for an id, in bytes.
	longestSession = 256
	// longestUserID bounds a metadata.user_id worth looking into, in bytes; Claude Code's
	// are below 300.
	longestUserID = 2048
)

// session finds the client's own session, its sub-agent, and where the session was
// found. All are empty when the request names none.
func session(h http.Header, f body.Facts) (id, agent, source string) {
	for _, s := range sessionHeaders {
		if id = sessionID(h.Get(s.header)); id == "" {
			continue
		}
		if s.header == claudeCodeHeader {
			agent = sessionID(h.Get("X-Claude-Code-Agent-Id"))
		}
		return id, agent, s.source
	}
	if id = sessionID(f.SessionID); id != "" {
		return id, "", "client_metadata.session_id"
	}
	if id = sessionID(f.PromptCacheKey); id != "" {
		return id, "", "prompt_cache_key"
	}
	if id = userSession(f.UserID); id != "" {
		return id, sessionID(h.Get("X-Claude-Code-Agent-Id")), "metadata.user_id"
	}
	return "", "", ""
}

// sessionID makes one spelling of an id wherever it was found. Only UUIDs are known to
// mean the same in either case. An id too long to be one is none.
func sessionID(text string) string {
	text = strings.TrimSpace(text)
	switch {
	case len(text) > longestSession:
		return ""
	case isUUID(text):
		return strings.ToLower(text)
	}
	return text
}

// userSession finds the session in the metadata.user_id of Claude Code, which may speak
// the Messages dialect to xAI: JSON encoded as a string with a session_id, or
// user_…_session_ID. Another user_id names a user, whose conversations are many.
func userSession(userID string) string {
	userID = strings.TrimSpace(userID)
	if len(userID) > longestUserID {
		return ""
	}
	id := ""
	switch {
	case strings.HasPrefix(userID, "{"):
		var keys struct {
			SessionID text `json:"session_id"`
		}
		if json.Unmarshal([]byte(userID), &keys) != nil {
			return ""
		}
		id = string(keys.SessionID)
	case strings.HasPrefix(userID, "user_"):
		const mark = "_session_"
		if i := strings.LastIndex(userID, mark); i >= 0 {
			id = userID[i+len(mark):]
		}
	}
	if id = strings.TrimSpace(id); isUUID(id) {
		return strings.ToLower(id)
	}
	return ""
}

// isUUID reports whether a text has the shape of a UUID, in either case.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}
