package gateway

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/store"
)

// Ages of the catalog in memory. A command's change is to be seen within two seconds.
const (
	// catalogFresh is the age from which a request's read brings the catalog along.
	catalogFresh = time.Second
	// unknownKeyPause bounds how often keys that are not known make us read it.
	unknownKeyPause = 250 * time.Millisecond
)

// configuration is one revision of the catalog, as requests use it.
type configuration struct {
	store.CatalogRecord
	settings catalog.Settings
	accounts map[account.Provider][]account.Account
	ids      map[account.Provider][]account.ID
}

func newConfiguration(rec store.CatalogRecord) *configuration {
	c := &configuration{
		CatalogRecord: rec, settings: rec.Settings(),
		accounts: map[account.Provider][]account.Account{}, ids: map[account.Provider][]account.ID{},
	}
	for _, a := range rec.Accounts {
		c.accounts[a.Provider] = append(c.accounts[a.Provider], a)
		c.ids[a.Provider] = append(c.ids[a.Provider], a.ID)
	}
	return c
}

// key finds the client key among the secrets that a request showed.
func (c *configuration) key(hashes []string) (catalog.ClientKey, bool) {
	for _, h := range hashes {
		if k, ok := clientkey.Find(c.Keys, h); ok {
			return k, true
		}
	}
	return catalog.ClientKey{}, false
}

// catalogCache holds the newest configuration read.
type catalogCache struct {
	current atomic.Pointer[configuration]
	readAt  atomic.Int64 // unix nanoseconds of the read's start
	reading sync.Mutex   // one read at a time for unknown keys
}

// age is how old the configuration in memory is; very old when none exists.
func (c *catalogCache) age(now time.Time) time.Duration {
	if c.current.Load() == nil {
		return 1<<63 - 1
	}
	return now.Sub(time.Unix(0, c.readAt.Load()))
}

// offer takes a catalog that was read at an instant and returns the configuration to use.
func (c *catalogCache) offer(rec store.CatalogRecord, at time.Time) *configuration {
	current := c.current.Load()
	if current == nil || current.Revision != rec.Revision {
		if current != nil && current.Revision > rec.Revision && at.UnixNano() < c.readAt.Load() {
			return current // a read that another, later one has overtaken
		}
		current = newConfiguration(rec)
		c.current.Store(current)
	}
	for {
		seen := c.readAt.Load()
		if at.UnixNano() <= seen || c.readAt.CompareAndSwap(seen, at.UnixNano()) {
			return current
		}
	}
}

// Prepare reads the configuration before the first request comes, which then need not wait for
// it. Where that fails, the first request reads it and hears why.
func (g *Gateway) Prepare(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("panic", "panic", p, "in", "prepare", "stack", string(debug.Stack()))
		}
	}()
	_, _ = g.configurationWithin(ctx, catalogFresh)
}

// configurationWithin returns a configuration no older than age, reading it if need be.
func (g *Gateway) configurationWithin(ctx context.Context, age time.Duration) (*configuration, error) {
	if g.catalog.age(g.now()) <= age {
		return g.catalog.current.Load(), nil
	}
	g.catalog.reading.Lock()
	defer g.catalog.reading.Unlock()
	now := g.now()
	if g.catalog.age(now) <= age {
		return g.catalog.current.Load(), nil
	}
	v, err := g.store.Read(ctx, store.Query{Catalog: true})
	if err != nil {
		return nil, err
	}
	return g.catalog.offer(v.Catalog, now), nil
}

// credentialCache holds opened credentials.
type credentialCache struct {
	mu   sync.RWMutex
	open map[account.ID]heldCredential
}
