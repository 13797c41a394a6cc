package store

import (
	"context"
	"errors"
	"fmt"

	"holdfast/internal/core/account"
)

// Forget removes all that is kept of an account: credential, renewal, state, clock and
// history. It is for accounts that have left the catalog; forgetting twice is no error. A
// round that runs meanwhile may leave a point of history, which ends by itself.
func (s *Store) Forget(ctx context.Context, id account.ID) error {
	err := s.forgetAll(ctx, id, Key{KindCredential, string(id)}, Key{KindRenewal, string(id)}, Key{KindLease, RenewalLease(id)})
	if err != nil {
		return fmt.Errorf("forget account: %w", err)
	}
	return nil
}

// ForgetState removes what an account's answers and looks taught, its history, its clock and
// its count of placements, as for an account never seen. It is for an account whose
// credential is now somebody else's.
func (s *Store) ForgetState(ctx context.Context, id account.ID) error {
	if err := s.forgetAll(ctx, id); err != nil {
		return fmt.Errorf("forget an account's state: %w", err)
	}
	return nil
}

// forgetAll removes keys, and after them what was read of an account.
func (s *Store) forgetAll(ctx context.Context, id account.ID, keys ...Key) error {
	last, err := s.forgetClock(ctx, id)
	if err != nil {
		return err
	}
	keys = append(keys, Key{KindState, string(id)})
	if !last.IsZero() {
		keys = append(keys, historyKeys(id, last.Add(-HistoryFor-day), last)...)
	}
	for _, key := range keys {
		if err := s.forget(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) forget(ctx context.Context, key Key) error {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	for range rewriteAttempts {
		records, err := s.backend.Get(ctx, []Key{key})
		if err != nil || len(records) == 0 {
			return err
		}
		if err := s.backend.Delete(ctx, key, records[0].Revision); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return ErrConflict
}
