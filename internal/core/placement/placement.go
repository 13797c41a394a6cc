// Package placement decides which account serves a request: the one that holds the
// conversation's pin, the one its parent is pinned to, one that the policy picks, or
// none. It is asked once before the first send (Begin) and again after each rejection
// (After), and answers with a Plan.
//
// # Rules
//
// A pinned conversation stays on its account while that account can serve it, and while
// it merely cannot for no longer than the setting move_after. It moves when the account
// cannot serve it for longer and another can; there is no way back by itself. A bound
// conversation never moves, and neither does a request that must stay. A request that is
// not pinned yet goes on to the next account after a rejection that lasts (a spent window,
// a refused credential, no money, a thing that the account lacks), and makes one hop after
// any other that another account might not give. At most MaxSends upstream sends are made
// for one request, each to another account; where one that is ready is left after them, the
// client is asked to come again at once.
//
// A request for another model than its conversation's that carries no turn of the model's
// is a call beside the conversation: where only that model is refused, or a thing that the
// request asks for, it makes its hop and the pin stays. A move to an account that cannot
// read what the conversation carries is undone (Undone).
//
// A request that names an object goes to the object's owner or nowhere, whatever else
// speaks for another account: a pin, a policy, the owner's state. The pin of its
// conversation is not moved for that: where none exists it begins at the owner, and one
// that is elsewhere stays there, with the cache. Where nobody knows the owner, the request
// goes where its conversation is, else to the one account that could serve it; where several
// could, none is picked, since only one of them has the object.
//
// Values in, values out: the package does no I/O, reads no clock, and does not know how a
// plan is carried out (package gateway) or how accounts compare (package pick).
package placement

import (
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/pin"
)

// MaxSends bounds the upstream sends for one client request.
const MaxSends = 3

// Situation is what is known when a plan is needed.
type Situation struct {
	Now      time.Time
	Policy   catalog.Policy
	Settings catalog.Settings
	Request  pick.Request
	// Candidates are the provider's accounts in the owner's order. Those that this request
	// was already sent to are marked Tried, and their states include what they answered.
	Candidates []pick.Candidate
	// Pin is the conversation's pin, live or not; nil when it has none.
	Pin *pin.Record
	// Parent is the pin of the session that a sub-agent belongs to; nil when none exists.
	Parent *pin.Record
	// Owner is the account that has the object which the request names; empty when none is
	// named, or nobody knows whose it is. It need not be among the candidates.
	Owner account.ID
	// Uploads is the account that the client key's uploads go to, while it takes them; empty
	// for none, and for a request that is no upload.
	Uploads account.ID
	// Unowned: the request names objects, and nobody knows whose any of them is.
	Unowned bool
	// Fresh: this request made the pin; nothing is cached on its account yet.
	Fresh bool
	// Pins: the request has a conversation, and may create, keep and move its pin.
	Pins bool
	// Aside: the request is for another model than its conversation's, and carries no turn of
	// the model's.
	Aside bool
	// Stay: the request must not go to another account whatever the answer.
	Stay bool
	// Bound: the conversation carries state that only its account can read.
	Bound bool
	// Sent counts the upstream sends made so far.
	Sent int
}

// Step is what to do next.
type Step int

const (
	// Serve: send to the chosen account.
	Serve Step = iota
	// Refuse: answer here.
	Refuse
	// HandBack: the upstream's last answer is the client's.
	HandBack
)

// PinChange is what serving does to the pin.
type PinChange int

const (
	// NoPin: the request leaves pins alone.
	NoPin PinChange = iota
	// Keep: the pin is on the chosen account.
	Keep
	// New: claim a pin on the chosen account.
	New
	// Move: move the pin to the chosen account.
	Move
)

// Plan is a decision.
type Plan struct {
	Step   Step
	Chosen int // index into Candidates (Serve)
	Pin    PinChange
	// Trial: the account was never seen; a trial must be counted before the send.
	Trial bool
	// Probe: the account is blocked and due to be tried; the try must be claimed first.
	Probe bool
	// Refusal says why nobody serves (Refuse).
	Refusal Refusal
	// Decision is the policy's, when it was asked.
	Decision *pick.Decision
	// Why is one word for the log.
	Why string
}

// Cause is the reason of a Refusal.
type Cause string

const (
	Exhausted Cause = "exhausted"
	Paused    Cause = "paused"
	NoAccount Cause = "no_account"
	Yielded   Cause = "yielded"
	Unowned   Cause = "unowned"
	// Busy: as many accounts as a request may be sent to refused it, and another is ready.
	Busy Cause = "busy"
)

// Refusal says why no account serves a request.
type Refusal struct {
	Cause Cause
	// RetryAt is the soonest true instant at which it could be served; zero if unknown.
	RetryAt time.Time
	// Block is the one that ends at RetryAt (Exhausted, Paused).
	Block account.Block
	// Account names the account that comes back at RetryAt (Exhausted, Paused).
	Account string
	// Owner names the accounts that need their owner, with the reason (NoAccount, Exhausted).
	Owner []Need
	// Bound: only the pinned account could have served, or the owner of an object.
	Bound bool
	// Object: it was for the owner of an object that the request names.
	Object bool
	// Draining: accounts could serve, but their owner drains them.
	Draining bool
}

// Need is an account that waits for its owner.
type Need struct{ Account, Reason string }
