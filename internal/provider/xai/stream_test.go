package xai_test

import (
	"testing"

	"holdfast/internal/provider"
	"holdfast/internal/provider/xai"
)

func TestEvent(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       provider.Meaning
	}{
		// Responses
		{"response.created", `{"type":"response.created","response":{"tools":[{"type":"x_search"}]}}`, provider.Opening},
		{"response.queued", `{}`, provider.Opening},
		{"response.in_progress", `{}`, provider.Opening},
		{"response.output_item.added", `{"item":{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[]}}`, provider.Opening},
		{"response.output_item.added", `{"item":{"type":"reasoning","id":"r","summary":[]}}`, provider.Opening},
		{"response.output_item.added", `{"item":{"type":"reasoning","id":"r","summary":[],"encrypted_content":"x"}}`, provider.Content},
		{"response.output_item.added", `{"item":{"type":"function_call","name":"bash","arguments":""}}`, provider.Content},
		{"response.output_item.added", `{"item":{"type":"x_search_call","id":"x"}}`, provider.Content},
		{"response.output_item.added", `{"item":{"type":"custom_tool_call","name":"x_keyword_search"}}`, provider.Content},
		{"response.output_item.added", `{`, provider.Content},
		{"response.output_item.added", `{}`, provider.Content},
		{"response.content_part.added", `{"part":{"type":"output_text","text":"","annotations":[]}}`, provider.Opening},
		{"response.content_part.added", `{"part":{"type":"output_text","text":"Hel"}}`, provider.Content},
		{"response.reasoning_summary_part.added", `{"part":{"type":"summary_text","text":""}}`, provider.Opening},
		{"response.output_text.delta", `{"delta":"Hello"}`, provider.Content},
		{"response.reasoning_summary_text.delta", `{"delta":"hm"}`, provider.Content},
		{"response.x_search_call.searching", `{}`, provider.Content},
		{"response.output_item.done", `{"item":{"type":"message"}}`, provider.Content},
		{"response.completed", `{"type":"response.completed"}`, provider.Terminal},
		{"response.incomplete", `{}`, provider.Terminal},
		{"response.failed", `{"type":"response.failed","response":{"error":{"code":"server_error"}}}`, provider.Failure},
		{"error", `{"type":"error","code":"x","message":"y"}`, provider.Failure},
		{"error", `oh`, provider.Failure},
		{"response.new", `{}`, provider.Content},
		// The same without event lines.
		{"", `{"type":"response.created","response":{}}`, provider.Opening},
		{"", `{"type":"response.output_text.delta","delta":"Hello"}`, provider.Content},
		{"", `{"type":"response.completed","response":{}}`, provider.Terminal},
		{"", `{"type":"response.failed","response":{}}`, provider.Failure},
		{"", `{"type":"error","code":"x"}`, provider.Failure},
		{"message", `{"type":"response.completed"}`, provider.Terminal},

		// Chat Completions
		{"", `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, provider.Opening},
		{"", `{"choices":[{"delta":{"role":"assistant"}}]}`, provider.Opening},
		{"", `{"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[],"finish_reason":null}}]}`, provider.Opening},
		{"", `{"choices":[{"delta":{"content":"Hello"}}]}`, provider.Content},
		{"", `{"choices":[{"delta":{"content":" "}}]}`, provider.Content},
		{"", `{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, provider.Content},
		{"", `{"choices":[{"delta":{"tool_calls":[{"index":0,"type":"function","function":{"name":"bash","arguments":""}}]}}]}`, provider.Content},
		{"", `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, provider.Content},
		{"", `{"choices":[{"text":"Hel"}]}`, provider.Content},
		{"", `{"choices":[],"usage":{"prompt_tokens":1}}`, provider.Opening},
		{"", `{"usage":{"prompt_tokens":1}}`, provider.Opening},
		{"", `{"error":{"message":"x","type":"server_error"}}`, provider.Failure},
		{"", `{"code":"resource-exhausted","error":"x"}`, provider.Failure},
		{"", `{"choices":[{"delta":{"content":"x"}}],"error":null}`, provider.Content},
		{"", `[DONE]`, provider.Terminal},
		{"", ` [DONE] `, provider.Terminal},
		{"", `{"id":"c"}`, provider.Content},
		{"", `what`, provider.Content},
		{"", `[]`, provider.Content},
		{"", ``, provider.Opening},

		// Messages
		{"message_start", `{"type":"message_start","message":{}}`, provider.Opening},
		{"ping", `{"type":"ping"}`, provider.Opening},
		{"content_block_start", `{"content_block":{"type":"text","text":""}}`, provider.Opening},
		{"content_block_start", `{"content_block":{"type":"thinking","thinking":"","signature":""}}`, provider.Opening},
		{"content_block_start", `{"content_block":{"type":"tool_use","name":"Bash","input":{}}}`, provider.Content},
		{"content_block_delta", `{"delta":{"type":"text_delta","text":"Hello"}}`, provider.Content},
		{"message_delta", `{"delta":{"stop_reason":"end_turn"}}`, provider.Content},
		{"message_stop", `{"type":"message_stop"}`, provider.Terminal},
	} {
		if got := (xai.Provider{}).Event(c.name, []byte(c.data)); got != c.want {
			t.Errorf("%s %s: got %v, want %v", c.name, c.data, got, c.want)
		}
	}
}

func TestEventUsage(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []event
		want   provider.Usage
	}{
		{"responses", []event{
			{"response.created", `{"response":{"model":"grok-4.6","usage":null}}`},
			{"response.completed", `{"response":{"model":"grok-4.6","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":7}}}`},
		}, provider.Usage{Model: "grok-4.6", Input: 40, CacheRead: 60, Output: 7}},
		{"responses without event lines", []event{{"", `{"type":"response.completed","response":{"model":"grok-4.6","usage":{"input_tokens":100,"output_tokens":7}}}`}},
			provider.Usage{Model: "grok-4.6", Input: 100, Output: 7}},
		{"responses cut off", []event{{"response.created", `{"response":{"model":"grok-4.6"}}`}}, provider.Usage{Model: "grok-4.6"}},
		{"responses, a failure", []event{{"response.failed", `{"response":{"model":"grok-4.6","usage":{"input_tokens":5,"output_tokens":0}}}`}}, provider.Usage{Model: "grok-4.6", Input: 5}},
		{"chat, with every chunk", []event{
			{"", `{"model":"grok-4","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,"prompt_tokens_details":{"cached_tokens":60}}}`},
			{"", `{"model":"grok-4","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":9,"total_tokens":109,"prompt_tokens_details":{"cached_tokens":60}}}`},
			{"", `[DONE]`},
		}, provider.Usage{Model: "grok-4", Input: 40, CacheRead: 60, Output: 9}},
		{"chat, reasoning beside the completion", []event{{"", `{"model":"grok-4","usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}}`}},
			provider.Usage{Model: "grok-4", Input: 32, Output: 103, Reasoning: 94}},
		{"chat, reasoning within the completion", []event{{"", `{"model":"grok-4","usage":{"prompt_tokens":32,"completion_tokens":103,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}}`}},
			provider.Usage{Model: "grok-4", Input: 32, Output: 103, Reasoning: 94}},
		{"chat, a total that does not add up", []event{{"", `{"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":9000,"completion_tokens_details":{"reasoning_tokens":94}}}`}},
			provider.Usage{Input: 32, Output: 9, Reasoning: 9}},
		{"messages", []event{
			{"message_start", `{"message":{"model":"grok-4.6","usage":{"input_tokens":4,"cache_read_input_tokens":60,"cache_creation_input_tokens":2,"output_tokens":1}}}`},
			{"message_delta", `{"usage":{"output_tokens":17}}`},
		}, provider.Usage{Model: "grok-4.6", Input: 4, CacheRead: 60, CacheWrite: 2, Output: 17}},
		{"null is not told", []event{
			{"", `{"usage":{"prompt_tokens":10,"completion_tokens":2}}`}, {"", `{"usage":null}`}, {"", `{"usage":{"prompt_tokens":null,"completion_tokens":3}}`},
		}, provider.Usage{Input: 10, Output: 3}},
		{"what is no count is dropped alone", []event{{"", `{"usage":{"prompt_tokens":"many","completion_tokens":-4,"input_tokens":1.5,"output_tokens":17}}`}}, provider.Usage{Output: 17}},
		{"more cached than prompted", []event{{"", `{"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":12},"completion_tokens":1}}`}}, provider.Usage{CacheRead: 10, Output: 1}},
		{"the model's own words are not read", []event{
			{"response.output_item.done", `{"item":{"usage":{"input_tokens":99}},"usage":{"input_tokens":99}}`},
			{"response.output_text.delta", `{"delta":"\"usage\": {}","usage":{"input_tokens":99}}`},
		}, provider.Usage{}},
		{"unreadable", []event{{"response.completed", `{"response":{"usage":`}, {"", `{"usage":[]}`}, {"", `what "usage"`}}, provider.Usage{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got provider.Usage
			for _, e := range c.events {
				xai.Provider{}.EventUsage(&got, e.name, []byte(e.data))
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestBodyUsage(t *testing.T) {
	for body, want := range map[string]provider.Usage{
		`{"object":"response","model":"grok-4.6","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":7}}`: {Model: "grok-4.6", Input: 40, CacheRead: 60, Output: 7},
		`{"type":"message","model":"grok-4.6","usage":{"input_tokens":4,"cache_read_input_tokens":60,"output_tokens":7}}`:                     {Model: "grok-4.6", Input: 4, CacheRead: 60, Output: 7},
		`{"input_tokens":2095}`: {}, // a token count is not consumption
		`{"usage":[]}`:          {},
		`not JSON`:              {},
		``:                      {},
	} {
		if got := (xai.Provider{}).BodyUsage([]byte(body)); got != want {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add("response.completed", `{"response":{"model":"m","usage":{"input_tokens":2,"input_tokens_details":{"cached_tokens":9}}}}`)
	f.Add("", `{"model":"m","choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":9223372036854775807,"total_tokens":1}}`)
	f.Add("message_delta", `{"usage":{"output_tokens":-1,"cache_read_input_tokens":3,"input_tokens":4}}`)
	f.Add("", `{"type":"error"}`)
	f.Add("response.output_item.added", `{"item":{"type":"message","text":5}}`)
	f.Fuzz(func(t *testing.T, name, data string) {
		p := xai.Provider{}
		if got := p.Event(name, []byte(data)); got < provider.Opening || got > provider.Terminal {
			t.Errorf("%s %q: got meaning %d", name, data, got)
		}
		once := provider.Usage{Model: "m", Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4}
		p.EventUsage(&once, name, []byte(data))
		if once.Input < 0 || once.CacheRead < 0 || once.CacheWrite < 0 || once.Output < 0 || once.Model == "" {
			t.Errorf("%s %q: got %+v", name, data, once)
		}
		twice := once
		p.EventUsage(&twice, name, []byte(data))
		if twice != once {
			t.Errorf("%s %q: told twice gives %+v, want %+v", name, data, twice, once)
		}
		if u := p.BodyUsage([]byte(data)); u.Input < 0 || u.CacheRead < 0 || u.Output < 0 {
			t.Errorf("%q: got %+v", data, u)
		}
	})
}
