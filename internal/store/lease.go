package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/internal/core/account"
)

// Lease is the right, for a limited time, to be the one that does something.
type Lease struct {
	// For is what may be done, such as "renew/" and an account's id.
	For string `json:"-"`
	// Holder is who may do it: an id of one user of leases, which takes one at a time of
	// each.
	Holder string `json:"holder"`
	// Generation rises with every take and every release, and survives them: of two
	// leases for the same, the later one's is higher. It fences writes.
	Generation int64 `json:"-"`
	// ExpiresAt is when anybody may take it; in whole milliseconds.
	ExpiresAt time.Time `json:"-"`
}

// RenewalLease is what the lease of renewing an account's login is for.
func RenewalLease(id account.ID) string { return "renew/" + string(id) }

// TakeLease takes a lease until an instant, if nobody holds one that is live at now: at
// its very end a lease is over. Otherwise it returns the one that is held and false. A
// take that fails with ErrUnavailable may have been applied; taking again then returns the
// lease as ours, since it is its holder's.
//
// A lease alone does not keep two from acting: its holder can be frozen beyond its end and
// not know. What must not happen twice has to be written down, conditionally, besides.
func (s *Store) TakeLease(ctx context.Context, what, holder string, now, until time.Time) (Lease, bool, error) {
	l := Lease{For: what, Holder: holder, ExpiresAt: until}
	stored, ours, err := s.putLease(ctx, l, Condition{Revision: 0, ExpiredBy: now})
	if err == nil && !ours && stored.ExpiresAt.After(until.Add(account.Ahead)) {
		// Leases of one thing are of one length, so its holder's clock was wrong.
		stored, ours, err = s.putLease(ctx, l, Condition{Revision: stored.Generation})
	}
	return stored, err == nil && (ours || stored.Holder == holder && now.Before(stored.ExpiresAt)), err
}

// ReleaseLease ends a lease at now, if it still is the one that was taken: another's, and
// one that was taken again since, stays. Releasing twice is no error.
func (s *Store) ReleaseLease(ctx context.Context, l Lease, now time.Time) error {
	cond := Condition{Revision: l.Generation}
	l.ExpiresAt = now
	_, _, err := s.putLease(ctx, l, cond)
	return err
}

func (s *Store) putLease(ctx context.Context, l Lease, cond Condition) (Lease, bool, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return Lease{}, false, err
	}
	// It is never tidied up: its revision, which is the generation, would begin anew.
	stored, ours, err := s.put(ctx, "lease", Record{Key: Key{KindLease, l.For}, Body: body, ExpiresAt: l.ExpiresAt}, cond)
	if err != nil {
		return Lease{}, false, err
	}
	held := Lease{For: l.For, Generation: stored.Revision, ExpiresAt: stored.ExpiresAt}
	if err := json.Unmarshal(stored.Body, &held); err != nil && stored.Revision > 0 {
		return Lease{}, false, fmt.Errorf("decode %s of %s: %w", KindLease, l.For, err)
	}
	return held, ours, nil
}
