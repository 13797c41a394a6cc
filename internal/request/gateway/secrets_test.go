package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
	"holdfast/internal/logging"
	"holdfast/internal/request/gateway"
	"holdfast/internal/status"
	"holdfast/internal/test/logtest"
	"holdfast/internal/test/upstreamtest"
)

// formless are keys of forms that no pattern knows.
var formless = []string{"local-secret-key-0123456789", "gsk_AbCdEfGhIjKlMnOp", "6f1c2a9e-3b47-4d0a-9c55-0e8d7b6a5f41", "correct_horse_battery"}

// TestSecretsByValue is field case secrets-by-value: whatever an upstream repeats of a key, it
// is in no line of the log, in nothing that is stored, and in no report.
func TestSecretsByValue(t *testing.T) {
	type echo struct {
		name   string
		script func(key string) upstreamtest.Script
	}
	echoes := []echo{
		{"as the type of an error that parks", func(key string) upstreamtest.Script {
			return jsonAnswer(http.StatusUnauthorized, nil, fmt.Sprintf(`{"type":"error","error":{"type":%q,"code":%[1]q,"message":"bad key %[1]s"}}`, key))
		}},
		{"as the type of a 402", func(key string) upstreamtest.Script {
			return jsonAnswer(http.StatusPaymentRequired, nil, fmt.Sprintf(`{"type":"error","error":{"type":%q,"code":%[1]q,"message":"Your credit balance is too low %[1]s"}}`, key))
		}},
		{"as the type of a client's error", func(key string) upstreamtest.Script {
			return jsonAnswer(http.StatusBadRequest, nil, fmt.Sprintf(`{"type":"error","error":{"type":%q,"code":%[1]q,"message":"no"}}`, key))
		}},
		{"in limit headers of a 429", func(key string) upstreamtest.Script {
			return jsonAnswer(http.StatusTooManyRequests, http.Header{
				"Anthropic-Ratelimit-Unified-Status": {key}, "Anthropic-Ratelimit-Unified-Representative-Claim": {key}, "X-Ratelimit-Limit-Requests": {key},
				"Retry-After": {key}, "Anthropic-Organization-Id": {key}, "Openai-Organization": {key},
				http.CanonicalHeaderKey("anthropic-ratelimit-unified-" + key + "-utilization"): {"0.5"},
				http.CanonicalHeaderKey("x-codex-" + key + "-primary-used-percent"):            {"50"},
			}, fmt.Sprintf(`{"type":"error","error":{"type":%q}}`, key))
		}},
		{"in headers of a good answer", func(key string) upstreamtest.Script {
			return upstreamtest.Good(nil).With(upstreamtest.Header("anthropic-organization-id", key), upstreamtest.Header("openai-organization", key),
				upstreamtest.Header("anthropic-ratelimit-unified-7d_"+strings.ToUpper(key)+"-utilization", "0.5"))
		}},
		{"as the type of an error in the stream", func(key string) upstreamtest.Script {
			return upstreamtest.Raw(http.StatusOK, eventStream, fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":%q,\"code\":%[1]q,\"message\":%[1]q}}\n\n", key))
		}},
	}
	for _, key := range formless {
		for _, p := range account.Providers {
			ask := func() ask {
				switch p {
				case account.OpenAI:
					return chatAsk(1, "gpt-5.5")
				case account.XAI:
					return chatAsk(1, "grok-4.5")
				case account.Anthropic:
				}
				return ask{session: session(1), stream: true}
			}
			for _, e := range echoes {
				t.Run(string(p)+" "+e.name, func(t *testing.T) {
					b, log := withKey(t, p, key)
					b.account("hazel").Always(e.script(key))
					b.do(ask())
					b.do(ask())
					b.silent(log, key)
				})
			}
			t.Run(string(p)+" in a malformed head", func(t *testing.T) {
				for _, head := range []string{"%s\r\n\r\n", "HTTP/1.1 %s\r\n\r\n", "HTTP/1.1 200 OK\r\n%s\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n"} {
					b, log := withKey(t, p, key)
					b.pointAt("hazel", says(t, fmt.Sprintf(head, key)))
					if r := b.do(ask()); r.status != http.StatusBadGateway || strings.Contains(r.body, key) {
						t.Errorf("got %d %s, want 502 without the key", r.status, r.body)
					}
					b.silent(log, key)
				}
			})
		}
	}
}

// withKey is a bench whose only account, hazel, has a key, with the log of a real process.
func withKey(t *testing.T, p account.Provider, key string) (*bench, *logtest.Log) {
	t.Helper()
	b := newBench(t)
	b.add(p, account.Key, "hazel")
	b.save(account.Account{ID: "acc-hazel"}, credential.Credential{Key: credential.NewSecret(key), Generation: 2})
	b.account("hazel").Known(key)
	log := &logtest.Log{}
	b.gw, b.url = b.process(b.store, func(o *gateway.Options) { o.Log = slog.New(logging.New(log, slog.LevelDebug)) })
	return b, log
}

// pointAt points an account at another host.
func (b *bench) pointAt(name, host string) {
	b.t.Helper()
	b.change(func(c catalog.Catalog) catalog.Catalog {
		next, err := c.SetBaseURL(name, host)
		if err != nil {
			b.t.Fatal(err)
		}
		return next
	})
	b.clock.advance(3 * time.Second)
}

// says is a host that answers every request with a text.
func says(t *testing.T, text string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := c.Read(make([]byte, 64<<10)); err == nil {
					_, _ = c.Write([]byte(text))
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// silent checks that a key is in no log line, in nothing stored and in no report.
func (b *bench) silent(log *logtest.Log, key string) {
	b.t.Helper()
	b.gw.Close() // what is written beside an answer is written by then
	snap, err := b.store.Snapshot(b.t.Context(), true)
	if err != nil {
		b.t.Fatal(err)
	}
	stored, err := json.Marshal(snap)
	if err != nil {
		b.t.Fatal(err)
	}
	var report bytes.Buffer
	r := status.Of(status.Input{Now: b.clock.now(), Catalog: *snap.Catalog.Catalog, States: snap.States, Credentials: snap.Credentials})
	if err := r.WriteText(&report); err != nil {
		b.t.Fatal(err)
	}
	for name, text := range map[string]string{"the log": log.String(), "what is stored": string(stored), "the status": report.String()} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(key)) {
			b.t.Errorf("%s has the key: %s", name, text)
		}
	}
	if !strings.Contains(log.String(), `"msg":"request"`) {
		b.t.Error("nothing was logged")
	}
}
