package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"holdfast/internal/store"
)

// File is the name of the database in a data directory.
const File = "holdfast.db"

// schemaVersion is what PRAGMA user_version holds in a file of ours. Raise it with every
// change of the schema, and let setUp bring older files up to it.
const schemaVersion = 1

// applicationID is what PRAGMA application_id holds in a file of ours: "hold" in ASCII.
const applicationID = 0x686f6c64

const schema = `CREATE TABLE record (
	kind TEXT NOT NULL,
	id TEXT NOT NULL,
	revision INTEGER NOT NULL,
	body BLOB NOT NULL,
	expires_ms INTEGER,
	delete_ms INTEGER,
	count INTEGER NOT NULL,
	PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID`

// pageSize is that of SQLite's files by default, and of all of ours, in bytes.
const pageSize = 4096

// openTimeout bounds how long Open waits for other processes that open the same file.
const openTimeout = 5 * time.Second

// Backend is a data directory opened. Make one with Open.
type Backend struct {
	dir string
	// witness is a file that was made after the store; empty if none exists.
	witness string
	db      *sql.DB
	conn    *sql.Conn // the only one: SQLite lets one writer in at a time anyway
	statements

	// turn is held by whoever uses conn and what follows.
	turn    chan struct{}
	place   place
	known   known
	durable bool        // whether conn flushes every transaction to the disk
	work    chan func() // to the goroutine that runs them; only the holder of turn sends

	tidying tidying
}

var _ store.Backend = (*Backend)(nil)

// Open opens the data directory dir, and makes it first if none exists. A directory
// that cannot be used is left as it is, and the error says in one sentence what to do.
//
// later names files of the directory that the caller makes only after Open made the store,
// such as a key. Where one of them is, the store was there: if it is missing or empty it was
// lost, and Open refuses to make another one. A first start that was ended at whatever
// point leaves none of them, or the store too.
func Open(dir string, later ...string) (*Backend, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	witness := present(dir, later) // before the store is looked at, which may be being made now
	if err := ready(dir, witness); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	b := &Backend{dir: dir, witness: witness, turn: make(chan struct{}, 1), work: make(chan func()), known: newKnown()}
	if err := b.connect(ctx); err != nil {
		_ = b.disconnect() // the error that matters is the first
		return nil, err
	}
	b.tidying.begin(time.Now())
	go func() {
		for f := range b.work {
			f()
		}
	}()
	return b, nil
}

// making guards the making of files. SQLite's locks belong to the process and the file:
// closing any descriptor of a database drops all locks that the process holds on it. So
// a database that may be open already must not be opened here.
var making sync.Mutex

// present is the path of the first of the files that exists; empty if none exists.
func present(dir string, files []string) string {
	for _, name := range files {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// ready makes the directory and an empty database of the right mode where none exists.
// It refuses a database that is damaged or lost, as far as its size tells: SQLite would
// take one without its end for a whole one, and an empty one for a new one.
func ready(dir, witness string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return refusal("the data directory " + dir + " is a file: name a directory with --data")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unusable(dir, err)
	}
	path := filepath.Join(dir, File)
	making.Lock()
	defer making.Unlock()
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return refusal(path + " is a directory where the store should be: move it away, or name another data directory with --data")
	case err == nil && info.Size()%pageSize != 0: // a log beside it could not be trusted to mend it
		return refusal(fmt.Sprintf("%s (it ends within a page, at %d bytes)", damaged(path), info.Size()))
	case err == nil && info.Size() == 0 && witness != "":
		return lost(path, "empty", witness)
	case errors.Is(err, fs.ErrNotExist) && witness != "":
		return lost(path, "missing", witness)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return unusable(dir, err)
	}
	if err := f.Close(); err != nil {
		return unusable(dir, err)
	}
	if d, err := os.Open(dir); err == nil { // the name, too, must survive a loss of power
		_ = d.Sync() // not every file system can
		_ = d.Close()
	}
	return nil
}

// private takes the files' rights from everybody but their owner, in case they were
// copied here by something that did not keep them, and so the directory's, where it holds
// nothing of anybody else's.
func (b *Backend) private() error {
	if info, err := os.Stat(b.dir); err == nil && info.Mode().Perm()&0o077 != 0 && onlyOurs(b.dir) {
		if err := os.Chmod(b.dir, info.Mode().Perm()&0o700); err != nil && !errors.Is(err, fs.ErrPermission) {
			return unusable(b.dir, err)
		}
	}
	path := filepath.Join(b.dir, File)
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(p)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(p, info.Mode().Perm()&0o700)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unusable(b.dir, err)
		}
	}
	return nil
}

// onlyOurs reports whether a directory holds our files and no others: one that was named by
// mistake, such as /tmp, is not to be closed to its users.
func onlyOurs(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), "holdfast.") && e.Name() != "renewing" && e.Name() != "demo"
	})
}

