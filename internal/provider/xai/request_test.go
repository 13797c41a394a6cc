package xai_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/xai"
	"holdfast/internal/wire/body"
)

func TestInspect(t *testing.T) {
	r := inference("Grok-4.6")
	if r.Role != provider.Inference || r.Model != "Grok-4.6" || r.Family != "grok-4.6" || !r.Stream || r.Bound || r.Stay {
		t.Errorf("got %+v, want an unbound inference of Grok-4.6 that streams", r)
	}
	if !slices.Contains(r.Features, xai.ChatEndpoint) {
		t.Errorf("got features %q, want %s", r.Features, xai.ChatEndpoint)
	}
	if r := (xai.Provider{}).Inspect("GET", "/v1/models", nil, body.Facts{}); len(r.Features) > 0 {
		t.Errorf("a list of models: got features %q, want none", r.Features)
	}
	named := xai.Provider{}.Inspect("POST", "/v1/responses", http.Header{"X-Grok-Model-Override": {"grok-build"}}, body.Facts{})
	if named.Model != "grok-build" || named.Family != "grok-build" {
		t.Errorf("model by header: got %q of %q, want grok-build", named.Model, named.Family)
	}
	if r := inference(""); r.Model != "" || r.Family != "" {
		t.Errorf("no model: got %q of %q, want none", r.Model, r.Family)
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		name string
		f    body.Facts
		want bool
	}{
		{"plain", body.Facts{Model: "grok-4.6", PromptCacheKey: "p", Messages: 4}, false},
		{"encrypted reasoning", body.Facts{Encrypted: true}, true},
		{"previous response", body.Facts{PreviousResponseID: "r"}, true},
		{"stored conversation", body.Facts{Conversation: "c"}, true},
		{"file", body.Facts{Objects: []string{"file-a"}}, true},
	} {
		if got := (xai.Provider{}).Inspect("POST", "/v1/responses", grokCLI, c.f).Bound; got != c.want {
			t.Errorf("%s: got bound %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRole(t *testing.T) {
	quota := body.Facts{MaxTokens: 1, Messages: 1, FirstUser: "quota"}
	for _, c := range []struct {
		method, path string
		f            body.Facts
		want         provider.Role
	}{
		{"POST", "/v1/responses", body.Facts{}, provider.Inference},
		{"POST", "/v1/responses/compact", body.Facts{}, provider.Inference},
		{"POST", "/v1/chat/completions", body.Facts{}, provider.Inference},
		{"POST", "/v1/messages", body.Facts{}, provider.Inference},
		{"POST", "/v1/messages", quota, provider.Aside},
		{"POST", "/v1/responses", quota, provider.Inference},
		{"POST", "/v1/messages/count_tokens", body.Facts{}, provider.Aside},
		{"POST", "/v1/images/generations", body.Facts{}, provider.Inference},
		{"POST", "/v1/tokenize-text", body.Facts{}, provider.Aside},
		{"GET", "/v1/models", body.Facts{}, provider.Aside},
		{"GET", "/v1/responses/r1", body.Facts{}, provider.Stateful},
		{"DELETE", "/v1/responses/r1", body.Facts{}, provider.Stateful},
		{"GET", "/v1/chat/deferred-completion/d1", body.Facts{}, provider.Stateful},
		{"GET", "/v1/videos/v1", body.Facts{}, provider.Stateful},
		{"POST", "/v1/files", body.Facts{}, provider.Stateful},
		{"POST", "/v1/responsesque", body.Facts{}, provider.Aside},
	} {
		if got := (xai.Provider{}).Inspect(c.method, c.path, nil, c.f).Role; got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.path, got, c.want)
		}
	}
}

func TestServes(t *testing.T) {
	for _, c := range []struct {
		path              string
		key, subscription bool // the latter for a request with a version
	}{
		{"/v1/responses", true, true},
		{"/v1/chat/completions", true, true},
		{"/v1/messages", true, true},
		{"/v1/models", true, true},
		{"/v1/models/grok-4.6", true, true},
		{"/v1/responses/compact", true, false}, // the proxy has none
		{"/v1/responses/r1", true, false},
		{"/v1/embeddings", true, false},
		{"/v1/images/generations", true, false},
		{"/v1/api-key", false, false},
		{"/v1/me", false, false},
		{"/v1/realtime/client_secrets", false, false},
		{"/v1/billing", true, false},
		{"/v1/settings", true, false},
		{"/v1/user", true, false},
		{"/oauth2/token", false, false},
		{"/rest/rate-limits", false, false},
	} {
		p := xai.Provider{}
		if got := p.Serves(account.Key, c.path, nil, provider.Request{}); got != c.key {
			t.Errorf("%s by a key: got %v, want %v", c.path, got, c.key)
		}
		if got := p.Serves(account.Subscription, c.path, grokCLI, provider.Request{}); got != c.subscription {
			t.Errorf("%s by a subscription: got %v, want %v", c.path, got, c.subscription)
		}
	}
}

func TestServesOnlyVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"1.0.41": true, "0.1.202": true, " 1.0.41 ": true, "1.0.0-alpha.1": true, "1.0.0+build.7": true, "1.0.0-rc-1+x": true,
		"": false, "none": false, "1.0": false, "1.0.0.0": false, "v1.0.0": false, "01.0.0": false, "1.0.x": false, "1.0.0-": false, "1.0.0+": false, "1.0.0-a..b": false, "1..0": false, "1.0.0-a_b": false,
	} {
		h := http.Header{"X-Grok-Client-Version": {version}}
		if got := (xai.Provider{}).Serves(account.Subscription, "/v1/responses", h, provider.Request{}); got != want {
			t.Errorf("version %q: got %v, want %v", version, got, want)
		}
		if !(xai.Provider{}).Serves(account.Subscription, "/v1/models", h, provider.Request{}) {
			t.Errorf("version %q: the list of models is not served", version)
		}
		if !(xai.Provider{}).Serves(account.Key, "/v1/responses", h, provider.Request{}) {
			t.Errorf("version %q: a key does not serve", version)
		}
	}
}

