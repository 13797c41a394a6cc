package openai_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
	"holdfast/internal/test/capture"
)

const (
	codexID = "app_EMoamEEZ73f0CkXaXp7hrann"
	seat    = "00000000-0000-4000-8000-000000000001"
)

// jwt makes a token of claims that are written as JSON.
func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part([]byte(claims)) + ".signature"
}

func held(access, principal string) credential.Credential {
	return credential.Credential{
		Access: credential.NewSecret(access), Refresh: credential.NewSecret("held-refresh"), ClientID: codexID, Principal: principal,
		IssuedAt: t0.Add(-4 * time.Hour), ExpiresAt: t0.Add(4 * time.Hour), Generation: 7,
	}
}

func TestRenewal(t *testing.T) {
	got, ok := openai.Provider{}.Renewal(held("held-access", "user-1/"+seat))
	want := provider.Call{
		Method: "POST", URL: "https://auth.openai.com/oauth/token",
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
		Body:   []byte(`{"client_id":"` + codexID + `","grant_type":"refresh_token","refresh_token":"held-refresh"}`),
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%t (-want +got):\n%s", ok, diff)
	}
	for name, c := range map[string]credential.Credential{"a key": {Key: credential.NewSecret("key")}, "no refresh token": {Access: credential.NewSecret("access")}} {
		if call, ok := (openai.Provider{}).Renewal(c); ok {
			t.Errorf("%s: got a call to %s, want none", name, call.URL)
		}
	}
}

