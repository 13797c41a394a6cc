package gateway_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/request/gateway"
	"holdfast/internal/test/upstreamtest"
)

// wrong-or-doubled-credential
func TestWhoCalls(t *testing.T) {
	b := newBench(t, "marlow")
	other := b.newKey(catalog.ClientKey{Name: "other"})
	b.clock.advance(2 * time.Second)
	tests := []struct {
		name   string
		header http.Header
		want   int
	}{
		{"bearer", http.Header{"Authorization": {"Bearer " + b.key}}, 200},
		{"lower case", http.Header{"Authorization": {"bearer " + b.key}}, 200},
		{"upper case and two spaces", http.Header{"Authorization": {"BEARER  " + b.key}}, 200},
		{"trailing space", http.Header{"Authorization": {"Bearer " + b.key + " "}}, 200},
		{"x-api-key", http.Header{"Authorization": nil, "X-Api-Key": {b.key}}, 200},
		{"both, ours in x-api-key", http.Header{"Authorization": {"Bearer sk-ant-oat01-FOREIGN"}, "X-Api-Key": {b.key}}, 200},
		{"both, ours as bearer", http.Header{"Authorization": {"Bearer " + b.key}, "X-Api-Key": {"sk-ant-api03-FOREIGN"}}, 200},
		{"two of ours", http.Header{"Authorization": {"Bearer " + b.key}, "X-Api-Key": {other}}, 200},
		{"none", http.Header{"Authorization": nil}, 401},
		{"basic", http.Header{"Authorization": {"Basic " + b.key}}, 401},
		{"a provider's own key", http.Header{"Authorization": {"Bearer sk-ant-api03-FOREIGN"}}, 401},
		{"one character changed", http.Header{"Authorization": {"Bearer " + flip(b.key)}}, 401},
		{"unknown but well formed", http.Header{"Authorization": {"Bearer " + unknownKey}}, 401},
		{"empty", http.Header{"Authorization": {"Bearer "}}, 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sent := b.sent()
			tt.header["Cookie"], tt.header["Proxy-Authorization"] = []string{"s=1"}, []string{"Basic Zm9v"}
			r := b.do(ask{header: tt.header})
			if r.status != tt.want {
				t.Fatalf("got %d %s, want %d", r.status, r.body, tt.want)
			}
			if tt.want == http.StatusUnauthorized {
				if r.errorKind() != "unauthorized" || r.errorType() != "authentication_error" || b.sent() != sent {
					t.Errorf("got %s %s after %d sends", r.errorKind(), r.errorType(), b.sent()-sent)
				}
				return
			}
			got := b.up.Requests()[sent].Header
			if got.Get("X-Api-Key") != secret("marlow") || got.Get("Authorization") != "" || got.Get("Cookie") != "" || got.Get("Proxy-Authorization") != "" {
				t.Errorf("got %v upstream, want exactly the account's key", got)
			}
			if all := fmt.Sprint(got); containsAny(all, b.key, other, "FOREIGN") {
				t.Errorf("a client's secret went upstream: %v", got)
			}
		})
	}
}

// unknownKey is well formed, and nobody's.
const unknownKey = "hf_0000000000000000000000000000000000000000000000000000"

func flip(key string) string {
	last := byte('A')
	if key[10] == last {
		last = 'B'
	}
	return key[:10] + string(last) + key[11:]
}

func TestKeyForOneAccount(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	key := b.newKey(catalog.ClientKey{Name: "narrow", Accounts: []account.ID{"acc-juniper"}})
	b.clock.advance(2 * time.Second)
	if r := b.served(ask{key: key, session: session(1)}); r.account() != "juniper" {
		t.Errorf("got %s, want juniper", r.account())
	}
}

