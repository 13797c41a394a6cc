package command_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/command"
	"holdfast/internal/store"
	"holdfast/internal/store/sqlitestore"
)

// The data key of another directory must not be used: what is sealed with it here, nobody
// could open with the right one.
func TestDataKeyOfAnother(t *testing.T) {
	b, other := newBench(t), newBench(t)
	b.add("work")
	b.must("key", "create", "laptop")
	other.must("settings", "reset", "reserve")
	path := filepath.Join(b.dir, "holdfast.key")
	right, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := os.ReadFile(filepath.Join(other.dir, "holdfast.key"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, wrong)
	for _, args := range [][]string{
		{"account", "list"}, {"account", "add", "home", "--provider", "anthropic", "--key-env", "KEY"}, {"key", "create", "ci"},
		{"serve", "--addr", "127.0.0.1:0"},
	} {
		b.refuses(1, path+" is not the key", args...)
	}
	write(path, right)
	b.must("account", "list")
}

// A store that was lost must not be taken for one that never was: nor by a key alone.
func TestStoreLost(t *testing.T) {
	b := newBench(t)
	b.add("work")
	path := filepath.Join(b.dir, "holdfast.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, lose := range map[string]func() error{
		path + " is damaged": func() error { return os.Truncate(path, 6000) },
		path + " is empty":   func() error { return os.Truncate(path, 0) },
		path + " is missing": func() error { return os.Remove(path) },
	} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"account", "list"}, {"key", "create", "laptop"}, {"serve", "--addr", "127.0.0.1:0"}} {
			// The store cannot be looked into, so its file is all to compare.
			before, _ := os.ReadFile(path)
			if r := b.run(args...); r.code != 1 || !strings.Contains(r.stderr, name) {
				t.Errorf("%v: got status %d, %s want status 1 and %q", args, r.code, r.stderr, name)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(after, before) {
				t.Errorf("%v changed the file of which it said %q", args, name)
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		b.must("account", "show", "work")
	}
}

// A key that was lost before anything was stored is refused as well: the store remembers
// that there was one.
func TestDataKeyLostEarly(t *testing.T) {
	b := newBench(t)
	b.must("settings", "reset", "reserve")
	path := filepath.Join(b.dir, "holdfast.key")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.refuses(1, "put "+path+" back", "account", "list")
}

// stalled is a table that never answers.
type stalled struct{ command.Table }

func (stalled) Get(ctx context.Context, _ []store.Key) ([]store.Record, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
}

func (stalled) Close() error { return nil }

// A request must be refused soon; a command need not give up over a disk that stalls for
// some seconds.
func TestCommandsArePatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so the time is the bubble's own
		var out, said bytes.Buffer
		o := newBench(t).options(strings.NewReader(""), &out, &said)
		o.OpenTable = func(context.Context, string) (command.Table, error) { return stalled{}, nil }
		begun := time.Now()
		code := command.Run(t.Context(), []string{"--table", "holdfast", "account", "list"}, o)
		if code != 1 || !strings.Contains(said.String(), "unavailable") {
			t.Errorf("got status %d, %s want status 1 and the store unavailable", code, &said)
		}
		if took := time.Since(begun); took != 15*time.Second {
			t.Errorf("got an end after %v, want 15s", took)
		}
	})
}

