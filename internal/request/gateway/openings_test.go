package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/simulate"
	"holdfast/internal/test/upstreamtest"
)

// opening are the events that come before content, each about size bytes long, as Codex's
// backend repeats instructions and tools in them.
func opening(size int) []string {
	text := strings.Repeat("Prefer small steps. ", size/2/20)
	tools := strings.Repeat(`{"type":"function","name":"shell","parameters":{"type":"object","properties":{"command":{"type":"string"}}}},`, size/2/105) + `{"type":"web_search"}`
	var events []string
	for _, kind := range []string{"response.created", "response.in_progress"} {
		events = append(events, fmt.Sprintf(`{"type":%q,"response":{"id":"resp_1","status":"in_progress","instructions":%q,"tools":[%s],"error":null}}`, kind, text, tools))
	}
	return events
}

const spentInStream = `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":40000}}}`

// TestLargeOpeningIsHeldBack is field case the-opening-is-large: an account that is spent says
// so behind events that repeat the request; another answers then, and has the conversation.
func TestLargeOpeningIsHeldBack(t *testing.T) {
	for _, size := range []int{2 << 10, 38 << 10, 100 << 10, 300 << 10, 900 << 10} {
		for name, framed := range map[string]func(...string) []byte{"named": frame, "unnamed": unnamed} {
			t.Run(fmt.Sprintf("%d KiB, %s", size>>10, name), func(t *testing.T) {
				b := codexBench(t, "tansy", "thistle")
				b.account("tansy").Queue(upstreamtest.Raw(http.StatusOK, eventStream, framed(append(opening(size), spentInStream)...)))
				first := b.served(codexAsk(1, "gpt-5.5"))
				if first.account() != "thistle" || first.pin() != "new" || first.body != string(frame(responsesStream...)) {
					t.Fatalf("got %s, pin %s, %d bytes", first.account(), first.pin(), len(first.body))
				}
				if r := b.served(codexAsk(1, "gpt-5.5")); r.account() != "thistle" || r.pin() != "kept" {
					t.Errorf("the next turn: got %s, pin %s", r.account(), r.pin())
				}
				if n := b.sent(); n != 3 {
					t.Errorf("got %d sends, want 3", n)
				}
			})
		}
	}
}

// unnamed is frame without event lines.
func unnamed(events ...string) []byte {
	return []byte("data: " + strings.Join(events, "\n\ndata: ") + "\n\n")
}

// The same in the other dialects and at the other providers.
func TestLargeOpeningsElsewhere(t *testing.T) {
	filler := strings.Repeat("x", 300<<10)
	t.Run("anthropic", func(t *testing.T) {
		b := newBench(t, "marlow", "juniper")
		b.prefer("marlow", "juniper")
		start := fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_1","content":[],"note":%q}}`, filler)
		limit := `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."}}`
		b.account("marlow").Queue(streamed(start, start, limit))
		if r := b.served(ask{session: session(1), stream: true}); r.account() != "juniper" || r.pin() != "new" {
			t.Errorf("got %s, pin %s", r.account(), r.pin())
		}
	})
	for _, path := range []string{"/v1/responses", "/v1/chat/completions"} {
		t.Run("xai "+path, func(t *testing.T) {
			b := newBench(t)
			b.add(account.XAI, account.Key, "bracken", "sedge")
			l := lane{path: path, model: "grok-4.6"}
			first := opening(300 << 10)
			if path == "/v1/chat/completions" {
				first = []string{fmt.Sprintf(`{"object":"chat.completion.chunk","note":%q,"choices":[{"index":0,"delta":{"role":"assistant"}}]}`, filler)}
			}
			b.account("bracken").Queue(streamed(append(first, `{"error":{"code":"resource-exhausted","message":"Too many requests for team and model."}}`)...))
			if r := b.served(l.ask()); r.account() != "sedge" {
				t.Errorf("got %s\n%.300s", r.account(), r.body)
			}
		})
	}
}

// What is held back is bounded: an opening of more than 2 MiB goes to the client, with what
// follows.
func TestHeldOpeningIsBounded(t *testing.T) {
	b := codexBench(t, "tansy", "thistle")
	events := append(opening(1200<<10), spentInStream)
	b.account("tansy").Queue(streamed(events...))
	if r := b.served(codexAsk(1, "gpt-5.5")); r.account() != "tansy" || r.body != string(frame(events...)) {
		t.Errorf("got %s, %d bytes", r.account(), len(r.body))
	}
	if r := b.served(codexAsk(1, "gpt-5.5")); r.account() != "thistle" || r.pin() != "new" {
		t.Errorf("the next turn: got %s, pin %s", r.account(), r.pin())
	}
}

