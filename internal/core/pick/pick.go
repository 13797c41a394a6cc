package pick

import (
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// Request is what a pick is for.
type Request struct {
	// Key is the hashed conversation key, for stable ties. Empty for a request without a
	// conversation: ties then go by the owner's order.
	Key           string
	Family, Model string
	// Features are the entitlements the request needs beyond an ordinary one.
	Features []string
	// Tier is the service tier that the client chose; empty for the ordinary one.
	Tier string
	// Size is that of the body in bytes. A request is not given to an account where it is
	// known to be larger than a limit; 0 asks there all the same.
	Size       int64
	Background bool
	// Again: what an account refused lately is asked of it again, except for a Size.
	Again bool
}

// Ask is what the request asks of an account.
func (r Request) Ask() account.Ask {
	return account.Ask{
		Family: r.Family, Model: r.Model, Tier: r.Tier, Features: r.Features, Size: r.Size, Background: r.Background, Again: r.Again,
	}
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
	// Serving: the account serves now under policy order, as far as is known.
	Serving bool
	// Tried: the account was already tried for this client request.
	Tried bool
}

// Reason says why an account cannot be used, why it was passed over, or what decided. It
// goes to logs and metrics: the set is fixed.
type Reason string

// Reasons why an account cannot be used now: those of a Standing.
const (
	NotServed  Reason = "not-served"
	NotAllowed Reason = "not-allowed"
	Tried      Reason = "tried"
	Parked     Reason = "parked"
	Draining   Reason = "draining"
	// Refuses: it refused lately what the request asks for: a feature, a model, a tier of it,
	// or as large a request.
	Refuses      Reason = "refuses"
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
	// Chosen is the index of the chosen candidate; -1 when none exists.
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
	for i := range d.Parts { // minus zero is zero to a reader, and JSON tells them apart
		part := &d.Parts[i]
		for _, figure := range []*float64{&part.Score, &part.Terms.Expiring, &part.Terms.Pace, &part.Terms.Short, &part.Terms.Model, &part.Terms.Load} {
			*figure += 0
		}
	}
	return d
}