// TestReadingMakesNothing: a command that makes nothing leaves no trace where there is no
// data, and where a directory was named it says that it has no data.
func TestReadingMakesNothing(t *testing.T) {
	commands := [][]string{
		{"status"}, {"account", "list"}, {"account", "show", "work"}, {"account", "check", "work"}, {"account", "drain", "work"}, {"account", "remove", "work"},
		{"key", "list"}, {"key", "revoke", "laptop"}, {"switches"}, {"settings"}, {"settings", "list"}, {"poll"}, {"policy", "anthropic"},
		{"pick", "--provider", "anthropic", "--model", "claude-sonnet-5"},
	}
	b := newBench(t)
	for _, args := range commands {
		b.refuses(1, "there is no holdfast data in "+b.dir, args...)
	}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	b.env["HOME"] = home
	for _, args := range commands {
		if r := b.run(args...); r.code != 1 || !strings.Contains(r.stderr, "there is no holdfast data in "+b.dir) {
			t.Errorf("%v in an empty directory: got status %d, %s", args, r.code, r.stderr)
		}
		b.runAt(nil, "", args...)
	}
	for _, dir := range []string{b.dir, home} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("got %v (%v) in %s, want nothing", left, err, dir)
		}
	}
	for _, args := range [][]string{{"status"}, {"account", "list"}, {"poll"}} {
		if r := b.runAt(nil, "", args...); r.code != 0 || !strings.Contains(r.stdout+r.stderr, "There are no accounts yet") {
			t.Errorf("%v of the owner's own directory: got status %d, %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	for name, args := range map[string][]string{
		"setting": {"settings", "set", "reserve", "0.2"}, "reset": {"settings", "reset", "reserve"}, "key": {"key", "create", "laptop"}, "policy": {"policy", "anthropic", "order"},
		"account": {"account", "add", "work", "--provider", "anthropic", "--key-env", "KEY"},
	} {
		b.dir = filepath.Join(home, name)
		b.must(args...)
		b.must("status")
	}
}

// TestDataInADirectoryOfEverybody is field case small-ones: where the directory cannot be closed
// to others, since it holds something of theirs, the owner hears of it.
func TestDataInADirectoryOfEverybody(t *testing.T) {
	b := newBench(t)
	b.dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(b.dir, "somebody's"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(b.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if r := b.must("key", "create", "laptop"); !strings.Contains(r.stderr, "Other users may write in "+b.dir) {
		t.Errorf("got %q", r.stderr)
	}
	b.dir = filepath.Join(b.dir, "own")
	if r := b.must("key", "create", "laptop"); strings.Contains(r.stderr, "Other users") {
		t.Errorf("in a directory of its own: got %q", r.stderr)
	}
}

// TestUnreadableState is field case one-bad-record: an account whose state is damaged is named
// with its cure, the cure works, and every other account is as it was.
func TestUnreadableState(t *testing.T) {
	b := newBench(t)
	b.env["OTHER"] = apiKey + "-2"
	b.must("account", "add", "marlow", "--provider", "anthropic", "--key-env", "KEY")
	b.must("account", "add", "juniper", "--provider", "anthropic", "--key-env", "OTHER")
	b.fold("marlow", weekly(0, 0.2, t0.Add(24*time.Hour)))
	b.spoil(store.KindState)
	for _, args := range [][]string{{"status"}, {"account", "show", "marlow"}} {
		if text := b.must(args...).stdout; !strings.Contains(text, "unreadable") || !strings.Contains(text, "account clear marlow") {
			t.Errorf("%v: got\n%s", args, text)
		}
	}
	text := b.must("pick", "--provider", "anthropic", "--model", "claude-opus-5").stdout
	if !strings.Contains(text, "juniper") {
		t.Errorf("pick: got\n%s", text)
	}
	b.must("account", "clear", "marlow")
	if text := b.must("status").stdout; strings.Contains(text, "unreadable") {
		t.Errorf("cleared: got\n%s", text)
	}
}

// spoil makes the records of a kind unreadable.
func (b *bench) spoil(kind store.Kind) {
	b.t.Helper()
	backend, err := sqlitestore.Open(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	defer backend.Close()
	for r, err := range backend.List(b.t.Context(), kind) {
		if err != nil {
			b.t.Fatal(err)
		}
		r.Body = []byte("{")
		if _, err := backend.Put(b.t.Context(), r, store.Condition{Revision: r.Revision}); err != nil {
			b.t.Fatal(err)
		}
	}
}
