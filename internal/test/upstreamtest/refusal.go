package upstreamtest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"holdfast/internal/simulate"
)

// Failed answers with an error in the provider's envelope.
func Failed(status int, f simulate.Failure) Script {
	return func(r *Request) Answer {
		f := f // a script may answer several requests at once
		if f.RequestID == "" {
			f.RequestID = requestID(r)
		}
		a := Answer{Status: status, Header: header(r), Parts: []Part{{Data: f.JSON()}}}
		a.Header.Set("Content-Type", "application/json")
		return a
	}
}

// windowMessage is the text of a subscription's 429, whichever window is spent.
const windowMessage = "This request would exceed your account's rate limit. Please try again later."

// spent is a subscription's 429: all of it, x-should-retry: true included, as if waiting
// were a matter of seconds.
func spent(u simulate.Unified) Script {
	u.Status, u.FallbackPercentage = "rejected", 0.5
	u.OverageStatus, u.OverageDisabled = "rejected", "org_level_disabled"
	return func(r *Request) Answer {
		a := Failed(http.StatusTooManyRequests, simulate.Failure{Type: "rate_limit_error", Message: windowMessage})(r)
		maps.Copy(a.Header, u.Header())
		a.Header.Set("retry-after", strconv.FormatInt(max(0, int64(u.ResetAt.Sub(r.At)/time.Second)), 10))
		a.Header.Set("x-should-retry", "true")
		a.Header.Set("x-robots-tag", "none")
		return a
	}
}

// FiveHourSpent is the 429 of a five-hour window that is used up, on an account whose week
// has room.
func FiveHourSpent(reset time.Time) Script {
	return spent(simulate.Unified{
		Claim: "five_hour", ResetAt: reset,
		Windows: []simulate.Window{
			{Name: "5h", Status: "rejected", Utilization: 1.01, ResetAt: reset, Surpassed: 1},
			{Name: "7d", Status: "allowed", Utilization: 0.69, ResetAt: reset.Add(5 * 24 * time.Hour)},
		},
	})
}

// FiveHourSpentTersely is a 429 seen beside the full one: nothing but the five-hour
// window's own lines, no aggregate status, no retry-after.
func FiveHourSpentTersely(reset time.Time) Script {
	return func(r *Request) Answer {
		a := Failed(http.StatusTooManyRequests, simulate.Failure{Type: "rate_limit_error", Message: windowMessage})(r)
		maps.Copy(a.Header, simulate.Unified{Windows: []simulate.Window{
			{Name: "5h", Status: "rejected", Utilization: 1.01, ResetAt: reset},
		}}.Header())
		a.Header.Set("x-should-retry", "true")
		return a
	}
}

// WeeklySpent is the 429 of a week that is used up, while the five-hour window allows.
func WeeklySpent(reset time.Time) Script {
	return spent(simulate.Unified{
		Claim: "seven_day", ResetAt: reset,
		Windows: []simulate.Window{
			{Name: "5h", Status: "allowed", Utilization: 0.22, ResetAt: reset.Add(-24 * time.Hour)},
			{Name: "7d", Status: "rejected", Utilization: 1, ResetAt: reset, Surpassed: 1},
		},
	})
}

// ModelSpent is the 429 of the expensive family's weekly window. Its status, reset and
// retry-after look as if they were the account's, and are not: the five-hour and weekly
// windows allow.
func ModelSpent(reset time.Time) Script {
	return spent(simulate.Unified{
		Claim: "seven_day_overage_included", ResetAt: reset,
		Windows: []simulate.Window{
			{Name: "5h", Status: "allowed", Utilization: 0, ResetAt: reset.Add(-14 * time.Hour)},
			{Name: "7d", Status: "allowed_warning", Utilization: 0.94, ResetAt: reset, Surpassed: 0.75},
			{Name: "7d_oi", Status: "rejected", Utilization: 1, ResetAt: reset, Surpassed: 1},
		},
	})
}

// Throttled is a burst on a subscription: 429 with retry-after, while every window allows
// and has room.
func Throttled(retryAfter time.Duration) Script {
	return func(r *Request) Answer {
		a := Failed(http.StatusTooManyRequests, simulate.Failure{Type: "rate_limit_error", Message: windowMessage})(r)
		maps.Copy(a.Header, Plan(0.30, r.At.Add(5*time.Hour), 0.41, r.At.Add(6*24*time.Hour)))
		a.Header.Set("retry-after", seconds(retryAfter))
		return a
	}
}

// KeyThrottled is an API key over its input tokens a minute, with the headers that show it.
func KeyThrottled(retryAfter time.Duration) Script {
	return func(r *Request) Answer {
		a := Failed(http.StatusTooManyRequests, simulate.Failure{
			Type: "rate_limit_error",
			Message: "This request would exceed your organization's rate limit of 2,000,000 input tokens per minute. " +
				"For details, refer to: https://docs.claude.com/en/api/rate-limits.",
		})(r)
		maps.Copy(a.Header, Key(990, 0, 390_000, r.At.Add(retryAfter)))
		a.Header.Set("retry-after", seconds(retryAfter))
		return a
	}
}