// With nowhere to move to, nothing is held: the opening arrives while the upstream still has
// the failure. The failure is passed on, and leaves no pin that would keep the conversation
// from an account that can serve it.
func TestFailureBeforeContentLeavesNoPin(t *testing.T) {
	gate := upstreamtest.NewGate()
	b := codexBench(t, "tansy")
	events := append(opening(100<<10), spentInStream)
	b.account("tansy").Queue(stream(events...).With(upstreamtest.HeldAfter(2, gate)))
	resp, err := http.DefaultTransport.RoundTrip(b.request(codexAsk(1, "gpt-5.5")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	held := make([]byte, len(frame(events[:2]...)))
	if _, err := io.ReadFull(resp.Body, held); err != nil || string(held) != string(frame(events[:2]...)) {
		t.Fatalf("the opening: got %d bytes, %v", len(held), err)
	}
	gate.Release()
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != string(frame(spentInStream)) {
		t.Fatalf("got %q, %v", rest, err)
	}
	b.add(account.OpenAI, account.Subscription, "thistle")
	if r := b.served(codexAsk(1, "gpt-5.5")); r.account() != "thistle" || r.pin() != "new" {
		t.Errorf("the next turn: got %s, pin %s, want thistle, new", r.account(), r.pin())
	}
}

// A first turn that failed before any content leaves no pin, whatever failed, and however it
// was told; one that failed after that, or a later turn, changes nothing.
func TestFirstTurnThatFails(t *testing.T) {
	overloaded := simulate.Failure{Type: "overloaded_error", Message: "Overloaded"}
	good := upstreamtest.Good(nil)
	for name, c := range map[string]struct {
		script upstreamtest.Script
		pinned bool
	}{
		"an event of overload before content": {good.With(upstreamtest.FailedAfter(1, overloaded)), false},
		"an event of overload after content":  {good.With(upstreamtest.FailedAfter(4, overloaded)), true},
		"a reset before content":              {good.With(upstreamtest.ResetAfter(3, 0)), false},
		"a reset amid the opening":            {good.With(upstreamtest.ResetAfter(1, 9)), false},
		"a reset after content":               {good.With(upstreamtest.ResetAfter(4, 0)), true},
		"a body that ends before content":     {good.With(upstreamtest.EndedAfter(2)), false},
		"a status of overload":                {upstreamtest.Failed(529, overloaded), false},
		"a status for the client":             {upstreamtest.Refusal("unknown-field"), false},
		"a good end":                          {good, true},
	} {
		for _, names := range [][]string{{"marlow"}, {"marlow", "juniper"}} {
			t.Run(fmt.Sprintf("%s, %d accounts", name, len(names)), func(t *testing.T) {
				b := newBench(t, names...)
				b.prefer("marlow", names[1:]...)
				b.account("marlow").Queue(c.script)
				b.do(ask{session: session(1), stream: true})
				want := "new"
				if c.pinned {
					want = "kept"
				}
				if r := b.served(ask{session: session(1), stream: true}); r.pin() != want || r.account() != "marlow" {
					t.Errorf("the next turn: got %s, pin %s, want marlow, %s", r.account(), r.pin(), want)
				}
				b.account("marlow").Queue(c.script)
				b.do(ask{session: session(1), stream: true})
				if r := b.served(ask{session: session(1), stream: true}); r.pin() != "kept" {
					t.Errorf("after a later turn: got pin %s, want kept", r.pin())
				}
			})
		}
	}
}

// What was held back is given up once it is sent: an open stream needs no more memory after a
// large opening than after a small one.
func TestHeldOpeningIsNotKept(t *testing.T) {
	const streams = 20
	gate := upstreamtest.NewGate()
	b := codexBench(t, "tansy", "thistle")
	begin := frame(append(opening(900<<10), responsesStream[2])...)
	for _, name := range []string{"tansy", "thistle"} {
		b.account(name).Always(upstreamtest.Raw(http.StatusOK, eventStream, begin).With(upstreamtest.HeldAfter(1, gate)))
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range streams {
		resp, err := http.DefaultTransport.RoundTrip(b.request(codexAsk(i, "gpt-5.5")))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if n, err := io.CopyN(io.Discard, resp.Body, int64(len(begin))); err != nil {
			t.Fatalf("got %d bytes, %v", n, err)
		}
	}
	if grown := heap() - before; grown > streams*256<<10 {
		t.Errorf("got %d KiB for each open stream, want at most 256", grown/streams>>10)
	}
	gate.Release()
}
