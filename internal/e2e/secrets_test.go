package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/simulate"
	"holdfast/internal/test/upstreamtest"
)

// A login taken over from Claude Code's own file, with what a subscription's token needs.
// That the client's key stays here is checked at the end of every bench.
func TestImportedLogin(t *testing.T) {
	const access, refresh = "sk-ant-oat01-e2e-access-SECRET", "sk-ant-ort01-e2e-refresh-SECRET"
	b := newBench(t)
	b.secrets = append(b.secrets, access, refresh)
	login := b.up.Account("login", access)
	file := filepath.Join(t.TempDir(), "credentials.json")
	content, err := json.Marshal(map[string]any{"claudeAiOauth": map[string]any{
		"accessToken": access, "refreshToken": refresh, "expiresAt": time.Now().Add(6 * time.Hour).UnixMilli(),
		"scopes": []string{"user:inference", "user:profile"}, "subscriptionType": "max", "rateLimitTier": "default_claude_max_5x",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	added := b.run(nil, "account", "add", "login", "--provider", "anthropic", "--import", file, "--no-check", "--base-url", b.up.URL)
	for _, secret := range b.secrets {
		if strings.Contains(added.all(), secret) {
			t.Error("account add prints a secret")
		}
	}
	b.serve()
	answered(t, "turn", newClaudeCode(t, b.front.url, b.key).start("hello"), "by account login.")

	got := slices.DeleteFunc(login.Requests(), func(r *upstreamtest.Request) bool {
		return r.Path == "/api/oauth/usage" // the poller's look
	})
	if len(got) != 1 {
		t.Fatalf("upstream requests: got %d, want 1", len(got))
	}
	h := got[0].Header
	if h.Get("Authorization") != "Bearer "+access || h.Get("x-api-key") != "" {
		t.Error("credential: want the access token as a bearer token and no key")
	}
	// The client's own flags, in its order, and the one that the token needs.
	asked := b.front.exchanges()[0].asked["Anthropic-Beta"]
	flags := strings.Split(strings.Join(h["Anthropic-Beta"], ","), ",")
	var own []string
	oauth := 0
	for _, flag := range flags {
		if strings.TrimSpace(flag) == "oauth-2025-04-20" {
			oauth++
			continue
		}
		own = append(own, flag)
	}
	if oauth != 1 || strings.Join(own, ",") != strings.Join(asked, ",") {
		t.Errorf("anthropic-beta: got %q, want %q and oauth-2025-04-20 once", h["Anthropic-Beta"], asked)
	}
	b.sealed()
}

// Every way a secret could get into the log: good and bad answers, an upstream that
// repeats the credential in its error, wrong keys, broken bodies, an upstream that is away.
// The end of the bench searches the log.
func TestSecretsStayOutOfTheLog(t *testing.T) {
	b := withAccounts(t)
	const wrong = "hf_e2e-a-key-that-was-never-made-SECRET"
	b.secrets = append(b.secrets, wrong)
	p := b.serve()
	c := newClaudeCode(t, b.front.url, b.key)
	answered(t, "first turn", c.start("hello"), "by account")
	home := firstAccount(b)
	session := b.up.Requests()[0].Header.Get("x-claude-code-session-id")

	for _, f := range []struct {
		status  int
		kind    string
		message string
	}{
		{http.StatusBadRequest, "invalid_request_error", "cannot read this: "},
		{http.StatusTooManyRequests, "rate_limit_error", "too much from "},
		{http.StatusUnauthorized, "authentication_error", "invalid x-api-key: "},
		{http.StatusUnauthorized, "authentication_error", "invalid x-api-key: "},
		{http.StatusUnauthorized, "authentication_error", "invalid x-api-key: "},
	} {
		for _, account := range []*upstreamtest.Account{b.one, b.two} {
			account.Always(upstreamtest.Failed(f.status, simulate.Failure{Type: f.kind, Message: f.message + keyOne + " " + keyTwo}))
		}
		b.post(t, b.key, `{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`, home.Name+f.message)
	}
	b.post(t, wrong, `{}`, "")
	b.post(t, b.key+"x", `{}`, "")
	b.post(t, b.key, `{"model":`, "")

	for _, listing := range [][]string{{"account", "list", "--json"}, {"account", "list"}, {"account", "show", "one"}, {"key", "list"}, {"status", "--json"}} {
		out := b.run(nil, listing...).all()
		for _, secret := range b.secrets {
			if strings.Contains(out, secret) {
				t.Errorf("holdfast %s prints the secret that begins with %.16q", strings.Join(listing, " "), secret)
			}
		}
	}
	b.sealed()
	if p.output() == "" {
		t.Error("the program's log is empty, so it proves nothing")
	}
	if session == "" || strings.Contains(p.output(), session) {
		t.Error("the log holds the conversation's own id")
	}
}

// post sends one request through the program, whatever comes of it.
func (b *bench) post(t *testing.T, key, body, conversation string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.front.url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("X-Holdfast-Conversation", conversation)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// A provider's answers may repeat a login's tokens, refusals of a renewal among them: the
// log has none, nor have the listings or what a client is told by the program.
func TestLoginsStayOutOfTheLog(t *testing.T) {
	for _, r := range renewals {
		t.Run(r.provider, func(t *testing.T) {
			b, one, two := withLogins(t, r.provider, r.up(t))
			p := b.serve()
			tokens := one.access + " " + one.refresh + " " + two.access + " " + two.refresh
			for _, answer := range []upstreamtest.Script{
				upstreamtest.Raw(http.StatusBadRequest, nil, simulate.ErrorBody("invalid_request_error", "", "cannot read "+tokens, nil)),
				upstreamtest.Raw(http.StatusInternalServerError, nil, []byte("oops: "+tokens)),
				upstreamtest.Raw(http.StatusForbidden, nil, []byte(`{"code":"unauthenticated:bad-credentials","error":"no: `+tokens+`"}`)),
				upstreamtest.Raw(http.StatusUnauthorized, nil, simulate.ErrorBody("invalid_request_error", "token_expired", "expired: "+tokens, nil)),
			} {
				b.one.Always(answer)
				b.two.Always(answer)
				b.up.OnPath(r.token, upstreamtest.Raw(http.StatusBadRequest, nil, []byte(`{"error":"invalid_grant","error_description":"gone: `+tokens+`"}`)))
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.front.url+"/"+r.provider+"/v1/responses", strings.NewReader(`{"model":"m","stream":true,"store":false,"input":"hello"}`))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+b.key)
				req.Header.Set("X-Grok-Client-Version", "1.0.41")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, listing := range [][]string{{"account", "list", "--json"}, {"account", "show", "one"}, {"status", "--json"}} {
				b.quiet("holdfast "+strings.Join(listing, " "), b.run(nil, listing...).all())
			}
			if n := len(turns(b.up.Requests())); n < 4 {
				t.Errorf("upstream requests: got %d, want one for the first two answers and one of each account after that", n)
			}
			if !strings.Contains(p.output(), "renew") {
				t.Error("the log says nothing of a renewal, so it proves nothing")
			}
		})
	}
}
