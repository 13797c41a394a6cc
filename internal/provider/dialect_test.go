package provider_test

import (
	"testing"

	"holdfast/internal/provider"
)

func TestDialectOf(t *testing.T) {
	for path, want := range map[string]provider.Dialect{
		"/v1/messages": provider.Messages, "/v1/messages/count_tokens": provider.Messages, "/v1/complete": provider.Messages,
		"/v1/responses": provider.Responses, "/v1/responses/resp_1": provider.Responses,
		"/v1/chat/completions": provider.Chat, "/v1/chat/completions/chatcmpl_1/messages": provider.Chat, "/v1/completions": provider.Chat,
		"/v1/chat/deferred-completion/1": "", "/v1/threads/t/messages": "", "/v1/images/generations": "", "/v1/models": "", "/v1": "", "/messages": "", "": "",
	} {
		if got := provider.DialectOf(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// TestKeepAlive is field case keep-alive-in-the-client's-dialect: only an event is followed by a
// blank line, which some clients take for an empty event.
func TestKeepAlive(t *testing.T) {
	for d, want := range map[provider.Dialect]string{
		provider.Messages:  "event: ping\ndata: {\"type\": \"ping\"}\n\n",
		provider.Responses: ": keep-alive\n", provider.Chat: ": keep-alive\n", "": ": keep-alive\n",
	} {
		if got := string(d.KeepAlive()); got != want {
			t.Errorf("%q: got %q, want %q", d, got, want)
		}
	}
}
