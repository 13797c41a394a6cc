package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pin"
	"holdfast/internal/test/upstreamtest"
)

// plainly asks for the answer as it comes.
var plainly = http.Header{"Accept-Encoding": {"identity"}}

// livePins are the pins that have not ended.
func (b *bench) livePins() []pin.Record {
	b.t.Helper()
	pins, err := b.store.Pins(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var live []pin.Record
	for _, p := range pins {
		if p.Live(b.clock.now()) {
			live = append(live, p)
		}
	}
	return live
}

// chunked is an answer whose length is not told.
func chunked(status int, h http.Header, body string) upstreamtest.Script {
	return upstreamtest.Raw(status, h, []byte(body)).With(upstreamtest.ByteWise())
}

// TestSuccessThatIsNone is field case a-success-that-is-none: a 2xx that is neither JSON nor
// events is of something between, and the client hears 502 at once; nothing is held against
// the account.
func TestSuccessThatIsNone(t *testing.T) {
	const (
		page = "<!DOCTYPE html><title>Welcome</title>"
		lost = "upstream connect error or disconnect/reset before headers. reset reason: connection failure"
	)
	of := func(media string) http.Header { return http.Header{"Content-Type": {media}} }
	gzipped := func(media string) http.Header {
		return http.Header{"Content-Type": {media}, "Content-Encoding": {"gzip"}}
	}
	tests := []struct {
		name   string
		header http.Header
		body   string
	}{
		{"empty", of("application/json"), ""},
		{"blank lines", of("application/json"), "\n\n \r\n\n"},
		{"blank lines for events", of("text/event-stream"), "\n\n\n"},
		{"a text", of("text/plain"), lost},
		{"a text without a type", http.Header{"Content-Type": nil}, lost},
		{"a text for JSON", of("application/json"), lost},
		{"a text for events", of("text/event-stream"), lost},
		{"a mark and a page for JSON", of("application/json"), "\ufeff" + page},
		{"a page for events", of("text/event-stream"), page},
		{"a page", of("text/html"), page},
		{"a page, compressed, for JSON", gzipped("application/json"), string(zip(t, page))},
		{"blanks, compressed", gzipped("application/json"), string(zip(t, "\n\n"))},
		{"nothing, compressed", gzipped("application/json"), string(zip(t, ""))},
		{"a page that is not compressed as it says", gzipped("application/json"), page},
		{"the beginning of a field", of("text/event-stream"), "data"},
		{"a number", of("application/json"), "404"},
	}
	for _, d := range dialects {
		for _, tt := range tests {
			for _, streamed := range []bool{false, true} {
				for _, bytewise := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %s, stream %v, bytewise %v", d.path, tt.name, streamed, bytewise), func(t *testing.T) {
						script := upstreamtest.Raw(200, tt.header, []byte(tt.body))
						if bytewise {
							script = chunked(200, tt.header, tt.body)
						}
						b := twoOf(t, d.provider)
						b.account("first").Always(script)
						b.account("second").Always(script)
						r := b.do(ask{path: d.path, model: d.model, stream: streamed, session: session(1), header: plainly})
						if r.status != http.StatusBadGateway || r.errorKind() != "upstream_unreachable" || b.sent() != 1 {
							t.Errorf("got %d %s %q after %d sends, want 502 after one", r.status, r.errorKind(), r.body, b.sent())
						}
						for _, name := range []string{"first", "second"} {
							if st := b.state(name); len(st.Blocks) != 0 || st.Parked != nil {
								t.Errorf("%s: got %+v, want nothing held against it", name, st.State)
							}
						}
						if pins := b.livePins(); len(pins) != 0 {
							t.Errorf("got pins %v, want none", pins)
						}
					})
				}
			}
		}
	}
}

