package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/store"
	"holdfast/internal/test/upstreamtest"
)

// halves puts juniper at 30 % and wren at 31 %.
func (b *bench) halves() {
	b.t.Helper()
	for name, full := range map[string]float64{"juniper": 0.30, "wren": 0.31} {
		b.fold(name, func(s account.State) account.State {
			return s.Observe(reading(b.clock.now(), full, full), 0, account.Rules{})
		})
	}
}

// together sends n requests at once, to the gateways in turn, and counts who served.
func (b *bench) together(n int, urls []string, of func(i int) ask) map[string]int {
	b.t.Helper()
	served := map[string]int{}
	replies := b.atOnce(n, func(i int) ask {
		a := of(i)
		a.url = urls[i%len(urls)]
		return a
	})
	for _, r := range replies {
		if r.status != http.StatusOK {
			b.t.Errorf("got %d %s, want 200", r.status, r.body)
		}
		served[r.account()]++
	}
	return served
}

func (b *bench) atOnce(n int, of func(i int) ask) []reply {
	b.t.Helper()
	replies := make([]reply, n)
	requests := make([]*http.Request, n)
	for i := range n {
		requests[i] = b.request(of(i))
	}
	var all sync.WaitGroup
	for i, req := range requests {
		all.Go(func() {
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				b.t.Error(err)
				return
			}
			_ = resp.Body.Close()
			replies[i] = reply{status: resp.StatusCode, header: resp.Header}
		})
	}
	all.Wait()
	return replies
}

// spread fails unless both accounts got a share that is near the other's.
func spread(t *testing.T, served map[string]int, n int) {
	t.Helper()
	if served["juniper"]+served["wren"] != n || served["juniper"] < n/3 || served["wren"] < n/3 {
		t.Errorf("got %v, want %d over juniper and wren alike", served, n)
	}
}

// barrier is a backend whose first reads, once it is armed, end together when
// all of them have come: none of those who read sees what another writes.
type barrier struct {
	store.Backend
	n     int64
	armed atomic.Bool
	come  atomic.Int64
	open  chan struct{}
}

func (s *barrier) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	records, err := s.Backend.Get(ctx, keys)
	if !s.armed.Load() {
		return records, err
	}
	if s.come.Add(1) == s.n {
		close(s.open)
	}
	select {
	case <-s.open:
	case <-ctx.Done():
	}
	return records, err
}

// TestMovesSpread is field case herd-of-moves: conversations that leave one account
// together, at a refusal or at their next turns, spread as new ones do, with one gateway
// and with two on one store.
func TestMovesSpread(t *testing.T) {
	for gateways := 1; gateways <= 2; gateways++ {
		t.Run(fmt.Sprintf("%d gateways", gateways), func(t *testing.T) {
			start := func() (*bench, []string) {
				b := newBench(t, "marlow", "juniper", "wren")
				urls := []string{b.url}
				if gateways == 2 {
					_, url := b.process(store.New(b.records), nil)
					urls = append(urls, url)
				}
				return b, urls
			}
			pinned := func(b *bench, n int) {
				b.prefer("marlow", "juniper", "wren")
				for i := range n {
					b.served(ask{session: session(i), model: "claude-opus-5"})
					b.fold("marlow", func(s account.State) account.State {
						return s.Observe(reading(b.clock.now(), 0.01, 0.01), 1000, account.Rules{})
					})
				}
				for _, name := range []string{"juniper", "wren"} {
					if k := len(b.account(name).Requests()); k > 0 {
						b.t.Fatalf("%d conversations began at %s", k, name)
					}
				}
			}
			// refuse lets marlow answer n requests, once all have come, that it is spent.
			refuse := func(b *bench, n int) func() {
				g := upstreamtest.NewGate()
				for range n {
					b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(3 * time.Hour)).With(upstreamtest.Held(g)))
				}
				before := len(b.account("marlow").Requests())
				return func() {
					b.await("all requests at marlow", func() bool { return len(b.account("marlow").Requests()) == before+n })
					g.Release()
				}
			}
			next := func(i int) ask { return ask{session: session(i)} }
			t.Run("refused together", func(t *testing.T) {
				b, urls := start()
				pinned(b, 12)
				b.halves()
				release := refuse(b, 12)
				go release()
				spread(t, b.together(12, urls, next), 12)
			})
			t.Run("their next turns", func(t *testing.T) {
				b, urls := start()
				pinned(b, 20)
				b.halves()
				b.fold("marlow", func(s account.State) account.State {
					return s.Reject(account.Rejection{Kind: account.WindowSpent, At: b.clock.now(), Spent: []account.Spent{{Window: account.FiveHour, ResetAt: b.clock.now().Add(3 * time.Hour)}}}, account.Rules{})
				})
				at := &barrier{Backend: b.records, n: 20, open: make(chan struct{})}
				for i := range urls {
					_, urls[i] = b.process(store.New(at), nil)
					b.served(ask{session: session(100), path: "/v1/messages/count_tokens", url: urls[i]}) // reads the catalog
				}
				at.armed.Store(true)
				spread(t, b.together(20, urls, next), 20)
			})
			t.Run("requests without a pin", func(t *testing.T) {
				b, urls := start()
				pinned(b, 12)
				b.halves()
				release := refuse(b, 12)
				go release()
				spread(t, b.together(12, urls, func(i int) ask {
					return ask{session: session(i), body: `{"model":"claude-opus-5","max_tokens":100,"tools":[],"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"title":{"type":"string"}}}}},"messages":[{"role":"user","content":"name it"}]}`}
				}), 12)
			})
		})
	}
}

