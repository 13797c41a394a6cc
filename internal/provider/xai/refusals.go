package xai

import (
	"net/http"
	"slices"
	"strings"

	"holdfast/internal/core/account"
)

// row is one refusal that is known: what it looks like and what it is about. A field that
// is empty matches anything; of several rows the first that matches counts.
type row struct {
	// code is the failure's code, or what stands in it before a colon.
	code string
	// statuses are those under which the row counts. A refusal that a stream tells without a
	// code is taken for one of the server's.
	statuses []int
	// begins starts the message; has is somewhere in it, and is for statuses that keep a
	// refusal from being about what the client wrote. Both are in lower case.
	begins, has string

	kind account.RejectionKind
	// rule names the row in logs, and for the owner.
	rule string
	// of is what is spoken of, beyond the kind.
	of subject
}

// subject is what a row is about beyond its kind.
type subject int

const (
	// theModel is the one that was asked for (Access).
	theModel subject = iota
	// theAllowance: a login's want of money is one of its allowance, where a reset is known.
	theAllowance
	// theDay is a free plan's rolling day of one model.
	theDay
	// theKeyPath and theChatEndpoint are features.
	theKeyPath
	theChatEndpoint
)

// The statuses of what xAI says in words alone.
var (
	denied    = []int{http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError}
	bad       = []int{http.StatusBadRequest}
	forbidden = []int{http.StatusForbidden}
	missing   = []int{http.StatusNotFound}
)

// refusals are the published and the known refusals, by what they are about. Sources, all as
// of 2026-11-30: the debugging page of the API's documentation, which names a status for
// each trouble and few codes; gRPC's codes, which the servers pass on; refusals that users
// of the API and of the Grok CLI have published. 403 alone says nothing: an expired token,
// an allowance that is spent, a plan that is gone, what the client wrote and what the key may
// not do all have it, and a refusal for what was written is charged. So a 403 that no row
// knows is the client's.
var refusals = []row{
	// Codes that mean one thing under whatever status.
	{code: "unauthenticated", kind: account.BadCredential, rule: "unauthenticated"}, // expired, rotated, or none: 401 and 403
	{code: "personal-team-blocked:spending-limit", kind: account.Funds, rule: "spending-limit", of: theAllowance},
	{code: "team-blocked:spending-limit", kind: account.Funds, rule: "spending-limit", of: theAllowance},
	{code: "personal-team-blocked", kind: account.Funds, rule: "team-blocked"},
	{code: "team-blocked", kind: account.Funds, rule: "team-blocked"},
	{code: "subscription:free-usage-exhausted", kind: account.ModelWindow, rule: "free-usage", of: theDay},
	{code: "unauthorized:oauth2-auth-forbidden", kind: account.Entitlement, rule: "path-needs-key", of: theKeyPath},
	{code: "unauthorized:blocked", kind: account.Funds, rule: "blocked"}, // access lost

	// The credential and the money, by status.
	{statuses: []int{http.StatusUnauthorized}, kind: account.BadCredential, rule: "unauthorized"},
	{statuses: []int{http.StatusPaymentRequired}, kind: account.Funds, rule: "payment-required", of: theAllowance},
	{statuses: bad, begins: "incorrect api key provided", kind: account.BadCredential, rule: "incorrect-key"},

	// The same in words.
	{statuses: denied, begins: "you've used all the included free usage", kind: account.ModelWindow, rule: "free-usage", of: theDay},
	{statuses: denied, has: "included free usage has been exhausted", kind: account.ModelWindow, rule: "free-usage", of: theDay},
	{statuses: denied, begins: "you have run out of credits", kind: account.Funds, rule: "out-of-credits", of: theAllowance},
	{statuses: denied, begins: "you ran out of credits", kind: account.Funds, rule: "out-of-credits", of: theAllowance},
	{statuses: denied, begins: "grok build usage balance exhausted", kind: account.Funds, rule: "out-of-credits", of: theAllowance},
	{statuses: denied, begins: "you have either run out of available resources", kind: account.Funds, rule: "out-of-resources", of: theAllowance},
	{statuses: denied, has: "used all available credits", kind: account.Funds, rule: "team-credits", of: theAllowance},
	{statuses: denied, has: "reached its monthly spending limit", kind: account.Funds, rule: "team-credits", of: theAllowance},
	{statuses: denied, has: "requires a grok subscription", kind: account.Funds, rule: "no-subscription"},
	{statuses: denied, has: "do not have an active grok subscription", kind: account.Funds, rule: "no-subscription"},
	{statuses: denied, begins: "the oauth2 access token could not be validated", kind: account.BadCredential, rule: "unauthenticated"},
	{statuses: denied, begins: "invalid or expired credentials", kind: account.BadCredential, rule: "unauthenticated"},
	{statuses: denied, begins: "bad-credentials", kind: account.BadCredential, rule: "unauthenticated"},

	// What this key, team or login may not do. The marker that a login's token needs at the
	// chat endpoint was there (Authorize), so it is the account that is not let in, or this
	// host that is not for its credential.
	{statuses: denied, begins: "access to the chat endpoint is denied", kind: account.Entitlement, rule: "chat-endpoint", of: theChatEndpoint},
	{statuses: missing, begins: "the model ", has: " does not exist", kind: account.Access, rule: "model-access"},
	{statuses: missing, code: "model_not_found", kind: account.Access, rule: "model-access"},

	// The request. What was encrypted by another account, or is too old, ends the same
	// everywhere else.
	{statuses: bad, begins: "could not decrypt the provided encrypted_content", kind: account.ClientFault, rule: account.WhyEncrypted},
	{statuses: forbidden, begins: "content violates usage guidelines", kind: account.ClientFault, rule: "content"}, // charged
	{statuses: forbidden, kind: account.ClientFault, rule: "forbidden"},
	// The client told no version of the Grok CLI that the proxy takes. It is not for us to
	// tell another.
	{statuses: []int{http.StatusUpgradeRequired}, kind: account.ClientFault, rule: "client-version"},
}

// matches reports whether a failure under a status is the row's.
func (r row) matches(status int, f failure) bool {
	if r.code != "" && r.code != f.code && !strings.HasPrefix(f.code, r.code+":") && !(strings.Contains(r.code, ":") && strings.HasPrefix(f.code, r.code)) {
		return false
	}
	return (r.statuses == nil || slices.Contains(r.statuses, status)) && strings.HasPrefix(f.message, r.begins) && strings.Contains(f.message, r.has)
}

// means is the rejection that a row is for the request.
func (c *refused) means(r row) account.Rejection {
	x := rule(r.kind, r.rule)
	switch r.of {
	case theModel: // the request's, or nothing beyond the kind
	case theAllowance:
		return c.unpaid(r.rule)
	case theDay:
		return c.freeUsage()
	case theKeyPath:
		x.Feature = KeyPath
	case theChatEndpoint:
		x.Feature = ChatEndpoint
	}
	return x
}
