package openai_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
	"holdfast/internal/test/capture"
)

func TestEvent(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       provider.Meaning
	}{
		{"response.created", `{"type":"response.created","response":{"error":null}}`, provider.Opening},
		{"response.queued", `{"type":"response.queued"}`, provider.Opening},
		{"response.in_progress", `{"type":"response.in_progress"}`, provider.Opening},
		// informational-event-read-as-terminal
		{"codex.rate_limits", `{"type":"codex.rate_limits","rate_limits":{"allowed":false,"limit_reached":true}}`, provider.Opening},
		{"codex.response.metadata", `{"type":"codex.response.metadata","headers":{}}`, provider.Opening},
		{"response.metadata", `{"type":"response.metadata"}`, provider.Opening},
		{"responsesapi.websocket_timing", `{}`, provider.Opening},
		{"keepalive", `{"type":"keepalive","sequence_number":3}`, provider.Opening},
		{"response.output_item.added", `{"type":"response.output_item.added","item":{"type":"reasoning","encrypted_content":"x"}}`, provider.Content},
		{"response.content_part.added", `{}`, provider.Content},
		{"response.output_text.delta", `{"delta":"Hello"}`, provider.Content},
		{"response.reasoning_summary_text.delta", `{"delta":"hm"}`, provider.Content},
		{"response.function_call_arguments.delta", `{"delta":"{"}`, provider.Content},
		{"response.output_item.done", `{}`, provider.Content},
		{"news_event", `{"type":"news_event"}`, provider.Content},
		{"response.completed", `{"type":"response.completed"}`, provider.Terminal},
		{"response.incomplete", `{"response":{"incomplete_details":{"reason":"max_output_tokens"}}}`, provider.Terminal},
		{"response.failed", `{"response":{"error":{"code":"server_is_overloaded"}}}`, provider.Failure},
		{"error", `{"type":"error","code":"server_error"}`, provider.Failure},
		{"error", `oh`, provider.Failure},
		// Without an event line the data's own type tells it.
		{"", `{"type":"response.created"}`, provider.Opening},
		{"", `{"type":"codex.rate_limits","rate_limits":{"limit_reached":true}}`, provider.Opening},
		{"", `{"type":"response.completed"}`, provider.Terminal},
		{"", `{"type":"response.failed"}`, provider.Failure},
		{"message", `{"type":"error","error":{}}`, provider.Failure},
		{"", ``, provider.Opening},
		{"", `what`, provider.Content},
		// Chat Completions.
		{"", `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}`, provider.Opening},
		{"", `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[]},"finish_reason":null}]}`, provider.Opening},
		{"", `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}`, provider.Content},
		{"", `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1"}]},"finish_reason":null}]}`, provider.Content},
		{"", `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}`, provider.Content},
		{"", `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, provider.Content},
		{"", `{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":1}}`, provider.Opening},
		{"", `{"object":"text_completion","choices":[{"text":"Hello","finish_reason":null}]}`, provider.Content},
		{"", `{"object":"text_completion","choices":[{"text":"","finish_reason":null}]}`, provider.Opening},
		{"", `{"error":{"message":"x","type":"server_error"}}`, provider.Failure},
		{"", `{"error":null,"choices":[]}`, provider.Opening},
		{"", `{"choices":"x"}`, provider.Content},
		{"", `[DONE]`, provider.Terminal},
		{"", ` [DONE] `, provider.Terminal},
	} {
		if got := (openai.Provider{}).Event(c.name, []byte(c.data)); got != c.want {
			t.Errorf("%s %s: got %v, want %v", c.name, c.data, got, c.want)
		}
	}
}

// Events that report limits, in each form known, and what is left out of them.
func TestEventReading(t *testing.T) {
	in := func(limits string) string { return `{"type":"codex.rate_limits","plan_type":"plus",` + limits + `}` }
	for _, c := range []struct {
		test, name, data string
		want             []string // nil: no reading
	}{
		{"both windows", "codex.rate_limits", in(`"rate_limits":{"allowed":true,"limit_reached":false,"primary":{"used_percent":25.5,"window_minutes":300,"reset_at":1804172400},"secondary":{"used_percent":50,"window_minutes":10080,"reset_at":1804672800}}`),
			[]string{"window five-hour utilization=0.255 resets=2027-03-04T15:00:00Z", "window weekly utilization=0.5 resets=2027-03-10T10:00:00Z"}},
		{"by the data's type", "", in(`"rate_limits":{"primary":{"used_percent":25,"window_minutes":300}}`), []string{"window five-hour utilization=0.25"}},
		{"reached is no verdict", "codex.rate_limits", in(`"rate_limits":{"allowed":false,"limit_reached":true,"primary":{"used_percent":100,"window_minutes":300,"reset_after_seconds":60}}`),
			[]string{"window five-hour utilization=1 resets=2027-03-04T10:01:00Z"}},
		{"an older word for the reset", "codex.rate_limits", in(`"rate_limits":{"primary":{"used_percent":1,"window_minutes":10080,"resets_in_seconds":60},"secondary":null}`),
			[]string{"window weekly utilization=0.01 resets=2027-03-04T10:01:00Z"}},
		{"numbers in strings", "codex.rate_limits", in(`"rate_limits":{"primary":{"used_percent":"1","window_minutes":"10080","reset_at":"1804172400"}}`),
			[]string{"window weekly utilization=0.01 resets=2027-03-04T15:00:00Z"}},
		{"bad values go alone", "codex.rate_limits", in(`"rate_limits":{"primary":{"used_percent":{},"window_minutes":300,"reset_at":1804172400},"secondary":7}`),
			[]string{"window five-hour resets=2027-03-04T15:00:00Z"}},
		{"another limit", "codex.rate_limits", in(`"limit_name":"codex_bengalfox","rate_limits":{"primary":{"used_percent":5,"window_minutes":300}}`), []string{"window five-hour:bengalfox utilization=0.05"}},
		{"the metered limit's name counts first", "codex.rate_limits", in(`"limit_name":"x","metered_limit_name":"codex","rate_limits":{"primary":{"used_percent":5,"window_minutes":300}}`), []string{"window five-hour utilization=0.05"}},
		{"premium is the main limit", "codex.rate_limits", in(`"limit_name":"premium","rate_limits":{"primary":{"used_percent":5,"window_minutes":300}}`), []string{"window five-hour utilization=0.05"}},
		{"additional limits", "codex.rate_limits", in(`"rate_limits":{},"additional_rate_limits":{"GPT-5.3-Codex-Spark":{"primary":{"used_percent":5,"window_minutes":300},"secondary":null},"codex_other":{"secondary":{"used_percent":6,"window_minutes":10080}},"odd":[]}`),
			[]string{"window five-hour:gpt-5.3-codex-spark utilization=0.05", "window weekly:other utilization=0.06"}},
		{"credits", "codex.rate_limits", in(`"rate_limits":{"primary":{"used_percent":100,"window_minutes":300}},"credits":{"has_credits":true,"unlimited":false,"balance":"3.5"}`),
			[]string{"window five-hour utilization=1", "overage available"}},
		{"no credits left", "codex.rate_limits", in(`"rate_limits":{"primary":{"used_percent":100,"window_minutes":300}},"credits":{"has_credits":true,"unlimited":false,"balance":0}`),
			[]string{"window five-hour utilization=1"}},
		{"headers of a frame", "error", `{"type":"error","status_code":429,"headers":{"X-Codex-Primary-Used-Percent":"100","x-codex-primary-window-minutes":300}}`, []string{"window five-hour utilization=1"}},
		{"headers of the metadata", "codex.response.metadata", `{"headers":{"x-codex-primary-used-percent":["7"],"x-codex-primary-window-minutes":["10080"]}}`, []string{"window weekly utilization=0.07"}},
		{"empty", "codex.rate_limits", in(`"rate_limits":{"allowed":true}`), nil},
		{"null", "codex.rate_limits", in(`"rate_limits":null`), nil},
		{"an error without headers", "error", `{"type":"error","error":{"type":"usage_limit_reached"}}`, nil},
		{"another event", "response.completed", in(`"rate_limits":{"primary":{"used_percent":5,"window_minutes":300}}`), nil},
		{"unreadable", "codex.rate_limits", `{"rate_limits":`, nil},
		{"no event", "", ``, nil},
	} {
		t.Run(c.test, func(t *testing.T) {
			r, ok := openai.Provider{}.EventReading(c.name, []byte(c.data), t0)
			if ok != (c.want != nil) {
				t.Fatalf("got a reading %v, want %v", ok, c.want != nil)
			}
			if !ok {
				return
			}
			if !r.At.Equal(t0) || r.Source != account.FromAnswer {
				t.Errorf("got a reading of %v from %q, want %v from answer", r.At, r.Source, t0)
			}
			if got := capture.Describe(r, account.Rejection{}, provider.Usage{}); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// The same limits say the same, as headers and as an event.
func TestEventReadingAgreesWithHeaders(t *testing.T) {
	fromHeaders := openai.Provider{}.Read(headers("c-primary-used-percent: 4", "c-primary-window-minutes: 10080", "c-primary-reset-at: 1804672800", "c-secondary-used-percent: 0", "c-secondary-window-minutes: 0"), t0)
	fromEvent, _ := openai.Provider{}.EventReading("codex.rate_limits", []byte(`{"rate_limits":{"primary":{"used_percent":4,"window_minutes":10080,"reset_at":1804672800},"secondary":{"used_percent":0,"window_minutes":0}}}`), t0)
	if !slices.Equal(fromHeaders.Windows, fromEvent.Windows) || len(fromEvent.Windows) != 1 {
		t.Errorf("got %+v from the event, want %+v", fromEvent.Windows, fromHeaders.Windows)
	}
}

func TestEventUsage(t *testing.T) {
	opened := event{"response.created", `{"response":{"model":"gpt-5.5","usage":null}}`}
	completed := func(usage string) event {
		return event{"response.completed", `{"response":{"model":"gpt-5.5","usage":` + usage + `}}`}
	}
	for _, c := range []struct {
		name   string
		events []event
		want   provider.Usage
	}{
		{"cut", []event{opened}, provider.Usage{Model: "gpt-5.5"}},
		{"cached tokens are part of the input", []event{opened, completed(`{"input_tokens":1200,"input_tokens_details":{"cached_tokens":1024},"output_tokens":450,"output_tokens_details":{"reasoning_tokens":120}}`)},
			provider.Usage{Model: "gpt-5.5", Input: 176, CacheRead: 1024, Output: 450, Reasoning: 120}},
		{"written tokens too", []event{completed(`{"input_tokens":1200,"input_tokens_details":{"cached_tokens":1000,"cache_write_tokens":150},"output_tokens":4}`)},
			provider.Usage{Model: "gpt-5.5", Input: 50, CacheRead: 1000, CacheWrite: 150, Output: 4}},
		{"without details", []event{completed(`{"input_tokens":1200,"output_tokens":4}`)}, provider.Usage{Model: "gpt-5.5", Input: 1200, Output: 4}},
		{"more cached than there is", []event{completed(`{"input_tokens":10,"input_tokens_details":{"cached_tokens":64,"cache_write_tokens":3},"output_tokens":4}`)},
			provider.Usage{Model: "gpt-5.5", CacheRead: 10, Output: 4}},
		{"what is no count is dropped alone", []event{completed(`{"input_tokens":-5,"input_tokens_details":[],"output_tokens":4}`)}, provider.Usage{Model: "gpt-5.5", Output: 4}},
		{"incomplete", []event{{"response.incomplete", `{"response":{"usage":{"input_tokens":3,"output_tokens":4}}}`}}, provider.Usage{Input: 3, Output: 4}},
		{"failed", []event{opened, {"response.failed", `{"response":{"usage":null}}`}}, provider.Usage{Model: "gpt-5.5"}},
		{"without event lines", []event{{"", `{"type":"response.completed","response":{"model":"m","usage":{"input_tokens":3,"output_tokens":4}}}`}}, provider.Usage{Model: "m", Input: 3, Output: 4}},
		{"chat", []event{
			{"", `{"model":"gpt-5.5","choices":[{"delta":{"role":"assistant"}}],"usage":null}`}, {"", `{"model":"gpt-5.5","choices":[{"delta":{"content":"x"}}]}`},
			{"", `{"model":"gpt-5.5","choices":[],"usage":{"prompt_tokens":1200,"prompt_tokens_details":{"cached_tokens":1024},"completion_tokens":450}}`}, {"", `[DONE]`},
		}, provider.Usage{Model: "gpt-5.5", Input: 176, CacheRead: 1024, Output: 450}},
		{"chat that mentions usage", []event{{"", `{"model":"gpt-5.5","choices":[{"delta":{"content":"\"usage\":{\"prompt_tokens\":9}"}}]}`}}, provider.Usage{Model: "gpt-5.5"}},
		{"other events", []event{opened, {"response.output_text.delta", `{"response":{"model":"x","usage":{"output_tokens":99}}}`}}, provider.Usage{Model: "gpt-5.5"}},
		{"unreadable", []event{opened, {"response.completed", `{"response":`}}, provider.Usage{Model: "gpt-5.5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got provider.Usage
			for _, e := range c.events {
				openai.Provider{}.EventUsage(&got, e.name, []byte(e.data))
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
		{`{"object":"response","model":"m","usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":2},"output_tokens":7}}`, provider.Usage{Model: "m", Input: 3, CacheRead: 2, Output: 7}},
		{`{"object":"chat.completion","model":"m","usage":{"prompt_tokens":5,"completion_tokens":7}}`, provider.Usage{Model: "m", Input: 5, Output: 7}},
		{`{"output":[]}`, provider.Usage{}},
		{`{"usage":[]}`, provider.Usage{}},
		{`not JSON`, provider.Usage{}},
		{``, provider.Usage{}},
	} {
		if got := (openai.Provider{}).BodyUsage([]byte(c.body)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.body, got, c.want)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add("response.completed", `{"response":{"model":"m","usage":{"input_tokens":2,"input_tokens_details":{"cached_tokens":9}}}}`)
	f.Add("codex.rate_limits", `{"rate_limits":{"primary":{"used_percent":1e308,"window_minutes":9e18,"reset_at":-1}},"additional_rate_limits":{":":{"primary":{"used_percent":5}}}}`)
	f.Add("error", `{"headers":{"x-codex-primary-used-percent":["NaN"],"":[]}}`)
	f.Add("", `{"choices":[{"delta":{"role":"assistant","content":null}}],"usage":{"prompt_tokens":-1}}`)
	f.Add("", `[DONE]`)
	f.Fuzz(func(t *testing.T, name, data string) {
		p := openai.Provider{}
		if got := p.Event(name, []byte(data)); got < provider.Opening || got > provider.Terminal {
			t.Errorf("%s %q: got meaning %d", name, data, got)
		}
		if r, ok := (openai.Provider{}).EventReading(name, []byte(data), t0); ok {
			checkReading(t, fmt.Sprint(name, data), r)
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
		if u := p.BodyUsage([]byte(data)); u.Input < 0 || u.CacheRead < 0 || u.CacheWrite < 0 || u.Output < 0 {
			t.Errorf("%q: got %+v", data, u)
		}
		// A failure is always classified.
		if p.Event(name, []byte(data)) == provider.Failure {
			x := p.Classify(provider.Answer{Status: 200, InStream: true, Header: http.Header{}, Body: []byte(data), At: t0, Kind: account.Subscription})
			if !x.Rejected() || x.Rule == "" {
				t.Errorf("%s %q: got %+v, want a class and a rule", name, data, x)
			}
		}
	})
}