// TestGoesOnToTheAccountThatServes is field case one-hop-and-a-ready-account: a request goes
// on after refused credentials and accounts without funds as it does after spent windows, and where
// its sends end before the ready accounts do, it hears that it should come again at once.
func TestGoesOnToTheAccountThatServes(t *testing.T) {
	for _, refusal := range []string{"401 authentication_error", "400 credit balance", "five-hour"} {
		t.Run(refusal, func(t *testing.T) {
			script := upstreamtest.FiveHourSpent(time.Now().Add(time.Hour))
			switch refusal {
			case "401 authentication_error":
				script = upstreamtest.Raw(401, nil, []byte(`{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`))
			case "400 credit balance":
				script = upstreamtest.Raw(400, nil, []byte(`{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`))
			}
			b := newBench(t, "marlow", "juniper", "wren", "rowan")
			b.prefer("marlow", "juniper", "wren", "rowan")
			for _, name := range []string{"marlow", "juniper", "wren"} {
				b.account(name).Always(script)
			}
			b.fold("rowan", func(s account.State) account.State {
				return s.Observe(reading(b.clock.now(), 0.9, 0.9), 0, account.Rules{})
			})
			r := b.do(ask{session: session(1)})
			if r.status != http.StatusServiceUnavailable || r.errorKind() != "busy" || r.header.Get("Retry-After") != "1" || len(b.up.Requests()) != 3 {
				t.Errorf("got %d %s, Retry-After %q, %d sends, want 503 busy, 1, 3: %s", r.status, r.errorKind(), r.header.Get("Retry-After"), len(b.up.Requests()), r.body)
			}
			if r := b.served(ask{session: session(1)}); r.account() != "rowan" || r.pin() != "new" {
				t.Errorf("the next: got %s, pin %s, want rowan, new", r.account(), r.pin())
			}
		})
	}
	t.Run("the third serves", func(t *testing.T) {
		b := newBench(t, "marlow", "juniper", "wren")
		bad := upstreamtest.Raw(401, nil, []byte(`{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`))
		b.account("marlow").Always(bad)
		b.account("juniper").Always(bad)
		b.fold("wren", func(s account.State) account.State {
			return s.Observe(reading(b.clock.now(), 0.9, 0.9), 0, account.Rules{})
		})
		if r := b.served(ask{session: session(1)}); r.account() != "wren" {
			t.Errorf("got %s, want wren", r.account())
		}
	})
}

// TestFirstRefusalTellsTheSoonestReset is field case an-honest-first-refusal: the request
// that finds all accounts spent hears what the next one does, parked accounts included.
func TestFirstRefusalTellsTheSoonestReset(t *testing.T) {
	b := newBench(t, "marlow", "juniper", "wren")
	b.prefer("marlow", "juniper", "wren")
	b.addAccount("rowan", account.Key)
	b.fold("rowan", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.Funds, At: b.clock.now(), Rule: "credit-balance"}, account.Rules{})
	})
	for name, hours := range map[string]int{"marlow": 4, "juniper": 2, "wren": 3} {
		b.account(name).Always(upstreamtest.FiveHourSpent(b.clock.now().Add(time.Duration(hours) * time.Hour)))
	}
	first, second := b.do(ask{session: session(1)}), b.do(ask{session: session(1)})
	if len(b.up.Requests()) != 3 {
		t.Fatalf("got %d sends, want 3", len(b.up.Requests()))
	}
	for _, r := range []reply{first, second} {
		reset := r.header.Get("Anthropic-Ratelimit-Unified-Reset")
		if r.status != http.StatusTooManyRequests || r.errorKind() != "exhausted" || reset != second.header.Get("Anthropic-Ratelimit-Unified-Reset") {
			t.Errorf("got %d %s, reset %s: %s", r.status, r.errorKind(), reset, r.body)
		}
		if !strings.Contains(r.body, "(in 2h00m)") || !strings.Contains(r.body, "rowan (credit-balance)") {
			t.Errorf("got %s, want two hours and rowan", r.body)
		}
	}
}

