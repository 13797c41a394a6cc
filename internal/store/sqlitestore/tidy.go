package sqlitestore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/store"
)

// Tidying deletes what is past its DeleteAfter. Nothing depends on it but the size of the
// file, so it has no index, which every touch of a pin would have to pay for: it looks
// through all records, a batch at a time.
const (
	tidyFirst = 10 * time.Minute // after opening: a command is long over by then
	tidyEvery = time.Hour
	tidyBatch = 200 // records looked at in one turn: about a millisecond
)

type tidying struct {
	next   atomic.Int64 // when it is due, in nanoseconds since the epoch
	ctx    context.Context
	cancel context.CancelFunc
	rounds sync.WaitGroup
}

func (t *tidying) begin(now time.Time) {
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.next.Store(now.Add(tidyFirst).UnixNano())
}

func (t *tidying) end() {
	t.cancel()
	t.rounds.Wait()
}

// tidyIfDue starts a round in the background if the last one is long ago. An error ends
// the round and is dropped: the next one comes, and calls meet the same trouble and tell.
func (b *Backend) tidyIfDue(now time.Time) {
	due := b.tidying.next.Load()
	if now.UnixNano() < due || !b.tidying.next.CompareAndSwap(due, now.Add(tidyEvery).UnixNano()) {
		return
	}
	b.tidying.rounds.Go(func() { _ = b.tidyAll(b.tidying.ctx, now) })
}

// tidyAll looks through all records once.
func (b *Backend) tidyAll(ctx context.Context, now time.Time) error {
	for after := (store.Key{}); ; {
		last, err := run(ctx, b, func() (store.Key, error) { return b.tidySome(after, now) })
		if err != nil || last == (store.Key{}) {
			return err
		}
		after = last
	}
}

// tidySome looks at a batch of the records after a key, and returns the last of them, or
// no key after the last batch.
func (b *Backend) tidySome(after store.Key, now time.Time) (store.Key, error) {
	rows, err := b.sweep.Query(after.Kind, after.ID, tidyBatch)
	if err != nil {
		return store.Key{}, err
	}
	defer rows.Close()
	var old []store.Key
	var last store.Key
	looked := 0
	for ; rows.Next(); looked++ {
		var deletable *int64
		if err := rows.Scan(&last.Kind, &last.ID, &deletable); err != nil {
			return store.Key{}, err
		}
		if deletable != nil && *deletable < now.UnixMilli() {
			old = append(old, last)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return store.Key{}, err
	}
	if looked < tidyBatch {
		last = store.Key{}
	}
	if len(old) == 0 {
		return last, nil
	}
	return last, b.transaction("", func() error {
		for _, key := range old { // conditional: a pin may have been claimed again meanwhile
			if _, err := b.tidy.Exec(key.Kind, key.ID, now.UnixMilli()); err != nil {
				return err
			}
		}
		b.known.forget()
		return nil
	})
}
