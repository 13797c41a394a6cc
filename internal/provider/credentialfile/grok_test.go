package credentialfile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/provider/credentialfile"
)

const (
	grokID    = "b1a00492-073a-47ea-816f-4c329264a828"
	grokEntry = "https://auth.x.ai::" + grokID
	person    = "00000000-0000-4000-8000-000000000003"
	team      = "00000000-0000-4000-8000-000000000002"
)

// entry is an entry of the Grok CLI's file, with members changed or, by nil, null.
func entry(change map[string]any) map[string]any {
	e := map[string]any{
		"key": "EXAMPLE", "auth_mode": "oidc", "create_time": "2026-09-04T13:19:34.664647Z", "user_id": person, "email": "owner@example.com",
		"principal_type": "User", "principal_id": person, "team_id": nil, "team_name": nil, "team_role": nil,
		"user_blocked_reason": nil, "team_blocked_reasons": []string{}, "refresh_token": "refresh-EXAMPLE",
		"expires_at": "2026-09-04T19:19:34Z", "oidc_issuer": "https://auth.x.ai", "oidc_client_id": grokID,
	}
	maps.Copy(e, change)
	return e
}

func file(entries map[string]any) string {
	b, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func grokFile(change map[string]any) string { return file(map[string]any{grokEntry: entry(change)}) }

func TestReadGrok(t *testing.T) {
	token := jwt(map[string]any{
		"sub": person, "iat": 1788527974, "exp": 1788549574, "principal_type": "User", "principal_id": person, "tier": 5, "client_id": grokID,
	})
	got, err := credentialfile.Read([]byte(grokFile(map[string]any{"key": token, "team_id": team, "team_name": "Example"})))
	if err != nil {
		t.Fatal(err)
	}
	c := got.Credential
	want := []any{account.XAI, "the Grok CLI", token, "refresh-EXAMPLE", true, "SuperGrok Heavy", false, grokID, "User/" + person,
		time.Date(2026, 9, 4, 13, 19, 34, 0, time.UTC), time.Date(2026, 9, 4, 19, 19, 34, 0, time.UTC)}
	if diff := cmp.Diff(want, []any{got.Provider, got.Client, c.Access.Reveal(), c.Refresh.Reveal(), c.Key.Empty(), got.Plan, got.Team, c.ClientID, c.Principal, c.IssuedAt, c.ExpiresAt}); diff != "" {
		t.Errorf("login (-want +got):\n%s", diff)
	}
	if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "refresh-EXAMPLE") || strings.Contains(text, token) {
		t.Error("printing a login shows its secrets")
	}
}

