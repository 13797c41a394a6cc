package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/request/gateway"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/vault"
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
	return q.send(ctx, body, "")
}

// send sends a body in a coding, empty for none, and returns the answer.
func (q quiet) send(ctx context.Context, body, coding string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/messages", strings.NewReader(body))
	if coding != "" {
		r.Header.Set("Content-Encoding", coding)
	}
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

// Headers that come ahead of a plain answer make no difference to the time that its work may
// take. Between the events of a stream there is less.
func TestHeadersAhead(t *testing.T) {
	for name, tt := range map[string]struct {
		up     slow
		stream bool
		whole  bool
	}{
		"fourteen minutes": {slow{body: 14 * time.Minute, media: "application/json", text: message}, false, true},
		"longer":           {slow{body: 17 * time.Minute, media: "application/json", text: message}, false, false},
		"a stream":         {slow{body: 7 * time.Minute, media: "text/event-stream", text: "event: message_stop\ndata: {}\n\n"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQuiet(t, tt.up, nil)
				var w *httptest.ResponseRecorder
				func() {
					defer func() { _ = recover() }() // how net/http has a connection broken off
					w = q.ask(t.Context(), tt.stream)
				}()
				if whole := w != nil && w.Code == http.StatusOK && strings.HasSuffix(w.Body.String(), tt.up.text); whole != tt.whole {
					t.Errorf("got a whole answer: %v, want %v", whole, tt.whole)
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

// pipes is a listener whose connections are in memory, so that their time is the bubble's.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serve serves a handler until the test ends, and returns a connection to it.
func serve(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(p) }()
	client, inside := net.Pipe()
	p.accept <- inside
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client
}

// TestBodyThatPauses is field case a-body-that-pauses: a client that stops in the middle of
// its body hears why it was given up.
func TestBodyThatPauses(t *testing.T) {
	for name, tt := range map[string]struct {
		head  string
		parts []string // a part each 50 seconds
		want  int
		after time.Duration
	}{
		"one byte of a told length":  {"Content-Length: 500", []string{"{"}, 408, time.Minute},
		"nothing of a told length":   {"Content-Length: 500", nil, 408, time.Minute},
		"chunked":                    {"Transfer-Encoding: chunked", []string{"1\r\n{\r\n"}, 408, time.Minute},
		"an upload":                  {"Content-Length: 500\r\nContent-Type: multipart/form-data; boundary=b", []string{"--b"}, 408, time.Minute},
		"after a while":              {"Content-Length: 500", []string{"{", " ", " "}, 408, 2*50*time.Second + time.Minute},
		"slow, and whole in the end": {"Content-Length: 4", []string{"{", " ", " ", "}"}, 200, 3 * 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQuiet(t, slow{media: "application/json", text: message}, nil)
				c := serve(t, q.handler)
				start := time.Now()
				go func() {
					fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\n%s\r\n\r\n", q.key, tt.head)
					for i, part := range tt.parts {
						if i > 0 {
							_ = pass(t.Context(), 50*time.Second)
						}
						_, _ = io.WriteString(c, part)
					}
				}()
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatalf("got %v, want an answer", err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != tt.want || tt.want == 408 && !strings.Contains(string(body), "nothing more of the request's body came") {
					t.Errorf("got %d %s, %v, want %d with a sentence", resp.StatusCode, body, err, tt.want)
				}
				// The last ten seconds of a part's time may be the deadline of the one before; what is
				// left of a body may hold the answer up for two more.
				if waited := time.Since(start); waited < tt.after-15*time.Second || waited > tt.after+3*time.Second {
					t.Errorf("got it after %v, want about %v", waited, tt.after)
				}
			})
		})
	}
}

// TestCompressedBodiesTogether is field case compressed-bodies-together: so many are decoded
// at once and no more; another one waits for its turn, and hears then to try again. Plain
// bodies wait for nobody.
func TestCompressedBodiesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, slow{media: "application/json", text: message}, nil)
		var leave []func()
		for range gateway.MostDecoding {
			done, ok := q.handler.(*gateway.Gateway).Decode(t.Context())
			if !ok {
				t.Fatal("no turn")
			}
			leave = append(leave, done)
		}
		small := zip(t, `{"model":"claude-opus-5"}`)
		w := q.send(t.Context(), string(small), "gzip")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("X-Holdfast-Error") != "busy" || w.Header().Get("Retry-After") != "1" || w.Header().Get("X-Should-Retry") != "" {
			t.Errorf("got %d %v, want 503 busy, which may be retried", w.Code, w.Header())
		}
		if w := q.send(t.Context(), `{"model":"claude-opus-5"}`, ""); w.Code != http.StatusOK {
			t.Errorf("a plain body: got %d %s", w.Code, w.Body)
		}
		time.AfterFunc(time.Second, leave[0])
		if w := q.send(t.Context(), string(small), "gzip"); w.Code != http.StatusOK {
			t.Errorf("when a turn comes: got %d %s", w.Code, w.Body)
		}
		if w := q.send(t.Context(), "not gzip", "gzip"); w.Code != http.StatusBadRequest {
			t.Errorf("a body that cannot be decoded: got %d, want 400", w.Code)
		}
		if w := q.send(t.Context(), string(small), "gzip"); w.Code != http.StatusOK {
			t.Errorf("after it: got %d, want its turn given back", w.Code)
		}
	})
}

// Thirty bodies that hold far more than the limit, at once: each hears so, or to try again.
func TestBombsTogether(t *testing.T) {
	b := newBench(t, "marlow")
	b.set("max_body", "1MiB")
	bomb := zip(t, strings.Repeat(" ", 32<<20))
	replies := make(chan reply)
	const bombs = 30
	for range bombs {
		go func() { replies <- b.do(ask{body: string(bomb), header: http.Header{"Content-Encoding": {"gzip"}}}) }()
	}
	for range bombs {
		if r := <-replies; r.status != http.StatusRequestEntityTooLarge && r.errorKind() != "busy" {
			t.Errorf("got %d %s, want 413 or 503 busy", r.status, r.body)
		}
	}
	b.served(ask{body: string(zip(t, `{"model":"claude-opus-5"}`)), header: http.Header{"Content-Encoding": {"gzip"}}})
}
