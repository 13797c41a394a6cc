package gateway_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
)

// threeProviders is a bench with one key account at each provider.
func threeProviders(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, "marlow")
	b.addOf(account.OpenAI, "tansy", account.Key)
	b.addOf(account.XAI, "bracken", account.Key)
	return b
}

// TestUpgradeOnAnyPath is field case upgrade-under-a-prefix: an upgrade to WebSocket is
// refused on every path, and nothing of it goes upstream.
func TestUpgradeOnAnyPath(t *testing.T) {
	b := threeProviders(t)
	whole := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Key": {"bm90LWEtc2VjcmV0LWtleQ=="}, "Sec-Websocket-Version": {"13"}}
	for _, path := range []string{
		"/", "/v1/responses", "/v1/responses/resp_1", "/v1/messages", "/v1/realtime", "/v1/v1/responses", "/responses",
		"/openai/v1/responses", "/openai/v1/realtime?model=gpt-realtime", "/xai/v1/responses", "/xai/v1/realtime", "/anthropic/v1/messages",
		"/openai/backend-api/codex/responses", "/_holdfast/status.json", "/nowhere",
	} {
		if r := b.do(ask{method: "GET", path: path, header: whole}); r.status != 426 || r.errorKind() != "bad_request" {
			t.Errorf("%s: got %d %s, want 426", path, r.status, r.body)
		}
	}
	for name, h := range map[string]http.Header{
		"in a list":         {"Connection": {"Upgrade"}, "Upgrade": {"h2c, WebSocket/13"}},
		"in a second line":  {"Connection": {"Upgrade"}, "Upgrade": {"h2c", "websocket"}},
		"its key alone":     {"Sec-Websocket-Key": {"bm90LWEtc2VjcmV0LWtleQ=="}},
		"its key, no value": {"Sec-Websocket-Key": {""}},
	} {
		if r := b.do(ask{method: "GET", path: "/openai/v1/responses/resp_1", header: h}); r.status != 426 {
			t.Errorf("%s: got %d %s, want 426", name, r.status, r.body)
		}
	}
	if n := b.sent(); n != 0 {
		t.Errorf("%d requests went upstream, want none", n)
	}
	// Another protocol is not taken up: the request is served as it stands.
	b.served(ask{header: http.Header{"Connection": {"Upgrade, HTTP2-Settings"}, "Upgrade": {"h2c"}, "Http2-Settings": {"AAMAAABkAAQAoAAAAAIAAAAA"}}})
}

// TestServedAsMeant is field case a-doubled-or-missing-v1: the upstream sees the path that
// the provider has, with the query as it came.
func TestServedAsMeant(t *testing.T) {
	b := threeProviders(t)
	for _, tt := range []struct{ path, model, account, want, query string }{
		{"/v1/v1/messages?beta=true", "claude-opus-5", "marlow", "/v1/messages", "beta=true"},
		{"/messages?beta=true", "claude-opus-5", "marlow", "/v1/messages", "beta=true"},
		{"/anthropic/v1/v1/messages", "claude-opus-5", "marlow", "/v1/messages", ""},
		{"/chat/completions", "gpt-5.5", "tansy", "/v1/chat/completions", ""},
		{"/v1/v1/responses", "gpt-5.5", "tansy", "/v1/responses", ""},
		{"/openai/responses", "gpt-5.5", "tansy", "/v1/responses", ""},
		{"/chat/completions", "grok-4.6", "bracken", "/v1/chat/completions", ""},
		{"/xai/chat/completions", "grok-4.6", "bracken", "/v1/chat/completions", ""},
	} {
		b.up.Forget()
		r := b.do(ask{path: tt.path, body: `{"model":"` + tt.model + `","max_tokens":9,"input":"hello","messages":[{"role":"user","content":"hello"}]}`})
		got := b.up.Requests()
		if r.status != http.StatusOK || r.account() != tt.account || len(got) != 1 || got[0].Path != tt.want || got[0].Query != tt.query {
			t.Errorf("%s %s: got %d by %q, %d sends %s", tt.path, tt.model, r.status, r.account(), len(got), r.body)
		}
	}
}

