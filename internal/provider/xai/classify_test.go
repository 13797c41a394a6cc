package xai_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/provider"
	"holdfast/internal/provider/xai"
	"holdfast/internal/test/capture"
)

func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, ok := strings.Cut(l, ": ")
		if !ok {
			panic("a header line without a colon: " + l)
		}
		h.Add(name, value)
	}
	return h
}

// What captures do not show: combinations, variants and edges.
func TestClassify(t *testing.T) {
	const (
		sub = account.Subscription
		key = account.Key
	)
	allowance := func(first string) []string { return []string{first, "spent weekly", "spent 30d"} }
	for _, c := range []struct {
		name   string
		kind   account.Kind
		model  string
		status int
		h      []string
		body   string
		want   []string
	}{
		{"good", key, "grok-4.6", 200, []string{"x-ratelimit-remaining-requests: 0"}, `{"error":"no"}`, []string{"nothing"}},
		{"not modified", key, "", 304, nil, "", []string{"nothing"}},

		// The shapes of a body.
		{"flat", key, "grok-4.6", 403, nil, `{"code":"unauthenticated:bad-credentials","error":"x"}`, []string{"rejection kind=credential code=unauthenticated:bad-credentials rule=unauthenticated"}},
		{"as OpenAI has it", key, "grok-4.6", 403, nil, `{"error":{"message":"x","type":"y","code":"unauthenticated:bad-credentials"}}`, []string{"rejection kind=credential code=unauthenticated:bad-credentials rule=unauthenticated"}},
		{"the type for want of a code", key, "grok-4.6", 404, nil, `{"error":{"message":"x","type":"not_found_error","code":null}}`, []string{"rejection kind=client code=not_found_error rule=client"}},
		{"error alone", key, "grok-4.6", 429, nil, `{"error":"You ran out of credits."}`, []string{"rejection kind=funds rule=out-of-credits"}},
		{"numeric code", key, "grok-4.6", 429, nil, `{"code":8,"message":"slow down"}`, []string{"rejection kind=bare code=8 rule=bare"}},
		{"string", key, "grok-4.6", 403, nil, `"You ran out of credits. [WKE=personal-team-blocked:spending-limit]"`, []string{"rejection kind=funds code=personal-team-blocked:spending-limit rule=spending-limit"}},
		{"array", key, "grok-4.6", 403, nil, `[{"code":7,"error":"x [WKE=unauthenticated:bad-credentials]"}]`, []string{"rejection kind=credential code=unauthenticated:bad-credentials rule=unauthenticated"}},
		{"plain text", key, "grok-4.6", 403, nil, "You ran out of credits.\n", []string{"rejection kind=funds rule=out-of-credits"}},
		{"no body", key, "grok-4.6", 403, nil, "", []string{"rejection kind=client rule=forbidden"}},
		{"broken", key, "grok-4.6", 403, nil, `{"code":"unauth`, []string{"rejection kind=client rule=forbidden"}},
		{"members of other types", key, "grok-4.6", 429, nil, `{"code":{"a":1},"message":7,"error":[]}`, []string{"rejection kind=bare rule=bare"}},
		{"the mark counts before the code", key, "grok-4.6", 403, nil, `{"code":"permission-denied","error":"x [WKE=unauthenticated:no-credentials]"}`, []string{"rejection kind=credential code=unauthenticated:no-credentials rule=unauthenticated"}},
		{"a mark that does not end", key, "grok-4.6", 403, nil, `{"code":"permission-denied","error":"x [WKE=unauthenticated"}`, []string{"rejection kind=client code=permission-denied rule=forbidden"}},

		// Credentials.
		{"401", sub, "grok-4.6", 401, nil, `{"error":"Invalid or expired credentials (x_xai_token_auth=xai-grok-cli, upstream=PermissionDenied, reason=no auth context)"}`, []string{"rejection kind=credential rule=unauthorized"}},
		{"401 without a body", key, "grok-4.6", 401, nil, "", []string{"rejection kind=credential rule=unauthorized"}},
		{"bad key in the other shape", key, "grok-4.6", 400, nil, `{"error":{"message":"Incorrect API key provided. You can obtain one."}}`, []string{"rejection kind=credential rule=incorrect-key"}},
		{"a request that quotes the phrase", key, "grok-4.6", 400, nil, `{"code":"invalid-argument","error":"Unknown role: incorrect API key provided"}`, []string{"rejection kind=client code=invalid-argument rule=client"}},
		{"a 403 that means expired, without a code", sub, "grok-4.6", 403, nil, `{"error":"The OAuth2 access token could not be validated."}`, []string{"rejection kind=credential rule=unauthenticated"}},
		{"unauthenticated as a 400", sub, "grok-4.6", 400, nil, `{"code":"unauthenticated:bad-credentials","error":"x"}`, []string{"rejection kind=credential code=unauthenticated:bad-credentials rule=unauthenticated"}},

		// Money and allowance: money-or-access-lost-under-an-odd-status.
		{"402 of a subscription", sub, "grok-4.6", 402, nil, "", allowance("rejection kind=funds rule=payment-required")},
		{"402 of a key", key, "grok-4.6", 402, nil, "", []string{"rejection kind=funds rule=payment-required"}},
		{"402 with the code", sub, "grok-4.6", 402, nil, `{"code":"personal-team-blocked:spending-limit"}`, allowance("rejection kind=funds code=personal-team-blocked:spending-limit rule=spending-limit")},
		{"429 by the words", sub, "grok-4.6", 429, []string{"retry-after: 30"}, `{"error":"You ran out of credits."}`, allowance("rejection kind=funds rule=out-of-credits")},
		{"a key's older words", key, "grok-4.6", 403, nil, `{"code":"The caller does not have permission to execute the specified operation","error":"You have either run out of available resources or do not have an active Grok subscription."}`,
			[]string{"rejection kind=funds code=the caller does not have permission to execute the specified operation rule=out-of-resources"}},
		{"blocked for another reason", sub, "grok-4.6", 403, nil, `{"code":"personal-team-blocked:abuse"}`, []string{"rejection kind=funds code=personal-team-blocked:abuse rule=team-blocked"}},
		{"the user is blocked", sub, "grok-4.6", 403, nil, `{"code":"unauthorized:blocked-user"}`, []string{"rejection kind=funds code=unauthorized:blocked-user rule=blocked"}},
		{"unauthorized for another reason", sub, "grok-4.6", 403, nil, `{"code":"unauthorized:something"}`, []string{"rejection kind=client code=unauthorized:something rule=forbidden"}},
		{"a validation that quotes the phrase", key, "grok-4.6", 422, nil, `{"error":"You ran out of credits is no valid role"}`, []string{"rejection kind=client rule=client"}},

		// Free usage.
		{"free usage by the words", sub, "grok-4.5", 429, nil, `{"error":"You’ve used all the included free usage for model grok-4.5-build-free for now."}`,
			[]string{"rejection kind=model-window rule=free-usage", "spent 1d:grok-4.5 family=grok-4.5"}},
		{"free usage with a wait", sub, "grok-4.5", 429, []string{"retry-after: 90"}, `{"code":"subscription:free-usage-exhausted"}`,
			[]string{"rejection kind=model-window code=subscription:free-usage-exhausted rule=free-usage", "spent 1d:grok-4.5 family=grok-4.5 resets=2027-03-04T10:01:30Z"}},
		{"free usage without a model blocks nobody", sub, "", 429, nil, `{"code":"subscription:free-usage-exhausted"}`, []string{"rejection kind=model-window code=subscription:free-usage-exhausted rule=free-usage"}},
		{"another word of the subscription's", sub, "grok-4.6", 429, nil, `{"code":"subscription:new"}`, []string{"rejection kind=bare code=subscription:new rule=bare"}},

		// burst-429-read-as-exhaustion
		{"throttle of a key", key, "grok-4.6", 429, []string{"retry-after: 12"}, "", []string{"rejection kind=throttle rule=throttle per-model until=2027-03-04T10:00:12Z"}},
		{"throttle of a login", sub, "grok-4.6", 429, []string{"retry-after: 12"}, "", []string{"rejection kind=throttle rule=throttle until=2027-03-04T10:00:12Z"}},
		{"the team's limit with a wait", key, "grok-4.6", 429, []string{"retry-after: 12"}, `{"error":"Too many requests for team t and model m."}`, []string{"rejection kind=throttle rule=team-limit per-model until=2027-03-04T10:00:12Z"}},
		{"ceilings alone tell no end", key, "grok-4.6", 429, []string{"x-ratelimit-limit-requests: 8300", "x-ratelimit-remaining-requests: 8300"}, `{"code":"resource-exhausted"}`,
			[]string{"rejection kind=throttle code=resource-exhausted rule=throttle per-model"}},
		{"an unreadable wait is left out", key, "grok-4.6", 429, []string{"retry-after: soon"}, "", []string{"rejection kind=bare rule=bare"}},

		// client-fault-punishes-accounts
		{"422", key, "grok-4.6", 422, nil, `{"error":"Failed to deserialize the JSON body"}`, []string{"rejection kind=client rule=client"}},
		{"405", sub, "grok-4.6", 405, nil, "", []string{"rejection kind=client rule=client"}},
		{"413", key, "grok-4.6", 413, nil, "", []string{"rejection kind=client rule=client"}},
		{"a chat endpoint that a key is kept from", key, "grok-4.6", 403, nil, `{"code":"permission-denied","error":"Access to the chat endpoint is denied. Please ensure you're using the correct credentials."}`,
			[]string{"rejection kind=entitlement code=permission-denied rule=chat-endpoint feature=chat-endpoint"}},
		{"a version that is not taken, and a code", sub, "grok-4.6", 426, nil, `{"code":"failed-precondition","error":"x"}`, []string{"rejection kind=client code=failed-precondition rule=client-version"}},

		// The server's own trouble comes first.
		{"500", key, "grok-4.6", 500, nil, `{"error":"internal"}`, []string{"rejection kind=overload rule=overload"}},
		{"503 with a wait", key, "grok-4.6", 503, []string{"retry-after: 9"}, "<html>", []string{"rejection kind=overload rule=overload"}},
		{"529", key, "grok-4.6", 529, nil, "", []string{"rejection kind=overload rule=overload"}},
		{"a 5xx that quotes a refusal", key, "grok-4.6", 502, nil, `{"code":"unauthenticated:bad-credentials","error":"x"}`, []string{"rejection kind=overload code=unauthenticated:bad-credentials rule=overload"}},
		{"a code that is a long text", key, "grok-4.6", 422, nil, `{"code":"` + strings.Repeat("long ", 30) + `"}`, []string{"rejection kind=client rule=client"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := xai.Provider{}.Classify(provider.Answer{
				Status: c.status, Header: headers(c.h...), Body: []byte(c.body), At: t0, Request: inference(c.model), Kind: c.kind,
			})
			if got := capture.Describe(account.Reading{}, x, provider.Usage{}); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

func TestClassifyInStream(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"error event", `{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":3}`, "rejection kind=bare code=rate_limit_exceeded rule=bare"},
		{"error event without a code", `{"type":"error","message":"You ran out of credits."}`, "rejection kind=funds rule=out-of-credits"},
		{"failed response", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}`, "rejection kind=overload code=server_error rule=overload"},
		{"failed response, limited", `{"type":"response.failed","response":{"error":{"code":"resource-exhausted","message":"x"}}}`, "rejection kind=bare code=resource-exhausted rule=bare"},
		{"chat", `{"error":{"message":"x","type":"invalid_request_error","code":null}}`, "rejection kind=client code=invalid_request_error rule=client"},
		{"flat", `{"code":"unavailable","error":"x"}`, "rejection kind=overload code=unavailable rule=overload"},
		{"flat, an HTTP status", `{"code":429,"error":"x"}`, "rejection kind=bare code=429 rule=bare"},
		{"flat, gRPC's number", `{"code":16,"error":"x"}`, "rejection kind=credential code=16 rule=unauthorized"},
		{"flat, gRPC's unavailable", `{"code":14,"error":"x"}`, "rejection kind=overload code=14 rule=overload"},
		{"Messages", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, "rejection kind=overload code=overloaded_error rule=overload"},
		{"Messages, permission", `{"type":"error","error":{"type":"permission_error","message":"x"}}`, "rejection kind=client code=permission_error rule=forbidden"},
		{"words alone", `{"error":"You ran out of credits."}`, "rejection kind=funds rule=out-of-credits"},
		{"not found", `{"code":"not-found","error":"x"}`, "rejection kind=client code=not-found rule=client"},
		{"argument", `{"code":"invalid-argument","error":"x"}`, "rejection kind=client code=invalid-argument rule=client"},
		{"unreadable", `oh`, "rejection kind=overload rule=overload"},
		{"nothing", ``, "rejection kind=overload rule=overload"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := xai.Provider{}.Classify(provider.Answer{
				Status: 200, InStream: true, Header: http.Header{}, Body: []byte(c.data), At: t0, Request: inference("grok-4.6"), Kind: account.Key,
			})
			if got := capture.Describe(account.Reading{}, x, provider.Usage{}); len(got) != 1 || got[0] != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A free plan's spent day of one model leaves the other models alone, and a throttle of a
// key too.
func TestOneModelAlone(t *testing.T) {
	for name, a := range map[string]provider.Answer{
		"free usage": {Status: 429, Kind: account.Subscription, Body: []byte(`{"code":"subscription:free-usage-exhausted"}`)},
		"team limit": {Status: 429, Kind: account.Key, Body: []byte(`{"error":"Too many tokens for team t and model grok-4.5."}`)},
	} {
		a.At, a.Request = t0, inference("grok-4.5")
		s := account.State{}.Reject(xai.Provider{}.Classify(a), account.Rules{})
		if _, blocked := pick.Blocked(t0, pick.Request{Family: "grok-4.5", Model: "grok-4.5"}, pick.Of(account.Account{}, s)); !blocked {
			t.Errorf("%s: the model that was refused is not blocked", name)
		}
		if _, blocked := pick.Blocked(t0, pick.Request{Family: "grok-4.6", Model: "grok-4.6"}, pick.Of(account.Account{}, s)); blocked {
			t.Errorf("%s: a model that was not refused is blocked", name)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(429, "retry-after: 9223372037", `{"code":429,"error":"You ran out of credits. [WKE=personal-team-blocked:spending-limit]"}`, false)
	f.Add(403, "", `[[[[[[{"error":{"error":{"error":"x"}}}]]]]]]`, false)
	f.Add(200, "", `{"type":"response.failed","response":{"error":{"code":"subscription:free-usage-exhausted"}}}`, true)
	f.Add(400, "", `"Incorrect API key provided"`, false)
	f.Add(403, "", `{"error":"[WKE=]"}`, false)
	f.Fuzz(func(t *testing.T, status int, line, text string, inStream bool) {
		name, value, _ := strings.Cut(line, ": ")
		a := provider.Answer{
			Status: status, Header: http.Header{}, Body: []byte(text), At: t0, InStream: inStream, Request: inference("grok-4.6"), Kind: account.Subscription,
		}
		a.Header.Add(name, value)
		x := xai.Provider{}.Classify(a)
		if want := inStream || status >= 400; x.Rejected() != want {
			t.Fatalf("%d %q: got rejected %v, want %v", status, text, x.Rejected(), want)
		}
		if !x.Rejected() {
			return
		}
		if x.Rule == "" || !x.At.Equal(t0) || len(x.Code) > 100 {
			t.Errorf("%d %q: got %+v, want a rule, the instant and a short code", status, text, x)
		}
		if (x.Kind == account.Entitlement) != (x.Feature != "") {
			t.Errorf("%d %q: kind %s with feature %q", status, text, x.Kind, x.Feature)
		}
		if x.Until.Before(t0) && !x.Until.IsZero() {
			t.Errorf("%d %q: pauses until %v, before %v", status, text, x.Until, t0)
		}
		for _, s := range x.Spent {
			if s.Window == "" || (x.Kind == account.ModelWindow) != (s.Family != "") {
				t.Errorf("%d %q: kind %s with %+v spent", status, text, x.Kind, s)
			}
		}
	})
}
