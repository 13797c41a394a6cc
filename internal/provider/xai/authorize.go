package xai

import (
	"net/http"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
)

const (
	// tokenAuth says what sort of bearer token comes with it. Without it the proxy takes
	// the token of a login for something else and denies access.
	tokenAuth = "X-Xai-Token-Auth"
	grokCLI   = "xai-grok-cli"
)

// ScopeHeaders implements provider.Provider. A key and a login are each of one team, and no
// header chooses another.
func (Provider) ScopeHeaders(account.Kind) credential.Scope { return credential.Scope{} }

// Authorize implements provider.Provider.
//
// The marker belongs to the token it describes: a login's needs it and gets it. The Grok CLI never sends it to api.x.ai either. Its x-authenticateresponse is not
// known to be required, and x-userid only on the account's own pages, which are not
// served: neither is added.
func (Provider) Authorize(h http.Header, kind account.Kind, c credential.Credential) {
	h.Set("Authorization", "Bearer "+c.Bearer().Reveal())
	if kind == account.Subscription {
		h.Set(tokenAuth, grokCLI)
	}
}
