package pick

import (
	"time"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
)

// Request is what a pick is for.
type Request struct {
	// Key is the hashed conversation key, for stable ties. Empty for a request without a
	// conversation: ties then go by the owner's order.
	Key           string
	Family, Model string
	// Features are the entitlements the request needs beyond an ordinary one.
	Features   []string
	Background bool
}

// Candidate is one account of the provider, with what is known of it. Candidates are
// given in the owner's order.
type Candidate struct {
	Account account.Account
	State   account.State
	// Placed counts the conversations ever placed on the account.
	Placed int64
	// Serves: the provider can serve this path and request on this kind of account.
	Serves bool
	// Allowed: the client key may use the account.
	Allowed bool
	// Tried: the account was already tried for this client request.
	Tried bool
}

// Reason says why an account cannot be used, why it was passed over, or what decided. It
// goes to logs and metrics: the set is fixed.
type Reason string

// Reasons why an account cannot be used now: those of a Standing.
const (
	NotServed    Reason = "not-served"
	NotAllowed   Reason = "not-allowed"
	Tried        Reason = "tried"
	Parked       Reason = "parked"
	Draining     Reason = "draining"
	LacksFeature Reason = "lacks-feature"
	Cooldown     Reason = "cooldown"
	Paused       Reason = "paused"
	ModelBlocked Reason = "model-blocked"
)

// Reasons why a usable account was not chosen, beside a lower score.
const (
	// OverThreshold: policy order passed it over for its utilization.
	OverThreshold Reason = "over-threshold"
	// Behind: policy order found an account before it in the list.
	Behind Reason = "behind"
)

// What decided: those of a Decision, beside OverThreshold for the least full of them.
const (
	// ByTrial: an account never seen.
	ByTrial Reason = "trial"
	// ByScore, ByReset and ByOrder: the policy's ordinary choice.
	ByScore Reason = "score"
	ByReset Reason = "soonest-reset"
	ByOrder Reason = "order"
	// LastResort: every account cools and policy order tries one all the same.
	LastResort Reason = "last-resort"
	// Nobody: there is no account to choose.
	Nobody Reason = "none"
)

// Terms are the parts of a score, weighted and discounted: they add up to it.
type Terms struct {
	Expiring float64 `json:"expiring"`
	Pace     float64 `json:"pace"`
	Short    float64 `json:"short"`
	Model    float64 `json:"model"`
	Load     float64 `json:"load"`
}

func (t Terms) sum() float64 { return t.Expiring + t.Pace + t.Short + t.Model + t.Load }

// Part is one candidate's place in a decision, for the log.
type Part struct {
	// Account is the account's name.
	Account string `json:"account"`
	// Passed is why the account was passed over; empty for one that was compared. Policy
	// order may choose an account that it passed over at first.
	Passed Reason `json:"passed,omitempty"`
	// Score is what was compared within a rank, higher wins: the sum of Terms under
	// policy score, minus the hours to the weekly reset under soonest-reset. Finite.
	Score float64 `json:"score"`
	Terms Terms   `json:"terms,omitzero"`
	// Freshness is the factor f of the package comment; 0 where it was not used.
	Freshness float64 `json:"freshness,omitempty"`
	// Note is for a reader: the rank, or the block and its end.
	Note string `json:"note,omitempty"`
}

// Decision is what Pick returns.
type Decision struct {
	// Chosen is the index of the chosen candidate; -1 when there is none.
	Chosen int
	// Trial: the chosen account was never seen, and this takes one of its trials. Under
	// concurrency the trial MUST be counted with trial_requests as its limit; a pick that
	// comes too late is then made again with the new count.
	Trial bool
	// Parts has one entry per candidate, in their order.
	Parts  []Part
	Reason Reason
}

// Pick chooses among candidates by a provider's policy. It never chooses one whose Stand
// is not usable, except as the last resort of policy order. Settings are taken as valid.
func Pick(now time.Time, p catalog.Policy, s catalog.Settings, r Request, cs []Candidate) Decision {
	d := Decision{Chosen: -1, Parts: make([]Part, len(cs)), Reason: Nobody}
	stands := make([]Standing, len(cs))
	for i, c := range cs {
		stands[i] = Stand(now, r, c, s)
		d.Parts[i] = Part{Account: c.Account.Name, Passed: stands[i].Reason, Note: stands[i].note()}
	}
	switch p.Name {
	case catalog.Order:
		d.byOrder(now, p, r, cs, stands)
	case catalog.SoonestReset:
		d.byReset(now, s, r, cs, stands)
	default:
		d.byScore(now, s, r, cs, stands)
	}
	return d
}
