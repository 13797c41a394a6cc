package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/pin"
	"holdfast/internal/status"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
)

// hello answers a client that warms its connection up. It says nothing about accounts.
func (x *exchange) hello() {
	x.report.outcome = "hello"
	h := x.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Holdfast-Request", x.id)
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write([]byte("holdfast\n"))
	}
}

// healthFor is how long a look at the health is good for: it needs no credentials, so it
// must not cost a store read each time.
const healthFor = time.Second

// healthCache is what the last look found, and the one that is going on: however many ask
// meanwhile, they wait for the same.
type healthCache struct {
	mu      sync.Mutex
	at      time.Time
	healthy bool
	looking chan struct{} // closed at the end of the look; nil while nobody looks
}

// of returns what a look that is young enough found, or looks.
func (c *healthCache) of(ctx context.Context, now func() time.Time, look func(context.Context) bool) bool {
	c.mu.Lock()
	if now().Sub(c.at) < healthFor {
		defer c.mu.Unlock()
		return c.healthy
	}
	looking := c.looking
	if looking == nil {
		looking = make(chan struct{})
		c.looking = looking
		go func(ctx context.Context) { // the one who asked first may leave, and others wait
			healthy := false
			defer func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.healthy, c.at, c.looking = healthy, now(), nil
				close(looking)
			}()
			healthy = look(ctx)
		}(context.WithoutCancel(ctx))
	}
	c.mu.Unlock()
	select {
	case <-looking:
	case <-ctx.Done():
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.healthy
}

// healthCheck answers 200 when the store answers and an account could take a new
// conversation with a default model now, as picking itself sees it; else 503.
func (x *exchange) healthCheck() {
	x.report.outcome = "health"
	healthy := x.g.health.of(x.r.Context(), x.g.now, x.g.healthy)
	code, text := http.StatusOK, "ok\n"
	if !healthy {
		code, text = http.StatusServiceUnavailable, "unavailable\n"
	}
	x.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	x.w.WriteHeader(code)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write([]byte(text))
	}
}

// storeTrouble is how long a request that was refused for the store speaks against the
// health: reads may go on working when writes do not.
const storeTrouble = 10 * time.Second

func (g *Gateway) healthy(ctx context.Context) bool {
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("panic", "panic", p, "in", "look at the health", "stack", string(debug.Stack()))
		}
	}()
	if failed := g.storeFailedAt.Load(); failed != 0 && g.now().Sub(time.Unix(0, failed)) < storeTrouble {
		return false
	}
	snap, err := g.store.Snapshot(ctx, false)
	if err != nil {
		g.log.Warn("look at the health", "error", err)
		return false
	}
	settings, now := snap.Catalog.Settings(), g.now()
	snap.States = store.Together(now, snap.Catalog.Accounts, snap.States)
	for p := range g.providers {
		serves := func(c pick.Candidate) bool { return pick.ServesDefault(now, settings, c) }
		if slices.ContainsFunc(pick.Candidates(snap.Catalog.Of(p), store.Known(snap.States), ""), serves) {
			return true
		}
	}
	return false
}

// status answers with the status JSON, for admin keys.
func (x *exchange) status() {
	if !x.authenticate() {
		return
	}
	var err error
	if x.config, err = x.g.configurationWithin(x.r.Context(), catalogFresh); err != nil {
		x.storeFailed(err)
		return
	}
	var ok bool
	if x.key, ok = x.config.key(x.hashes); !ok || !x.key.Admin {
		r := unauthorized(unknownKey)
		if ok {
			r.Status = http.StatusForbidden
		}
		r.Message = "holdfast: the status needs an admin client key. `holdfast key create NAME --admin` makes one."
		x.refuse(r)
		return
	}
	snap, err := x.g.store.Snapshot(x.r.Context(), true)
	if err != nil {
		x.storeFailed(err)
		return
	}
	vault.Vault{Store: x.g.store, Box: x.box}.Unopened(snap.States, snap.Credentials)
	now := x.g.now()
	pins, err := x.g.store.PinTally(x.r.Context(), now)
	if err != nil {
		x.storeFailed(err)
		return
	}
	body, err := json.MarshalIndent(statusOf(snap, pins, x.g.InFlight(), now), "", "  ")
	if err != nil {
		x.report.err = err
		x.refuse(internalFault(x.id))
		return
	}
	x.report.outcome = "status"
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Cache-Control", "no-store")
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(append(body, '\n'))
	}
}

func statusOf(s store.Snapshot, pins *pin.Tally, inFlight map[account.ID]int, now time.Time) status.Report {
	if inFlight == nil {
		inFlight = map[account.ID]int{}
	}
	return status.Of(status.Input{Now: now, Catalog: *s.Catalog.Catalog, States: s.States, Credentials: s.Credentials, Pins: pins, Serving: s.Serving, Poll: s.Poll, InFlight: inFlight})
}
