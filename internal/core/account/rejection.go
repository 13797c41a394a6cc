package account

import (
	"slices"
	"time"
)

// RejectionKind is the class of an upstream "no". The provider's package chooses it;
// what it does to the account is decided here, what it does to the request in package
// placement. If you add a kind you MUST give it a case in State.Reject.
type RejectionKind string

const (
	// WindowSpent: a window is rejected or at its cap. Blocks each spent window's own scope until its reset.
	WindowSpent RejectionKind = "window"
	// ModelWindow: the same, where only one model family is refused.
	ModelWindow RejectionKind = "model-window"
	// Throttle: refused with limit headers, no window blocked.
	Throttle RejectionKind = "throttle"
	// Bare: 429 without any limit header.
	Bare RejectionKind = "bare"
	// TooLarge: the request alone is larger than a limit of the account, so that no waiting
	// helps. Nothing pauses.
	TooLarge RejectionKind = "too-large"
	// Entitlement: the account lacks a feature (long context, extra usage); nothing cools.
	Entitlement RejectionKind = "entitlement"
	// Access: the credential, its project or organization lacks one thing that others may
	// have: a model, a verification, a tier, a region's host. Nothing cools.
	Access RejectionKind = "access"
	// Funds: no money, or access lost. Parks the account.
	Funds RejectionKind = "funds"
	// BadCredential: the credential was refused.
	BadCredential RejectionKind = "credential"
	// Unrenewed: a login's token has ended and could not be renewed just now. Nothing is
	// known against the account.
	Unrenewed RejectionKind = "unrenewed"
	// Overload: the provider is failing; not the account's doing.
	Overload RejectionKind = "overload"
	// ClientFault: the request itself is wrong.
	ClientFault RejectionKind = "client"
	// Network: no HTTP answer.
	Network RejectionKind = "network"
	// NotAnswered: what no provider sends (an empty 2xx, a web page): something between answered.
	NotAnswered RejectionKind = "not-answered"
)

// Ceilings of what a rejection may block, and the floor of a pause.
const (
	FiveHourCeiling = 5 * time.Hour
	ToldCeiling     = 7 * 24 * time.Hour
	UntoldCeiling   = 5 * time.Minute
	ThrottleCeiling = 5 * time.Minute
	// PauseLeast is the shortest told wait that is taken as told.
	PauseLeast = time.Second
	// PauseFloor is how long a refusal pauses that told no wait, one of zero, or one that has
	// passed.
	PauseFloor = 5 * time.Second
)

// Spent names one window that a rejection found spent.
type Spent struct {
	Window string
	// Family narrows the block to one model family; empty blocks the whole account.
	Family string
	// ResetAt is the told reset; zero when none was told.
	ResetAt time.Time
}

// Rejection is a classified "no".
type Rejection struct {
	Kind RejectionKind
	At   time.Time
	// Model and Family are those of the refused request; empty when it named none.
	Model, Family string
	// Spent lists the windows found spent (WindowSpent, ModelWindow), or those that would be
	// if a reset of theirs is known (Funds; see State.Settle).
	Spent []Spent
	// Until is when a throttle ends, or when a login that is Unrenewed is tried again; zero
	// when nothing was told.
	Until time.Time
	// PerModel narrows a throttle to the model's family.
	PerModel bool
	// Feature is what an Entitlement or Access refusal was about; an Access refusal without
	// one was about the model.
	Feature string
	// Tier narrows a Throttle or Access refusal to a service tier of the model.
	Tier string
	// Limit names the window that the request alone exceeds (TooLarge). LimitTokens is how much
	// it allows and Requested how much the request needs, by the provider's word; 0 for untold.
	Limit                  string
	LimitTokens, Requested int64
	// Size is that of the refused request's body in bytes (TooLarge).
	Size int64
	// Background: the refused request was one. What it heard of a pause is no word on others.
	Background bool
	// Whole: what is refused is all that the credential's owner has at the provider (the
	// organization of a key, the plan of a login), by the provider's own word, and not this
	// credential alone (Throttle, Funds). Windows are always the owner's.
	Whole bool
	// Generation is that of the refused credential (Funds, BadCredential).
	Generation int64
	// Code is the provider's own error code or type; Rule names the rule that chose
	// Kind. Both go to the log, so that a rare path is recognized when it first occurs.
	Code, Rule string
}

// Reason is the most telling word for the owner: the rule, else the provider's own code.
func (r Rejection) Reason() string {
	if r.Rule != "" {
		return r.Rule
	}
	return r.Code
}

// Cleaned returns the rejection with every word in it as clean returns it. The model is the
// client's own word.
func (r Rejection) Cleaned(clean func(string) string) Rejection {
	r.Code, r.Rule, r.Feature = clean(r.Code), clean(r.Rule), clean(r.Feature)
	for i, s := range r.Spent {
		if name := clean(s.Window); name != s.Window {
			r.Spent = slices.Clone(r.Spent)
			r.Spent[i].Window = name
		}
	}
	return r
}

// Rules of a refusal of the conversation's own content: what another account encrypted or
// signed cannot be read by this one.
const (
	WhyEncrypted = "encrypted-content"
	WhySignature = "signature"
)

// Unreadable reports whether the account refused the conversation's own content.
func (r Rejection) Unreadable() bool {
	return r.Kind == ClientFault && (r.Rule == WhyEncrypted || r.Rule == WhySignature)
}

// Rejected reports whether there is a rejection at all; it is false for the zero value.
func (r Rejection) Rejected() bool { return r.Kind != "" }

// Settle decides what a provider's package had to leave open: a refusal for want of money
// or allowance that lists windows is about the allowance where the state knows a reset of
// one of them that is still to come, and each such window is spent until then. Where it
// knows none, the refusal stays what it is, for only the owner can say when it ends. Every
// other rejection is returned as it is.
func (s State) Settle(r Rejection) Rejection {
	if r.Kind != Funds || len(r.Spent) == 0 {
		return r
	}
	var spent []Spent
	kind := ModelWindow
	for _, sp := range r.Spent {
		if sp.ResetAt.IsZero() {
			sp.ResetAt = s.Windows[sp.Window].ResetAt
		}
		if !sp.ResetAt.After(r.At) {
			continue
		}
		if sp.Family == "" {
			kind = WindowSpent
		}
		spent = append(spent, sp)
	}
	if len(spent) > 0 {
		r.Kind, r.Spent = kind, spent
	}
	return r
}
