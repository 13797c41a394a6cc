package upstreamtest

import "sync"

// Gate holds answers until a test lets them go. It serves any number of answers; once
// released it stays open. Make one with NewGate.
type Gate struct {
	reached, released chan struct{}
	reach, release    sync.Once
}

// NewGate makes a closed gate.
func NewGate() *Gate {
	return &Gate{reached: make(chan struct{}), released: make(chan struct{})}
}

// Reached is closed when the first answer stands at the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Release opens the gate for good.
func (g *Gate) Release() { g.release.Do(func() { close(g.released) }) }

// wait blocks until the gate opens; false means that the client left or the upstream
// closed first.
func (g *Gate) wait(r *Request, closed <-chan struct{}) bool {
	g.reach.Do(func() { close(g.reached) })
	select {
	case <-g.released:
		return true
	case <-r.left:
		return false
	case <-closed:
		return false
	}
}
