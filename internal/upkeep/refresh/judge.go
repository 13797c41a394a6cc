package refresh

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/store"
	"holdfast/internal/upkeep/presence"
)

const (
	// TakeoverAfter and watchedFor are what it takes to send a token again that a process
	// elsewhere has marked and of which nothing is heard: the mark is that old by the clock,
	// and this process itself has seen it unchanged for that long. A holder that lives is
	// done within 90 s, two calls and what is stored around them, and most issuers take a
	// token again for two minutes. One that was put to sleep together with this machine finds
	// its mark old by the clock, but watched for only as long as both were awake, which gives
	// it the time to save what it got.
	TakeoverAfter = 100 * time.Second
	watchedFor    = time.Minute
	// FrozenAfter and frozenWatched are the same for a holder that is known to live on this
	// machine: it is stopped, and may go on and save. One that is known to be gone is not
	// waited for at all.
	FrozenAfter   = 10 * time.Minute
	frozenWatched = 2 * time.Minute
	// silentFor is how long somebody else's mark, seen unchanged, is worth waiting for.
	silentFor = 45 * time.Second
	// lateAfter is when a holder that was frozen before it sent its token must not send it
	// any more: others may soon. Clocks of machines may differ by as much as is left.
	lateAfter = 45 * time.Second

	// Tries that brought nothing are backed off from: backoff, doubling up to maxBackoff.
	backoff    = 5 * time.Second
	maxBackoff = 5 * time.Minute
	// apart is the least time between a grant and the next renewal. A token that is refused
	// or over as soon as it is there is not mended by another one.
	apart = 30 * time.Second
)

// stand is what is stored of a login.
type stand struct {
	stored   credential.Credential
	revision int64
	// token is the keyed hash of the refresh token; empty without one.
	token   string
	renewal store.Renewal
	// held is what the caller of Renew has: without an access token if that was refused.
	held credential.Credential
}

// lives reports whether the access token goes on without being renewed: it is the caller's,
// was not refused there, and has not ended.
func (s stand) lives(now time.Time) bool {
	return !s.held.Access.Empty() && s.held.Generation == s.stored.Generation && !s.stored.Expired(now)
}

// stand reads what is stored of the login.
func (j *job) stand(ctx context.Context, held credential.Credential) (stand, error) {
	all, err := j.Store.Renewals(ctx, ids(j.account.ID))
	if err != nil {
		return stand{}, fmt.Errorf("renew: %w: %w", ErrTransient, err)
	}
	s := stand{renewal: all[j.account.ID], held: held}
	if s.stored, s.revision, err = j.vault.Load(ctx, j.account.ID); err != nil {
		return stand{}, fmt.Errorf("renew: %w: %w", ErrTransient, err)
	}
	if !s.stored.MeantFor(j.account.BaseURL) {
		return stand{}, fmt.Errorf("renew: %w: the account is being pointed at another host", ErrTransient)
	}
	s.token = j.hash(s.stored)
	return s, nil
}

// hash recognizes a credential's refresh token; it is empty without one.
func (j *job) hash(c credential.Credential) string { return TokenHash(j.box, c) }

// TokenHash recognizes a credential's refresh token, as store.Renewal keeps it; it is empty
// without one.
func TokenHash(box Box, c credential.Credential) string {
	if c.Refresh.Empty() {
		return ""
	}
	return box.KeyedHash("refresh-token", []byte(c.Refresh.Reveal()))
}

// verdict is what is to be done.
type verdict int

const (
	// begin: send the token, which nobody has sent.
	begin verdict = iota
	// repeat: send the token once more. It was sent, and what became of it is not known.
	repeat
	// adopt what is stored.
	adopt
	// wait: somebody else may be at it.
	wait
	// silent: somebody else was at it, and nothing is heard of it.
	silent
	// just: it was renewed a short while ago.
	just
	// later: it failed a short while ago.
	later
	// refused: this token was refused for good.
	refused
	// nothing to renew with.
	nothing
	// missing: there is no credential.
	missing
)

