package gateway_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
	"holdfast/internal/clientkey"
	"holdfast/internal/credential"
	"holdfast/internal/gateway"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/seal"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/vault"
)

// quiet is a gateway without a network, for tests in which hours pass.
type quiet struct {
	handler http.Handler
	key     string
}

// newQuiet makes one with an account that transport answers for.
func newQuiet(t *testing.T, transport http.RoundTripper, overrides map[string]string) quiet {
	t.Helper()
	s := store.New(memstore.New())
	box, err := seal.New([32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	key := clientkey.FromSeed([]byte("agents"))
	marlow := account.Account{ID: "acc-marlow", Name: "marlow", Provider: account.Anthropic, Kind: account.Key}
	if _, err := s.ChangeCatalog(t.Context(), func(c catalog.Catalog) (catalog.Catalog, error) {
		c.Accounts, c.Overrides = []account.Account{marlow}, overrides
		c.Keys = []catalog.ClientKey{{ID: "key-agents", Name: "agents", Hash: clientkey.Hash(box, key.Reveal())}}
		return c, nil
	}); err != nil {
		t.Fatal(err)
	}
	v := vault.Vault{Store: s, Box: box}
	if _, err := v.Save(t.Context(), marlow.ID, credential.Credential{Generation: 1, Key: credential.NewSecret(secret("marlow"))}, 0); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{
		Store: s, Box: box, Transport: transport,
		Providers: map[account.Provider]provider.Provider{account.Anthropic: anthropic.Provider{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return quiet{g, key.Reveal()}
}

// ask sends a message and returns the answer.
func (q quiet) ask(ctx context.Context, stream bool) *httptest.ResponseRecorder {
	body := `{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`
	if stream {
		body = strings.Replace(body, "{", `{"stream":true,`, 1)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/messages", strings.NewReader(body))
	r.Header.Set("X-Api-Key", q.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	w := httptest.NewRecorder()
	q.handler.ServeHTTP(w, r)
	return w
}

// slow answers with headers after one time, and with a body after another.
type slow struct {
	headers, body time.Duration
	media, text   string
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := pass(r.Context(), s.headers); err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	go func() {
		if pass(r.Context(), s.body) == nil {
			_, _ = io.WriteString(in, s.text)
			_ = in.Close()
			return
		}
		_ = in.CloseWithError(r.Context().Err())
	}()
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.media}}, Body: out, ContentLength: -1,
	}, nil
}

// pass waits, on the bubble's clock.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const message = `{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`

// TestUpstreamTimeout is field case ten-minutes: an answer that begins after a quarter of an
// hour is waited for, as long as the owner's setting says, or as the platform's time lasts.
func TestUpstreamTimeout(t *testing.T) {
	tests := []struct {
		name     string
		setting  string
		after    time.Duration // the answer's headers
		platform time.Duration // of the whole request; 0 is no limit
		status   int
		says     string
		waited   time.Duration
	}{
		{"fourteen minutes", "", 14 * time.Minute, 0, 200, "", 14 * time.Minute},
		{"as late as the default allows", "", 16*time.Minute - 1, 0, 200, "", 16*time.Minute - 1},
		{"later", "", 17 * time.Minute, 0, 502, "upstream_timeout", 16 * time.Minute},
		{"later, and set so", "2h", 90 * time.Minute, 0, 200, "", 90 * time.Minute},
		{"sooner, and set so", "30s", 31 * time.Second, 0, 502, "within 30s", 30 * time.Second},
		{"what is left of a function's time", "", 14 * time.Minute, 15 * time.Minute, 200, "", 14 * time.Minute},
		{"a function's time is up first", "", 16 * time.Minute, 15 * time.Minute, 504, "function's timeout", 15 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				overrides := map[string]string{}
				if tt.setting != "" {
					overrides["upstream_timeout"] = tt.setting
				}
				q := newQuiet(t, slow{headers: tt.after, media: "application/json", text: message}, overrides)
				ctx := t.Context()
				if tt.platform > 0 {
					var done context.CancelFunc
					ctx, done = context.WithTimeout(ctx, tt.platform)
					defer done()
				}
				start := time.Now()
				w := q.ask(ctx, false)
				if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
					t.Errorf("got %d %s, want %d with %q", w.Code, w.Body, tt.status, tt.says)
				}
				if waited := time.Since(start); waited != tt.waited {
					t.Errorf("got an answer after %v, want %v", waited, tt.waited)
				}
			})
		})
	}
}

// The setting keep_alive says how often a silent stream is kept alive.
func TestKeepAliveSetting(t *testing.T) {
	for setting, want := range map[string]int{"": 3, "7s": 7, "0": 0} {
		t.Run("set to "+setting, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				overrides := map[string]string{}
				if setting != "" {
					overrides["keep_alive"] = setting
				}
				w := newQuiet(t, slow{body: 50 * time.Second, media: "text/event-stream"}, overrides).ask(t.Context(), true)
				if got := strings.Count(w.Body.String(), pingEvent); got != want {
					t.Errorf("got %d signs of life, want %d, in %q", got, want, w.Body)
				}
			})
		})
	}
}
