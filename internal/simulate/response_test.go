package simulate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/internal/simulate"
)

// The shapes are those of OpenAI's documentation of the Responses and Chat Completions
// APIs and of their streams.

var response = simulate.Response{
	ID: "resp_1", Model: "gpt-5.5", CreatedAt: 1780000000, Encrypted: "gAAA-EXAMPLE",
	Text:  "One word and another, and more than two dozen bytes.",
	Usage: simulate.Usage{Input: 100, CacheWrite: 76, CacheRead: 1024, Output: 17},
}

type wireResponse struct {
	ID, Object, Status, Model string
	Output                    []struct {
		Type, Role, Status string
		Encrypted          string `json:"encrypted_content"`
		Content            []struct{ Type, Text string }
	}
	Usage *struct {
		Input   int64            `json:"input_tokens"`
		Details map[string]int64 `json:"input_tokens_details"`
		Output  int64            `json:"output_tokens"`
		Total   int64            `json:"total_tokens"`
	}
}

func checkWhole(t *testing.T, got wireResponse) {
	t.Helper()
	if got.ID != "resp_1" || got.Object != "response" || got.Status != "completed" || got.Model != "gpt-5.5" {
		t.Errorf("envelope: got %+v", got)
	}
	if len(got.Output) != 2 || got.Output[0].Type != "reasoning" || got.Output[0].Encrypted != response.Encrypted ||
		got.Output[1].Type != "message" || got.Output[1].Role != "assistant" ||
		len(got.Output[1].Content) != 1 || got.Output[1].Content[0].Type != "output_text" || got.Output[1].Content[0].Text != response.Text {
		t.Errorf("output: got %+v, want the reasoning and the text", got.Output)
	}
	// The cache's tokens are parts of the whole prompt.
	if u := got.Usage; u == nil || u.Input != 1200 || u.Details["cached_tokens"] != 1024 || u.Details["cache_write_tokens"] != 76 || u.Output != 17 || u.Total != 1217 {
		t.Errorf("usage: got %+v", got.Usage)
	}
}

func TestResponseJSON(t *testing.T) {
	var got wireResponse
	if err := json.Unmarshal(response.JSON(), &got); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, got)
}

func TestResponseEvents(t *testing.T) {
	var names []string
	text := ""
	for i, e := range response.Events() {
		var d struct {
			Type     string
			Number   int `json:"sequence_number"`
			Delta    string
			Response wireResponse
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
		if d.Type != e.Name || d.Number != i {
			t.Errorf("event %d, %s: got type %s and number %d", i, e.Name, d.Type, d.Number)
		}
		if len(names) == 0 || names[len(names)-1] != e.Name {
			names = append(names, strings.TrimPrefix(e.Name, "response."))
		}
		text += d.Delta
		switch e.Name {
		case "response.created":
			if d.Response.Status != "in_progress" || d.Response.Usage != nil || len(d.Response.Output) != 0 {
				t.Errorf("response.created: got %s, want nothing yet", e.Data)
			}
		case "response.completed":
			checkWhole(t, d.Response)
		}
	}
	want := "created in_progress output_item.added output_item.done output_item.added content_part.added output_text.delta" +
		" output_text.done content_part.done output_item.done completed"
	var got []string
	for _, name := range names {
		if len(got) == 0 || got[len(got)-1] != name {
			got = append(got, name)
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("order:\ngot  %s\nwant %s", strings.Join(got, " "), want)
	}
	if text != response.Text {
		t.Errorf("deltas: got %q, want %q", text, response.Text)
	}
}

func TestCompletion(t *testing.T) {
	c := simulate.Completion{ID: "chatcmpl_1", Model: "gpt-5.5", Text: response.Text, Usage: response.Usage}
	type wire struct {
		Object  string
		Choices []struct {
			Message, Delta struct{ Role, Content string }
			Finish         *string `json:"finish_reason"`
		}
		Usage *struct {
			Prompt  int64            `json:"prompt_tokens"`
			Details map[string]int64 `json:"prompt_tokens_details"`
			Output  int64            `json:"completion_tokens"`
		}
	}
	var whole wire
	if err := json.Unmarshal(c.JSON(), &whole); err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 1 || whole.Choices[0].Message.Content != c.Text || *whole.Choices[0].Finish != "stop" ||
		whole.Usage.Prompt != 1200 || whole.Usage.Details["cached_tokens"] != 1024 || whole.Usage.Output != 17 {
		t.Errorf("whole: got %s", c.JSON())
	}
	for _, withUsage := range []bool{false, true} {
		events := c.Events(withUsage)
		text, usages := "", 0
		for i, e := range events {
			if want := "data: " + string(e.Data) + "\n\n"; string(e.Bytes()) != want {
				t.Errorf("framing: got %q, want %q", e.Bytes(), want)
			}
			if i == len(events)-1 {
				if string(e.Data) != "[DONE]" {
					t.Errorf("the last: got %s, want [DONE]", e.Data)
				}
				break
			}
			var chunk wire
			if err := json.Unmarshal(e.Data, &chunk); err != nil || chunk.Object != "chat.completion.chunk" {
				t.Fatalf("chunk: got %s, %v", e.Data, err)
			}
			if chunk.Usage != nil {
				usages++
				if len(chunk.Choices) != 0 {
					t.Errorf("the usage's chunk: got %s, want no choice in it", e.Data)
				}
				continue
			}
			text += chunk.Choices[0].Delta.Content
		}
		if want := map[bool]int{true: 1}[withUsage]; text != c.Text || usages != want {
			t.Errorf("with usage %t: got %q and %d usages, want %q and %d", withUsage, text, usages, c.Text, want)
		}
	}
}

func TestErrorBody(t *testing.T) {
	var got, want any
	if err := json.Unmarshal(simulate.ErrorBody("usage_limit_reached", "", "The usage limit has been reached", map[string]any{"resets_at": 1775317531}), &got); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal([]byte(`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","param":null,"code":null,"resets_at":1775317531}}`), &want)
	if a, b := encode(t, got), encode(t, want); a != b {
		t.Errorf("got %s, want %s", a, b)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
