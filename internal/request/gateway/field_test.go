package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pin"
	"holdfast/internal/request/gateway"
	"holdfast/internal/store"
	"holdfast/internal/test/upstreamtest"
)

// dial opens a raw connection to the gateway.
func (b *bench) dial() net.Conn {
	b.t.Helper()
	c, err := new(net.Dialer).DialContext(b.t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// silent-success-from-our-own-adapter: a client that closes its side after the request is
// taken for gone, and must not read an empty success.
func TestHalfClosedClientHearsNoSuccess(t *testing.T) {
	b := newBench(t, "marlow")
	gate := upstreamtest.NewGate()
	b.account("marlow").Queue(upstreamtest.Good(nil).With(upstreamtest.Held(gate)))
	c := b.dial()
	body := `{"model":"claude-opus-5","messages":[]}`
	fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", b.key, len(body), body)
	<-gate.Reached()
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(c); len(got) > 0 {
		t.Errorf("got %q, want a broken connection", got)
	}
}

// A refusal is not held up by a body that never comes.
func TestRefusalDoesNotWaitForTheBody(t *testing.T) {
	b := newBench(t, "marlow")
	for request, want := range map[string]string{
		"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{":               "401",
		"POST /nope HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n": "404",
	} {
		c := b.dial()
		fmt.Fprint(c, request)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(resp.Status, want) || !resp.Close {
			t.Errorf("got %s, close %v, want %s and the connection's end", resp.Status, resp.Close, want)
		}
		resp.Body.Close()
	}
}

func TestAnswersThatNoProviderGives(t *testing.T) {
	page := http.Header{"Content-Type": {"text/html"}}
	for name, script := range map[string]upstreamtest.Script{
		"204":           upstreamtest.Raw(204, nil, nil),
		"a redirect":    upstreamtest.Raw(302, http.Header{"Location": {"http://portal.example/login"}}, nil),
		"307":           upstreamtest.Raw(307, http.Header{"Location": {"http://portal.example/login"}}, nil),
		"a page as 401": upstreamtest.Raw(401, page, []byte("<html>proxy login</html>")),
		"a page as 403": upstreamtest.Raw(403, page, []byte("<html>blocked by policy</html>")),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "marlow", "juniper")
			b.prefer("marlow", "juniper")
			b.account("marlow").Queue(script)
			r := b.do(ask{session: session(1)})
			if r.status != http.StatusBadGateway || r.errorKind() != "upstream_unreachable" || r.header.Get("Location") != "" || b.sent() != 1 {
				t.Errorf("got %d %s after %d sends", r.status, r.errorKind(), b.sent())
			}
			if st := b.state("marlow"); len(st.Blocks) != 0 || st.Parked != nil {
				t.Errorf("got %+v, want nothing held against the account", st)
			}
		})
	}
}

// A stream was asked for and something else came, whole: it is passed on whole.
func TestPlainAnswerToAStreamRequest(t *testing.T) {
	b := newBench(t, "marlow")
	b.account("marlow").Queue(upstreamtest.Raw(200, http.Header{"Content-Type": {"text/plain"}}, []byte(message)))
	if r := b.served(ask{session: session(1), stream: true}); r.body != message {
		t.Errorf("got %q", r.body)
	}
}

func TestAsidesLimitsAreTheirOwn(t *testing.T) {
	b := newBench(t, "marlow")
	b.up.OnPath("/v1/messages/count_tokens", upstreamtest.Throttled(time.Minute))
	if r := b.do(ask{path: "/v1/messages/count_tokens"}); r.status != http.StatusTooManyRequests {
		t.Fatalf("got %d", r.status)
	}
	b.served(ask{session: session(1)})
}

// Conversations of two turns each over two equal accounts split about evenly: what an
// account was given weighs on it only until it has answered.
func TestEqualAccountsShareEvenly(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	now := b.clock.now()
	for _, name := range []string{"marlow", "juniper"} {
		b.fold(name, func(s account.State) account.State {
			return s.Observe(account.Reading{At: now, Source: account.FromAnswer, Windows: []account.WindowReading{
				{Name: account.FiveHour, Utilization: 0.42, HasUtilization: true, ResetAt: now.Add(3 * time.Hour)},
				{Name: account.Weekly, Utilization: 0.2, HasUtilization: true, ResetAt: now.Add(80 * time.Hour)},
			}}, 0, account.Rules{})
		})
		b.account(name).Always(upstreamtest.Good(upstreamtest.Plan(0.42, now.Add(3*time.Hour), 0.2, now.Add(80*time.Hour))))
	}
	b.served(ask{session: session(0)}) // one with a single turn
	got := map[string]int{}
	for i := range 40 {
		b.served(ask{session: session(1 + i)})
		got[b.served(ask{session: session(1 + i)}).account()]++
	}
	if got["marlow"] < 10 || got["juniper"] < 10 {
		t.Errorf("got %v of 40", got)
	}
}

