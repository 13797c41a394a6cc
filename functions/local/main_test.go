package main_test

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// build builds the program once for a test.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X main.version=9.9.9", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// The built program meets its real surroundings: arguments, environment, streams, exit
// status and signals.
func TestProgram(t *testing.T) {
	path, dir := build(t), t.TempDir()
	run := func(stdin string, args ...string) (int, string, string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = []string{"HOME=" + dir, "KEY=sk-ant-api03-EXAMPLE"}
		cmd.Stdin = strings.NewReader(stdin)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	if code, stdout, _ := run("", "version"); code != 0 || stdout != "holdfast 9.9.9\n" {
		t.Errorf("version: got status %d, %q", code, stdout)
	}
	if code, _, stderr := run("sk-ant-api03-EXAMPLE-piped\n", "account", "add", "piped", "--provider", "anthropic", "--key-stdin"); code != 0 {
		t.Errorf("from standard input: status %d: %s", code, stderr)
	}
	if code, _, stderr := run("", "account", "add", "set", "--provider", "anthropic", "--key-env", "KEY"); code != 0 {
		t.Errorf("from the environment: status %d: %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, ".local", "share", "holdfast", "holdfast.db")); err != nil {
		t.Errorf("the data is not below HOME: %v", err)
	}
	if code, stdout, stderr := run("", "account", "add", "x", "sk-ant-api03-EXAMPLE"); code != 2 || strings.Contains(stdout+stderr, "EXAMPLE") {
		t.Errorf("a secret as an argument: status %d: %s", code, stderr)
	}
	if code, _, stderr := run("", "account", "remove", "nobody"); code != 1 || strings.Count(stderr, "\n") != 1 {
		t.Errorf("an action that fails: status %d: %s", code, stderr)
	}
	code, stdout, _ := run("", "key", "create", "laptop")
	if code != 0 || strings.Count(stdout, "\n") != 1 || !strings.HasPrefix(stdout, "hf_") {
		t.Errorf("key create: status %d, %d lines on standard output", code, strings.Count(stdout, "\n"))
	}
}

func TestProgramStops(t *testing.T) {
	path, dir := build(t), t.TempDir()
	// Under nohup this process ignores SIGHUP, and what it starts would inherit that.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	for _, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		cmd := exec.CommandContext(t.Context(), path, "serve", "--data", dir, "--addr", "127.0.0.1:0")
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(stderr)
		listening := false
		for said.Scan() {
			if strings.Contains(said.Text(), "holdfast is listening on http://127.0.0.1:") {
				listening = true
				// Serving begins right after this line; the signal is caught from then on.
				if err := cmd.Process.Signal(sent); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err != nil || !listening {
			t.Errorf("after %v: %v; it had listened: %t", sent, err, listening)
		}
	}
}

// A closed terminal does not end a server that was started to survive it.
func TestProgramSurvivesItsTerminal(t *testing.T) {
	path, dir := build(t), t.TempDir()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`, path, "serve", "--data", dir, "--addr", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for said := bufio.NewScanner(stderr); said.Scan(); {
		_, url, listening := strings.Cut(said.Text(), "holdfast is listening on ")
		if !listening {
			continue
		}
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("after SIGHUP: %v", err)
		}
		_ = resp.Body.Close()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// Stopping a Function URL ends the function's processes.
func TestProgramStopsFunctions(t *testing.T) {
	path, dir := build(t), t.TempDir()
	function := filepath.Join(dir, "function")
	if err := os.WriteFile(function, []byte("#!/bin/sh\necho function $$\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "function-url", "--binary", function, "--addr", "127.0.0.1:0")
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid, said := 0, bufio.NewScanner(stderr)
	for said.Scan() {
		if _, url, found := strings.Cut(said.Text(), "holdfast is listening on "); found {
			go func() {
				if answer, err := http.Get(url); err == nil { // no answer: the function is ended before
					answer.Body.Close()
				}
			}()
		}
		if text, found := strings.CutPrefix(said.Text(), "function "); found {
			if pid, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
		if pid != 0 && (strings.HasPrefix(said.Text(), "function ") || strings.Contains(said.Text(), "holdfast is stopping")) {
			// The second one ends the request that the function never answers.
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || pid == 0 {
		t.Errorf("after SIGTERM: %v; the function ran as process %d", err, pid)
	}
	if err := syscall.Kill(pid, 0); pid != 0 && err == nil {
		t.Errorf("the function's process %d is still there", pid)
	}
}
