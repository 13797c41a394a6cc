package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// rewriteAttempts bounds how often a record is rewritten against other writers.
const rewriteAttempts = 20

// rewrite writes what next makes of a record. r is the record as read: its key, its revision,
// and when the one that is written may be deleted. When another process wrote in between, next
// is called with what that wrote, and again is true. next returns a body, or nil where there is
// nothing to write; an error of next is returned as it is. what names the record in errors.
//
// It returns the record as written; the zero Record where nothing was.
func (s *Store) rewrite(ctx context.Context, what string, r Record, next func(stored Record, again bool) ([]byte, error)) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	stored := r
	for attempt := range rewriteAttempts {
		body, err := next(stored, attempt > 0)
		if err != nil || body == nil {
			return Record{}, err
		}
		stored, err = s.backend.Put(ctx, Record{Key: r.Key, Body: body, DeleteAfter: r.DeleteAfter}, Condition{Revision: stored.Revision})
		switch {
		case err == nil:
			return stored, nil
		case !errors.Is(err, ErrConflict):
			return Record{}, fmt.Errorf("write %s: %w", what, err)
		}
		if err := spread(ctx, attempt); err != nil {
			return Record{}, fmt.Errorf("write %s: %w: %w", what, ErrUnavailable, err)
		}
	}
	return Record{}, fmt.Errorf("write %s: %w", what, ErrConflict)
}

// spread waits a little before another attempt, longer each time, once it is clear that others
// write the same record.
func spread(ctx context.Context, attempt int) error {
	if attempt <= 2 {
		return nil
	}
	pause := time.NewTimer(time.Duration(rand.Int64N(int64(2*time.Millisecond) << min(attempt, 6))))
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put writes a record if a condition holds. Where it does not, it returns the one that is
// stored, and false. what names the record in errors.
func (s *Store) put(ctx context.Context, what string, r Record, cond Condition) (stored Record, ours bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	stored, err = s.backend.Put(ctx, r, cond)
	if err != nil && !errors.Is(err, ErrConflict) {
		return Record{}, false, fmt.Errorf("write %s: %w", what, err)
	}
	return stored, err == nil, nil
}

// reread reads a record and rewrites it.
func (s *Store) reread(ctx context.Context, what string, r Record, next func(stored Record) ([]byte, error)) (Record, error) {
	found, err := s.one(ctx, what, r.Key)
	if err != nil {
		return Record{}, err
	}
	found.Key, found.DeleteAfter = r.Key, r.DeleteAfter
	return s.rewrite(ctx, what, found, func(stored Record, _ bool) ([]byte, error) { return next(stored) })
}

// one reads a record; one that does not exist has revision 0.
func (s *Store) one(ctx context.Context, what string, key Key) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	found, err := s.backend.Get(ctx, []Key{key})
	if err != nil {
		return Record{}, fmt.Errorf("read %s: %w", what, err)
	}
	if len(found) == 0 {
		return Record{}, nil
	}
	return found[0], nil
}

// marshal encodes a value, or nothing where it is not worth writing.
func marshal(v any, worth bool) ([]byte, error) {
	if !worth {
		return nil, nil
	}
	return json.Marshal(v)
}
