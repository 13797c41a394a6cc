package claims_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/claims"
)

// token makes a token of claims that are written as JSON.
func token(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part([]byte(claims)) + ".signature"
}

const workspace = "00000000-0000-4000-8000-000000000001"

func TestRead(t *testing.T) {
	at := func(s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		when, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, c := range []struct{ name, claims, subject, issued, expires string }{
		{"all", `{"sub":"somebody","iat":1788528969,"exp":1789392969}`, "somebody", "2026-09-04T13:36:09Z", "2026-09-14T13:36:09Z"},
		{"a fraction", `{"exp":1789392969.75}`, "", "", "2026-09-14T13:36:09Z"},
		{"an exponent", `{"exp":1.789392969e9}`, "", "", "2026-09-14T13:36:09Z"},
		{"none", `{}`, "", "", ""},
		{"another type is dropped alone", `{"sub":5,"iat":"soon","exp":1789392969}`, "", "", "2026-09-14T13:36:09Z"},
		{"null", `{"sub":null,"iat":null,"exp":null}`, "", "", ""},
		{"zero, negative", `{"iat":0,"exp":-1789392969}`, "", "", ""},
		{"beyond the year 9999", `{"exp":1e300}`, "", "", ""},
		{"a subject that no header can carry", `{"sub":"a\r\nX-Evil: 1"}`, "", "", ""},
		{"a subject that is too long", `{"sub":"` + strings.Repeat("x", 257) + `"}`, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := claims.Read(token(c.claims))
			want := claims.Token{Subject: c.subject, IssuedAt: at(c.issued), ExpiresAt: at(c.expires)}
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Errorf("token %t (-want +got):\n%s", ok, diff)
			}
		})
	}
	if got, ok := claims.Read(strings.Replace(token(`{"sub":"a"}`), ".signature", "=.signature", 1)); !ok || got.Subject != "a" {
		t.Errorf("with padding: got %+v (%t), want its subject", got, ok)
	}
	if _, ok := claims.Read(token(`{"sub":"a"}`) + ".more"); ok {
		t.Error("four parts: got a token")
	}
	for _, none := range []string{"", "opaque", "a.b", "a.b.c", "..", "a." + base64.RawURLEncoding.EncodeToString([]byte(`[1]`)) + ".c", "a." + base64.RawURLEncoding.EncodeToString([]byte(`null`)) + ".c"} {
		if got, ok := claims.Read(none); ok || got != (claims.Token{}) {
			t.Errorf("%q: got %+v, want no token", none, got)
		}
	}
}

func TestReadChatGPT(t *testing.T) {
	const auth = `"https://api.openai.com/auth"`
	for _, c := range []struct {
		name, claims string
		want         claims.ChatGPT
		principal    string
	}{
		{"all", `{` + auth + `:{"chatgpt_plan_type":"pro","chatgpt_user_id":"user-EXAMPLE01","chatgpt_account_id":"` + workspace + `","chatgpt_account_is_fedramp":false}}`,
			claims.ChatGPT{User: "user-EXAMPLE01", Workspace: workspace, Plan: "pro"}, "user-EXAMPLE01/" + workspace},
		{"the older user id", `{` + auth + `:{"user_id":"user-EXAMPLE02"}}`, claims.ChatGPT{User: "user-EXAMPLE02"}, "user-EXAMPLE02/"},
		{"the newer id before the older", `{` + auth + `:{"user_id":"a","chatgpt_user_id":"b"}}`, claims.ChatGPT{User: "b"}, "b/"},
		{"FedRAMP", `{` + auth + `:{"chatgpt_account_is_fedramp":true}}`, claims.ChatGPT{FedRAMP: true}, ""},
		{"odd types", `{` + auth + `:{"chatgpt_plan_type":1,"chatgpt_account_is_fedramp":"true","chatgpt_account_id":["x"]}}`, claims.ChatGPT{}, ""},
		{"a claim of another type", `{` + auth + `:"x"}`, claims.ChatGPT{}, ""},
	} {
		got, ok := claims.ReadChatGPT(token(c.claims))
		if diff := cmp.Diff(c.want, got); !ok || diff != "" || got.Principal() != c.principal {
			t.Errorf("%s: %t %q (-want +got):\n%s", c.name, ok, got.Principal(), diff)
		}
	}
	for principal, want := range map[string]string{"user-1/" + workspace: workspace, "/" + workspace: workspace, "user-1/": "", "user-1": "", "": ""} {
		if got := claims.ChatGPTWorkspace(principal); got != want {
			t.Errorf("the workspace of %q: got %q, want %q", principal, got, want)
		}
	}
}

func TestReadGrok(t *testing.T) {
	for _, c := range []struct {
		name, claims, principal, plan, client string
	}{
		{"a person's", `{"principal_type":"User","principal_id":"p","team_id":"t","tier":5,"client_id":"c"}`, "User/p", "SuperGrok Heavy", "c"},
		{"a team's", `{"principal_type":"Team","principal_id":"t","tier":1}`, "Team/t", "SuperGrok", ""},
		{"the free plan", `{"principal_type":"User","principal_id":"p","tier":0}`, "User/p", "Free", ""},
		{"without a tier", `{"principal_type":"User","principal_id":"p"}`, "User/p", "", ""},
		{"tiers that are not words", `{"tier":8}`, "", "", ""},
		{"a negative tier", `{"tier":-1}`, "", "", ""},
		{"a tier of another type", `{"tier":"5"}`, "", "", ""},
		{"null", `{"tier":null}`, "", "", ""},
	} {
		got, ok := claims.ReadGrok(token(c.claims))
		if !ok || got.Principal() != c.principal || got.Plan != c.plan || got.ClientID != c.client {
			t.Errorf("%s: got %q %q %q, want %q %q %q", c.name, got.Principal(), got.Plan, got.ClientID, c.principal, c.plan, c.client)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(token(`{"sub":"a","iat":1788528969,"exp":1789392969,"tier":5,"principal_type":"Team","principal_id":"t"}`))
	f.Add(token(`{"exp":1e400,"https://api.openai.com/auth":{"chatgpt_account_id":"w"}}`))
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		common, ok := claims.Read(text)
		gpt, okGPT := claims.ReadChatGPT(text)
		grok, okGrok := claims.ReadGrok(text)
		if ok != okGPT || ok != okGrok || gpt.Token != common || grok.Token != common {
			t.Fatal("the readers do not agree on what a token is")
		}
		for _, at := range []time.Time{common.IssuedAt, common.ExpiresAt} {
			if !at.IsZero() && (at.Year() < 2001 || at.Year() > 9999) {
				t.Errorf("an instant in the year %d", at.Year())
			}
		}
		for _, s := range []string{common.Subject, gpt.Principal(), gpt.Plan, grok.Principal(), grok.ClientID} {
			if strings.ContainsAny(s, "\r\n\x00") {
				t.Errorf("%q could not go out in a header", s)
			}
		}
	})
}