// An account that answers new conversations with overload is not shunned for it: the
// conversations that failed are no load.
func TestFailedPlacementsAreNoLoad(t *testing.T) {
	b := newBench(t, "marlow")
	b.account("marlow").Always(upstreamtest.Overloaded())
	for i := range 5 {
		b.do(ask{session: session(i)})
	}
	if st := b.state("marlow"); st.Placed != 5 || st.LoadSeen != 5 {
		t.Errorf("got %d placed and %d seen, want 5 and 5", st.Placed, st.LoadSeen)
	}
}

// entitlement-429-read-as-exhaustion: that one request was refused a feature moves no other
// conversation.
func TestFeatureThatNobodyHasMovesNobody(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	long := http.Header{"Anthropic-Beta": {"context-1m-2025-08-07"}}
	home := map[int]string{}
	for i := range 8 {
		b.prefer([]string{"marlow", "juniper"}[i%2], []string{"juniper", "marlow"}[i%2])
		home[i] = b.served(ask{session: session(i), header: long}).account()
	}
	now := b.clock.now()
	for _, name := range []string{"marlow", "juniper"} {
		b.account(name).Queue(upstreamtest.NotEntitled(now.Add(time.Hour)))
	}
	if r := b.do(ask{session: session(99), header: long}); r.status != http.StatusTooManyRequests {
		t.Fatalf("got %d", r.status)
	}
	for i := range 8 {
		if r := b.served(ask{session: session(i), header: long}); r.account() != home[i] || r.pin() != "kept" {
			t.Errorf("conversation %d: got %s, pin %s, want %s, kept", i, r.account(), r.pin(), home[i])
		}
	}
	for _, name := range []string{"marlow", "juniper"} {
		if len(b.state(name).Refuses) > 0 {
			t.Errorf("%s: good answers did not end the memory", name)
		}
	}
}

// When no account serves, the conversation stays where its cache is.
func TestPinIsRestoredWhenNobodyServes(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	now := b.clock.now()
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(now.Add(20 * time.Minute)))
	b.account("juniper").Queue(upstreamtest.FiveHourSpent(now.Add(30 * time.Minute)))
	if r := b.do(ask{session: session(1)}); r.status != http.StatusTooManyRequests || r.pin() == "moved" {
		t.Fatalf("got %d, pin %s, want 429 and no move", r.status, r.pin())
	}
	b.clock.advance(31 * time.Minute)
	b.prefer("juniper", "marlow")
	if r := b.served(ask{session: session(1)}); r.account() != "marlow" || r.pin() != "kept" {
		t.Errorf("got %s, pin %s, want marlow, kept", r.account(), r.pin())
	}
}

// interloper moves a pin on its own account just before another's second write of it.
type interloper struct {
	store.Backend
	writes atomic.Int64
	to     account.ID
}

func (f *interloper) Put(ctx context.Context, r store.Record, c store.Condition) (store.Record, error) {
	if r.Kind == store.KindPin && f.writes.Add(1) == 2 {
		var theirs pin.Record
		if err := json.Unmarshal(r.Body, &theirs); err != nil {
			return store.Record{}, err
		}
		theirs.Account = f.to
		body, err := json.Marshal(theirs)
		if err != nil {
			return store.Record{}, err
		}
		moved := r
		moved.Body = body
		if _, err := f.Backend.Put(ctx, moved, c); err != nil {
			return store.Record{}, err
		}
	}
	return f.Backend.Put(ctx, r, c)
}

