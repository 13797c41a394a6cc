package functiontest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// Binary is the program as a deployment has it, for this machine. It is built once, by the
// target of the Makefile that `sam build` calls, and removed by Main.
func Binary(t testing.TB) string {
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
		if built != "" {
			_ = os.RemoveAll(built)
		}
	}()
	return m.Run()
}

var built string

var build = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "holdfast-function-"); err != nil {
		return "", err
	}
	cmd := exec.Command("make", "--no-print-directory", "build-Gateway", "ARTIFACTS_DIR="+built, "ARCHITECTURE="+Architecture)
	if cmd.Dir, err = Root(); err != nil {
		return "", err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build-Gateway: %w\n%s", err, out)
	}
	return filepath.Join(built, "bootstrap"), nil
})

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
