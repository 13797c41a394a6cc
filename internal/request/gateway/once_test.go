package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/simulate"
	"holdfast/internal/test/upstreamtest"
)

// TestTransportSendsOnce is field case transport-sends-again: over warm connections the
// upstream takes a request whole and closes without an answer. The client hears 502, and the
// request was sent once, whatever headers it has, at every provider.
func TestTransportSendsOnce(t *testing.T) {
	routes := []struct {
		provider account.Provider
		path     string
	}{
		{account.Anthropic, "/v1/messages"}, {account.OpenAI, "/v1/responses"}, {account.OpenAI, "/v1/chat/completions"}, {account.XAI, "/xai/v1/responses"},
	}
	for _, route := range routes {
		for _, name := range []string{"", "Idempotency-Key", "X-Idempotency-Key"} {
			t.Run(fmt.Sprintf("%s %s", route.path, name), func(t *testing.T) {
				const warm = 9
				var taken atomic.Int64
				meet := make(chan struct{}) // the first ones run at once, each over its own connection
				up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					n := taken.Add(1)
					if n == warm {
						close(meet)
					}
					if n <= warm {
						<-meet
						w.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(w, message)
						return
					}
					c, _, err := http.NewResponseController(w).Hijack()
					if err == nil {
						c.Close()
					}
				}))
				defer up.Close()
				b := newBench(t)
				for _, name := range []string{"marlow", "juniper"} {
					b.addOf(route.provider, name, account.Key)
				}
				b.change(func(c catalog.Catalog) catalog.Catalog {
					for i := range c.Accounts {
						c.Accounts[i].BaseURL = up.URL
					}
					return c
				})
				_, url := b.process(b.store, nil)
				send := func() reply {
					header := http.Header{"X-Holdfast-Conversation": {"one"}}
					if name != "" {
						header.Set(name, "k1")
					}
					return b.do(ask{url: url, path: route.path, header: header})
				}
				replies := make(chan reply, warm)
				for range warm {
					go func() { replies <- send() }()
				}
				for range warm {
					if r := <-replies; r.status != http.StatusOK {
						t.Fatalf("warm up: got %d %s", r.status, r.body)
					}
				}
				r := send()
				if r.status != http.StatusBadGateway || r.errorKind() != "upstream_unreachable" || taken.Load() != warm+1 {
					t.Errorf("got %d %s after %d sends, want 502 after one", r.status, r.errorKind(), taken.Load()-warm)
				}
			})
		}
	}
}

// TestSendsAreCounted is field case retry-amplification: one request of a client is sent three
// times at most, each time to another account; once where a further send cannot help; and not
// again after its client has left.
func TestSendsAreCounted(t *testing.T) {
	names := []string{"marlow", "juniper", "wren", "tansy", "sorrel", "yarrow"}
	spent := upstreamtest.FiveHourSpent(time.Now().Add(4 * time.Hour))
	tests := map[string]struct {
		answer upstreamtest.Script
		sends  int
	}{
		"spent everywhere":           {spent, 3},
		"refused credentials":        {upstreamtest.Failed(401, simulate.Failure{Type: "authentication_error", Message: "invalid x-api-key"}), 3},
		"a path that is nowhere":     {upstreamtest.Failed(404, simulate.Failure{Type: "not_found_error", Message: "Not found"}), 1},
		"a server that always fails": {upstreamtest.Failed(500, simulate.Failure{Type: "api_error", Message: "Internal server error"}), 1},
		"overload":                   {upstreamtest.Overloaded(), 1},
		"a bare refusal":             {upstreamtest.Bare(), 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, names...)
			for _, account := range names {
				b.account(account).Always(tt.answer)
			}
			b.do(ask{session: session(1)})
			if b.sent() != tt.sends {
				t.Errorf("got %d sends of one request, want %d", b.sent(), tt.sends)
			}
			for _, account := range names {
				if n := len(b.account(account).Requests()); n > 1 {
					t.Errorf("%s got it %d times", account, n)
				}
			}
		})
	}
	t.Run("the client tries ten times", func(t *testing.T) {
		b := newBench(t, names...)
		for _, account := range names {
			b.account(account).Always(tests["a server that always fails"].answer)
		}
		for range 10 {
			b.do(ask{session: session(1)})
		}
		if b.sent() != 10 {
			t.Errorf("got %d sends for ten requests, want 10", b.sent())
		}
	})
	t.Run("the client has left", func(t *testing.T) {
		b := newBench(t, names...)
		gate := upstreamtest.NewGate()
		for _, account := range names {
			b.account(account).Always(spent.With(upstreamtest.Held(gate)))
		}
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			resp, err := http.DefaultTransport.RoundTrip(b.request(ask{session: session(1), ctx: ctx}))
			if err == nil {
				resp.Body.Close()
			}
			done <- err
		}()
		<-gate.Reached()
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the client's own end", err)
		}
		<-b.up.Requests()[0].Left()
		gate.Release()
		b.await("the end of the request", func() bool { return len(b.gw.InFlight()) == 0 })
		if b.sent() != 1 {
			t.Errorf("got %d sends, want 1", b.sent())
		}
	})
}

// TestModelNameGoesAsItCame is field case model-name-suffixes: a client's mark on a model's
// name goes upstream as it came, the family is read without it, and a model that the provider
// does not know cools nothing.
func TestModelNameGoesAsItCame(t *testing.T) {
	b := newBench(t, "marlow")
	for _, model := range []string{"claude-opus-x[1m]", "claude-opus-x[1M][1m]", "claude-opus-5-20260901", "claude-oldname-2[1m]", "kestrel[1m]"} {
		b.account("marlow").Queue(upstreamtest.Failed(404, simulate.Failure{Type: "not_found_error", Message: "model: " + model}))
		sent := b.sent()
		if r := b.do(ask{session: session(1), model: model}); r.status != 404 || r.errorKind() != "" || b.sent()-sent != 1 {
			t.Errorf("%s: got %d %s after %d sends, want the provider's 404 after 1", model, r.status, r.errorKind(), b.sent()-sent)
		}
		if got := b.up.Requests()[sent].Body; !strings.Contains(string(got), `"model":"`+model+`"`) {
			t.Errorf("%s: upstream got %s", model, got)
		}
		if st := b.state("marlow"); len(st.Blocks) != 0 || st.Parked != nil {
			t.Errorf("%s: got %+v, want nothing held against the account", model, st)
		}
		b.served(ask{session: session(1)})
	}
	// A spent family is blocked by its name without the mark, too.
	b.account("marlow").Queue(upstreamtest.ModelSpent(time.Now().Add(50 * time.Hour)))
	b.do(ask{session: session(2), model: "claude-opus-5[1m]"})
	sent := b.sent()
	if r := b.do(ask{session: session(2), model: "claude-opus-5-20260901"}); r.errorKind() != "exhausted" || b.sent() != sent {
		t.Errorf("got %d %s after %d sends, want exhausted after none", r.status, r.errorKind(), b.sent()-sent)
	}
	b.served(ask{session: session(3), model: "claude-sonnet-5[1m]"})
}
