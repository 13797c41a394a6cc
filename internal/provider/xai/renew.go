package xai

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"holdfast/internal/core/claims"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/renewal"
)

const (
	tokenURL = "https://auth.x.ai/oauth2/token"
	// grokClient is the OAuth client of the Grok CLI. It is public, and a renewal must name
	// the one that the login was made with.
	grokClient = "b1a00492-073a-47ea-816f-4c329264a828"
)

// Renewal implements provider.Renewer. A team's login names its team; otherwise the new
// token would be the person's own.
func (Provider) Renewal(c credential.Credential) (provider.Call, bool) {
	if !c.Key.Empty() || c.Refresh.Empty() {
		return provider.Call{}, false
	}
	client := c.ClientID
	if client == "" {
		client = grokClient
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {c.Refresh.Reveal()}, "client_id": {client}}
	if kind, id := claims.GrokPrincipalOf(c.Principal); kind == claims.GrokTeam && id != "" {
		form.Set("principal_type", kind)
		form.Set("principal_id", id)
	}
	return provider.Call{
		Method: http.MethodPost, URL: tokenURL, Body: []byte(form.Encode()),
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}},
	}, true
}

// Renewed implements provider.Renewer. The refresh token rotates, and using an old one
// again revokes every token that came of the same login. A 403 means that the grant is
// fine and the plan is not. The access token's own claims are the surest word on its life.
func (Provider) Renewed(old credential.Credential, r provider.Reply) (credential.Credential, error) {
	grant, err := renewal.Read(r)
	var refusal *renewal.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Status < 500 && refusal.Status != http.StatusTooManyRequests && refusal.Named("invalid_grant", "invalid_client"):
		return credential.Credential{}, fmt.Errorf("renew login: %w: %w", provider.ErrRefusedForGood, err)
	case refusal != nil && refusal.Own() && refusal.Status == http.StatusForbidden:
		return credential.Credential{}, fmt.Errorf("renew login: %w: %w", provider.ErrNotEntitled, err)
	case err != nil:
		return credential.Credential{}, fmt.Errorf("renew login: %w", err)
	case grant.Access.Empty():
		return credential.Credential{}, fmt.Errorf("renew login: %w", renewal.NoAccess())
	}
	next := grant.Renew(old, r.At)
	if c, ok := claims.ReadGrok(grant.Access.Reveal()); ok {
		next = renewal.Claimed(next, c.IssuedAt, c.ExpiresAt, c.Principal())
	}
	return next, nil
}
