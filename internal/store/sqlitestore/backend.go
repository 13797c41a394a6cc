package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"holdfast/internal/store"
)

// statements are the prepared ones; all belong to the one connection.
type statements struct {
	version, get, put, add, delete, list *sql.Stmt
	begin, commit, rollback              *sql.Stmt
	sweep, tidy                          *sql.Stmt
}

const columns = `revision, body, expires_ms, count`

func (st *statements) all() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		// Changes with every change of the file by others, and not with our own.
		&st.version: `PRAGMA data_version`,
		&st.get:     `SELECT ` + columns + ` FROM record WHERE kind=? AND id=?`,
		// ?6 is the revision and ?7 the instant of the condition. Without a record there is
		// nothing to insert unless revision 0 is asked for.
		&st.put: `INSERT INTO record (kind, id, revision, body, expires_ms, delete_ms, count)
			SELECT ?1, ?2, 1, ?3, ?4, ?5, 0 WHERE ?6=0 OR EXISTS (SELECT 1 FROM record WHERE kind=?1 AND id=?2)
			ON CONFLICT (kind, id) DO UPDATE SET revision=revision+1, body=excluded.body, expires_ms=excluded.expires_ms, delete_ms=excluded.delete_ms
			WHERE revision=?6 OR expires_ms<=?7
			RETURNING ` + columns,
		&st.add: `INSERT INTO record (kind, id, revision, body, count) VALUES (?1, ?2, 0, x'', 1)
			ON CONFLICT (kind, id) DO UPDATE SET count=count+1 WHERE ?3<=0 OR count<?3
			RETURNING ` + columns,
		&st.delete: `DELETE FROM record WHERE kind=? AND id=? AND revision=?`,
		&st.list:   `SELECT id, ` + columns + ` FROM record WHERE kind=? AND id>? ORDER BY id LIMIT ?`,
		&st.sweep:  `SELECT kind, id, delete_ms FROM record WHERE (kind, id)>(?, ?) ORDER BY kind, id LIMIT ?`,
		&st.tidy:   `DELETE FROM record WHERE kind=? AND id=? AND delete_ms<?`,

		&st.begin:    `BEGIN IMMEDIATE`,
		&st.commit:   `COMMIT`,
		&st.rollback: `ROLLBACK`,
	}
}

func (st *statements) prepare(conn *sql.Conn) error {
	for at, query := range st.all() {
		if *at != nil {
			continue
		}
		var err error
		if *at, err = conn.PrepareContext(context.Background(), query); err != nil {
			return err
		}
	}
	return nil
}

func (st *statements) close() (err error) {
	for at := range st.all() {
		if *at != nil {
			err = errors.Join(err, (*at).Close())
		}
	}
	return err
}

// take waits for the turn to use the connection.
func (b *Backend) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	select {
	case b.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func (b *Backend) give() { <-b.turn }

// run calls f when it is its turn, and again while another process's lock stands in the
// way. When the context ends it returns at once: a disk can keep f for as long as it
// likes, and its result is then dropped. So f runs on a goroutine apart, always the same
// one, since SQLite needs a deep stack and a new one would have to grow it each time.
//
// Statements in f get no context of their own. SQLite does not wait in them, and a
// context that can end costs two goroutines for each.
func run[T any](ctx context.Context, b *Backend, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	for attempt := 0; ; attempt++ {
		if err := b.take(ctx); err != nil {
			return none, err
		}
		done := make(chan result, 1)
		b.work <- func() {
			var r result
			r.value, r.err = inPlace(b, f)
			b.give()
			done <- r
		}
		select {
		case r := <-done:
			if !busy(r.err) {
				return r.value, b.failed(r.err)
			}
			if pause(ctx, attempt) != nil {
				return none, b.failed(r.err)
			}
		case <-ctx.Done():
			return none, ended(ctx)
		}
	}
}

// transaction calls f holding the file's write lock. A conflict ends it without a change.
func (b *Backend) transaction(kind store.Kind, f func() error) error {
	if err := b.flush(kind); err != nil {
		return err
	}
	if _, err := b.begin.Exec(); err != nil {
		return err
	}
	err := f()
	if err == nil {
		_, err = b.commit.Exec()
	}
	if err != nil {
		if !errors.Is(err, store.ErrConflict) {
			b.known.forget() // f may have noted what is now undone
		}
		_, _ = b.rollback.Exec() // SQLite has rolled back by itself after some errors
	}
	return err
}

// flush sets whether the next transaction is on the disk before it ends. The doc comment
// of the package says why it is for some and not for all.
func (b *Backend) flush(kind store.Kind) error {
	durable := kind == store.KindCredential || kind == store.KindDataKey || kind == store.KindCatalog || kind == store.KindRenewal
	if durable == b.durable {
		return nil
	}
	set := "PRAGMA synchronous=normal"
	if durable {
		set = "PRAGMA synchronous=full"
	}
	if err := b.exec(set); err != nil { // prepared once, it would work once: when prepared
		return err
	}
	b.durable = durable
	return nil
}

// Get implements store.Backend.
func (b *Backend) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	if found, ok, err := b.recall(ctx, keys); ok || err != nil {
		return found, err
	}
	return run(ctx, b, func() ([]store.Record, error) {
		if err := b.current(); err != nil {
			return nil, err
		}
		found := make([]store.Record, 0, len(keys))
		for _, key := range keys {
			r, there, noted := b.known.get(key)
			if !noted {
				var err error
				if r, there, err = b.read(key); err != nil {
					return nil, err
				}
			}
			if there {
				found = append(found, r)
			}
		}
		return found, nil
	})
}

