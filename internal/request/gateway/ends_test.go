package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/request/gateway"
	"holdfast/internal/test/upstreamtest"
)

// lane is a way for a stream through the gateway: a provider, a path, and its events.
type lane struct {
	name   string
	path   string
	model  string
	events []string
	// failed begins the error event of the lane's dialect.
	failed string
	// alive is what keeps it alive.
	alive string
}

const (
	pingEvent = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	comment   = ": keep-alive\n"
)

// messageStream are the events of a good answer of Messages, completionStream and
// completeStream those of the older paths.
var (
	messageStream = []string{
		`{"type":"message_start","message":{"id":"msg_1","model":"claude-opus-5","usage":{"input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello."}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":17}}`,
		`{"type":"message_stop"}`,
	}
	completeStream = []string{
		`{"type":"completion","completion":" Hello","stop_reason":null}`, `{"type":"completion","completion":".","stop_reason":null}`,
		`{"type":"completion","completion":"","stop_reason":"stop_sequence"}`,
	}
	completionStream = []string{
		`{"object":"text_completion","choices":[{"text":"Hel","index":0,"logprobs":null,"finish_reason":null}]}`,
		`{"object":"text_completion","choices":[{"text":"lo.","index":0,"logprobs":null,"finish_reason":null}]}`,
		`{"object":"text_completion","choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}]}`,
		`[DONE]`,
	}
)

const (
	messagesError  = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
	responsesError = "event: response.failed\ndata: {\"type\":\"response.failed\","
	chatError      = "data: {\"error\":{\"message\":"
)

// lanes are all that speak one of the dialects.
var lanes = []lane{
	{"anthropic messages", "/v1/messages", "claude-opus-5", messageStream, messagesError, pingEvent},
	{"anthropic complete", "/v1/complete", "claude-2.1", completeStream, messagesError, pingEvent},
	{"anthropic chat", "/anthropic/v1/chat/completions", "claude-opus-5", chatStream, chatError, comment},
	{"openai responses", "/v1/responses", "gpt-5.5", responsesStream, responsesError, comment},
	{"openai chat", "/v1/chat/completions", "gpt-5.5", chatStream, chatError, comment},
	{"openai completions", "/v1/completions", "gpt-5.5", completionStream, chatError, comment},
	{"xai responses", "/v1/responses", "grok-4.6", responsesStream, responsesError, comment},
	{"xai chat", "/v1/chat/completions", "grok-4.6", chatStream, chatError, comment},
	{"xai completions", "/v1/completions", "grok-4.6", completionStream, chatError, comment},
	{"xai messages", "/xai/v1/messages", "grok-4.6", messageStream, messagesError, pingEvent},
}

func (l lane) ask() ask {
	return ask{path: l.path, body: fmt.Sprintf(`{"model":%q,"stream":true,"max_tokens":9,"prompt":"hello","input":"hello","messages":[{"role":"user","content":"hello"}]}`, l.model)}
}

// stream answers with events, each a part of its own, so that mods can come between them.
func stream(events ...string) upstreamtest.Script {
	return func(r *upstreamtest.Request) upstreamtest.Answer {
		a := upstreamtest.Raw(http.StatusOK, eventStream, nil)(r)
		a.Parts = nil
		for _, e := range events {
			a.Parts = append(a.Parts, upstreamtest.Part{Data: frame(e)})
		}
		return a
	}
}

// laneBench has a key at each provider, and an upstream that answers every path by script.
func laneBench(t *testing.T, l lane, script upstreamtest.Script) *bench {
	t.Helper()
	b := newBench(t, "marlow")
	b.addOf(account.OpenAI, "tansy", account.Key)
	b.addOf(account.XAI, "bracken", account.Key)
	b.clock.advance(2 * time.Second)
	b.up.OnPath(strings.TrimPrefix(strings.TrimPrefix(l.path, "/anthropic"), "/xai"), script)
	return b
}

