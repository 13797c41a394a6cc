package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/request/gateway"
	"holdfast/internal/simulate"
	"holdfast/internal/test/upstreamtest"
	"holdfast/internal/transport/forward"
)

// whole is what a script's answer to a request has for a body.
func whole(s upstreamtest.Script, r *upstreamtest.Request) string {
	var b bytes.Buffer
	for _, p := range s(r).Parts {
		b.Write(p.Data)
	}
	return b.String()
}

// sse-framing: the client gets exactly the upstream's bytes, however they are framed and
// cut.
func TestStreamsPassByteForByte(t *testing.T) {
	good := upstreamtest.Message(upstreamtest.ToolCall(), nil)
	tests := map[string]upstreamtest.Script{
		"as usual":            good,
		"CRLF":                good.With(upstreamtest.LineEnds("\r\n")),
		"CR":                  good.With(upstreamtest.LineEnds("\r")),
		"one byte at a time":  good.With(upstreamtest.ByteWise()),
		"a type with charset": good.With(upstreamtest.Header("Content-Type", "text/event-stream;charset=utf-8")),
		"another type":        good.With(upstreamtest.Header("Content-Type", "application/octet-stream")),
		"comments, a BOM, unknown events and cut characters": upstreamtest.Raw(200, http.Header{"Content-Type": {"text/event-stream"}}, []byte(
			"\ufeff: hello\n\nevent:message_start\ndata:{\"type\":\"message_start\"}\n\nevent: novelty\ndata: a\ndata: b\n\nevent: x\n\n"+
				"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"ä€😀\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")).With(upstreamtest.ByteWise()),
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "marlow", "juniper")
			b.prefer("marlow", "juniper")
			b.account("marlow").Always(script)
			r := b.served(ask{session: session(1), stream: true})
			if want := whole(script, b.up.Requests()[0]); r.body != want {
				t.Errorf("got\n%q\nwant\n%q", r.body, want)
			}
		})
	}
}

// buffered-streaming: an event arrives while the upstream still holds the next.
func TestEventsArriveAsTheyCome(t *testing.T) {
	for _, kind := range []string{"text/event-stream;charset=utf-8", "", "application/octet-stream"} {
		t.Run("type "+kind, func(t *testing.T) {
			b := newBench(t, "marlow")
			gate := upstreamtest.NewGate()
			script := upstreamtest.Good(nil).With(upstreamtest.HeldAfter(4, gate), upstreamtest.Header("Content-Type", kind))
			b.account("marlow").Queue(script)
			resp, err := http.DefaultTransport.RoundTrip(b.request(ask{session: session(1), stream: true}))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			in := bufio.NewReader(resp.Body)
			for seen := 0; seen < 4; {
				line, err := in.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if line == "\n" {
					seen++
				}
			}
			gate.Release()
			if rest, err := io.ReadAll(in); err != nil || !strings.Contains(string(rest), "message_stop") {
				t.Errorf("got %q, %v", rest, err)
			}
		})
	}
}

func TestErrorBeforeContentMoves(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	limit := simulate.Failure{Type: "rate_limit_error", Message: "This request would exceed your account's rate limit. Please try again later."}
	b.account("marlow").Queue(upstreamtest.Good(nil).With(upstreamtest.FailedAfter(3, limit)))
	r := b.served(ask{session: session(1), stream: true})
	if r.account() != "juniper" || r.pin() != "new" || strings.Count(r.body, "event: message_start") != 1 || strings.Contains(r.body, "event: error") {
		t.Errorf("got %s, pin %s:\n%s", r.account(), r.pin(), r.body)
	}
	if r := b.served(ask{session: session(1), stream: true}); r.account() != "juniper" || r.pin() != "kept" {
		t.Errorf("the next turn: got %s, pin %s, want juniper, kept", r.account(), r.pin())
	}
}

func TestErrorBeforeContentWithNowhereToGo(t *testing.T) {
	b := newBench(t, "marlow")
	limit := simulate.Failure{Type: "rate_limit_error", Message: "Error"}
	script := upstreamtest.Good(nil).With(upstreamtest.FailedAfter(3, limit))
	b.account("marlow").Queue(script)
	r := b.do(ask{session: session(1), stream: true})
	if want := whole(script, b.up.Requests()[0]); r.status != http.StatusOK || r.body != want {
		t.Errorf("got %d\n%s\nwant\n%s", r.status, r.body, want)
	}
}