// stance is how this process stands to the mark on a token.
type stance struct {
	holder string
	// sent: this process has sent the token and does not know what became of it.
	sent bool
	// refused: this process has heard that the token is refused for good.
	refused bool
	// watched is for how long this process has seen the mark unchanged.
	watched time.Duration
	// other is how the process stands whose mark it is.
	other presence.Standing
}

// patience is how old another's mark must be, and for how long seen, to be taken over.
func (s stance) patience() (age, watched time.Duration) {
	if s.other == presence.Here {
		return FrozenAfter, frozenWatched
	}
	return TakeoverAfter, watchedFor
}

// judge decides what is to be done for whoever has s.held.
func (s stand) judge(now time.Time, us stance) verdict {
	switch {
	case s.revision == 0:
		return missing
	case s.stored.Generation > s.held.Generation && !s.stored.Expired(now):
		return adopt
	case s.token == "":
		return nothing
	case us.refused || slices.Contains(s.renewal.Refused, s.token):
		return refused
	}
	mark := s.renewal.Spending
	switch {
	case mark == nil || mark.Token != s.token: // a mark on another token concerns nobody any more
		if !s.renewal.RenewedAt.IsZero() && now.Sub(s.renewal.RenewedAt).Abs() < apart {
			return just
		}
		return s.unlessBackedOff(now, begin)
	case mark.By == "" || mark.By == us.holder: // nobody is at it: of this process's renewals, this is the only one
		if mark.Lost || us.sent {
			return s.unlessBackedOff(now, repeat)
		}
		return s.unlessBackedOff(now, begin)
	case us.other == presence.Gone:
		return s.unlessBackedOff(now, repeat)
	}
	age, watched := us.patience()
	switch {
	case (now.Sub(mark.Since) >= age || ahead(mark.Since, now)) && us.watched >= watched:
		return repeat
	case us.watched >= silentFor:
		return silent
	}
	return wait
}

// ahead reports whether an instant was written by a clock that was wrong.
func ahead(at, now time.Time) bool { return at.After(now.Add(account.Ahead)) }

func (s stand) unlessBackedOff(now time.Time, v verdict) verdict {
	// A RetryAt further away was written by a clock that was wrong.
	if ahead := s.renewal.RetryAt.Sub(now); ahead > 0 && ahead <= maxBackoff {
		return later
	}
	return v
}

// nextTry is when to try again after so many failures.
func nextTry(now time.Time, failures int) time.Time {
	return now.Add(min(backoff<<min(max(failures-1, 0), 16), maxBackoff))
}

// memory is what this process knows of one login and cannot, or need not, store. It is
// used in turns.
type memory struct {
	// sent is the keyed hash of the token that was sent, as long as its fate is not known.
	sent string
	// refused has the reasons of the tokens that were refused, by their keyed hashes.
	refused map[string]string
	// watchedMark is the revision of the renewal that has another's mark, seen since.
	watchedMark  int64
	watchedSince time.Time
	// grant is one that is not saved and settled yet.
	grant *grant
}

// stance brings up to date what this process knows of the mark, and returns it.
func (j *job) stance(s stand) stance {
	now := j.Now() // with its monotonic reading, where the clock has one
	if m := j.memory; m.watchedMark != s.renewal.Revision {
		m.watchedMark, m.watchedSince = s.renewal.Revision, now
	}
	other := presence.Unknown
	if m := s.renewal.Spending; j.Presence != nil && m != nil && m.By != "" && m.By != j.holder {
		other = j.Presence.Look(m.By)
	}
	return stance{
		other: other, holder: j.holder, sent: s.token != "" && j.memory.sent == s.token,
		refused: j.memory.refused[s.token] != "", watched: now.Sub(j.memory.watchedSince),
	}
}
