// Package refresh keeps logins alive: it exchanges a login's refresh token for new tokens,
// and never sends one twice where that can be helped.
//
// Providers take a refresh token once. Whoever sends it a second time is refused, and some
// providers then revoke the whole login, the winner's new tokens included. Therefore
// exactly one process of all that share a store may send a token, and it records that in the
// store before it does.
//
// # One renewal
//
// Renew looks whether a later credential than the caller's is stored, and adopts it. If
// not, it takes the lease of the login, writes the mark (this token is being spent, by
// whom, since when), reads the credential once more to be sure that it is still the newest
// one, sends the token, saves the new grant by one conditional write, and only then
// returns it and removes the mark. Everybody else waits a little, looks again, and adopts.
// The lease only spares useless tries: what keeps two from sending one token is the mark,
// which is written on the revision that was read, and which outlives its writer.
//
// # What becomes of a mark
//
// Surely not sent, or answered so that nothing was spent: it is removed, and the next try
// is backed off from. The answer was lost: the same process reads again and sends once
// more at once, since providers forgive that for a short while. Refused for good: the
// token's keyed hash is remembered, and it is never sent again. The access token beside it
// goes on until it ends or is refused, and the account's state records that from now on (Ending);
// then the account is parked.
// A mark whose writer is known to be gone, having been a process of this machine, is taken
// over at once; one whose writer is silent, when it is old by the clock AND this process
// itself has watched it unchanged for a while: see TakeoverAfter. The token is then sent
// once, and if that is refused, the login is lost because an answer was lost.
//
// # A grant that cannot be saved
//
// It is kept in memory, used by nobody, and saved by the next Renew or Retry; the old token
// is not sent again. What is saved late is saved only over the very credential that it was
// made from. Should the account have been parked meanwhile, that ends with it.
//
// # Never
//
// It starts nothing once its context has ended, or after Close, ends nothing that it has
// started, and has no goroutine of its own. No log line and no error repeats what a provider
// said, or a secret. It parks an account whose login is lost, ends that where the login turns
// out to be good, and changes nothing else of it. When to renew ahead of time is the poller's
// to ask (Due); what a provider's answer means, the provider's package's.
package refresh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
	"holdfast/internal/transport/apicall"
	"holdfast/internal/upkeep/presence"
)

// Box opens and seals credentials, and hashes refresh tokens.
type Box interface {
	vault.Box
	KeyedHash(purpose string, data []byte) string
}

// Errors of Renew, to be told apart with errors.Is.
var (
	// ErrOwner reports that only the owner can go on: the login was refused for good, or
	// there is nothing to renew it with. By then the account is parked, or, while its access
	// token lives, is known to end (account.Ending).
	ErrOwner = errors.New("the login needs its owner")
	// ErrTransient reports that there is no newer credential now and may be one later. With
	// it comes provider.ErrNotEntitled where the plan does not include the use any more,
	// which parks no login whose token still lives.
	ErrTransient = errors.New("the login could not be renewed now")
)

// LaterError is an ErrTransient that knows until when nobody tries again.
type LaterError struct {
	Until time.Time
	Err   error // wraps ErrTransient
}

func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap leads to ErrTransient.
func (e *LaterError) Unwrap() error { return e.Err }

// Presence has the processes of a machine know of each other; presence.Directory is one.
type Presence interface {
	// Announce has others see that this process lives, by its name; Leave ends that.
	Announce(name string) error
	Leave(name string) error
	// Look tells how the process of a name stands.
	Look(name string) presence.Standing
}

// Options are what a Refresher is made of. Store, OpenBox and Renewers are required.
type Options struct {
	Store *store.Store
	// OpenBox gives the box; it is asked for every renewal and should remember.
	OpenBox  func(context.Context) (Box, error)
	Renewers map[account.Provider]provider.Renewer
	// Transport carries the calls; nil stands for apicall.NewTransport.
	Transport http.RoundTripper
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
	// Log takes a line for every renewal; nil discards.
	Log     *slog.Logger
	Version string
	// Presence says whether other processes of this machine live; where it is nil, nobody knows.
	Presence Presence
	// Wait is how long Renew waits for another's renewal, one of this process included; 0
	// stands for 15 s.
	Wait time.Duration
}

const (
	// leaseFor is longer than two calls and what is stored around them take.
	leaseFor = 90 * time.Second
	// defaultWait is near what one call may take.
	defaultWait = 15 * time.Second
)

// Refresher renews logins. Make one with New; a process needs no more than one. It is safe
// for use by several goroutines.
type Refresher struct {
	Options

	// holder is this Refresher in leases and marks.
	holder string
	closed atomic.Bool

	mu         sync.Mutex
	turns      map[account.ID]chan struct{}
	known      map[account.ID]*memory
	unfinished map[account.ID]unfinished
}

