package sqlitestore_test

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/store"
	"holdfast/internal/store/sqlitestore"
)

func TestOpenMakesPrivateFiles(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0)) // so that nothing but the code narrows modes
	dir := filepath.Join(t.TempDir(), "share", "a b?c#d%41é")
	b := open(t, dir)
	defer b.Close()
	if _, err := b.Add(t.Context(), store.Key{Kind: store.KindPin, ID: "x"}, 0); err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{
		".": fs.ModeDir | 0o700, sqlitestore.File: 0o600, sqlitestore.File + "-wal": 0o600, sqlitestore.File + "-shm": 0o600,
	}
	if d := cmp.Diff(want, modes(t, dir)); d != "" {
		t.Errorf("modes (-want +got):\n%s", d)
	}
}

func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		name, _ := filepath.Rel(dir, path)
		found[name] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestOpenTakesRightsOfOthersAway(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	path := filepath.Join(dir, sqlitestore.File)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	b := open(t, dir)
	defer b.Close()
	if got := modes(t, dir)[sqlitestore.File]; got != 0o600 {
		t.Errorf("got mode %v, want 0600", got)
	}
}

func TestOpenFindsWhatWasKept(t *testing.T) {
	dir := t.TempDir()
	key := store.Key{Kind: store.KindPin, ID: "x"}
	for want := int64(1); want <= 3; want++ {
		b := open(t, dir)
		if n, err := b.Add(t.Context(), key, 0); n != want || err != nil {
			t.Errorf("got %d and error %v, want %d and none", n, err, want)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenOfAnEmptyFile(t *testing.T) {
	// What remains when a process was ended while it was making the store.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, sqlitestore.File), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, dir)
	defer b.Close()
	if _, err := b.Add(t.Context(), store.Key{Kind: store.KindPin, ID: "x"}, 0); err != nil {
		t.Fatal(err)
	}
}

func TestTableIsMadeOnce(t *testing.T) {
	// Two processes found the same new file; this is the later one.
	b := open(t, t.TempDir())
	defer b.Close()
	key := store.Key{Kind: store.KindPin, ID: "x"}
	if _, err := b.Add(t.Context(), key, 0); err != nil {
		t.Fatal(err)
	}
	must(t, b.MakeTable(t.Context()))
	if n, err := b.Add(t.Context(), key, 0); n != 2 || err != nil {
		t.Errorf("got %d and error %v, want 2 and none", n, err)
	}
}

func TestOpenManyAtOnce(t *testing.T) {
	const handles, processes = 8, 3
	for range 5 {
		dir := filepath.Join(t.TempDir(), "data")
		key := store.Key{Kind: store.KindPin, ID: "x"}
		var all sync.WaitGroup
		for range handles {
			all.Go(func() {
				b, err := sqlitestore.Open(dir, laterFile)
				if err != nil {
					t.Errorf("open: got %v, want no error", err)
					return
				}
				defer b.Close()
				if err := os.WriteFile(filepath.Join(dir, laterFile), nil, 0o600); err != nil {
					t.Error(err)
				}
				if _, err := b.Add(t.Context(), key, 0); err != nil {
					t.Errorf("add: got %v, want no error", err)
				}
			})
		}
		for range processes {
			all.Go(func() {
				if got := startRole(t, "add", dir).wait(); !strings.HasPrefix(got, "added") {
					t.Errorf("another process: got %q, want it to add", got)
				}
			})
		}
		all.Wait()
		b := open(t, dir)
		if n, err := b.Add(t.Context(), key, 0); n != handles+processes+1 || err != nil {
			t.Errorf("got %d and error %v, want %d and none", n, err, handles+processes+1)
		}
		b.Close()
	}
}

// refusals are directories that cannot be used.
var refusals = []struct {
	name string
	// make changes a directory that holds a store, and returns the data directory to open.
	make func(t *testing.T, dir string) string
	// says are parts of the sentence that the owner gets, %s being the data directory.
	says []string
}{
	{"a file", func(t *testing.T, dir string) string {
		return filepath.Join(dir, sqlitestore.File)
	}, []string{"the data directory %s is a file", "--data"}},
	{"below a file", func(t *testing.T, dir string) string {
		return filepath.Join(dir, sqlitestore.File, "data")
	}, []string{"the data directory %s cannot be used", "--data"}},
	{"a directory in the place of the store", func(t *testing.T, dir string) string {
		inner := filepath.Join(dir, "inner")
		must(t, os.MkdirAll(filepath.Join(inner, sqlitestore.File), 0o700))
		return inner
	}, []string{"%s/holdfast.db is a directory", "--data"}},
	{"not a database", func(t *testing.T, dir string) string {
		must(t, os.WriteFile(filepath.Join(dir, sqlitestore.File), []byte(strings.Repeat("no database ", 1000)), 0o600))
		return dir
	}, []string{"%s/holdfast.db is damaged or not a holdfast store"}},
	{"cut within a page", func(t *testing.T, dir string) string {
		must(t, os.Truncate(filepath.Join(dir, sqlitestore.File), 6000))
		return dir
	}, []string{"%s/holdfast.db is damaged or not a holdfast store", "6000 bytes", "put a copy of it back"}},
	{"cut within a page, beside a log", func(t *testing.T, dir string) string {
		must(t, os.Truncate(filepath.Join(dir, sqlitestore.File), 6000))
		must(t, os.WriteFile(filepath.Join(dir, sqlitestore.File+"-wal"), []byte("log"), 0o600))
		return dir
	}, []string{"%s/holdfast.db is damaged or not a holdfast store", "6000 bytes", "put a copy of it back"}},
	{"cut between two pages", func(t *testing.T, dir string) string {
		must(t, os.Truncate(filepath.Join(dir, sqlitestore.File), 4096))
		return dir
	}, []string{"%s/holdfast.db is damaged or not a holdfast store", "put a copy of it back"}},
	{"somebody else's database", func(t *testing.T, dir string) string {
		must(t, os.Remove(filepath.Join(dir, sqlitestore.File)))
		statements(t, dir, "CREATE TABLE record (x)", "PRAGMA user_version=1")
		return dir
	}, []string{"%s/holdfast.db is not a holdfast store", "--data"}},
	{"a newer store", func(t *testing.T, dir string) string {
		statements(t, dir, fmt.Sprintf("PRAGMA user_version=%d", sqlitestore.Version+1))
		return dir
	}, []string{
		"%s/holdfast.db was written by a newer holdfast", fmt.Sprintf("store version %d, this one knows %d", sqlitestore.Version+1, sqlitestore.Version),
		"update holdfast",
	}},
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			open(t, root).Close()
			dir := c.make(t, root)
			before := contents(t, root)
			b, err := sqlitestore.Open(dir)
			if err == nil {
				b.Close()
				t.Fatal("got no error, want a refusal")
			}
			checkSentence(t, err.Error(), dir, c.says)
			if d := cmp.Diff(before, contents(t, root)); d != "" {
				t.Errorf("changed (-before +after):\n%s", d)
			}
		})
	}
}