// TestStreamIsOver is field case a-stream-that-is-over: where a stream's protocol says that
// it is at its end, the client's answer ends too, whole, whatever the connection does then.
func TestStreamIsOver(t *testing.T) {
	for _, l := range lanes {
		gate := upstreamtest.NewGate() // never opened
		for name, mod := range map[string]upstreamtest.Mod{
			"the connection stays open": upstreamtest.HeldAfter(len(l.events), gate),
			"it is reset":               upstreamtest.ResetAfter(len(l.events), 0),
			"it is cut":                 upstreamtest.TruncatedAfter(len(l.events), 0),
		} {
			t.Run(l.name+", "+name, func(t *testing.T) {
				t.Parallel()
				b := laneBench(t, l, stream(l.events...).With(mod))
				if r := b.served(l.ask()); r.body != string(frame(l.events...)) {
					t.Errorf("got\n%s", r.body)
				}
				<-b.up.Requests()[0].Ended()
				if !strings.Contains(b.log.String(), `"outcome":"served"`) || strings.Contains(b.log.String(), `"outcome":"cut"`) {
					t.Errorf("got the log %s", b.log)
				}
			})
		}
	}
}

// A response that is read again is over in the same way; so is a compressed answer, as far as
// it can be read.
func TestOtherStreamsThatAreOver(t *testing.T) {
	gate := upstreamtest.NewGate() // never opened
	open := upstreamtest.HeldAfter(len(responsesStream), gate)
	for name, c := range map[string]struct {
		ask
		script upstreamtest.Script
		whole  bool
	}{
		"read again":             {ask{method: "GET", path: "/v1/responses/resp_1?stream=true"}, stream(responsesStream...).With(open), true},
		"read again, cut":        {ask{method: "GET", path: "/v1/responses/resp_1?stream=true"}, stream(responsesStream...).With(upstreamtest.EndedAfter(3)), false},
		"compressed":             {lanes[3].ask(), stream(responsesStream...).With(upstreamtest.Gzip(), open), true},
		"compressed, cut":        {lanes[3].ask(), stream(responsesStream[:3]...).With(upstreamtest.Gzip()), false},
		"in an unknown coding":   {lanes[3].ask(), stream(responsesStream...).With(upstreamtest.Header("Content-Encoding", "rot13")), true},
		"by another type":        {lanes[3].ask(), stream(responsesStream...).With(open, upstreamtest.Header("Content-Type", "application/octet-stream")), true},
		"by another type, cut":   {lanes[3].ask(), stream(responsesStream...).With(upstreamtest.EndedAfter(3), upstreamtest.Header("Content-Type", "application/octet-stream")), false},
		"the backend's spelling": {ask{path: "/openai/backend-api/codex/responses", body: lanes[3].ask().body}, stream(responsesStream...).With(open), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := laneBench(t, lanes[3], c.script)
			b.up.OnPath("/v1/responses/resp_1", c.script)
			r := b.do(c.ask)
			if whole := r.err == nil && !strings.Contains(r.body, responsesError); r.status != http.StatusOK || whole != c.whole {
				t.Errorf("got %d, %v\n%s", r.status, r.err, r.body)
			}
		})
	}
}

// What follows behind the end within moments is passed on, and so is what follows an error.
func TestStreamIsOverByAnError(t *testing.T) {
	for _, l := range lanes {
		event := map[string]string{
			messagesError:  `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			responsesError: `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Sorry."}}}`,
			chatError:      `{"error":{"message":"Sorry.","type":"server_error","code":"server_error"}}`,
		}[l.failed]
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			events := []string{l.events[0], l.events[1], event}
			gate := upstreamtest.NewGate()
			b := laneBench(t, l, stream(append(events, `{"type":"late"}`)...).With(upstreamtest.HeldAfter(4, gate)))
			if r := b.served(l.ask()); r.body != string(frame(append(events, `{"type":"late"}`)...)) {
				t.Errorf("got\n%s", r.body)
			}
			<-b.up.Requests()[0].Left()
		})
	}
}

