package sqlitestore_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pin"
	"holdfast/internal/store"
	"holdfast/internal/store/sqlitestore"
)

// roleEnv names the role that the test binary plays as another process.
const roleEnv = "HOLDFAST_TEST_ROLE"

func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		if err := roles[name](os.Args[1], os.Args[2:]); err != nil {
			fmt.Println("refused: " + err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// roles are what another process does with a data directory. Each tells what it did on
// its standard output, line by line.
var roles = map[string]func(dir string, args []string) error{
	// add counts once.
	"add": func(dir string, _ []string) error {
		b, err := sqlitestore.Open(dir)
		if err != nil {
			return err
		}
		defer b.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		n, err := b.Add(ctx, store.Key{Kind: store.KindPin, ID: "x"}, 0)
		if err == nil {
			fmt.Println("added", n)
		}
		return err
	},
	// claim claims the pins whose keys it is told, for an account, one after the other.
	"claim": func(dir string, args []string) error {
		b, err := sqlitestore.Open(dir)
		if err != nil {
			return err
		}
		defer b.Close()
		s := store.New(b)
		fmt.Println("ready")
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			now := time.Now()
			r := pin.New(account.Account{ID: account.ID(args[0]), Provider: account.Anthropic}, false, now, time.Hour)
			got, won, err := s.ClaimPin(context.Background(), in.Text(), r, now)
			if err != nil {
				return err
			}
			fmt.Println(won, got.Account)
		}
		return nil
	},
	// write replaces a record for ever, and tells each revision when it is written.
	"write": func(dir string, _ []string) error {
		b, err := sqlitestore.Open(dir)
		if err != nil {
			return err
		}
		found, err := b.Get(context.Background(), []store.Key{chainKey})
		if err != nil {
			return err
		}
		var r store.Record
		if len(found) > 0 {
			r = found[0]
		}
		for {
			next := store.Record{Key: chainKey, Body: chainBody(r.Revision + 1)}
			if r, err = b.Put(context.Background(), next, store.Condition{Revision: r.Revision}); err != nil {
				return err
			}
			fmt.Println(r.Revision)
		}
	},
	// look tells whether another process holds the lock by which SQLite knows that a
	// database is in use: bytes 0x40000002 and 509 more, as its file format says.
	"look": func(dir string, _ []string) error {
		f, err := os.Open(filepath.Join(dir, sqlitestore.File))
		if err != nil {
			return err
		}
		defer f.Close()
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: 0x40000002, Len: 510}
		if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
			return err
		}
		fmt.Println("in use:", lock.Type != syscall.F_UNLCK)
		return nil
	},
	// lock holds the write lock, with a change that is not committed, until its input ends.
	"lock": func(dir string, _ []string) error {
		db, err := sql.Open("sqlite", filepath.Join(dir, sqlitestore.File))
		if err != nil {
			return err
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		for _, q := range []string{
			"PRAGMA busy_timeout=5000", "BEGIN IMMEDIATE",
			"INSERT INTO record (kind, id, revision, body, count) VALUES ('pin', 'uncommitted', 1, x'00', 0)",
		} {
			if _, err := db.Exec(q); err != nil {
				return err
			}
		}
		fmt.Println("locked")
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		return nil
	},
}

var chainKey = store.Key{Kind: store.KindPin, ID: "chain"}

// chainBody is long enough to span several pages, so that a torn write would show.
func chainBody(revision int64) []byte {
	return []byte(strings.Repeat(fmt.Sprintf("%09d ", revision), 1000))
}

// process is another process playing a role.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

func startRole(t *testing.T, name, dir string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return start(t, exec.Command(self, append([]string{dir}, args...)...), name)
}

func start(t *testing.T, cmd *exec.Cmd, name string) *process {
	t.Helper()
	cmd.Env = append(os.Environ(), roleEnv+"="+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := &process{t, cmd, in, bufio.NewReader(out)}
	t.Cleanup(p.kill)
	return p
}

// line is the next line that the process told; empty at the end.
func (p *process) line() string {
	line, _ := p.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n")
}

// tell gives the process a line.
func (p *process) tell(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Errorf("tell another process: %v", err)
	}
}

