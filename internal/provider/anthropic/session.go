package anthropic

import (
	"net/http"

	"holdfast/internal/provider/session"
	"holdfast/internal/wire/body"
)

// sessionHeader is Claude Code's own, by which it is recognized.
const sessionHeader = "X-Claude-Code-Session-Id"

// sessionOf finds the client's own session, its sub-agent, and where the session was
// found. All are empty when the request names none. The agent header means nothing beside
// another client's session.
func sessionOf(h http.Header, f body.Facts) (id, agent, source string) {
	return session.Of(h, f, session.ClaudeCode, session.Opencode, session.Codex, session.Grok, session.Others)
}