// Bare is a 429 without any limit header and with the text "Error": a short throttle or a
// model that is not served, unrelated to any window.
func Bare() Script {
	return func(r *Request) Answer {
		a := Failed(http.StatusTooManyRequests, simulate.Failure{Type: "rate_limit_error", Message: "Error"})(r)
		a.Header.Set("x-should-retry", "true")
		a.Header.Set("x-robots-tag", "none")
		return a
	}
}

// NotEntitled is a 429 about a feature the plan lacks. Its reset is that of the billing
// period and says nothing of the account's windows.
func NotEntitled(billing time.Time) Script {
	return func(r *Request) Answer {
		a := Failed(http.StatusTooManyRequests, simulate.Failure{
			Type:    "rate_limit_error",
			Message: "Usage credits are required for long context requests.",
			Details: `{"error_code":"credits_required"}`,
		})(r)
		maps.Copy(a.Header, simulate.Unified{ResetAt: billing, OverageDisabled: "org_level_disabled"}.Header())
		a.Header.Set("x-should-retry", "false")
		return a
	}
}

// Overloaded is 529: the model's capacity, nobody's quota.
func Overloaded() Script {
	return Failed(529, simulate.Failure{Type: "overloaded_error", Message: "Overloaded"}).With(Header("x-should-retry", "true"))
}

// refusals are errors known by their wording. The texts are the provider's.
var refusals = map[string]struct {
	status int
	simulate.Failure
}{
	"invalid-key":           {401, simulate.Failure{Type: "authentication_error", Message: "invalid x-api-key"}},
	"invalid-token":         {401, simulate.Failure{Type: "authentication_error", Message: "Invalid bearer token"}},
	"oauth-flag-missing":    {401, simulate.Failure{Type: "authentication_error", Message: "OAuth authentication is currently not supported."}},
	"token-expired":         {401, simulate.Failure{Type: "authentication_error", Message: "OAuth token has expired. Please obtain a new token or refresh your existing token.", Details: `{"error_visibility":"user_facing","error_code":"token_expired"}`}},
	"token-revoked":         {403, simulate.Failure{Type: "permission_error", Message: "OAuth token has been revoked. Please obtain a new token."}},
	"oauth-not-allowed":     {403, simulate.Failure{Type: "permission_error", Message: "OAuth authentication is currently not allowed for this organization.", Details: `{"error_code":"oauth_org_not_allowed"}`}},
	"organization-disabled": {400, simulate.Failure{Type: "invalid_request_error", Message: "This organization has been disabled."}},
	"credit-balance":        {400, simulate.Failure{Type: "invalid_request_error", Message: "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}},
	"own-spend-limit":       {400, simulate.Failure{Type: "invalid_request_error", Message: "You have reached your specified API usage limits. You will regain access on 2027-04-01 at 00:00 UTC."}},
	"tier-spend-limit":      {429, simulate.Failure{Type: "rate_limit_error", Message: "You have reached your API usage limits: your organization has crossed its monthly API usage threshold, set based on your organization's API tier. You will regain access on 2027-04-01 at 00:00 UTC.", Details: `{"error_code":"enforced_spend_limit_reached"}`}},
	"long-context":          {400, simulate.Failure{Type: "invalid_request_error", Message: "Extra usage is required for long context requests."}},
	"out-of-extra-usage":    {400, simulate.Failure{Type: "invalid_request_error", Message: "You're out of extra usage. Add more at claude.ai/settings/usage and keep going."}},
	"third-party":           {400, simulate.Failure{Type: "invalid_request_error", Message: "Third-party apps now draw from your extra usage, not your plan limits. Add more at claude.ai/settings/usage and keep going."}},
	"claude-code-only":      {400, simulate.Failure{Type: "invalid_request_error", Message: "This credential is only authorized for use with Claude Code and cannot be used for other API requests."}},
	"thinking-signature":    {400, simulate.Failure{Type: "invalid_request_error", Message: "messages.1.content.0: Invalid `signature` in `thinking` block"}},
	"tool-result-orphan":    {400, simulate.Failure{Type: "invalid_request_error", Message: "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_test_01. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."}},
	"unknown-field":         {400, simulate.Failure{Type: "invalid_request_error", Message: "context_management: Extra inputs are not permitted"}},
	"unknown-model":         {404, simulate.Failure{Type: "not_found_error", Message: "model: claude-unknown-1"}},
	"too-large":             {413, simulate.Failure{Type: "request_too_large", Message: "Request exceeds the maximum size"}},
	"api-error":             {500, simulate.Failure{Type: "api_error", Message: "Internal server error"}},
}

// Refusal answers with a known error by its name; Refusals lists the names. An unknown
// name panics.
func Refusal(name string) Script {
	known, ok := refusals[name]
	if !ok {
		panic("upstreamtest: no refusal named " + name)
	}
	return Failed(known.status, known.Failure)
}

// Refusals lists the names Refusal knows, sorted.
func Refusals() []string { return slices.Sorted(maps.Keys(refusals)) }

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