// TestPriorityInAnySpelling is part of field case small-ones: the value of X-Holdfast-Priority
// counts in any case, and one that means nothing is refused: ignored, it would have work that
// was meant to yield spend what interactive work needs.
func TestPriorityInAnySpelling(t *testing.T) {
	b := threeProviders(t)
	for _, name := range []string{"marlow", "tansy", "bracken"} {
		b.fold(name, func(s account.State) account.State {
			return s.Observe(reading(b.clock.now(), 0.9, 0.9), 0, account.Rules{})
		})
	}
	for _, tt := range []struct {
		values []string
		want   int
	}{
		{[]string{"background"}, 429},
		{[]string{"Background"}, 429},
		{[]string{" BACKGROUND "}, 429},
		{[]string{"background, background"}, 429},
		{[]string{"", "background"}, 429},
		{[]string{""}, 200},
		{[]string{"backgroud"}, 400},
		{[]string{"high"}, 400},
		{[]string{"background", "high"}, 400},
	} {
		for _, path := range []string{"/v1/messages", "/openai/v1/responses", "/xai/v1/chat/completions"} {
			sent := b.sent()
			r := b.do(ask{path: path, header: http.Header{"X-Holdfast-Priority": tt.values}})
			if r.status != tt.want || (b.sent() > sent) != (tt.want == 200) {
				t.Errorf("%q to %s: got %d after %d sends: %s, want %d", tt.values, path, r.status, b.sent()-sent, r.body, tt.want)
			}
			if tt.want == 400 && (r.errorKind() != "bad_request" || !strings.Contains(r.body, "Send background") || strings.Contains(r.body, "high")) {
				t.Errorf("%q to %s: got %s", tt.values, path, r.body)
			}
		}
	}
}

// TestBackgroundYields is field case background-label-and-starvation: a client key or a header
// makes a request yield, and what is interactive is served.
func TestBackgroundYields(t *testing.T) {
	b := newBench(t, "marlow")
	key := b.newKey(catalog.ClientKey{Name: "batch", Background: true})
	b.clock.advance(2 * time.Second)
	b.fold("marlow", func(s account.State) account.State {
		return s.Observe(reading(b.clock.now(), 0.86, 0.2), 0, account.Rules{})
	})
	for _, a := range []ask{{key: key}, {header: http.Header{"X-Holdfast-Priority": {"background"}}}} {
		r := b.do(a)
		if r.status != http.StatusTooManyRequests || r.errorKind() != "yielded" || r.header.Get("Retry-After") == "" || b.sent() != 0 {
			t.Errorf("got %d %s, Retry-After %q after %d sends", r.status, r.errorKind(), r.header.Get("Retry-After"), b.sent())
		}
	}
	b.served(ask{})
}

// beta-headers-lost
func TestHeadersThatGoUpstream(t *testing.T) {
	b := newBench(t, "marlow")
	b.addAccount("login", account.Subscription)
	loginOnly := b.newKey(catalog.ClientKey{Name: "login only", Accounts: []account.ID{"acc-login"}})
	keyOnly := b.newKey(catalog.ClientKey{Name: "key only", Accounts: []account.ID{"acc-marlow"}})
	b.clock.advance(2 * time.Second)
	h := http.Header{
		"Anthropic-Beta": {"a-1,kestrel-2027-02-01", "a-1"}, "X-App": {"cli"}, "X-Stainless-Lang": {"js"}, "User-Agent": {"claude-cli/2.1.332 (external, cli)"},
		"X-Forwarded-For": {"10.0.0.1"}, "X-Holdfast-Conversation": {"c"}, "Connection": {"X-Api-Key"},
	}
	b.served(ask{header: h, key: keyOnly})
	b.served(ask{header: h, key: loginOnly})
	forKey, forLogin := b.up.Requests()[0].Header, b.up.Requests()[1].Header
	flags := func(h http.Header) string { return strings.Join(h["Anthropic-Beta"], ",") }
	if got := flags(forKey); got != "a-1,kestrel-2027-02-01,a-1" {
		t.Errorf("for a key: got flags %q", got)
	}
	if got := flags(forLogin); got != "a-1,kestrel-2027-02-01,a-1,oauth-2025-04-20" {
		t.Errorf("for a login: got flags %q", got)
	}
	if forLogin.Get("Authorization") != "Bearer "+secret("login") || forLogin.Get("X-Api-Key") != "" {
		t.Error("the login's token is not the one credential")
	}
	if forKey.Get("X-Api-Key") != secret("marlow") {
		t.Error("naming the credential's header in Connection had it stripped")
	}
	for _, got := range []http.Header{forKey, forLogin} {
		if got.Get("User-Agent") != "claude-cli/2.1.332 (external, cli)" || got.Get("X-App") != "cli" || got.Get("X-Stainless-Lang") != "js" {
			t.Errorf("the client's headers were changed: %v", got)
		}
		if got.Get("X-Forwarded-For") != "" || got.Get("X-Holdfast-Conversation") != "" {
			t.Errorf("headers of the hop before went upstream: %v", got)
		}
	}
}

