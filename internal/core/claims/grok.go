package claims

import (
	"encoding/json"
	"strings"
)

// Grok is what an access token of a Grok login adds.
type Grok struct {
	Token
	// PrincipalType is User for a person's login and Team for a team's. It alone decides
	// which of the two a login is: a team's id stands beside a person's as well.
	PrincipalType string
	PrincipalID   string
	// ClientID is the OAuth client that the login was made with.
	ClientID string
	// Plan is what was bought, such as SuperGrok Heavy; empty when not told. It says nothing
	// of what is left.
	Plan string
}

// GrokTeam is the principal type of a team.
const GrokTeam = "Team"

// grokPlans are the plans by the number in the claim tier.
var grokPlans = []string{"Free", "SuperGrok", "X Basic", "X Premium", "X Premium+", "SuperGrok Heavy", "SuperGrok Lite", "SuperGrok Plus"}

// ReadGrok reads an access token of a Grok login. It is false for what is no token.
func ReadGrok(token string) (Grok, bool) {
	common, ok := Read(token)
	if !ok {
		return Grok{}, false
	}
	claims, _ := payload(token)
	g := Grok{
		Token:         common,
		PrincipalType: text(claims["principal_type"]), PrincipalID: text(claims["principal_id"]), ClientID: text(claims["client_id"]),
	}
	tier := -1
	if _ = json.Unmarshal(claims["tier"], &tier); tier >= 0 && tier < len(grokPlans) && claims["tier"] != nil {
		g.Plan = grokPlans[tier]
	}
	return g, true
}

// GrokPrincipal is how credential.Credential.Principal tells who a Grok login is: the
// principal's type and its id, with a slash between. One person's own login and a team's
// are two accounts. It is empty where the id is unknown.
func GrokPrincipal(kind, id string) string {
	if id == "" {
		return ""
	}
	return kind + "/" + id
}

// Principal is the login's, by GrokPrincipal.
func (g Grok) Principal() string { return GrokPrincipal(g.PrincipalType, g.PrincipalID) }

// GrokPrincipalOf takes such a principal apart; both are empty when it is not one.
func GrokPrincipalOf(principal string) (kind, id string) {
	kind, id, ok := strings.Cut(principal, "/")
	if !ok {
		return "", ""
	}
	return kind, id
}
