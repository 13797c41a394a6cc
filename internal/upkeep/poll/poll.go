package poll

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
	"holdfast/internal/transport/apicall"
)

// Caller carries a look; apicall.Caller is one.
type Caller interface {
	Do(ctx context.Context, call provider.Call, baseURL string) (provider.Reply, error)
}

// Refresher renews logins; refresh.Refresher is one.
type Refresher interface {
	// Renew returns a credential of a later generation than held's.
	Renew(ctx context.Context, a account.Account, held credential.Credential) (credential.Credential, error)
	// Unsaved is the number of grants that were obtained and could not be saved yet; Retry
	// tries to save them.
	Unsaved() int
	Retry(ctx context.Context) error
}

// Options are what a Poller is made of. Store, OpenBox and Lookers are required.
type Options struct {
	Store *store.Store
	// OpenBox gives the box that opens logins. It is asked in each round that has one to
	// open, and should remember.
	OpenBox func(context.Context) (vault.Box, error)
	// Caller carries the looks; nil makes one.
	Caller Caller
	// Version is holdfast's own, for the User-Agent of a Caller that is made here.
	Version string
	// Lookers by provider; accounts of others are not watched.
	Lookers map[account.Provider]provider.Looker
	// Refresher renews logins; nil renews none.
	Refresher Refresher
	// Log takes what went wrong and a line for each round; nil discards.
	Log *slog.Logger
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
	// Jitter draws a number of at least 0 and below 1; nil draws it at random.
	Jitter func() float64
}

// Poller makes rounds. Make one with New; it is safe for use by several goroutines.
type Poller struct{ Options }

// New returns a Poller. It contacts nobody.
func New(o Options) (*Poller, error) {
	if o.Store == nil || o.OpenBox == nil || o.Lookers == nil {
		return nil, errors.New("a poller needs a store, a box and lookers")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Caller == nil {
		o.Caller = apicall.Caller{Transport: apicall.NewTransport(), Version: o.Version, Now: o.Now, Within: lookWithin}
	}
	return &Poller{o}, nil
}

// Report is what a round found.
type Report struct {
	// At is when the round began.
	At time.Time
	// Skipped says in words why there was no round; all else is empty then.
	Skipped string
	// Catalog is the configuration that the round went by.
	Catalog catalog.Catalog
	// Accounts are all of the catalog's, in its order.
	Accounts []Finding
}

// Finding is what a round found of one account.
type Finding struct {
	Account account.Account
	// Watched: its provider has a usage endpoint for it.
	Watched bool
	Result  Result
	// Reading is what the look brought (WasRead).
	Reading account.Reading
	// Trouble says in words why a look failed, now or, when it is backed off from, before.
	Trouble string
	// State is the account's at the end of the round.
	State store.StateRecord
	Clock store.Clock
	// Renewed: a newer credential was had than the round began with. RenewTrouble says in
	// words why the login, which is due, could not be renewed.
	Renewed      bool
	RenewTrouble string
}
