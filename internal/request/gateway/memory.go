package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/pick"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
)

// heldCredential is an opened credential with the revision it was read at.
type heldCredential struct {
	credential.Credential
	revision int64
}

func (c *credentialCache) get(id account.ID) (heldCredential, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h, ok := c.open[id]
	return h, ok
}

func (c *credentialCache) put(id account.ID, h heldCredential) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[account.ID]heldCredential{}
	}
	if old, ok := c.open[id]; !ok || h.Generation > old.Generation || (h.Generation == old.Generation && h.revision >= old.revision) {
		c.open[id] = h
	}
	// Only newer secrets push older ones out of package hidden. With each that comes, those
	// that are still in use are remembered anew.
	for _, held := range c.open {
		held.Hide()
	}
}

// missing returns the ids whose credential is not in memory.
func (c *credentialCache) missing(ids []account.ID) []account.ID {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []account.ID
	for _, id := range ids {
		if _, ok := c.open[id]; !ok {
			out = append(out, id)
		}
	}
	return out
}

// keep drops the credentials of accounts that are not among those given.
func (c *credentialCache) keep(accounts []account.Account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.open, func(id account.ID, _ heldCredential) bool {
		return !slices.ContainsFunc(accounts, func(a account.Account) bool { return a.ID == id })
	})
}

// hold opens sealed credentials into memory, and drops those of accounts that were removed.
// It returns the accounts whose credential does not open.
func (x *exchange) hold(sealed map[account.ID]store.SealedRecord) (unopened []account.ID) {
	v := vault.Vault{Store: x.g.store, Box: x.box}
	for id, record := range sealed {
		c, err := v.Open(id, record)
		if err != nil {
			unopened = append(unopened, id)
			if _, said := x.g.unopened.LoadOrStore(id, true); !said {
				x.g.log.Error("the stored credential of an account cannot be opened; log in to it again", "account", x.nameOf(id), "error", err)
			}
			continue
		}
		x.g.credentials.put(id, heldCredential{c, record.Revision})
	}
	if len(sealed) > 0 {
		x.g.credentials.keep(x.config.Accounts)
	}
	return unopened
}

// nameOf is the name of an account, for the log.
func (x *exchange) nameOf(id account.ID) string {
	for _, a := range x.config.Accounts {
		if a.ID == id {
			return a.Name
		}
	}
	return string(id)
}

// credentialOf returns an account's credential of at least a generation, from memory or
// read anew. It is false when the account has none.
func (x *exchange) credentialOf(id account.ID, generation int64) (credential.Credential, bool, error) {
	if h, ok := x.g.credentials.get(id); ok && h.Generation >= generation {
		return h.Credential, true, nil
	}
	return x.rereadCredential(id)
}

func (x *exchange) rereadCredential(id account.ID) (credential.Credential, bool, error) {
	record, err := x.g.store.Credential(x.r.Context(), id)
	if err != nil || record.Revision == 0 {
		return credential.Credential{}, false, err
	}
	if len(x.hold(map[account.ID]store.SealedRecord{id: record})) > 0 {
		return credential.Credential{}, false, nil
	}
	h, _ := x.g.credentials.get(id)
	return h.Credential, true, nil
}

// placements knows the conversations that this process has placed and whose count may not
// be in what a concurrent request read. Without it, requests that come together would all
// pick by the same counts. Processes do not see each other's until the store does: two of
// them may place a few conversations on the same account at the same instant, which the
// next picks make up for.
type placements struct {
	mu   sync.Mutex
	seen map[account.ID]placedCount
}

// placedCount is how many conversations an account has by this process's knowledge.
type placedCount struct {
	n int64
	// agreed is when the store last had as many, or when the count began.
	agreed time.Time
}

// aheadFor is how long this process's count may be above the store's. A placement is in the
// store within the time of a call; a count that stays above belongs to an account that was
// removed, or whose count the owner's new login began anew.
const aheadFor = time.Minute

