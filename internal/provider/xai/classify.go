package xai

import (
	"net/http"
	"strings"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/limits"
	"holdfast/internal/provider"
)

// monthly names the window of an allowance by the month, which is one window however long
// the month.
var monthly = account.LengthName(30 * day)

// rollingDay is the window of a free plan's use of one model.
var rollingDay = account.LengthName(day)

const day = 24 * time.Hour

// Classify implements provider.Provider. Evidence is taken in this order: what the
// provider says is its own trouble; codes, which come under several statuses each; known
// phrases; the status. 403 alone says nothing: an expired token, an allowance that is
// spent, a plan that is gone and a forbidden request all have it.
func (Provider) Classify(a provider.Answer) account.Rejection {
	if a.Status < 400 && !a.InStream {
		return account.Rejection{}
	}
	c := &refused{Answer: a, failure: readFailure(a.Body), status: a.Status}
	if a.InStream {
		c.status = c.failure.status()
	}
	r := c.judge()
	r.At, r.Model, r.Family, r.Generation = a.At, a.Request.Model, a.Request.Family, a.Generation
	r.Code = c.failure.code
	if len(r.Code) > longestCode {
		r.Code = "" // a text, and no code
	}
	// A login's limits are its plan's; of a key's organization nothing is told.
	r.Whole = a.Kind == account.Subscription && (r.Kind == account.Throttle || r.Kind == account.Funds)
	return r
}

// longestCode bounds a code that is passed on, in bytes; the longest known is a sentence
// of 70.
const longestCode = 100

// refused is one refusal while it is looked at.
type refused struct {
	provider.Answer
	failure failure
	// status is the one the refusal has, or would have had outside a stream.
	status int
}

func (c *refused) judge() account.Rejection {
	if c.status >= 500 && !c.InStream {
		return rule(account.Overload, "overload")
	}
	if r := c.byCode(); r.Rejected() {
		return r
	}
	switch c.status {
	case http.StatusUnauthorized:
		return rule(account.BadCredential, "unauthorized")
	case http.StatusPaymentRequired:
		return c.unpaid("payment-required")
	case http.StatusForbidden:
		if r := c.byPhrase(); r.Rejected() {
			return r
		}
		return rule(account.ClientFault, "forbidden") // unknown: what was asked for, or where from
	case http.StatusTooManyRequests:
		if r := c.byPhrase(); r.Rejected() {
			return r
		}
		return c.tooMany()
	case http.StatusBadRequest:
		return c.badRequest()
	case http.StatusUpgradeRequired:
		// The client told no version of the Grok CLI that the proxy takes. It is not for us
		// to tell another.
		return rule(account.ClientFault, "client-version")
	}
	if c.status < 500 {
		return rule(account.ClientFault, "client")
	}
	if r := c.byPhrase(); r.Rejected() { // in a stream, without a code
		return r
	}
	return rule(account.Overload, "overload")
}

func rule(kind account.RejectionKind, name string) account.Rejection {
	return account.Rejection{Kind: kind, Rule: name}
}

func lacking(name, feature string) account.Rejection {
	return account.Rejection{Kind: account.Entitlement, Rule: name, Feature: feature}
}

// byCode judges by the codes that mean one thing under whatever status. The zero
// Rejection means that there is none of them.
func (c *refused) byCode() account.Rejection {
	kind, detail, _ := strings.Cut(c.failure.code, ":")
	switch kind {
	case "unauthenticated":
		return rule(account.BadCredential, "unauthenticated") // expired, rotated, or none: 401 and 403
	case "personal-team-blocked", "team-blocked":
		if detail == "spending-limit" {
			return c.unpaid("spending-limit")
		}
		return rule(account.Funds, "team-blocked")
	case "subscription":
		if detail == "free-usage-exhausted" {
			return c.freeUsage()
		}
	case "unauthorized":
		switch {
		case detail == "oauth2-auth-forbidden":
			return lacking("path-needs-key", KeyPath)
		case strings.HasPrefix(detail, "blocked"):
			return rule(account.Funds, "blocked") // access lost
		}
	}
	return account.Rejection{}
}

