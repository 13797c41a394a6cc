package openai

import (
	"net/http"

	"holdfast/internal/account"
	"holdfast/internal/claims"
	"holdfast/internal/credential"
)

// workspaceHeader names the workspace that a login acts for; the backend asks for it.
const workspaceHeader = "Chatgpt-Account-Id"

// Authorize implements provider.Provider. A workspace that the client named belongs to
// the client's own login and goes out with neither kind.
func (Provider) Authorize(h http.Header, kind account.Kind, c credential.Credential) {
	h.Set("Authorization", "Bearer "+c.Bearer().Reveal())
	h.Del(workspaceHeader)
	if kind != account.Subscription {
		return
	}
	if id := claims.ChatGPTWorkspace(c.Principal); id != "" {
		h.Set(workspaceHeader, id)
	}
}
