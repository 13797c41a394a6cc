package store

import (
	"context"

	"holdfast/internal/core/account"
)

// Snapshot is what a report needs: the catalog, the state of every account in it, and,
// where asked for, the sealed credentials, who served and the poll. It is read by
// several calls and is no snapshot in time.
type Snapshot struct {
	Catalog     CatalogRecord
	States      map[account.ID]StateRecord
	Credentials map[account.ID]SealedRecord
	Serving     map[account.Provider]ServingRecord
	Poll        Poll
}

// Snapshot reads what a report needs; whole adds credentials, who served and the poll.
// It is not for the request path.
func (s *Store) Snapshot(ctx context.Context, whole bool) (Snapshot, error) {
	v, err := s.Read(ctx, Query{Catalog: true, Poll: whole})
	if err != nil {
		return Snapshot{}, err
	}
	var ids []account.ID
	for _, a := range v.Catalog.Accounts {
		ids = append(ids, a.ID)
	}
	q := Query{States: ids}
	if whole {
		q.Credentials, q.Serving = ids, account.Providers
	}
	of, err := s.Read(ctx, q)
	if err != nil {
		return Snapshot{}, err
	}
	snap := Snapshot{Catalog: v.Catalog, States: of.States, Credentials: of.Credentials, Serving: of.Serving, Poll: v.Poll.Poll}
	return snap, nil
}