// unwritable are directories that this user may not write. Such a user is another process.
var unwritable = []struct {
	name string
	make func(t *testing.T, dir string) string
	says []string
}{
	{"new, in a read-only directory", func(t *testing.T, dir string) string {
		must(t, os.Chmod(dir, 0o500))
		return filepath.Join(dir, "data")
	}, []string{"the data directory %s cannot be written", "--data"}},
	{"read-only and empty", func(t *testing.T, dir string) string {
		must(t, os.Chmod(dir, 0o500))
		return dir
	}, []string{"the data directory %s cannot be written", "--data"}},
	{"read-only with a store", func(t *testing.T, dir string) string {
		open(t, dir).Close()
		must(t, os.Chmod(filepath.Join(dir, sqlitestore.File), 0o400))
		must(t, os.Chmod(dir, 0o500))
		return dir
	}, []string{"the data directory %s cannot be written", "--data"}},
	{"a read-only store", func(t *testing.T, dir string) string {
		open(t, dir).Close()
		must(t, os.Chmod(filepath.Join(dir, sqlitestore.File), 0o400))
		return dir
	}, []string{"the data directory %s cannot be written", "--data"}},
	{"a store in a read-only directory", func(t *testing.T, dir string) string {
		open(t, dir).Close()
		must(t, os.Chmod(dir, 0o500))
		return dir
	}, []string{"the data directory %s cannot be written", "--data"}},
	{"not to be looked into", func(t *testing.T, dir string) string {
		open(t, dir).Close()
		must(t, os.Chmod(dir, 0))
		return dir
	}, []string{"the data directory %s cannot be written", "--data"}},
}

