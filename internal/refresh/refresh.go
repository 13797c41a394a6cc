// Package refresh keeps logins alive: it exchanges refresh tokens for new ones, and never
// sends one twice where that can be helped.
package refresh

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/credential"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/vault"
)

// Box opens and seals credentials, and hashes refresh tokens.
type Box interface {
	vault.Box
	KeyedHash(purpose string, data []byte) string
}

// Errors of Renew, to be told apart with errors.Is.
var (
	// ErrOwner reports that only the owner can go on: the login was refused for good, or
	// there is nothing to renew it with. The account is parked by then.
	ErrOwner = errors.New("the login needs its owner")
	// ErrTransient reports that there is no newer credential now and may be one later.
	ErrTransient = errors.New("the login could not be renewed now")
)

// Options are what a Refresher is made of. Store, OpenBox and Renewers are required.
type Options struct {
	Store *store.Store
	// OpenBox gives the box; it is asked for every renewal and should remember.
	OpenBox  func(context.Context) (Box, error)
	Renewers map[account.Provider]provider.Renewer
	// Transport carries the calls; nil makes one.
	Transport http.RoundTripper
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
	// Log takes a line for every renewal; nil discards.
	Log     *slog.Logger
	Version string
	// Wait is how long Renew waits for another's renewal; 0 stands for 15 s.
	Wait time.Duration
}

// Refresher renews logins. Make one with New; one for each process is enough.
type Refresher struct {
	o Options
}

// New returns a Refresher. It contacts nobody.
func New(o Options) (*Refresher, error) {
	if o.Store == nil || o.OpenBox == nil || o.Renewers == nil {
		return nil, errors.New("a refresher needs a store, a box and renewers")
	}
	return &Refresher{o: o}, nil
}

// Renew returns a credential of a later generation than held's, the one that expired, was
// refused or is due: another process's where one is stored, else one that it renews. The
// error wraps ErrOwner or ErrTransient.
func (r *Refresher) Renew(ctx context.Context, a account.Account, held credential.Credential) (credential.Credential, error) {
	return credential.Credential{}, ErrTransient
}

// Unsaved is the number of grants that were obtained and could not be saved yet.
func (r *Refresher) Unsaved() int { return 0 }

// Retry tries to save what Unsaved counts. The poller calls it every round, and a server
// before it stops.
func (r *Refresher) Retry(ctx context.Context) error { return nil }