func TestRenewed(t *testing.T) {
	tenDays := jwt(`{"iat":1804154399,"exp":1805018400}`)
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // in the words of a capture
	}{
		{"its life by its claims", 200, `{"access_token":"` + tenDays + `","refresh_token":"r","expires_in":60}`, "renewed access=new refresh=new issued=2027-03-04T09:59:59Z expires=2027-03-14T10:00:00Z scopes=old"},
		{"an access token alone", 200, `{"access_token":"` + tenDays + `"}`, "renewed access=new refresh=old issued=2027-03-04T09:59:59Z expires=2027-03-14T10:00:00Z scopes=old"},
		{"a refresh token alone", 200, `{"refresh_token":"r"}`, "renewed access=old refresh=new issued=2027-03-04T09:30:00Z expires=2027-03-04T10:30:00Z scopes=old"},
		{"no life told", 200, `{"access_token":"opaque"}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z scopes=old"},
		{"an unreadable life", 200, `{"access_token":"` + jwt(`{"exp":"soon","iat":null}`) + `"}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z scopes=old"},

		{"no token at all", 200, `{"id_token":"i"}`, "lost"},
		{"cut", 200, `{"access_token":"a"`, "lost"},
		{"a web page", 200, `<html>`, "lost"},

		{"expired", 400, `{"error":{"code":"refresh_token_expired"}}`, "final"},
		{"reused", 401, `{"error":{"message":"x","type":"invalid_request_error","param":null,"code":"refresh_token_reused"}}`, "final"},
		{"invalidated, as a string", 401, `{"error":"refresh_token_invalidated"}`, "final"},
		{"expired, beside", 400, `{"code":"refresh_token_expired","error":{"message":"x"}}`, "final"},
		{"the standard's word", 400, `{"error":"invalid_grant"}`, "final"},

		{"401 without a word", 401, `{}`, "transient"},
		{"401 of another kind", 401, `{"error":{"code":"token_expired_soon"}}`, "transient"},
		{"a final word under 403", 403, `{"error":{"code":"refresh_token_expired"}}`, "transient"},
		{"a final word under 500", 500, `{"error":{"code":"refresh_token_expired"}}`, "transient"},
		{"a final word in a message", 400, `{"error":{"message":"refresh_token_expired"}}`, "transient"},
		{"Cloudflare", 403, `<!DOCTYPE html>`, "transient"},
		{"429", 429, `{"error":{"code":"rate_limit_exceeded"}}`, "transient"},
		{"503", 503, ``, "transient"},
	} {
		got := capture.OfCall(openai.Provider{}, capture.Capture{Call: "renewal", Status: c.status, Header: http.Header{}, Body: []byte(c.body), Recorded: t0})
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A login of whom nothing is known is told by its new token; one that is known stays whose
// it is.
func TestRenewedPrincipal(t *testing.T) {
	body := []byte(`{"access_token":"` + jwt(`{"https://api.openai.com/auth":{"chatgpt_user_id":"user-2","chatgpt_account_id":"`+seat+`"}}`) + `"}`)
	for held0, want := range map[string]string{"": "user-2/" + seat, "user-1/other": "user-1/other"} {
		got, err := openai.Provider{}.Renewed(held("held-access", held0), provider.Reply{Status: 200, Body: body, At: t0})
		if err != nil || got.Principal != want || got.ClientID != codexID {
			t.Errorf("%q: got %q by %q (%v), want %q", held0, got.Principal, got.ClientID, err, want)
		}
	}
}

func TestCallErrorsAreSilent(t *testing.T) {
	p := openai.Provider{}
	for _, body := range []string{
		`{"error":"held-refresh"}`, `{"error":{"type":"held-refresh","code":"held-refresh","message":"held-refresh"},"code":"held-refresh"}`,
		`held-refresh`, `<html>held-refresh`, `{"access_token":5,"id_token":"held-refresh"}`,
	} {
		for _, status := range []int{200, 400, 401, 403, 429, 500} {
			r := provider.Reply{Status: status, Header: http.Header{}, Body: []byte(body), At: t0}
			if _, err := p.Renewed(held("held-access", ""), r); err == nil || strings.Contains(err.Error(), "held") {
				t.Errorf("renewal, status %d, %s: got %v", status, body, err)
			}
			if _, err := p.Looked(0, r); err == nil || strings.Contains(err.Error(), "held") {
				t.Errorf("look, status %d, %s: got %v", status, body, err)
			}
		}
	}
}

func TestLooks(t *testing.T) {
	fed := jwt(`{"https://api.openai.com/auth":{"chatgpt_account_id":"` + seat + `","chatgpt_account_is_fedramp":true}}`)
	for _, c := range []struct {
		name, access, principal string
		want                    http.Header // beside Accept
	}{
		{"of a workspace", "held-access", "user-1/" + seat, http.Header{"Authorization": {"Bearer held-access"}, "Chatgpt-Account-Id": {seat}}},
		{"the workspace by the token", fed, "", http.Header{"Authorization": {"Bearer " + fed}, "Chatgpt-Account-Id": {seat}, "X-Openai-Fedramp": {"true"}}},
		{"of no known workspace", "held-access", "", http.Header{"Authorization": {"Bearer held-access"}}},
	} {
		c.want.Set("Accept", "application/json")
		want := []provider.Call{{Method: "GET", URL: "https://chatgpt.com/backend-api/wham/usage", Header: c.want}}
		if diff := cmp.Diff(want, openai.Provider{}.Looks(account.Subscription, held(c.access, c.principal))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if got := (openai.Provider{}).Looks(account.Key, credential.Credential{Key: credential.NewSecret("key")}); got != nil {
		t.Errorf("a key: got %d looks, want none", len(got))
	}
}

// Case window-identified-by-slot among them: a window is named by its length.
func TestLooked(t *testing.T) {
	slot := func(used, seconds string) string {
		return `{"used_percent":` + used + `,"limit_window_seconds":` + seconds + `,"reset_at":1804158000}` // an hour on
	}
	limit := func(primary, secondary string) string {
		return `"rate_limit":{"allowed":true,"limit_reached":false,"primary_window":` + primary + `,"secondary_window":` + secondary + `}`
	}
	const r = " resets=2027-03-04T11:00:00Z"
	usual := limit(slot("22", "18000"), slot("31", "604800"))
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"the usual two", usual, []string{"window five-hour utilization=0.22" + r, "window weekly utilization=0.31" + r}},
		{"a weekly one alone, in the first slot", limit(slot("40", "604800"), "null"), []string{"window weekly utilization=0.4" + r}},
		{"a month in the first slot", limit(slot("100", "2592000"), slot("20", "604800")), []string{"window 30d utilization=1" + r, "window weekly utilization=0.2" + r}},
		{"slots changed over", limit(slot("31", "604800"), slot("22", "18000")), []string{"window five-hour utilization=0.22" + r, "window weekly utilization=0.31" + r}},
		{"a length not seen before", limit(slot("5", "129600"), "null"), []string{"window 36h utilization=0.05" + r}},
		{"a length a little off", limit(slot("5", "17940"), "null"), []string{"window five-hour utilization=0.05" + r}},
		{"no length told", limit(`{"used_percent":5,"reset_at":1804158000}`, `{"used_percent":6,"reset_at":1804158000}`), []string{"window five-hour utilization=0.05" + r, "window weekly utilization=0.06" + r}},
		{"a reset in seconds from now", limit(`{"used_percent":5,"limit_window_seconds":18000,"reset_after_seconds":3600}`, "null"), []string{"window five-hour utilization=0.05" + r}},
		{"an empty slot", limit(slot("22", "18000"), `{"used_percent":0,"limit_window_seconds":0,"reset_at":null}`), []string{"window five-hour utilization=0.22" + r}},
		{"a figure missing", limit(`{"limit_window_seconds":18000,"reset_at":1804158000}`, slot("31", "604800")), []string{"window five-hour" + r, "window weekly utilization=0.31" + r}},
		{"a figure unreadable", limit(slot(`"NaN"`, "18000"), slot("31", "604800")), []string{"window five-hour" + r, "window weekly utilization=0.31" + r}},
		{"a figure as text", limit(slot(`"12.5"`, "18000"), "null"), []string{"window five-hour utilization=0.125" + r}},
		{"a slot of another type", limit(`"full"`, slot("31", "604800")), []string{"window weekly utilization=0.31" + r}},

		{"a limit that is reached, by its fullest window", strings.Replace(limit(slot("99", "18000"), slot("31", "604800")), `"limit_reached":false`, `"limit_reached":true`, 1),
			[]string{"window five-hour utilization=0.99" + r + " status=rejected", "window weekly utilization=0.31" + r}},

		{"a further limit, named as headers name it", usual + `,"additional_rate_limits":[{"limit_name":"GPT-5.3-Codex-Spark","metered_feature":"codex_bengalfox",` + limit(slot("7", "18000"), "null") + `}]`,
			[]string{"window five-hour utilization=0.22" + r, "window five-hour:gpt-5.3-codex-spark utilization=0.07" + r, "window weekly utilization=0.31" + r}},
		{"a further limit without a name", limit(slot("22", "18000"), "null") + `,"additional_rate_limits":[{"limit_name":null,"metered_feature":"codex_bengalfox",` + limit("null", slot("7", "604800")) + `}]`,
			[]string{"window five-hour utilization=0.22" + r, "window weekly:bengalfox utilization=0.07" + r}},
		{"further limits of another shape", usual + `,"additional_rate_limits":{"a":1}`, []string{"window five-hour utilization=0.22" + r, "window weekly utilization=0.31" + r}},
		{"further limits, one of another type", limit(slot("22", "18000"), "null") + `,"additional_rate_limits":["x",{"limit_name":"GPT-6","metered_feature":"f",` + limit(slot("7", "18000"), "null") + `}]`,
			[]string{"window five-hour utilization=0.22" + r, "window five-hour:gpt-6 utilization=0.07" + r}},

		{"credits", limit(slot("100", "18000"), "null") + `,"credits":{"has_credits":true,"unlimited":false,"balance":"12.5"}`, []string{"window five-hour utilization=1" + r, "overage available"}},
		{"credits without end", limit(slot("100", "18000"), "null") + `,"credits":{"has_credits":false,"unlimited":true,"balance":null}`, []string{"window five-hour utilization=1" + r, "overage available"}},
		{"credits, none left", limit(slot("100", "18000"), "null") + `,"credits":{"has_credits":true,"balance":"0"}`, []string{"window five-hour utilization=1" + r}},
		{"credits, as many as may be spent", limit(slot("100", "18000"), "null") + `,"credits":{"has_credits":true,"balance":"5","overage_limit_reached":true}`, []string{"window five-hour utilization=1" + r}},
		{"credits, held back by the workspace", limit(slot("100", "18000"), "null") + `,"credits":{"has_credits":true,"balance":"5"},"spend_control":{"reached":true}`, []string{"window five-hour utilization=1" + r}},

		{"no window", limit("null", "null"), []string{"unread"}},
		{"nothing", `"plan_type":"pro"`, []string{"unread"}},
	} {
		got := capture.OfCall(openai.Provider{}, capture.Capture{Call: "look", Status: 200, Header: http.Header{}, Body: []byte("{" + c.body + "}"), Recorded: t0})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestLookedRefusals(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		body    string
		refused bool
		says    string
	}{
		{"expired", 401, `{"error":{"code":"token_expired"}}`, true, "401"},
		{"without a workspace", 403, `{"detail":"Forbidden"}`, false, "403"},
		{"Cloudflare", 403, `<!DOCTYPE html>`, false, "a web page"},
		{"throttled", 429, `{}`, false, "429"},
		{"not there", 404, ``, false, "404"},
		{"a web page with 200", 200, `<html>`, false, "a web page"},
		{"cut", 200, `{"rate_limit":{"allowed":true`, false, "something else than JSON"},
		{"a list", 200, `[]`, false, "no window"},
	} {
		r, err := openai.Provider{}.Looked(0, provider.Reply{Status: c.status, Header: http.Header{}, Body: []byte(c.body), At: t0})
		if err == nil || errors.Is(err, provider.ErrCredentialRefused) != c.refused || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want refused %t and %q", c.name, err, c.refused, c.says)
		}
		if !r.Empty() || !r.At.IsZero() {
			t.Errorf("%s: got %+v beside an error", c.name, r)
		}
	}
}

func FuzzLooked(f *testing.F) {
	f.Add(`{"rate_limit":{"limit_reached":true,"primary_window":{"used_percent":3,"limit_window_seconds":18000,"reset_at":1780037463},"secondary_window":null},"additional_rate_limits":[{"limit_name":"x","rate_limit":{}}]}`)
	f.Add(`{"rate_limit":{"primary_window":{"used_percent":1e400,"limit_window_seconds":1e300,"reset_after_seconds":9223372037}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := openai.Provider{}.Looked(0, provider.Reply{Status: 200, Body: []byte(body), At: t0})
		if (err == nil) == r.Empty() {
			t.Fatalf("error %v, and %d windows", err, len(r.Windows))
		}
		for i, w := range r.Windows {
			if !(w.Utilization >= 0 && w.Utilization < 1e308) || w.ResetAt.After(t0.AddDate(1, 0, 2)) || w.Name == "" || i > 0 && r.Windows[i-1].Name >= w.Name {
				t.Errorf("got %+v", w)
			}
		}
	})
}

func FuzzRenewed(f *testing.F) {
	f.Add(200, `{"access_token":"a.b.c","refresh_token":"r"}`)
	f.Add(401, `{"error":{"code":"refresh_token_reused"}}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		got, err := openai.Provider{}.Renewed(held("held-access", ""), provider.Reply{Status: status, Body: []byte(body), At: t0})
		switch {
		case err != nil && (!got.Access.Empty() || got.Generation != 0):
			t.Error("a login came beside an error")
		case err == nil && (got.Access.Empty() || got.Refresh.Empty() || got.Generation != 8):
			t.Errorf("renewed into generation %d", got.Generation)
		case err == nil && strings.ContainsFunc(got.Access.Reveal()+got.Refresh.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }):
			t.Error("a token that no header can carry")
		}
	})
}