func TestOverloadInStreamIsPassedOn(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	script := upstreamtest.Good(nil).With(upstreamtest.FailedAfter(1, simulate.Failure{Type: "overloaded_error", Message: "Overloaded"}))
	b.account("marlow").Queue(script)
	r := b.do(ask{session: session(1), stream: true})
	if want := whole(script, b.up.Requests()[0]); r.account() != "marlow" || r.body != want || b.sent() != 1 {
		t.Errorf("got %s after %d sends:\n%s", r.account(), b.sent(), r.body)
	}
}

// failover-after-bytes-sent
func TestNothingIsSentAgainOnceContentHasBegun(t *testing.T) {
	tool := upstreamtest.Message(upstreamtest.ToolCall(), nil)
	events := len(tool(&upstreamtest.Request{Stream: true}).Parts)
	middle := events - 3 // among the tool's input deltas
	t.Run("an error event is passed on", func(t *testing.T) {
		b := newBench(t, "marlow", "juniper")
		b.prefer("marlow", "juniper")
		script := tool.With(upstreamtest.FailedAfter(middle, simulate.Failure{Type: "overloaded_error", Message: "Overloaded"}))
		b.account("marlow").Queue(script)
		r := b.do(ask{session: session(1), stream: true})
		if want := whole(script, b.up.Requests()[0]); r.body != want || b.sent() != 1 {
			t.Errorf("after %d sends got\n%s\nwant\n%s", b.sent(), r.body, want)
		}
	})
	t.Run("a reset between two events ends in an error event", func(t *testing.T) {
		b := newBench(t, "marlow", "juniper")
		b.prefer("marlow", "juniper")
		b.account("marlow").Queue(tool.With(upstreamtest.ResetAfter(middle, 0)))
		r := b.do(ask{session: session(1), stream: true})
		if b.sent() != 1 || strings.Count(r.body, "event: message_start") != 1 || strings.Count(r.body, "event: error") != 1 || strings.Contains(r.body, "message_stop") {
			t.Errorf("after %d sends got\n%s", b.sent(), r.body)
		}
	})
	t.Run("a reset inside an event breaks the stream off", func(t *testing.T) {
		b := newBench(t, "marlow", "juniper")
		b.prefer("marlow", "juniper")
		b.account("marlow").Queue(tool.With(upstreamtest.ResetAfter(middle, 20)))
		r := b.do(ask{session: session(1), stream: true})
		if r.err == nil || b.sent() != 1 {
			t.Errorf("got a clean end after %d sends:\n%s", b.sent(), r.body)
		}
	})
	t.Run("a stream without its end is no clean end", func(t *testing.T) {
		b := newBench(t, "marlow")
		b.account("marlow").Queue(tool.With(upstreamtest.EndedAfter(middle)))
		r := b.do(ask{session: session(1), stream: true})
		if strings.Count(r.body, "event: error") != 1 {
			t.Errorf("got\n%s", r.body)
		}
	})
}

// client-gone-upstream-running
func TestClientLeaves(t *testing.T) {
	tests := map[string]struct {
		stream bool
		script func(*upstreamtest.Gate) upstreamtest.Script
		reads  int
	}{
		"before the headers": {true, func(g *upstreamtest.Gate) upstreamtest.Script {
			return upstreamtest.Good(nil).With(upstreamtest.Held(g))
		}, 0},
		"after some content": {true, func(g *upstreamtest.Gate) upstreamtest.Script {
			return upstreamtest.Good(nil).With(upstreamtest.HeldAfter(4, g))
		}, 1},
		"during a call of one piece": {false, func(g *upstreamtest.Gate) upstreamtest.Script {
			return upstreamtest.Good(nil).With(upstreamtest.Held(g))
		}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "marlow")
			gate := upstreamtest.NewGate()
			b.account("marlow").Queue(tt.script(gate))
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				resp, err := http.DefaultTransport.RoundTrip(b.request(ask{session: session(1), stream: tt.stream, ctx: ctx}))
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				done <- err
			}()
			<-gate.Reached()
			leave()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			<-b.up.Requests()[0].Left()
			b.await("the gauge", func() bool { return len(b.gw.InFlight()) == 0 })
			b.await("the log line", func() bool { return strings.Contains(b.log.String(), "client-left") })
			if st := b.state("marlow"); len(st.Blocks) != 0 || st.Parked != nil {
				t.Errorf("got %+v, want nothing held against the account", st)
			}
		})
	}
}

