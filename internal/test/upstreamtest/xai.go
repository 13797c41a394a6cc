package upstreamtest

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// The paths of xAI's account calls.
const (
	GrokUsage    = "/v1/billing"
	GrokUsageRPC = "/grok_api_v2.GrokBuildBilling/GetGrokCreditsConfig"
	XAIToken     = "/oauth2/token"
)

// StartXAI is Start for xAI: the API of keys, and the Grok CLI's proxy with its usage
// (over REST and over gRPC-Web) and its token endpoint. Both have the same paths. Like the
// proxy it refuses a login's token without its marker, and a client that does not say its
// version; an account by a key is one whose credential begins with xai-.
func StartXAI(t testing.TB) *Upstream {
	t.Helper()
	return start(t, xAI())
}

func xAI() dialect {
	scripted := []string{"/v1/responses", "/v1/chat/completions"}
	return dialect{
		scripted: func(r *Request) bool { return slices.Contains(scripted, r.Path) && r.Method == http.MethodPost },
		good:     GrokGood(),
		aside: func(r *Request) Script {
			if r.Path == "/v1/models" {
				return Raw(http.StatusOK, jsonType(), []byte(`{"object":"list","data":[{"id":"grok-4.6","object":"model","created":1780000000,"owned_by":"xai"}]}`))
			}
			return nil
		},
		unknown: XAIRefusal("bad-credentials"),
		nowhere: XAIRefusal("not-found"),
		token:   XAIToken,
		refresh: formRefresh,
		granted: func(g Grant) Script {
			return Raw(http.StatusOK, jsonType(), fmt.Appendf(nil, `{"access_token":%q,"refresh_token":%q,"token_type":"Bearer","expires_in":%d}`,
				g.Access, g.Refresh, g.seconds()))
		},
		reused: Raw(http.StatusBadRequest, jsonType(), []byte(`{"error":"invalid_grant","error_description":"Refresh token has been revoked"}`)),
	}
}

// GrokGood is Reply as xAI answers, with the ceilings that it advertises, which say
// nothing of what is left.
func GrokGood() Script {
	h := http.Header{}
	for name, value := range map[string]string{
		"x-ratelimit-limit-requests": "864", "x-ratelimit-remaining-requests": "864",
		"x-ratelimit-limit-tokens": "18000000", "x-ratelimit-remaining-tokens": "18000000",
	} {
		h.Set(name, value)
	}
	good := Reply(h).unlessForeign(XAIRefusal("encrypted-content"))
	return func(r *Request) Answer {
		if len(r.Credential) > 4 && r.Credential[:4] == "xai-" {
			return good(r)
		}
		switch {
		case r.Header.Get("x-xai-token-auth") != "xai-grok-cli":
			return XAIRefusal("no-marker")(r)
		case r.Header.Get("x-grok-client-version") == "":
			return XAIRefusal("no-version")(r)
		}
		return good(r)
	}
}

// GrokUsed is what the proxy's usage endpoint says about a weekly allowance, used in percent.
// As on the wire, a zero is left out.
func GrokUsed(percent float64, reset time.Time) Script {
	figure := ""
	if percent != 0 {
		figure = fmt.Sprintf(`"creditUsagePercent":%g,`, percent)
	}
	begin, end := reset.Add(-7*24*time.Hour).UTC().Format(time.RFC3339Nano), reset.UTC().Format(time.RFC3339Nano)
	return Raw(http.StatusOK, jsonType(), fmt.Appendf(nil, `{"config":{"currentPeriod":{"type":"USAGE_PERIOD_TYPE_WEEKLY","start":%q,"end":%q},%s`+
		`"onDemandCap":{"val":0},"onDemandUsed":{"val":0},"isUnifiedBillingUser":true,"prepaidBalance":{"val":0},`+
		`"billingPeriodStart":%q,"billingPeriodEnd":%q}}`, begin, end, figure, begin, end))
}

// xAIRefusals are errors known by their wording. The texts are the provider's.
var xAIRefusals = map[string]struct {
	status int
	body   string
}{
	"bad-credentials":   {403, `{"code":"unauthenticated:bad-credentials","error":"The OAuth2 access token could not be validated."}`},
	"bad-key":           {400, `{"code":"invalid-argument","error":"Incorrect API key provided. You can obtain an API key from https://console.x.ai."}`},
	"balance-exhausted": {402, `{"error":"Grok Build usage balance exhausted"}`},
	"spending-limit":    {403, `{"code":"personal-team-blocked:spending-limit","error":"You have run out of credits or need a Grok subscription. Add credits at https://grok.com/?_s=usage or upgrade at https://grok.com/supergrok."}`},
	"out-of-credits":    {429, `{"code":429,"error":"You ran out of credits. [WKE=personal-team-blocked:spending-limit]"}`},
	"no-marker":         {403, `{"code":"permission-denied","error":"Access to the chat endpoint is denied."}`},
	"no-version":        {426, `{"error":"Your Grok CLI version (none) is outdated. Please update to version 0.1.202 or later via npm."}`},
	"team-credits":      {429, `{"code":"resource-exhausted","error":"Your team 00000000-0000-4000-8000-000000000002 has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit."}`},
	"throttled":         {429, `{"code":"resource-exhausted","error":"Too many tokens for team 00000000-0000-4000-8000-000000000002 and model grok-4.6. Your team's rate limit is — Tokens per Minute (actual/limit): 65605/16000."}`},
	"encrypted-content": {400, `{"code":"invalid-argument","error":"Could not decrypt the provided encrypted_content."}`},
	"not-found":         {404, `{"code":"not-found","error":"Not found"}`},
}

// XAIRefusal answers with a known error by its name. An unknown name panics.
func XAIRefusal(name string) Script {
	known, ok := xAIRefusals[name]
	if !ok {
		panic("upstreamtest: no refusal of xAI's named " + name)
	}
	return Raw(known.status, jsonType(), []byte(known.body))
}