// What is JSON or events passes as it came, whatever it calls itself and stands behind.
func TestSuccessUnderAnOddName(t *testing.T) {
	events := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"word\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	tests := []struct{ name, media, coding, body string }{
		{"JSON as text", "text/plain", "", message},
		{"JSON as events", "text/event-stream", "", message},
		{"JSON behind blanks", "application/json", "", "\n\n  " + message + "\n"},
		{"JSON behind a mark", "application/json", "", "\ufeff" + message},
		{"JSON, compressed", "application/json", "gzip", string(zip(t, "\n"+message))},
		{"JSON of a coding that we do not know", "application/json", "rot13", "{whatever"},
		{"events as text", "text/plain", "", events},
		{"events as JSON", "application/json", "", events},
		{"events behind a mark", "text/event-stream", "", "\ufeff" + events},
		{"events behind a comment", "text/event-stream", "", "\n: hello\n\n" + events},
		{"events, compressed", "text/event-stream", "gzip", string(zip(t, events))},
	}
	for _, tt := range tests {
		for _, streamed := range []bool{false, true} {
			for _, bytewise := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, stream %v, bytewise %v", tt.name, streamed, bytewise), func(t *testing.T) {
					h := http.Header{"Content-Type": {tt.media}}
					if tt.coding != "" {
						h.Set("Content-Encoding", tt.coding)
					}
					script := upstreamtest.Raw(200, h, []byte(tt.body))
					if bytewise {
						script = chunked(200, h, tt.body)
					}
					b := newBench(t, "marlow", "juniper")
					b.account("marlow").Always(script)
					b.account("juniper").Always(script)
					r := b.served(ask{session: session(1), stream: streamed, header: plainly})
					if r.body != tt.body || b.sent() != 1 {
						t.Errorf("got %q after %d sends, want it as it came", r.body, b.sent())
					}
					if again := b.served(ask{session: session(1), stream: streamed, header: plainly}); again.pin() != "kept" {
						t.Errorf("got pin %s then, want it kept", again.pin())
					}
					b.await("the log", func() bool { return strings.Count(b.log.String(), `"outcome":"served"`) == 2 })
				})
			}
		}
	}
}

// Blanks that keep a slow answer's connection open do no harm, as long as an answer follows.
func TestBlanksBeforeASlowAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		whole bool
	}{
		"an answer": {message, true}, "nothing": {"", false}, "a page": {"<html>", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQuiet(t, roundTripper(func(r *http.Request) (*http.Response, error) {
					out, in := io.Pipe()
					go func() {
						for range 5 {
							_, _ = io.WriteString(in, " \n")
							_ = pass(r.Context(), time.Second)
						}
						_, _ = io.WriteString(in, tt.text)
						_ = in.Close()
					}()
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: out, ContentLength: -1}, nil
				}), nil)
				broken := false
				w := func() (w interface{ Len() int }) {
					defer func() { broken = recover() != nil }() // how net/http has a connection broken off
					return q.ask(t.Context(), false).Body
				}()
				if broken == tt.whole || tt.whole && w.Len() != 10+len(message) {
					t.Errorf("broken off: %v, want %v", broken, !tt.whole)
				}
			})
		})
	}
}