// connect opens the file and brings it up to date.
func (b *Backend) connect(ctx context.Context) error {
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(b.dir, File))}
	var err error
	if b.db, err = sql.Open("sqlite", name.String()); err != nil {
		return b.failed(err)
	}
	b.db.SetMaxOpenConns(1)
	if b.conn, err = b.db.Conn(ctx); err != nil {
		return b.failed(err)
	}
	// SQLite opens a file that cannot be written all the same, but from the first read on
	// there would be other files beside it.
	var readOnly bool
	if err := b.conn.Raw(func(driver any) (err error) {
		readOnly, err = driver.(interface{ IsReadOnly(string) (bool, error) }).IsReadOnly("main")
		return err
	}); err != nil {
		return b.failed(err)
	}
	if readOnly {
		return unusable(b.dir, fs.ErrPermission)
	}
	if err := b.place.settle(filepath.Join(b.dir, File), time.Now()); err != nil {
		return unusable(b.dir, err)
	}
	// Other processes may be opening the file or closing it for the last time, and lock it
	// for that long.
	if err := b.persist(ctx, b.setUp); err != nil {
		return err
	}
	if err := b.private(); err != nil {
		return err
	}
	return b.persist(ctx, func() error { return b.statements.prepare(b.conn) })
}

// persist repeats f while it fails for another process's lock.
func (b *Backend) persist(ctx context.Context, f func() error) error {
	for attempt := 0; ; attempt++ {
		err := f()
		if !busy(err) {
			return b.failed(err)
		}
		if pause(ctx, attempt) != nil {
			return b.failed(err)
		}
	}
}

// setUp sets the connection up and makes the table in a new file. It refuses a file that
// is not ours before it changes anything.
func (b *Backend) setUp() error {
	if err := b.pragmas("busy_timeout=0", "temp_store=memory"); err != nil {
		return err
	}
	fresh, err := b.fresh()
	if err != nil {
		return err
	}
	if fresh && b.witness != "" { // its log was lost, with all there was in it
		return lost(filepath.Join(b.dir, File), "empty", b.witness)
	}
	var mode string
	if err := b.conn.QueryRowContext(context.Background(), "PRAGMA journal_mode=wal").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return refusal(fmt.Sprintf("the file system of %s cannot share memory between processes: name a data directory on a local disk with --data", b.dir))
	}
	// Files that are made later may be flushed to the disk, so the table must be: SQLite's
	// default is full.
	if fresh {
		if err := b.makeTable(); err != nil {
			return err
		}
	}
	return b.pragmas(
		"synchronous=normal",
		"cache_size=-256",            // KiB; known holds what is read often
		"journal_size_limit=4194304", // bytes; a log that grew is cut back
	)
}

// fresh reports whether the file is still empty. It refuses one that is not ours, or
// that a newer holdfast wrote.
func (b *Backend) fresh() (bool, error) {
	var id, version, things int64
	err := b.conn.QueryRowContext(context.Background(), // one statement, so that it sees all of a making or nothing
		"SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version",
	).Scan(&id, &version, &things)
	path := filepath.Join(b.dir, File)
	switch {
	case err != nil:
		return false, err
	case id == 0 && version == 0 && things == 0:
		return true, nil
	case id != applicationID:
		return false, refusal(path + " is not a holdfast store: move it away, or name another data directory with --data")
	case version > schemaVersion:
		return false, refusal(fmt.Sprintf("%s was written by a newer holdfast (store version %d, this one knows %d): update holdfast", path, version, schemaVersion))
	}
	return false, nil
}

// makeTable makes the table, unless another process has just done so.
func (b *Backend) makeTable() error {
	if err := b.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	fresh, err := b.fresh()
	if err == nil && fresh {
		err = b.exec(schema)
		if err == nil {
			err = b.pragmas(fmt.Sprintf("application_id=%d", applicationID), fmt.Sprintf("user_version=%d", schemaVersion))
		}
	}
	if err != nil {
		_ = b.exec("ROLLBACK")
		return err
	}
	return b.exec("COMMIT")
}

func (b *Backend) pragmas(settings ...string) error {
	for _, s := range settings {
		if err := b.exec("PRAGMA " + s); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) exec(query string) error {
	_, err := b.conn.ExecContext(context.Background(), query)
	return err
}

// Close implements store.Backend. The last process to close moves the log into the file.
func (b *Backend) Close() error {
	b.tidying.end()
	ctx, cancel := context.WithTimeout(context.Background(), store.CallTimeout)
	defer cancel()
	if err := b.take(ctx); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	close(b.work)
	b.leave(time.Now())
	if err := b.disconnect(); err != nil {
		return fmt.Errorf("close the store: %w", b.failed(err))
	}
	return nil
}

func (b *Backend) disconnect() error {
	if b.db == nil {
		return nil
	}
	err := b.statements.close()
	if b.conn != nil {
		err = errors.Join(err, b.conn.Close())
	}
	return errors.Join(err, b.db.Close())
}
