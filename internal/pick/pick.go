// Package pick chooses an account for a new conversation.
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
	// Placed counts the conversations ever placed on the account (store.StateRecord.Placed).
	Placed int64
	// Serves: the provider can serve this path and request on this kind of account.
	Serves bool
	// Allowed: the client key may use the account.
	Allowed bool
	// Tried: the account was already tried for this client request.
	Tried bool
}

// Reason says why an account cannot be used, or was passed over, or how a decision was
// come by. It goes to logs and metrics; the set is fixed.
type Reason string

// Reasons why an account cannot be used now.
const (
	NotServed    Reason = "not-served"
	NotAllowed   Reason = "not-allowed"
	Tried        Reason = "tried"
	Parked       Reason = "parked"
	Draining     Reason = "draining"
	Cooldown     Reason = "cooldown"
	Paused       Reason = "paused"
	ModelBlocked Reason = "model-blocked"
	LacksFeature Reason = "lacks-feature"
)

// Standing says whether an account can be used now, and if not why and until when.
type Standing struct {
	// Reason is empty when the account can be used.
	Reason Reason
	// Block is the one that ends last, for Cooldown, Paused and ModelBlocked.
	Block account.Block
	// Until is when the reason ends by itself; zero when it does not.
	Until time.Time
}

// Usable reports whether the account can be used.
func (s Standing) Usable() bool { return s.Reason == "" }

// Stand says whether a new conversation may be placed on the candidate.
func Stand(now time.Time, r Request, c Candidate, s catalog.Settings) Standing { panic("later") }

// StandPinned is Stand for a conversation that is pinned to the candidate: draining does
// not matter.
func StandPinned(now time.Time, r Request, c Candidate, s catalog.Settings) Standing { panic("later") }

// Terms are the parts of a score, weighted and discounted: they add up to it.
type Terms struct {
	Expiring float64 `json:"expiring"`
	Pace     float64 `json:"pace"`
	Short    float64 `json:"short"`
	Model    float64 `json:"model"`
	Load     float64 `json:"load"`
}

// Part is one candidate's place in a decision, for the log.
type Part struct {
	Account string  `json:"account"` // its name
	Passed  Reason  `json:"passed,omitempty"`
	Score   float64 `json:"score"`
	Terms   Terms   `json:"terms,omitzero"`
	Note    string  `json:"note,omitempty"`
}

// Decision is what Pick returns.
type Decision struct {
	// Chosen is the index of the chosen candidate; -1 when there is none.
	Chosen int
	// Trial: the chosen account was never seen, and this takes one of its trials.
	Trial bool
	// Parts has one entry per candidate, in their order.
	Parts  []Part
	Reason Reason
}

// Pick chooses among candidates by a provider's policy.
func Pick(now time.Time, p catalog.Policy, s catalog.Settings, r Request, cs []Candidate) Decision {
	panic("later")
}

// Yields reports whether a background request for a new conversation is to be turned
// away, and when trying again makes sense.
func Yields(now time.Time, s catalog.Settings, r Request, cs []Candidate) (yield bool, retryAt time.Time) {
	panic("later")
}

// YieldsPinned is Yields for a conversation that is pinned to the candidate.
func YieldsPinned(now time.Time, s catalog.Settings, r Request, c Candidate) (yield bool, retryAt time.Time) {
	panic("later")
}
