package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/request/gateway"
	"holdfast/internal/store"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/sqlitestore"
	"holdfast/internal/store/vault"
	"holdfast/internal/transport/forward"
)

// clientKey is the key that the load shows; it opens this benchmark's gateway only.
var clientKey = clientkey.FromSeed([]byte("bench"))

// serve is a child's life: it prints its base URL and serves until it is killed.
func serve(role, upstream, dir string) error {
	var h http.Handler
	switch role {
	case "upstream":
		h = http.HandlerFunc(answer)
	case "proxy":
		u, err := url.Parse(upstream)
		if err != nil {
			return err
		}
		h = httputil.NewSingleHostReverseProxy(u)
	case "gateway":
		g, err := newGateway(upstream, dir)
		if err != nil {
			return err
		}
		h = g
	default:
		return fmt.Errorf("no role %q", role)
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	return (&http.Server{Handler: h}).Serve(l)
}

var (
	smallAnswer = []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5","content":[{"type":"text","text":"` +
		string(bytes.Repeat([]byte("word "), 200)) + `"}],"stop_reason":"end_turn","usage":{"input_tokens":2,"cache_read_input_tokens":41200,"output_tokens":17}}`)
	opening = []byte("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-opus-5\",\"usage\":{\"input_tokens\":2,\"output_tokens\":1}}}\n\n")
	delta   = []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n")
	closing = []byte("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
)

// answer is the upstream: JSON, or a stream of as many deltas as the query says, held
// open for as long as it says.
func answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	h := w.Header()
	reset := strconv.FormatInt(time.Now().Add(3*time.Hour).Truncate(time.Hour).Unix(), 10)
	h["anthropic-ratelimit-unified-5h-status"] = []string{"allowed"}
	h["anthropic-ratelimit-unified-5h-utilization"] = []string{"0.21"}
	h["anthropic-ratelimit-unified-5h-reset"] = []string{reset}
	q := r.URL.Query()
	deltas, err := strconv.Atoi(q.Get("deltas"))
	if err != nil {
		h["Content-Type"] = []string{"application/json"}
		h["Content-Length"] = []string{strconv.Itoa(len(smallAnswer))}
		_, _ = w.Write(smallAnswer)
		return
	}
	h["Content-Type"] = []string{"text/event-stream"}
	rc := http.NewResponseController(w)
	put := func(b []byte) {
		_, _ = w.Write(b)
		_ = rc.Flush()
	}
	put(opening)
	for range deltas {
		put(delta)
	}
	if hold, err := time.ParseDuration(q.Get("hold")); err == nil {
		select {
		case <-time.After(hold):
		case <-r.Context().Done():
		}
	}
	put(closing)
}

// newGateway is the gateway as `holdfast serve` wires it, with two accounts at upstream.
func newGateway(upstream, dir string) (http.Handler, error) {
	key, err := seal.LoadOrCreate(filepath.Join(dir, "key"))
	if err != nil {
		return nil, err
	}
	box, err := seal.New(key)
	if err != nil {
		return nil, err
	}
	backend, err := sqlitestore.Open(dir)
	if err != nil {
		return nil, err
	}
	s := store.New(backend)
	if err := prepare(s, box, upstream); err != nil {
		return nil, err
	}
	return gateway.New(gateway.Options{
		Store: s, Box: box, Limits: forward.DefaultLimits,
		Providers: map[account.Provider]provider.Provider{account.Anthropic: anthropic.Provider{}},
		Log:       slog.New(slog.NewJSONHandler(logFile(dir), nil)),
	})
}

func logFile(dir string) io.Writer {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return io.Discard
	}
	return f
}

func prepare(s *store.Store, box *seal.Box, upstream string) error {
	ctx := context.Background()
	rec, err := s.ChangeCatalog(ctx, func(catalog.Catalog) (catalog.Catalog, error) {
		var c catalog.Catalog
		for _, name := range []string{"one", "two"} {
			c.Accounts = append(c.Accounts, account.Account{ID: account.ID("acc-" + name), Name: name, Provider: account.Anthropic, Kind: account.Key, BaseURL: upstream})
		}
		c.Keys = []catalog.ClientKey{{ID: "key", Name: "bench", Hash: clientkey.Hash(box, clientKey.Reveal())}}
		return c, nil
	})
	if err != nil {
		return err
	}
	v := vault.Vault{Store: s, Box: box}
	for _, a := range rec.Accounts {
		_, revision, err := v.Load(ctx, a.ID)
		if err != nil {
			return err
		}
		if _, err := v.Save(ctx, a.ID, credential.Credential{Key: credential.NewSecret("sk-ant-api03-BENCH"), Generation: 1}, revision); err != nil {
			return err
		}
	}
	return nil
}
