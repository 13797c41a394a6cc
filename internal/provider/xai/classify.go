package xai

import (
	"net/http"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/wire/limits"
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
	for _, r := range refusals {
		if r.matches(c.status, c.failure) {
			return c.means(r)
		}
	}
	switch {
	case c.status == http.StatusTooManyRequests:
		return c.tooMany()
	case c.status < 500:
		return rule(account.ClientFault, "client")
	}
	return rule(account.Overload, "overload")
}

func rule(kind account.RejectionKind, name string) account.Rejection {
	return account.Rejection{Kind: kind, Rule: name}
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
// was used first comes back first, so there is no single reset to tell; a request
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
