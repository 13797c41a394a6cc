package session_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/provider/session"
)

const uuid = "0a1b2c3d-0000-4000-8000-00000000000f"

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name       string
		h          http.Header
		id, source string
	}{
		{"none", http.Header{}, "", ""},
		{"empty names nothing", http.Header{"X-Grok-Session-Id": {""}, "X-Grok-Conv-Id": {"  "}}, "", ""},
		{"an empty one before another", http.Header{"X-Grok-Session-Id": {""}, "Session-Id": {"s"}}, "s", "session-id"},
		{"an empty value before another", http.Header{"Session-Id": {"", "s"}}, "s", "session-id"},
		{"the order of the lists", http.Header{"Session-Id": {"a"}, "X-Grok-Conv-Id": {"b"}}, "b", "x-grok-conv-id"},
		{"a UUID in upper case", http.Header{"Session_id": {strings.ToUpper(uuid)}}, uuid, "session_id"},
		{"another id keeps its case", http.Header{"Session-Id": {" Ses_A "}}, "Ses_A", "session-id"},
		{"too long to be an id", http.Header{"Session-Id": {strings.Repeat("x", 257)}}, "", ""},
		{"a list that was not asked for", http.Header{"X-Session-Id": {"s"}}, "", ""},
	} {
		id, in := session.Find(c.h, session.Grok, session.Codex)
		if id != c.id || in.Source != c.source {
			t.Errorf("%s: got %q in %q, want %q in %q", c.name, id, in.Source, c.id, c.source)
		}
	}
}

// Case session-id-format-change.
func TestOfUser(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for _, c := range []struct{ name, userID, want string }{
		{"the oldest form", "user_" + hash + "_account__session_" + uuid, uuid},
		{"with an account", "user_" + hash + "_account_00000000-0000-4000-8000-000000000001_session_" + uuid, uuid},
		{"JSON in a string", `{"device_id":"d-7","account_uuid":"","session_id":"` + uuid + `"}`, uuid},
		{"keys in another order, and more of them", `{"session_id":"` + strings.ToUpper(uuid) + `","x":{},"device_id":"d-7"}`, uuid},
		{"a word", "somebody", ""},
		{"empty", "", ""},
		{"long", "user_" + strings.Repeat("x", 5000) + "_session_" + uuid, ""},
		{"a placeholder", "user_x_session_default", ""},
		{"a session of another type", `{"session_id":5}`, ""},
		{"cut JSON", `{"session_id":"` + uuid, ""},
		{"a UUID alone is a user's", uuid, ""},
	} {
		if got := session.OfUser(c.userID); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzOfUser(f *testing.F) {
	f.Add("user_x_account__session_" + uuid)
	f.Add(`{"session_id":"` + uuid + `"}`)
	f.Fuzz(func(t *testing.T, userID string) {
		got := session.OfUser(userID)
		if got != "" && (len(got) != 36 || got != strings.ToLower(got) || session.ID(got) != got) {
			t.Errorf("got %q, want a UUID in lower case or nothing", got)
		}
	})
}