// recall answers from what is known, if that is all current. It is the way of nearly
// every request and so spares the goroutine of run: it touches no disk.
func (b *Backend) recall(ctx context.Context, keys []store.Key) ([]store.Record, bool, error) {
	if err := b.take(ctx); err != nil {
		return nil, false, err
	}
	defer b.give()
	if b.place.due(time.Now()) {
		return nil, false, nil // run looks, which uses the disk
	}
	if b.current() != nil {
		return nil, false, nil // run tells the error, or finds it gone
	}
	found := make([]store.Record, 0, len(keys))
	for _, key := range keys {
		r, there, noted := b.known.get(key)
		if !noted {
			return nil, false, nil
		}
		if there {
			found = append(found, r)
		}
	}
	return found, true, nil
}

// current forgets what is known if another process has changed the file since.
func (b *Backend) current() error {
	var version int64
	if err := b.version.QueryRow().Scan(&version); err != nil {
		return err
	}
	b.known.at(version)
	return nil
}

// read reads one record and notes it.
func (b *Backend) read(key store.Key) (store.Record, bool, error) {
	r := store.Record{Key: key}
	err := scan(b.get.QueryRow(key.Kind, key.ID), &r)
	if errors.Is(err, sql.ErrNoRows) {
		b.known.absent(key)
		return store.Record{}, false, nil
	}
	if err != nil {
		return store.Record{}, false, err
	}
	b.known.note(r)
	return r, true, nil
}

// scan reads columns, after any others.
func scan(row interface{ Scan(...any) error }, r *store.Record, others ...any) error {
	var expires sql.NullInt64
	if err := row.Scan(append(others, &r.Revision, &r.Body, &expires, &r.Count)...); err != nil {
		return err
	}
	if expires.Valid {
		r.ExpiresAt = time.UnixMilli(expires.Int64).UTC()
	}
	return nil
}

func milliseconds(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

// change runs a statement that returns the record as changed, or no row where its
// condition did not hold: then it returns the stored record and ErrConflict.
func (b *Backend) change(key store.Key, statement *sql.Stmt, args ...any) (store.Record, error) {
	r := store.Record{Key: key}
	err := b.transaction(key.Kind, func() error {
		err := scan(statement.QueryRow(append([]any{key.Kind, key.ID}, args...)...), &r)
		if errors.Is(err, sql.ErrNoRows) {
			if r, _, err = b.read(key); err == nil {
				err = store.ErrConflict
			}
			return err
		}
		if err == nil {
			b.known.note(r)
		}
		return err
	})
	return r, err
}

// written is a record with what became of it.
type written struct {
	store.Record
	lost bool
}

func (b *Backend) write(ctx context.Context, f func() (store.Record, error)) (store.Record, error) {
	w, err := run(ctx, b, func() (written, error) {
		r, err := f()
		if errors.Is(err, store.ErrConflict) {
			return written{r, true}, nil
		}
		return written{r, false}, err
	})
	if err != nil {
		return store.Record{}, err
	}
	b.tidyIfDue(time.Now())
	if w.lost {
		return w.Record, store.ErrConflict
	}
	return w.Record, nil
}

// Put implements store.Backend.
func (b *Backend) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	body := slices.Clone(r.Body) // a caller that gave up may use its bytes again
	if body == nil {
		body = []byte{}
	}
	return b.write(ctx, func() (store.Record, error) {
		return b.change(r.Key, b.put, body, milliseconds(r.ExpiresAt), milliseconds(r.DeleteAfter), cond.Revision, milliseconds(cond.ExpiredBy))
	})
}

// Add implements store.Backend.
func (b *Backend) Add(ctx context.Context, key store.Key, limit int64) (int64, error) {
	r, err := b.write(ctx, func() (store.Record, error) { return b.change(key, b.add, limit) })
	return r.Count, err
}

// Delete implements store.Backend.
func (b *Backend) Delete(ctx context.Context, key store.Key, revision int64) error {
	_, err := b.write(ctx, func() (store.Record, error) {
		return store.Record{}, b.transaction(key.Kind, func() error {
			result, err := b.delete.Exec(key.Kind, key.ID, revision)
			if err != nil {
				return err
			}
			if n, err := result.RowsAffected(); err != nil || n > 0 {
				b.known.absent(key)
				return err
			}
			_, there, err := b.read(key)
			if err == nil && there {
				err = store.ErrConflict
			}
			return err
		})
	})
	return err
}

// page is how many records List reads at a time: other calls get their turn in between.
const page = 100

// List implements store.Backend.
func (b *Backend) List(ctx context.Context, kind store.Kind) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for after := ""; ; {
			records, err := run(ctx, b, func() ([]store.Record, error) { return b.page(kind, after) })
			if err != nil {
				yield(store.Record{}, fmt.Errorf("list records: %w", err))
				return
			}
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
				after = r.ID
			}
			if len(records) < page {
				return
			}
		}
	}
}

func (b *Backend) page(kind store.Kind, after string) ([]store.Record, error) {
	rows, err := b.list.Query(kind, after, page)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var records []store.Record
	for rows.Next() {
		r := store.Record{Key: store.Key{Kind: kind}}
		if err := scan(rows, &r, &r.ID); err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, rows.Err()
}