func TestBodyAndQueryGoUpstreamByteForByte(t *testing.T) {
	b := newBench(t, "marlow")
	body := "{ \"model\" : \"claude-opus-x[1m]\",\n\t\"max_tokens\":10, \"messages\":[{\"role\":\"user\",\"content\":\"\\u00e4 \xc3\xa4 \\/\"}], \"unknown\": 1e400 }"
	b.served(ask{body: body, path: "/v1/messages?beta=true&x=%2F&y=a+b"})
	got := b.up.Requests()[0]
	if string(got.Body) != body || got.Query != "beta=true&x=%2F&y=a+b" || got.ContentLength != int64(len(body)) {
		t.Errorf("got %q ?%s, length %d", got.Body, got.Query, got.ContentLength)
	}
}

// compressed-request-bodies
func TestCompressedBodies(t *testing.T) {
	plain := []byte(`{"model":"claude-opus-5","max_tokens":10,"metadata":{"user_id":"{\"session_id\":\"` + session(7) + `\"}"},"messages":[{"role":"user","content":"` + strings.Repeat("hello ", 500) + `"}]}`)
	gz := func(in []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(in)
		_ = w.Close()
		return out.Bytes()
	}
	zs := func(in []byte) []byte {
		w, _ := zstd.NewWriter(nil)
		return w.EncodeAll(in, nil)
	}
	br := func(in []byte) []byte {
		var out bytes.Buffer
		w := brotli.NewWriter(&out)
		_, _ = w.Write(in)
		_ = w.Close()
		return out.Bytes()
	}
	zl := func(in []byte) []byte {
		var out bytes.Buffer
		w := zlib.NewWriter(&out)
		_, _ = w.Write(in)
		_ = w.Close()
		return out.Bytes()
	}
	bomb := gz(make([]byte, 64<<20))
	tests := []struct {
		name   string
		coding string
		body   []byte
		want   int
	}{
		{"plain", "", plain, 200},
		{"identity", "identity", plain, 200},
		{"gzip", "gzip", gz(plain), 200},
		{"zstd", "zstd", zs(plain), 200},
		{"br", "br", br(plain), 200},
		{"deflate", "deflate", zl(plain), 200},
		{"gzip of zstd", "zstd, gzip", gz(zs(plain)), 200},
		{"cut", "zstd", zs(plain)[:40], 400},
		{"labelled wrongly", "zstd", plain, 400},
		{"garbage", "gzip", []byte("not gzip"), 400},
		{"unknown", "snappy", plain, 415},
		{"inflates over the limit", "gzip", bomb, 413},
	}
	b := newBench(t, "marlow")
	key := ""
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sent := b.sent()
			h := http.Header{}
			if tt.coding != "" {
				h["Content-Encoding"] = []string{tt.coding}
			}
			r := b.do(ask{body: string(tt.body), header: h})
			if r.status != tt.want {
				t.Fatalf("got %d %s, want %d", r.status, r.body, tt.want)
			}
			if tt.want != 200 {
				if b.sent() != sent || r.errorType() == "" || !strings.Contains(r.body, "holdfast: ") {
					t.Errorf("got %s after %d sends", r.body, b.sent()-sent)
				}
				return
			}
			got := b.up.Requests()[sent]
			if !bytes.Equal(got.Body, tt.body) || got.Header.Get("Content-Encoding") != tt.coding {
				t.Errorf("got %d bytes as %q, want the %d sent as %q", len(got.Body), got.Header.Get("Content-Encoding"), len(tt.body), tt.coding)
			}
			if key == "" {
				key = r.pin()
			} else if r.pin() != "kept" {
				t.Errorf("got pin %s: the session was not found in the body", r.pin())
			}
		})
	}
}

