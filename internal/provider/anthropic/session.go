package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"holdfast/internal/body"
)

const (
	sessionHeader = "X-Claude-Code-Session-Id"
	agentHeader   = "X-Claude-Code-Agent-Id"
)

// sessionHeaders are the headers in which clients name their session, with the names
// that the source metric shows; the first that is not empty counts. None of them changes
// within a conversation. VS Code's x-interaction-id is not among them: it is new with
// every turn, and a fingerprint of the first message lasts longer.
var sessionHeaders = []struct{ header, source string }{
	{sessionHeader, "x-claude-code-session-id"},
	{"X-Session-Id", "x-session-id"},               // opencode
	{"X-Session-Affinity", "x-session-affinity"},   // opencode, pi
	{"X-Opencode-Session", "x-opencode-session"},   // opencode
	{"Session-Id", "session-id"},                   // Codex and its kin
	{"Session_id", "session_id"},                   // the same, older
	{"Conversation_id", "conversation_id"},         // the same, older
	{"X-Grok-Session-Id", "x-grok-session-id"},     // Grok CLI
	{"X-Grok-Conv-Id", "x-grok-conv-id"},           // Grok CLI
	{"X-Kilocode-Taskid", "x-kilocode-taskid"},     // Kilo
	{"X-Client-Session-Id", "x-client-session-id"}, // Copilot CLI
	{"X-Mux-Workspace-Id", "x-mux-workspace-id"},   // Mux
	{"X-Coder-Chat-Id", "x-coder-chat-id"},         // Coder
	{"X-Litellm-Session-Id", "x-litellm-session-id"},
}

const (
	// longestSession bounds what is taken for a session's id, in bytes.
	longestSession = 256
	// longestUserID bounds a metadata.user_id worth looking into, in bytes; Claude Code's
	// are below 300.
	longestUserID = 2048
)

// session finds the client's own session, its sub-agent, and where the session was
// found. All are empty when the request names none.
func session(h http.Header, f body.Facts) (id, agent, source string) {
	for _, s := range sessionHeaders {
		if id = sessionID(h.Get(s.header)); id != "" {
			return id, agentOf(h, s.header == sessionHeader), s.source
		}
	}
	if id = sessionID(f.SessionID); id != "" {
		return id, "", "client_metadata.session_id"
	}
	if id = sessionID(f.PromptCacheKey); id != "" {
		return id, "", "prompt_cache_key"
	}
	if id = userSession(f.UserID); id != "" {
		return id, agentOf(h, true), "metadata.user_id"
	}
	return "", "", ""
}

// agentOf is the sub-agent of a Claude Code session; the header means nothing beside
// another client's session.
func agentOf(h http.Header, claudeCode bool) string {
	if !claudeCode {
		return ""
	}
	return sessionID(h.Get(agentHeader))
}

// sessionID makes one spelling of an id wherever it was found. Only UUIDs are known to
// mean the same in either case. An id too long to be one is none.
func sessionID(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > longestSession {
		return ""
	}
	if isUUID(text) {
		return strings.ToLower(text)
	}
	return text
}

// userSession finds the session in metadata.user_id, in each form Claude Code has used:
//
//	user_<hash>_account_<uuid or nothing>_session_<uuid>
//	{"device_id":"…","account_uuid":"…","session_id":"<uuid>"}, encoded as a string
//
// Anything else may be the name of a user, which many conversations share, and is no
// session; so is an id that is not a UUID, since a client that sends a placeholder would
// merge its conversations.
func userSession(userID string) string {
	if len(userID) > longestUserID {
		return ""
	}
	userID = strings.TrimSpace(userID)
	id := ""
	if strings.HasPrefix(userID, "{") {
		var keys map[string]json.RawMessage
		if json.Unmarshal([]byte(userID), &keys) != nil || json.Unmarshal(keys["session_id"], &id) != nil {
			return ""
		}
	} else if strings.HasPrefix(userID, "user_") {
		const mark = "_session_"
		i := strings.LastIndex(userID, mark)
		if i < 0 {
			return ""
		}
		id = userID[i+len(mark):]
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
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return false
			}
		}
	}
	return true
}