// pin-store-races: a request whose second move another process forestalled leaves the pin
// where that one put it, also when the request itself is served by nobody.
func TestRestoringUndoesNobodyElsesMove(t *testing.T) {
	b := newBench(t, "marlow", "juniper", "rowan", "linden")
	b.prefer("marlow", "juniper", "rowan", "linden")
	b.served(ask{session: session(1)})
	now := b.clock.now()
	b.fold("linden", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.WindowSpent, At: now, Spent: []account.Spent{{Window: account.FiveHour, ResetAt: now.Add(9 * time.Minute)}}}, account.Rules{})
	})
	for _, name := range []string{"marlow", "juniper", "rowan"} {
		b.account(name).Queue(upstreamtest.FiveHourSpent(now.Add(time.Hour)))
	}
	_, url := b.process(store.New(&interloper{Backend: b.backend(), to: "acc-linden"}), nil)
	if r := b.do(ask{session: session(1), url: url}); r.status != http.StatusTooManyRequests {
		t.Fatalf("got %d %s", r.status, r.body)
	}
	pins, err := b.store.Pins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pins {
		if p.Account != "acc-linden" {
			t.Errorf("got the pin on %s, want it where the other process moved it", p.Account)
		}
	}
}

// A hop before anything was cached is no move, and a conversation that nobody served has
// no pin.
func TestFreshPins(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(time.Hour)))
	if r := b.served(ask{session: session(1)}); r.account() != "juniper" || r.pin() != "new" {
		t.Errorf("got %s, pin %s, want juniper, new", r.account(), r.pin())
	}
	b.account("juniper").Queue(func(*upstreamtest.Request) upstreamtest.Answer { panic(http.ErrAbortHandler) })
	if r := b.do(ask{session: session(2)}); r.status != http.StatusBadGateway {
		t.Errorf("got %d", r.status)
	}
	pins, err := b.store.Pins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live := 0
	for _, p := range pins {
		if !p.MovedAt.IsZero() {
			t.Error("a better beginning counts as a move")
		}
		if p.Live(b.clock.now()) {
			live++
		}
	}
	if live != 1 {
		t.Errorf("got %d live pins, want the served conversation's", live)
	}
}

// account-owned-state-crosses-accounts
func TestConversationWithAFileStays(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	body := `{"model":"claude-opus-5","max_tokens":10,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_011C"}}]}]}`
	b.served(ask{session: session(1)})
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(time.Hour)))
	if r := b.do(ask{session: session(1), body: body}); r.status != http.StatusTooManyRequests || r.account() != "marlow" {
		t.Errorf("got %d from %s, want the account's own 429", r.status, r.account())
	}
	r := b.do(ask{session: session(1), body: body})
	if r.status != http.StatusTooManyRequests || r.errorKind() != "exhausted" || !strings.Contains(r.body, "no other can continue it") {
		t.Errorf("got %d %s %s", r.status, r.errorKind(), r.body)
	}
}

// cooldown-outlives-reset: the owner's word brings an account back, readings at their cap
// included.
func TestClearedAccountIsUsed(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(3 * time.Hour)))
	b.served(ask{session: session(1)})
	b.fold("marlow", func(s account.State) account.State { return s.Clear(b.clock.now()) })
	b.fold("juniper", func(s account.State) account.State {
		return s.Observe(reading(b.clock.now(), 0.85, 0.9), 0, account.Rules{})
	})
	if r := b.served(ask{session: session(2)}); r.account() != "marlow" {
		t.Errorf("got %s, want marlow", r.account())
	}
}

func TestHealthSeesAStoreThatCannotWrite(t *testing.T) {
	b := newBench(t, "marlow")
	f := &failing{Backend: b.backend()}
	_, url := b.process(store.New(f), nil)
	health := ask{method: "GET", path: "/_holdfast/health", header: http.Header{"Authorization": nil}, url: url}
	f.puts.Store(true)
	if r := b.do(ask{session: session(1), url: url}); r.status != http.StatusServiceUnavailable {
		t.Fatalf("got %d", r.status)
	}
	if r := b.do(health); r.status != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503", r.status)
	}
	f.puts.Store(false)
	b.clock.advance(11 * time.Second)
	if r := b.do(health); r.status != http.StatusOK {
		t.Errorf("recovered: got %d", r.status)
	}
}

