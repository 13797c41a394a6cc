package openai

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/wire/limits"
)

// Classify implements provider.Provider. Evidence is taken in this order: what the
// provider says is its own trouble; codes and known phrases, of which error.code says more
// than error.type; windows at their cap; limit headers. The status alone decides only what
// is left.
//
// An error within a stream may repeat status and headers inside itself; they then count
// before those of the answer, which were sent before anything was amiss.
func (Provider) Classify(a provider.Answer) account.Rejection {
	if a.Status < 400 && !a.InStream {
		return account.Rejection{}
	}
	c := &refused{Answer: a, failure: readFailure(a.Body, a.Header), status: a.Status}
	if a.InStream {
		c.status = c.failure.statusIn()
		if c.failure.header != nil {
			c.Header = maps.Clone(a.Header)
			if c.Header == nil {
				c.Header = http.Header{}
			}
			maps.Copy(c.Header, c.failure.header)
		}
	}
	c.limits = readLimits(c.Header, c.At)
	r := c.judge()
	r.At, r.Model, r.Family, r.Generation = a.At, a.Request.Model, a.Request.Family, a.Generation
	r.Code = c.failure.name()
	r.Whole = c.whole(r)
	return r
}

// whole reports whether a refusal is of the whole plan or organization. A project has
// limits and a budget of its own.
func (c *refused) whole(r account.Rejection) bool {
	switch r.Kind {
	case account.Throttle:
		ofProject := slices.ContainsFunc(c.limits.spentBuckets, func(w account.WindowReading) bool {
			return strings.HasPrefix(w.Name, account.ProjectWindow)
		})
		return !ofProject && !strings.Contains(c.failure.message, "in project")
	case account.Funds:
		return c.Kind == account.Subscription || slices.Contains(wholeRules, r.Rule)
	default:
		return false
	}
}

// wholeRules are the rules of a key's refusals that are of its organization.
var wholeRules = []string{"credit-balance", "spend-limit-organization", "usage-limit-organization", "billing-not-active", "disabled"}

// refused is one refusal while it is looked at.
type refused struct {
	provider.Answer
	failure failure
	// status is the one the refusal has, or would have had outside a stream.
	status int
	limits limitHeaders
}

func (c *refused) judge() account.Rejection {
	if r := c.plan(); r.Rejected() {
		return r
	}
	if c.status == http.StatusForbidden && c.failure.is("model_not_found") && len(c.limits.spentBuckets)+len(c.limits.untoldBuckets) > 0 {
		// A project whose requests were exhausted has been answered so for speech, without a
		// word on what remained. Limits are told of models that there are.
		c.limits.spentBuckets = append(c.limits.spentBuckets, c.limits.untoldBuckets...)
		return c.tooMany()
	}
	if r, known := c.failure.known(c.status); known {
		return c.means(r)
	}
	switch c.status {
	case http.StatusTooManyRequests:
		return c.tooMany()
	case http.StatusPaymentRequired:
		return rule(account.Funds, "payment-required")
	case http.StatusForbidden:
		return c.forbidden()
	}
	if c.status >= 500 {
		return rule(account.Overload, "overload")
	}
	return rule(account.ClientFault, "client")
}

func rule(kind account.RejectionKind, name string) account.Rejection {
	return account.Rejection{Kind: kind, Rule: name}
}

// plan judges what is about the allowance of a ChatGPT plan. The zero Rejection means that
// the refusal is about something else.
func (c *refused) plan() account.Rejection {
	f := c.failure
	if f.is("usage_not_included") {
		// The plan has no Codex: nothing will be served until the owner changes it.
		return rule(account.Funds, "plan-without-codex")
	}
	if f.is(spentWords...) {
		return c.usageLimit()
	}
	// A plan's lack of money ends by itself where its reset is known.
	if c.Kind == account.Subscription && (f.is(quota) || c.status == http.StatusPaymentRequired) {
		if _, told := f.reset(c.At); told || c.atCap() != nil {
			return c.usageLimit()
		}
	}
	return account.Rejection{}
}

// usageLimit finds out which windows are spent: all that bind the request and are at their
// cap, each until its own reset; where none is, the one that the told reset is of.
func (c *refused) usageLimit() account.Rejection {
	reset, told := c.failure.reset(c.At)
	if spent := c.atCap(); spent != nil {
		return c.windows(spent, reset)
	}
	if name := reachedTypes[strings.ToLower(strings.TrimSpace(c.Header.Get(planPrefix+"Rate-Limit-Reached-Type")))]; name != "" && !told {
		return rule(account.Funds, name)
	}
	w := planWindow{limit: mainLimit}
	w.Name, w.ResetAt = c.nearest(reset), reset
	return c.windows([]planWindow{w}, reset)
}

// atCap lists the plan's windows at their cap that bind the request: the main limit's, and
// those of the request's own family or of the limit that the refusal names.
func (c *refused) atCap() []planWindow {
	var spent []planWindow
	for _, w := range c.limits.plan {
		if w.HasUtilization && w.Utilization >= 1 &&
			(account.Binds(w.Name, c.Request.Family) || w.limit == c.limits.active) {
			spent = append(spent, w)
		}
	}
	return spent
}