// New returns a Refresher. It contacts nobody.
func New(o Options) (*Refresher, error) {
	if o.Store == nil || o.OpenBox == nil || o.Renewers == nil {
		return nil, errors.New("a refresher needs a store, a box and renewers")
	}
	if o.Transport == nil {
		o.Transport = apicall.NewTransport()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Wait == 0 {
		o.Wait = defaultWait
	}
	return &Refresher{
		Options: o, holder: rand.Text(),
		turns: map[account.ID]chan struct{}{}, known: map[account.ID]*memory{}, unfinished: map[account.ID]unfinished{},
	}, nil
}

// Renew returns a credential of a later generation than held's, which expired, was refused
// (held.Refused() then) or is due: another process's where one is stored, else one that it renews. It returns
// soon after ctx ends, unless a token was sent by then: the outcome of that is
// awaited, for the sake of the others. The error wraps ErrOwner or ErrTransient.
func (r *Refresher) Renew(ctx context.Context, a account.Account, held credential.Credential) (credential.Credential, error) {
	// Requests come in numbers: one after the other, each would wait as long again.
	waiting, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	leave, err := r.turn(waiting, a.ID)
	if err != nil {
		return credential.Credential{}, err
	}
	defer leave()
	j, err := r.job(ctx, a)
	if err != nil {
		return credential.Credential{}, err
	}
	for attempt := 0; ; attempt++ {
		got, done, err := j.try(ctx, held)
		if done || err != nil {
			return got, err
		}
		if err := pause(waiting, attempt); err != nil {
			return credential.Credential{}, fmt.Errorf("wait for another's renewal: %w: %w", ErrTransient, err)
		}
	}
}

// turn waits until nobody else in this process is at the account's login.
func (r *Refresher) turn(ctx context.Context, id account.ID) (leave func(), err error) {
	r.mu.Lock()
	turn := r.turns[id]
	if turn == nil {
		turn = make(chan struct{}, 1)
		r.turns[id], r.known[id] = turn, &memory{refused: map[string]string{}}
	}
	r.mu.Unlock()
	leave = func() { <-turn }
	select {
	case turn <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a renewal: %w: %w", ErrTransient, context.Cause(ctx))
	}
}

// pause waits before another look: 20 ms at first, a second in the end.
func pause(ctx context.Context, attempt int) error {
	timer := time.NewTimer(min(20*time.Millisecond<<min(attempt, 8), time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// job is what a call of Renew or Retry works with, in its turn.
type job struct {
	*Refresher
	account account.Account
	renewer provider.Renewer
	box     Box
	vault   vault.Vault
	memory  *memory
}

func (r *Refresher) job(ctx context.Context, a account.Account) (*job, error) {
	renewer := r.Renewers[a.Provider]
	if renewer == nil {
		return nil, fmt.Errorf("%w: nothing here renews logins of %s", ErrTransient, a.Provider)
	}
	box, err := r.OpenBox(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the data key: %w: %w", ErrTransient, err)
	}
	r.mu.Lock()
	known := r.known[a.ID]
	r.mu.Unlock()
	return &job{
		Refresher: r, account: a, renewer: renewer, box: box,
		vault: vault.Vault{Store: r.Store, Box: box}, memory: known,
	}, nil
}

// try gets as far as it can without waiting for others. Not done and no error: look again.
func (j *job) try(ctx context.Context, held credential.Credential) (credential.Credential, bool, error) {
	none := credential.Credential{}
	if err := ctx.Err(); err != nil {
		return none, true, fmt.Errorf("renew: %w: %w", ErrTransient, context.Cause(ctx))
	}
	if err := j.finish(ctx); err != nil {
		return none, true, err
	}
	s, err := j.stand(ctx, held)
	if err != nil {
		return none, true, err
	}
	verdict := s.judge(j.Now(), j.stance(s))
	switch verdict {
	case begin, repeat:
		if j.closed.Load() {
			return none, true, fmt.Errorf("%w: this process is stopping", ErrTransient)
		}
	case wait:
		return none, false, nil
	default:
		got, err := j.close(ctx, s, verdict)
		return got, true, err
	}
	if verdict == repeat && j.stance(s).other == presence.Gone {
		// Its lease may last for a while. The mark is what keeps two from sending one token.
		return j.exchange(ctx, s, true)
	}
	lease, ours, err := j.Store.TakeLease(ctx, store.RenewalLease(j.account.ID), j.holder, j.Now(), j.Now().Add(leaseFor))
	if err != nil {
		return none, true, fmt.Errorf("renew: %w: %w", ErrTransient, err)
	}
	if !ours {
		return none, false, nil
	}
	defer func() {
		if err := j.Store.ReleaseLease(context.WithoutCancel(ctx), lease, j.Now()); err != nil {
			j.Log.Debug("release a lease", "account", j.account.Name, "error", err) // it ends by itself
		}
	}()
	if s, err = j.stand(ctx, held); err != nil {
		return none, true, err
	}
	if again := s.judge(j.Now(), j.stance(s)); again != verdict {
		return none, false, nil
	}
	return j.exchange(ctx, s, verdict == repeat)
}

// close ends a renewal in which no token is sent.
func (j *job) close(ctx context.Context, s stand, v verdict) (credential.Credential, error) {
	switch v {
	case adopt:
		return s.stored, nil
	case refused:
		reason := j.memory.refused[s.token]
		if reason == "" {
			reason = ReasonRefused
		}
		return credential.Credential{}, j.refuse(ctx, s, reason)
	case nothing:
		return credential.Credential{}, j.park(ctx, s, ReasonImpossible)
	case missing:
		return credential.Credential{}, fmt.Errorf("%w: the account has no credential", ErrOwner)
	case just:
		return credential.Credential{}, &LaterError{s.renewal.RenewedAt.Add(apart), fmt.Errorf("%w: it was renewed at %s, and the next try is not before %s",
			ErrTransient, s.renewal.RenewedAt.Format(time.RFC3339), s.renewal.RenewedAt.Add(apart).Format(time.RFC3339))}
	case silent:
		since := s.renewal.Spending.Since
		age, _ := j.stance(s).patience()
		if now := j.Now(); ahead(since, now) {
			since = now
		}
		return credential.Credential{}, &LaterError{since.Add(age), fmt.Errorf(
			"%w: another process began to renew it at %s and has not been heard of since; from %s it is tried here",
			ErrTransient, since.Format(time.RFC3339), since.Add(age).Format(time.RFC3339))}
	default:
		return credential.Credential{}, &LaterError{s.renewal.RetryAt, fmt.Errorf("%w: the last try failed (%s), the next is at %s",
			ErrTransient, s.renewal.Failure, s.renewal.RetryAt.Format(time.RFC3339))}
	}
}
