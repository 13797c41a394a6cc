package upstreamtest

import (
	"fmt"
	"maps"
	"net/http"
	"time"

	"holdfast/internal/simulate"
)

// Good is a good answer with the limit headers given (see Plan and Key; nil sends none):
// a stream when the request asks for one, else JSON. Its text names the account and the request.
func Good(limits http.Header) Script {
	return func(r *Request) Answer {
		return Message(simulate.Message{
			ID:     fmt.Sprintf("msg_test_%06d", r.Number),
			Blocks: []simulate.Block{{Text: Text(r)}},
			Usage:  simulate.Usage{Input: 3, CacheWrite: 540, CacheRead: 11460, Output: 17},
		}, limits)(r)
	}
}

// Text is what Good answers to a request.
func Text(r *Request) string {
	return fmt.Sprintf("Answer %d, by account %s.", r.Number, r.Account)
}

// Message answers with a message of the test's own. An empty model repeats the request's.
func Message(m simulate.Message, limits http.Header) Script {
	return func(r *Request) Answer {
		m := m // a script may answer several requests at once
		if m.Model == "" {
			m.Model = r.Model
		}
		a := Answer{Header: header(r)}
		maps.Copy(a.Header, limits)
		if !r.Stream {
			a.Header.Set("Content-Type", "application/json")
			a.Parts = []Part{{Data: m.JSON()}}
			return a
		}
		a.Header.Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range m.Events() {
			a.Parts = append(a.Parts, Part{Data: e.Bytes()})
		}
		return a
	}
}

// ToolCall is a message of some text and a call of a tool whose input comes in several
// deltas: the content that is worst to cut in the middle.
func ToolCall() simulate.Message {
	return simulate.Message{
		ID: "msg_test_tool",
		Blocks: []simulate.Block{
			{Text: "I will look."},
			{Tool: "Read", CallID: "toolu_test_01", Input: `{"file_path":"/somewhere/with/a/long/name/file.txt","limit":100}`},
		},
		StopReason: "tool_use",
		Usage:      simulate.Usage{Input: 3, CacheWrite: 540, CacheRead: 11460, Output: 42},
	}
}

// Plan is the headers of a subscription that allows: its five-hour and weekly windows.
func Plan(fiveHour float64, fiveHourReset time.Time, weekly float64, weeklyReset time.Time) http.Header {
	return simulate.Unified{
		Status: "allowed", Claim: "five_hour", ResetAt: fiveHourReset, FallbackPercentage: 0.5,
		Windows: []simulate.Window{
			{Name: "5h", Status: "allowed", Utilization: fiveHour, ResetAt: fiveHourReset},
			{Name: "7d", Status: "allowed", Utilization: weekly, ResetAt: weeklyReset},
		},
		OverageStatus: "rejected", OverageDisabled: "org_level_disabled",
	}.Header()
}

// Key is the headers of an API key with the given remaining of 1000 requests, 2 million
// input tokens and 400 thousand output tokens a minute, all full again at the reset.
func Key(requests, input, output int64, reset time.Time) http.Header {
	return simulate.KeyLimits{
		{Name: "requests", Limit: 1000, Remaining: requests, ResetAt: reset},
		{Name: "input-tokens", Limit: 2_000_000, Remaining: input, ResetAt: reset},
		{Name: "output-tokens", Limit: 400_000, Remaining: output, ResetAt: reset},
		{Name: "tokens", Limit: 2_400_000, Remaining: input + output, ResetAt: reset},
	}.Header()
}

// Raw answers with these very bytes, such as a capture's. The header is sent as it is.
func Raw(status int, h http.Header, body []byte) Script {
	return func(*Request) Answer {
		a := Answer{Status: status, Header: http.Header{}}
		maps.Copy(a.Header, h)
		if body != nil {
			a.Parts = []Part{{Data: body}}
		}
		return a
	}
}

// header is what every answer of the provider carries.
func header(r *Request) http.Header {
	h := http.Header{}
	h.Set("request-id", requestID(r))
	if r.organization != "" {
		h.Set("anthropic-organization-id", r.organization)
	}
	return h
}

func requestID(r *Request) string { return fmt.Sprintf("req_test_%06d", r.Number) }
