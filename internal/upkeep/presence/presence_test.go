package presence_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/upkeep/presence"
)

// roleEnv makes the test binary a process that announces itself and waits.
const roleEnv = "HOLDFAST_TEST_PRESENCE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(roleEnv); dir != "" {
		if err := presence.In(dir).Announce("other"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("here")
		select {}
	}
	os.Exit(m.Run())
}

// Part of field case killed-in-mid-renewal: a process that is stopped is here, one that was
// killed is gone, and of one that never was nothing is known.
func TestAnotherProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "renewing")
	d := presence.In(dir)
	look := func(want presence.Standing, when string) {
		t.Helper()
		if got := d.Look("other"); got != want {
			t.Errorf("%s: got %d, want %d", when, got, want)
		}
	}
	look(presence.Unknown, "before it is there")
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	if line := bufio.NewScanner(out); !line.Scan() || line.Text() != "here" {
		t.Fatalf("the process said %q", line.Text())
	}
	look(presence.Here, "while it lives")
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	look(presence.Here, "while it is stopped")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	ended = true
	for range 2 {
		look(presence.Gone, "once it was killed")
	}
}

func TestOurselves(t *testing.T) {
	dir := t.TempDir()
	d := presence.In(filepath.Join(dir, "renewing"))
	for range 2 {
		if err := d.Announce("us"); err != nil {
			t.Fatal(err)
		}
	}
	if d.Look("us") != presence.Here || presence.In(filepath.Join(dir, "renewing")).Look("us") != presence.Here {
		t.Error("a process that lives is not seen")
	}
	file := filepath.Join(dir, "renewing", "us.lock")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file of mode 0600", info, err)
	}
	for range 2 {
		if err := d.Leave("us"); err != nil {
			t.Error(err)
		}
	}
	if got := d.Look("us"); got != presence.Unknown {
		t.Errorf("after it left: got %d, want that nothing is known", got)
	}
	for _, name := range []string{"", "../us", "a/b", "a.b"} {
		if d.Announce(name) == nil || d.Look(name) != presence.Unknown {
			t.Errorf("%q was taken for a name", name)
		}
	}
}

// Processes that look at once do not take each other for the one that they look for.
func TestLookersDoNotSeeEachOther(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "gone.lock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	if got := presence.In(dir).Look("gone"); got != presence.Gone {
		t.Errorf("while another looks: got %d, want %d: nobody holds it", got, presence.Gone)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if got := presence.In(dir).Look("gone"); got != presence.Gone {
					t.Errorf("eight lookers: got %d, want %d", got, presence.Gone)
					return
				}
			}
		})
	}
	all.Wait()
}

// A name that is taken is refused with an error of that kind, and a failure of another kind
// is not: the caller can tell them apart.
func TestErrorsOfAnnounce(t *testing.T) {
	dir := t.TempDir()
	if err := presence.In(dir).Announce("us"); err != nil {
		t.Fatal(err)
	}
	if err := presence.In(dir).Announce("us"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that is taken: got %v, want %v", err, fs.ErrExist)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := presence.In(file).Announce("us"); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory that cannot be made: got %v, want an error other than %v", err, fs.ErrExist)
	}
}

// Whoever announces itself while others look at its file succeeds, or says that they looked.
func TestAnnounceWhileOthersLook(t *testing.T) {
	dir := t.TempDir()
	d := presence.In(dir)
	ended := make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					presence.In(dir).Look("us")
				}
			}
		})
	}
	for range 200 {
		if err := d.Announce("us"); errors.Is(err, fs.ErrExist) {
			t.Errorf("got %v: nobody else has the name", err)
		}
		if err := d.Leave("us"); err != nil {
			t.Error(err)
		}
	}
	close(ended)
	all.Wait()
}

// What processes left that are gone is removed, a day later, by the next; what one holds stays.
func TestOldFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	holder := presence.In(dir)
	if err := holder.Announce("held"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, age := range map[string]time.Duration{"held": 48 * time.Hour, "old": 25 * time.Hour, "young": 23 * time.Hour} {
		file := filepath.Join(dir, name+".lock")
		f, err := os.OpenFile(file, os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.Chtimes(file, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	d := presence.In(dir)
	if err := d.Announce("us"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]presence.Standing{"held": presence.Here, "old": presence.Unknown, "young": presence.Gone} {
		if got := d.Look(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
