package gateway

import "context"

// Decode takes a turn at decoding a body, as a request with a compressed one does.
func (g *Gateway) Decode(ctx context.Context) (leave func(), ok bool) { return g.decoding.enter(ctx) }

// MostDecoding is how many turns there are.
const MostDecoding = mostDecoding

// Remembered is how many accounts the gateway has a count of placements of, and how many an
// opened credential.
func (g *Gateway) Remembered() (counts, credentials int) {
	g.placements.mu.Lock()
	defer g.placements.mu.Unlock()
	g.credentials.mu.RLock()
	defer g.credentials.mu.RUnlock()
	return len(g.placements.seen), len(g.credentials.open)
}
