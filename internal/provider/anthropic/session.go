package anthropic

import (
	"net/http"

	"holdfast/internal/body"
	"holdfast/internal/provider/session"
)

// sessionHeader is Claude Code's own, by which it is recognized.
const sessionHeader = "X-Claude-Code-Session-Id"

// sessionOf finds the client's own session, its sub-agent, and where the session was
// found. All are empty when the request names none. The agent header means nothing beside
// another client's session.
func sessionOf(h http.Header, f body.Facts) (id, agent, source string) {
	id, in := session.Find(h, session.ClaudeCode, session.Opencode, session.Codex, session.Grok, session.Others)
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
	if id = session.OfUser(f.UserID); id != "" {
		return id, session.ID(h.Get(session.ClaudeCodeAgent)), "metadata.user_id"
	}
	return "", "", ""
}