// TestSideCallsMoveNobody is field case side-calls-move-nobody: what is refused beside a
// conversation may be answered elsewhere, and the conversation stays.
func TestSideCallsMoveNobody(t *testing.T) {
	const title = `{"model":"claude-sonnet-5","max_tokens":100,"tools":[],"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"title":{"type":"string"}}}}},"messages":[{"role":"user","content":"name it"}]}`
	const haiku = `{"model":"claude-haiku-4-5","max_tokens":100,"messages":[{"role":"user","content":"a topic?"}]}`
	credits := upstreamtest.Raw(429, nil, []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"Usage credits are required for this model."}}`))
	for _, tt := range []struct {
		name, body string
		script     upstreamtest.Script
	}{
		{"a marked title", title, upstreamtest.ModelSpent(time.Now().Add(72 * time.Hour))},
		{"a marked title where the account is spent", title, upstreamtest.FiveHourSpent(time.Now().Add(time.Hour))},
		{"an unmarked call", haiku, upstreamtest.ModelSpent(time.Now().Add(72 * time.Hour))},
		{"credits", haiku, credits},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, "marlow", "juniper")
			b.prefer("marlow", "juniper")
			b.served(ask{session: session(1)})
			b.account("marlow").Queue(tt.script)
			for range 2 { // the second knows of the block beforehand
				if r := b.served(ask{session: session(1), body: tt.body}); r.account() != "juniper" || r.pin() == "moved" {
					t.Errorf("got %s, pin %s, want juniper and no move", r.account(), r.pin())
				}
				b.account("marlow").Queue()
			}
			if tt.name == "a marked title where the account is spent" {
				return
			}
			if r := b.served(ask{session: session(1)}); r.account() != "marlow" || r.pin() != "kept" {
				t.Errorf("got %s, pin %s, want marlow, kept", r.account(), r.pin())
			}
		})
	}
	t.Run("the owner changed the model", func(t *testing.T) {
		b := newBench(t, "marlow", "juniper")
		b.prefer("marlow", "juniper")
		b.served(ask{session: session(1)})
		b.account("marlow").Queue(upstreamtest.ModelSpent(time.Now().Add(72 * time.Hour)))
		body := `{"model":"claude-sonnet-5","max_tokens":100,"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"yes"},{"role":"user","content":"go on"}]}`
		if r := b.served(ask{session: session(1), body: body}); r.account() != "juniper" || r.pin() != "moved" {
			t.Errorf("got %s, pin %s, want juniper, moved", r.account(), r.pin())
		}
	})
}

// TestMoveThatDoesNotTake is field case a-move-that-does-not-take: a move to an account that
// refuses the conversation's own content is undone, and the conversation bound.
func TestMoveThatDoesNotTake(t *testing.T) {
	signature := upstreamtest.Raw(400, nil, []byte("{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0: Invalid `signature` in `thinking` block\"}}"))
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	reset := b.clock.now().Add(2 * time.Hour)
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(reset))
	b.account("juniper").Always(signature)
	for i := range 2 {
		r := b.do(ask{session: session(1)})
		if r.status != http.StatusTooManyRequests || r.errorKind() != "exhausted" || r.header.Get("Retry-After") == "" {
			t.Errorf("turn %d: got %d %s %s, want 429 exhausted", i, r.status, r.errorKind(), r.body)
		}
	}
	if n := len(b.account("juniper").Requests()); n != 1 {
		t.Errorf("juniper was asked %d times, want once", n)
	}
	b.clock.advance(3 * time.Hour) // a bound pin lives on
	if r := b.served(ask{session: session(1)}); r.account() != "marlow" || r.pin() != "kept" {
		t.Errorf("got %s, pin %s, want marlow, kept", r.account(), r.pin())
	}
}
