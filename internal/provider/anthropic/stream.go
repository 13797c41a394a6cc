package anthropic

import (
	"encoding/json"
	"strconv"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/provider"
)

// Event implements provider.Provider. message_start and ping precede content, and so does
// the start of a text or thinking block that is still empty: a client shows nothing of
// them, and an error that follows can still be answered from another account. Every other
// start of a block carries content (a tool's name and id, a search result), and so does
// every delta. An event not known may carry content too, and counts as such.
func (Provider) Event(name string, data []byte) provider.Meaning {
	if name == "" {
		name = eventType(data)
	}
	switch name {
	case "message_start", "ping":
		return provider.Opening
	case "":
		if len(data) == 0 {
			return provider.Opening // no event at all
		}
		return provider.Content
	case "content_block_start":
		if isEmptyBlock(data) {
			return provider.Opening
		}
		return provider.Content
	case "message_stop":
		return provider.Terminal
	case "error":
		return provider.Failure
	case "completion": // of /v1/complete, whose last event gives the reason
		return completion(data)
	default:
		return provider.Content
	}
}

// eventType reads the name of an event from its data, which repeats it.
func eventType(data []byte) string {
	var event struct {
		Type text `json:"type"`
	}
	_ = json.Unmarshal(data, &event) // what cannot be read has no name
	return string(event.Type)
}

func isEmptyBlock(data []byte) bool {
	var event struct {
		Block struct {
			Type     text `json:"type"`
			Text     text `json:"text"`
			Thinking text `json:"thinking"`
		} `json:"content_block"`
	}
	if json.Unmarshal(data, &event) != nil {
		return false
	}
	b := event.Block
	return (b.Type == "text" || b.Type == "thinking") && b.Text == "" && b.Thinking == ""
}

func completion(data []byte) provider.Meaning {
	var event struct {
		StopReason text `json:"stop_reason"`
	}
	_ = json.Unmarshal(data, &event) // without a readable reason it goes on
	if event.StopReason != "" {
		return provider.Terminal
	}
	return provider.Content
}

// tokens is a count that may be missing, null, or something that is no count.
type tokens struct {
	n    int64
	told bool
}

func (t *tokens) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil && n >= 0 {
		*t = tokens{n, true}
	}
	return nil
}

func (t tokens) into(field *int64) {
	if t.told {
		*field = t.n
	}
}

// usage is Anthropic's usage object. iterations repeats the totals for each step the
// server took, and cache_creation splits a total by lifetime: neither is added.
type usage struct {
	Input      tokens `json:"input_tokens"`
	CacheWrite tokens `json:"cache_creation_input_tokens"`
	CacheRead  tokens `json:"cache_read_input_tokens"`
	Output     tokens `json:"output_tokens"`
}

// into keeps the last told value of each field: they are cumulative.
func (u usage) into(total *provider.Usage) {
	u.Input.into(&total.Input)
	u.CacheWrite.into(&total.CacheWrite)
	u.CacheRead.into(&total.CacheRead)
	u.Output.into(&total.Output)
}

// message is what usage needs of a message.
type message struct {
	Model text  `json:"model"`
	Usage usage `json:"usage"`
}

// EventUsage implements provider.Provider. message_start tells the model and the prompt,
// message_delta corrects and completes; there may be several. After a stream that was cut
// before the first message_delta, Output is a lower bound.
func (Provider) EventUsage(u *provider.Usage, name string, data []byte) {
	if name == "" {
		name = eventType(data)
	}
	switch name {
	case "message_start":
		var event struct {
			Message message `json:"message"`
		}
		_ = json.Unmarshal(data, &event) // fields that could not be read stay untold
		event.Message.into(u)
	case "message_delta":
		var event message
		_ = json.Unmarshal(data, &event)
		event.Usage.into(u)
	}
}

// BodyUsage implements provider.Provider.
func (Provider) BodyUsage(b []byte) provider.Usage {
	var m message
	var u provider.Usage
	_ = json.Unmarshal(b, &m)
	m.into(&u)
	return u
}

func (m message) into(u *provider.Usage) {
	if m.Model != "" {
		u.Model = string(m.Model)
	}
	m.Usage.into(u)
}

// EventReading implements provider.Provider: no event tells of windows, which the headers
// have told before it.
func (Provider) EventReading(string, []byte, time.Time) (account.Reading, bool) {
	return account.Reading{}, false
}