func TestOpenRefusesWhatItCannotWrite(t *testing.T) {
	for _, c := range unwritable {
		t.Run(c.name, func(t *testing.T) {
			root := sharedDir(t)
			dir := filepath.Join(root, "dir")
			must(t, os.Mkdir(dir, 0o700))
			data := c.make(t, dir)
			giveAway(t, root)
			before := contents(t, root)
			got := startUnprivileged(t, "add", data).wait()
			sentence, refused := strings.CutPrefix(got, "refused: ")
			if !refused {
				t.Fatalf("got %q, want a refusal", got)
			}
			checkSentence(t, strings.TrimSuffix(sentence, "\n"), data, c.says)
			if d := cmp.Diff(before, contents(t, root)); d != "" {
				t.Errorf("changed (-before +after):\n%s", d)
			}
		})
	}
}

// laterFile is made in a data directory only once its store is made.
const laterFile = "later.key"

// lost are changes of a directory with a store and a later file, that lose the store.
var lost = []struct {
	name string
	make func(t *testing.T, db string)
	says string
}{
	{"removed", func(t *testing.T, db string) { must(t, os.Remove(db)) }, "%s/holdfast.db is missing"},
	{"emptied", func(t *testing.T, db string) { must(t, os.Truncate(db, 0)) }, "%s/holdfast.db is empty"},
	{"emptied, beside a log", func(t *testing.T, db string) {
		must(t, os.Truncate(db, 0))
		must(t, os.WriteFile(db+"-wal", []byte("log"), 0o600))
	}, "%s/holdfast.db is empty"},
	{"copied without its log, before anything was moved out of it", func(t *testing.T, db string) {
		must(t, os.Remove(db))
		statements(t, filepath.Dir(db), "PRAGMA journal_mode=wal")
	}, "%s/holdfast.db is empty"},
}

func TestOpenRefusesWhereTheStoreWasLost(t *testing.T) {
	for _, c := range lost {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir).Close()
			must(t, os.WriteFile(filepath.Join(dir, laterFile), nil, 0o600))
			b, err := sqlitestore.Open(dir, laterFile)
			if err != nil {
				t.Fatalf("before: got %v, want no error", err)
			}
			b.Close()
			c.make(t, filepath.Join(dir, sqlitestore.File))
			before := contents(t, dir)
			b, err = sqlitestore.Open(dir, "other.key", laterFile)
			if err == nil {
				b.Close()
				t.Fatal("got no error, want a refusal")
			}
			checkSentence(t, err.Error(), dir, []string{c.says, "%s/" + laterFile, "put a copy of it back", "move"})
			if d := cmp.Diff(before, contents(t, dir)); d != "" {
				t.Errorf("changed (-before +after):\n%s", d)
			}
			// What it tells the owner to do works: to begin anew without the later file.
			must(t, os.Remove(filepath.Join(dir, laterFile)))
			if b, err = sqlitestore.Open(dir, laterFile); err != nil {
				t.Fatalf("without %s: got %v, want no error", laterFile, err)
			}
			defer b.Close()
			if n, err := b.Add(t.Context(), store.Key{Kind: store.KindPin, ID: "x"}, 0); n != 1 || err != nil {
				t.Errorf("without %s: got %d and error %v, want 1 and none", laterFile, n, err)
			}
		})
	}
}

func checkSentence(t *testing.T, sentence, dir string, says []string) {
	t.Helper()
	if strings.Contains(sentence, "\n") {
		t.Errorf("got %q, want one line", sentence)
	}
	for _, part := range says {
		if part := strings.ReplaceAll(part, "%s", dir); !strings.Contains(sentence, part) {
			t.Errorf("got %q, want it to say %q", sentence, part)
		}
	}
}

// contents are the modes and hashes of all files below a directory.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, mode := range modes(t, root) {
		found[name] = mode.String()
		if mode.IsRegular() {
			data, err := os.ReadFile(filepath.Join(root, name))
			if err != nil && !errors.Is(err, fs.ErrPermission) {
				t.Fatal(err)
			}
			found[name] += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
	}
	return found
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// statements runs SQL on the file, as another program would.
func statements(t *testing.T, dir string, queries ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, sqlitestore.File))
	must(t, err)
	defer db.Close()
	for _, q := range queries {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// TestDirectoryOfEverybody is field case small-ones: a data directory that others may write is
// closed to them, unless it holds something of theirs.
func TestDirectoryOfEverybody(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777))
	b := open(t, dir)
	defer b.Close()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got mode %v and error %v, want 0700", info.Mode(), err)
	}
	shared := t.TempDir()
	must(t, os.Chmod(shared, 0o777))
	must(t, os.WriteFile(filepath.Join(shared, "somebody's"), nil, 0o600))
	other := open(t, shared)
	defer other.Close()
	if info, err := os.Stat(shared); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("a directory with other files: got mode %v and error %v, want 0777", info.Mode(), err)
	}
}