func TestReadGrokVariants(t *testing.T) {
	const issued, expires = "2026-09-04T13:19:34.664647Z", "2026-09-04T19:19:34Z"
	other := entry(map[string]any{"key": "other", "principal_id": "other", "oidc_client_id": "another-client"})
	for _, tt := range []struct {
		name, file, principal, client string
		issued, expires, plan         string
		team                          bool
	}{
		{"as written", grokFile(nil), "User/" + person, grokID, issued, expires, "", false},
		{"a team's id beside a person's login", grokFile(map[string]any{"team_id": team, "team_role": "admin"}), "User/" + person, grokID, issued, expires, "", false},
		{"a team's login", grokFile(map[string]any{"principal_type": "Team", "principal_id": team, "user_id": team}), "Team/" + team, grokID, issued, expires, "team", true},
		{"a team's login, in lower case", grokFile(map[string]any{"principal_type": "team", "principal_id": team}), "Team/" + team, grokID, issued, expires, "team", true},
		{"a team's by the token alone", grokFile(map[string]any{"key": jwt(map[string]any{"principal_type": "Team", "principal_id": team})}), "Team/" + team, grokID, issued, expires, "team", true},
		{"a type that is new", grokFile(map[string]any{"principal_type": "Organization", "principal_id": "o"}), "Organization/o", grokID, issued, expires, "team", true},
		{"no type", grokFile(map[string]any{"principal_type": nil, "principal_id": nil}), "User/" + person, grokID, issued, expires, "", false},
		{"type and id by the token", grokFile(map[string]any{"principal_type": nil, "principal_id": nil, "user_id": nil, "key": jwt(map[string]any{"principal_type": "User", "principal_id": person, "tier": 0})}),
			"User/" + person, grokID, issued, expires, "Free", false},
		{"expiry in seconds", grokFile(map[string]any{"expires_at": 1788549574}), "User/" + person, grokID, issued, expires, "", false},
		{"expiry in milliseconds", grokFile(map[string]any{"expires_at": 1788549574000}), "User/" + person, grokID, issued, expires, "", false},
		{"expiry in another zone", grokFile(map[string]any{"expires_at": "2026-09-04T21:19:34+02:00"}), "User/" + person, grokID, issued, expires, "", false},
		{"the token's own expiry before the file's", grokFile(map[string]any{"expires_at": "2027-01-01T00:00:00Z", "key": jwt(map[string]any{"exp": 1788549574})}), "User/" + person, grokID, issued, expires, "", false},
		{"an unreadable expiry beside the token's own", grokFile(map[string]any{"expires_at": "soon", "key": jwt(map[string]any{"exp": 1788549574})}), "User/" + person, grokID, issued, expires, "", false},
		{"expiry unknown", grokFile(map[string]any{"expires_at": nil, "create_time": nil}), "User/" + person, grokID, "", "", "", false},
		{"a tier that is new", grokFile(map[string]any{"key": jwt(map[string]any{"tier": 99})}), "User/" + person, grokID, issued, expires, "", false},
		{"the client by the entry's name", file(map[string]any{"https://auth.x.ai::another-client": entry(map[string]any{"oidc_client_id": nil, "oidc_issuer": nil})}), "User/" + person, "another-client", issued, expires, "", false},
		{"the CLI's own among several", file(map[string]any{"https://auth.x.ai::another-client": other, grokEntry: entry(nil)}), "User/" + person, grokID, issued, expires, "", false},
		{"beside a key and an old login", file(map[string]any{"xai::api_key": map[string]any{"key": "EXAMPLE"}, "https://accounts.x.ai/sign-in": map[string]any{"key": "EXAMPLE"}, grokEntry: entry(nil)}),
			"User/" + person, grokID, issued, expires, "", false},
		{"beside one without a token", file(map[string]any{"https://auth.x.ai::another-client": entry(map[string]any{"key": ""}), grokEntry: entry(nil)}), "User/" + person, grokID, issued, expires, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := credentialfile.Read([]byte(tt.file))
			if err != nil {
				t.Fatal(err)
			}
			c := got.Credential
			if diff := cmp.Diff([]any{tt.principal, tt.client, tt.issued, tt.expires, tt.plan, tt.team},
				[]any{c.Principal, c.ClientID, written(c.IssuedAt), written(c.ExpiresAt), got.Plan, got.Team}); diff != "" {
				t.Errorf("login (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadGrokRefuses(t *testing.T) {
	refuses(t, []refusal{
		{"an API key", `{"xai::api_key":{"key":"EXAMPLE"}}`, "--key-env"},
		{"an API key in an entry's place", grokFile(map[string]any{"auth_mode": "api_key"}), "--key-env"},
		{"the old login", `{"https://accounts.x.ai/sign-in":{"key":"EXAMPLE"}}`, "old kind"},
		{"the old login in an entry's place", grokFile(map[string]any{"auth_mode": "web_login"}), "old kind"},
		{"a login from outside", grokFile(map[string]any{"auth_mode": "external"}), "from outside"},
		{"another issuer", grokFile(map[string]any{"oidc_issuer": "https://login.example.com"}), "from outside"},
		{"an issuer that begins alike", file(map[string]any{"https://auth.x.ai.example.com::c": entry(nil)}), "no known client"},
		{"a mode that is new", grokFile(map[string]any{"auth_mode": "magic"}), "not written the way"},
		{"no token", grokFile(map[string]any{"key": ""}), "no access token"},
		{"an entry that is null", `{"` + grokEntry + `":null}`, "no access token"},
		{"a token of another type", grokFile(map[string]any{"key": 5}), "not written the way"},
		{"a token with a newline", grokFile(map[string]any{"key": "EXAMPLE\nX-Evil: 1"}), "not written the way"},
		{"the user blocked", grokFile(map[string]any{"user_blocked_reason": "abuse EXAMPLE"}), "blocked the user"},
		{"the team blocked", grokFile(map[string]any{"principal_type": "Team", "team_blocked_reasons": []string{"EXAMPLE"}}), "blocked the team"},
		{"an expiry that is not an instant", grokFile(map[string]any{"expires_at": "soon"}), "no instant"},
		{"an expiry in microseconds", grokFile(map[string]any{"expires_at": 1788549574000000}), "no instant"},
		{"two logins, none of the CLI's own", file(map[string]any{
			"https://auth.x.ai::a": entry(map[string]any{"oidc_client_id": "a"}), "https://auth.x.ai::b": entry(map[string]any{"oidc_client_id": "b"}),
		}), "several logins"},
	})
}

// refusal is a file that holds no login, and a part of the sentence that refuses it.
type refusal struct{ name, file, want string }

func refuses(t *testing.T, cases []refusal) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			got, err := credentialfile.Read([]byte(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want a refusal with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "EXAMPLE") {
				t.Error("the refusal repeats something of the file")
			}
			if got.Client != "" || !got.Credential.Access.Empty() {
				t.Error("a login came beside the refusal")
			}
		})
	}
}
