package store

import (
	"context"
	"encoding/json"
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
	winner, won, err := s.putPin(ctx, key, r, Condition{Revision: 0, ExpiredBy: now})
	if err == nil && !won && winner.Account == "" && winner.Revision > 0 {
		// What stands there cannot be read, and so is nobody's pin, however long it was to live.
		return s.putPin(ctx, key, r, Condition{Revision: winner.Revision})
	}
	return winner, won, err
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
	stored, ours, err := s.put(ctx, "pin", Record{
		Key: Key{KindPin, key}, Body: body, ExpiresAt: r.ExpiresAt, DeleteAfter: r.ExpiresAt.Add(pinHistory),
	}, cond)
	if err != nil || stored.Revision == 0 {
		return pin.Record{}, false, err
	}
	winner, err := s.decoded.pin(stored)
	return winner, ours, err
}

// EachPin calls each with every stored pin, ended ones too, in no order, and returns how many
// records could not be read as pins. It keeps none of them, so that a million take no more
// memory than a page of them. It is not for the request path.
func (s *Store) EachPin(ctx context.Context, each func(key string, p pin.Record)) (unreadable int, err error) {
	for r, err := range s.backend.List(ctx, KindPin) {
		if err != nil {
			return unreadable, fmt.Errorf("list pins: %w", err)
		}
		var p pin.Record
		if json.Unmarshal(r.Body, &p) != nil {
			unreadable++
			continue
		}
		p.Revision = r.Revision
		each(r.ID, p)
	}
	return unreadable, nil
}

// PinTally sums up all pins as of an instant.
func (s *Store) PinTally(ctx context.Context, now time.Time) (*pin.Tally, error) {
	t := pin.NewTally(now)
	unreadable, err := s.EachPin(ctx, func(_ string, p pin.Record) { t.Add(p) })
	t.Unreadable = unreadable
	return t, err
}

// Pins reads every stored pin by its key, ended ones too.
func (s *Store) Pins(ctx context.Context) (map[string]pin.Record, error) {
	pins := map[string]pin.Record{}
	_, err := s.EachPin(ctx, func(key string, p pin.Record) { pins[key] = p })
	return pins, err
}
