package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/upstreamtest"
)

// login is a subscription's login, with ids that nobody has.
type login struct {
	name            string
	access, refresh string
	// user and workspace are its owner's ids; workspace is OpenAI's alone.
	user, workspace string
	ends            time.Time
}

// newLogin makes a login of a provider: its access token has the claims that the
// provider's have.
func newLogin(provider, name string, n int, ends time.Time) login {
	l := login{
		name: name, refresh: fmt.Sprintf("rt-e2e-%s-%s-SECRET", provider, name), ends: ends,
		user: fmt.Sprintf("00000000-0000-4000-8000-00000000000%d", n), workspace: fmt.Sprintf("00000000-0000-4000-8000-00000000010%d", n),
	}
	l.access = l.token(provider, ends)
	return l
}

// token is an access token of the login that ends at ends.
func (l login) token(provider string, ends time.Time) string {
	if provider == "openai" {
		return upstreamtest.JWT(map[string]any{
			"exp": ends.Unix(), "email": l.name + "@example.com",
			"https://api.openai.com/auth": map[string]any{
				"chatgpt_plan_type": "plus", "chatgpt_user_id": "user-" + l.user, "chatgpt_account_id": l.workspace,
				"chatgpt_account_is_fedramp": false,
			},
		})
	}
	return upstreamtest.JWT(map[string]any{
		"sub": l.user, "iss": "https://auth.x.ai", "aud": grokClient, "client_id": grokClient, "exp": ends.Unix(), "iat": ends.Add(-6 * time.Hour).Unix(),
		"scope": "offline_access grok-cli:access api:access", "principal_type": "User", "principal_id": l.user, "tier": 5, "jti": "e2e-" + l.name,
	})
}

// grokClient is the OAuth client of the Grok CLI, which is public.
const grokClient = "b1a00492-073a-47ea-816f-4c329264a828"

// file is the login as its client keeps it: Codex in ~/.codex/auth.json, the Grok CLI in
// ~/.grok/auth.json.
func (l login) file(t *testing.T, provider string) string {
	t.Helper()
	content := map[string]any{
		"auth_mode": "chatgpt", "OPENAI_API_KEY": nil, "last_refresh": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano),
		"tokens": map[string]string{"id_token": l.access, "access_token": l.access, "refresh_token": l.refresh, "account_id": l.workspace},
	}
	if provider == "xai" {
		content = map[string]any{"https://auth.x.ai::" + grokClient: map[string]any{
			"key": l.access, "auth_mode": "oidc", "create_time": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano),
			"user_id": l.user, "email": l.name + "@example.com", "first_name": "Example", "last_name": nil,
			"principal_type": "User", "principal_id": l.user, "team_id": nil, "team_name": nil, "team_role": nil,
			"user_blocked_reason": nil, "team_blocked_reasons": []string{}, "coding_data_retention_opt_out": true,
			"refresh_token": l.refresh, "expires_at": l.ends.UTC().Format(time.RFC3339),
			"oidc_issuer": "https://auth.x.ai", "oidc_client_id": grokClient,
		}}
	}
	b, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withLogins makes a bench on a provider's upstream with the subscriptions one and two,
// in this order.
func withLogins(t *testing.T, provider string, up *upstreamtest.Upstream) (*bench, login, login) {
	t.Helper()
	b := newBenchOn(t, up)
	t.Cleanup(func() { b.sealed() })
	ends := time.Now().Add(6 * time.Hour).Truncate(time.Second)
	one, two := newLogin(provider, "one", 1, ends), newLogin(provider, "two", 2, ends)
	b.one, b.two = b.addLogin(provider, one), b.addLogin(provider, two)
	return b, one, two
}

// addLogin makes a login's account at the upstream, whose allowance has room, and adds it
// from its client's file. What is added is proved by a look at its usage.
func (b *bench) addLogin(provider string, l login) *upstreamtest.Account {
	b.t.Helper()
	b.secrets = append(b.secrets, l.access, l.refresh)
	a := b.up.Account(l.name, l.access)
	b.roomy(a)
	b.imported(provider, l)
	return a
}

// imported runs the command that adds a login from its client's file.
func (b *bench) imported(provider string, l login, more ...string) {
	b.t.Helper()
	before := len(b.up.Requests())
	added := b.run(nil, append([]string{"account", "add", l.name, "--provider", provider, "--import", l.file(b.t, provider), "--base-url", b.up.URL}, more...)...)
	b.quiet("account add", added.all())
	if looks := len(b.up.Requests()) - before; len(more) == 0 && looks != 1 {
		b.t.Errorf("account add %s: got %d calls and %q, want one look at its usage", l.name, looks, added.all())
	}
}

// roomy lets an account's usage endpoint tell that there is room.
func (b *bench) roomy(a *upstreamtest.Account) {
	a.OnPath(upstreamtest.CodexUsage, upstreamtest.CodexUsed(20, time.Now().Add(3*time.Hour), 30, time.Now().Add(80*time.Hour)))
	a.OnPath(upstreamtest.GrokUsage, upstreamtest.GrokUsed(12, time.Now().Add(80*time.Hour)))
}

// full has the usage endpoint report full windows: the server looks by itself, and a look that shows
// room ends a cooldown.
func (b *bench) full(a *upstreamtest.Account) {
	a.OnPath(upstreamtest.CodexUsage, upstreamtest.CodexUsed(100, time.Now().Add(3*time.Hour), 30, time.Now().Add(80*time.Hour)))
	a.OnPath(upstreamtest.GrokUsage, upstreamtest.GrokUsed(100, time.Now().Add(80*time.Hour)))
}

// turns are the requests for an answer of a model that an account got, other calls (of
// usage, of tokens) left out.
func turns(requests []*upstreamtest.Request) []*upstreamtest.Request {
	var out []*upstreamtest.Request
	for _, r := range requests {
		if strings.HasSuffix(r.Path, "/responses") || strings.HasSuffix(r.Path, "/completions") || r.Path == "/v1/messages" {
			out = append(out, r)
		}
	}
	return out
}
