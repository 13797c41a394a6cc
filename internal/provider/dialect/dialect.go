// Package dialect reads and writes what is alike at several providers: the stream of Chat
// Completions, which names no events; the errors of each dialect; and JSON values
// of a type that cannot be relied on.
//
// A value that is missing, or of another type than expected, is dropped alone: Text,
// Number and Tokens never make a document unreadable. What an event of a provider's own
// means, and which words its errors have, is in that provider's package.
package dialect

import (
	"bytes"
	"encoding/json"
	"strconv"

	"holdfast/internal/provider"
)

// Text is a JSON string; empty for a value of another type.
type Text string

func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = Text(s)
	}
	return nil
}

// Number is a JSON number, or one in a string, as it was written; empty for a value of
// another type.
type Number string

func (n *Number) UnmarshalJSON(b []byte) error {
	var j json.Number
	if json.Unmarshal(b, &j) == nil {
		*n = Number(j)
	}
	return nil
}

// Tokens is a count; Told is false where it was missing, null, or no count.
type Tokens struct {
	N    int64
	Told bool
}

func (t *Tokens) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil && n >= 0 {
		*t = Tokens{n, true}
	}
	return nil
}

// Or is the first of the two that was told.
func (t Tokens) Or(other Tokens) Tokens {
	if t.Told {
		return t
	}
	return other
}

// Told reports whether a JSON value says anything.
func Told(value json.RawMessage) bool {
	switch string(value) {
	case "", "null", `""`, "[]", "{}":
		return false
	}
	return true
}

// EventType reads the name of an event from its data, which repeats it. A chunk of Chat
// Completions has none.
func EventType(data []byte) string {
	if !bytes.Contains(data, []byte(`"type"`)) {
		return ""
	}
	var event struct {
		Type Text `json:"type"`
	}
	_ = json.Unmarshal(data, &event) // what cannot be read has no name
	return string(event.Type)
}

// IsDone recognizes the mark that ends a Chat Completions stream.
func IsDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// Chunk says what an event of a Chat Completions stream is, or of the older completions'.
// One without text, tool calls or a reason to end is an opening: the first tells the role
// alone, the last the usage alone. One with an error is a failure.
func Chunk(data []byte) provider.Meaning {
	var c struct {
		Error   json.RawMessage `json:"error"`
		Choices []struct {
			Text   Text                       `json:"text"` // of /v1/completions
			Reason Text                       `json:"finish_reason"`
			Delta  map[string]json.RawMessage `json:"delta"`
		} `json:"choices"`
	}
	if json.Unmarshal(data, &c) != nil {
		return provider.Content
	}
	if Told(c.Error) {
		return provider.Failure
	}
	for _, choice := range c.Choices {
		if choice.Text != "" || choice.Reason != "" {
			return provider.Content
		}
		for field, value := range choice.Delta {
			if field != "role" && Told(value) {
				return provider.Content
			}
		}
	}
	if c.Choices == nil && !bytes.Contains(data, []byte(`"usage"`)) {
		return provider.Content // no chunk: what is not known may be content
	}
	return provider.Opening
}
