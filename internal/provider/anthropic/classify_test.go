package anthropic_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/test/capture"
	"holdfast/internal/wire/body"
)

func failureBody(kind, message string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
}

// limited is the message of a spent window.
var limited = failureBody("rate_limit_error", "This request would exceed your account's rate limit. Please try again later.")

// What captures do not show: combinations, variants and edges.
func TestClassify(t *testing.T) {
	const (
		sub = account.Subscription
		key = account.Key
	)
	for _, c := range []struct {
		name   string
		kind   account.Kind
		model  string
		status int
		h      []string
		body   string
		want   []string
	}{
		{"good", sub, "claude-opus-5", 200, []string{"u-5h-status: rejected", "u-overage-status: allowed"}, "", []string{"nothing"}},
		{"not modified", key, "", 304, nil, "", []string{"nothing"}},

		// burst-429-read-as-exhaustion
		{"burst", sub, "claude-opus-5", 429, []string{
			"u-status: allowed", "u-5h-utilization: 0.30", "u-5h-reset: 1804172400", "u-7d-utilization: 0.41", "u-7d-reset: 1804672800", "retry-after: 12",
		}, limited, []string{"rejection kind=throttle code=rate_limit_error rule=throttle until=2027-03-04T10:00:12Z"}},
		{"burst with a claim", sub, "claude-opus-5", 429, []string{
			"u-status: allowed_warning", "u-representative-claim: five_hour", "u-5h-status: allowed", "u-7d-status: allowed_warning", "u-7d-utilization: 0.74", "retry-after: 12",
		}, limited, []string{"rejection kind=throttle code=rate_limit_error rule=throttle until=2027-03-04T10:00:12Z"}},
		{"burst at a cap that still allows", sub, "claude-opus-5", 429, []string{"u-5h-status: allowed", "u-5h-utilization: 1.0", "retry-after: 12"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=throttle until=2027-03-04T10:00:12Z"}},
		{"throttle told neither", sub, "claude-opus-5", 429, []string{"u-status: allowed"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=throttle"}},
		{"throttle by retry-after alone", sub, "claude-opus-5", 429, []string{"retry-after: 30"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=throttle until=2027-03-04T10:00:30Z"}},
		{"unreadable retry-after is left out", sub, "claude-opus-5", 429, []string{"retry-after: soon"}, limited,
			[]string{"rejection kind=bare code=rate_limit_error rule=bare"}},
		{"bare without a body", sub, "claude-oldname-2", 429, nil, "", []string{"rejection kind=bare rule=bare"}},

		// model-cap-scope
		{"family window", sub, "claude-opus-5", 429, []string{"u-5h-status: allowed", "u-7d-status: allowed", "u-7d_opus-status: rejected", "u-7d_opus-reset: 1804413600"}, limited,
			[]string{"rejection kind=model-window code=rate_limit_error rule=model-window", "spent weekly:opus family=opus resets=2027-03-07T10:00:00Z"}},
		{"five-hour by a Haiku request", sub, "claude-haiku-4-5", 429, []string{"u-5h-status: rejected", "u-5h-reset: 1804172400", "u-7d-status: allowed"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"weekly cap", sub, "claude-haiku-4-5", 429, []string{"u-status: rejected", "u-7d-status: rejected", "u-7d-reset: 1804672800"}, limited,
			[]string{"rejection kind=model-window code=rate_limit_error rule=weekly-cap", "spent weekly family=haiku resets=2027-03-10T10:00:00Z"}},
		{"weekly cap of an unknown family", sub, "claude-oldname-2[1m]", 429, []string{"u-7d-status: rejected", "u-7d-reset: 1804672800"}, limited,
			[]string{"rejection kind=model-window code=rate_limit_error rule=weekly-cap", "spent weekly family=claude-oldname-2 resets=2027-03-10T10:00:00Z"}},
		{"weekly cap without a model blocks nobody", sub, "", 429, []string{"u-7d-status: rejected", "u-7d-reset: 1804672800", "retry-after: 518400"}, limited,
			[]string{"rejection kind=model-window code=rate_limit_error rule=weekly-cap"}},
		{"five-hour and weekly", sub, "claude-opus-5", 429, []string{"u-5h-status: rejected", "u-5h-reset: 1804172400", "u-7d-status: rejected", "u-7d-reset: 1804672800", "retry-after: 518400"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z", "spent weekly family=opus resets=2027-03-10T10:00:00Z"}},
		{"weekly and family", sub, "claude-opus-5", 429, []string{"u-7d-status: rejected", "u-7d-reset: 1804672800", "u-7d_opus-status: rejected", "u-7d_opus-reset: 1804413600"}, limited,
			[]string{"rejection kind=model-window code=rate_limit_error rule=model-window", "spent weekly family=opus resets=2027-03-10T10:00:00Z", "spent weekly:opus family=opus resets=2027-03-07T10:00:00Z"}},
		{"another family's meter refuses", sub, "claude-opus-5", 429, []string{"u-5h-status: allowed", "u-7d-status: allowed", "u-7d_oi-status: rejected", "u-7d_oi-reset: 1804413600"}, limited,
			[]string{"rejection kind=model-window code=rate_limit_error rule=model-window", "spent weekly:fable family=fable resets=2027-03-07T10:00:00Z", "spent weekly:fable family=opus resets=2027-03-07T10:00:00Z"}},
		{"another family's meter refuses by the claim", sub, "claude-opus-5", 429, []string{"u-status: rejected", "u-representative-claim: seven_day_overage_included", "u-5h-status: allowed", "u-7d_oi-status: rejected", "u-7d_oi-reset: 1804413600"}, limited,
			[]string{"rejection kind=model-window code=rate_limit_error rule=model-window", "spent weekly:fable family=fable resets=2027-03-07T10:00:00Z", "spent weekly:fable family=opus resets=2027-03-07T10:00:00Z"}},
		{"burst whose headers name another family's week", sub, "claude-opus-5", 429, []string{"u-status: allowed", "u-5h-status: allowed", "u-7d_sonnet-status: rejected", "u-7d_sonnet-reset: 1804413600", "retry-after: 12"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=throttle until=2027-03-04T10:00:12Z"}},
		{"burst that claims another window", sub, "claude-opus-5", 429, []string{"u-representative-claim: five_hour", "u-5h-status: allowed", "u-7d_sonnet-status: rejected", "retry-after: 12"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=throttle until=2027-03-04T10:00:12Z"}},
		{"a window of a new length", sub, "claude-opus-5", 429, []string{"u-30d-status: rejected", "u-30d-reset: 1806537600"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=window", "spent 30d resets=2027-04-01T00:00:00Z"}},

		{"at the cap without a verdict", sub, "claude-opus-5", 429, []string{"u-5h-utilization: 1.0", "u-5h-reset: 1804172400", "u-7d-utilization: 0.4"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"aggregate alone", sub, "claude-opus-5", 429, []string{"u-status: rejected", "u-representative-claim: five_hour", "u-reset: 1804172400"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"aggregate that names no window, near", sub, "claude-opus-5", 429, []string{"u-status: rejected", "u-reset: 1804172400"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"aggregate that names no window, far", sub, "claude-opus-5", 429, []string{"u-status: rejected", "u-reset: 1804672800"}, limited,
			[]string{"rejection kind=model-window code=rate_limit_error rule=weekly-cap", "spent weekly family=opus resets=2027-03-10T10:00:00Z"}},
		{"claim without a verdict", sub, "claude-opus-5", 429, []string{"u-representative-claim: five_hour", "u-reset: 1804172400"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"claim of an allowed window", sub, "claude-opus-5", 429, []string{"u-representative-claim: five_hour", "u-5h-status: allowed", "retry-after: 3"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=throttle until=2027-03-04T10:00:03Z"}},
		{"reset from the aggregate", sub, "claude-opus-5", 429, []string{"u-status: rejected", "u-representative-claim: five_hour", "u-reset: 1804172400", "u-5h-status: rejected"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"reset from retry-after", sub, "claude-opus-5", 429, []string{"u-5h-status: rejected", "retry-after: 600"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour resets=2027-03-04T10:10:00Z"}},
		{"no reset told", sub, "claude-opus-5", 429, []string{"u-5h-status: rejected"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour"}},
		{"2025, without a reset", sub, "claude-opus-4", 429, nil, failureBody("rate_limit_error", "Claude AI usage limit reached"),
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour"}},
		{"2025, a week ahead", sub, "claude-opus-4", 429, nil, failureBody("rate_limit_error", "Claude AI usage limit reached|1804672800"),
			[]string{"rejection kind=model-window code=rate_limit_error rule=weekly-cap", "spent weekly family=opus resets=2027-03-10T10:00:00Z"}},

		// entitlement-429-read-as-exhaustion
		{"credits beside a spent window", sub, "claude-opus-5[1m]", 429, []string{"x-should-retry: false", "u-5h-status: rejected", "u-5h-reset: 1804172400"},
			failureBody("rate_limit_error", "Usage credits are required for long context requests."),
			[]string{"rejection kind=entitlement code=rate_limit_error rule=credits-required feature=long-context"}},
		{"out of extra usage, as 429", sub, "claude-opus-5[1m]", 429, []string{"u-5h-status: allowed"},
			failureBody("rate_limit_error", "You’re out of extra usage. Add more at claude.ai/settings/usage and keep going."),
			[]string{"rejection kind=entitlement code=rate_limit_error rule=out-of-extra-usage feature=long-context"}},
		{"out of extra usage, since the plan is spent", sub, "claude-opus-5", 400, []string{"u-5h-status: rejected", "u-5h-reset: 1804172400"},
			failureBody("invalid_request_error", "You're out of extra usage. Add more at claude.ai/settings/usage and keep going."),
			[]string{"rejection kind=window code=invalid_request_error rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"the long context with a login", sub, "claude-opus-5[1m]", 400, nil,
			failureBody("invalid_request_error", "This authentication style is incompatible with the long context beta header."),
			[]string{"rejection kind=entitlement code=invalid_request_error rule=long-context feature=long-context"}},
		{"do not retry", sub, "claude-opus-5", 429, []string{"x-should-retry: false", "u-reset: 1804672800", "u-overage-disabled-reason: org_level_disabled"},
			failureBody("rate_limit_error", "Something new."),
			[]string{"rejection kind=entitlement code=rate_limit_error rule=should-not-retry feature=extra-usage"}},
		{"do not retry, yet a spent window", sub, "claude-opus-5", 429, []string{"x-should-retry: false", "u-5h-status: rejected", "u-5h-reset: 1804172400"}, limited,
			[]string{"rejection kind=window code=rate_limit_error rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"do not retry, yet a wait", sub, "claude-opus-5", 429, []string{"x-should-retry: false", "retry-after: 30"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=throttle until=2027-03-04T10:00:30Z"}},

		// API keys
		{"key, retry-after is exact", key, "claude-opus-5", 429, []string{"k-requests-remaining: 0", "k-requests-reset: 2027-03-04T10:01:00Z", "retry-after: 7"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=key-limit per-model until=2027-03-04T10:00:07Z"}},
		{"key, two buckets spent, the later", key, "claude-opus-5", 429, []string{
			"k-requests-remaining: 0", "k-requests-reset: 2027-03-04T10:00:01Z", "k-tokens-remaining: 0", "k-tokens-reset: 2027-03-04T10:00:50Z",
			"k-output-tokens-limit: 10", "k-output-tokens-remaining: 5", "k-output-tokens-reset: 2027-03-04T10:09:00Z",
		}, limited, []string{"rejection kind=throttle code=rate_limit_error rule=key-limit per-model until=2027-03-04T10:00:50Z"}},
		{"key, acceleration", key, "claude-opus-5", 429, []string{"k-requests-limit: 50", "k-requests-remaining: 40", "k-requests-reset: 2027-03-04T10:00:12Z"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=key-acceleration per-model"}},
		{"key, do not retry, yet a spent bucket", key, "claude-opus-5", 429, []string{"x-should-retry: false", "k-tokens-remaining: 0", "k-tokens-reset: 2027-03-04T10:00:50Z"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_error rule=key-limit per-model until=2027-03-04T10:00:50Z"}},
		{"key, bare", key, "claude-opus-5", 429, nil, limited, []string{"rejection kind=bare code=rate_limit_error rule=bare"}},

		// money-or-access-lost-under-an-odd-status
		{"payment required", key, "claude-opus-5", 402, nil, failureBody("billing_error", "Please pay."), []string{"rejection kind=funds code=billing_error rule=payment-required"}},
		{"payment required, no body", key, "claude-opus-5", 402, nil, "", []string{"rejection kind=funds rule=payment-required"}},
		{"balance, as 429", key, "claude-opus-5", 429, nil, failureBody("rate_limit_error", "Your credit balance is too low to access the Anthropic API."),
			[]string{"rejection kind=funds code=rate_limit_error rule=credit-balance"}},
		{"balance, as 403", key, "claude-opus-5", 403, nil, failureBody("permission_error", "Your credit balance is too low to access the Anthropic API."),
			[]string{"rejection kind=funds code=permission_error rule=credit-balance"}},
		{"balance, with a window spent", sub, "claude-opus-5", 429, []string{"u-5h-status: rejected"}, failureBody("rate_limit_error", "Your credit balance is too low to access the Anthropic API."),
			[]string{"rejection kind=funds code=rate_limit_error rule=credit-balance"}},
		{"account disabled", sub, "claude-opus-5", 403, nil, failureBody("permission_error", "Your account has been disabled after an automatic review of your recent activities."),
			[]string{"rejection kind=funds code=permission_error rule=disabled"}},
		{"no longer a member", sub, "claude-opus-5", 403, nil, failureBody("permission_error", "Account is no longer a member of the organization associated with this token."),
			[]string{"rejection kind=funds code=permission_error rule=no-access"}},
		{"revoked, as 401", sub, "claude-opus-5", 401, nil, failureBody("authentication_error", "OAuth token has been revoked. Please obtain a new token."),
			[]string{"rejection kind=funds code=authentication_error rule=login-revoked"}},
		{"organization policy by code alone", sub, "claude-opus-5", 403, nil, `{"error":{"type":"permission_error","message":"No.","details":{"error_code":"oauth_org_not_allowed"}}}`,
			[]string{"rejection kind=funds code=oauth_org_not_allowed rule=no-access"}},
		{"a phrase that the client's own text repeats", key, "claude-opus-5", 400, nil, failureBody("invalid_request_error", "messages.0: unexpected 'Your credit balance is too low' in content"),
			[]string{"rejection kind=client code=invalid_request_error rule=client"}},

		// auth-failure-routing
		{"expired, as 403", sub, "claude-opus-5", 403, nil, failureBody("permission_error", "OAuth token has expired."), []string{"rejection kind=credential code=permission_error rule=token-expired"}},
		{"authentication, as 403", sub, "claude-opus-5", 403, nil, failureBody("authentication_error", "Invalid"), []string{"rejection kind=credential code=authentication_error rule=token-expired"}},
		{"401 without a body", sub, "claude-opus-5", 401, nil, "", []string{"rejection kind=credential rule=unauthorized"}},
		{"403 in general", key, "claude-opus-5", 403, nil, failureBody("permission_error", "Your API key does not have permission to use the specified resource."), []string{"rejection kind=access code=permission_error rule=forbidden"}},
		{"403 of the edge", key, "claude-opus-5", 403, nil, "Request not allowed", []string{"rejection kind=client rule=forbidden"}},

		// client-fault-punishes-accounts
		{"400", key, "claude-opus-5", 400, nil, failureBody("invalid_request_error", "messages.2: `tool_result` block(s) that name no `tool_use`"), []string{"rejection kind=client code=invalid_request_error rule=client"}},
		{"too long", key, "claude-opus-5", 400, nil, failureBody("invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"), []string{"rejection kind=client code=invalid_request_error rule=client"}},
		{"404 of a marked model", key, "claude-opus-x[1m]", 404, nil, failureBody("not_found_error", "model: claude-opus-x[1m]"), []string{"rejection kind=access code=not_found_error rule=model-access"}},
		{"404 of something else", key, "claude-opus-5", 404, nil, failureBody("not_found_error", "Not found"), []string{"rejection kind=client code=not_found_error rule=client"}},
		{"413 of the edge", key, "claude-opus-5", 413, nil, "<html>too large</html>", []string{"rejection kind=client rule=client"}},
		{"422", key, "claude-opus-5", 422, nil, failureBody("invalid_request_error", "No."), []string{"rejection kind=client code=invalid_request_error rule=client"}},
		{"400 with headers of a spent window", sub, "claude-opus-5", 400, []string{"u-5h-status: rejected", "u-overage-status: allowed"}, failureBody("invalid_request_error", "No."), []string{"rejection kind=client code=invalid_request_error rule=client"}},

		{"500", key, "claude-opus-5", 500, nil, failureBody("api_error", "Internal server error"), []string{"rejection kind=overload code=api_error rule=overload"}},
		{"502 of something between", key, "claude-opus-5", 502, nil, "<html>bad gateway</html>", []string{"rejection kind=overload rule=overload"}},
		{"504", key, "claude-opus-5", 504, nil, failureBody("timeout_error", "Timed out"), []string{"rejection kind=overload code=timeout_error rule=overload"}},
		{"overloaded under 429", sub, "claude-opus-5", 429, []string{"u-status: allowed"}, failureBody("overloaded_error", "Overloaded"), []string{"rejection kind=overload code=overloaded_error rule=overload"}},

		// Odd bodies.
		{"error as a text", key, "claude-opus-5", 400, nil, `{"error":"invalid_grant"}`, []string{"rejection kind=client rule=client"}},
		{"details as a text", key, "claude-opus-5", 429, nil, `{"error":{"type":"rate_limit_error","message":"Error","details":"x"}}`, []string{"rejection kind=bare code=rate_limit_error rule=bare"}},
		{"details null", key, "claude-opus-5", 400, nil, `{"error":{"type":"invalid_request_error","message":null,"details":null}}`, []string{"rejection kind=client code=invalid_request_error rule=client"}},
		{"type as a number", key, "claude-opus-5", 400, nil, `{"error":{"type":7,"message":"Your credit balance is too low."}}`, []string{"rejection kind=funds rule=credit-balance"}},
		{"cut", key, "claude-opus-5", 400, nil, `{"error":{"type":"invalid_requ`, []string{"rejection kind=client rule=client"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := anthropic.Provider{}.Classify(provider.Answer{
				Status: c.status, Header: headers(c.h...), Body: []byte(c.body), At: t0, Request: inference(c.model), Kind: c.kind, Generation: 7,
			})
			if got := capture.Describe(account.Reading{}, x, provider.Usage{}); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			if x.Rejected() && (!x.At.Equal(t0) || x.Model != c.model || x.Family != anthropic.Family(c.model) || x.Generation != 7) {
				t.Errorf("got %+v, want the instant, model, family and generation of the answer", x)
			}
		})
	}
}

func TestClassifyInStream(t *testing.T) {
	for _, c := range []struct {
		name string
		h    []string
		data string
		want string
	}{
		{"overloaded", nil, failureBody("overloaded_error", "Overloaded"), "rejection kind=overload code=overloaded_error rule=overload"},
		{"server", nil, failureBody("api_error", "Internal server error"), "rejection kind=overload code=api_error rule=overload"},
		{"unknown type", nil, failureBody("strange_error", "x"), "rejection kind=overload code=strange_error rule=overload"},
		{"unreadable", nil, "oh", "rejection kind=overload rule=overload"},
		{"credential", nil, failureBody("authentication_error", "Invalid bearer token"), "rejection kind=credential code=authentication_error rule=unauthorized"},
		{"client", nil, failureBody("invalid_request_error", "No."), "rejection kind=client code=invalid_request_error rule=client"},
		{"not found", nil, failureBody("not_found_error", "No."), "rejection kind=client code=not_found_error rule=client"},
		{"too large", nil, failureBody("request_too_large", "No."), "rejection kind=client code=request_too_large rule=client"},
		{"billing", nil, failureBody("billing_error", "No."), "rejection kind=funds code=billing_error rule=payment-required"},
		{"permission", nil, failureBody("permission_error", "No."), "rejection kind=access code=permission_error rule=forbidden"},
		{"limited under the headers of a good answer", []string{"u-status: allowed", "u-5h-status: allowed"}, failureBody("rate_limit_error", "Error"), "rejection kind=throttle code=rate_limit_error rule=throttle"},
		{"limited without headers", nil, failureBody("rate_limit_error", "Error"), "rejection kind=bare code=rate_limit_error rule=bare"},
		{"credits", nil, failureBody("rate_limit_error", "Usage credits are required for this model."), "rejection kind=entitlement code=rate_limit_error rule=credits-required feature=model:opus"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := anthropic.Provider{}.Classify(provider.Answer{
				Status: 200, InStream: true, Header: headers(c.h...), Body: []byte(c.data), At: t0, Request: inference("claude-opus-5"), Kind: account.Subscription,
			})
			if got := capture.Describe(account.Reading{}, x, provider.Usage{}); len(got) != 1 || got[0] != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A client that is not Claude Code is remembered as such, so that Claude Code itself is
// still served by the account.
func TestClassifyOtherClient(t *testing.T) {
	p := anthropic.Provider{}
	opencode := p.Inspect("POST", "/v1/messages", http.Header{"User-Agent": {"opencode/1.18.33"}}, body.Facts{Model: "claude-opus-5"})
	x := p.Classify(provider.Answer{
		Status: 400, Body: []byte(failureBody("invalid_request_error", "You're out of extra usage.")), At: t0, Request: opencode, Kind: account.Subscription,
	})
	if x.Kind != account.Entitlement || !slices.Contains(opencode.Features, x.Feature) {
		t.Errorf("got kind %s, feature %q; want an entitlement among %q", x.Kind, x.Feature, opencode.Features)
	}
	if slices.Contains(inference("claude-opus-5").Features, x.Feature) {
		t.Errorf("feature %q keeps Claude Code away too", x.Feature)
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(429, "retry-after: 9223372037", limited, false)
	f.Add(400, "", failureBody("invalid_request_error", "Your credit balance is too low"), false)
	f.Add(200, "anthropic-ratelimit-unified-5h-status: rejected", failureBody("rate_limit_error", "Claude AI usage limit reached|NaN"), true)
	f.Add(403, "", `{"error":{"details":{"error_code":5}}}`, false)
	f.Fuzz(func(t *testing.T, status int, line, text string, inStream bool) {
		name, value, _ := strings.Cut(line, ": ")
		a := provider.Answer{
			Status: status, Header: http.Header{}, Body: []byte(text), At: t0, InStream: inStream, Request: inference("claude-opus-5"), Kind: account.Subscription,
		}
		a.Header.Add(name, value)
		x := anthropic.Provider{}.Classify(a)
		if want := inStream || status >= 400; x.Rejected() != want {
			t.Fatalf("%d %q: got rejected %v, want %v", status, text, x.Rejected(), want)
		}
		if !x.Rejected() {
			return
		}
		if x.Rule == "" || !x.At.Equal(t0) {
			t.Errorf("%d %q: got %+v, want a rule and the instant", status, text, x)
		}
		if x.Kind == account.Entitlement && x.Feature == "" || x.Kind != account.Entitlement && x.Kind != account.Access && x.Feature != "" {
			t.Errorf("%d %q: kind %s with feature %q", status, text, x.Kind, x.Feature)
		}
		if x.Until.Before(t0) && !x.Until.IsZero() {
			t.Errorf("%d %q: pauses until %v, before %v", status, text, x.Until, t0)
		}
	})
}
