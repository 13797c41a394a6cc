package xai_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/xai"
)

func TestRefuseBody(t *testing.T) {
	for status, want := range map[int]string{
		400: "invalid-argument", 401: "unauthenticated", 403: "permission-denied", 404: "not-found", 405: "invalid-argument", 413: "invalid-argument",
		426: "invalid-argument", 429: "resource-exhausted", 500: "internal", 502: "unavailable", 503: "unavailable", 504: "deadline-exceeded",
	} {
		r := provider.Refusal{Kind: provider.Internal, Status: status, Message: "Say \"so\" <here>.\nThen wait.", Request: "hr_1"}
		h, b := xai.Provider{}.Refuse(r, t0)
		if !maps.EqualFunc(h, http.Header{"Content-Type": {"application/json"}}, slices.Equal) {
			t.Errorf("%d: got headers %v", status, h)
		}
		var got map[string]string // flat: two strings
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, map[string]string{"code": want, "error": r.Message}) {
			t.Errorf("%d: got %v, want %s with the message", status, got, want)
		}
	}
	if _, b := (xai.Provider{}).Refuse(provider.Refusal{Kind: provider.NotFound, Status: 404}, t0); !bytes.Contains(b, []byte("Not Found")) {
		t.Errorf("got %s, want a message", b)
	}
}

// The event must be an error to whoever reads it: by its type and message (Responses), by
// an error object (Chat Completions), by both (Messages).
func TestStreamError(t *testing.T) {
	stream := xai.Provider{}.StreamError(provider.Refusal{Kind: provider.UpstreamUnreachable, Status: 502, Message: "It broke\noff."})
	data, ok := bytes.CutPrefix(stream, []byte("event: error\ndata: "))
	data, end := bytes.CutSuffix(data, []byte("\n\n"))
	if !ok || !end || bytes.ContainsAny(data, "\r\n") {
		t.Fatalf("got %q, want one event of one data line", stream)
	}
	var got struct {
		Type, Code, Message string
		Sequence            *int `json:"sequence_number"`
		Error               struct{ Type, Code, Message string }
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != "error" || got.Code != "unavailable" || got.Message != "It broke\noff." || got.Sequence == nil ||
		got.Error.Type != "api_error" || got.Error.Code != "unavailable" || got.Error.Message != got.Message {
		t.Errorf("got %s, want an error in each dialect", data)
	}
	for _, name := range []string{"error", ""} {
		if m := (xai.Provider{}).Event(name, data); m != provider.Failure {
			t.Errorf("read back under the name %q: got %v, want a failure", name, m)
		}
	}
	x := xai.Provider{}.Classify(provider.Answer{Status: 200, InStream: true, Body: data, At: t0, Request: inference("grok-4.6")})
	if x.Kind != account.Overload {
		t.Errorf("read back: got %s, want overload", x.Kind)
	}
}

// What a refusal says must not park the account of a gateway that another one is behind.
func TestRefuseIsReadBack(t *testing.T) {
	r := provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: t0.Add(time.Hour), Message: "holdfast: every xai account is spent."}
	h, b := xai.Provider{}.Refuse(r, t0)
	r.Wait(h, t0)
	x := xai.Provider{}.Classify(provider.Answer{Status: 429, Header: h, Body: b, At: t0, Request: inference("grok-4.6"), Kind: account.Key})
	if x.Kind != account.Throttle || !x.Until.Equal(t0.Add(time.Hour)) {
		t.Errorf("got %s until %v, want a throttle for an hour", x.Kind, x.Until)
	}
}
