package openai_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
	"holdfast/internal/test/capture"
)

func failureBody(kind, code, message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, kind, code)
}

// Bodies of more than one case.
var (
	spent    = `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus"}}`
	spentFor = func(seconds int) string {
		return strings.Replace(spent, `"plus"`, fmt.Sprintf(`"plus","resets_in_seconds":%d`, seconds), 1)
	}
	spentTill = func(epoch int) string {
		return strings.Replace(spent, `"plus"`, fmt.Sprintf(`"plus","resets_at":%d`, epoch), 1)
	}
	limited = failureBody("tokens", "rate_limit_exceeded", "Rate limit reached for gpt-5.5 in organization org-example on tokens per min (TPM).")
	quota   = failureBody("insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
)

// What captures do not show: combinations, variants and edges.
func TestClassify(t *testing.T) {
	const (
		sub = account.Subscription
		key = account.Key
	)
	week := []string{"c-primary-used-percent: 100", "c-primary-window-minutes: 300", "c-primary-reset-at: 1804172400", "c-secondary-used-percent: 80", "c-secondary-window-minutes: 10080", "c-secondary-reset-at: 1804672800"}
	calm := []string{"c-primary-used-percent: 22", "c-primary-window-minutes: 300", "c-primary-reset-after-seconds: 18000", "c-secondary-used-percent: 31", "c-secondary-window-minutes: 10080", "c-secondary-reset-after-seconds: 518400"}
	spark := []string{"c-active-limit: codex_bengalfox", "x-codex-bengalfox-limit-name: GPT-5.3-Codex-Spark", "x-codex-bengalfox-primary-used-percent: 100",
		"x-codex-bengalfox-primary-window-minutes: 300", "x-codex-bengalfox-primary-reset-at: 1804172400"}
	for _, c := range []struct {
		name   string
		kind   account.Kind
		model  string
		status int
		h      []string
		body   string
		want   []string
	}{
		{"good", sub, "gpt-5.5", 200, week, "", []string{"nothing"}},
		{"not modified", key, "", 304, nil, "", []string{"nothing"}},

		// usage_limit_reached
		{"window at its cap", sub, "gpt-5.5", 429, week, spentFor(60),
			[]string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"a month in the first slot", sub, "gpt-5.5", 429, []string{"c-primary-used-percent: 100", "c-primary-window-minutes: 43200", "c-primary-reset-at: 1806537600", "c-secondary-used-percent: 20", "c-secondary-window-minutes: 10080"}, spent,
			[]string{"rejection kind=window code=usage_limit_reached rule=window", "spent 30d resets=2027-04-01T00:00:00Z"}},
		{"at its cap, the reset in the body", sub, "gpt-5.5", 429, []string{"c-primary-used-percent: 100", "c-primary-window-minutes: 10080"}, spentTill(1804672800),
			[]string{"rejection kind=window code=usage_limit_reached rule=window", "spent weekly resets=2027-03-10T10:00:00Z"}},
		{"no headers, near", sub, "gpt-5.5", 429, nil, spentFor(18000),
			[]string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"no headers, far", sub, "gpt-5.5", 429, nil, spentFor(18120),
			[]string{"rejection kind=window code=usage_limit_reached rule=window", "spent weekly resets=2027-03-04T15:02:00Z"}},
		{"no headers, farther than a week", sub, "gpt-5.5", 429, nil, spentTill(1806537600),
			[]string{"rejection kind=window code=usage_limit_reached rule=window", "spent 30d resets=2027-04-01T00:00:00Z"}},
		{"an instant counts before a wait", sub, "gpt-5.5", 429, nil, `{"error":{"type":"usage_limit_reached","resets_at":1804172400,"resets_in_seconds":5}}`,
			[]string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"no headers, no reset", sub, "gpt-5.5", 429, nil, spent, []string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour"}},
		{"unreadable resets", sub, "gpt-5.5", 429, nil, `{"error":{"type":"usage_limit_reached","resets_at":"soon","resets_in_seconds":-4}}`,
			[]string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour"}},
		{"the window that has the same reset", sub, "gpt-5.5", 429, []string{"c-primary-used-percent: 99", "c-primary-window-minutes: 10080", "c-primary-reset-at: 1804172400"}, spentTill(1804172370),
			[]string{"rejection kind=window code=usage_limit_reached rule=window", "spent weekly resets=2027-03-04T14:59:30Z"}},
		{"no reset, the fullest window", sub, "gpt-5.5", 429, []string{"c-primary-used-percent: 10", "c-primary-window-minutes: 300", "c-secondary-used-percent: 99", "c-secondary-window-minutes: 10080"}, spent,
			[]string{"rejection kind=window code=usage_limit_reached rule=window", "spent weekly"}},
		{"at its cap without the words", sub, "gpt-5.5", 429, week, `{"detail":"Too many requests"}`,
			[]string{"rejection kind=window rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"signed in with ChatGPT", sub, "gpt-5.5", 429, nil, failureBody("invalid_request_error", "subscription_sharing_usage_limit_exceeded", "limit"),
			[]string{"rejection kind=window code=subscription_sharing_usage_limit_exceeded rule=five-hour", "spent five-hour"}},

		// model-cap-scope
		{"any model's word blocks the account", sub, "gpt-5.3-codex-spark", 429, week, spent,
			[]string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"the model's own limit", sub, "gpt-5.3-codex-spark", 429, slices.Concat(spark, calm), spent,
			[]string{"rejection kind=model-window code=usage_limit_reached rule=model-window", "spent five-hour:gpt-5.3-codex-spark family=gpt-5.3-codex-spark resets=2027-03-04T15:00:00Z"}},
		{"a limit of another name that is active", sub, "gpt-9-new", 429, slices.Concat(spark, calm), spent,
			[]string{"rejection kind=model-window code=usage_limit_reached rule=model-window", "spent five-hour:gpt-5.3-codex-spark family=gpt-9-new resets=2027-03-04T15:00:00Z"}},
		{"another model's limit, told in passing", sub, "gpt-5.5", 429, append(slices.Concat(spark[1:], calm), "retry-after: 12"), `{"detail":"slow"}`,
			[]string{"rejection kind=throttle rule=throttle until=2027-03-04T10:00:12Z"}},
		{"both limits", sub, "gpt-5.3-codex-spark", 429, slices.Concat(spark, week), spent,
			[]string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z", "spent five-hour:gpt-5.3-codex-spark family=gpt-5.3-codex-spark resets=2027-03-04T15:00:00Z"}},
		{"an active limit that has no headers is the main one", sub, "gpt-5.5", 429, append([]string{"c-active-limit: premium"}, week...), spent,
			[]string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},

		// burst-429-read-as-exhaustion, bare-429-amplified
		{"burst", sub, "gpt-5.5", 429, calm, `{"detail":"Too many requests"}`, []string{"rejection kind=throttle rule=throttle"}},
		{"burst with a wait", sub, "gpt-5.5", 429, append(slices.Clone(calm), "retry-after: 12"), limited,
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=throttle until=2027-03-04T10:00:12Z"}},
		{"bare", sub, "gpt-5.5", 429, nil, `Error`, []string{"rejection kind=bare rule=bare"}},
		{"bare without a body", key, "gpt-5.5", 429, nil, "", []string{"rejection kind=bare rule=bare"}},
		{"bare in so many words", key, "gpt-5.5", 429, nil, limited, []string{"rejection kind=bare code=rate_limit_exceeded rule=bare"}},
		{"unreadable retry-after is left out", sub, "gpt-5.5", 429, []string{"retry-after: soon"}, "", []string{"rejection kind=bare rule=bare"}},

		// time-value-parsing: of two budgets the exhausted one's
		{"tokens exhausted", key, "gpt-5.5", 429, []string{"r-remaining-requests: 59", "r-reset-requests: 1s", "r-remaining-tokens: 0", "r-reset-tokens: 6m0s"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model until=2027-03-04T10:06:00Z"}},
		{"requests exhausted", key, "gpt-5.5", 429, []string{"r-remaining-requests: 0", "r-reset-requests: 1s", "r-remaining-tokens: 9", "r-reset-tokens: 6m0s"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model until=2027-03-04T10:00:01Z"}},
		{"both exhausted", key, "gpt-5.5", 429, []string{"r-remaining-requests: 0", "r-reset-requests: 20s", "r-remaining-project-requests: 0", "r-reset-project-requests: 40s"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model until=2027-03-04T10:00:40Z"}},
		{"a told wait counts before a reset", key, "gpt-5.5", 429, []string{"r-remaining-tokens: 0", "r-reset-tokens: 6m0s", "retry-after: 2", "retry-after-ms: 2000"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model until=2027-03-04T10:00:02Z"}},
		{"none exhausted, told by the message", key, "gpt-5.5", 429, []string{"r-remaining-tokens: 9", "r-reset-tokens: 6m0s"},
			failureBody("tokens", "rate_limit_exceeded", "Rate limit reached for gpt-5.5 on tokens per min (TPM): Limit 30000, Used 29999, Requested 90. Please try again in 1m30s. Visit us."),
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model until=2027-03-04T10:01:30Z"}},
		{"told in words", key, "gpt-5.5", 429, nil, failureBody("requests", "rate_limit_exceeded", "Rate limit reached. Please try again in 7 seconds."),
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model until=2027-03-04T10:00:07Z"}},
		{"none exhausted, nothing told", key, "gpt-5.5", 429, []string{"r-remaining-tokens: 9", "r-reset-tokens: 6m0s"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model"}},
		{"slow down", key, "gpt-5.5", 429, nil, failureBody("rate_limit_error", "slow_down", "Slow down."),
			[]string{"rejection kind=throttle code=slow_down rule=slow-down per-model"}},
		{"slow down, as before 2026-09", key, "gpt-5.5", 503, nil, failureBody("service_unavailable_error", "slow_down", "Slow down."), []string{"rejection kind=overload code=slow_down rule=overload"}},

		{"too large for the limit", key, "gpt-4.1", 429, []string{"r-remaining-tokens: 30000", "retry-after: 3"},
			failureBody("tokens", "rate_limit_exceeded", "Request too large for gpt-4.1 in organization org-example on tokens per min (TPM): Limit 30000, Requested 33345. The input or output tokens must be reduced."),
			[]string{"rejection kind=too-large code=rate_limit_exceeded rule=request-too-large limit=tokens"}},
		{"too large by its sizes", key, "gpt-4.1", 429, nil,
			failureBody("tokens", "rate_limit_exceeded", "Rate limit reached for gpt-4.1: Limit 30,000, Used 0, Requested 33,345. Please try again in 6s."),
			[]string{"rejection kind=too-large code=rate_limit_exceeded rule=request-too-large limit=tokens"}},

		// money-or-access-lost-under-an-odd-status
		{"quota", key, "gpt-5.5", 429, []string{"r-remaining-tokens: 9", "retry-after: 3"}, quota, []string{"rejection kind=funds code=insufficient_quota rule=insufficient-quota"}},
		{"quota by its type alone", key, "gpt-5.5", 429, nil, `{"error":{"type":"insufficient_quota","message":"x","code":null}}`, []string{"rejection kind=funds code=insufficient_quota rule=insufficient-quota"}},
		{"quota by its words alone", key, "gpt-5.5", 429, nil, `{"error":{"message":"You exceeded your current quota, please check."}}`, []string{"rejection kind=funds rule=insufficient-quota"}},
		{"credit balance", key, "gpt-5.5", 429, nil, failureBody("insufficient_quota", "credit_balance_exhausted", "You exceeded your current quota."), []string{"rejection kind=funds code=credit_balance_exhausted rule=credit-balance"}},
		{"organization's spend", key, "gpt-5.5", 429, nil, failureBody("insufficient_quota", "organization_spend_limit_exceeded", "x"), []string{"rejection kind=funds code=organization_spend_limit_exceeded rule=spend-limit-organization"}},
		{"organization's usage", key, "gpt-5.5", 429, nil, failureBody("insufficient_quota", "organization_usage_limit_exceeded", "x"), []string{"rejection kind=funds code=organization_usage_limit_exceeded rule=usage-limit-organization"}},
		{"a plan's quota", sub, "gpt-5.5", 429, nil, quota, []string{"rejection kind=funds code=insufficient_quota rule=insufficient-quota"}},
		{"a plan's quota whose reset is known", sub, "gpt-5.5", 429, week, quota, []string{"rejection kind=window code=insufficient_quota rule=five-hour", "spent five-hour resets=2027-03-04T15:00:00Z"}},
		{"no Codex in the plan", sub, "gpt-5.5", 429, nil, failureBody("usage_not_included", "", "x"), []string{"rejection kind=funds code=usage_not_included rule=plan-without-codex"}},
		{"workspace credits", sub, "gpt-5.5", 429, []string{"c-rate-limit-reached-type: workspace_member_credits_depleted"}, spent, []string{"rejection kind=funds code=usage_limit_reached rule=credits-depleted"}},
		{"workspace limit", sub, "gpt-5.5", 429, []string{"c-rate-limit-reached-type: workspace_owner_usage_limit_reached"}, spent, []string{"rejection kind=funds code=usage_limit_reached rule=workspace-limit"}},
		{"workspace limit whose reset is known", sub, "gpt-5.5", 429, []string{"c-rate-limit-reached-type: workspace_owner_usage_limit_reached"}, spentFor(600),
			[]string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour resets=2027-03-04T10:10:00Z"}},
		{"reached, and nothing more", sub, "gpt-5.5", 429, []string{"c-rate-limit-reached-type: rate_limit_reached"}, spent, []string{"rejection kind=window code=usage_limit_reached rule=five-hour", "spent five-hour"}},
		{"payment required", key, "gpt-5.5", 402, nil, "", []string{"rejection kind=funds rule=payment-required"}},
		{"workspace gone", sub, "gpt-5.5", 402, nil, `{"detail":{"code":"deactivated_workspace"}}`, []string{"rejection kind=funds code=deactivated_workspace rule=disabled"}},
		{"account gone", key, "gpt-5.5", 401, nil, failureBody("invalid_request_error", "account_deactivated", "x"), []string{"rejection kind=funds code=account_deactivated rule=disabled"}},

		// auth-failure-routing
		{"bad key", key, "gpt-5.5", 401, nil, failureBody("invalid_request_error", "invalid_api_key", "Incorrect API key provided."), []string{"rejection kind=credential code=invalid_api_key rule=invalid-key"}},
		{"no words", sub, "gpt-5.5", 401, nil, "", []string{"rejection kind=credential rule=unauthorized"}},
		{"token revoked, in a header", sub, "gpt-5.5", 401, []string{"x-openai-authorization-error: x", "x-error-json: " + base64.StdEncoding.EncodeToString([]byte(`{"error":{"code":"token_revoked"},"status":401}`))}, `{"detail":"Unauthorized access"}`,
			[]string{"rejection kind=credential code=token_revoked rule=login-ended"}},
		{"a header that cannot be read", sub, "gpt-5.5", 401, []string{"x-error-json: %%%"}, "", []string{"rejection kind=credential rule=unauthorized"}},
		{"token expired as 403", sub, "gpt-5.5", 403, nil, failureBody("invalid_request_error", "token_expired", "x"), []string{"rejection kind=credential code=token_expired rule=login-ended"}},
		{"scope", key, "gpt-5.5", 401, nil, failureBody("invalid_request_error", "", "You have insufficient permissions for this operation. Missing scopes: model.request."), []string{"rejection kind=access code=invalid_request_error rule=scope feature=scope:responses"}},
		{"another organization than the key's", key, "gpt-5.5", 401, nil, failureBody("invalid_request_error", "mismatched_organization", "x"), []string{"rejection kind=access code=mismatched_organization rule=organization feature=organization"}},
		{"country", key, "gpt-5.5", 403, nil, failureBody("request_forbidden", "unsupported_country_region_territory", "x"), []string{"rejection kind=client code=unsupported_country_region_territory rule=country"}},
		{"forbidden", key, "gpt-5.5", 403, nil, failureBody("invalid_request_error", "", "no"), []string{"rejection kind=access code=invalid_request_error rule=forbidden"}},
		{"no such model, by 403", key, "gpt-5.5", 403, nil, failureBody("invalid_request_error", "model_not_found", "no"), []string{"rejection kind=access code=model_not_found rule=model-access"}},
		{"no such model, by 403, with room", key, "gpt-5.5", 403, []string{"r-remaining-project-requests: 2", "r-reset-project-requests: 20s"}, failureBody("invalid_request_error", "model_not_found", "no"), []string{"rejection kind=access code=model_not_found rule=model-access"}},

		// client-fault-punishes-accounts
		{"bad request", key, "gpt-5.5", 400, []string{"r-remaining-tokens: 0"}, failureBody("invalid_request_error", "", "You exceeded nothing."), []string{"rejection kind=client code=invalid_request_error rule=client"}},
		{"no such model", key, "gpt-0", 404, nil, failureBody("invalid_request_error", "model_not_found", "no"), []string{"rejection kind=access code=model_not_found rule=model-access"}},
		{"a full budget refuses", key, "gpt-4.1", 429, []string{"r-limit-tokens: 30000", "r-remaining-tokens: 30000", "r-remaining-requests: 5"}, limited,
			[]string{"rejection kind=too-large code=rate_limit_exceeded rule=request-too-large limit=tokens"}},
		{"a token less than full", key, "gpt-4.1", 429, []string{"r-limit-tokens: 30000", "r-remaining-tokens: 29999"}, limited,
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model"}},
		{"as large as the limit", key, "gpt-4.1", 429, nil,
			failureBody("tokens", "rate_limit_exceeded", "Rate limit reached for gpt-4.1: Limit 30,000, Used 1, Requested 30,000. Please try again in 6s."),
			[]string{"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model until=2027-03-04T10:00:06Z"}},
		{"too large, and no rate limit", key, "gpt-4.1", 413, nil, failureBody("invalid_request_error", "", "Request too large."), []string{"rejection kind=client code=invalid_request_error rule=client"}},
		{"unprocessable", key, "gpt-5.5", 422, nil, "", []string{"rejection kind=client rule=client"}},
		{"refused content", sub, "gpt-5.5", 400, nil, failureBody("invalid_request_error", "cyber_policy", "x"), []string{"rejection kind=client code=cyber_policy rule=client"}},
		{"encrypted for another, variant", sub, "gpt-5.5", 400, nil, `{"error":{"message":"The encrypted content for item rs_1 could not be decrypted or parsed."}}`, []string{"rejection kind=client rule=encrypted-content"}},
		{"the backend's own words", sub, "gpt-5.5", 400, nil, `{"detail":"Store must be set to false"}`, []string{"rejection kind=client rule=client"}},
		{"a model that no plan has", sub, "gpt-4.1", 400, nil, `{"detail":"The 'gpt-4.1' model is not supported when using Codex with a ChatGPT account."}`, []string{"rejection kind=access rule=model-not-in-plan"}},
		{"what the client wrote is not the provider's word", key, "gpt-5.5", 400, nil, failureBody("invalid_request_error", "", "Bad input: 'You exceeded your current quota'"), []string{"rejection kind=client code=invalid_request_error rule=client"}},

		{"overloaded", key, "gpt-5.5", 503, nil, failureBody("service_unavailable_error", "server_is_overloaded", "x"), []string{"rejection kind=overload code=server_is_overloaded rule=overload"}},
		{"overloaded as 429", sub, "gpt-5.5", 429, calm, failureBody("", "server_is_overloaded", "x"), []string{"rejection kind=overload code=server_is_overloaded rule=overload"}},
		{"at capacity", sub, "gpt-5.5", 429, nil, `{"error":{"message":"Selected model is at capacity. Please try a different model."}}`, []string{"rejection kind=overload rule=overload"}},
		{"no money, whatever the status", key, "gpt-5.5", 500, nil, quota, []string{"rejection kind=funds code=insufficient_quota rule=insufficient-quota"}},
		{"a gateway's page", key, "gpt-5.5", 502, nil, "<html>bad gateway</html>", []string{"rejection kind=overload rule=overload"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := openai.Provider{}.Classify(provider.Answer{
				Status: c.status, Header: headers(c.h...), Body: []byte(c.body), At: t0, Request: inference(c.model), Kind: c.kind,
			})
			if got := capture.Describe(account.Reading{}, x, provider.Usage{}); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// Several windows at their caps each keep their own reset.
func TestClassifyBothWindows(t *testing.T) {
	x := openai.Provider{}.Classify(provider.Answer{
		Status: 429, At: t0, Request: inference("gpt-5.5"), Kind: account.Subscription, Body: []byte(spentFor(600)),
		Header: headers("c-primary-used-percent: 100", "c-primary-window-minutes: 300", "c-primary-reset-at: 1804172400",
			"c-secondary-used-percent: 100", "c-secondary-window-minutes: 10080", "c-secondary-reset-at: 1804672800"),
	})
	want := []account.Spent{{Window: account.FiveHour, ResetAt: t0.Add(5 * time.Hour)}, {Window: account.Weekly, ResetAt: t0.Add(6 * 24 * time.Hour)}}
	if !slices.Equal(x.Spent, want) || x.Rule != "five-hour" {
		t.Errorf("got %+v by %s, want %+v by five-hour", x.Spent, x.Rule, want)
	}
	s := account.State{}.Reject(x, account.Rules{})
	if b, ok := pick.Blocked(t0, pick.Request{Family: "gpt-other", Model: "gpt-other"}, pick.Of(account.Account{}, s)); !ok || !b.Until.Equal(t0.Add(6*24*time.Hour)) {
		t.Errorf("another model: got blocked %v until %v, want until the week's reset", ok, b.Until)
	}
}

func TestClassifyInStream(t *testing.T) {
	failed := func(code, message string) string {
		return fmt.Sprintf(`{"type":"response.failed","response":{"status":"failed","error":{"code":%q,"message":%q}}}`, code, message)
	}
	for _, c := range []struct {
		name string
		kind account.Kind
		h    []string
		data string
		want string
	}{
		{"overloaded", account.Subscription, nil, failed("server_is_overloaded", "x"), "rejection kind=overload code=server_is_overloaded rule=overload"},
		{"slow down", account.Key, nil, failed("slow_down", "x"), "rejection kind=throttle code=slow_down rule=slow-down per-model"},
		{"quota", account.Key, nil, failed("insufficient_quota", "x"), "rejection kind=funds code=insufficient_quota rule=insufficient-quota"},
		{"not in the plan", account.Subscription, nil, failed("usage_not_included", "x"), "rejection kind=funds code=usage_not_included rule=plan-without-codex"},
		{"context", account.Key, nil, failed("context_length_exceeded", "x"), "rejection kind=client code=context_length_exceeded rule=client"},
		{"policy", account.Subscription, nil, failed("bio_policy", "x"), "rejection kind=client code=bio_policy rule=client"},
		{"prompt", account.Subscription, nil, failed("invalid_prompt", "x"), "rejection kind=client code=invalid_prompt rule=client"},
		{"encrypted", account.Subscription, nil, failed("", "Encrypted function output content could not be decrypted or decoded."), "rejection kind=client rule=encrypted-content"},
		{"server error", account.Key, nil, failed("server_error", "x"), "rejection kind=overload code=server_error rule=overload"},
		{"unknown", account.Key, nil, failed("news", "x"), "rejection kind=overload code=news rule=overload"},
		{"no words", account.Key, nil, `oh`, "rejection kind=overload rule=overload"},
		{"limited under the headers of a good answer", account.Key, []string{"r-remaining-tokens: 9"}, failed("rate_limit_exceeded", "x"), "rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model"},
		{"limited without headers", account.Key, nil, failed("rate_limit_exceeded", "x"), "rejection kind=bare code=rate_limit_exceeded rule=bare"},
		{"the event of the API", account.Key, nil, `{"type":"error","code":"rate_limit_exceeded","message":"Please try again in 9s.","param":null,"sequence_number":1}`,
			"rejection kind=throttle code=rate_limit_exceeded rule=key-limit per-model until=2027-03-04T10:00:09Z"},
		{"a chunk's", account.Key, nil, failureBody("invalid_request_error", "invalid_api_key", "x"), "rejection kind=credential code=invalid_api_key rule=invalid-key"},
		{"a frame's status", account.Subscription, nil, `{"type":"error","status":503,"error":{"message":"later"}}`, "rejection kind=overload rule=overload"},
		{"a frame's headers", account.Subscription, nil, `{"type":"error","status_code":429,"error":{"message":"later"},"headers":{"retry-after":12,"X-Codex-Primary-Used-Percent":["22"]}}`,
			"rejection kind=throttle rule=throttle until=2027-03-04T10:00:12Z"},
		{"a frame's headers before the answer's", account.Subscription, []string{"c-primary-used-percent: 100", "c-primary-window-minutes: 300"},
			`{"type":"error","status_code":429,"error":{"message":"later"},"headers":{"X-Codex-Primary-Used-Percent":"22"}}`, "rejection kind=throttle rule=throttle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := headers(c.h...)
			x := openai.Provider{}.Classify(provider.Answer{
				Status: 200, InStream: true, Header: h, Body: []byte(c.data), At: t0, Request: inference("gpt-5.5"), Kind: c.kind,
			})
			if got := capture.Describe(account.Reading{}, x, provider.Usage{}); len(got) != 1 || got[0] != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(h) != len(c.h) {
				t.Errorf("the answer's own headers became %q", h)
			}
		})
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(429, "retry-after: 9223372037", limited, false)
	f.Add(429, "x-codex-primary-used-percent: 100", spentFor(9), false)
	f.Add(200, "x-error-json: eyJ9", `{"type":"error","status_code":429,"headers":{"Retry-After":["5",6],"":null}}`, true)
	f.Add(403, "x-ratelimit-reset-project-requests: 20s", `{"error":"model_not_found"}`, false)
	f.Add(429, "", `{"error":{"message":"Limit 1,000, Requested 99999999999999999999. Try again in 9999999h."}}`, false)
	f.Add(401, "", `{"detail":[{"msg":"x"}],"error":{"code":5}}`, false)
	f.Fuzz(func(t *testing.T, status int, line, text string, inStream bool) {
		name, value, _ := strings.Cut(line, ": ")
		h := http.Header{}
		h.Add(name, value)
		for _, kind := range []account.Kind{account.Key, account.Subscription} {
			x := openai.Provider{}.Classify(provider.Answer{
				Status: status, Header: h, Body: []byte(text), At: t0, InStream: inStream, Request: inference("gpt-5.5"), Kind: kind,
			})
			if want := inStream || status >= 400; x.Rejected() != want {
				t.Fatalf("%d %q: got rejected %v, want %v", status, text, x.Rejected(), want)
			}
			if !x.Rejected() {
				return
			}
			if x.Rule == "" || !x.At.Equal(t0) {
				t.Errorf("%d %q: got %+v, want a rule and the instant", status, text, x)
			}
			if x.Kind != account.Access && x.Feature != "" {
				t.Errorf("%d %q: kind %s with feature %q", status, text, x.Kind, x.Feature)
			}
			if (x.Kind == account.TooLarge) != (x.Limit != "") {
				t.Errorf("%d %q: kind %s with limit %q", status, text, x.Kind, x.Limit)
			}
			if x.Until.Before(t0) && !x.Until.IsZero() {
				t.Errorf("%d %q: pauses until %v, before %v", status, text, x.Until, t0)
			}
			if (x.Kind == account.WindowSpent || x.Kind == account.ModelWindow) != (len(x.Spent) > 0) {
				t.Errorf("%d %q: kind %s with %d spent windows", status, text, x.Kind, len(x.Spent))
			}
		}
	})
}