// TestObjectsAsMeant is field case a-doubled-or-missing-v1: a call for one object goes to the
// account that has the object, however the base URL ends, with the path as the provider has it
// and the query byte for byte.
func TestObjectsAsMeant(t *testing.T) {
	const query = "limit=2&x=%2F+%41&&y"
	kinds := []struct {
		provider   account.Provider
		make       string   // the path that makes the object
		id, object string   // as the API tells them
		calls      []string // behind /v1
		unprefixed bool     // the path alone leads to the provider
	}{
		{account.Anthropic, "/v1/messages/batches", "msgbatch_1", "message_batch", []string{"/messages/batches/msgbatch_1", "/messages/batches/msgbatch_1/results"}, true},
		{account.Anthropic, "/v1/files", "file_1", "file", []string{"/files/file_1", "/files/file_1/content", "/files/file%5F1"}, true},
		{account.OpenAI, "/v1/responses", "resp_1", "response", []string{"/responses/resp_1", "/responses/resp_1/input_items", "/responses/resp%5F1"}, true},
		{account.OpenAI, "/v1/files", "file-1", "file", []string{"/files/file-1", "/files/file-1/content", "/files/file%2D1/content"}, true},
		{account.OpenAI, "/openai/v1/batches", "batch_1", "batch", []string{"/batches/batch_1"}, false},
		{account.XAI, "/xai/v1/responses", "0b4e0e3a-1111-4222-8333-444455556666", "response", []string{"/responses/0b4e0e3a-1111-4222-8333-444455556666"}, true},
	}
	for _, k := range kinds {
		b := newBench(t)
		answer := jsonAnswer(http.StatusOK, nil, `{"id":"`+k.id+`","object":"`+k.object+`","type":"`+k.object+`","status":"completed","output":[]}`)
		made := k.make[strings.Index(k.make, "/v1"):]
		for _, name := range []string{"first", "second"} {
			a := b.addOf(k.provider, name, account.Key)
			a.OnPath(made, answer)
			for _, call := range k.calls {
				a.OnPath(decoded(t, "/v1"+call), answer)
			}
		}
		var header http.Header
		if k.provider != account.Anthropic {
			header = http.Header{"Anthropic-Version": nil}
		}
		b.prefer("first", "second")
		b.clock.advance(2 * time.Second)
		model := map[account.Provider]string{account.Anthropic: "claude-opus-5", account.OpenAI: "gpt-5.5", account.XAI: "grok-4.6"}[k.provider]
		r := b.do(ask{path: k.make, header: header, body: `{"model":"` + model + `","input":"hello","requests":[]}`})
		owner, other := r.account(), "second"
		if owner == other {
			other = "first"
		}
		if r.status != http.StatusOK || owner == "" {
			t.Errorf("%s: made by %q, %d %s", k.make, owner, r.status, r.body)
			continue
		}
		b.prefer(other, owner) // what names no object goes to the other account now
		b.clock.advance(2 * time.Second)
		prefix := "/" + string(k.provider)
		for _, call := range k.calls {
			paths := []string{prefix + "/v1" + call}
			if k.unprefixed {
				paths = append(paths, "/v1"+call, "/v1/v1"+call, call, prefix+"/v1/v1"+call, prefix+call)
			}
			for _, path := range paths {
				b.up.Forget()
				r := b.do(ask{method: "GET", path: path + "?" + query, header: header})
				got := b.up.Requests()
				if r.status != http.StatusOK || r.account() != owner || len(got) != 1 {
					t.Errorf("%s: got %d by %q, %d sends %s", path, r.status, r.account(), len(got), r.body)
					continue
				}
				if want := "/v1" + call; got[0].Query != query || got[0].Path != decoded(t, want) {
					t.Errorf("%s: upstream got %s?%s, want %s?%s", path, got[0].Path, got[0].Query, want, query)
				}
			}
		}
	}
}

// decoded is an encoded path as a server reads it.
func decoded(t *testing.T, path string) string {
	t.Helper()
	p, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPathThatNoAccountServes is field case unknown-path-behind-a-provider: what no credential
// of a provider is for is 404, with an account or without one. A path of its API that is not
// known may be new: it goes to the provider, or is refused for want of an account.
func TestPathThatNoAccountServes(t *testing.T) {
	alone, all := newBench(t), threeProviders(t)
	login := newBench(t)
	login.addOf(account.OpenAI, "plan", account.Subscription)
	for _, tt := range []struct{ method, path, served string }{
		{"POST", "/openai/foo", "/openai/v1/models"},
		{"GET", "/openai/v1/organization/usage", "/openai/v1/models"},
		{"POST", "/anthropic/api/oauth/usage", "/anthropic/v1/models"},
		{"GET", "/xai/nope", "/xai/v1/models"},
	} {
		for name, b := range map[string]*bench{"no account": alone, "keys": all, "a login": login} {
			r := b.do(ask{method: tt.method, path: tt.path})
			if r.status != http.StatusNotFound || r.errorKind() != "not_found" || r.header.Get("X-Should-Retry") != "false" ||
				!strings.Contains(r.body, tt.served) || strings.Contains(r.body, "account add") {
				t.Errorf("%s %s with %s: got %d %s %s", tt.method, tt.path, name, r.status, r.errorKind(), r.body)
			}
		}
	}
	for _, path := range []string{"/openai/v1/foo", "/anthropic/v1/nope", "/xai/v1/nope", "/v1/messages", "/v1/responses"} {
		provider := strings.Split(path, "/")[1]
		if provider == "v1" {
			provider = map[string]string{"/v1/messages": "anthropic", "/v1/responses": "openai"}[path]
		}
		r := alone.do(ask{path: path})
		inner := path[strings.Index(path, "/v1"):]
		if r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account" ||
			!strings.Contains(r.body, "there is no account of "+provider+" to send POST "+inner+" to") || !strings.Contains(r.body, "account add NAME --provider "+provider) {
			t.Errorf("%s: got %d %s %s", path, r.status, r.errorKind(), r.body)
		}
	}
	all.account("tansy").OnPath("/v1/foo", jsonAnswer(http.StatusOK, nil, `{"id":"x"}`))
	if r := all.do(ask{path: "/openai/v1/foo"}); r.status != http.StatusOK || r.account() != "tansy" {
		t.Errorf("a new path: got %d %s", r.status, r.body)
	}
}