// pick chooses with counts that include this process's own, and counts the choice.
func (p *placements) pick(now time.Time, cs []pick.Candidate, choose func([]pick.Candidate) (int, bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cs {
		if own, ok := p.seen[c.Account.ID]; ok && c.Placed >= own.n {
			p.seen[c.Account.ID] = placedCount{c.Placed, now}
		}
	}
	maps.DeleteFunc(p.seen, func(_ account.ID, own placedCount) bool { return now.Sub(own.agreed) > aheadFor })
	for i := range cs {
		cs[i].Placed = max(cs[i].Placed, p.seen[cs[i].Account.ID].n)
	}
	i, counts := choose(cs)
	if !counts {
		return
	}
	if p.seen == nil {
		p.seen = map[account.ID]placedCount{}
	}
	own := p.seen[cs[i].Account.ID]
	if own.agreed.IsZero() {
		own.agreed = now
	}
	own.n = cs[i].Placed + 1
	p.seen[cs[i].Account.ID] = own
}

// correct takes the store's count.
func (p *placements) correct(now time.Time, id account.ID, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[account.ID]placedCount{}
	}
	if n >= p.seen[id].n {
		p.seen[id] = placedCount{n, now}
	}
}

// maxKept bounds the conversations whose counts wait for a touch.
const maxKept = 10_000

// keptCounts counts the requests that found their pin since its last touch; the touch
// carries them, so that counting costs no write.
type keptCounts struct {
	mu sync.Mutex
	n  map[string]int64
}

func (k *keptCounts) add(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n == nil || len(k.n) >= maxKept {
		k.n = map[string]int64{} // counts are for the status alone; losing some is better than growing
	}
	k.n[key]++
}

// put counts n requests that a write did not take with it.
func (k *keptCounts) put(key string, n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n == nil {
		k.n = map[string]int64{}
	}
	k.n[key] += n
}

func (k *keptCounts) take(key string) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.n[key]
	delete(k.n, key)
	return n
}

func (k *keptCounts) keys() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.n))
}

// flushAtOnce is how many pins one read of Flush brings.
const flushAtOnce = 50

// Flush writes what was counted or noted and is not stored: usage, events, and the requests
// that found their pin since its last touch, for the status. What cannot be written stays in
// memory for the next time. Without Flush usage is written by the next request that ends a
// minute after the last time; the others come with the next touch, and of a conversation that
// ends before that not at all. A process that lives should call it now and then and before it
// ends.
func (g *Gateway) Flush(ctx context.Context) error {
	return errors.Join(g.keepUsage(ctx), g.store.WriteEvents(ctx, g.now()), g.flushKept(ctx))
}

func (g *Gateway) flushKept(ctx context.Context) error {
	for keys := range slices.Chunk(g.kept.keys(), flushAtOnce) {
		v, err := g.store.Read(ctx, store.Query{Pins: keys})
		if err != nil {
			return fmt.Errorf("flush counts: %w", err)
		}
		for _, key := range keys {
			n := g.kept.take(key)
			p, ok := v.Pins[key]
			if !ok || n == 0 {
				continue
			}
			_, won, err := g.store.ReplacePin(ctx, key, p.Counted(n, g.now()))
			if err != nil || !won { // a race that was lost is made up for the next time
				g.kept.put(key, n)
			}
			if err != nil {
				return fmt.Errorf("flush counts: %w", err)
			}
		}
	}
	return nil
}

// gauge counts what is going on per account.
type gauge struct {
	mu sync.Mutex
	n  map[account.ID]int
}

// enter counts one in; the function it returns counts it out, once.
func (g *gauge) enter(id account.ID) (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n == nil {
		g.n = map[account.ID]int{}
	}
	g.n[id]++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.n[id]--; g.n[id] == 0 {
			delete(g.n, id)
		}
	})
}

func (g *gauge) snapshot() map[account.ID]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.n)
}
