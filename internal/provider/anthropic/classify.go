package anthropic

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/wire/limits"
)

// Classify implements provider.Provider. Evidence is taken in this order: what the
// provider says is its own trouble; codes and known phrases; per-window verdicts; limit
// headers. The status alone decides only what is left.
//
// Retry-After and the aggregate verdict look account-wide where one family's window
// decided, and x-should-retry: true is set on spent windows too, so none of the three
// widens a refusal.
func (Provider) Classify(a provider.Answer) account.Rejection {
	if a.Status < 400 && !a.InStream {
		return account.Rejection{}
	}
	c := &refused{Answer: a, failure: readFailure(a.Body), status: a.Status}
	if a.InStream {
		c.status = statusOf(c.failure.kind)
	}
	r := c.judge()
	r.At, r.Model, r.Family, r.Generation = a.At, a.Request.Model, a.Request.Family, a.Generation
	if r.Code == "" {
		r.Code = c.failure.name()
	}
	r.Whole = c.whole(r)
	return r
}

// whole reports whether a refusal is of the whole organization or plan. A workspace may
// have limits of its own below the organization's, and a login may be refused alone.
func (c *refused) whole(r account.Rejection) bool {
	switch r.Kind {
	case account.Throttle:
		return !strings.Contains(c.failure.message, "workspace")
	case account.Funds:
		return slices.Contains([]string{"spend-cap", "credit-balance", "disabled"}, r.Rule)
	default:
		return false
	}
}

// refused is one refusal while it is looked at.
type refused struct {
	provider.Answer
	failure failure
	// status is the one the refusal has, or would have had outside a stream.
	status int
	limits limitHeaders
}

func (c *refused) judge() account.Rejection {
	if c.status >= 500 {
		return rule(account.Overload, "overload")
	}
	if r := c.among(refusals); r.Rejected() {
		return r
	}
	switch c.status {
	case http.StatusTooManyRequests:
		return c.tooMany()
	case http.StatusBadRequest:
		return c.badRequest()
	default:
		return rule(account.ClientFault, "client")
	}
}

func rule(kind account.RejectionKind, name string) account.Rejection {
	return account.Rejection{Kind: kind, Rule: name}
}

func lacking(name, feature string) account.Rejection {
	return account.Rejection{Kind: account.Entitlement, Rule: name, Feature: feature}
}

func (c *refused) badRequest() account.Rejection {
	r := c.among(extraUsages)
	if !r.Rejected() {
		return rule(account.ClientFault, "client")
	}
	if spent := c.spent(); spent.Kind == account.WindowSpent {
		return spent
	}
	return r
}

func (c *refused) tooMany() account.Rejection {
	if r := c.spent(); r.Rejected() {
		return r
	}
	if r := c.among(extraUsages); r.Rejected() {
		return r
	}
	if r := c.tooLarge(); r.Rejected() {
		return r
	}
	l := c.limits
	until, told := limits.RetryAfter(c.Header, c.At)
	if !told && !l.bucket && strings.EqualFold(c.Header.Get("X-Should-Retry"), "false") {
		// "Do not ask again" without a word on when: not a limit that passes. The reset
		// beside it is the billing period's.
		return lacking("should-not-retry", ownFeature(c.Request))
	}
	if !told && !l.bucket && !l.unified {
		return rule(account.Bare, "bare")
	}
	r := account.Rejection{Kind: account.Throttle}
	if told {
		r.Until = until
	} else {
		for _, b := range l.spentBuckets {
			if b.ResetAt.After(r.Until) {
				r.Until = b.ResetAt // every spent bucket must refill
			}
		}
	}
	switch {
	case l.unified || c.Kind == account.Subscription:
		r.Rule = "throttle"
	case len(l.spentBuckets) > 0:
		r.Rule, r.PerModel = "key-limit", true
	default: // refused below the limits: a rise too sharp, or a limit that is not told
		r.Rule, r.PerModel = "key-acceleration", true
	}
	return r
}

// tooLarge is the refusal of a request that alone is more than a key's limit of input tokens:
// the bucket was full when it was refused, so no waiting helps. How large the request was is
// not told. The zero Rejection means that it is not.
func (c *refused) tooLarge() account.Rejection {
	const bucket = "Anthropic-Ratelimit-Input-Tokens-"
	limit, _ := strconv.ParseInt(c.Header.Get(bucket+"Limit"), 10, 64)
	remaining, err := strconv.ParseInt(c.Header.Get(bucket+"Remaining"), 10, 64)
	if err != nil || limit <= 0 || remaining < limit || !strings.Contains(c.failure.message, "input tokens per minute") {
		return account.Rejection{}
	}
	return account.Rejection{Kind: account.TooLarge, Rule: "request-too-large", Limit: account.InputTokens, LimitTokens: limit}
}

