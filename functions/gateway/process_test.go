package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"holdfast/internal/aws/lambdahttp"
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
	"holdfast/internal/test/upstreamtest"
)

// BenchmarkProcess is the same as BenchmarkServe within this process, so that it can be
// profiled and its memory counted: from the Runtime API's event to the request as the
// upstream gets it, on a store in memory. What the Runtime API and the upstream do counts
// too; of memory that is little.
func BenchmarkProcess(b *testing.B) {
	for _, size := range []int{20_000, 500_000, 5_000_000} {
		b.Run(fmt.Sprintf("%dKB", size/1000), func(b *testing.B) {
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for name, values := range upstreamtest.Plan(0.2, time.Now().Add(time.Hour), 0.2, time.Now().Add(100*time.Hour)) {
					w.Header()[name] = values
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"type":"message"}`)
			}))
			b.Cleanup(upstream.Close)
			handler, key := inProcess(b, upstream.URL)
			platform := &oneEvent{event: eventOf(key, conversation(size)), start: make(chan struct{}), done: make(chan int)}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			server := &http.Server{Handler: platform}
			go func() { _ = server.Serve(listener) }()
			b.Cleanup(func() { _ = server.Close() })
			go func() {
				_ = lambdahttp.Start(handler, lambdahttp.Options{RuntimeAPI: listener.Addr().String(), Log: slog.New(slog.DiscardHandler)})
			}()
			serve := func() {
				platform.start <- struct{}{}
				if n := <-platform.done; n == 0 {
					b.Fatal("got no answer")
				}
			}
			serve() // warm
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				serve()
			}
		})
	}
}

// inProcess is a gateway over one account at a base URL, and its client key.
func inProcess(b *testing.B, baseURL string) (http.Handler, string) {
	b.Helper()
	box, err := seal.New([32]byte{1})
	if err != nil {
		b.Fatal(err)
	}
	known, key := store.New(memstore.New()), clientkey.FromSeed([]byte("process")).Reveal()
	ctx := context.Background()
	a := account.Account{ID: "acc-one", Name: "one", Provider: account.Anthropic, Kind: account.Key, BaseURL: baseURL}
	if _, err := known.ChangeCatalog(ctx, func(c catalog.Catalog) (catalog.Catalog, error) {
		c.Accounts = append(c.Accounts, a)
		c.Keys = append(c.Keys, catalog.ClientKey{ID: "key", Name: "agents", Hash: clientkey.Hash(box, key)})
		return c, nil
	}); err != nil {
		b.Fatal(err)
	}
	if _, err := (vault.Vault{Store: known, Box: box}).Save(ctx, a.ID, credential.Credential{Key: credential.NewSecret("sk-ant-api03-PROCESS"), Generation: 1}, 0); err != nil {
		b.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{
		Store: known, Box: box, Log: slog.New(slog.DiscardHandler),
		Providers: map[account.Provider]provider.Provider{account.Anthropic: anthropic.Provider{}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return g, key
}

// eventOf is the platform's event of a request with a body.
func eventOf(key string, body []byte) []byte {
	text, err := json.Marshal(string(body))
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"version":"2.0","rawPath":"/v1/messages","rawQueryString":"beta=true","headers":{"authorization":"Bearer %s","content-type":"application/json",`+
		`"host":"id.lambda-url.us-east-1.on.aws","anthropic-version":"2023-06-01","x-claude-code-session-id":"6f1d2c3b-0a9e-4d5c-8b7a-112233445566"},`+
		`"requestContext":{"domainName":"id.lambda-url.us-east-1.on.aws","http":{"method":"POST","path":"/v1/messages","protocol":"HTTP/1.1","sourceIp":"203.0.113.7"}},`+
		`"body":%s,"isBase64Encoded":false}`, key, text)
}

// oneEvent is a Runtime API that hands the same event out whenever it is told.
type oneEvent struct {
	event []byte
	start chan struct{}
	done  chan int // bytes of the answer
}

func (p *oneEvent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		got, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		if !bytes.Contains(got, []byte(`"statusCode":200`)) {
			got = nil
		}
		p.done <- len(got)
		return
	}
	select {
	case <-p.start:
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Lambda-Runtime-Aws-Request-Id", "one")
	w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
	w.Header().Set("Content-Length", strconv.Itoa(len(p.event)))
	_, _ = w.Write(p.event)
}