// function-url-body-limits
func TestBodyOverTheLimit(t *testing.T) {
	b := newBench(t, "marlow")
	b.set("max_body", "64KiB")
	b.clock.advance(2 * time.Second)
	b.served(ask{}) // brings the change in
	big := `{"model":"claude-opus-5","messages":[{"role":"user","content":"` + strings.Repeat("x", 3<<20) + `"}]}`
	for _, chunked := range []bool{false, true} {
		req := b.request(ask{body: big})
		if chunked {
			req.ContentLength = -1
			req.Body = io.NopCloser(strings.NewReader(big))
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatalf("chunked %v: the client did not hear the answer: %v", chunked, err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge || resp.Header.Get("X-Holdfast-Error") != "too_large" {
			t.Errorf("chunked %v: got %d %s", chunked, resp.StatusCode, resp.Header.Get("X-Holdfast-Error"))
		}
	}
	if n := b.sent(); n != 1 {
		t.Errorf("got %d sends, want 1", n)
	}
	within := `{"model":"claude-opus-5","messages":[{"role":"user","content":"` + strings.Repeat("x", 64<<10-64-1) + `"}]}`
	if r := b.do(ask{body: within[:64<<10-3] + `"}]}`}); r.status == http.StatusRequestEntityTooLarge && len(within) <= 64<<10 {
		t.Errorf("a body within the limit: got %d", r.status)
	}
}

func TestMalformedBodies(t *testing.T) {
	b := newBench(t, "marlow")
	for _, body := range []string{`{"model":`, `[]`, `"text"`, `{"model":"a"} x`, `{'model':1}`, "\x00", `{"a":01}`} {
		r := b.do(ask{body: body})
		if r.status != http.StatusBadRequest || r.errorKind() != "bad_request" || r.errorType() != "invalid_request_error" {
			t.Errorf("%q: got %d %s %s", body, r.status, r.errorKind(), r.body)
		}
	}
	if b.sent() != 0 {
		t.Errorf("got %d sends, want none", b.sent())
	}
}

// side-routes-and-probes, silent-success-from-our-own-adapter
func TestPaths(t *testing.T) {
	b := newBench(t, "marlow")
	admin := b.newKey(catalog.ClientKey{Name: "admin", Admin: true})
	b.clock.advance(2 * time.Second)
	_, anthropicAlone := b.process(b.store, func(o *gateway.Options) {
		o.Providers = map[account.Provider]provider.Provider{account.Anthropic: anthropic.Provider{}}
	})
	tests := []struct {
		name string
		a    ask
		want int
		kind string
		sent int
	}{
		{"hello", ask{method: "HEAD", path: "/api/hello", header: http.Header{"Authorization": nil}}, 200, "", 0},
		{"root", ask{method: "HEAD", path: "/", header: http.Header{"Authorization": nil}}, 200, "", 0},
		{"root by GET", ask{method: "GET", path: "/", header: http.Header{"Authorization": nil}}, 200, "", 0},
		{"health", ask{method: "GET", path: "/_holdfast/health", header: http.Header{"Authorization": nil}}, 200, "", 0},
		{"models", ask{method: "GET", path: "/v1/models?limit=1000"}, 200, "", 1},
		{"count_tokens", ask{path: "/v1/messages/count_tokens"}, 200, "", 1},
		{"with the provider in front", ask{path: "/anthropic/v1/messages"}, 200, "", 1},
		{"upgrade", ask{method: "GET", path: "/v1/responses", header: http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}}, 426, "bad_request", 0},
		{"a provider that is not served", ask{path: "/openai/v1/responses", url: anthropicAlone}, 404, "not_found", 0},
		{"unknown", ask{method: "GET", path: "/favicon.ico"}, 404, "not_found", 0},
		{"OPTIONS elsewhere", ask{method: "OPTIONS", path: "/x"}, 404, "not_found", 0},
		{"TRACE", ask{method: "TRACE"}, 405, "bad_request", 0},
		{"an invented method", ask{method: "FOO"}, 405, "bad_request", 0},
		{"/v1 twice", ask{path: "/v1/v1/messages"}, 200, "", 1},
		{"dot segments", ask{path: "/v1/%2e%2e/v1/messages"}, 400, "bad_request", 0},
		{"encoded slash", ask{path: "/v1%2fmessages"}, 400, "bad_request", 0},
		{"empty segment", ask{path: "/v1//messages"}, 400, "bad_request", 0},
		{"status without an admin key", ask{method: "GET", path: "/_holdfast/status.json"}, 403, "unauthorized", 0},
		{"status without a key", ask{method: "GET", path: "/_holdfast/status.json", header: http.Header{"Authorization": nil}}, 401, "unauthorized", 0},
		{"status", ask{method: "GET", path: "/_holdfast/status.json", key: admin}, 200, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sent := b.sent()
			r := b.do(tt.a)
			if r.status != tt.want || r.errorKind() != tt.kind || b.sent()-sent != tt.sent {
				t.Errorf("got %d %q after %d sends, want %d %q after %d: %s", r.status, r.errorKind(), b.sent()-sent, tt.want, tt.kind, tt.sent, r.body)
			}
			if tt.want >= 400 && tt.a.method != "HEAD" {
				if r.errorType() == "" || r.header.Get("X-Holdfast-Request") == "" {
					t.Errorf("got %s, want an API's error", r.body)
				}
			}
			if strings.Contains(r.body, "marlow") && tt.a.key != admin && tt.sent == 0 {
				t.Errorf("an answer made here names accounts: %s", r.body)
			}
		})
	}
}

