package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
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
