package dialect_test

import (
	"testing"

	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
)

// TestFailure is field case an-error-in-the-wrong-dialect: an error in a stream has the
// event, and the members, that clients of its dialect look for.
func TestFailure(t *testing.T) {
	f := dialect.Failure{Type: "t", Code: "c", Message: "Say \"so\".\nWait.", Request: "r"}
	detail := `{"message":"Say \"so\".\nWait.","type":"t","param":null,"code":"c"}`
	for d, want := range map[provider.Dialect]struct{ body, event string }{
		provider.Messages: {
			`{"type":"error","error":{"type":"t","message":"Say \"so\".\nWait."},"request_id":"r"}`,
			"event: error\ndata: " + `{"type":"error","error":{"type":"t","message":"Say \"so\".\nWait."},"request_id":"r"}` + "\n\n",
		},
		provider.Chat: {`{"error":` + detail + `}`, "data: " + `{"error":` + detail + `}` + "\n\n"},
		provider.Responses: {
			`{"error":` + detail + `}`,
			"event: response.failed\ndata: " + `{"type":"response.failed","sequence_number":0,"response":{"object":"response","status":"failed","error":` +
				detail + `,"output":[],"usage":null},"error":` + detail + `}` + "\n\n",
		},
		"": {`{"error":` + detail + `}`, ""},
	} {
		if got := string(f.Body(d)); got != want.body {
			t.Errorf("%q: got body %s, want %s", d, got, want.body)
		}
		if got := string(f.Event(d)); got != want.event {
			t.Errorf("%q: got event %s, want %s", d, got, want.event)
		}
	}
}
