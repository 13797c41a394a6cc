package refresh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/transport/apicall"
)

func ids(id account.ID) []account.ID { return []account.ID{id} }

var errLate = errors.New("this process was held up for too long since it said that it would send the token")

// exchange marks the token, sends it, and handles the outcome. again says that it was
// sent before and that the answer was lost. Not done and no error: somebody was faster.
func (j *job) exchange(ctx context.Context, s stand, again bool) (credential.Credential, bool, error) {
	none := credential.Credential{}
	call, ok := j.renewer.Renewal(s.stored)
	if !ok {
		return none, true, j.park(ctx, s, ReasonImpossible)
	}
	if err := ctx.Err(); err != nil { // the last place where stopping harms nobody
		return none, true, fmt.Errorf("renew: %w: %w", ErrTransient, context.Cause(ctx))
	}
	ctx = context.WithoutCancel(ctx) // each step is bounded by itself

	if j.Presence != nil {
		if err := j.Presence.Announce(j.holder); err != nil { // then others wait longer
			j.Log.Debug("announce that a login is being renewed", "account", j.account.Name, "error", err)
		}
	}
	since := j.Now()
	marking := s.renewal
	marking.Spending = &store.Spending{Token: s.token, Generation: s.stored.Generation, By: j.holder, Since: since.UTC(), Lost: again}
	marked, ours, err := j.Store.PutRenewal(ctx, j.account.ID, marking)
	if err != nil {
		return none, true, fmt.Errorf("say that a login is being renewed: %w: %w", ErrTransient, err)
	}
	if !ours {
		return none, false, nil
	}
	s.renewal = marked
	// Who had the mark before us may have saved after we read, and before it removed it.
	if changed, err := j.changed(ctx, s); changed || err != nil {
		j.unmark(ctx, s, again && !changed)
		return none, false, err
	}

	caller := apicall.Caller{Transport: j.Transport, Version: j.Version, Now: j.Now, Last: func() error {
		if j.Now().Round(0).Sub(since.Round(0)) >= lateAfter { // by the clock on the wall: a sleep counts
			return errLate
		}
		return nil
	}}
	o := j.send(ctx, caller, call, s)
	if o.kind == lost && !again {
		if changed, err := j.changed(ctx, s); changed && err == nil {
			j.memory.sent = ""
			j.unmark(ctx, s, false)
			return none, false, nil
		}
		again = true
		o = j.send(ctx, caller, call, s)
	}
	return j.settle(ctx, s, o, again, since)
}

// changed reports whether another credential is stored than the one that was read.
func (j *job) changed(ctx context.Context, s stand) (bool, error) {
	_, revision, err := j.vault.Load(ctx, j.account.ID)
	if err != nil {
		return false, fmt.Errorf("read the login again: %w: %w", ErrTransient, err)
	}
	return revision != s.revision, nil
}

// outcomeKind is what a token that was sent came to.
type outcomeKind int

const (
	granted outcomeKind = iota
	// unspent: not sent, or refused in a way that spends nothing.
	unspent
	// notEntitled: the login is good, and its plan is not.
	notEntitled
	// refusedForGood: this token will never do again.
	refusedForGood
	// lost: it may be spent, and there are no new tokens.
	lost
)

type outcome struct {
	kind outcomeKind
	next credential.Credential
	// word says what failed, in a few words of ours.
	word string
}

// send sends the token.
func (j *job) send(ctx context.Context, caller apicall.Caller, call provider.Call, s stand) outcome {
	j.memory.sent = s.token
	reply, err := caller.Do(ctx, call, j.account.BaseURL)
	word := fmt.Sprint("status ", reply.Status)
	failed := func(kind outcomeKind, word string) outcome {
		j.Log.Warn("renewal failed", "account", j.account.Name, "generation", s.stored.Generation, "failure", word, "error", err)
		return outcome{kind: kind, word: word}
	}
	switch {
	case errors.Is(err, errLate):
		return failed(unspent, "held up before sending")
	case errors.Is(err, apicall.ErrNotSent):
		return failed(unspent, "provider not reached")
	case err != nil:
		return failed(lost, "no whole answer")
	}
	var next credential.Credential
	next, err = j.renewer.Renewed(s.stored, reply)
	switch {
	case errors.Is(err, provider.ErrRefusedForGood):
		return failed(refusedForGood, word)
	case errors.Is(err, provider.ErrAnswerLost), err == nil && next.Access.Empty():
		return failed(lost, word+" without new tokens")
	case errors.Is(err, provider.ErrNotEntitled):
		return failed(notEntitled, word+": not in the plan")
	case err != nil:
		return failed(unspent, word)
	}
	next.Generation = s.stored.Generation + 1
	if next.Refresh.Empty() {
		next.Refresh = s.stored.Refresh
	}
	if next.Access.Reveal() != s.stored.Access.Reveal() && next.IssuedAt.Equal(s.stored.IssuedAt) {
		next.IssuedAt = reply.At.UTC() // the answer did not say
	}
	if now := j.Now(); next.Expired(now) {
		// By our clock it is over as it comes, and one of the two clocks is wrong. Used until it
		// is refused it does; believed, each request would renew it again.
		j.Log.Warn("a new login is over by this machine's clock: set the clock right", "account", j.account.Name, "ends", next.ExpiresAt, "now", now)
		next.ExpiresAt, next.IssuedAt = time.Time{}, reply.At.UTC()
	}
	return outcome{kind: granted, next: next}
}

// settle records the outcome of a token.
func (j *job) settle(ctx context.Context, s stand, o outcome, again bool, since time.Time) (credential.Credential, bool, error) {
	none := credential.Credential{}
	switch o.kind {
	case granted:
		g := &grant{spent: s.stored, token: s.token, revision: s.revision, next: o.next, since: since}
		j.keep(g)
		if err := j.finish(ctx); err != nil {
			return none, true, err
		}
		return g.next, g.saved, nil // not saved and no error: another login is stored
	case refusedForGood:
		if changed, err := j.changed(ctx, s); err == nil && changed {
			j.memory.sent = ""
			j.unmark(ctx, s, false)
			return none, false, nil
		}
		reason := ReasonRefused
		if again {
			reason = ReasonAnswerLost
		}
		return none, true, j.refuse(ctx, s, reason)
	case unspent, notEntitled, lost:
	}
	if o.kind != lost && !again {
		j.memory.sent = ""
	}
	err := j.fail(ctx, s, o.word, again || o.kind == lost)
	if o.kind == notEntitled && s.stored.Expired(j.Now()) {
		return none, true, j.park(ctx, s, ReasonNotEntitled)
	}
	if o.kind == notEntitled { // whoever was refused the token that is held knows what that means
		err = fmt.Errorf("%w (%w)", err, provider.ErrNotEntitled)
	}
	return none, true, err
}
