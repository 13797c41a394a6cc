package command_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// token is an unsigned JSON Web Token with claims.
func token(t *testing.T, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return part(map[string]any{"alg": "none"}) + "." + part(claims) + ".EXAMPLE"
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// codexToken is an access token of Codex that ends at an instant.
func codexToken(t *testing.T, plan string, ends time.Time) string {
	return token(t, map[string]any{"iat": ends.Add(-time.Hour).Unix(), "exp": ends.Unix(), "https://api.openai.com/auth": map[string]any{
		"chatgpt_plan_type": plan, "chatgpt_user_id": "user-1", "chatgpt_account_id": "00000000-0000-4000-8000-000000000001",
	}})
}

func codexFile(t *testing.T, access string) string {
	return text(t, map[string]any{"auth_mode": "chatgpt", "OPENAI_API_KEY": nil, "tokens": map[string]any{"access_token": access, "refresh_token": "rt-EXAMPLE", "id_token": access}})
}

func grokFile(t *testing.T, access, principal string, ends time.Time) string {
	return text(t, map[string]any{"https://auth.x.ai::b1a00492-073a-47ea-816f-4c329264a828": map[string]any{
		"key": access, "auth_mode": "oidc", "user_id": "u-1", "principal_type": principal, "principal_id": "p-1", "team_id": "t-1",
		"refresh_token": "rt-EXAMPLE", "expires_at": ends.Format(time.RFC3339), "oidc_issuer": "https://auth.x.ai", "oidc_client_id": "b1a00492-073a-47ea-816f-4c329264a828",
	}})
}

func grokToken(t *testing.T, principal string, ends time.Time) string {
	return token(t, map[string]any{"sub": "u-1", "iss": "https://auth.x.ai", "iat": ends.Add(-time.Hour).Unix(), "exp": ends.Unix(), "principal_type": principal, "principal_id": "p-1", "team_id": "t-1", "tier": 5})
}

func TestImportCodex(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	old, fresh := codexToken(t, "pro", t0), codexToken(t, "pro", t0.Add(240*time.Hour))
	v.renewals = []answer{{200, text(t, map[string]any{"access_token": fresh, "refresh_token": "rt-EXAMPLE-new"})}}
	v.looks = []answer{{200, `{"plan_type":"pro","rate_limit":{"allowed":true,"limit_reached":false,"primary_window":{"used_percent":22,"limit_window_seconds":18000,"reset_at":1804165200},"secondary_window":{"used_percent":31,"limit_window_seconds":604800,"reset_at":1804672800}}}`}}
	add := []string{"account", "add", "tansy", "--import", b.file("auth.json", codexFile(t, old)), "--base-url", v.url}
	b.refuses(1, "this is the login of Codex, which belongs to openai; say --provider openai", append(add, "--provider", "anthropic")...)
	r := b.must(append(add, "--provider", "openai")...)
	for _, want := range []string{"your own risk", "Log in to Codex again", "renews this login by itself"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("the notices lack %q:\n%s", want, r.stderr)
		}
	}
	if got, want := v.took(), []string{"renew rt-EXAMPLE", "look " + fresh}; !slices.Equal(got, want) {
		t.Errorf("asked %d times, first %q, want a renewal and then a look with its token", len(got), got[0])
	}
	if text := b.must("account", "show", "tansy").stdout; !strings.Contains(text, "31% for") || !strings.Contains(text, "a personal login (user-1/00000000-0000-4000-8000-000000000001)") ||
		!strings.Contains(text, "good until 2027-03-14T10:00:00Z") || !strings.Contains(text, "renewed              2027-03-04T10:00:00Z") {
		t.Errorf("shown as\n%s", text)
	}

	team := b.file("team.json", codexFile(t, codexToken(t, "business", t0.Add(time.Hour))))
	b.refuses(1, "a team's or an organization's (plan business); say --team", "account", "add", "seat", "--provider", "openai", "--import", team)

	// The same person in the same workspace has one allowance, however often it logs in.
	second := b.file("second.json", strings.ReplaceAll(codexFile(t, fresh), "rt-EXAMPLE", "rt-EXAMPLE-second"))
	if r := b.must("account", "add", "twice", "--provider", "openai", "--import", second, "--base-url", v.url); !strings.Contains(r.stderr, "It has the same limits as tansy: together they spend one allowance") {
		t.Errorf("got %s", r.stderr)
	}
}

func TestImportGrok(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	ends := t0.Add(6 * time.Hour)
	v.looks = []answer{{200, `{"config":{"creditUsagePercent":42.5,"currentPeriod":{"type":"USAGE_PERIOD_TYPE_WEEKLY","start":"2027-03-01T00:00:00Z","end":"2027-03-08T00:00:00Z"}}}`}}
	team := b.file("team.json", grokFile(t, grokToken(t, "Team", ends), "Team", ends))
	b.refuses(1, "is not a personal one but a team's", "account", "add", "wallet", "--provider", "xai", "--import", team, "--base-url", v.url)
	// A team's id beside a person's principal means nothing.
	r := b.must("account", "add", "bracken", "--provider", "xai", "--import", b.file("auth.json", grokFile(t, grokToken(t, "User", ends), "User", ends)), "--base-url", v.url)
	if strings.Contains(r.stderr, "not known yet") {
		t.Errorf("got %s", r.stderr)
	}
	if text := b.must("account", "show", "bracken").stdout; !strings.Contains(text, "a personal login (User/p-1)") || !strings.Contains(text, "42%") {
		t.Errorf("shown as\n%s", text)
	}
	// Another principal's login is not taken for the account's.
	other := b.file("other.json", strings.ReplaceAll(grokFile(t, grokToken(t, "Team", ends), "Team", ends), "rt-EXAMPLE", "rt-EXAMPLE-team"))
	b.refuses(1, "belongs to somebody else than account bracken", "account", "login", "bracken", "--import", other, "--team")
	b.must("account", "login", "bracken", "--import", other, "--team", "--other-principal")
	if text := b.must("account", "show", "bracken").stdout; !strings.Contains(text, "a team's or an organization's login (Team/p-1)") {
		t.Errorf("shown as\n%s", text)
	}
}

// A Grok login serves the Grok CLI alone, and that is who is asked about.
func TestPickOfGrokLogins(t *testing.T) {
	b := newBench(t)
	ends := t0.Add(time.Hour)
	b.must("account", "add", "bracken", "--provider", "xai", "--no-check", "--import", b.file("grok.json", grokFile(t, grokToken(t, "User", ends), "User", ends)))
	if got := b.must("pick", "--provider", "xai", "--model", "grok-4.6").stdout; !strings.HasPrefix(got, "bracken (policy order") {
		t.Errorf("got\n%swant bracken chosen", got)
	}
}
