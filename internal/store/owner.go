package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/core/object"
)

// ClaimOwner notes whose an object is, unless a record that is live at now names an
// owner already: what was seen first stays. It returns the record as stored and whether it is
// ours. A claim that fails with ErrUnavailable may have been applied; claiming again then
// returns our own.
func (s *Store) ClaimOwner(ctx context.Context, key string, r object.Record, now time.Time) (object.Record, bool, error) {
	return s.putOwner(ctx, key, r, Condition{Revision: 0, ExpiredBy: now})
}

// ReplaceOwner writes a touched record if the stored one is still the one that next was
// made from. Otherwise it returns the stored one and false; that is the zero Record when
// it is gone.
func (s *Store) ReplaceOwner(ctx context.Context, key string, next object.Record) (object.Record, bool, error) {
	return s.putOwner(ctx, key, next, Condition{Revision: next.Revision})
}

func (s *Store) putOwner(ctx context.Context, key string, r object.Record, cond Condition) (object.Record, bool, error) {
	// As for pins: reader and taker have to agree on the instant.
	r.ExpiresAt = r.ExpiresAt.Truncate(time.Millisecond)
	body, err := json.Marshal(r)
	if err != nil {
		return object.Record{}, false, err
	}
	stored, ours, err := s.put(ctx, "an owner", Record{Key: Key{KindOwner, key}, Body: body, ExpiresAt: r.ExpiresAt, DeleteAfter: r.ExpiresAt}, cond)
	if err != nil || stored.Revision == 0 {
		return object.Record{}, false, err
	}
	winner, err := s.decoded.owner(stored)
	return winner, ours, err
}

// ForgetOwner removes the record of an object that is gone, if it is still the one given.
// Forgetting twice is no error, and neither is one that was changed: it then expires.
func (s *Store) ForgetOwner(ctx context.Context, key string, r object.Record) error {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	if err := s.backend.Delete(ctx, Key{KindOwner, key}, r.Revision); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("forget an owner: %w", err)
	}
	return nil
}
