package openai_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/claims"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider/openai"
)

func TestAuthorize(t *testing.T) {
	const ours = "00000000-0000-4000-8000-000000000001"
	scope := credential.Scope{Organization: "org-1", Project: "proj_1", Workspace: "wrkspc_1"}
	login := func(principal string) credential.Credential {
		return credential.Credential{Access: credential.NewSecret("access"), Refresh: credential.NewSecret("refresh"), Principal: principal}
	}
	for _, c := range []struct {
		name string
		kind account.Kind
		cred credential.Credential
		want http.Header
	}{
		{"key", account.Key, credential.Credential{Key: credential.NewSecret("key"), Principal: claims.ChatGPTPrincipal("user-1", ours)},
			http.Header{"Authorization": {"Bearer key"}}},
		{"key with a scope", account.Key, credential.Credential{Key: credential.NewSecret("key"), Scope: scope},
			http.Header{"Authorization": {"Bearer key"}, "Openai-Organization": {"org-1"}, "Openai-Project": {"proj_1"}}},
		{"login with a scope", account.Subscription, credential.Credential{Access: credential.NewSecret("access"), Scope: scope}, http.Header{"Authorization": {"Bearer access"}}},
		{"login", account.Subscription, login(claims.ChatGPTPrincipal("user-1", ours)), http.Header{"Authorization": {"Bearer access"}, "Chatgpt-Account-Id": {ours}}},
		{"login of an unknown user", account.Subscription, login(claims.ChatGPTPrincipal("", ours)), http.Header{"Authorization": {"Bearer access"}, "Chatgpt-Account-Id": {ours}}},
		{"login without a workspace", account.Subscription, login("user-1/"), http.Header{"Authorization": {"Bearer access"}}},
		{"login that tells only a user", account.Subscription, login("user-1"), http.Header{"Authorization": {"Bearer access"}}},
		{"login that tells nobody", account.Subscription, login(""), http.Header{"Authorization": {"Bearer access"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{"Originator": {"codex_exec"}, "X-Codex-Turn-State": {"opaque"}}
			openai.Provider{}.Authorize(h, c.kind, c.cred)
			want := maps.Clone(c.want)
			want["Originator"], want["X-Codex-Turn-State"] = []string{"codex_exec"}, []string{"opaque"} // as the client sent them
			if !maps.EqualFunc(h, want, slices.Equal) {
				t.Errorf("got %q, want %q", h, want)
			}
		})
	}
}
