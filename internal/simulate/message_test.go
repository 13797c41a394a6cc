package simulate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/internal/simulate"
)

// The shapes are those of Anthropic's documentation of messages and of streaming.

var sample = simulate.Message{
	ID: "msg_1", Model: "claude-opus-5",
	Blocks: []simulate.Block{
		{Text: "One word and another – with a dash, a 漢字 or two, and more than two dozen bytes."},
		{Tool: "Read", CallID: "toolu_1", Input: `{"file_path":"/a/file/with/a/name.txt","limit":10}`},
	},
	StopReason: "tool_use",
	Usage:      simulate.Usage{Input: 2, CacheWrite: 540, CacheRead: 41200, Output: 17},
}

func TestMessageJSON(t *testing.T) {
	var got struct {
		ID, Type, Role, Model string
		Content               []struct {
			Type, Text, ID, Name string
			Input                map[string]any
		}
		StopReason   string  `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
		Usage        map[string]any
	}
	if err := json.Unmarshal(sample.JSON(), &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != "msg_1" || got.Type != "message" || got.Role != "assistant" || got.Model != "claude-opus-5" || got.StopReason != "tool_use" {
		t.Errorf("envelope: got %+v", got)
	}
	if len(got.Content) != 2 || got.Content[0].Text != sample.Blocks[0].Text || got.Content[1].Name != "Read" ||
		got.Content[1].Input["file_path"] != "/a/file/with/a/name.txt" {
		t.Errorf("content: got %+v", got.Content)
	}
	for field, want := range map[string]float64{
		"input_tokens": 2, "cache_creation_input_tokens": 540, "cache_read_input_tokens": 41200, "output_tokens": 17,
	} {
		if got.Usage[field] != want {
			t.Errorf("usage.%s: got %v, want %v", field, got.Usage[field], want)
		}
	}
}

func TestMessageEvents(t *testing.T) {
	type data struct {
		Type    string
		Index   int
		Message struct {
			ID         string
			Content    []any
			StopReason *string `json:"stop_reason"`
			Usage      map[string]any
		}
		Block struct {
			Type, Text, Name string
			Input            map[string]any
		} `json:"content_block"`
		Delta struct {
			Type, Text string
			Partial    string `json:"partial_json"`
			StopReason string `json:"stop_reason"`
		}
		Usage map[string]float64
	}
	var names []string
	var content [2]string
	for _, e := range sample.Events() {
		var d data
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
		if d.Type != e.Name {
			t.Errorf("event %s: got type %s, want the same", e.Name, d.Type)
		}
		if want := "event: " + e.Name + "\ndata: " + string(e.Data) + "\n\n"; string(e.Bytes()) != want {
			t.Errorf("framing: got %q, want %q", e.Bytes(), want)
		}
		if len(names) == 0 || names[len(names)-1] != e.Name {
			names = append(names, e.Name)
		}
		switch e.Name {
		case "message_start":
			if d.Message.ID != "msg_1" || d.Message.StopReason != nil || len(d.Message.Content) != 0 || d.Message.Usage["cache_read_input_tokens"] != 41200.0 {
				t.Errorf("message_start: got %s", e.Data)
			}
			split, _ := d.Message.Usage["cache_creation"].(map[string]any)
			if split["ephemeral_5m_input_tokens"] != 540.0 || split["ephemeral_1h_input_tokens"] != 0.0 {
				t.Errorf("cache_creation: got %v, want 540 for five minutes and 0 for an hour", split)
			}
		case "content_block_start":
			if d.Block.Text != "" || len(d.Block.Input) != 0 {
				t.Errorf("content_block_start: got %s, want no content yet", e.Data)
			}
		case "content_block_delta":
			if want := []string{"text_delta", "input_json_delta"}[d.Index]; d.Delta.Type != want {
				t.Errorf("delta: got %s, want %s", d.Delta.Type, want)
			}
			if strings.ContainsRune(d.Delta.Text, '\uFFFD') {
				t.Errorf("delta: got %q, want whole characters", d.Delta.Text)
			}
			content[d.Index] += d.Delta.Text + d.Delta.Partial
		case "message_delta":
			if d.Delta.StopReason != "tool_use" || d.Usage["output_tokens"] != 17 || d.Usage["input_tokens"] != 2 || d.Usage["cache_creation_input_tokens"] != 540 {
				t.Errorf("message_delta: got %s", e.Data)
			}
		}
	}
	want := "message_start content_block_start ping content_block_delta content_block_stop" +
		" content_block_start content_block_delta content_block_stop message_delta message_stop"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("order:\ngot  %s\nwant %s", got, want)
	}
	if content[0] != sample.Blocks[0].Text || content[1] != sample.Blocks[1].Input {
		t.Errorf("content: got %q, want that of the message", content)
	}
}

func TestFailure(t *testing.T) {
	f := simulate.Failure{Type: "overloaded_error", Message: "Overloaded"}
	if got, want := string(f.Event().Bytes()),
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"; got != want {
		t.Errorf("event: got %q, want %q", got, want)
	}
	f.Details, f.RequestID = `{"error_code":"credits_required"}`, "req_1"
	if got, want := string(f.JSON()), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded","details":{"error_code":"credits_required"}},"request_id":"req_1"}`; got != want {
		t.Errorf("body: got %s, want %s", got, want)
	}
}
