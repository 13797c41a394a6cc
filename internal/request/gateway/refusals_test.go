package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/core/clientkey"
)

// TestRefusalsSayNotToRetry is field case should-retry: at every route, with a provider or
// before one is known, a refusal that does not pass by itself has X-Should-Retry: false.
func TestRefusalsSayNotToRetry(t *testing.T) {
	b := newBench(t, "marlow")
	wrong := http.Header{"Authorization": {"Bearer " + flip(b.key)}}
	for _, c := range []struct {
		ask
		want int
	}{
		{ask{path: "/v1/messages", header: wrong}, 401},
		{ask{path: "/v1/responses", header: wrong}, 401},
		{ask{path: "/openai/v1/responses", header: wrong}, 401},
		{ask{path: "/xai/v1/chat/completions", header: wrong}, 401},
		{ask{method: "GET", path: "/_holdfast/status.json", header: wrong}, 401},
		{ask{method: "GET", path: "/_holdfast/status.json"}, 403},
		{ask{path: "/v1/nowhere/at/all"}, 404},
		{ask{path: "/v1/../v1/messages"}, 400},
		{ask{method: "GET", path: "/v1/responses", header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}}, 426},
		{ask{path: "/xai/v1/responses"}, 503},
		{ask{path: "/openai/v1/responses"}, 503},
	} {
		r := b.do(c.ask)
		if r.status != c.want || r.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: got %d, X-Should-Retry %q, want %d, false\n%s", c.path, r.status, r.header.Get("X-Should-Retry"), c.want, r.body)
		}
		if strings.Contains(strings.ToLower(r.body), "x-api-key") { // for which Claude Code shows words of its own instead
			t.Errorf("%s: got %s", c.path, r.body)
		}
	}
}

// A refusal, like an error in a stream, has the shape that clients of its path read; xAI's
// own flat one where that is Responses or Chat Completions.
func TestRefusalsSpeakTheDialectOfTheirPath(t *testing.T) {
	b := newBench(t, "marlow")
	wrong := http.Header{"Authorization": {"Bearer " + flip(b.key)}}
	for path, begin := range map[string]string{
		"/v1/messages":                   `{"type":"error","error":{"type":"authentication_error","message":"holdfast: `,
		"/v1/complete":                   `{"type":"error","error":{"type":"authentication_error","message":"holdfast: `,
		"/anthropic/v1/chat/completions": `{"error":{"message":"holdfast: `,
		"/openai/v1/responses":           `{"error":{"message":"holdfast: `,
		"/openai/v1/chat/completions":    `{"error":{"message":"holdfast: `,
		"/xai/v1/messages":               `{"type":"error","error":{"type":"authentication_error","message":"holdfast: `,
		"/xai/v1/responses":              `{"code":"unauthenticated","error":"holdfast: `,
		"/xai/v1/chat/completions":       `{"code":"unauthenticated","error":"holdfast: `,
	} {
		if r := b.do(ask{path: path, header: wrong}); !strings.HasPrefix(r.body, begin) {
			t.Errorf("%s: got %s, want %s…", path, r.body, begin)
		}
	}
}

// TestWhatCameInPlaceOfAClientKey is field case provider-key-as-client-key: a 401 says what
// was shown, as far as its beginning tells, and repeats nothing of it.
func TestWhatCameInPlaceOfAClientKey(t *testing.T) {
	b := threeProviders(t)
	for shown, want := range map[string]string{
		"":                                   "there was none",
		"sk-ant-api03-SECRET":                "an API key of Anthropic",
		"sk-ant-oat01-SECRET":                "the access token of a Claude login",
		"sk-proj-SECRET":                     "an API key of OpenAI",
		"xai-SECRET":                         "an API key of xAI",
		"eyJhbGciOiJSUzI1NiJ9.SECRET.SECRET": "the access token of a login",
		"hf_SECRET":                          "mistyped, cut, or an example",
		"$HOLDFAST_SECRET":                   "a variable that was not filled in",
		"SECRET":                             "something else",
		clientkey.FromSeed([]byte("SECRET")).Reveal(): "revoked, or made for another gateway",
	} {
		for _, path := range []string{"/v1/messages", "/v1/responses", "/xai/v1/chat/completions", "/_holdfast/status.json"} {
			for name, header := range map[string]http.Header{
				"as bearer": {"Authorization": {"Bearer " + shown}}, "as API key": {"Authorization": nil, "X-Api-Key": {shown}},
			} {
				method := "POST"
				if strings.HasPrefix(path, "/_holdfast") {
					method = "GET"
				}
				r := b.do(ask{method: method, path: path, header: header})
				if r.status != http.StatusUnauthorized || !strings.Contains(r.body, want) || !strings.Contains(r.body, "holdfast key create NAME") ||
					strings.Contains(r.body, "SECRET") || shown != "" && strings.Contains(r.body, shown) || strings.Contains(strings.ToLower(r.body), "x-api-key") {
					t.Errorf("%s %s to %s: got %d %s, want a word on %q", shown, name, path, r.status, r.body, want)
				}
			}
		}
	}
	// What stands beside a valid key is ignored.
	b.served(ask{header: http.Header{"X-Api-Key": {"sk-ant-api03-SECRET"}}})
}
