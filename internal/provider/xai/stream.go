package xai

import (
	"bytes"
	"encoding/json"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
)

// Event implements provider.Provider, for the streams of Responses, Chat Completions and
// Messages alike: their events differ in name.
//
// An event precedes content when a client shows nothing of it: the response or message as
// it begins, an item, part or block that is still empty, a chunk that tells a role. An
// event not known may carry content, and counts as such; so does every item of xAI's own
// (x_search and its kin), which say that the server has begun to act.
func (Provider) Event(name string, data []byte) provider.Meaning {
	if name == "" || name == "message" { // "message" is what no name means in the standard
		switch {
		case len(bytes.TrimSpace(data)) == 0:
			return provider.Opening // no event at all
		case dialect.IsDone(data):
			return provider.Terminal
		}
		if name = dialect.EventType(data); name == "" {
			return dialect.Chunk(data)
		}
	}
	switch name {
	case "response.created", "response.queued", "response.in_progress", "message_start", "ping", "keepalive":
		return provider.Opening
	case "response.output_item.added", "response.content_part.added", "response.reasoning_summary_part.added", "content_block_start":
		if isEmpty(data) {
			return provider.Opening
		}
		return provider.Content
	case "response.completed", "response.incomplete", "response.cancelled", "response.done", "message_stop":
		return provider.Terminal
	case "response.failed", "error":
		return provider.Failure
	}
	return provider.Content
}

// isEmpty reports whether an item, part or block that is added has nothing in it yet. A
// reasoning item with an id and no text is empty; what is not text or reasoning never is.
func isEmpty(data []byte) bool {
	type part struct {
		Type      text              `json:"type"`
		Text      text              `json:"text"`
		Thinking  text              `json:"thinking"`
		Refusal   text              `json:"refusal"`
		Encrypted text              `json:"encrypted_content"`
		Content   []json.RawMessage `json:"content"`
		Summary   []json.RawMessage `json:"summary"`
	}
	var event struct {
		Item  *part `json:"item"`
		Part  *part `json:"part"`
		Block *part `json:"content_block"`
	}
	if json.Unmarshal(data, &event) != nil {
		return false
	}
	for _, p := range []*part{event.Item, event.Part, event.Block} {
		if p == nil {
			continue
		}
		switch p.Type {
		case "message", "reasoning", "text", "thinking", "output_text", "summary_text", "reasoning_text", "refusal":
			return p.Text == "" && p.Thinking == "" && p.Refusal == "" && p.Encrypted == "" && len(p.Content) == 0 && len(p.Summary) == 0
		}
		return false
	}
	return false
}

// EventReading implements provider.Provider: no event has readings of windows (see Read).
func (Provider) EventReading(string, []byte, time.Time) (account.Reading, bool) {
	return account.Reading{}, false
}