// windows is the rejection for spent windows. One without a reset of its own has the told
// one. Only a window that is named for a model family narrows what is blocked.
func (c *refused) windows(spent []planWindow, reset time.Time) account.Rejection {
	r := account.Rejection{Kind: account.ModelWindow, Rule: "model-window"}
	for _, w := range spent {
		s := account.Spent{Window: w.Name, Family: account.FamilyOf(w.Name), ResetAt: w.ResetAt}
		if s.ResetAt.IsZero() {
			s.ResetAt = reset
		}
		switch {
		case s.Family == "":
			r.Kind = account.WindowSpent
			if r.Rule != account.FiveHour {
				r.Rule = "window"
			}
			if s.Window == account.FiveHour {
				r.Rule = account.FiveHour
			}
		case c.Request.Family != "":
			// A limit may be known by another name than the model that was refused.
			s.Family = c.Request.Family
		}
		r.Spent = append(r.Spent, s)
	}
	return r
}

// nearest names the window that a told reset is of: one that says the same reset, else
// the shortest of the usual lengths that reaches so far. Without a reset it is the fullest
// window there is.
func (c *refused) nearest(reset time.Time) string {
	fullest := account.WindowReading{Name: account.FiveHour, Utilization: -1}
	for _, w := range c.limits.plan {
		if account.FamilyOf(w.Name) != "" {
			continue
		}
		if !reset.IsZero() && !w.ResetAt.IsZero() && w.ResetAt.Sub(reset).Abs() <= time.Minute {
			return w.Name
		}
		if w.Utilization > fullest.Utilization {
			fullest = w.WindowReading
		}
	}
	const grace = time.Minute // clocks differ
	switch away := reset.Sub(c.At); {
	case reset.IsZero():
		return fullest.Name
	case away <= 5*time.Hour+grace:
		return account.FiveHour
	case away <= account.Week+grace:
		return account.Weekly
	default:
		return account.LengthName(30 * 24 * time.Hour)
	}
}

func (c *refused) tooMany() account.Rejection {
	if spent := c.atCap(); spent != nil {
		reset, _ := c.failure.reset(c.At)
		return c.windows(spent, reset)
	}
	if r := c.tooLarge(); r.Rejected() {
		return r
	}
	until, told := c.until()
	if tier := c.Request.Tier; tier != "" && (len(c.limits.spentBuckets) == 0 || c.failure.is(unavailable)) {
		// No budget of the model is spent: only what yields to others, or pays to go first, has
		// no room for now.
		return account.Rejection{Kind: account.Throttle, Rule: "tier-limit", Until: until, Tier: tier}
	}
	limited := told || c.limits.bucket || len(c.limits.plan) > 0
	if !limited && !c.failure.is(slowDown, unavailable) {
		return rule(account.Bare, "bare")
	}
	r := account.Rejection{Kind: account.Throttle, Rule: "throttle", Until: until}
	if c.Kind != account.Subscription {
		r.Rule, r.PerModel = "key-limit", true // a key's limits are each of one model
	}
	if c.failure.is(slowDown) {
		r.Rule = "slow-down"
	}
	return r
}

// tooLarge is the refusal of a request that alone is more than a limit, so that no waiting
// helps: its message states it, or the budget of tokens was refused while it was full. The zero
// Rejection means that it is not.
func (c *refused) tooLarge() account.Rejection {
	limit, _ := count(c.Header.Get(bucketPrefix + "Limit-Tokens"))
	remaining, told := count(c.Header.Get(bucketPrefix + "Remaining-Tokens"))
	full := told && limit > 0 && remaining >= limit && c.failure.is("tokens")
	allowed, requested, sized := c.failure.sizes()
	if !c.failure.says("request too large") && !full && (!sized || requested <= allowed) {
		return account.Rejection{}
	}
	r := account.Rejection{Kind: account.TooLarge, Rule: "request-too-large", Limit: account.Tokens, LimitTokens: limit}
	if sized {
		r.LimitTokens, r.Requested = allowed, requested
	}
	return r
}

// until is when a throttle ends: by the headers that say how long to wait; else when the
// exhausted budgets are full again, all of them; else by the message's own words.
func (c *refused) until() (time.Time, bool) {
	if until, told := limits.RetryAfter(c.Header, c.At); told {
		return until, true
	}
	var last time.Time
	for _, b := range c.limits.spentBuckets {
		if b.ResetAt.After(last) {
			last = b.ResetAt
		}
	}
	if !last.IsZero() {
		return last, true
	}
	return c.failure.wait(c.At)
}

// forbidden is a 403 of which nothing is known. It is about what the credential may do more
// often than of what the client wrote, which is refused under 400.
func (c *refused) forbidden() account.Rejection {
	if c.Request.Role != provider.Inference {
		return rule(account.ClientFault, "forbidden")
	}
	return rule(account.Access, "forbidden")
}
