package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/core/pin"
)

// pinHistory is how long an ended pin's counts are kept for the status.
const pinHistory = 24 * time.Hour

// ClaimPin makes a pin if the conversation has none that is live at now. Otherwise it
// returns the winner's pin and false: adopt it. A claim that fails with ErrUnavailable
// may have been applied; claiming again then returns our own pin as the winner's.
func (s *Store) ClaimPin(ctx context.Context, key string, r pin.Record, now time.Time) (pin.Record, bool, error) {
	return s.putPin(ctx, key, r, Condition{Revision: 0, ExpiredBy: now})
}

// ReplacePin writes a touched or moved pin if the stored one is still the one that next
// was made from. Otherwise it returns the stored pin and false: a late touch or move
// never undoes another's. The stored pin is the zero Record when it is gone.
func (s *Store) ReplacePin(ctx context.Context, key string, next pin.Record) (pin.Record, bool, error) {
	return s.putPin(ctx, key, next, Condition{Revision: next.Revision})
}

func (s *Store) putPin(ctx context.Context, key string, r pin.Record, cond Condition) (pin.Record, bool, error) {
	// The body must not tell a later end than the record, which is kept in milliseconds:
	// whoever reads the pin and whoever takes it over have to agree on the instant.
	r.ExpiresAt = r.ExpiresAt.Truncate(time.Millisecond)
	body, err := json.Marshal(r)
	if err != nil {
		return pin.Record{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	stored, err := s.backend.Put(ctx, Record{
		Key: Key{KindPin, key}, Body: body, ExpiresAt: r.ExpiresAt, DeleteAfter: r.ExpiresAt.Add(pinHistory),
	}, cond)
	if err != nil && !errors.Is(err, ErrConflict) {
		return pin.Record{}, false, fmt.Errorf("write pin: %w", err)
	}
	if stored.Revision == 0 {
		return pin.Record{}, false, nil
	}
	winner, derr := s.decoded.pin(stored)
	return winner, err == nil, derr
}

// Pins reads every stored pin by its key, ended ones too. It is not for the request path.
func (s *Store) Pins(ctx context.Context) (map[string]pin.Record, error) {
	pins := map[string]pin.Record{}
	for r, err := range s.backend.List(ctx, KindPin) {
		if err != nil {
			return nil, fmt.Errorf("list pins: %w", err)
		}
		p, err := s.decoded.pin(r)
		if err != nil {
			return nil, err
		}
		pins[r.ID] = p
	}
	return pins, nil
}
