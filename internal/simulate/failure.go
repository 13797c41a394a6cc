package simulate

import "encoding/json"

// Failure is an error in Anthropic's envelope, as the body of an answer or as an event in
// the middle of a stream.
type Failure struct {
	// Type is the error's type, such as rate_limit_error; Message its text.
	Type, Message string
	// Details is the optional details object, already encoded; empty leaves it out.
	Details string
	// RequestID repeats the answer's request-id; empty leaves it out, as events do.
	RequestID string
}

type wireFailure struct {
	Type  string `json:"type"`
	Error struct {
		Type    string          `json:"type"`
		Message string          `json:"message"`
		Details json.RawMessage `json:"details,omitempty"`
	} `json:"error"`
	RequestID string `json:"request_id,omitempty"`
}

// JSON renders the error as a body. Details that are not JSON are a programmer's mistake
// and panic.
func (f Failure) JSON() []byte {
	w := wireFailure{Type: "error", RequestID: f.RequestID}
	w.Error.Type, w.Error.Message, w.Error.Details = f.Type, f.Message, json.RawMessage(f.Details)
	return encode(w)
}

// Event renders the error as an event of a stream.
func (f Failure) Event() Event { return Event{"error", f.JSON()} }