func TestTarget(t *testing.T) {
	for kind, want := range map[account.Kind]string{account.Key: "https://api.x.ai", account.Subscription: "https://cli-chat-proxy.grok.com"} {
		if base, path := (xai.Provider{}).Target(kind, "/v1/responses"); base != want || path != "/v1/responses" {
			t.Errorf("%s: got %s %s, want %s /v1/responses", kind, base, path, want)
		}
	}
}

func TestAuthorize(t *testing.T) {
	client := func() http.Header {
		return http.Header{"X-Grok-Client-Version": {"1.0.41"}, "X-Authenticateresponse": {"authenticate-response"}}
	}
	for _, c := range []struct {
		name string
		kind account.Kind
		in   http.Header
		want http.Header
	}{
		{"key", account.Key, http.Header{}, http.Header{"Authorization": {"Bearer key"}}},
		{"key, of a client with a login", account.Key, client(),
			http.Header{"Authorization": {"Bearer key"}, "X-Grok-Client-Version": {"1.0.41"}, "X-Authenticateresponse": {"authenticate-response"}}},
		{"login", account.Subscription, http.Header{}, http.Header{"Authorization": {"Bearer access"}, "X-Xai-Token-Auth": {"xai-grok-cli"}}},
		{"login, the marker once", account.Subscription, client(), http.Header{
			"Authorization": {"Bearer access"}, "X-Xai-Token-Auth": {"xai-grok-cli"}, "X-Grok-Client-Version": {"1.0.41"}, "X-Authenticateresponse": {"authenticate-response"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cred := credential.Credential{Key: credential.NewSecret("key")}
			if c.kind == account.Subscription {
				cred = credential.Credential{Access: credential.NewSecret("access"), Refresh: credential.NewSecret("refresh")}
			}
			xai.Provider{}.Authorize(c.in, c.kind, cred)
			if !maps.EqualFunc(c.in, c.want, slices.Equal) {
				t.Errorf("got %v, want %v", c.in, c.want)
			}
		})
	}
}
