package openai

import (
	"errors"
	"fmt"
	"net/http"

	"holdfast/internal/core/claims"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/renewal"
)

const (
	tokenURL = "https://auth.openai.com/oauth/token"
	// codexClient is the OAuth client of Codex. It is public, and a renewal must name the
	// one that the login was made with.
	codexClient = "app_EMoamEEZ73f0CkXaXp7hrann"
)

// Renewal implements provider.Renewer.
func (Provider) Renewal(c credential.Credential) (provider.Call, bool) {
	if !c.Key.Empty() || c.Refresh.Empty() {
		return provider.Call{}, false
	}
	client := c.ClientID
	if client == "" {
		client = codexClient
	}
	return provider.Call{
		Method: http.MethodPost, URL: tokenURL,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
		Body: encode(struct {
			ClientID     string `json:"client_id"`
			GrantType    string `json:"grant_type"`
			RefreshToken string `json:"refresh_token"`
		}{client, "refresh_token", c.Refresh.Reveal()}),
	}, true
}

// finalCodes name the refusals after which the same refresh token will never do.
var finalCodes = []string{
	"refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated", // Codex takes these for final
	"invalid_grant", // the standard's word for the same
}

// Renewed implements provider.Renewer. Every field of the answer may be missing, and then
// the old one goes on: an answer with a new refresh token alone leaves the old access
// token as it is. How long an access token lives is told by its own claims.
func (Provider) Renewed(old credential.Credential, r provider.Reply) (credential.Credential, error) {
	grant, err := renewal.Read(r)
	var refusal *renewal.Refusal
	switch {
	case errors.As(err, &refusal) && isFinal(refusal):
		return credential.Credential{}, fmt.Errorf("renew login: %w: %w", provider.ErrRefusedForGood, err)
	case err != nil:
		return credential.Credential{}, fmt.Errorf("renew login: %w", err)
	}
	next := grant.Renew(old, r.At)
	if c, ok := claims.ReadChatGPT(grant.Access.Reveal()); ok {
		next = renewal.Claimed(next, c.IssuedAt, c.ExpiresAt, c.Principal())
	}
	return next, nil
}

func isFinal(r *renewal.Refusal) bool {
	return (r.Status == http.StatusBadRequest || r.Status == http.StatusUnauthorized) && r.Named(finalCodes...)
}