func TestStatusJSON(t *testing.T) {
	b := newBench(t, "marlow")
	admin := b.newKey(catalog.ClientKey{Name: "admin", Admin: true})
	gate := upstreamtest.NewGate()
	b.account("marlow").Queue(upstreamtest.Good(nil).With(upstreamtest.Held(gate)))
	done := make(chan reply, 1)
	go func() { done <- b.do(ask{session: session(1)}) }()
	<-gate.Reached()
	b.clock.advance(2 * time.Second)
	r := b.served(ask{method: "GET", path: "/_holdfast/status.json", key: admin})
	gate.Release()
	<-done
	var got struct {
		Accounts []struct {
			Name     string
			State    string
			LivePins int `json:"live_pins"`
			InFlight int `json:"in_flight"`
		}
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Accounts) != 1 || got.Accounts[0].Name != "marlow" || got.Accounts[0].State != "ready" || got.Accounts[0].LivePins != 1 || got.Accounts[0].InFlight != 1 {
		t.Errorf("got %+v", got)
	}
	if containsAny(r.body, secret("marlow"), b.key, admin) {
		t.Error("the status tells a secret")
	}
}

// health-and-alarms-lie: health sees what picking sees.
func TestHealth(t *testing.T) {
	b := newBench(t, "marlow")
	health := ask{method: "GET", path: "/_holdfast/health", header: http.Header{"Authorization": nil}}
	if r := b.do(health); r.status != 200 || r.body != "ok\n" {
		t.Errorf("got %d %q", r.status, r.body)
	}
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(time.Hour)))
	b.do(ask{})
	b.clock.advance(2 * time.Second)
	if r := b.do(health); r.status != http.StatusServiceUnavailable || r.body != "unavailable\n" {
		t.Errorf("all spent: got %d %q", r.status, r.body)
	}
	b.clock.advance(time.Hour)
	if r := b.do(health); r.status != 200 {
		t.Errorf("after the reset: got %d", r.status)
	}
}

// secrets-in-logs
func TestNoSecretIsLogged(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1), stream: true})
	b.account("marlow").Queue(
		upstreamtest.FiveHourSpent(b.clock.now().Add(time.Hour)).With(upstreamtest.Rewritten(func(p []byte) []byte {
			return bytes.ReplaceAll(p, []byte("This request"), []byte(secret("marlow")+" echoed")) // as vendors have done
		})))
	b.do(ask{session: session(1)})
	b.do(ask{body: "{", session: session(1)})
	b.do(ask{header: http.Header{"Authorization": {"Bearer sk-ant-api03-FOREIGN"}}})
	b.await("log lines", func() bool { return strings.Count(b.log.String(), `"msg":"request"`) >= 4 })
	log := b.log.String()
	if containsAny(log, secret("marlow"), secret("juniper"), b.key, "FOREIGN", session(1), "hello") {
		t.Errorf("the log tells a secret, a conversation's id or a body:\n%s", log)
	}
	for _, want := range []string{`"msg":"pick"`, `"msg":"rejection"`, `"kind":"window"`, `"rule":`, `"anthropic-ratelimit-unified-5h-status":"rejected"`, `"conversation_key":`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}
