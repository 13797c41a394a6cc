package credentialfile_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/provider/credentialfile"
)

// jwt makes a token with the claims, as it would be signed by somebody.
func jwt(claims any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part(body) + "." + part([]byte("EXAMPLE"))
}

const (
	workspace = "00000000-0000-4000-8000-000000000001"
	codexID   = "app_EMoamEEZ73f0CkXaXp7hrann"
)

// chatGPT is an access token from 2026-09-04T13:36:09Z to 2026-09-14T13:36:09Z.
func chatGPT(plan string) string {
	return jwt(map[string]any{
		"iat": 1788528969, "exp": 1789392969, "email": "owner@example.com",
		"https://api.openai.com/auth": map[string]any{"chatgpt_plan_type": plan, "chatgpt_user_id": "user-EXAMPLE01", "chatgpt_account_id": workspace},
	})
}

// codexFile is Codex's file for a login, with more members in front.
func codexFile(plan, more string) string {
	return fmt.Sprintf(`{%s"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":%q,"access_token":%q,"refresh_token":"refresh-EXAMPLE","account_id":%q},"last_refresh":"2026-09-01T12:00:00.000000Z"}`,
		more, chatGPT(plan), chatGPT(plan), workspace)
}

func TestReadCodex(t *testing.T) {
	got, err := credentialfile.Read([]byte(codexFile("pro", "")))
	if err != nil {
		t.Fatal(err)
	}
	c := got.Credential
	want := []any{account.OpenAI, "Codex", chatGPT("pro"), "refresh-EXAMPLE", true, "pro", false, codexID, "user-EXAMPLE01/" + workspace,
		time.Date(2026, 9, 4, 13, 36, 9, 0, time.UTC), time.Date(2026, 9, 14, 13, 36, 9, 0, time.UTC)}
	if diff := cmp.Diff(want, []any{got.Provider, got.Client, c.Access.Reveal(), c.Refresh.Reveal(), c.Key.Empty(), got.Plan, got.Team, c.ClientID, c.Principal, c.IssuedAt, c.ExpiresAt}); diff != "" {
		t.Errorf("login (-want +got):\n%s", diff)
	}
	if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "refresh-EXAMPLE") || strings.Contains(text, chatGPT("pro")) {
		t.Error("printing a login shows its secrets")
	}
}

func TestReadCodexPlans(t *testing.T) {
	for plan, team := range map[string]bool{
		"free": false, "go": false, "plus": false, "pro": false, "prolite": false, "promax": false, "guest": false, "": false, "something-new": false,
		"team": true, "business": true, "enterprise": true, "ent26": true, "edu": true, "education": true, "k12": true, "quorum": true,
		"self_serve_business_usage_based": true, "enterprise_cbp_automation": true, "Team": true,
	} {
		got, err := credentialfile.Read([]byte(codexFile(plan, "")))
		if err != nil || got.Team != team || got.Plan != strings.ToLower(plan) {
			t.Errorf("%q: got %q, team %t (%v), want team %t", plan, got.Plan, got.Team, err, team)
		}
	}
}

func TestReadCodexVariants(t *testing.T) {
	own := map[string]any{"chatgpt_account_id": workspace, "user_id": "user-EXAMPLE02"}
	for _, tt := range []struct {
		name, file, principal string
		issued, expires       string // RFC 3339; empty: unknown
	}{
		{"no id token, older user id", `{"tokens":{"access_token":"` + jwt(map[string]any{"exp": 1789392969, "https://api.openai.com/auth": own}) + `"}}`,
			"user-EXAMPLE02/" + workspace, "", "2026-09-14T13:36:09Z"},
		{"an access token that says nothing", `{"tokens":{"access_token":"opaque","id_token":"` + jwt(map[string]any{"https://api.openai.com/auth": own}) + `"},"last_refresh":"2026-09-01T12:00:00.5Z"}`,
			"user-EXAMPLE02/" + workspace, "2026-09-01T12:00:00.5Z", ""},
		{"the workspace beside the tokens alone", `{"tokens":{"access_token":"opaque","account_id":"` + workspace + `"}}`, "/" + workspace, "", ""},
		{"the token's workspace before the one beside it", `{"tokens":{"access_token":"` + jwt(map[string]any{"https://api.openai.com/auth": own}) + `","account_id":"00000000-0000-4000-8000-000000000009"}}`,
			"user-EXAMPLE02/" + workspace, "", ""},
		{"an API key beside the login", strings.Replace(codexFile("plus", ""), `"OPENAI_API_KEY":null`, `"OPENAI_API_KEY":"EXAMPLE"`, 1), "user-EXAMPLE01/" + workspace, "2026-09-04T13:36:09Z", "2026-09-14T13:36:09Z"},
		{"what is new and empty", codexFile("plus", `"agent_identity":null,"personal_access_token":"","new":{"a":[1]},`), "user-EXAMPLE01/" + workspace, "2026-09-04T13:36:09Z", "2026-09-14T13:36:09Z"},
		{"claims of another type", `{"tokens":{"access_token":"` + jwt(map[string]any{"exp": "soon", "iat": -1, "https://api.openai.com/auth": []int{1}}) + `","account_id":"` + workspace + `"}}`, "/" + workspace, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := credentialfile.Read([]byte(tt.file))
			if err != nil {
				t.Fatal(err)
			}
			c := got.Credential
			if c.Principal != tt.principal || written(c.IssuedAt) != tt.issued || written(c.ExpiresAt) != tt.expires {
				t.Errorf("got %q from %q to %q, want %q from %q to %q", c.Principal, written(c.IssuedAt), written(c.ExpiresAt), tt.principal, tt.issued, tt.expires)
			}
		})
	}
}

// written is an instant as RFC 3339 has it, and empty when unknown.
func written(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func TestReadCodexRefuses(t *testing.T) {
	refuses(t, []refusal{
		{"an API key", `{"auth_mode":"apikey","OPENAI_API_KEY":"EXAMPLE","tokens":null}`, "--key-env"},
		{"an API key, older", `{"OPENAI_API_KEY":"EXAMPLE"}`, "--key-env"},
		{"an API key, and tokens that lie there still", `{"auth_mode":"apikey","OPENAI_API_KEY":"EXAMPLE","tokens":{"access_token":"EXAMPLE"}}`, "--key-env"},
		{"an agent's identity", `{"auth_mode":"agentIdentity","agent_identity":{"private_key":"EXAMPLE"},"tokens":null}`, "agent's identity"},
		{"a personal access token", `{"personal_access_token":"at-EXAMPLE"}`, "personal access token"},
		{"another cloud's key", `{"bedrock_api_key":"EXAMPLE"}`, "another cloud"},
		{"nothing", `{"OPENAI_API_KEY":null,"tokens":null}`, "codex login"},
		{"tokens without any", `{"tokens":{}}`, "no access token"},
		{"logged out", `{"auth_mode":"apikey","OPENAI_API_KEY":null,"tokens":null}`, "no access token"},
		{"tokens of another type", `{"tokens":"EXAMPLE"}`, "not written the way"},
		{"an access token of another type", `{"tokens":{"access_token":{"EXAMPLE":1}}}`, "not written the way"},
		{"a token with a newline", `{"tokens":{"access_token":"EXAMPLE\nX-Evil: 1","account_id":"` + workspace + `"}}`, "not written the way"},
		{"no workspace", `{"tokens":{"access_token":"EXAMPLE","refresh_token":"EXAMPLE"}}`, "which workspace"},
		{"an organization for a workspace", `{"tokens":{"access_token":"EXAMPLE","account_id":"org-EXAMPLE"}}`, "which workspace"},
	})
}
