// Package gateway is the handler: it authenticates a request, finds its conversation's
// account, forwards, and learns from the answer.
//
// One request, in order: its route; its client key; its body, read once and inspected in
// one pass; one read of the store that brings pin, states and, now and then, the catalog;
// a plan (package placement); the claims that the plan needs, each one conditional write;
// the upstream attempt (package forward); and beside the answer, what was learnt from it,
// folded into the store. What the plan says after a rejection is done the same way again.
//
// The read brings, too, whose the objects are that the request names, and, under policy
// order, who served; an answer that makes an object is noted before its end is passed on,
// and a pick that shows a switch has it recorded. A login that has expired, or is refused,
// is renewed on the way (Options.Renew), once for each attempt.
//
// # What it holds
//
// In memory it keeps the catalog for a second or two, opened credentials by their
// generation, placements that another request of this process is just making, counts for
// the status until a pin is touched, and which objects it has noted lately. Nothing of it is
// needed by another process, or after a restart: several may serve from one store.
//
// # Never
//
// It never guesses: without the store a request is refused. It never asks which provider
// it is serving; that is behind provider.Provider. It never sends a client's secret
// upstream, nor an account's anywhere but to its own host, and it logs neither bodies nor
// ids of conversations. It changes no body, except for the links in an answer that a client
// would follow with its secret: they lead back here.
package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/metric"
	"holdfast/internal/core/usage"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
	"holdfast/internal/transport/forward"
)

// Box opens credentials and hashes client keys.
type Box interface {
	vault.Box
	clientkey.Hasher
}

// Options are what a gateway is made of. Store, Providers and one of Box and OpenBox are
// required.
type Options struct {
	Store *store.Store
	Box   Box
	// OpenBox gives the box where it has to be fetched first. It is asked for every request
	// and should remember; while it fails, requests are refused as without a store.
	OpenBox   func(context.Context) (Box, error)
	Providers map[account.Provider]provider.Provider
	// Renew returns a credential of a later generation than held, which has expired or was
	// refused: another process's where one is stored, else a renewed one, stored before it is
	// returned. An error that wraps refresh.ErrOwner means that only the owner can go on and that
	// the account's state records that; any other error means that a later renewal may succeed. Nil where logins are not
	// renewed here.
	Renew func(ctx context.Context, a account.Account, held credential.Credential) (credential.Credential, error)
	// Transport carries attempts; nil makes one for Limits.
	Transport http.RoundTripper
	// Limits of an attempt's phases; the zero value stands for forward.DefaultLimits. Headers
	// and KeepAlive, where they are zero, are the settings upstream_timeout and keep_alive.
	Limits forward.Limits
	// MaxOpen bounds the requests that are open at once; 0 stands for 1000.
	MaxOpen int
	// Log takes one line a request; nil discards.
	Log *slog.Logger
	// Advise puts into a text how the commands in it reach the program and its data, for those
	// who showed a client key; nil leaves texts as they are.
	Advise func(text string) string
	// Measure is told of every request to a provider, at its end; nil measures nothing. It
	// must not keep the request waiting.
	Measure func(metric.Request)
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

// Gateway is the handler. Make one with New.
type Gateway struct {
	store     *store.Store
	openBox   func(context.Context) (Box, error)
	renew     func(context.Context, account.Account, credential.Credential) (credential.Credential, error)
	providers map[account.Provider]provider.Provider
	transport http.RoundTripper
	limits    forward.Limits
	maxOpen   int64
	log       *slog.Logger
	measure   func(metric.Request)
	advise    func(string) string
	now       func() time.Time

	catalog     catalogCache
	credentials credentialCache
	placements  placements
	kept        keptCounts
	tally       usage.Tally
	process     string // the name of this one among those that count usage
	told        objectsTold
	inFlight    gauge
	unbelieved  sync.Map // account.ID: of which it was said
	unopened    sync.Map // account.ID: whose credential does not open, and of which it was said
	health      healthCache
	open        atomic.Int64
	decoding    turns
	// storeFailedAt is when a request was last refused for the store; unix nanoseconds.
	storeFailedAt atomic.Int64
}

const defaultMaxOpen = 1000

// New returns a gateway. It contacts nobody.
func New(o Options) (*Gateway, error) {
	if o.OpenBox == nil && o.Box != nil {
		o.OpenBox = func(context.Context) (Box, error) { return o.Box, nil }
	}
	if o.Store == nil || o.OpenBox == nil || len(o.Providers) == 0 {
		return nil, errors.New("a gateway needs a store, a box and at least one provider")
	}
	if o.Limits == (forward.Limits{}) {
		o.Limits = forward.DefaultLimits
	}
	if o.Transport == nil {
		o.Transport = forward.NewTransport(o.Limits)
	}
	if o.MaxOpen == 0 {
		o.MaxOpen = defaultMaxOpen
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Advise == nil {
		o.Advise = func(text string) string { return text }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Gateway{
		store: o.Store, openBox: o.OpenBox, renew: o.Renew, providers: o.Providers, transport: o.Transport, limits: o.Limits,
		maxOpen: int64(o.MaxOpen), log: o.Log, measure: o.Measure, advise: o.Advise, now: o.Now,
		decoding: make(turns, mostDecoding), process: rand.Text(),
	}, nil
}

// InFlight returns how many requests each account is serving in this process.
func (g *Gateway) InFlight() map[account.ID]int { return g.inFlight.snapshot() }

// Close closes idle upstream connections. Requests that run are not disturbed.
func (g *Gateway) Close() {
	if t, ok := g.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// ServeHTTP serves one request. Whatever happens, the client hears an answer: a panic
// ends this request alone, and a path that answered nothing becomes a 500.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(g, w, r)
	defer x.finish()
	x.serve()
}
