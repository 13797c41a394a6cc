package dialect

import (
	"encoding/json"
	"strings"

	"holdfast/internal/provider"
)

// Failure is what went wrong, in a provider's own words.
type Failure struct {
	Type, Code, Message string
	// Request is an id that errors of Messages repeat; empty leaves it out.
	Request string
}

// detail is the error object of Chat Completions and Responses.
type detail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// Body is an error's body in the dialect.
func (f Failure) Body(d provider.Dialect) []byte {
	if d != provider.Messages {
		return encode(struct {
			Error detail `json:"error"`
		}{f.detail()})
	}
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return encode(struct {
		Type      string `json:"type"`
		Error     inner  `json:"error"`
		RequestID string `json:"request_id,omitempty"`
	}{"error", inner{f.Type, f.Message}, f.Request})
}

// Event is an event that ends a stream of the dialect as one that failed; nil where the
// dialect is unknown here.
//
// In Messages that is error. In Responses it is response.failed: Codex does not heed an event
// error; the SDKs raise a member error of any event's data, so it has that too. In Chat
// Completions it is a chunk that has an error alone; its events have no names.
func (f Failure) Event(d provider.Dialect) []byte {
	switch d {
	case provider.Messages:
		return event("event: error\n", f.Body(d))
	case provider.Chat:
		return event("", f.Body(d))
	case provider.Responses:
		type failed struct {
			Object string `json:"object"`
			Status string `json:"status"`
			Error  detail `json:"error"`
			Output []any  `json:"output"`
			Usage  any    `json:"usage"`
		}
		return event("event: response.failed\n", encode(struct {
			Type     string `json:"type"`
			Sequence int    `json:"sequence_number"`
			Response failed `json:"response"`
			Error    detail `json:"error"`
		}{"response.failed", 0, failed{Object: "response", Status: "failed", Error: f.detail(), Output: []any{}}, f.detail()}))
	}
	return nil
}

func (f Failure) detail() detail { return detail{Message: f.Message, Type: f.Type, Code: f.Code} }

func event(name string, data []byte) []byte {
	return append(append([]byte(name+"data: "), data...), "\n\n"...)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("dialect: structs of strings and numbers always encode: " + err.Error())
	}
	return b
}

// Plain is an error's message, or its code, in the one spelling that phrases are compared
// with: in small letters, with straight apostrophes.
func Plain(message string) string {
	return strings.ToLower(strings.TrimSpace(strings.ReplaceAll(message, "’", "'")))
}
