package xai

import (
	"net/http"

	"holdfast/internal/provider/session"
	"holdfast/internal/wire/body"
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
	return session.Of(h, f, session.Grok, session.ClaudeCode, session.Opencode, session.Codex, session.Others)
}
