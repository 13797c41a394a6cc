package gateway

import "context"

// Decode takes a turn at decoding a body, as a request with a compressed one does.
func (g *Gateway) Decode(ctx context.Context) (leave func(), ok bool) { return g.decoding.enter(ctx) }

// MostDecoding is how many turns there are.
const MostDecoding = mostDecoding
