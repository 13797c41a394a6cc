package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/renewal"
)

const (
	tokenURL = "https://platform.claude.com/v1/oauth/token"
	// antTokenURL is where the ant command's logins are renewed.
	antTokenURL = "https://api.anthropic.com/v1/oauth/token"

	// claudeCodeClient and antClient are the OAuth clients of the two programs that log in
	// to Anthropic. They are public; a renewal must name the one that the login was made
	// with.
	claudeCodeClient = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"
	antClient        = "41077d10-94b8-4194-be48-d251e9eb21b4"
)

// Renewal implements provider.Renewer. The scopes are not named: the login keeps its own.
func (Provider) Renewal(c credential.Credential) (provider.Call, bool) {
	if !c.Key.Empty() || c.Refresh.Empty() {
		return provider.Call{}, false
	}
	client, target := c.ClientID, tokenURL
	switch client {
	case "":
		client = claudeCodeClient
	case antClient:
		target = antTokenURL
	}
	body, err := json.Marshal(struct {
		GrantType    string `json:"grant_type"`
		RefreshToken string `json:"refresh_token"`
		ClientID     string `json:"client_id"`
	}{"refresh_token", c.Refresh.Reveal(), client})
	if err != nil {
		panic("anthropic: a struct of strings always encodes: " + err.Error())
	}
	return provider.Call{Method: http.MethodPost, URL: target, Body: body, Header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json"}, betaHeader: {oauthFlag},
	}}, true
}

// Renewed implements provider.Renewer. Anthropic's refresh tokens are good for one
// exchange. invalid_grant, 401 and 403 are final where they are the endpoint's own word;
// everything else passes.
func (Provider) Renewed(old credential.Credential, r provider.Reply) (credential.Credential, error) {
	grant, err := renewal.Read(r)
	var refusal *renewal.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Own() && isFinal(refusal):
		return credential.Credential{}, fmt.Errorf("renew login: %w: %w", provider.ErrRefusedForGood, err)
	case err != nil:
		return credential.Credential{}, fmt.Errorf("renew login: %w", err)
	case grant.Access.Empty():
		return credential.Credential{}, fmt.Errorf("renew login: %w", renewal.NoAccess())
	}
	return grant.Renew(old, r.At), nil
}

func isFinal(r *renewal.Refusal) bool {
	if r.Status >= 500 || r.Status == http.StatusTooManyRequests {
		return false
	}
	return r.Named("invalid_grant") || r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden
}
