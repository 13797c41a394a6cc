package route_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/route"
)

func TestOf(t *testing.T) {
	tests := []struct {
		name string
		in   route.Request
		want route.Route
	}{
		{"messages", route.Request{Method: "POST", EscapedPath: "/v1/messages"}, route.Route{Kind: route.Provider, Provider: account.Anthropic, Path: "/v1/messages", RawPath: "/v1/messages"}},
		{"count_tokens", route.Request{Method: "POST", EscapedPath: "/v1/messages/count_tokens"}, route.Route{Kind: route.Provider, Provider: account.Anthropic, Path: "/v1/messages/count_tokens", RawPath: "/v1/messages/count_tokens"}},
		{"batch with an encoded id", route.Request{Method: "GET", EscapedPath: "/v1/messages/batches/a%20b"}, route.Route{Kind: route.Provider, Provider: account.Anthropic, Path: "/v1/messages/batches/a b", RawPath: "/v1/messages/batches/a%20b"}},
		{"complete", route.Request{Method: "POST", EscapedPath: "/v1/complete"}, route.Route{Kind: route.Provider, Provider: account.Anthropic, Path: "/v1/complete", RawPath: "/v1/complete"}},
		{"models of Anthropic", route.Request{Method: "GET", EscapedPath: "/v1/models", AnthropicVersion: true}, route.Route{Kind: route.Provider, Provider: account.Anthropic, Path: "/v1/models", RawPath: "/v1/models"}},
		{"models of others", route.Request{Method: "GET", EscapedPath: "/v1/models"}, route.Route{Kind: route.ByModel, Modelless: true, Path: "/v1/models", RawPath: "/v1/models"}},
		{"responses", route.Request{Method: "POST", EscapedPath: "/v1/responses"}, route.Route{Kind: route.ByModel, Path: "/v1/responses", RawPath: "/v1/responses"}},
		{"responses upgrade", route.Request{Method: "GET", EscapedPath: "/v1/responses", Upgrade: true}, route.Route{Kind: route.NoWebSocket}},
		{"chat completions", route.Request{Method: "POST", EscapedPath: "/v1/chat/completions"}, route.Route{Kind: route.ByModel, Path: "/v1/chat/completions", RawPath: "/v1/chat/completions"}},
		{"named provider", route.Request{Method: "POST", EscapedPath: "/xai/v1/chat/completions"}, route.Route{Kind: route.Provider, Provider: account.XAI, Path: "/v1/chat/completions", RawPath: "/v1/chat/completions"}},
		{"named provider, encoded", route.Request{Method: "GET", EscapedPath: "/anthropic/v1/files/a%2Bb"}, route.Route{Kind: route.Provider, Provider: account.Anthropic, Path: "/v1/files/a+b", RawPath: "/v1/files/a%2Bb"}},
		{"named provider without a path", route.Request{Method: "GET", EscapedPath: "/anthropic"}, route.Route{}},
		{"root", route.Request{Method: "HEAD", EscapedPath: "/"}, route.Route{Kind: route.Hello}},
		{"root by GET", route.Request{Method: "GET", EscapedPath: "/"}, route.Route{Kind: route.Hello}},
		{"root by POST", route.Request{Method: "POST", EscapedPath: "/"}, route.Route{}},
		{"hello", route.Request{Method: "HEAD", EscapedPath: "/api/hello"}, route.Route{Kind: route.Hello}},
		{"hello by POST", route.Request{Method: "POST", EscapedPath: "/api/hello"}, route.Route{}},
		{"health", route.Request{Method: "GET", EscapedPath: "/_holdfast/health"}, route.Route{Kind: route.Health}},
		{"status", route.Request{Method: "GET", EscapedPath: "/_holdfast/status.json"}, route.Route{Kind: route.Status}},
		{"unknown below _holdfast", route.Request{Method: "GET", EscapedPath: "/_holdfast/accounts"}, route.Route{}},
		{"TRACE", route.Request{Method: "TRACE", EscapedPath: "/v1/messages"}, route.Route{Kind: route.NoMethod}},
		{"an invented method", route.Request{Method: "FOO", EscapedPath: "/v1/messages"}, route.Route{Kind: route.NoMethod}},
		{"unknown", route.Request{Method: "GET", EscapedPath: "/favicon.ico"}, route.Route{}},
		{"messages is no prefix", route.Request{Method: "POST", EscapedPath: "/v1/messagesx"}, route.Route{Path: "/v1/messagesx", RawPath: "/v1/messagesx"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := route.Of(tt.in)
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

// TestAsMeant is field case a-doubled-or-missing-v1: a base URL that ends in /v1, or does
// not, against what the client expects, leads to the same place.
func TestAsMeant(t *testing.T) {
	tests := []struct {
		path, want string // want is empty for nowhere
		kind       route.Kind
		provider   account.Provider
	}{
		{"/v1/v1/messages", "/v1/messages", route.Provider, account.Anthropic},
		{"/v1/v1/messages/count_tokens", "/v1/messages/count_tokens", route.Provider, account.Anthropic},
		{"/messages", "/v1/messages", route.Provider, account.Anthropic},
		{"/complete", "/v1/complete", route.Provider, account.Anthropic},
		{"/chat/completions", "/v1/chat/completions", route.ByModel, ""},
		{"/v1/v1/chat/completions", "/v1/chat/completions", route.ByModel, ""},
		{"/responses/resp_1/cancel", "/v1/responses/resp_1/cancel", route.ByModel, ""},
		{"/completions", "/v1/completions", route.ByModel, ""},
		{"/embeddings", "/v1/embeddings", route.ByModel, ""},
		{"/images/edits", "/v1/images/edits", route.ByModel, ""},
		{"/audio/speech", "/v1/audio/speech", route.ByModel, ""},
		{"/models", "/v1/models", route.ByModel, ""},
		{"/files/file-1%2B2/content", "/v1/files/file-1%2B2/content", route.ByModel, ""},
		{"/openai/v1/v1/responses", "/v1/responses", route.Provider, account.OpenAI},
		{"/xai/chat/completions", "/v1/chat/completions", route.Provider, account.XAI},
		{"/anthropic/messages", "/v1/messages", route.Provider, account.Anthropic},
		// Other paths of a provider are as it spells them.
		{"/openai/backend-api/codex/responses", "/backend-api/codex/responses", route.Provider, account.OpenAI},
		{"/anthropic/api/oauth/profile", "/api/oauth/profile", route.Provider, account.Anthropic},
		{"/openai/v1/v1/organization", "/v1/v1/organization", route.Provider, account.OpenAI},
		{"/v1/v1/organization", "", route.Nowhere, ""},
		{"/v1/v1", "", route.Nowhere, ""},
		{"/v1/v1/v1/messages", "", route.Nowhere, ""},
		{"/organization", "", route.Nowhere, ""},
		{"/chat", "", route.Nowhere, ""},
		{"/v1/api/hello", "", route.Nowhere, ""},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			got, err := route.Of(route.Request{Method: "POST", EscapedPath: tt.path})
			if err != nil || got.Kind != tt.kind || got.Provider != tt.provider || (tt.want != "" && got.RawPath != tt.want) {
				t.Errorf("got %+v, %v, want %v %s %s", got, err, tt.kind, tt.provider, tt.want)
			}
		})
	}
	if got, err := route.Of(route.Request{Method: "GET", EscapedPath: "/models", AnthropicVersion: true}); err != nil || got.Provider != account.Anthropic {
		t.Errorf("models of Anthropic without /v1: got %+v, %v", got, err)
	}
}

func TestHostilePaths(t *testing.T) {
	for _, path := range []string{
		"//v1/messages", "/v1//messages", "/v1/messages/", "/v1/./messages", "/v1/../v1/messages", "/anthropic/../_holdfast/status.json",
		"/v1/%2e%2e/messages", "/v1/%2E/messages", "/v1%2fmessages", "/v1/messages%2Fbatches", "/v1/a%5cb", "/v1/messages%00", "/v1/%zz", "v1/messages",
		"/anthropic//v1/messages",
	} {
		if got, err := route.Of(route.Request{Method: "POST", EscapedPath: path}); !errors.Is(err, route.ErrPath) {
			t.Errorf("%s: got %+v, %v, want ErrPath", path, got, err)
		}
	}
}

func TestForModel(t *testing.T) {
	for model, want := range map[string]account.Provider{
		"grok-4.6": account.XAI, "Grok-build": account.XAI, "gpt-5.5": account.OpenAI, "": account.OpenAI, "my-grok": account.OpenAI,
		" grok-4.6 ": account.XAI, "\t\nGROK": account.XAI, "\ufeffgrok": account.XAI, `"grok-4.6"`: account.XAI, " gpt-5.5": account.OpenAI, " ": account.OpenAI,
		"4grok": account.OpenAI, "xai/grok-4.6": account.XAI, "a/x-ai/Grok-4": account.XAI, "openai/gpt-5.5": account.OpenAI, "grok-4.6/high": account.XAI,
		"ft:gpt-4o:grok::1": account.OpenAI,
	} {
		if got := route.ForModel(model); got != want {
			t.Errorf("%q: got %s, want %s", model, got, want)
		}
	}
}

// Whatever is routed to a provider reaches it under a path that has no segment which
// another parser could read as a way out.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{"/v1/messages", "/anthropic/v1/x", "/v1/%2e%2e/x", "/", "", "/openai/v1/files/%41", "/v1/v1/messages", "/xai/chat/completions", "/%761/v1/models"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := route.Of(route.Request{Method: "POST", EscapedPath: path})
		if err != nil && got != (route.Route{}) {
			t.Fatalf("got %+v beside an error", got)
		}
		if got.Kind != route.Provider && got.Kind != route.ByModel {
			return
		}
		if !strings.HasSuffix(path, got.RawPath) && !strings.HasSuffix(path, strings.TrimPrefix(got.RawPath, "/v1")) {
			t.Fatalf("raw path %q is not the end of %q", got.RawPath, path)
		}
		if decoded, err := url.PathUnescape(got.RawPath); err != nil || decoded != got.Path {
			t.Fatalf("raw path %q is not %q encoded (%v)", got.RawPath, got.Path, err)
		}
		for s := range strings.SplitSeq(strings.TrimPrefix(got.Path, "/"), "/") {
			if s == "" || s == "." || s == ".." {
				t.Fatalf("segment %q in %q", s, got.Path)
			}
		}
	})
}
