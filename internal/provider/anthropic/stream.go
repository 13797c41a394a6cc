package anthropic

import (
	"encoding/json"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
)

// Event implements provider.Provider. message_start and ping precede content, and so does
// the start of a text or thinking block that is still empty: a client shows nothing of
// them, and an error that follows can still be answered from another account. Every other
// start of a block carries content (a tool's name and id, a search result), and so does
// every delta. An event not known may carry content too, and counts as such.
func (Provider) Event(name string, data []byte) provider.Meaning {
	if name == "" {
		name = dialect.EventType(data)
	}
	switch name {
	case "message_start", "ping":
		return provider.Opening
	case "": // as in Chat Completions, which Anthropic serves too
		switch {
		case len(data) == 0:
			return provider.Opening // no event at all
		case dialect.IsDone(data):
			return provider.Terminal
		}
		return dialect.Chunk(data)
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

// set keeps a field where nothing was told.
func set(field *int64, t tokens) {
	if t.Told {
		*field = t.N
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
	set(&total.Input, u.Input)
	set(&total.CacheWrite, u.CacheWrite)
	set(&total.CacheRead, u.CacheRead)
	set(&total.Output, u.Output)
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
		name = dialect.EventType(data)
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

// EventReading implements provider.Provider: no event has readings of windows, which the headers
// have told before it.
func (Provider) EventReading(string, []byte, time.Time) (account.Reading, bool) {
	return account.Reading{}, false
}
