package claims

import (
	"encoding/json"
	"strings"
)

// ChatGPT is what a token of a ChatGPT login adds, be it the access or the id token.
type ChatGPT struct {
	Token
	// User is the person, and Workspace what the login acts for: one person may have
	// several, each with limits and a login of its own. Either may be empty.
	User, Workspace string
	// Plan is the plan's name, such as plus, pro or team; empty when not told.
	Plan string
	// FedRAMP: the workspace is one of the United States government's cloud, which asks for
	// a header of its own.
	FedRAMP bool
}

// chatGPTClaim is the claim that holds the others.
const chatGPTClaim = "https://api.openai.com/auth"

// ReadChatGPT reads a token of a ChatGPT login. It is false for what is no token.
func ReadChatGPT(token string) (ChatGPT, bool) {
	common, ok := Read(token)
	if !ok {
		return ChatGPT{}, false
	}
	c := ChatGPT{Token: common}
	claims, _ := payload(token)
	var own map[string]json.RawMessage
	_ = json.Unmarshal(claims[chatGPTClaim], &own) // without it the rest stays untold
	if c.User = text(own["chatgpt_user_id"]); c.User == "" {
		c.User = text(own["user_id"])
	}
	c.Workspace = text(own["chatgpt_account_id"])
	c.Plan = strings.ToLower(text(own["chatgpt_plan_type"]))
	_ = json.Unmarshal(own["chatgpt_account_is_fedramp"], &c.FedRAMP) // of another type, it is false
	return c, true
}

// ChatGPTPrincipal is how credential.Credential.Principal tells who a ChatGPT login is: the
// user's id and the workspace's, with a slash between. Both belong to it: one person's
// workspaces have limits of their own, and one workspace has many people. Either may be
// empty where it is unknown; it is empty where both are.
func ChatGPTPrincipal(user, workspace string) string {
	if user == "" && workspace == "" {
		return ""
	}
	return user + "/" + workspace
}

// Principal is the login's, by ChatGPTPrincipal.
func (c ChatGPT) Principal() string { return ChatGPTPrincipal(c.User, c.Workspace) }

// ChatGPTWorkspace is the workspace of such a principal; empty when it names none.
func ChatGPTWorkspace(principal string) string {
	i := strings.LastIndexByte(principal, '/')
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(principal[i+1:])
}

// IsTeamPlan reports whether a ChatGPT plan is a seat of an organization, and not a
// person's own.
func IsTeamPlan(plan string) bool {
	plan = strings.ToLower(plan)
	for _, word := range teamPlans {
		if strings.HasPrefix(plan, word) {
			return true
		}
	}
	return false
}

// teamPlans begin the names of plans that organizations have: team, business,
// self_serve_business_usage_based, ent26, enterprise, enterprise_cbp_automation, education,
// edu, quorum, k12 and free_workspace among them.
var teamPlans = []string{"team", "business", "self_serve_business", "ent", "edu", "quorum", "k12", "free_workspace"}
