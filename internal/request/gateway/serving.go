package gateway

import (
	"context"
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/placement"
	"holdfast/internal/core/serving"
	"holdfast/internal/provider"
	"holdfast/internal/store"
)

// servingSeen is who was read to serve at the request's provider.
type servingSeen struct {
	store.ServingRecord
	// asked is false where nobody looked: serving is a matter of policy order, and of
	// requests that are conversations.
	asked  bool
	readAt time.Time // when the read began
}

// servingOf are the providers to read the serving record of: the request's own, if there is
// a need to know.
func (x *exchange) servingOf() []account.Provider {
	if x.req.Role != provider.Inference || x.config.PolicyOf(x.name).Name != catalog.Order {
		return nil
	}
	return []account.Provider{x.name}
}

// sawServing keeps what a read that began at an instant told of servingOf.
func (x *exchange) sawServing(q store.Query, v store.View, at time.Time) {
	x.serving = servingSeen{v.Serving[x.name], len(q.Serving) > 0, at}
}

// recordServing writes down, beside the answer, that serving changed, if the pick that a
// plan came from shows it. Where another process was faster there is nothing to do, and
// where the write fails the next pick sees the same.
func (x *exchange) recordServing(p placement.Plan) {
	if p.Decision == nil || !x.serving.asked {
		return
	}
	view := serving.View{
		Now: x.sit.Now, ReadAt: x.serving.readAt, Catalog: x.config.Revision,
		Policy: x.sit.Policy, Settings: x.sit.Settings, Candidates: slices.Clone(x.sit.Candidates),
	}
	change := func(r serving.Record) (serving.Record, bool) { return r.Next(view) }
	base := x.serving.ServingRecord
	if _, worth := change(base.Record); !worth {
		return
	}
	name := x.name
	x.beside("record who serves", func(ctx context.Context) error {
		_, err := x.g.store.ChangeServing(ctx, name, base, change)
		return err
	})
}
