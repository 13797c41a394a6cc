package upstreamtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/simulate"
)

// The paths of OpenAI's two worlds that tests look at.
const (
	CodexResponses = "/backend-api/codex/responses"
	CodexUsage     = "/backend-api/wham/usage"
	OpenAIToken    = "/oauth/token"
)

// StartOpenAI is Start for OpenAI: the API of keys below /v1, and the backend of ChatGPT
// plans below /backend-api, with its usage and its token endpoint. The backend refuses
// what it is known to refuse: a response to be stored, an answer that is no stream, and
// reasoning that another account made.
func StartOpenAI(t testing.TB) *Upstream {
	t.Helper()
	return start(t, openAI())
}

func openAI() dialect {
	scripted := []string{"/v1/responses", "/v1/chat/completions", CodexResponses, CodexResponses + "/compact"}
	return dialect{
		scripted: func(r *Request) bool { return slices.Contains(scripted, r.Path) && r.Method == http.MethodPost },
		good:     OpenAIGood(nil),
		aside: func(r *Request) Script {
			switch r.Path {
			case "/v1/models":
				return Raw(http.StatusOK, jsonType(), []byte(`{"object":"list","data":[{"id":"gpt-5.5","object":"model","created":1780000000,"owned_by":"openai"}]}`))
			case "/backend-api/codex/models":
				return Raw(http.StatusOK, jsonType(), []byte(`{"models":[]}`))
			}
			return nil
		},
		unknown: func(r *Request) Answer {
			if strings.HasPrefix(r.Path, "/backend-api/") {
				return OpenAIRefusal("token-expired")(r)
			}
			return OpenAIRefusal("invalid-key")(r)
		},
		nowhere: OpenAIRefusal("not-found"),
		token:   OpenAIToken,
		refresh: jsonRefresh,
		granted: func(g Grant) Script {
			return Raw(http.StatusOK, jsonType(), fmt.Appendf(nil, `{"id_token":%q,"access_token":%q,"refresh_token":%q}`, g.Access, g.Access, g.Refresh))
		},
		reused: Raw(http.StatusUnauthorized, jsonType(), simulate.ErrorBody("invalid_request_error", "refresh_token_reused",
			"Your refresh token has already been used to generate a new access token. Please try signing in again.", nil)),
	}
}

// OpenAIGood is Reply, as OpenAI answers.
func OpenAIGood(h http.Header) Script {
	good := Reply(h).unlessForeign(OpenAIRefusal("encrypted-content"))
	return func(r *Request) Answer {
		if !strings.HasPrefix(r.Path, "/backend-api/") {
			return good(r)
		}
		body := strings.ReplaceAll(string(r.Plain()), " ", "")
		switch {
		case !strings.Contains(body, `"store":false`):
			return Raw(http.StatusBadRequest, jsonType(), []byte(`{"detail":"Store must be set to false"}`))(r)
		case !r.Stream:
			return Raw(http.StatusBadRequest, jsonType(), []byte(`{"detail":"Stream must be set to true"}`))(r)
		}
		return good(r)
	}
}

// CodexPlan is the headers of a plan: its five-hour and weekly windows, used in percent.
func CodexPlan(fiveHour float64, fiveHourReset time.Time, weekly float64, weeklyReset time.Time) http.Header {
	h := http.Header{}
	set := func(slot string, percent float64, minutes int64, reset time.Time) {
		h.Set("x-codex-"+slot+"-used-percent", strconv.FormatFloat(percent, 'f', -1, 64))
		h.Set("x-codex-"+slot+"-window-minutes", strconv.FormatInt(minutes, 10))
		h.Set("x-codex-"+slot+"-reset-at", strconv.FormatInt(reset.Unix(), 10))
	}
	set("primary", fiveHour, 300, fiveHourReset)
	set("secondary", weekly, 10080, weeklyReset)
	h.Set("x-codex-plan-type", "plus")
	h.Set("x-codex-active-limit", "premium")
	h.Set("x-codex-credits-has-credits", "False")
	h.Set("x-codex-credits-unlimited", "False")
	h.Set("x-codex-credits-balance", "")
	return h
}

// UsageLimitReached is the 429 of a plan whose five-hour window is used up.
func UsageLimitReached(reset time.Time) Script {
	return func(r *Request) Answer {
		h := CodexPlan(100, reset, 61, reset.Add(4*24*time.Hour))
		h.Set("Content-Type", "application/json")
		return Raw(http.StatusTooManyRequests, h, simulate.ErrorBody("usage_limit_reached", "", "The usage limit has been reached", map[string]any{
			"plan_type": "plus", "resets_at": reset.Unix(), "resets_in_seconds": int64(reset.Sub(r.At) / time.Second),
		}))(r)
	}
}

