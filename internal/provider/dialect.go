package provider

import "strings"

// Dialect is the protocol that a client speaks on a path: the events of its streams, and
// the shape of its errors.
type Dialect string

const (
	// Messages is also that of the older /v1/complete.
	Messages Dialect = "messages"
	// Responses is OpenAI's newer one.
	Responses Dialect = "responses"
	// Chat is that of Chat Completions, and of the older completions.
	Chat Dialect = "chat"
)

// KeepAlive is what may be sent between two events of a stream that is silent. Messages has an
// event for that. Elsewhere it is a comment without a blank line behind it, which some
// versions of the SDKs take for an event without data.
func (d Dialect) KeepAlive() []byte {
	if d == Messages {
		return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
	}
	return []byte(": keep-alive\n")
}

// DialectOf is the dialect of a path as APIs spell it, below /v1; empty where none of the
// three is spoken, and a stream ends with its body.
func DialectOf(path string) Dialect {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return ""
	}
	first, rest, _ := strings.Cut(rest, "/")
	switch first {
	case "messages", "complete":
		return Messages
	case "responses":
		return Responses
	case "completions":
		return Chat
	case "chat":
		if second, _, _ := strings.Cut(rest, "/"); second == "completions" {
			return Chat
		}
	}
	return ""
}
