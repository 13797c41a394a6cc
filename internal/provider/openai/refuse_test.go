package openai_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
)

// wire is an error as clients read it.
type wire struct {
	Message         string  `json:"message"`
	Type            string  `json:"type"`
	Param           *string `json:"param"`
	Code            string  `json:"code"`
	ResetsAt        *int64  `json:"resets_at"`
	ResetsInSeconds *int64  `json:"resets_in_seconds"`
}

func refused(t *testing.T, b []byte) wire {
	t.Helper()
	var got struct {
		Error map[string]any `json:"error"`
	}
	var typed struct {
		Error wire `json:"error"`
	}
	if err := json.Unmarshal(b, &typed); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(b, &got)
	if _, ok := got.Error["param"]; !ok {
		t.Errorf("%s: want a param, if only null", b)
	}
	return typed.Error
}

// Cases of what-the-client-is-told-when-all-is-spent.
func TestRefuse(t *testing.T) {
	in := func(d time.Duration) time.Time { return t0.Add(d) }
	for _, c := range []struct {
		name              string
		r                 provider.Refusal
		typ, code         string
		resetsAt, resetIn int64 // 0: not told
	}{
		{"spent until 72 minutes", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(72 * time.Minute), Window: account.FiveHour, ResetAt: in(72 * time.Minute)},
			"usage_limit_reached", "usage_limit_reached", 1804158720, 4320},
		{"spent for seconds: to be sat out, never too early", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(59500 * time.Millisecond), ResetAt: in(59500 * time.Millisecond)},
			"usage_limit_reached", "usage_limit_reached", 1804154460, 60},
		{"tried before the window resets", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(10 * time.Minute), ResetAt: in(time.Hour)},
			"usage_limit_reached", "usage_limit_reached", 1804158000, 3600},
		{"spent, no reset known", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(5 * time.Minute)},
			"usage_limit_reached", "usage_limit_reached", 0, 0},
		{"spent, nothing known", provider.Refusal{Kind: provider.Exhausted, Status: 429}, "usage_limit_reached", "usage_limit_reached", 0, 0},
		{"paused", provider.Refusal{Kind: provider.Paused, Status: 429, RetryAt: in(4200 * time.Millisecond), ResetAt: in(4200 * time.Millisecond)},
			"rate_limit_error", "rate_limit_exceeded", 0, 0},
		{"yielded for long", provider.Refusal{Kind: provider.Yielded, Status: 429, RetryAt: in(time.Hour)}, "rate_limit_error", "rate_limit_exceeded", 0, 0},
		{"store away", provider.Refusal{Kind: provider.StoreUnavailable, Status: 503}, "service_unavailable_error", "store_unavailable", 0, 0},
		{"no account", provider.Refusal{Kind: provider.NoAccount, Status: 503}, "service_unavailable_error", "no_account", 0, 0},
		{"busy", provider.Refusal{Kind: provider.Busy, Status: 503, RetryAt: in(time.Second)}, "service_unavailable_error", "busy", 0, 0},
		{"unauthorized", provider.Refusal{Kind: provider.Unauthorized, Status: 401}, "invalid_request_error", "invalid_api_key", 0, 0},
		{"bad request", provider.Refusal{Kind: provider.BadRequest, Status: 400}, "invalid_request_error", "bad_request", 0, 0},
		{"upgrade", provider.Refusal{Kind: provider.BadRequest, Status: 426}, "invalid_request_error", "bad_request", 0, 0},
		{"not found", provider.Refusal{Kind: provider.NotFound, Status: 404}, "invalid_request_error", "not_found", 0, 0},
		{"too large", provider.Refusal{Kind: provider.TooLarge, Status: 413}, "invalid_request_error", "too_large", 0, 0},
		{"unreachable", provider.Refusal{Kind: provider.UpstreamUnreachable, Status: 502}, "server_error", "server_error", 0, 0},
		{"internal", provider.Refusal{Kind: provider.Internal, Status: 500}, "server_error", "server_error", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.r.Message = "Say \"so\" <here>.\nThen wait."
			h, b := openai.Provider{}.Refuse(c.r, t0)
			want := http.Header{"Content-Type": {"application/json"}}
			if !maps.EqualFunc(h, want, slices.Equal) {
				t.Errorf("got headers %v, want %v", h, want)
			}
			got := refused(t, b)
			if got.Message != c.r.Message || got.Type != c.typ || got.Code != c.code || got.Param != nil {
				t.Errorf("got %+v, want type %s, code %s and the message", got, c.typ, c.code)
			}
			for _, f := range []struct {
				name string
				got  *int64
				want int64
			}{{"resets_at", got.ResetsAt, c.resetsAt}, {"resets_in_seconds", got.ResetsInSeconds, c.resetIn}} {
				if (f.got != nil) != (f.want != 0) || (f.got != nil && *f.got != f.want) {
					t.Errorf("%s: got %s, want %d", f.name, b, f.want)
				}
			}
		})
	}
	if _, b := (openai.Provider{}).Refuse(provider.Refusal{Kind: provider.NotFound, Status: 404}, t0); refused(t, b).Message != "Not Found" {
		t.Errorf("got %s, want a message", b)
	}
}

// What we say of a spent allowance, we would understand ourselves.
func TestRefuseIsReadBack(t *testing.T) {
	p := openai.Provider{}
	for window, in := range map[string]time.Duration{account.FiveHour: time.Hour, account.Weekly: 3 * 24 * time.Hour} {
		h, b := p.Refuse(provider.Refusal{Kind: provider.Exhausted, Status: 429, Window: window, ResetAt: t0.Add(in), RetryAt: t0.Add(in)}, t0)
		x := p.Classify(provider.Answer{Status: 429, Header: h, Body: b, At: t0, Request: inference("gpt-5.5"), Kind: account.Subscription})
		if want := []account.Spent{{Window: window, ResetAt: t0.Add(in)}}; x.Kind != account.WindowSpent || !slices.Equal(x.Spent, want) {
			t.Errorf("%s: got %s %+v, want it spent until its reset", window, x.Kind, x.Spent)
		}
	}
}

// informational-event-read-as-terminal: Codex heeds response.failed alone, clients of Chat
// Completions an error member. What we say in a stream we understand ourselves.
func TestStreamError(t *testing.T) {
	p := openai.Provider{}
	for d, prefix := range map[provider.Dialect]string{provider.Responses: "event: response.failed\ndata: ", provider.Chat: "data: "} {
		r := provider.Refusal{Kind: provider.UpstreamUnreachable, Status: 502, Message: "holdfast: the answer\nbroke off.", Dialect: d}
		data, ok := bytes.CutPrefix(p.StreamError(r), []byte(prefix))
		if got := refused(t, data); !ok || got.Message != r.Message || got.Type != "server_error" || got.Code != "server_error" {
			t.Errorf("%s: got %s", d, data)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(prefix, "event: "), "\ndata: ")
		if d == provider.Chat {
			name = ""
		}
		if got := p.Event(name, data); got != provider.Failure {
			t.Errorf("%s: got meaning %v of our own event, want a failure", d, got)
		}
		if x := p.Classify(provider.Answer{Status: 200, InStream: true, Body: data, At: t0}); x.Kind != account.Overload {
			t.Errorf("%s: got kind %s of our own event, want overload", d, x.Kind)
		}
	}
	if got := p.StreamError(provider.Refusal{Status: 502}); got != nil {
		t.Errorf("got %q for a stream in no dialect, want nothing", got)
	}
}