// spent looks for plan windows that refuse the request. The zero Rejection means none.
func (c *refused) spent() account.Rejection {
	c.limits = readLimits(c.Header, c.At)
	windows := c.spentWindows()
	if windows == nil {
		return account.Rejection{}
	}
	slices.SortFunc(windows, func(a, b account.WindowReading) int { return strings.Compare(a.Name, b.Name) })
	r := account.Rejection{Kind: account.ModelWindow}
	covered := false // the request's own family is blocked by one of them
	for _, w := range windows {
		s := account.Spent{Window: w.Name, Family: account.FamilyOf(w.Name), ResetAt: w.ResetAt}
		if s.ResetAt.IsZero() {
			s.ResetAt = c.toldReset(w.Name)
		}
		if w.Name == account.Weekly {
			// The narrow rule: the weekly window may be the whole account's, but only this
			// family is known to be refused; others learn by their own answer.
			if s.Family = c.Request.Family; s.Family == "" {
				continue
			}
		}
		if s.Family == "" {
			r.Kind = account.WindowSpent
		}
		covered = covered || s.Family == "" || s.Family == c.Request.Family
		r.Spent = append(r.Spent, s)
	}
	if !covered && c.Request.Family != "" && len(r.Spent) > 0 {
		// Another family's window refused this one (the included-overage meter does on
		// some seats): the family that asked is blocked as well.
		s := r.Spent[0]
		s.Family = c.Request.Family
		r.Spent = append(r.Spent, s)
	}
	r.Rule = "model-window"
	switch {
	case r.Kind == account.WindowSpent && slices.ContainsFunc(r.Spent, func(s account.Spent) bool { return s.Window == account.FiveHour }):
		r.Rule = "five-hour"
	case r.Kind == account.WindowSpent:
		r.Rule = "window"
	case len(windows) == 1 && windows[0].Name == account.Weekly:
		r.Rule = "weekly-cap"
	}
	return r
}

// spentWindows lists the windows that refuse: those with a verdict of rejected; else
// those at their cap without a verdict; else what the wording of 2025, or an aggregate
// that names no window, says.
func (c *refused) spentWindows() []account.WindowReading {
	l := c.limits
	rejected := func(w account.WindowReading) bool { return w.Status == account.Rejected && c.concerns(w) }
	if spent := filter(l.plan, rejected); spent != nil {
		return spent
	}
	full := func(w account.WindowReading) bool { return !hasStatus(w) && w.HasUtilization && w.Utilization >= 1 }
	if spent := filter(l.plan, full); spent != nil {
		return spent
	}
	name, reset := l.reading.Claim, l.reset
	said, ok := c.failure.usageLimit(c.At)
	switch {
	case ok:
		name, reset = nearest(said, c.At), said
	case slices.ContainsFunc(l.plan, hasStatus):
		return nil // every verdict allows
	case l.status == account.Rejected:
		name = nearest(reset, c.At) // had the claim named a window, that one had the verdict
	case l.status != "" || name == "":
		return nil
	}
	// What is left is a claim without any verdict, which clients take for a rejection.
	return []account.WindowReading{{Name: name, ResetAt: reset}}
}

// concerns reports whether a rejected window can be why this request was refused: one of
// the whole account or of the request's family always, one of another family where the
// claim names it, or where nothing else in the answer can have decided: no claim, or one
// whose own window allows although the aggregate rejects. A short refusal may mention
// another family's spent week in passing.
func (c *refused) concerns(w account.WindowReading) bool {
	if account.Binds(w.Name, c.Request.Family) {
		return true
	}
	claim := c.limits.reading.Claim
	if claim == "" || claim == w.Name {
		return claim != "" || c.limits.status == "" || c.limits.status == account.Rejected
	}
	return c.limits.status == account.Rejected && slices.ContainsFunc(c.limits.plan, func(o account.WindowReading) bool {
		return o.Name == claim && (o.Status == account.Allowed || o.Status == account.Warning)
	})
}

func filter(windows []account.WindowReading, keep func(account.WindowReading) bool) []account.WindowReading {
	var kept []account.WindowReading
	for _, w := range windows {
		if keep(w) {
			kept = append(kept, w)
		}
	}
	return kept
}

// toldReset is when a window that tells no reset resets by the rest of the answer; zero
// when nothing tells it.
func (c *refused) toldReset(window string) time.Time {
	if window == c.limits.reading.Claim && !c.limits.reset.IsZero() {
		return c.limits.reset
	}
	if until, told := limits.RetryAfter(c.Header, c.At); told {
		return until
	}
	return time.Time{}
}

// nearest is the window that a reset must be of when nothing names it: the five-hour
// one, unless the reset lies further off than that reaches.
func nearest(reset, at time.Time) string {
	if reset.Sub(at) > 5*time.Hour+time.Minute {
		return account.Weekly
	}
	return account.FiveHour
}