// TestLargeEndIsSeen is field case a-stream-that-is-over, its large event: what says that a
// stream is over is found in an event of any size, and what it used too.
func TestLargeEndIsSeen(t *testing.T) {
	for _, size := range []int{60 << 10, 70 << 10, 2 << 20, 5 << 20} {
		for _, named := range []bool{false, true} {
			for _, model := range []string{"gpt-5.5", "grok-4.6"} {
				l := lane{path: "/v1/responses", model: model}
				text := strings.Repeat("x", size)
				end := `{"type":"response.completed","response":{"id":"resp_1","instructions":"` + text + `","output":[{"type":"message","content":[{"type":"output_text","text":"` +
					text + `"}]}],"status":"completed","usage":{"input_tokens":4321,"output_tokens":99}}}`
				body := "data: " + responsesStream[0] + "\n\n" + "data: " + end + "\n\n"
				if named {
					body = string(frame(responsesStream[0], end))
				}
				script := upstreamtest.Raw(http.StatusOK, eventStream, []byte(body))
				if size == 2<<20 { // and the connection stays open
					script = script.With(upstreamtest.HeldAfter(1, upstreamtest.NewGate()))
				}
				b := laneBench(t, l, script)
				if r := b.served(l.ask()); r.body != body {
					t.Errorf("%s, %d bytes, named %v: got %d bytes, want %d", model, size, named, len(r.body), len(body))
				}
				if log := b.log.String(); !strings.Contains(log, `"output_tokens":99`) || !strings.Contains(log, `"outcome":"served"`) {
					t.Errorf("%s, %d bytes, named %v: got the log %s", model, size, named, log)
				}
			}
		}
	}
}

// Chat Completions are whole, too, where every choice has its finish reason and the body
// ends; and nothing else is.
func TestChatEndsByItsChoices(t *testing.T) {
	second := []string{
		`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"A"},"finish_reason":null}]}`,
		`{"object":"chat.completion.chunk","choices":[{"index":1,"delta":{"content":"B"},"finish_reason":null}]}`,
		`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"object":"chat.completion.chunk","choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`,
		`{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`,
	}
	for _, l := range lanes {
		if l.failed != chatError || l.events[0] != chatStream[0] {
			continue
		}
		for name, c := range map[string]struct {
			events []string
			whole  bool
		}{
			"one choice, without [DONE]":         {chatStream[:3], true},
			"two choices and usage":              {second, true},
			"two choices":                        {second[:4], true},
			"two choices, one without an end":    {second[:3], false},
			"one choice without an end":          {chatStream[:2], false},
			"an end without choices, by [DONE]":  {[]string{`[DONE]`}, true},
			"usage alone":                        {second[4:], false},
			"an end, and another choice goes on": {[]string{second[2], second[1]}, false},
		} {
			t.Run(l.name+", "+name, func(t *testing.T) {
				b := laneBench(t, l, stream(c.events...))
				r := b.served(l.ask())
				rest, ok := strings.CutPrefix(r.body, string(frame(c.events...)))
				if !ok || (rest == "") != c.whole || (rest != "" && !strings.HasPrefix(rest, chatError)) {
					t.Errorf("got\n%s", r.body)
				}
			})
		}
	}
}

// TestCutStreamsEndInTheirDialect is field case an-error-in-the-wrong-dialect: what is added
// to a stream that broke off between two events is an error to the clients of its path.
func TestCutStreamsEndInTheirDialect(t *testing.T) {
	for _, l := range lanes {
		for name, mod := range map[string]upstreamtest.Mod{
			"reset": upstreamtest.ResetAfter(2, 0), "cut": upstreamtest.TruncatedAfter(2, 0), "ended early": upstreamtest.EndedAfter(2),
		} {
			t.Run(l.name+", "+name, func(t *testing.T) {
				b := laneBench(t, l, stream(l.events...).With(mod))
				r := b.served(l.ask())
				added, ok := strings.CutPrefix(r.body, string(frame(l.events[:2]...)))
				if !ok || !strings.HasPrefix(added, l.failed) || strings.Count(added, "\n\n") != 1 || !strings.HasSuffix(added, "\n\n") {
					t.Fatalf("got\n%s", r.body)
				}
				_, data, _ := strings.Cut(added, "data: ")
				var e struct {
					Error struct{ Type, Message string }
				}
				if err := json.Unmarshal([]byte(data), &e); err != nil || e.Error.Type == "" || !strings.HasPrefix(e.Error.Message, "holdfast: ") {
					t.Errorf("got %s, %v", data, err)
				}
			})
		}
		t.Run(l.name+", in the middle of an event", func(t *testing.T) {
			b := laneBench(t, l, stream(l.events...).With(upstreamtest.ResetAfter(2, 12)))
			if r := b.do(l.ask()); r.err == nil {
				t.Errorf("got a clean end\n%s", r.body)
			}
		})
	}
}

