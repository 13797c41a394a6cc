package xai_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/provider"
	"holdfast/internal/provider/xai"
	"holdfast/internal/wire/body"
)

func TestObjects(t *testing.T) {
	const stored, lasting = 30 * 24 * time.Hour, 90 * 24 * time.Hour
	p := xai.Provider{}
	names := map[string][]string{
		"/v1/responses/1b2f":                {"1b2f", "resp_1", "file_a"},
		"/v1/responses":                     {"resp_1", "file_a"},
		"/v1/chat/deferred-completion/9f":   {"9f", "resp_1", "file_a"},
		"/v1/videos/generations":            {"resp_1", "file_a"},
		"/v1/collections/col_1/documents/x": {"col_1", "resp_1", "file_a"},
	}
	for path, want := range names {
		if diff := cmp.Diff(want, p.Names(path, "", body.Facts{PreviousResponseID: "resp_1", Objects: []string{"file_a"}})); diff != "" {
			t.Errorf("%s names (-want +got):\n%s", path, diff)
		}
	}
	created := []byte(`{"type":"response.created","response":{"id":"1b2f","object":"response","store":true}}`)
	for _, tt := range []struct {
		name string
		got  []provider.Object
		want []provider.Object
	}{
		{"a streamed response", p.EventMade(body.Facts{}, "response.created", created), []provider.Object{{ID: "1b2f", Keep: stored}}},
		{"without the event's name", p.EventMade(body.Facts{}, "", created), []provider.Object{{ID: "1b2f", Keep: stored}}},
		{"one that is not stored", p.EventMade(body.Facts{Unstored: true}, "response.created", created), nil},
		{"a chunk of a chat", p.EventMade(body.Facts{}, "", []byte(`{"id":"c","object":"chat.completion.chunk"}`)), nil},
		{"a whole response", p.BodyMade("POST", "/v1/responses", body.Facts{}, []byte(`{"id":"1b2f","object":"response"}`)), []provider.Object{{ID: "1b2f", Keep: stored}}},
		{"one said not to be stored", p.BodyMade("POST", "/v1/responses", body.Facts{}, []byte(`{"id":"1b2f","object":"response","store":false}`)), nil},
		{"a chat for later", p.BodyMade("POST", "/v1/chat/completions", body.Facts{}, []byte(`{"request_id":"9f"}`)), []provider.Object{{ID: "9f", Keep: stored}}},
		{"an ordinary chat", p.BodyMade("POST", "/v1/chat/completions", body.Facts{}, []byte(`{"id":"9f"}`)), nil},
		{"a video", p.BodyMade("POST", "/v1/videos/generations", body.Facts{}, []byte(`{"request_id":"v1"}`)), []provider.Object{{ID: "v1", Keep: stored}}},
		{"a file", p.BodyMade("POST", "/v1/files", body.Facts{}, []byte(`{"id":"file_a"}`)), []provider.Object{{ID: "file_a", Keep: lasting}}},
		{"a batch, by its own word for it", p.BodyMade("POST", "/v1/batches", body.Facts{}, []byte(`{"batch_id":"batch_1"}`)), []provider.Object{{ID: "batch_1", Keep: lasting}}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := p.Removed("DELETE", "/v1/responses/1b2f"); got != "1b2f" {
		t.Errorf("removed: got %q, want the response", got)
	}
}
