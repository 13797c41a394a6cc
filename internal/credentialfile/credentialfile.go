// Package credentialfile reads the files in which official clients keep their logins.
//
// Read takes a file's bytes and gives the login in it, or says in a sentence why there is
// none: the file belongs to another client, holds no login of the wanted kind, or is not
// what its owner thinks it is. It reads no file itself, knows no clock (whether a login
// has expired is the caller's to judge), contacts nobody, and no refusal repeats anything
// from the file: it is made of secrets.
package credentialfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/credential"
)

// Login is what a file holds.
type Login struct {
	Provider account.Provider
	// Client is the official client that keeps the file.
	Client     string
	Credential credential.Credential
	// Plan as the client names it, such as "max 5x"; empty when the file does not say.
	Plan string
	// Team: the login is a seat of an organization's plan.
	Team bool
}

// maxSize bounds a credential file; the real ones have a few kilobytes.
const maxSize = 1 << 20

// Refusals.
var (
	errNotJSON  = errors.New("this is not a credential file: it holds no JSON object; Claude Code's is ~/.claude/.credentials.json")
	errUnknown  = errors.New("no known client keeps its login in such a file; Claude Code's is ~/.claude/.credentials.json")
	errCodex    = errors.New("this is the login of Codex; OpenAI accounts are not supported yet")
	errGrok     = errors.New("this is the login of the Grok CLI; xAI accounts are not supported yet")
	errProfile  = errors.New("this is a profile of the ant command; only Claude Code's ~/.claude/.credentials.json can be imported yet")
	errOnlyMCP  = errors.New("this file holds logins of MCP servers only, none of Claude; log in with `claude` first (on macOS the login is in the keychain, not in a file)")
	errNoAccess = errors.New("Claude Code's file holds no access token; log in with `claude` first")
	errShape    = errors.New("this is Claude Code's file, but its login is not written the way that is known here; log in with `claude` again, or update holdfast")
	errExpiry   = errors.New("the expiry in Claude Code's file is not an instant in milliseconds; log in with `claude` again")
)

// Read finds the login in a file.
func Read(file []byte) (Login, error) {
	var members map[string]json.RawMessage
	if len(file) > maxSize || json.Unmarshal(bytes.TrimPrefix(file, []byte("\ufeff")), &members) != nil || members == nil {
		return Login{}, errNotJSON
	}
	has := func(name string) bool { _, ok := members[name]; return ok }
	switch {
	case has("claudeAiOauth"):
		return readClaudeCode(members["claudeAiOauth"])
	case has("mcpOAuth"):
		return Login{}, errOnlyMCP
	case has("tokens"), has("OPENAI_API_KEY"):
		return Login{}, errCodex
	case has("access_token"):
		return Login{}, errProfile
	}
	for name := range members {
		if strings.HasPrefix(name, "https://auth.x.ai") {
			return Login{}, errGrok
		}
	}
	return Login{}, errUnknown
}

// claudeCodeClient is the OAuth client that Claude Code logs in with. It is public, and a
// refresh must name it.
const claudeCodeClient = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"

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
	if strings.ContainsFunc(login.AccessToken+login.RefreshToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Login{}, errShape // it could not go out in a header
	}
	expires, err := expiry(login.ExpiresAt)
	if err != nil {
		return Login{}, err
	}
	return Login{
		Provider: account.Anthropic,
		Client:   "Claude Code",
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

// Bounds that tell milliseconds from seconds: as seconds, leastMillis would be the year
// 5138; as milliseconds it is 1973. mostMillis is the year 5138.
const (
	leastSeconds = 1e9
	leastMillis  = 1e11
	mostMillis   = 1e14
)

// expiry reads expiresAt, which Claude Code writes in milliseconds. Seconds are
// understood too: taken for milliseconds they would be an instant of 1970, and a login
// that is good would be refused as expired. Zero or absent means unknown.
func expiry(n json.Number) (time.Time, error) {
	if n == "" {
		return time.Time{}, nil
	}
	v, err := n.Float64()
	switch {
	case err != nil:
		return time.Time{}, errExpiry
	case v == 0:
		return time.Time{}, nil
	case v >= leastMillis && v < mostMillis:
		return time.UnixMilli(int64(v)).UTC(), nil
	case v >= leastSeconds && v < leastMillis:
		return time.Unix(int64(v), 0).UTC(), nil
	}
	return time.Time{}, errExpiry
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