// A stream in another protocol ends with its body, whatever its events are called, and a cut
// one is broken off, since no event of ours would be understood.
func TestOtherStreamsEndWithTheirBody(t *testing.T) {
	l := lane{path: "/v1/images/generations", model: "gpt-image-2"}
	events := []string{`{"type":"image_generation.partial_image"}`, `{"type":"response.completed"}`, `{"type":"image_generation.completed"}`}
	for _, model := range []string{"gpt-image-2", "grok-imagine"} {
		l.model = model
		gate := upstreamtest.NewGate()
		b := laneBench(t, l, stream(events...).With(upstreamtest.HeldAfter(2, gate)))
		resp, err := http.DefaultTransport.RoundTrip(b.request(l.ask()))
		if err != nil {
			t.Fatal(err)
		}
		<-gate.Reached()
		gate.Release()
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != string(frame(events...)) {
			t.Errorf("%s: got %q, %v", model, body, err)
		}
		b = laneBench(t, l, stream(events...).With(upstreamtest.ResetAfter(1, 0)))
		if r := b.do(l.ask()); r.err == nil || r.body != string(frame(events[0])) {
			t.Errorf("%s, cut: got %q, %v", model, r.body, r.err)
		}
	}
}

// TestSilence is field case keep-alive-in-the-client's-dialect.
func TestSilence(t *testing.T) {
	quick := func(o *gateway.Options) { o.Limits.KeepAlive = 20 * time.Millisecond }
	begin := func(t *testing.T, b *bench, a ask) *http.Response {
		_, a.url = b.process(b.store, quick)
		resp, err := http.DefaultTransport.RoundTrip(b.request(a))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	for _, l := range lanes {
		t.Run(l.name, func(t *testing.T) {
			gate := upstreamtest.NewGate()
			b := laneBench(t, l, stream(l.events...).With(upstreamtest.HeldAfter(2, gate)))
			resp := begin(t, b, l.ask())
			want := string(frame(l.events[:2]...)) + l.alive + l.alive
			got := make([]byte, len(want))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
			gate.Release()
			rest, err := io.ReadAll(resp.Body)
			if err != nil || strings.ReplaceAll(string(rest), l.alive, "") != string(frame(l.events[2:]...)) {
				t.Errorf("got %q, %v behind the silence", rest, err)
			}
		})
	}
	// Nothing is put where it does not belong: the silence outlasts many intervals.
	silence := upstreamtest.SilentAfter(2, 200*time.Millisecond)
	inside := upstreamtest.Rewritten(func(p []byte) []byte { return p[:len(p)-1] }) // every event lacks its end
	for name, script := range map[string]upstreamtest.Script{
		"a compressed answer": stream(messageStream...).With(upstreamtest.Gzip(), silence), // which the client's transport decodes
		"amid an event":       stream(messageStream...).With(inside, silence),
		"an answer in JSON":   upstreamtest.Good(nil).With(upstreamtest.ByteWise(), silence),
	} {
		t.Run(name, func(t *testing.T) {
			l := lanes[0]
			b := laneBench(t, l, script)
			a := l.ask()
			if name == "an answer in JSON" {
				a.body = strings.Replace(a.body, `"stream":true`, `"stream":false`, 1)
			}
			resp := begin(t, b, a)
			got, err := io.ReadAll(resp.Body)
			if cut := name == "amid an event"; (err != nil) != cut || strings.Contains(string(got), pingEvent) || len(got) == 0 {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestHalfClosedClient is field case half-closed-client: a client that closes its side and
// reads on must not take a cut answer for a whole one; nor must one of HTTP/1.0, to which the
// end of the connection is a good end.
func TestHalfClosedClient(t *testing.T) {
	large := `{"type":"message","content":[{"type":"text","text":"` + strings.Repeat("x", 60<<20) + `"}]}`
	send := func(b *bench, version, body string) (*net.TCPConn, *bufio.Reader) {
		c := b.dial().(*net.TCPConn)
		fmt.Fprintf(c, "POST /v1/messages HTTP/%s\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", version, b.key, len(body), body)
		return c, bufio.NewReader(c)
	}
	judged := upstreamtest.NewGate()
	for name, c := range map[string]struct {
		version string
		script  upstreamtest.Script
		stream  bool
	}{
		"a stream":              {"1.1", stream(messageStream...), true},
		"a stream, HTTP/1.0":    {"1.0", stream(messageStream...), true},
		"a large JSON":          {"1.1", upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}}, []byte(large)), false},
		"a large JSON, chunked": {"1.1", upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}}, []byte(large)).With(upstreamtest.HeldAfter(1, upstreamtest.NewGate())), false},
		"an error handed back":  {"1.1", upstreamtest.Refusal("api-error").With(upstreamtest.ByteWise(), upstreamtest.HeldAfter(20, judged)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := c.script
			if c.stream {
				script = script.With(upstreamtest.HeldAfter(3, upstreamtest.NewGate()))
			}
			b := newBench(t, "marlow")
			b.account("marlow").Always(script)
			conn, in := send(b, c.version, fmt.Sprintf(`{"model":"claude-opus-5","stream":%v,"messages":[]}`, c.stream))
			if name == "an error handed back" { // nothing comes before it is judged
				<-judged.Reached()
			} else if _, err := in.Peek(1); err != nil {
				t.Fatal(err)
			}
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(in, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Error("got a clean end of a cut answer")
			}
		})
	}
	t.Run("HTTP/1.0, cut in the middle of an event", func(t *testing.T) {
		b := newBench(t, "marlow")
		b.account("marlow").Always(stream(messageStream...).With(upstreamtest.ResetAfter(3, 20)))
		_, in := send(b, "1.0", `{"model":"claude-opus-5","stream":true,"messages":[]}`)
		if got, err := io.ReadAll(in); err == nil {
			t.Errorf("got a clean end\n%s", got)
		}
	})
	t.Run("HTTP/1.0, cut between two events", func(t *testing.T) {
		b := newBench(t, "marlow")
		b.account("marlow").Always(stream(messageStream...).With(upstreamtest.ResetAfter(3, 0)))
		_, in := send(b, "1.0", `{"model":"claude-opus-5","stream":true,"messages":[]}`)
		if got, err := io.ReadAll(in); err != nil || !strings.Contains(string(got), messagesError) {
			t.Errorf("got %v\n%s", err, got)
		}
	})
	t.Run("HTTP/1.0, whole", func(t *testing.T) {
		b := newBench(t, "marlow")
		b.account("marlow").Always(stream(messageStream...))
		_, in := send(b, "1.0", `{"model":"claude-opus-5","stream":true,"messages":[]}`)
		if got, err := io.ReadAll(in); err != nil || !strings.HasSuffix(string(got), string(frame(messageStream...))) {
			t.Errorf("got %v\n%s", err, got)
		}
	})
}

// JSON that came where events were asked for is no place for an event of ours.
func TestCutJSONIsBrokenOff(t *testing.T) {
	begun := []byte(`{"type":"message","content":[{"type":"text","text":"` + strings.Repeat("x", 3<<20))
	for _, media := range []string{"application/octet-stream", "application/json", "text/event-stream"} {
		b := newBench(t, "marlow")
		b.account("marlow").Queue(upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {media}}, begun).With(upstreamtest.TruncatedAfter(1, 0)))
		if r := b.do(ask{session: session(1), stream: true}); r.err == nil || strings.Contains(r.body, "holdfast") {
			t.Errorf("%s: got %d bytes, %v, want a broken connection", media, len(r.body), r.err)
		}
	}
}
