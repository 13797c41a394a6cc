package store

import (
	"context"
	"encoding/json"
	"errors"
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
	stored, err := s.putLease(ctx, l, Condition{Revision: 0, ExpiredBy: now})
	if errors.Is(err, ErrConflict) && stored.ExpiresAt.After(until.Add(account.Ahead)) {
		// Leases of one thing are of one length, so its holder's clock was wrong.
		stored, err = s.putLease(ctx, l, Condition{Revision: stored.Generation})
	}
	if errors.Is(err, ErrConflict) {
		return stored, stored.Holder == holder && now.Before(stored.ExpiresAt), nil
	}
	return stored, err == nil, err
}

// ReleaseLease ends a lease at now, if it still is the one that was taken: another's, and
// one that was taken again since, stays. Releasing twice is no error.
func (s *Store) ReleaseLease(ctx context.Context, l Lease, now time.Time) error {
	cond := Condition{Revision: l.Generation}
	l.ExpiresAt = now
	if _, err := s.putLease(ctx, l, cond); err != nil && !errors.Is(err, ErrConflict) {
		return err
	}
	return nil
}

func (s *Store) putLease(ctx context.Context, l Lease, cond Condition) (Lease, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return Lease{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	// It is never tidied up: its revision, which is the generation, would begin anew.
	stored, err := s.backend.Put(ctx, Record{Key: Key{KindLease, l.For}, Body: body, ExpiresAt: l.ExpiresAt}, cond)
	if err != nil && !errors.Is(err, ErrConflict) {
		return Lease{}, fmt.Errorf("write lease: %w", err)
	}
	held := Lease{For: l.For, Generation: stored.Revision, ExpiresAt: stored.ExpiresAt}
	if derr := json.Unmarshal(stored.Body, &held); derr != nil && stored.Revision > 0 {
		return Lease{}, fmt.Errorf("decode %s of %s: %w", KindLease, l.For, derr)
	}
	return held, err
}
