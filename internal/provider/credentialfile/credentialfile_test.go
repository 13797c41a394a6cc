package credentialfile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/provider/credentialfile"
)

// claudeCode is the file as Claude Code writes it, with a login valid to
// 2026-11-30T00:53:20Z.
const claudeCode = `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-EXAMPLE","refreshToken":"sk-ant-ort01-EXAMPLE","expiresAt":1796000000000,
 "scopes":["user:inference","user:profile"],"subscriptionType":"max","rateLimitTier":"default_claude_max_5x"},"mcpOAuth":{}}`

func TestReadClaudeCode(t *testing.T) {
	got, err := credentialfile.Read([]byte(claudeCode))
	if err != nil {
		t.Fatal(err)
	}
	c := got.Credential
	want := []any{account.Anthropic, "sk-ant-oat01-EXAMPLE", "sk-ant-ort01-EXAMPLE", true, "max 5x", false,
		time.Date(2026, 11, 30, 0, 53, 20, 0, time.UTC), "9d1c250a-e61b-44d9-88ed-5944d1962f5e", []string{"user:inference", "user:profile"}}
	if diff := cmp.Diff(want, []any{got.Provider, c.Access.Reveal(), c.Refresh.Reveal(), c.Key.Empty(), got.Plan, got.Team, c.ExpiresAt, c.ClientID, c.Scopes}); diff != "" {
		t.Errorf("login (-want +got):\n%s", diff)
	}
	if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "EXAMPLE") {
		t.Error("printing a login shows its secrets")
	}
}

