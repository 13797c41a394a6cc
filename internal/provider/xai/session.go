package xai

import (
	"net/http"

	"holdfast/internal/body"
	"holdfast/internal/provider/session"
)

const (
	sessionHeader = "X-Grok-Session-Id"
	convHeader    = "X-Grok-Conv-Id"
)

// sessionOf finds the client's own session, its sub-agent, and where the session was
// found. All are empty when the request names none.
//
// The Grok CLI sends its headers empty with the first title of a session. The requests
// beside a session (titles, summaries, permission checks) go with it. xAI's own
// documentation asks every client for a conversation id.
func sessionOf(h http.Header, f body.Facts) (id, agent, source string) {
	id, in := session.Find(h, session.Grok, session.ClaudeCode, session.Opencode, session.Codex, session.Others)
	switch {
	case id != "":
		if in.IsOf(session.ClaudeCode) {
			agent = session.ID(h.Get(session.ClaudeCodeAgent))
		}
		return id, agent, in.Source
	case session.ID(f.SessionID) != "":
		return session.ID(f.SessionID), "", "client_metadata.session_id"
	case session.ID(f.PromptCacheKey) != "":
		return session.ID(f.PromptCacheKey), "", "prompt_cache_key"
	}
	if id = session.OfUser(f.UserID); id != "" { // Claude Code may speak the Messages dialect to xAI
		return id, session.ID(h.Get(session.ClaudeCodeAgent)), "metadata.user_id"
	}
	return "", "", ""
}
