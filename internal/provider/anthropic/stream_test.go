package anthropic_test

import (
	"testing"

	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
)

func TestEvent(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       provider.Meaning
	}{
		{"message_start", `{"type":"message_start","message":{}}`, provider.Opening},
		{"ping", `{"type":"ping"}`, provider.Opening},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, provider.Opening},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, provider.Opening},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hel"}}`, provider.Content},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}`, provider.Content},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_01","name":"Bash","input":{}}}`, provider.Content},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"x"}}`, provider.Content},
		{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","content":[]}}`, provider.Content},
		{"content_block_start", `{`, provider.Content},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`, provider.Content},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`, provider.Content},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"new_delta"}}`, provider.Content},
		{"content_block_stop", `{"type":"content_block_stop","index":0}`, provider.Content},
		{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, provider.Content},
		{"message_stop", `{"type":"message_stop"}`, provider.Terminal},
		{"error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, provider.Failure},
		{"error", `oh`, provider.Failure},
		{"news_event", `{"type":"news_event"}`, provider.Content},
		// Without an event line the data's own type tells it.
		{"", `{"type":"message_start","message":{}}`, provider.Opening},
		{"", `{"type":"error","error":{}}`, provider.Failure},
		{"", `{"type":"message_stop"}`, provider.Terminal},
		{"", `what`, provider.Content},
		{"", ``, provider.Opening},
		// The old completions.
		{"completion", `{"type":"completion","completion":" Hello","stop_reason":null}`, provider.Content},
		{"completion", `{"type":"completion","completion":"","stop_reason":"stop_sequence"}`, provider.Terminal},
	} {
		if got := (anthropic.Provider{}).Event(c.name, []byte(c.data)); got != c.want {
			t.Errorf("%s %s: got %v, want %v", c.name, c.data, got, c.want)
		}
	}
}

func TestEventUsage(t *testing.T) {
	start := event{"message_start", `{"type":"message_start","message":{"model":"claude-opus-5","usage":{"input_tokens":2,"cache_creation_input_tokens":540,"cache_read_input_tokens":41200,"output_tokens":1}}}`}
	opened := provider.Usage{Model: "claude-opus-5", Input: 2, CacheWrite: 540, CacheRead: 41200, Output: 1}
	with := func(change func(*provider.Usage)) provider.Usage {
		u := opened
		change(&u)
		return u
	}
	for _, c := range []struct {
		name   string
		events []event
		want   provider.Usage
	}{
		{"cut before the first delta", []event{start}, opened},
		{"output alone", []event{start, {"message_delta", `{"usage":{"output_tokens":17}}`}}, with(func(u *provider.Usage) { u.Output = 17 })},
		{"cumulative, never added", []event{start, {"message_delta", `{"usage":{"output_tokens":10}}`}, {"message_delta", `{"usage":{"output_tokens":17}}`}},
			with(func(u *provider.Usage) { u.Output = 17 })},
		{"the last value corrects", []event{start, {"message_delta", `{"usage":{"input_tokens":5,"cache_read_input_tokens":0,"output_tokens":17}}`}},
			with(func(u *provider.Usage) { u.Input, u.CacheRead, u.Output = 5, 0, 17 })},
		{"null is not told", []event{start, {"message_delta", `{"usage":{"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":17}}`}},
			with(func(u *provider.Usage) { u.Output = 17 })},
		{"what is no count is dropped alone", []event{start, {"message_delta", `{"usage":{"input_tokens":"many","cache_read_input_tokens":-4,"cache_creation_input_tokens":1.5,"output_tokens":17}}`}},
			with(func(u *provider.Usage) { u.Output = 17 })},
		{"iterations are not added", []event{start, {"message_delta", `{"usage":{"output_tokens":17,"iterations":[{"input_tokens":2,"output_tokens":17}]}}`}},
			with(func(u *provider.Usage) { u.Output = 17 })},
		{"no usage", []event{start, {"message_delta", `{"delta":{"stop_reason":"end_turn"}}`}}, opened},
		{"usage null", []event{start, {"message_delta", `{"usage":null}`}}, opened},
		{"unreadable", []event{start, {"message_delta", `{"usage":`}, {"message_start", `[]`}}, opened},
		{"other events", []event{start, {"ping", `{"usage":{"output_tokens":99}}`}, {"content_block_delta", `{"usage":{"output_tokens":99}}`}}, opened},
		{"without event lines", []event{{"", `{"type":"message_start",` + start.data[len(`{"type":"message_start",`):]}, {"", `{"type":"message_delta","usage":{"output_tokens":17}}`}},
			with(func(u *provider.Usage) { u.Output = 17 })},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got provider.Usage
			for _, e := range c.events {
				anthropic.Provider{}.EventUsage(&got, e.name, []byte(e.data))
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestBodyUsage(t *testing.T) {
	for _, c := range []struct {
		body string
		want provider.Usage
	}{
		{`{"model":"claude-opus-5","content":[{"type":"text","text":"usage"}],"usage":{"input_tokens":2,"cache_creation_input_tokens":3,"cache_read_input_tokens":4,"output_tokens":5}}`,
			provider.Usage{Model: "claude-opus-5", Input: 2, CacheWrite: 3, CacheRead: 4, Output: 5}},
		{`{"input_tokens":2095}`, provider.Usage{}}, // a token count is not consumption
		{`{"usage":[]}`, provider.Usage{}},
		{`not JSON`, provider.Usage{}},
		{``, provider.Usage{}},
	} {
		if got := (anthropic.Provider{}).BodyUsage([]byte(c.body)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.body, got, c.want)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add("message_start", `{"type":"message_start","message":{"model":"m","usage":{"input_tokens":2}}}`)
	f.Add("message_delta", `{"usage":{"output_tokens":-1}}`)
	f.Add("", `{"type":"error"}`)
	f.Add("content_block_start", `{"content_block":{"type":"text","text":5}}`)
	f.Fuzz(func(t *testing.T, name, data string) {
		p := anthropic.Provider{}
		if got := p.Event(name, []byte(data)); got < provider.Opening || got > provider.Terminal {
			t.Errorf("%s %q: got meaning %d", name, data, got)
		}
		before := provider.Usage{Model: "m", Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4}
		once := before
		p.EventUsage(&once, name, []byte(data))
		if once.Input < 0 || once.CacheRead < 0 || once.CacheWrite < 0 || once.Output < 0 || once.Model == "" {
			t.Errorf("%s %q: got %+v", name, data, once)
		}
		twice := once
		p.EventUsage(&twice, name, []byte(data))
		if twice != once {
			t.Errorf("%s %q: told twice gives %+v, want %+v", name, data, twice, once)
		}
		if u := p.BodyUsage([]byte(data)); u.Input < 0 || u.Output < 0 {
			t.Errorf("%q: got %+v", data, u)
		}
	})
}
