package functiontest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// Binary is the gateway's program as a deployment has it, for this machine. It is built
// once, by the target of the Makefile that `sam build` calls, and removed by Main.
func Binary(t testing.TB) string { return binary(t, build) }

// Poller is the poller's program, in the same way.
func Poller(t testing.TB) string { return binary(t, buildPoller) }

func binary(t testing.TB, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Main runs a package's tests and removes what was built for them; its result is the exit
// status.
func Main(m *testing.M) int {
	defer func() {
		for _, dir := range built {
			_ = os.RemoveAll(dir)
		}
	}()
	return m.Run()
}

// built are the folders to remove in the end.
var built []string

var (
	build       = sync.OnceValues(func() (string, error) { return buildTarget("build-Gateway") })
	buildPoller = sync.OnceValues(func() (string, error) { return buildTarget("build-Poller") })
)

func buildTarget(target string) (string, error) {
	dir, err := os.MkdirTemp("", "holdfast-function-")
	if err != nil {
		return "", err
	}
	built = append(built, dir)
	cmd := exec.CommandContext(context.Background(), "make", "--no-print-directory", target, "ARTIFACTS_DIR="+dir, "ARCHITECTURE="+Architecture)
	if cmd.Dir, err = Root(); err != nil {
		return "", err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make %s: %w\n%s", target, err, out)
	}
	return filepath.Join(dir, "bootstrap"), nil
}

// Architecture is this machine's, in the template's words.
var Architecture = map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]

// Root is the top folder of the repository, found from the working folder.
func Root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no folder above the working folder has a go.mod")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
