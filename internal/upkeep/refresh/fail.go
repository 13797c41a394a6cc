package refresh

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/store"
)

// Reasons for which a login ends here, and its account is parked.
const (
	// ReasonRefused: the provider refused the refresh token for good.
	ReasonRefused = "renewal-refused"
	// ReasonAnswerLost: it refused one that had been sent before, and the answer to that,
	// with the new tokens, never arrived or was never saved.
	ReasonAnswerLost = "renewal-answer-lost"
	// ReasonNotEntitled: the login ended, is good, and its plan does not include this use.
	ReasonNotEntitled = "renewal-not-entitled"
	// ReasonImpossible: the login ended or was refused, and has no refresh token.
	ReasonImpossible = "renewal-impossible"
)

// mostRefused bounds how many refused tokens are remembered of an account.
const mostRefused = 50

// unmark takes back the mark of a token that was not sent, or not again.
func (j *job) unmark(ctx context.Context, s stand, again bool) {
	err := j.note(ctx, func(r store.Renewal) (store.Renewal, bool) {
		if !j.marked(r, s) {
			return r, false
		}
		r.Spending = open(s, again)
		return r, true
	})
	if err != nil { // it is this process's, which knows better
		j.Log.Warn("take back that a login is being renewed", "account", j.account.Name, "error", err)
	}
}

// marked reports whether a renewal has this process's mark on the token.
func (j *job) marked(r store.Renewal, s stand) bool {
	return r.Spending != nil && r.Spending.By == j.holder && r.Spending.Token == s.token
}

// open is the mark on a token whose fate is not known and that nobody is sending now; nil
// if it is known.
func open(s stand, lost bool) *store.Spending {
	if !lost {
		return nil
	}
	return &store.Spending{Token: s.token, Generation: s.stored.Generation, Since: s.renewal.Spending.Since, Lost: true}
}

// fail notes a try that brought no grant and harmed nothing for sure, or, where an answer
// was lost, left open whether the token is spent.
func (j *job) fail(ctx context.Context, s stand, word string, lost bool) error {
	now := j.Now().UTC()
	var retryAt time.Time
	err := j.note(ctx, func(r store.Renewal) (store.Renewal, bool) {
		if j.marked(r, s) {
			r.Spending = open(s, lost)
		}
		r = failed(r, word, now)
		r.RetryAt = nextTry(now, r.Failures)
		retryAt = r.RetryAt
		return r, true
	})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrTransient, word, err)
	}
	return &LaterError{retryAt, fmt.Errorf("%w: %s", ErrTransient, word)}
}

// failed counts a failure.
func failed(r store.Renewal, word string, now time.Time) store.Renewal {
	r.Failures++
	r.Failure = word
	if r.FailingSince.IsZero() {
		r.FailingSince = now
	}
	return r
}

// refuse remembers that the token is never to be sent again, and parks the account unless
// its access token lives.
func (j *job) refuse(ctx context.Context, s stand, reason string) error {
	j.memory.refused[s.token] = reason // should the store be away
	j.memory.sent = ""
	err := j.note(ctx, func(r store.Renewal) (store.Renewal, bool) {
		if slices.Contains(r.Refused, s.token) {
			return r, false
		}
		if j.marked(r, s) {
			r.Spending = nil
		}
		r = failed(r, reason, j.Now().UTC())
		r.Refused = append(slices.Clone(r.Refused), s.token)
		if over := len(r.Refused) - mostRefused; over > 0 {
			r.Refused = r.Refused[over:]
		}
		return r, true
	})
	if err != nil {
		return fmt.Errorf("remember a refused login: %w: %w", ErrTransient, err)
	}
	if s.lives(j.Now()) {
		return j.end(ctx, s, reason)
	}
	return j.park(ctx, s, reason)
}

// end notes that the login goes on and is not renewed any more, and returns why as an
// ErrOwner.
func (j *job) end(ctx context.Context, s stand, reason string) error {
	e := account.Ending{Since: j.Now().UTC(), Until: s.stored.ExpiresAt.UTC(), Reason: reason, Generation: s.stored.Generation}
	told := false
	err := j.foldState(ctx, func(st account.State) (account.State, bool) {
		next := st.Ends(e)
		told = account.WorthStoring(st, next, account.RedateEvery)
		return next, told
	})
	if err != nil {
		return fmt.Errorf("note that a login ends: %w: %w", ErrTransient, err)
	}
	until := "until its access token is refused"
	if !e.Until.IsZero() {
		until = "until " + e.Until.Format(time.RFC3339)
	}
	if told {
		j.Log.Error("login is not renewed any more", "account", j.account.Name, "generation", e.Generation, "reason", reason, "serves", until)
	}
	return fmt.Errorf("%w: %s; it serves %s", ErrOwner, fmt.Sprintf(telling[reason], j.account.Name), until)
}

// park parks the account and returns why as an ErrOwner.
func (j *job) park(ctx context.Context, s stand, reason string) error {
	r := account.Rejection{Kind: account.BadCredential, At: j.Now(), Generation: s.stored.Generation, Rule: reason}
	if reason == ReasonNotEntitled {
		r.Kind = account.Funds
	}
	parked := false
	err := j.foldState(ctx, func(st account.State) (account.State, bool) {
		if st.Parked != nil {
			return st, false
		}
		next := st.Reject(r, account.Rules{})
		parked = next.Parked != nil
		return next, parked
	})
	if err != nil {
		return fmt.Errorf("park an account: %w: %w", ErrTransient, err)
	}
	if parked {
		j.Log.Error("login lost", "account", j.account.Name, "generation", s.stored.Generation, "reason", reason)
	}
	return fmt.Errorf("%w: %s", ErrOwner, fmt.Sprintf(telling[reason], j.account.Name))
}

var telling = map[string]string{
	ReasonRefused:     "the provider refused to renew it; log in anew with `holdfast account login %s`",
	ReasonAnswerLost:  "the answer to an earlier renewal was lost, and with it the new tokens; log in anew with `holdfast account login %s`",
	ReasonImpossible:  "it has ended and cannot be renewed; log in anew with `holdfast account login %s`",
	ReasonNotEntitled: "its plan does not include this use; change the plan, then `holdfast account clear %s`",
}
