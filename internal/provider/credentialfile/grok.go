package credentialfile

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/claims"
	"holdfast/internal/core/credential"
)

const (
	// grokIssuer is who issues the logins that can be renewed here; an entry of the file is
	// named by its issuer and the OAuth client, with two colons between.
	grokIssuer = "https://auth.x.ai"
	grokKey    = "xai::api_key"
	grokWeb    = "https://accounts.x.ai/sign-in"
	// grokClient is the OAuth client of the Grok CLI, which is public.
	grokClient = "b1a00492-073a-47ea-816f-4c329264a828"
)

// Refusals of the Grok CLI's file.
var (
	errGrokKey     = errors.New("this file of the Grok CLI holds an API key and no login; add the key itself, with --key-env or --key-stdin")
	errGrokWeb     = errors.New("this file of the Grok CLI holds a login of the old kind, which cannot be renewed; log in with `grok login` again")
	errGrokOutside = errors.New("this login of the Grok CLI was brought in from outside and is renewed there, not here; log in with `grok login` first")
	errGrokNone    = errors.New("the Grok CLI's file holds no access token; log in with `grok login` first")
	errGrokShape   = errors.New("this is the Grok CLI's file, but its login is not written the way that is known here; log in with `grok login` again, or update holdfast")
	errGrokExpiry  = errors.New("the expiry in the Grok CLI's file is no instant; log in with `grok login` again")
	errGrokMany    = errors.New("this file of the Grok CLI holds several logins and none of them is the CLI's own; log out of all but the one you mean")
	errGrokUser    = errors.New("xAI has blocked the user of this login; see https://grok.com, and log in with `grok login` again once that is mended")
	errGrokTeam    = errors.New("xAI has blocked the team of this login; see https://console.x.ai, and log in with `grok login` again once that is mended")
)

// isGrok reports whether a member's name is one of the Grok CLI's file.
func isGrok(name string) bool {
	return name == grokKey || name == grokWeb || name == grokIssuer || strings.HasPrefix(name, grokIssuer+"::")
}

// readGrok reads the login of the Grok CLI, from among the entries of its file.
func readGrok(members map[string]json.RawMessage) (Login, error) {
	logins := map[string]map[string]json.RawMessage{} // by client
	var refusal error
	for name, raw := range members {
		if name == grokKey || name == grokWeb || !isGrok(name) {
			continue
		}
		client := strings.TrimPrefix(name, grokIssuer)
		entry := object(raw)
		if err := checkGrok(entry); err != nil {
			if refusal == nil || err.Error() < refusal.Error() { // whatever order the entries come in
				refusal = err
			}
			continue
		}
		logins[first(text(entry["oidc_client_id"]), strings.TrimPrefix(client, "::"), grokClient)] = entry
	}
	_, own := logins[grokClient]
	switch {
	case own:
		return grokLogin(grokClient, logins[grokClient])
	case len(logins) > 1:
		return Login{}, errGrokMany
	}
	for client, entry := range logins {
		return grokLogin(client, entry)
	}
	switch {
	case refusal != nil:
		return Login{}, refusal
	case tells(members[grokKey]):
		return Login{}, errGrokKey
	case tells(members[grokWeb]):
		return Login{}, errGrokWeb
	}
	return Login{}, errGrokNone
}

// checkGrok says why an entry is no login that can be used; nil when it can.
func checkGrok(entry map[string]json.RawMessage) error {
	if issuer := text(entry["oidc_issuer"]); issuer != "" && strings.TrimSuffix(issuer, "/") != grokIssuer {
		return errGrokOutside
	}
	switch mode := text(entry["auth_mode"]); mode {
	case "", "oidc":
	case "api_key":
		return errGrokKey
	case "web_login":
		return errGrokWeb
	case "external":
		return errGrokOutside
	default:
		return errGrokShape
	}
	if !tells(entry["key"]) {
		return errGrokNone
	}
	if access := text(entry["key"]); access == "" || !isSafe(access, text(entry["refresh_token"])) {
		return errGrokShape
	}
	return nil
}

// grokLogin reads an entry that was checked. Whose login it is the type of its principal
// decides, in the file or in the token: a team's id stands beside a person's as well.
func grokLogin(client string, entry map[string]json.RawMessage) (Login, error) {
	if tells(entry["user_blocked_reason"]) {
		return Login{}, errGrokUser
	}
	if tells(entry["team_blocked_reasons"]) {
		return Login{}, errGrokTeam
	}
	if !isSafe(client) {
		return Login{}, errGrokShape
	}
	access := text(entry["key"])
	token, _ := claims.ReadGrok(access)
	kind, id := first(principalType(text(entry["principal_type"])), principalType(token.PrincipalType), personal), first(text(entry["principal_id"]), token.PrincipalID, text(entry["user_id"]), token.Subject)
	if told := principalType(token.PrincipalType); kind == personal && told != "" && told != personal {
		kind, id = told, first(token.PrincipalID, id)
	}
	issued, expires := token.IssuedAt, token.ExpiresAt
	if expires.IsZero() {
		var ok bool
		if expires, ok = grokInstant(entry["expires_at"]); !ok {
			return Login{}, errGrokExpiry
		}
	}
	if issued.IsZero() {
		issued, _ = grokInstant(entry["create_time"])
	}
	plan, team := token.Plan, kind != personal
	if team && plan == "" {
		plan = "team"
	}
	return Login{
		Provider: account.XAI,
		Client:   ClientOf(account.XAI),
		Credential: credential.Credential{
			Access: credential.NewSecret(access), Refresh: credential.NewSecret(text(entry["refresh_token"])),
			IssuedAt: issued, ExpiresAt: expires,
			ClientID: client, Principal: claims.GrokPrincipal(kind, id),
		},
		Plan: plan,
		Team: team,
	}, nil
}

// personal is the type of principal that is a person; every other is shared.
const personal = "User"

// principalType gives a type its known spelling, by which a principal is recognized again.
func principalType(told string) string {
	for _, known := range []string{personal, claims.GrokTeam} {
		if strings.EqualFold(strings.TrimSpace(told), known) {
			return known
		}
	}
	return strings.TrimSpace(told)
}

// grokInstant reads a date, or a number in whichever unit it can be. Nothing gives the
// zero time; false is for what is neither.
func grokInstant(raw json.RawMessage) (time.Time, bool) {
	if !tells(raw) {
		return time.Time{}, true
	}
	if t := date(text(raw)); !t.IsZero() {
		return t, true
	}
	var n json.Number
	if json.Unmarshal(raw, &n) != nil {
		return time.Time{}, false
	}
	return instant(n)
}
