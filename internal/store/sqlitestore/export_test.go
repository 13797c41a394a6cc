package sqlitestore

import (
	"context"
	"time"

	"holdfast/internal/store"
)

// Hold calls f as any call uses the connection.
func (b *Backend) Hold(ctx context.Context, f func()) error {
	_, err := run(ctx, b, func() (struct{}, error) { f(); return struct{}{}, nil })
	return err
}

// Exec runs a statement on the connection.
func (b *Backend) Exec(ctx context.Context, query string) error {
	_, err := run(ctx, b, func() (struct{}, error) { return struct{}{}, b.exec(query) })
	return err
}

// FailAfter writes a record in a transaction that then fails with err.
func (b *Backend) FailAfter(ctx context.Context, r store.Record, err error) error {
	_, got := run(ctx, b, func() (struct{}, error) {
		return struct{}{}, b.transaction(r.Kind, func() error {
			written := store.Record{Key: r.Key}
			if err := scan(b.put.QueryRow(r.Kind, r.ID, r.Body, nil, nil, r.Revision, nil), &written); err != nil {
				return err
			}
			b.known.note(written)
			return err
		})
	})
	return got
}

// MakeTable makes the table as Open does when it found a new file.
func (b *Backend) MakeTable(ctx context.Context) error {
	_, err := run(ctx, b, func() (struct{}, error) { return struct{}{}, b.makeTable() })
	return err
}

// Number runs a query on the connection.
func (b *Backend) Number(ctx context.Context, query string) (int64, error) {
	return run(ctx, b, func() (n int64, err error) {
		err = b.conn.QueryRowContext(context.Background(), query).Scan(&n)
		return n, err
	})
}

// TidyAll runs a round of tidying at an instant.
func (b *Backend) TidyAll(ctx context.Context, now time.Time) error { return b.tidyAll(ctx, now) }

// MakeTidyDue lets the next write start a round.
func (b *Backend) MakeTidyDue() { b.tidying.next.Store(0) }

// WaitTidied waits for rounds that have begun.
func (b *Backend) WaitTidied() { b.tidying.rounds.Wait() }

// KnownBytes is how much is kept in memory.
func (b *Backend) KnownBytes(ctx context.Context) (int, error) {
	return run(ctx, b, func() (int, error) { return b.known.bytes, nil })
}

// Limits, for tests to reach.
const (
	KnownLimit = knownBytes
	Batch      = tidyBatch
	Version    = schemaVersion
)