// A client that stays connected but reads nothing is given up.
func TestClientStopsReading(t *testing.T) {
	b := newBench(t, "marlow")
	limits := forward.DefaultLimits
	limits.Write = 300 * time.Millisecond
	g, url := b.process(b.store, func(o *gateway.Options) { o.Limits = limits })
	flood := upstreamtest.Raw(200, http.Header{"Content-Type": {"text/event-stream"}}, bytes.Repeat([]byte(": x\n\n"), 8<<20))
	b.account("marlow").Queue(flood)
	resp, err := http.DefaultTransport.RoundTrip(b.request(ask{session: session(1), stream: true, url: url}))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-b.up.Requests()[0].Left()
	b.await("the gauge", func() bool { return len(g.InFlight()) == 0 })
}

func TestUpstreamFallsSilent(t *testing.T) {
	b := newBench(t, "marlow")
	limits := forward.DefaultLimits
	limits.Idle, limits.KeepAlive = time.Second, 50*time.Millisecond
	_, url := b.process(b.store, func(o *gateway.Options) { o.Limits = limits })
	gate := upstreamtest.NewGate()
	b.account("marlow").Queue(upstreamtest.Good(nil).With(upstreamtest.HeldAfter(4, gate)))
	r := b.do(ask{session: session(1), stream: true, url: url})
	if !strings.Contains(r.body, "event: ping\ndata: {\"type\": \"ping\"}\n\n") || strings.Count(r.body, "event: error") != 1 || !strings.Contains(r.body, "silent") {
		t.Errorf("got\n%s", r.body)
	}
	<-b.up.Requests()[0].Left()
}

// A platform that ends requests at a deadline announces it: the client hears an
// error event, or an error, and never a clean end.
func TestTimeIsUp(t *testing.T) {
	b := newBench(t, "marlow")
	g, _ := b.process(b.store, nil)
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 300*time.Millisecond)
		defer cancel()
		g.ServeHTTP(w, r.WithContext(ctx))
	}))
	defer platform.Close()
	gate := upstreamtest.NewGate()
	b.account("marlow").Queue(upstreamtest.Good(nil).With(upstreamtest.HeldAfter(4, gate)), upstreamtest.Good(nil).With(upstreamtest.Held(gate)))
	r := b.do(ask{session: session(1), stream: true, url: platform.URL})
	if r.status != http.StatusOK || strings.Count(r.body, "event: error") != 1 || !strings.Contains(r.body, "time for this request is up") {
		t.Errorf("in mid-stream: got %d\n%s", r.status, r.body)
	}
	r = b.do(ask{session: session(1), stream: true, url: platform.URL})
	if r.status != http.StatusGatewayTimeout || r.errorKind() != "upstream_unreachable" {
		t.Errorf("before the headers: got %d %s", r.status, r.body)
	}
	if st := b.state("marlow"); len(st.Blocks) != 0 || st.Parked != nil {
		t.Errorf("got %+v, want nothing held against the account", st)
	}
}

func TestNoHeadersInTime(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	limits := forward.DefaultLimits
	limits.Headers = 100 * time.Millisecond
	_, url := b.process(b.store, func(o *gateway.Options) { o.Limits = limits })
	gate := upstreamtest.NewGate()
	b.account("marlow").Queue(upstreamtest.Good(nil).With(upstreamtest.Held(gate)))
	r := b.do(ask{session: session(1), url: url})
	if r.status != http.StatusBadGateway || r.errorKind() != "upstream_unreachable" || b.sent() != 1 {
		t.Errorf("got %d %s after %d sends: a body that was accepted must not be sent again", r.status, r.errorKind(), b.sent())
	}
}

