package credentialfile

import (
	"encoding/json"
	"errors"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
)

// Refusals of Claude Code's file.
var (
	errOnlyMCP  = errors.New("this file holds logins of MCP servers only, none of Claude; log in with `claude` first (on macOS the login is in the keychain, not in a file)")
	errNoAccess = errors.New("Claude Code's file holds no access token; log in with `claude` first")
	errShape    = errors.New("this is Claude Code's file, but its login is not written the way that is known here; log in with `claude` again, or update holdfast")
	errExpiry   = errors.New("the expiry in Claude Code's file is not an instant in milliseconds; log in with `claude` again")
)

// claudeCodeClient is the OAuth client that Claude Code logs in with. It is public, and a
// refresh must name it.
const claudeCodeClient = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"

// readClaudeCode reads the login of Claude Code. The file does not say who logged in: that
// is left open, and the answers to the login tell its organization.
func readClaudeCode(member json.RawMessage) (Login, error) {
	var login *struct {
		AccessToken      string      `json:"accessToken"`
		RefreshToken     string      `json:"refreshToken"`
		ExpiresAt        json.Number `json:"expiresAt"`
		Scopes           []string    `json:"scopes"`
		SubscriptionType string      `json:"subscriptionType"`
		RateLimitTier    string      `json:"rateLimitTier"`
	}
	if err := json.Unmarshal(member, &login); err != nil {
		return Login{}, errShape
	}
	if login == nil || login.AccessToken == "" {
		return Login{}, errNoAccess
	}
	if !isSafe(login.AccessToken, login.RefreshToken) {
		return Login{}, errShape
	}
	expires, ok := instant(login.ExpiresAt) // Claude Code writes milliseconds
	if !ok {
		return Login{}, errExpiry
	}
	return Login{
		Provider: account.Anthropic,
		Client:   ClientOf(account.Anthropic),
		Credential: credential.Credential{
			Access:    credential.NewSecret(login.AccessToken),
			Refresh:   credential.NewSecret(login.RefreshToken),
			ExpiresAt: expires,
			ClientID:  claudeCodeClient,
			Scopes:    login.Scopes,
		},
		Plan: plan(login.SubscriptionType, login.RateLimitTier),
		Team: login.SubscriptionType == "team" || login.SubscriptionType == "enterprise",
	}, nil
}

// plan joins the subscription's name with the size that only the tier tells:
// default_claude_max_5x is a max plan of five times the allowance.
func plan(subscription, tier string) string {
	for _, size := range []string{"5x", "20x"} {
		if subscription != "" && strings.HasSuffix(tier, "_"+size) {
			return subscription + " " + size
		}
	}
	return subscription
}
