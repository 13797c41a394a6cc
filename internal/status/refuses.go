package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
)

// Refuses is one thing that the provider refuses an account for now, while it serves all
// else. One of Model, Feature and Tier is set at least; a limit and a tier are those of a
// model.
type Refuses struct {
	Model   string `json:"model,omitempty"`
	Feature string `json:"feature,omitempty"`
	Tier    string `json:"tier,omitempty"`
	// Limit is the window that larger requests exceed.
	Limit string `json:"limit,omitempty"`
	// Until is when the account is asked again, or the pause of the tier ends.
	Until time.Time `json:"until"`
	// Why is the rule that recognized the refusal; empty where that is not known.
	Why string `json:"why,omitempty"`
	// Cure is what the owner can do; empty where time alone helps.
	Cure string `json:"cure,omitempty"`
}

// refuses lists what the account refuses: what it was refused for lack of access or of a
// large enough limit, and tiers that pause.
func (a Account) refuses(now time.Time, c pick.Candidate) []Refuses {
	list := []Refuses{}
	for _, r := range c.State.Refuses {
		if now.Before(r.Until) {
			list = append(list, Refuses{
				Model: r.Model, Feature: r.Feature, Tier: r.Tier, Limit: r.Limit, Until: second(r.Until), Why: r.Why, Cure: a.cure(r),
			})
		}
	}
	for _, b := range pick.Blocks(now, c) {
		if b.Tier != "" {
			list = append(list, Refuses{Model: b.Model, Tier: b.Tier, Until: second(b.Until), Why: b.Cause})
		}
	}
	slices.SortFunc(list, func(a, b Refuses) int {
		return cmp.Or(cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Limit, b.Limit))
	})
	return list
}

// cure is what the account's owner can do about a refusal.
func (a Account) cure(r account.Refused) string {
	at := payAt[a.Provider][a.Kind]
	asks := "; it is asked again at the end of that time, or after: holdfast account clear " + a.Name
	switch {
	case r.Feature == account.FeatureRegion:
		return "send its requests to the host of its region: holdfast account login " + a.Name + " --base-url URL"
	case r.Limit != "":
		return "raise the limit at " + at + ", or send less in one request; smaller requests are served" + asks
	case r.Feature == account.FeatureAddress:
		return "allow the address that its requests come from at " + at + ", then: holdfast account clear " + a.Name
	case r.Feature == account.FeatureOrganization:
		if a.Provider == account.Anthropic {
			return "give it a workspace of its credential: holdfast account login " + a.Name + " --workspace ID"
		}
		return "give it the organization and project of its key: holdfast account login " + a.Name + " --organization ID --project ID"
	case r.Why == account.WhyUnverified:
		return "verify the organization at " + at + asks
	case r.Tier != "":
		return "have the tier opened for it at " + at + ", or leave it to other accounts" + asks
	case r.Feature != "":
		return "give it the permission, or the plan, at " + at + ", or leave it to other accounts" + asks
	}
	return "have the model opened for its project or plan at " + at + ", or leave it to other accounts" + asks
}

// refusesAll tells what waits for the owner of an account that refuses everything.
func (a *Account) refusesAll(now time.Time, s account.State) {
	refused, _ := s.Refused(now, account.Ask{})
	if a.NeedsOwner != nil || !refused.Everything() {
		return
	}
	what, command, _ := strings.Cut(a.cure(refused), ": ")
	a.NeedsOwner = &NeedsOwner{What: what, Command: command}
}

// Text says what is refused, until when, why and what can be done, for a terminal.
func (r Refuses) Text(at time.Time) string {
	what := ""
	switch {
	case r.Feature == account.FeatureRegion:
		what = "everything at this host"
	case r.Feature == account.FeatureAddress:
		what = "everything from this address"
	case r.Feature == account.FeatureOrganization:
		what = "everything for this organization or project"
	case r.Feature != "":
		what = Plain(r.Feature)
	case r.Limit != "":
		what = "requests for " + Plain(r.Model) + " that are larger than its limit of " + Plain(r.Limit)
	case r.Tier != "":
		what = "tier " + Plain(r.Tier) + " of model " + Plain(r.Model)
	default:
		what = "model " + Plain(r.Model)
	}
	text := "refuses " + what
	if r.Why != "" {
		text += " (" + Plain(r.Why) + ")"
	}
	text += ", as far as is known until " + instant(r.Until, at)
	if r.Cure != "" {
		text += ": " + r.Cure
	}
	return text
}
