package simulate

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Usage is what an answer consumed, in tokens. The whole prompt is Input + CacheWrite +
// CacheRead; Input is only what follows the last cache breakpoint.
type Usage struct {
	Input, CacheWrite, CacheRead, Output int64
}

// Block is one piece of content: text, or a call of a tool when Tool is set.
type Block struct {
	Text string
	// Tool is the tool's name; CallID and Input (a JSON object) belong to it.
	Tool, CallID, Input string
}

// Message is a good answer to POST /v1/messages.
type Message struct {
	ID    string
	Model string
	// Blocks is the content, in order.
	Blocks []Block
	// StopReason is why it ended; empty means end_turn.
	StopReason string
	Usage      Usage
}

// Event is one event of a stream.
type Event struct {
	// Name is the event line's; empty for an event without one. Data has no line breaks: it
	// is one JSON object, or the word that ends a stream of chunks.
	Name string
	Data []byte
}

// Bytes frames the event as the providers do: LF line ends, a space after each colon.
func (e Event) Bytes() []byte {
	if e.Name == "" {
		return fmt.Appendf(nil, "data: %s\n\n", e.Data)
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", e.Name, e.Data)
}

// The wire's own order of fields is kept, because people read these answers.

type wireMessage struct {
	ID           string      `json:"id"`
	Type         string      `json:"type"`
	Role         string      `json:"role"`
	Model        string      `json:"model"`
	Content      []wireBlock `json:"content"`
	StopReason   *string     `json:"stop_reason"`
	StopSequence *string     `json:"stop_sequence"`
	Usage        wireUsage   `json:"usage"`
}

type wireBlock struct {
	Type  string          `json:"type"`
	Text  *string         `json:"text,omitempty"`
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

type wireUsage struct {
	Input       int64          `json:"input_tokens"`
	CacheWrite  int64          `json:"cache_creation_input_tokens"`
	CacheRead   int64          `json:"cache_read_input_tokens"`
	Split       *wireCacheKind `json:"cache_creation,omitempty"`
	Output      int64          `json:"output_tokens"`
	ServiceTier string         `json:"service_tier,omitempty"`
}

type wireCacheKind struct {
	FiveMinutes int64 `json:"ephemeral_5m_input_tokens"`
	OneHour     int64 `json:"ephemeral_1h_input_tokens"`
}

func (u Usage) wire(output int64) wireUsage {
	return wireUsage{
		Input: u.Input, CacheWrite: u.CacheWrite, CacheRead: u.CacheRead,
		Split: &wireCacheKind{FiveMinutes: u.CacheWrite}, Output: output, ServiceTier: "standard",
	}
}

func (b Block) wire(opening bool) wireBlock {
	if b.Tool != "" {
		input := json.RawMessage(b.Input)
		if opening || b.Input == "" {
			input = json.RawMessage("{}")
		}
		return wireBlock{Type: "tool_use", ID: b.CallID, Name: b.Tool, Input: input}
	}
	text := b.Text
	if opening {
		text = ""
	}
	return wireBlock{Type: "text", Text: &text}
}

func (m Message) stop() string {
	if m.StopReason == "" {
		return "end_turn"
	}
	return m.StopReason
}

// JSON renders the message whole.
func (m Message) JSON() []byte {
	stop := m.stop()
	w := wireMessage{
		ID: m.ID, Type: "message", Role: "assistant", Model: m.Model,
		Content: []wireBlock{}, StopReason: &stop, Usage: m.Usage.wire(m.Usage.Output),
	}
	for _, b := range m.Blocks {
		w.Content = append(w.Content, b.wire(false))
	}
	return encode(w)
}

// Events renders the message as a stream: message_start with the prompt's usage, for each
// block its start, deltas and stop (a ping after the first start), message_delta with the
// final usage, message_stop.
func (m Message) Events() []Event {
	start := wireMessage{
		ID: m.ID, Type: "message", Role: "assistant", Model: m.Model,
		Content: []wireBlock{}, Usage: m.Usage.wire(1),
	}
	events := []Event{event("message_start", map[string]any{"type": "message_start", "message": start})}
	for i, b := range m.Blocks {
		events = append(events, event("content_block_start", struct {
			Type  string    `json:"type"`
			Index int       `json:"index"`
			Block wireBlock `json:"content_block"`
		}{"content_block_start", i, b.wire(true)}))
		if i == 0 {
			events = append(events, Event{"ping", []byte(`{"type":"ping"}`)})
		}
		kind, field, content := "text_delta", "text", b.Text
		if b.Tool != "" {
			kind, field, content = "input_json_delta", "partial_json", b.Input
		}
		for _, piece := range pieces(content) {
			events = append(events, event("content_block_delta", struct {
				Type  string            `json:"type"`
				Index int               `json:"index"`
				Delta map[string]string `json:"delta"`
			}{"content_block_delta", i, map[string]string{"type": kind, field: piece}}))
		}
		events = append(events, event("content_block_stop", struct {
			Type  string `json:"type"`
			Index int    `json:"index"`
		}{"content_block_stop", i}))
	}
	stop := m.stop()
	last := m.Usage.wire(m.Usage.Output)
	last.Split, last.ServiceTier = nil, ""
	return append(events,
		event("message_delta", struct {
			Type  string `json:"type"`
			Delta any    `json:"delta"`
			Usage any    `json:"usage"`
		}{"message_delta", struct {
			Stop     *string `json:"stop_reason"`
			Sequence *string `json:"stop_sequence"`
		}{&stop, nil}, last}),
		Event{"message_stop", []byte(`{"type":"message_stop"}`)},
	)
}

// pieceSize is about how many bytes of content one delta carries.
const pieceSize = 24

// pieces cuts content into deltas, after a space where there is one and never within a
// character: a delta is JSON, and half a character could not be encoded.
func pieces(content string) []string {
	var out []string
	for len(content) > pieceSize {
		cut := pieceSize
		if space := strings.LastIndexByte(content[:pieceSize], ' '); space > 0 {
			cut = space + 1
		}
		for cut < len(content) && !utf8.RuneStart(content[cut]) {
			cut++
		}
		out, content = append(out, content[:cut]), content[cut:]
	}
	if content != "" {
		out = append(out, content)
	}
	return out
}

func event(name string, data any) Event { return Event{name, encode(data)} }

// encode renders values of this package's own types, which always can be.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("simulate: render: " + err.Error())
	}
	return b
}
