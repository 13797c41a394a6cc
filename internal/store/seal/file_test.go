package seal_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"holdfast/internal/store/seal"
)

// keyPathEnv names the key file for the test binary as another process, which tells a
// hash that only the key gives.
const keyPathEnv = "HOLDFAST_TEST_KEY"

func TestMain(m *testing.M) {
	if path := os.Getenv(keyPathEnv); path != "" {
		hash, err := fingerprint(path)
		fmt.Println(hash, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func fingerprint(path string) (string, error) {
	key, err := seal.LoadOrCreate(path)
	if err != nil {
		return "", err
	}
	b, err := seal.New(key)
	if err != nil {
		return "", err
	}
	return b.KeyedHash("test", nil), nil
}

func TestKeyFileIsMadeOnce(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0)) // so that nothing but the code narrows modes
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	first, err := seal.LoadOrCreate(path)
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	if first == ([seal.KeySize]byte{}) {
		t.Error("got a key of zeros, want a random one")
	}
	again, err := seal.LoadOrCreate(path)
	if err != nil || again != first {
		t.Errorf("got another key, or error %v, want the same key", err)
	}
	other, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "key"))
	if err != nil || other == first {
		t.Errorf("elsewhere: got the same key, or error %v, want another key", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("got %d files and error %v, want the key file alone", len(files), err)
	}
	info, err := files[0].Info()
	if err != nil || info.Mode() != 0o600 || info.Size() != seal.KeySize {
		t.Errorf("got mode %v, %d bytes and error %v, want 0600 and %d", info.Mode(), info.Size(), err, seal.KeySize)
	}
}

func TestKeyFileMadeByManyAtOnce(t *testing.T) {
	const goroutines, processes = 16, 4
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		path := filepath.Join(t.TempDir(), "key")
		got := make([]string, goroutines+processes)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				if i < goroutines {
					hash, err := fingerprint(path)
					got[i] = fmt.Sprintln(hash, err)
					return
				}
				cmd := exec.Command(self)
				cmd.Env = append(os.Environ(), keyPathEnv+"="+path)
				out, err := cmd.Output()
				if err != nil {
					t.Errorf("another process: %v", err)
				}
				got[i] = string(out)
			})
		}
		all.Wait()
		for i, g := range got {
			if g != got[0] || !strings.HasSuffix(g, " <nil>\n") {
				t.Errorf("%d: got %q, want the key of all others", i, g)
			}
		}
		if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
			t.Errorf("got %d files and error %v, want the key file alone", len(files), err)
		}
	}
}

func TestKeyFileRefused(t *testing.T) {
	key := bytes.Repeat([]byte("\xabK"), seal.KeySize/2)
	for _, c := range []struct {
		name string
		make func(path string) error
		says string
	}{
		{"readable by the group", withMode(key, 0o640), "run chmod 600 '%s'"},
		{"readable by all", withMode(key, 0o644), "run chmod 600 '%s'"},
		{"writable by all", withMode(key, 0o602), "run chmod 600 '%s'"},
		{"short", withMode(key[:31], 0o600), "%s is damaged: it has 31 bytes in place of 32"},
		{"long", withMode(append(bytes.Clone(key), '\n'), 0o600), "%s is damaged: it has 33 bytes in place of 32"},
		{"empty", withMode(nil, 0o600), "%s is damaged: it has 0 bytes in place of 32"},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o700) }, "%s is not a file"},
		{"in no directory", func(path string) error { return os.Remove(filepath.Dir(path)) }, "make the key file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dir", "key")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			before := look(path)
			got, err := seal.LoadOrCreate(path)
			if err == nil || got != ([seal.KeySize]byte{}) {
				t.Fatalf("got a key, or no error, want an error alone")
			}
			if says := strings.ReplaceAll(c.says, "%s", path); !strings.Contains(err.Error(), says) {
				t.Errorf("got %q, want it to say %q", err, says)
			}
			if strings.Contains(traces(err), "\xabK\xabK") || strings.Contains(strings.ToLower(traces(err)), "ab4bab4b") {
				t.Error("got the key in the error")
			}
			if after := look(path); after != before {
				t.Errorf("got the file changed to %s, want %s", after, before)
			}
		})
	}
}

func withMode(content []byte, mode fs.FileMode) func(path string) error {
	return func(path string) error {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
		return os.Chmod(path, mode)
	}
}

func look(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	content, _ := os.ReadFile(path)
	return fmt.Sprint(info.Mode(), content)
}
