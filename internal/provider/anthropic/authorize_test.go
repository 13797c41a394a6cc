package anthropic_test

import (
	"net/http"
	"slices"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider/anthropic"
)

// Cases of beta-headers-lost.
func TestAuthorizeBeta(t *testing.T) {
	const oauth = "oauth-2025-04-20"
	for _, c := range []struct {
		name           string
		in, login, key []string
	}{
		{"absent", nil, []string{oauth}, nil},
		{"empty", []string{""}, []string{"", oauth}, []string{""}},
		{"one list", []string{"claude-code-20250219,effort-2025-11-24"},
			[]string{"claude-code-20250219,effort-2025-11-24," + oauth}, []string{"claude-code-20250219,effort-2025-11-24"}},
		{"two headers", []string{"a-1", "b-2, c-3"}, []string{"a-1", "b-2, c-3," + oauth}, []string{"a-1", "b-2, c-3"}},
		{"unknown flag", []string{"kestrel-2027-02-01"}, []string{"kestrel-2027-02-01," + oauth}, []string{"kestrel-2027-02-01"}},
		{"duplicates", []string{"a-1,a-1"}, []string{"a-1,a-1," + oauth}, []string{"a-1,a-1"}},
		{"there already", []string{"a-1, " + oauth + ", b-2"}, []string{"a-1, " + oauth + ", b-2"}, []string{"a-1, b-2"}},
		{"there first", []string{oauth + ", b-2"}, []string{oauth + ", b-2"}, []string{"b-2"}},
		{"there alone", []string{oauth}, []string{oauth}, nil},
		{"there twice", []string{"a-1," + oauth, oauth}, []string{"a-1," + oauth, oauth}, []string{"a-1"}},
		{"there in the first of two", []string{oauth + ",a-1", "b-2"}, []string{oauth + ",a-1", "b-2"}, []string{"a-1", "b-2"}},
		{"a flag that only begins so", []string{oauth + "-x"}, []string{oauth + "-x," + oauth}, []string{oauth + "-x"}},
		{"another date", []string{"oauth-2027-01-01"}, []string{"oauth-2027-01-01," + oauth}, []string{"oauth-2027-01-01"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := slices.Clone(c.in)
			for kind, want := range map[account.Kind][]string{account.Subscription: c.login, account.Key: c.key} {
				h := http.Header{"Anthropic-Version": {"2023-06-01"}}
				if c.in != nil {
					h["Anthropic-Beta"] = c.in
				}
				anthropic.Provider{}.Authorize(h, kind, credential.Credential{Key: credential.NewSecret("k")})
				if got := h.Values("Anthropic-Beta"); !slices.Equal(got, want) {
					t.Errorf("%s: got %q, want %q", kind, got, want)
				}
				if !slices.Equal(c.in, given) {
					t.Errorf("%s: the client's own values became %q, want %q", kind, c.in, given)
				}
			}
		})
	}
}

func TestAuthorizeCredential(t *testing.T) {
	login := http.Header{}
	anthropic.Provider{}.Authorize(login, account.Subscription, credential.Credential{Access: credential.NewSecret("access"), Refresh: credential.NewSecret("refresh")})
	if got := login.Values("Authorization"); !slices.Equal(got, []string{"Bearer access"}) || login.Get("X-Api-Key") != "" {
		t.Errorf("login: got %q and x-api-key %q, want one bearer token", got, login.Get("X-Api-Key"))
	}
	key := http.Header{}
	anthropic.Provider{}.Authorize(key, account.Key, credential.Credential{Key: credential.NewSecret("key")})
	if got := key.Values("X-Api-Key"); !slices.Equal(got, []string{"key"}) || key.Get("Authorization") != "" || len(key) != 1 {
		t.Errorf("key: got %q, want one x-api-key and nothing else", key)
	}
}
