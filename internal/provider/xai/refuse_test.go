package xai_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"holdfast/internal/core/account"
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

// Clients of Messages get an error in that dialect; of it Anthropic's SDKs show the message.
func TestRefuseInMessages(t *testing.T) {
	_, b := xai.Provider{}.Refuse(provider.Refusal{Kind: provider.NoAccount, Status: 503, Message: "None.", Dialect: provider.Messages}, t0)
	if got, want := string(b), `{"type":"error","error":{"type":"api_error","message":"None."}}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What we say in a stream we understand ourselves, in each dialect.
func TestStreamError(t *testing.T) {
	p := xai.Provider{}
	for d, name := range map[provider.Dialect]string{provider.Responses: "response.failed", provider.Chat: "", provider.Messages: "error"} {
		stream := p.StreamError(provider.Refusal{Kind: provider.UpstreamUnreachable, Status: 502, Message: "It broke\noff.", Dialect: d})
		_, data, _ := bytes.Cut(stream, []byte("data: "))
		var got struct {
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal(data, &got); err != nil || got.Error.Message != "It broke\noff." || got.Error.Type != "api_error" {
			t.Errorf("%s: got %s, %v", d, stream, err)
		}
		if m := p.Event(name, data); m != provider.Failure {
			t.Errorf("%s: read back got %v, want a failure", d, m)
		}
		x := p.Classify(provider.Answer{Status: 200, InStream: true, Body: data, At: t0, Request: inference("grok-4.6")})
		if x.Kind != account.Overload {
			t.Errorf("%s: read back got %s, want overload", d, x.Kind)
		}
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