// TestOpenRequestsAreBounded is part of field case retry-amplification: clients that try again
// without end hear that the gateway is busy.
func TestOpenRequestsAreBounded(t *testing.T) {
	b := newBench(t, "marlow")
	_, url := b.process(b.store, func(o *gateway.Options) { o.MaxOpen = 1 })
	gate := upstreamtest.NewGate()
	b.account("marlow").Queue(upstreamtest.Good(nil).With(upstreamtest.Held(gate)))
	done := make(chan reply, 1)
	go func() { done <- b.do(ask{session: session(1), url: url}) }()
	<-gate.Reached()
	if r := b.do(ask{session: session(2), url: url}); r.status != http.StatusServiceUnavailable || r.errorKind() != "busy" || r.header.Get("Retry-After") != "1" || r.header.Get("X-Should-Retry") != "" || r.errorType() != "api_error" {
		t.Errorf("got %d %s %s", r.status, r.errorKind(), r.body)
	}
	if r := b.do(ask{method: "GET", path: "/_holdfast/health", header: http.Header{"Authorization": nil}, url: url}); r.status != http.StatusOK {
		t.Errorf("health: got %d", r.status)
	}
	gate.Release()
	if r := <-done; r.status != http.StatusOK {
		t.Errorf("got %d", r.status)
	}
	b.served(ask{session: session(2), url: url})
}

func TestFlushWritesCounts(t *testing.T) {
	b := newBench(t, "marlow")
	for range 4 {
		b.served(ask{session: session(1)})
	}
	kept := func() (n int64) {
		pins, err := b.store.Pins(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pins {
			n += p.Kept[pin.Hour(b.clock.now())]
		}
		return n
	}
	if n := kept(); n != 0 {
		t.Errorf("got %d counted before, want 0: counting costs no write of its own", n)
	}
	for range 2 { // the second finds nothing left
		if err := b.gw.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := kept(); n != 3 {
		t.Errorf("got %d, want 3", n)
	}
	if r := b.served(ask{session: session(1)}); r.pin() != "kept" {
		t.Errorf("got pin %s", r.pin())
	}
}

// TestFlushThatFails is field case small-ones: counts that a store did not take are written
// later, and none is lost.
func TestFlushThatFails(t *testing.T) {
	b := newBench(t, "marlow")
	f := &failing{Backend: b.backend()}
	gw, url := b.process(store.New(f), nil)
	for range 4 {
		b.served(ask{session: session(1), url: url})
	}
	f.puts.Store(true)
	if err := gw.Flush(t.Context()); err == nil {
		t.Fatal("got no error from a store that takes nothing")
	}
	f.puts.Store(false)
	if err := gw.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	pins, err := b.store.Pins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	for _, p := range pins {
		n += p.Kept[pin.Hour(b.clock.now())]
	}
	if n != 3 {
		t.Errorf("got %d kept, want 3", n)
	}
	if got := total(b.used()).Requests; got != 4 {
		t.Errorf("got %d requests of usage, want 4", got)
	}
}

// TestInventedNames is field case invented-windows at the front door: an upstream that invents
// windows, and a client that invents models, leave a record of a bounded size.
func TestInventedNames(t *testing.T) {
	b := newBench(t, "marlow")
	tansy := b.addOf(account.OpenAI, "tansy", account.Key)
	for i := range 200 {
		h := http.Header{"Content-Type": {"application/json"}}
		for j := range 30 {
			name := fmt.Sprintf("Anthropic-Ratelimit-Unified-7d_invented%d", 30*i+j)
			h.Set(name+"-Status", "allowed")
			h.Set(name+"-Utilization", "0.1")
			h.Set(name+"-Reset", fmt.Sprint(b.clock.now().Add(time.Hour).Unix()))
			h.Set(fmt.Sprintf("X-Codex-Invented%d-Primary-Used-Percent", 30*i+j), "10")
			h.Set(fmt.Sprintf("X-Codex-Invented%d-Primary-Window-Minutes", 30*i+j), fmt.Sprint(1000+30*i+j))
		}
		b.account("marlow").Queue(upstreamtest.Raw(200, h, []byte(message)))
		b.served(ask{session: session(1)})
		tansy.Queue(upstreamtest.Raw(429, h, []byte(`{"error":{"message":"no","type":"rate_limit_error"}}`)))
		b.do(plainAsk("POST", "/openai/v1/responses", fmt.Sprintf(`{"model":"invented-%d","input":"x"}`, i)))
		b.clock.advance(7 * time.Second)
	}
	for _, name := range []string{"marlow", "tansy"} {
		records, err := b.backend().Get(t.Context(), []store.Key{{Kind: store.KindState, ID: "acc-" + name}})
		if err != nil || len(records) != 1 || len(records[0].Body) > 30_000 {
			t.Errorf("%s: got a record of %d bytes and error %v", name, len(records[0].Body), err)
		}
	}
	b.served(ask{session: session(2)})
}