// failedAnswers are 200 that say, as JSON, that the work failed.
var failedAnswers = []struct {
	name     string
	provider account.Provider
	path     string
	body     string
	parks    bool
}{
	{"a response, throttled", account.OpenAI, "/v1/responses", `{"id":"resp_1","object":"response","created_at":1,"status":"failed","error":{"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 20s."},"output":[],"usage":null}`, false},
	{"a response without money", account.OpenAI, "/v1/responses", `{"id":"resp_1","object":"response","status":"failed","error":{"code":"insufficient_quota","message":"You exceeded your current quota."},"output":[]}`, true},
	{"a response of xAI", account.XAI, "/xai/v1/responses", `{"id":"resp_1","object":"response","status":"failed","error":{"code":"personal-team-blocked:spending-limit","message":"Your team has used all available credits."},"output":[]}`, true},
	{"a completion", account.OpenAI, "/v1/chat/completions", `{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota."}}`, true},
	{"a message", account.Anthropic, "/v1/messages", `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, true},
}

// TestFailedAnswer is field case a-success-that-is-none: JSON that says that the work failed
// is judged like a status, and another account answers where it may.
func TestFailedAnswer(t *testing.T) {
	for _, tt := range failedAnswers {
		for name, script := range map[string]upstreamtest.Script{
			"of told length": upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}}, []byte(tt.body)),
			"chunked":        chunked(200, http.Header{"Content-Type": {"application/json"}}, tt.body),
			"behind a mark":  upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}}, []byte("\ufeff"+tt.body)),
			"compressed":     upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, zip(t, tt.body)),
		} {
			for _, streamed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, stream %v", tt.name, name, streamed), func(t *testing.T) {
					b := twoOf(t, tt.provider)
					b.account("first").Always(script)
					b.account("second").Always(upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}}, []byte(message)))
					model := map[account.Provider]string{account.OpenAI: "gpt-5.5", account.XAI: "grok-4.6"}[tt.provider]
					for n := range 2 {
						r := b.served(ask{path: tt.path, model: model, stream: streamed, session: session(n), header: plainly})
						if r.account() != "second" || r.body != message {
							t.Errorf("got %s %s, want the other account's answer", r.account(), r.body)
						}
					}
					st := b.state("first")
					if (st.Parked != nil) != tt.parks || !tt.parks && len(st.Blocks) == 0 {
						t.Errorf("got %+v, want it parked %v, or else paused", st.State, tt.parks)
					}
					if n := len(b.account("first").Requests()); n != 1 {
						t.Errorf("the account was asked %d times, want once", n)
					}
				})
			}
		}
	}
}

// With nowhere to go a failed answer is the client's, as it came; it is learnt from, and
// leaves no pin.
func TestFailedAnswerWithNowhereToGo(t *testing.T) {
	for _, tt := range failedAnswers {
		for _, bytewise := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, bytewise %v", tt.name, bytewise), func(t *testing.T) {
				b := newBench(t)
				b.addOf(tt.provider, "only", account.Key)
				script := upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}}, []byte(tt.body))
				if bytewise {
					script = chunked(200, http.Header{"Content-Type": {"application/json"}}, tt.body)
				}
				b.account("only").Queue(script)
				model := map[account.Provider]string{account.OpenAI: "gpt-5.5", account.XAI: "grok-4.6"}[tt.provider]
				r := b.do(ask{path: tt.path, model: model, session: session(1), header: plainly})
				switch {
				case tt.parks && (r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account"):
					t.Errorf("got %d %s, want 503: the account needs its owner", r.status, r.errorKind())
				case !tt.parks && (r.status != http.StatusOK || r.body != tt.body):
					t.Errorf("got %d %s, want it as it came", r.status, r.body)
				}
				b.await("the log", func() bool { return strings.Contains(b.log.String(), `"msg":"request"`) })
				if st := b.state("only"); (st.Parked != nil) != tt.parks || !tt.parks && len(st.Blocks) == 0 {
					t.Errorf("got %+v, want it parked %v, or else paused", st.State, tt.parks)
				}
				if pins := b.livePins(); len(pins) != 0 {
					t.Errorf("got pins %v, want none", pins)
				}
			})
		}
	}
}

// A failure of the provider's own is handed on: nothing is sent again.
func TestFailedAnswerOfTheProvider(t *testing.T) {
	body := `{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error","message":"The model failed."},"output":[]}`
	b := twoOf(t, account.OpenAI)
	b.account("first").Queue(upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}}, []byte(body)))
	r := b.do(ask{path: "/v1/responses", model: "gpt-5.5", session: session(1)})
	if r.status != http.StatusOK || r.body != body || b.sent() != 1 {
		t.Errorf("got %d %s after %d sends, want it as it came", r.status, r.body, b.sent())
	}
}
