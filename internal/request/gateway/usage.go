package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"holdfast/internal/core/usage"
	"holdfast/internal/provider"
)

// usageEvery is the least time between two writes of usage by requests of one process. What
// was counted since the last one is lost if the process is killed.
const usageEvery = time.Minute

// countUsage counts the request, and has what was counted written beside its end where that
// is due: a process that is frozen between requests has no other time for it.
// What shows no client key is nobody's use.
func (x *exchange) countUsage() {
	r := &x.report
	if x.key.ID == "" || x.req.Role != provider.Inference && r.usage.Prompt()+r.usage.Output == 0 {
		return
	}
	model := r.usage.Model
	if model == "" {
		model = x.req.Model
	}
	c := usage.Counts{
		Requests: 1, Input: r.usage.Input, CacheRead: r.usage.CacheRead, CacheWrite: r.usage.CacheWrite,
		Output: r.usage.Output, Reasoning: r.usage.Reasoning,
	}
	if x.w.status >= http.StatusBadRequest {
		c.Refused = 1
	}
	if x.pinSaid == "moved" {
		c.Moved, c.Reread = 1, c.Input+c.CacheWrite
	}
	now := x.g.now()
	x.g.tally.Count(now, usage.Who{
		Account: r.account, Model: usage.Name(model), Key: x.key.Name, Agent: usage.AgentOf(x.r.UserAgent()),
	}, c)
	if x.g.tally.Due(now, usageEvery) {
		x.beside("keep usage", x.g.keepUsage)
	}
}

// keepUsage writes what was counted. A batch that is not written is written the next time.
func (g *Gateway) keepUsage(ctx context.Context) error {
	for _, b := range g.tally.Give(g.now()) {
		if err := g.store.AddUsage(ctx, g.process, b); err != nil {
			return fmt.Errorf("keep usage: %w", err)
		}
		g.tally.Kept(b.Number)
	}
	return nil
}
