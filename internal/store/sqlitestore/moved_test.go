package sqlitestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/store"
	"holdfast/internal/store/sqlitestore"
)

// every are all calls of a backend.
var every = map[string]func(t *testing.T, b store.Backend) error{
	"get": func(t *testing.T, b store.Backend) error {
		_, err := b.Get(t.Context(), []store.Key{movedKey})
		return err
	},
	"get of what was not read before": func(t *testing.T, b store.Backend) error {
		_, err := b.Get(t.Context(), []store.Key{{Kind: store.KindPin, ID: "other"}})
		return err
	},
	"put": func(t *testing.T, b store.Backend) error {
		_, err := b.Put(t.Context(), store.Record{Key: movedKey, Body: []byte("late")}, store.Condition{Revision: 1})
		return err
	},
	"add":    func(t *testing.T, b store.Backend) error { _, err := b.Add(t.Context(), movedKey, 0); return err },
	"delete": func(t *testing.T, b store.Backend) error { return b.Delete(t.Context(), movedKey, 1) },
	"list": func(t *testing.T, b store.Backend) error {
		for _, err := range b.List(t.Context(), store.KindPin) {
			return err
		}
		return nil
	},
}

var movedKey = store.Key{Kind: store.KindPin, ID: "x"}

// away are what can become of a file that is in use.
var away = []struct {
	name string
	do   func(t *testing.T, dir string)
	says string
}{
	{"removed", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, sqlitestore.File))) }, "was removed"},
	{"removed with its directory", func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }, "was removed"},
	{"its directory now a file", func(t *testing.T, dir string) {
		must(t, os.RemoveAll(dir))
		must(t, os.WriteFile(dir, nil, 0o600))
	}, "was removed"},
	{"moved", func(t *testing.T, dir string) {
		must(t, os.Rename(filepath.Join(dir, sqlitestore.File), filepath.Join(dir, "moved")))
	}, "was removed"},
	{"replaced", func(t *testing.T, dir string) { replace(t, dir, "new") }, "was replaced"},
}

// replace puts a whole other store, whose record has a body, in the place of a directory's.
func replace(t *testing.T, dir, body string) {
	t.Helper()
	backup := t.TempDir()
	keep(t, backup, body)
	must(t, os.Rename(filepath.Join(backup, sqlitestore.File), filepath.Join(dir, sqlitestore.File)))
}

// keep makes a store with one record.
func keep(t *testing.T, dir, body string) {
	t.Helper()
	b := open(t, dir)
	defer b.Close()
	if _, err := b.Put(t.Context(), store.Record{Key: movedKey, Body: []byte(body)}, store.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func TestFileThatWentAwayIsNoticed(t *testing.T) {
	for _, c := range away {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			keep(t, dir, "old")
			synctest.Test(t, func(t *testing.T) {
				b := open(t, dir)
				defer b.Close()
				if err := every["get"](t, b); err != nil {
					t.Fatal(err)
				}
				c.do(t, dir)
				left := contents(t, filepath.Dir(dir))
				time.Sleep(2 * time.Second) // on the bubble's clock
				for range 2 {
					for name, call := range every {
						err := call(t, b)
						if !errors.Is(err, store.ErrUnavailable) {
							t.Errorf("%s: got %v, want ErrUnavailable", name, err)
							continue
						}
						for _, part := range []string{filepath.Join(dir, sqlitestore.File) + " " + c.says, "restart holdfast"} {
							if !strings.Contains(err.Error(), part) {
								t.Errorf("%s: got %q, want it to say %q", name, err, part)
							}
						}
					}
					time.Sleep(time.Millisecond) // before the next look, too
				}
				if d := cmp.Diff(left, contents(t, filepath.Dir(dir))); d != "" {
					t.Errorf("changed (-before +after):\n%s", d)
				}
			})
		})
	}
}

func TestFileThatCameBackIsUsed(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, "old")
	path := filepath.Join(dir, sqlitestore.File)
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dir)
		defer b.Close()
		must(t, os.Rename(path, path+".away"))
		time.Sleep(2 * time.Second)
		if err := every["get"](t, b); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("away: got %v, want ErrUnavailable", err)
		}
		must(t, os.Rename(path+".away", path))
		time.Sleep(2 * time.Second)
		for _, name := range []string{"get", "put", "add"} {
			if err := every[name](t, b); err != nil {
				t.Errorf("back, %s: got %v, want no error", name, err)
			}
		}
	})
}

// A database's log and shared memory are found by name. Whoever closes a file that went
// away must leave those of the file that took its place alone.
func TestClosingLeavesTheReplacementAlone(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, "old")
	path := filepath.Join(dir, sqlitestore.File)
	old := open(t, dir)
	if _, err := old.Add(t.Context(), movedKey, 0); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		must(t, os.Remove(p))
	}
	replace(t, dir, "new")
	p := startRole(t, "claim", dir, "account")
	for i, claim := range []string{"before", "after"} {
		if i == 0 && p.line() != "ready" {
			t.Fatal("the other process is not ready")
		}
		p.tell(claim)
		if got := p.line(); got != "true account" {
			t.Fatalf("%s: got %q, want it claimed", claim, got)
		}
		if i == 0 {
			must(t, old.Close())
		}
	}
	b := open(t, dir)
	defer b.Close()
	found, err := b.Get(t.Context(), []store.Key{movedKey, {Kind: store.KindPin, ID: "before"}, {Kind: store.KindPin, ID: "after"}})
	if err != nil || len(found) != 3 || string(found[0].Body) != "new" || found[0].Count != 0 {
		t.Errorf("got %d records and error %v, want the replacement's and both claims", len(found), err)
	}
	if got := p.wait(); got != "" {
		t.Errorf("got %q, want no more", got)
	}
}

// The log that is left belongs to no other file: what is put in the place of the database
// alone must not be mixed with it.
func TestReplacedAloneThenRestarted(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, "old")
	old := open(t, dir)
	for range 3 {
		if _, err := old.Add(t.Context(), movedKey, 0); err != nil {
			t.Fatal(err)
		}
	}
	replace(t, dir, "new")
	must(t, old.Close())
	b := open(t, dir)
	defer b.Close()
	found, err := b.Get(t.Context(), []store.Key{movedKey})
	if err != nil || len(found) != 1 || string(found[0].Body) != "new" || found[0].Count != 0 {
		t.Errorf("got %v and error %v, want the replacement's record", found, err)
	}
}