func TestReadVariants(t *testing.T) {
	tests := []struct {
		name, member string
		expires      time.Time
		plan         string
		team         bool
	}{
		{"expiry in seconds", `"expiresAt":1796000000`, time.Date(2026, 11, 30, 0, 53, 20, 0, time.UTC), "", false},
		{"expiry as a float", `"expiresAt":1.796e12`, time.Date(2026, 11, 30, 0, 53, 20, 0, time.UTC), "", false},
		{"expiry as text", `"expiresAt":"1796000000000"`, time.Date(2026, 11, 30, 0, 53, 20, 0, time.UTC), "", false},
		{"expiry long past", `"expiresAt":1700000000000`, time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC), "", false},
		{"expiry null", `"expiresAt":null`, time.Time{}, "", false},
		{"expiry zero", `"expiresAt":0`, time.Time{}, "", false},
		{"plan without tier", `"subscriptionType":"pro"`, time.Time{}, "pro", false},
		{"plan null", `"subscriptionType":null,"rateLimitTier":null`, time.Time{}, "", false},
		{"large plan", `"subscriptionType":"max","rateLimitTier":"default_claude_max_20x"`, time.Time{}, "max 20x", false},
		{"tier that names no size", `"subscriptionType":"pro","rateLimitTier":"default_claude_ai"`, time.Time{}, "pro", false},
		{"team", `"subscriptionType":"team"`, time.Time{}, "team", true},
		{"enterprise", `"subscriptionType":"enterprise"`, time.Time{}, "enterprise", true},
		{"unknown members", `"organizationRole":"admin","nested":{"a":[1]}`, time.Time{}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := credentialfile.Read([]byte(`{"claudeAiOauth":{"accessToken":"token",` + tt.member + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			if !got.Credential.ExpiresAt.Equal(tt.expires) || got.Plan != tt.plan || got.Team != tt.team {
				t.Errorf("got %v %q %t, want %v %q %t", got.Credential.ExpiresAt, got.Plan, got.Team, tt.expires, tt.plan, tt.team)
			}
			if !got.Credential.Refresh.Empty() {
				t.Error("a refresh token came from nowhere")
			}
		})
	}
	if _, err := credentialfile.Read([]byte("\ufeff" + claudeCode)); err != nil {
		t.Errorf("with a byte order mark: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"empty", "", "no JSON object"},
		{"text", "sk-ant-EXAMPLE", "no JSON object"},
		{"cut", claudeCode[:60], "no JSON object"},
		{"list", `[]`, "no JSON object"},
		{"null", `null`, "no JSON object"},
		{"too large", `{"claudeAiOauth":{"accessToken":"EXAMPLE"},"pad":"` + strings.Repeat("x", 1<<20) + `"}`, "no JSON object"},
		{"other object", `{"secret":"EXAMPLE"}`, "no known client"},
		{"only MCP logins", `{"mcpOAuth":{"server|1":{"accessToken":"EXAMPLE"}}}`, "MCP servers only"},
		{"login null", `{"claudeAiOauth":null,"mcpOAuth":{}}`, "no access token"},
		{"no access token", `{"claudeAiOauth":{"refreshToken":"EXAMPLE"}}`, "no access token"},
		{"access token empty", `{"claudeAiOauth":{"accessToken":""}}`, "no access token"},
		{"access token of another type", `{"claudeAiOauth":{"accessToken":5}}`, "not written the way"},
		{"login of another type", `{"claudeAiOauth":"EXAMPLE"}`, "not written the way"},
		{"token with a newline", `{"claudeAiOauth":{"accessToken":"EXAMPLE\nX-Evil: 1"}}`, "not written the way"},
		{"expiry a date", `{"claudeAiOauth":{"accessToken":"EXAMPLE","expiresAt":"2026-11-30T00:53:20Z"}}`, "not written the way"},
		{"expiry negative", `{"claudeAiOauth":{"accessToken":"EXAMPLE","expiresAt":-1}}`, "instant in milliseconds"},
		{"expiry in microseconds", `{"claudeAiOauth":{"accessToken":"EXAMPLE","expiresAt":1796000000000000}}`, "instant in milliseconds"},
		{"expiry endless", `{"claudeAiOauth":{"accessToken":"EXAMPLE","expiresAt":1e400}}`, "instant in milliseconds"},
		{"ant profile", `{"type":"oauth_token","access_token":"EXAMPLE","expires_at":1796000000}`, "ant command"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := credentialfile.Read([]byte(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want a refusal with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "EXAMPLE") {
				t.Error("the refusal repeats a secret")
			}
			if got.Client != "" || !got.Credential.Access.Empty() {
				t.Error("a login came beside the refusal")
			}
		})
	}
}

func TestNotices(t *testing.T) {
	l, err := credentialfile.Read([]byte(claudeCode))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Claude Code again", "two refreshers"} {
		if !strings.Contains(l.TwoRefreshers(), want) {
			t.Errorf("the notice lacks %q: %s", want, l.TwoRefreshers())
		}
	}
	for p, want := range map[account.Provider][]string{
		account.Anthropic: {"not sanctioned"},
		account.OpenAI:    {"commercial or hosted", "rate limits", "tolerated"},
		account.XAI:       {"no permission and no ban", "documented way"},
	} {
		terms := credentialfile.Terms(p)
		for _, w := range append(want, "your own risk", "never for other people", "API keys", "https://") {
			if !strings.Contains(terms, w) {
				t.Errorf("the terms of %s lack %q", p, w)
			}
		}
	}
	if terms := credentialfile.Terms("nobody"); terms != "" {
		t.Errorf("terms of nobody: %s", terms)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(claudeCode))
	f.Add([]byte(`{"claudeAiOauth":{"accessToken":"a","expiresAt":1e11}}`))
	f.Add([]byte(`{"mcpOAuth":{}}`))
	f.Add([]byte(`{"tokens":{}}`))
	f.Add([]byte(codexFile("plus", "")))
	f.Add([]byte(`{"OPENAI_API_KEY":"a","tokens":null,"last_refresh":"9999-12-31T23:59:59Z"}`))
	f.Add([]byte(grokFile(map[string]any{"expires_at": 1e11, "principal_type": "Team"})))
	f.Add([]byte(`{"https://auth.x.ai::a":{"key":"a"},"https://auth.x.ai::b":{"key":"b"},"xai::api_key":{}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		l, err := credentialfile.Read(file)
		if (err == nil) == l.Credential.Access.Empty() {
			t.Errorf("error %v, and an access token: %t", err, !l.Credential.Access.Empty())
		}
		for _, at := range []time.Time{l.Credential.ExpiresAt, l.Credential.IssuedAt} {
			if !at.IsZero() && (at.Year() < 1973 || at.Year() > 9999) {
				t.Errorf("an instant in the year %d", at.Year())
			}
		}
		if err == nil && (l.Provider == "" || l.Credential.ClientID == "") {
			t.Errorf("a login of %q by the client %q", l.Provider, l.Credential.ClientID)
		}
		for _, s := range []string{l.Credential.Access.Reveal(), l.Credential.Refresh.Reveal(), l.Credential.Principal, l.Plan} {
			if strings.ContainsAny(s, "\r\n\x00") && s != l.Plan {
				t.Error("a text that no header can carry")
			}
		}
	})
}
