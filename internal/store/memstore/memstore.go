// Package memstore keeps records in memory, for tests.
//
// A Backend behaves as the store's contract says, races included, and forgets everything
// with the process. It never deletes a record on its own, and nothing can make it slow
// or unavailable but an ended context: tests of such trouble wrap it.
package memstore

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"holdfast/internal/store"
)

var _ store.Backend = (*Backend)(nil)

// Backend is an in-memory store. Every holder of the pointer shares the records, so one
// Backend also stands for the same store opened by several processes.
type Backend struct {
	mu      sync.Mutex
	records map[store.Key]store.Record
}

// New returns an empty store.
func New() *Backend { return &Backend{records: map[store.Key]store.Record{}} }

// Get implements store.Backend.
func (b *Backend) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []store.Record
	for _, key := range keys {
		if r, ok := b.records[key]; ok {
			found = append(found, r)
		}
	}
	return found, nil
}

// Put implements store.Backend.
func (b *Backend) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	if err := ended(ctx); err != nil {
		return store.Record{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	stored := b.records[r.Key]
	expired := !cond.ExpiredBy.IsZero() && !stored.ExpiresAt.IsZero() &&
		stored.ExpiresAt.UnixMilli() <= cond.ExpiredBy.UnixMilli()
	if stored.Revision != cond.Revision && !expired {
		return stored, store.ErrConflict
	}
	next := store.Record{Key: r.Key, Revision: stored.Revision + 1, Body: slices.Clone(r.Body), Count: stored.Count}
	if !r.ExpiresAt.IsZero() {
		next.ExpiresAt = time.UnixMilli(r.ExpiresAt.UnixMilli()).UTC()
	}
	b.records[r.Key] = next
	return next, nil
}

// Add implements store.Backend.
func (b *Backend) Add(ctx context.Context, key store.Key, limit int64) (int64, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.records[key]
	if limit > 0 && r.Count >= limit {
		return r.Count, store.ErrConflict
	}
	r.Key = key
	r.Count++
	b.records[key] = r
	return r.Count, nil
}

// Delete implements store.Backend.
func (b *Backend) Delete(ctx context.Context, key store.Key, revision int64) error {
	if err := ended(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := b.records[key]; ok && r.Revision != revision {
		return store.ErrConflict
	}
	delete(b.records, key)
	return nil
}

// List implements store.Backend.
func (b *Backend) List(ctx context.Context, kind store.Kind) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := ended(ctx); err != nil {
			yield(store.Record{}, err)
			return
		}
		b.mu.Lock()
		var all []store.Record
		for key, r := range b.records {
			if key.Kind == kind {
				all = append(all, r)
			}
		}
		b.mu.Unlock()
		for _, r := range all {
			if err := ended(ctx); err != nil {
				yield(store.Record{}, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Close implements store.Backend. It does nothing: other holders go on.
func (b *Backend) Close() error { return nil }

func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}
