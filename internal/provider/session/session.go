// Package session finds by which name a client identifies its conversation: the headers
// and fields that clients are known to send, whichever provider they speak to.
//
// A session is the client's own word for a conversation; it does not change from turn to
// turn. Each provider's package has its own order of where to look, and says what a
// sub-agent is.
//
// It never takes for a session what changes within one (a request's, turn's or window's
// id: VS Code's x-interaction-id, x-client-request-id, x-grok-req-id, Codex's thread-id) or
// what several share (a user, a folder as in x-grok-conv-group-id, an installation). An
// empty header names nothing.
package session

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"holdfast/internal/provider"
	"holdfast/internal/wire/body"
)

// Header is one in which clients name their session.
type Header struct {
	// Name as Go spells it; Source is what the metric shows.
	Name, Source string
}

// ClaudeCodeAgent is where Claude Code names a sub-agent, beside its session.
const ClaudeCodeAgent = "X-Claude-Code-Agent-Id"

// The headers by client. The first of a list that is not empty counts.
var (
	ClaudeCode = []Header{{"X-Claude-Code-Session-Id", "x-claude-code-session-id"}}
	// Codex and its kin; the spelling changed twice.
	Codex = []Header{
		{"Session-Id", "session-id"},
		{"Session_id", "session_id"},
		{"Conversation_id", "conversation_id"},
	}
	// Grok is the Grok CLI's. What it asks for beside a session has conversation ids of its
	// own, new each time, under the session's id, and goes with the session; a conversation
	// id that comes alone is a name like any other.
	Grok = []Header{
		{"X-Grok-Session-Id", "x-grok-session-id"},
		{"X-Grok-Conv-Id", "x-grok-conv-id"},
	}
	Opencode = []Header{
		{"X-Session-Id", "x-session-id"},
		{"X-Session-Affinity", "x-session-affinity"}, // pi too
		{"X-Opencode-Session", "x-opencode-session"},
	}
	// Others are Kilo, the Copilot CLI, Mux, Coder, and whoever uses LiteLLM's.
	Others = []Header{
		{"X-Kilocode-Taskid", "x-kilocode-taskid"},
		{"X-Client-Session-Id", "x-client-session-id"},
		{"X-Mux-Workspace-Id", "x-mux-workspace-id"},
		{"X-Coder-Chat-Id", "x-coder-chat-id"},
		{"X-Litellm-Session-Id", "x-litellm-session-id"},
	}
)

// Find is the first session that a header of the lists names; empty when none does.
func Find(h http.Header, lists ...[]Header) (id string, in Header) {
	for _, list := range lists {
		for _, header := range list {
			for _, value := range h[header.Name] {
				if id = ID(value); id != "" {
					return id, header
				}
			}
		}
	}
	return "", Header{}
}

// IsOf reports whether a header is one of a list.
func (h Header) IsOf(list []Header) bool { return slices.Contains(list, h) }

const (
	// longestID bounds what is taken for an id, in bytes.
	longestID = 256
	// longestUserID bounds a metadata.user_id worth looking into, in bytes; Claude Code's
	// are below 300.
	longestUserID = 2048
)

// ID makes one spelling of an id wherever it was found. Only UUIDs are known to mean the
// same in either case. A text that is too long for an id names no session.
func ID(text string) string {
	text = strings.TrimSpace(text)
	switch {
	case len(text) > longestID:
		return ""
	case provider.IsUUID(text):
		return strings.ToLower(text)
	}
	return text
}

// OfUser finds the session in the metadata.user_id of the Messages dialect, in each form
// that Claude Code has used:
//
//	user_<hash>_account_<uuid or nothing>_session_<uuid>
//	{"device_id":"…","account_uuid":"…","session_id":"<uuid>"}, encoded as a string
//
// Anything else may be the name of a user, which many conversations share, and is no
// session; so is an id that is not a UUID, since a client that sends a placeholder would
// merge its conversations.
func OfUser(userID string) string {
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
	if id = strings.TrimSpace(id); provider.IsUUID(id) {
		return strings.ToLower(id)
	}
	return ""
}

// Of finds the client's own session, its sub-agent, and where the session was found: in the
// header of one of the clients, else in the body. All are empty when the request names none.
// The agent header means nothing beside another client's session.
func Of(h http.Header, f body.Facts, clients ...[]Header) (id, agent, source string) {
	id, in := Find(h, clients...)
	switch {
	case id != "":
		if in.IsOf(ClaudeCode) {
			agent = ID(h.Get(ClaudeCodeAgent))
		}
		return id, agent, in.Source
	case ID(f.SessionID) != "":
		return ID(f.SessionID), "", "client_metadata.session_id"
	case ID(f.PromptCacheKey) != "":
		return ID(f.PromptCacheKey), "", "prompt_cache_key"
	}
	if id = OfUser(f.UserID); id != "" {
		return id, ID(h.Get(ClaudeCodeAgent)), "metadata.user_id"
	}
	return "", "", ""
}