// byPhrase judges a refusal that is not about what the client wrote by what it says. The
// zero Rejection means that it says nothing known.
func (c *refused) byPhrase() account.Rejection {
	f := c.failure
	switch {
	case f.begins("you've used all the included free usage"), f.has("included free usage has been exhausted"):
		return c.freeUsage()
	case f.begins("you have run out of credits", "you ran out of credits", "grok build usage balance exhausted"):
		return c.unpaid("out-of-credits")
	case f.begins("you have either run out of available resources"):
		return c.unpaid("out-of-resources")
	case f.has("used all available credits", "reached its monthly spending limit"):
		return c.unpaid("team-credits")
	case f.has("requires a grok subscription", "do not have an active grok subscription"):
		return rule(account.Funds, "no-subscription")
	case f.begins("the oauth2 access token could not be validated", "invalid or expired credentials", "bad-credentials"):
		return rule(account.BadCredential, "unauthenticated")
	case f.begins("access to the chat endpoint is denied"):
		// The marker that a login's token needs was there (Authorize), so it is the account
		// that is not let in, or this host that is not for its credential. Nothing is spent
		// and the credential is good.
		return lacking("chat-endpoint", ChatEndpoint)
	}
	return account.Rejection{}
}

// unpaid is a refusal for want of money or allowance. A subscription's names the windows
// that it may be, for whoever knows a reset of theirs: see the package comment.
func (c *refused) unpaid(name string) account.Rejection {
	r := rule(account.Funds, name)
	if c.Kind == account.Subscription {
		r.Spent = []account.Spent{{Window: account.Weekly}, {Window: monthly}}
	}
	return r
}

// freeUsage is the refusal of a free plan whose rolling day of one model is used up. What
// was used first comes back first, so the reset is none that could be told; a request
// without a model blocks none.
func (c *refused) freeUsage() account.Rejection {
	r := rule(account.ModelWindow, "free-usage")
	family := c.Request.Family
	if family == "" {
		return r
	}
	s := account.Spent{Window: rollingDay + ":" + family, Family: family}
	if until, told := limits.RetryAfter(c.Header, c.At); told {
		s.ResetAt = until
	}
	r.Spent = []account.Spent{s}
	return r
}

// tooMany is a 429 about the rate of requests. The ceilings that xAI advertises on every
// answer show which limits there are, and nothing of when they pass.
func (c *refused) tooMany() account.Rejection {
	r := rule(account.Throttle, "throttle")
	until, told := limits.RetryAfter(c.Header, c.At)
	if told {
		r.Until = until
	}
	if c.failure.begins("too many tokens for team", "too many requests for team") || c.failure.has("your team's rate limit is") {
		r.Rule, r.PerModel = "team-limit", true
		return r
	}
	if !told && !advertises(c.Header) {
		return rule(account.Bare, "bare")
	}
	r.PerModel = c.Kind == account.Key // documented: by team and model
	return r
}

// advertises reports whether an answer has limit headers.
func advertises(h http.Header) bool {
	for name := range h {
		if len(name) >= len(limitPrefix) && strings.EqualFold(name[:len(limitPrefix)], limitPrefix) {
			return true
		}
	}
	return false
}

const limitPrefix = "X-Ratelimit-"

func (c *refused) badRequest() account.Rejection {
	switch {
	case c.failure.begins("incorrect api key provided"):
		return rule(account.BadCredential, "incorrect-key")
	case c.failure.begins("could not decrypt the provided encrypted_content"):
		// Made by another account, or too old. Walking on from account to account would end
		// the same everywhere else.
		return rule(account.ClientFault, "encrypted-content")
	}
	return rule(account.ClientFault, "client")
}
