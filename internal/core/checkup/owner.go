package checkup

import (
	"slices"
	"strings"

	"holdfast/internal/core/claims"
)

// personalPlans are the first words of plans that one person has.
var personalPlans = []string{"free", "go", "plus", "pro", "prolite", "max", "supergrok", "x"}

// OwnerOf says whose a login is, by its principal and its plan: Personal, Team or Unknown.
// Where the principal has a type, that decides, whatever stands beside it: a person's login
// may well carry the id of a team.
func OwnerOf(principal, plan string) Verdict {
	word, _, _ := strings.Cut(strings.ToLower(plan), " ")
	kind, id, typed := strings.Cut(principal, "/")
	switch {
	case typed && id != "" && kind == claims.GrokTeam:
		return Team
	case typed && id != "" && kind == "User":
		return Personal
	case slices.Contains(personalPlans, word):
		return Personal
	case claims.IsTeamPlan(plan):
		return Team
	}
	return Unknown
}
