package command_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/aws/cloud/profile"
	"holdfast/internal/command"
	"holdfast/internal/core/account"
	"holdfast/internal/provider/all"
	"holdfast/internal/store"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/sqlitestore"
	"holdfast/internal/store/vault"
)

// t0 is the instant that every command of these tests runs at.
var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

// apiKey is a secret that must never be seen in any output.
const apiKey = "sk-ant-api03-EXAMPLE-never-shown"

// bench is a data directory, or a table, with an environment.
type bench struct {
	t     *testing.T
	dir   string
	table string // if set, instead of dir
	env   map[string]string
	now   func() time.Time
	// program is how the program says that it was started.
	program string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return &bench{t: t, dir: filepath.Join(t.TempDir(), "data"), env: map[string]string{"KEY": apiKey}, now: func() time.Time { return t0 }}
}

// place says where the data is.
func (b *bench) place() []string {
	if b.table != "" {
		return []string{"--table", b.table}
	}
	return []string{"--data", b.dir}
}

// result is what a command did.
type result struct {
	code           int
	stdout, stderr string
}

// run runs a command and checks what holds for all of them: no secret is shown, and an
// error is one line.
func (b *bench) run(args ...string) result {
	b.t.Helper()
	return b.runWith("", args...)
}

func (b *bench) runWith(stdin string, args ...string) result {
	b.t.Helper()
	return b.runAt(b.place(), stdin, args...)
}

func (b *bench) runAt(place []string, stdin string, args ...string) result {
	b.t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute) // for a server that should not have begun
	defer cancel()
	code := command.Run(ctx, append(place, args...), b.options(strings.NewReader(stdin), &stdout, &stderr))
	r := result{code, b.bare(stdout.String()), b.bare(stderr.String())}
	for _, secret := range []string{"EXAMPLE", "hunter2"} {
		if strings.Contains(r.stdout+r.stderr, secret) {
			b.t.Errorf("%v shows a secret:\n%s%s", args, r.stdout, r.stderr)
		}
	}
	if code != 0 {
		if strings.Count(r.stderr, "\n") != 1 || !strings.HasPrefix(r.stderr, "holdfast: ") {
			b.t.Errorf("%v: an error is one line that begins with the program's name, got:\n%s", args, r.stderr)
		}
		if r.stdout != "" {
			b.t.Errorf("%v failed and wrote to standard output:\n%s", args, r.stdout)
		}
	}
	return r
}

// bare leaves out where the data is, which advice repeats: see TestAdviceCanBePasted.
func (b *bench) bare(text string) string {
	return strings.ReplaceAll(text, "holdfast "+strings.Join(b.place(), " "), "holdfast")
}

func (b *bench) options(stdin *strings.Reader, stdout, stderr *bytes.Buffer) command.Options {
	return command.Options{
		Build:     command.Build{Version: "1.2.3"},
		Program:   b.program,
		Providers: all.Providers(),
		Stdin:     stdin, Stdout: stdout, Stderr: stderr,
		LookupEnv: func(name string) (string, bool) { v, ok := b.env[name]; return v, ok },
		Environ:   b.environ,
		OpenTable: func(ctx context.Context, name string) (command.Table, error) { return profile.Open(ctx, name) },
		Now:       b.now,
		Random:    rand.Reader,
	}
}

func (b *bench) environ() []string {
	var all []string
	for name, value := range b.env {
		all = append(all, name+"="+value)
	}
	return all
}

// must runs a command that has to succeed.
func (b *bench) must(args ...string) result {
	b.t.Helper()
	r := b.run(args...)
	if r.code != 0 {
		b.t.Fatalf("%v: status %d: %s", args, r.code, r.stderr)
	}
	return r
}

// refuses runs a command that has to fail with a status and words, and change nothing.
func (b *bench) refuses(code int, want string, args ...string) {
	b.t.Helper()
	before := b.contents()
	r := b.run(args...)
	if r.code != code || !strings.Contains(r.stderr, want) {
		b.t.Errorf("%v: got status %d, %s want status %d and %q", args, r.code, r.stderr, code, want)
	}
	if after := b.contents(); after != before {
		b.t.Errorf("%v failed and changed something:\nbefore %s\nafter  %s", args, before, after)
	}
}

// contents is everything stored, except readings of pins.
func (b *bench) contents() string {
	b.t.Helper()
	if _, err := os.Stat(b.dir); err != nil && b.table == "" {
		return "no data directory"
	}
	s := b.open()
	defer shut(b.t, s)
	snap, err := s.Snapshot(b.t.Context(), true)
	if err != nil {
		b.t.Fatal(err)
	}
	credentials := map[account.ID]int64{}
	for _, a := range snap.Catalog.Accounts {
		sealed, err := s.Credential(b.t.Context(), a.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		credentials[a.ID] = sealed.Revision
	}
	text, err := json.Marshal([]any{snap, credentials})
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func (b *bench) open() *store.Store {
	b.t.Helper()
	if b.table != "" {
		opened, err := profile.Open(b.t.Context(), b.table)
		if err != nil {
			b.t.Fatal(err)
		}
		return store.New(opened)
	}
	backend, err := sqlitestore.Open(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	return store.New(backend)
}

// shut closes a store that a test opened.
func shut(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// sealed opens the store with its vault, as a server would.
func (b *bench) sealed() (*store.Store, vault.Vault) {
	b.t.Helper()
	key, err := seal.LoadOrCreate(filepath.Join(b.dir, "holdfast.key"))
	if err != nil {
		b.t.Fatal(err)
	}
	box, err := seal.New(key)
	if err != nil {
		b.t.Fatal(err)
	}
	s := b.open()
	return s, vault.Vault{Store: s, Box: box}
}

// fold changes what is known of an account.
func (b *bench) fold(name string, change func(account.State) account.State) {
	b.t.Helper()
	s := b.open()
	defer shut(b.t, s)
	snap, err := s.Snapshot(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	a, ok := snap.Catalog.Account(name)
	if !ok {
		b.t.Fatalf("there is no account %q", name)
	}
	_, err = s.Fold(b.t.Context(), a.ID, snap.States[a.ID], func(s account.State) (account.State, bool) { return change(s), true })
	if err != nil {
		b.t.Fatal(err)
	}
}

// state is what is known of an account.
func (b *bench) state(name string) store.StateRecord {
	b.t.Helper()
	s := b.open()
	defer shut(b.t, s)
	snap, err := s.Snapshot(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	a, ok := snap.Catalog.Account(name)
	if !ok {
		b.t.Fatalf("there is no account %q", name)
	}
	return snap.States[a.ID]
}

// decode reads a command's JSON.
func decode[T any](t *testing.T, r result) T {
	t.Helper()
	var v T
	decoder := json.NewDecoder(strings.NewReader(r.stdout))
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, r.stdout)
	}
	return v
}

// file writes a file beside the data directory and returns its name.
func (b *bench) file(name, text string) string {
	b.t.Helper()
	path := filepath.Join(filepath.Dir(b.dir), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}