// CodexUsed is what the usage endpoint says about a plan.
func CodexUsed(fiveHour float64, fiveHourReset time.Time, weekly float64, weeklyReset time.Time) Script {
	return func(r *Request) Answer {
		window := func(percent float64, length time.Duration, reset time.Time) string {
			return fmt.Sprintf(`{"used_percent":%g,"limit_window_seconds":%d,"reset_after_seconds":%d,"reset_at":%d}`,
				percent, int64(length/time.Second), int64(reset.Sub(r.At)/time.Second), reset.Unix())
		}
		return Raw(http.StatusOK, jsonType(), fmt.Appendf(nil, `{"user_id":"user-EXAMPLE01","plan_type":"plus","rate_limit":{"allowed":%t,"limit_reached":%t,`+
			`"primary_window":%s,"secondary_window":%s},"additional_rate_limits":[],"credits":{"has_credits":false,"unlimited":false,"balance":"0"},`+
			`"rate_limit_reached_type":null}`, fiveHour < 100 && weekly < 100, fiveHour >= 100 || weekly >= 100,
			window(fiveHour, 5*time.Hour, fiveHourReset), window(weekly, 7*24*time.Hour, weeklyReset)))(r)
	}
}

// OpenAIKey is the headers of a key with the remaining of 500 requests and 30 thousand
// tokens a minute, full again after a minute.
func OpenAIKey(requests, tokens int64) http.Header {
	h := http.Header{}
	for name, v := range map[string][2]int64{"requests": {500, requests}, "tokens": {30_000, tokens}} {
		h.Set("x-ratelimit-limit-"+name, strconv.FormatInt(v[0], 10))
		h.Set("x-ratelimit-remaining-"+name, strconv.FormatInt(v[1], 10))
		h.Set("x-ratelimit-reset-"+name, "1m0s")
	}
	return h
}

// OpenAIKeyThrottled is a key over its tokens a minute.
func OpenAIKeyThrottled(retryAfter time.Duration) Script {
	h := OpenAIKey(499, 0)
	h.Set("Content-Type", "application/json")
	h.Set("retry-after", seconds(retryAfter))
	return Raw(http.StatusTooManyRequests, h, simulate.ErrorBody("tokens", "rate_limit_exceeded",
		fmt.Sprintf("Rate limit reached for gpt-5.5 in organization org-EXAMPLE on tokens per min (TPM): Limit 30000, Used 30000, Requested 1159. Please try again in %s.", retryAfter), nil))
}

// openAIRefusals are errors known by their wording. The texts are the provider's.
var openAIRefusals = map[string]struct {
	status              int
	kind, code, message string
}{
	"invalid-key":       {401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys."},
	"token-expired":     {401, "invalid_request_error", "token_expired", "Provided authentication token is expired. Please try signing in again."},
	"token-revoked":     {401, "invalid_request_error", "token_revoked", "Encountered invalidated oauth token for user, failing request"},
	"quota":             {429, "insufficient_quota", "credit_balance_exhausted", "You exceeded your current quota, please check your plan and billing details."},
	"no-codex":          {429, "usage_not_included", "", "To use Codex with your ChatGPT plan, upgrade to Plus."},
	"encrypted-content": {400, "invalid_request_error", "invalid_encrypted_content", "The encrypted content gAAA… could not be verified. Reason: Encrypted content organization_id did not match the target organization."},
	"overloaded":        {503, "service_unavailable_error", "server_is_overloaded", "Our servers are currently overloaded. Please try again later."},
	"unknown-model":     {404, "invalid_request_error", "model_not_found", "The model `gpt-unknown` does not exist or you do not have access to it."},
	"not-found":         {404, "invalid_request_error", "", "Invalid URL"},
}

// OpenAIRefusal answers with a known error by its name. An unknown name panics.
func OpenAIRefusal(name string) Script {
	known, ok := openAIRefusals[name]
	if !ok {
		panic("upstreamtest: no refusal of OpenAI's named " + name)
	}
	return func(r *Request) Answer {
		a := Raw(known.status, jsonType(), simulate.ErrorBody(known.kind, known.code, known.message, nil))(r)
		a.Header.Set("x-request-id", requestID(r))
		return a
	}
}
