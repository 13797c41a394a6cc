package openai

import (
	"net/http"
	"strings"

	"holdfast/internal/account"
	"holdfast/internal/credential"
)

// workspaceHeader names the workspace that a login acts for; the backend asks for it.
const workspaceHeader = "Chatgpt-Account-Id"

// Principal is how credential.Credential.Principal tells who a ChatGPT login is: the
// user's id and the workspace's (chatgpt_user_id and chatgpt_account_id of the token's
// claims), with a slash between. Both belong to it: one person's workspaces have limits of
// their own, and one workspace has many people. Either may be empty where it is unknown.
func Principal(user, workspace string) string { return user + "/" + workspace }

// workspace is the workspace of a principal; empty when it names none.
func workspace(principal string) string {
	i := strings.LastIndexByte(principal, '/')
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(principal[i+1:])
}

// Authorize implements provider.Provider. A workspace that the client named belongs to
// the client's own login and goes out with neither kind.
func (Provider) Authorize(h http.Header, kind account.Kind, c credential.Credential) {
	h.Set("Authorization", "Bearer "+c.Bearer().Reveal())
	h.Del(workspaceHeader)
	if kind != account.Subscription {
		return
	}
	if id := workspace(c.Principal); id != "" {
		h.Set(workspaceHeader, id)
	}
}
