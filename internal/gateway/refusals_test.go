package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestRefusalsSayNotToRetry is field case should-retry: at every route, with a provider or
// before one is known, what does not pass by itself says so.
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
