package openai

import (
	"net/http"
	"strings"

	"holdfast/internal/provider/session"
	"holdfast/internal/wire/body"
)

// sessionOf finds the client's own session and where it was found. Both are empty when the
// request names none. A sub-agent of Codex has a thread of its own, and reads and writes
// what is encrypted for the account of its session: the session counts.
func sessionOf(h http.Header, f body.Facts) (id, source string) {
	id, in := session.Find(h, session.Codex, session.Opencode, session.Grok, session.Others)
	switch {
	case id != "":
		return id, in.Source
	case session.ID(f.SessionID) != "":
		return session.ID(f.SessionID), "client_metadata.session_id"
	case session.ID(f.PromptCacheKey) != "":
		return session.ID(f.PromptCacheKey), "prompt_cache_key"
	}
	return "", ""
}

// isCodex reports whether a request comes from Codex: it names itself as originator
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
