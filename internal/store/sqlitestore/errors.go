package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"holdfast/internal/store"
)

// refusal is a data directory that Open will not use, in words for its owner.
type refusal string

func (r refusal) Error() string { return string(r) }

// trouble is what kept the store from doing what it was asked, in words for its owner.
type trouble struct {
	what  string
	cause error // nil if what says it all
}

func (t *trouble) Error() string {
	if t.cause == nil {
		return t.what
	}
	return t.what + " (" + t.cause.Error() + ")"
}

func (t *trouble) Unwrap() []error {
	if t.cause == nil {
		return []error{store.ErrUnavailable}
	}
	return []error{store.ErrUnavailable, t.cause}
}

// code is SQLite's primary result code, 0 where the error is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff // the rest tells kinds of it apart
	}
	return 0
}

// busy reports whether another process's lock is all that stood in the way; nothing was
// done then.
func busy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// failed translates an error of SQLite's. Whatever it is, the store did not do what it
// was asked.
func (b *Backend) failed(err error) error {
	var r refusal
	if err == nil || errors.As(err, &r) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	path := filepath.Join(b.dir, File)
	var what string
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		what = "another process keeps " + path + " locked: end it, or wait for it"
	case sqlite3.SQLITE_FULL:
		what = "the disk is full: make room where " + path + " is"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		what = cannotWrite(b.dir)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		what = damaged(path)
	case sqlite3.SQLITE_IOERR: // SQLite says no more, also where a file beside the store cannot grow
		what = ioTrouble(b.dir, tryWrite(b.dir))
	default:
		what = path + " could not be used: look whether another program has it open, and try again"
	}
	return &trouble{what, err}
}

// tryWrite writes some pages into a file of its own in a directory, and removes it again.
func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 16*pageSize))
	err = errors.Join(err, f.Sync(), f.Close())
	_ = os.Remove(f.Name())
	return err
}

// ioTrouble says what to do about a disk that failed, by what came of a try to write.
func ioTrouble(dir string, tried error) string {
	switch {
	case errors.Is(tried, syscall.ENOSPC), errors.Is(tried, syscall.EDQUOT):
		return "the disk is full: make room where " + dir + " is"
	case errors.Is(tried, fs.ErrPermission), errors.Is(tried, syscall.EROFS):
		return cannotWrite(dir)
	case tried != nil:
		return "the disk of " + dir + " does not take what is written: name a data directory on another disk with --data"
	}
	return "the disk of " + dir + " failed: look into the system's log for what it says of the disk, and try again"
}

// unusable says what to do about a data directory that the system would not let us use.
func unusable(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &trouble{"the disk is full: make room where " + dir + " is", err}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &trouble{cannotWrite(dir), err}
	}
	return &trouble{"the data directory " + dir + " cannot be used: name another one with --data", err}
}

func damaged(path string) string {
	return path + " is damaged or not a holdfast store: put a copy of it back, or move it away"
}

// lost refuses a store that is not there any more.
func lost(path, is, witness string) error {
	return refusal(fmt.Sprintf("%s is %s, but %s was made for what it held: put a copy of it back, or move %[3]s away to begin anew", path, is, witness))
}

func cannotWrite(dir string) string {
	return "the data directory " + dir + " cannot be written: give it to this user, or name another one with --data"
}

// ended says that a context ended before the store got to it.
func ended(ctx context.Context) error {
	return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
}

// Pauses between two attempts at another process's lock. Our own transactions take some
// tens of microseconds.
const (
	firstPause   = 100 * time.Microsecond
	longestPause = 10 * time.Millisecond
)

// pause waits before another attempt, longer each time and never twice as long as
// another waiter. It returns the context's error if that ends first.
func pause(ctx context.Context, attempt int) error {
	d := min(firstPause<<min(attempt, 10), longestPause)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