// An answer that comes compressed although none was asked for is passed on as it is, and
// read on a side copy.
func TestCompressedAnswer(t *testing.T) {
	b := newBench(t, "marlow")
	now := b.clock.now()
	script := upstreamtest.Good(upstreamtest.Plan(0.77, now.Add(time.Hour), 0.3, now.Add(90*time.Hour))).With(upstreamtest.Gzip())
	b.account("marlow").Always(script)
	r := b.served(ask{session: session(1), stream: true, header: http.Header{"Accept-Encoding": {"gzip"}}})
	if want := whole(script, b.up.Requests()[0]); r.body != want || r.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("got coding %q and %d bytes, want gzip and %d", r.header.Get("Content-Encoding"), len(r.body), len(want))
	}
	if got := b.up.Requests()[0].Header.Get("Accept-Encoding"); got != "identity" {
		t.Errorf("the upstream was asked for %q, want identity", got)
	}
	if !strings.Contains(b.log.String(), `"output_tokens"`) {
		t.Error("the usage was not read")
	}
	if u := b.state("marlow").Windows[account.FiveHour].Utilization; u != 0.77 {
		t.Errorf("got a five-hour utilization of %v, want 0.77", u)
	}
}

// Usage of exactly 0 % is a reading like any other.
func TestReadingOfZeroReplacesAStaleOne(t *testing.T) {
	b := newBench(t, "marlow")
	b.fold("marlow", func(s account.State) account.State {
		return s.Observe(reading(b.clock.now(), 0.9, 0.9), 0, account.Rules{})
	})
	b.clock.advance(time.Minute)
	now := b.clock.now()
	b.account("marlow").Queue(upstreamtest.Good(upstreamtest.Plan(0, now.Add(5*time.Hour), 0, now.Add(150*time.Hour))))
	b.served(ask{session: session(1)})
	for _, w := range []string{account.FiveHour, account.Weekly} {
		if got := b.state("marlow").Windows[w]; got.Utilization != 0 || !got.HasUtilization {
			t.Errorf("%s: got %+v, want 0", w, got)
		}
	}
}

// warm-process-hazards
func TestPanicEndsOneRequest(t *testing.T) {
	b := newBench(t, "marlow")
	boom := true
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		if boom {
			panic("boom")
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	_, url := b.process(b.store, func(o *gateway.Options) { o.Transport = transport })
	r := b.do(ask{url: url})
	if r.status != http.StatusInternalServerError || r.errorKind() != "internal" || strings.Contains(r.body, "boom") {
		t.Errorf("got %d %s %s", r.status, r.errorKind(), r.body)
	}
	boom = false
	b.served(ask{url: url})
	if !strings.Contains(b.log.String(), "boom") {
		t.Error("the panic was not logged")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A panic in mid-stream breaks the answer off: no status is written into it, and it does
// not end well.
func TestPanicInMidStream(t *testing.T) {
	b := newBench(t, "marlow")
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			resp.Body = &panicking{resp.Body, 1}
		}
		return resp, err
	})
	_, url := b.process(b.store, func(o *gateway.Options) { o.Transport = transport })
	r := b.do(ask{url: url, stream: true, session: session(1)})
	if r.status != http.StatusOK || r.err == nil || strings.Contains(r.body, "internal") {
		t.Errorf("got %d, %v, %q, want a broken answer", r.status, r.err, r.body)
	}
	b.await("the gauge", func() bool { return len(b.gw.InFlight()) == 0 })
}

type panicking struct {
	io.ReadCloser
	after int
}

func (p *panicking) Read(b []byte) (int, error) {
	if p.after == 0 {
		panic("boom")
	}
	p.after--
	return p.ReadCloser.Read(b[:64])
}

// Some clients leave at the stream's own last event, without waiting for the connection to
// end: they were served.
func TestClientThatLeavesAtTheEnd(t *testing.T) {
	b := newBench(t, "marlow")
	gate := upstreamtest.NewGate()
	script := upstreamtest.Good(nil)
	b.account("marlow").Queue(script.With(upstreamtest.HeldAfter(1000, gate)))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	resp, err := http.DefaultTransport.RoundTrip(b.request(ask{session: session(1), stream: true, ctx: ctx}))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-gate.Reached()
	for heard := ""; !strings.Contains(heard, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"); {
		p := make([]byte, 4096)
		n, err := resp.Body.Read(p)
		if heard += string(p[:n]); err != nil {
			t.Fatalf("got %v after %q, want the last event", err, heard)
		}
	}
	leave()
	b.await("the log line", func() bool { return strings.Contains(b.log.String(), `"msg":"request"`) })
	if !strings.Contains(b.log.String(), `"outcome":"served"`) {
		t.Errorf("got %s, want it served", b.log.String())
	}
}