// wait ends the process's input and returns all that it still tells.
func (p *process) wait() string {
	p.in.Close()
	rest, _ := io.ReadAll(p.lines)
	_ = p.cmd.Wait() // a role that is refused reports it
	return string(rest)
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func TestProcessesRaceForClaims(t *testing.T) {
	const racers, rounds = 4, 50
	dir := t.TempDir()
	b := open(t, dir)
	defer b.Close()
	var all []*process
	for i := range racers {
		all = append(all, startRole(t, "claim", dir, fmt.Sprintf("account%d", i)))
	}
	for _, p := range all {
		if got := p.line(); got != "ready" {
			t.Fatalf("got %q, want ready", got)
		}
	}
	for round := range rounds {
		key := fmt.Sprintf("key%d", round)
		for _, p := range all {
			p.tell(key)
		}
		winners := 0
		var adopted string
		for i, p := range all {
			won, who, _ := strings.Cut(p.line(), " ")
			if won == "true" {
				winners++
				if want := fmt.Sprintf("account%d", i); who != want {
					t.Errorf("the winner got %q, want its own %q", who, want)
				}
			}
			if i > 0 && who != adopted {
				t.Errorf("got %q adopted, want %q as by the others", who, adopted)
			}
			adopted = who
		}
		if winners != 1 {
			t.Fatalf("got %d winners, want 1", winners)
		}
	}
	pins, err := store.New(b).Pins(t.Context())
	if err != nil || len(pins) != rounds {
		t.Errorf("got %d pins and error %v, want %d and none", len(pins), err, rounds)
	}
	for _, p := range all {
		if got := p.wait(); got != "" {
			t.Errorf("got %q, want no more", got)
		}
	}
}

func TestKilledWriterLosesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		beside bool // another process has the store open
	}{{"alone", false}, {"beside a reader", true}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir).Close()
			if c.beside {
				b := open(t, dir)
				defer b.Close()
				if _, err := b.Get(t.Context(), []store.Key{chainKey}); err != nil {
					t.Fatal(err)
				}
			}
			var last int64
			for range 3 {
				p := startRole(t, "write", dir)
				for range 40 {
					last = revisionOf(t, p.line())
				}
				if err := p.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				for line := p.line(); line != ""; line = p.line() {
					last = revisionOf(t, line)
				}
				p.kill()

				b := open(t, dir)
				found, err := b.Get(t.Context(), []store.Key{chainKey})
				if err != nil || len(found) != 1 {
					t.Fatalf("got %d records and error %v, want 1 and none", len(found), err)
				}
				r := found[0]
				// One more may have been written than the process came to tell.
				if r.Revision != last && r.Revision != last+1 {
					t.Errorf("got revision %d, want the told %d or the next", r.Revision, last)
				}
				if string(r.Body) != string(chainBody(r.Revision)) {
					t.Errorf("got a body that is not revision %d's", r.Revision)
				}
				// integrity_check tells "ok", or what is wrong.
				if n, err := b.Number(t.Context(), "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'"); n != 1 || err != nil {
					t.Errorf("got %d and error %v, want an intact file", n, err)
				}
				next := store.Record{Key: chainKey, Body: chainBody(r.Revision + 1)}
				if _, err := b.Put(t.Context(), next, store.Condition{Revision: r.Revision}); err != nil {
					t.Errorf("got %v, want the next write to work", err)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func revisionOf(t *testing.T, line string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		t.Fatalf("got %q, want a revision", line)
	}
	return n
}

func TestLockHeldByAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	defer b.Close()
	s := store.New(b)
	key := store.Key{Kind: store.KindState, ID: "a"}
	if _, err := b.Put(t.Context(), store.Record{Key: key, Body: []byte("{}")}, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	p := startRole(t, "lock", dir)
	if got := p.line(); got != "locked" {
		t.Fatalf("got %q, want locked", got)
	}

	for name, call := range map[string]func(ctx context.Context) error{
		"put": func(ctx context.Context) error {
			_, err := b.Put(ctx, store.Record{Key: key}, store.Condition{Revision: 1})
			return err
		},
		"add":    func(ctx context.Context) error { _, err := b.Add(ctx, key, 0); return err },
		"delete": func(ctx context.Context) error { return b.Delete(ctx, key, 1) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := call(ctx); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrUnavailable", name, err)
		}
		cancel()
	}
	// Without a deadline of its own, a call of the store's still ends.
	if _, _, err := s.Place(context.WithoutCancel(t.Context()), "a", 0); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("place: got %v, want ErrUnavailable", err)
	}
	// Readers wait for nobody, and opening waits for no writer.
	other := open(t, dir)
	defer other.Close()
	for _, h := range []*sqlitestore.Backend{b, other} {
		found, err := h.Get(t.Context(), []store.Key{key, {Kind: store.KindPin, ID: "uncommitted"}})
		if err != nil || len(found) != 1 || found[0].Count != 0 || found[0].Revision != 1 {
			t.Errorf("got %v and error %v, want the one record unchanged", found, err)
		}
	}

	p.kill()
	if n, err := b.Add(t.Context(), key, 0); n != 1 || err != nil {
		t.Errorf("after the lock: got %d and error %v, want 1 and none", n, err)
	}
	found, err := other.Get(t.Context(), []store.Key{{Kind: store.KindPin, ID: "uncommitted"}})
	if err != nil || len(found) != 0 {
		t.Errorf("got %v and error %v, want nothing of what was not committed", found, err)
	}
}

// SQLite's locks are the process's: closing any descriptor of the file drops them, and
// then another process may take the file for unused.
func TestOpeningAgainKeepsOurLocks(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	key := store.Key{Kind: store.KindPin, ID: "x"}
	if _, err := b.Add(t.Context(), key, 0); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if got := startRole(t, "look", dir).wait(); got != "in use: true\n" {
		t.Errorf("opened twice: got %q, want it in use", got)
	}
	must(t, again.Close())
	if got := startRole(t, "look", dir).wait(); got != "in use: true\n" {
		t.Errorf("opened twice and closed once: got %q, want it in use", got)
	}
	must(t, b.Close())
	if got := startRole(t, "look", dir).wait(); got != "in use: false\n" {
		t.Errorf("closed: got %q, want it unused", got)
	}
}

// nobody is the user and group that the superuser's tests become.
const nobody = 65534

// sharedDir is a directory whose path another user can follow.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sqlitestore")
	must(t, err)
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
		_ = os.RemoveAll(dir)
	})
	must(t, os.Chmod(dir, 0o755))
	return dir
}

// giveAway makes everything below a directory the property of nobody, if we may.
func giveAway(t *testing.T, root string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}))
}

// startUnprivileged plays a role as a user for whom modes count: ourselves, or nobody
// where we are the superuser.
func startUnprivileged(t *testing.T, name, dir string) *process {
	t.Helper()
	if os.Getuid() != 0 {
		return startRole(t, name, dir)
	}
	self, err := os.Executable()
	must(t, err)
	binary, err := os.ReadFile(self)
	must(t, err)
	copied := filepath.Join(sharedDir(t), "test") // the original is in a directory of ours alone
	must(t, os.WriteFile(copied, binary, 0o755))
	cmd := exec.Command(copied, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return start(t, cmd, name)
}
