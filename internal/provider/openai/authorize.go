package openai

import (
	"net/http"

	"holdfast/internal/core/account"
	"holdfast/internal/core/claims"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
)

// workspaceHeader names the workspace that a login acts for; the backend asks for it.
const workspaceHeader = "Chatgpt-Account-Id"

// ScopeHeaders implements provider.Provider, by the names that the official SDKs use. A login
// says for which workspace it is.
func (Provider) ScopeHeaders(kind account.Kind) credential.Scope {
	if kind != account.Key {
		return credential.Scope{}
	}
	return credential.Scope{Organization: "Openai-Organization", Project: "Openai-Project"}
}

// Authorize implements provider.Provider.
func (p Provider) Authorize(h http.Header, kind account.Kind, c credential.Credential) {
	h.Set("Authorization", "Bearer "+c.Bearer().Reveal())
	provider.PutScope(h, p.ScopeHeaders(kind), c.Scope)
	if kind != account.Subscription {
		return
	}
	if id := claims.ChatGPTWorkspace(c.Principal); id != "" {
		h.Set(workspaceHeader, id)
	}
}
