package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/aws/lambdahttp"
	"holdfast/internal/command"
	"holdfast/internal/test/upstreamtest"
)

// asFunction makes this test's binary a function that tells its process and environment.
const asFunction = "HOLDFAST_TEST_FUNCTION"

func TestMain(m *testing.M) {
	if os.Getenv(asFunction) == "" {
		os.Exit(m.Run())
	}
	err := lambdahttp.Start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadline, _ := r.Context().Deadline()
		fmt.Fprintln(os.Stderr, "the function speaks")
		_ = json.NewEncoder(w).Encode(told{os.Getpid(), os.Environ(), time.Until(deadline).Round(time.Minute).String()})
	}), lambdahttp.Options{Margin: time.Millisecond})
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

type told struct {
	PID     int
	Env     []string
	Timeout string
}

func (f told) value(name string) string {
	for _, v := range slices.Backward(f.Env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return "unset"
}

// functionURL is `holdfast function-url` running in this process.
func (b *bench) functionURL(args ...string) server {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	s := server{stdout: &lines{}, stderr: &lines{want: regexp.MustCompile(`holdfast is listening on (\S+)\n`), got: make(chan string, 1)}}
	o := b.options(strings.NewReader(""), nil, nil)
	o.Stdout, o.Stderr = s.stdout, s.stderr
	ended := make(chan int, 1)
	go func() {
		ended <- command.Run(ctx, append([]string{"function-url", "--addr", "127.0.0.1:0"}, args...), o)
	}()
	s.stop = sync.OnceValue(func() int { cancel(); return <-ended })
	b.t.Cleanup(func() { s.stop() })
	select {
	case s.url = <-s.stderr.got:
	case code := <-ended:
		ended <- code
		b.t.Fatalf("function-url ended with status %d: %s", code, s.stderr)
	}
	return s
}

func ask(t *testing.T, url string) told {
	t.Helper()
	status, _, text := call(t, http.MethodGet, url, "", "")
	var f told
	if err := json.Unmarshal([]byte(text), &f); err != nil || status != http.StatusOK {
		t.Fatalf("got status %d: %s", status, text)
	}
	return f
}

func TestFunctionURL(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.env = map[string]string{
		asFunction: "1", "HOLDFAST_TABLE": "mine", "AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:1",
		"HOME": "/home/me", "OTHER": "other", "PASSED": "from here", "PATH": os.Getenv("PATH"),
	}
	s := b.functionURL("--binary", self, "--function", "gw", "--timeout", "2m", "--env", "PASSED", "--env", "SET=a=b", "--env", "HOLDFAST_TABLE=another")
	f := ask(t, s.url)
	for name, want := range map[string]string{
		"HOLDFAST_TABLE": "another", "AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:1", "PASSED": "from here",
		"SET": "a=b", "HOME": "unset", "OTHER": "unset", "AWS_LAMBDA_FUNCTION_NAME": "gw",
	} {
		if got := f.value(name); got != want {
			t.Errorf("the function's %s: got %q, want %q", name, got, want)
		}
	}
	if f.Timeout != "2m0s" {
		t.Errorf("timeout: got %s, want 2m", f.Timeout)
	}
	if s.stop() != 0 {
		t.Errorf("it ended badly: %s", s.stderr)
	}
	if said := s.stderr.String(); !strings.Contains(said, "The gateway's function needs HOLDFAST_KMS_KEY_ID, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY in its environment") ||
		!strings.Contains(said, "the function speaks") || s.stdout.String() != "" {
		t.Errorf("it said %q and printed %q", said, s.stdout)
	}
	if err := syscall.Kill(f.PID, 0); err == nil {
		t.Errorf("the function's process %d is still there", f.PID)
	}
}

// TestFunctionURLEndpoint passes events on to where the function runs elsewhere.
func TestFunctionURLEndpoint(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/gw/invocations", func(w http.ResponseWriter, r *http.Request) {
		var event struct{ RawPath string }
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"statusCode":203,"headers":{"x-a":"b"}}`+strings.Repeat("\x00", 8)+event.RawPath)
	})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := &http.Server{Handler: mux}
	go func() { _ = elsewhere.Serve(listener) }()
	defer elsewhere.Close()
	s := newBench(t).functionURL("--endpoint", "http://"+listener.Addr().String(), "--function", "gw")
	status, header, text := call(t, http.MethodGet, s.url+"/here", "", "")
	if status != 203 || header.Get("X-A") != "b" || text != "/here" {
		t.Errorf("got status %d, %v, %q", status, header, text)
	}
	if said := s.stderr.String(); strings.Contains(said, "needs HOLDFAST_TABLE") {
		t.Errorf("it mentions an environment that it does not make: %s", said)
	}
}

func TestFunctionURLRefuses(t *testing.T) {
	b := newBench(t)
	dir := filepath.Dir(b.dir)
	plain := b.file("plain", "x")
	foreign := map[string]string{"amd64": "\xb7", "arm64": "\x3e"}[runtime.GOARCH]
	program := b.file("foreign", "\x7fELF"+strings.Repeat("\x00", 14)+foreign+"\x00")
	script := b.file("script", "#!/bin/sh\n")
	for _, name := range []string{program, script} {
		if err := os.Chmod(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	b.env = nil
	for _, tt := range []struct {
		code int
		want string
		args []string
	}{
		{2, "say what answers: --binary FILE", nil},
		{2, "give --binary or --endpoint, not both", []string{"--binary", program, "--endpoint", "http://127.0.0.1:1"}},
		{2, "--data does not go with function-url", []string{"--binary", program, "--data", dir}},
		{2, "--table, --env and --timeout go with --binary", []string{"--endpoint", "http://127.0.0.1:1", "--table", "holdfast"}},
		{2, "--table, --env and --timeout go with --binary", []string{"--endpoint", "http://127.0.0.1:1", "--env", "A=b"}},
		{2, "--table, --env and --timeout go with --binary", []string{"--endpoint", "http://127.0.0.1:1", "--timeout", "1m"}},
		{2, "from 1s to 15m", []string{"--binary", program, "--timeout", "16m"}},
		{2, "from 1s to 15m", []string{"--binary", program, "--timeout", "1ms"}},
		{2, "--env takes NAME=VALUE", []string{"--binary", program, "--env", "=x"}},
		{2, "pass it on with --env KEY", []string{"--binary", program, "--env", "KEY=" + apiKey}},
		{2, "a host and a port", []string{"--binary", program, "--addr", "9000"}},
		{1, "is in use already", []string{"--binary", program, "--addr", taken.Addr().String()}},
		{1, "there is no file " + dir + "/none; build the function first (make function)", []string{"--binary", dir + "/none"}},
		{1, "is a folder; name the function's program in it, such as " + dir + "/bootstrap", []string{"--binary", dir}},
		{1, "is not executable", []string{"--binary", plain}},
		{1, "the environment variable UNSET is not set", []string{"--binary", script, "--env", "UNSET"}},
		{1, "the endpoint is no http address", []string{"--endpoint", "127.0.0.1:3001"}},
	} {
		args := append([]string{"function-url"}, tt.args...)
		if !slices.Contains(args, "--addr") {
			args = append(args, "--addr", "127.0.0.1:0")
		}
		r := b.runAt(nil, "", args...)
		if r.code != tt.code || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%q: got status %d, %s want status %d and %q", tt.args, r.code, r.stderr, tt.code, tt.want)
		}
	}
	if s := b.functionURL("--binary", program); !strings.Contains(s.stderr.String(), "is built for linux/") {
		t.Errorf("of a program for another machine it said %s", s.stderr)
	}
}

// TestGatewayFunction: the Lambda's own program answers on the table that the command
// prepared, and naming that table is enough.
func TestGatewayFunction(t *testing.T) {
	b, _ := newTableBench(t)
	b.now = time.Now // as the function's
	up := upstreamtest.Start(t)
	up.Account("work", apiKey)
	b.must("account", "add", "work", "--provider", "anthropic", "--key-env", "KEY", "--base-url", up.URL)
	key := strings.TrimSpace(b.must("key", "create", "laptop").stdout)

	program := filepath.Join(t.TempDir(), "gateway")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", program, "holdfast/functions/gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	s := b.functionURL("--binary", program, "--table", b.table)
	if said := s.stderr.String(); strings.Contains(said, "needs") {
		t.Errorf("it misses something: %s", said)
	}
	status, header, text := call(t, http.MethodPost, s.url+"/v1/messages", key, hello)
	if status != http.StatusOK || header.Get("X-Holdfast-Account") != "work" || header.Get("X-Holdfast-Pin") != "new" {
		t.Errorf("got status %d, account %q, pin %q: %s", status, header.Get("X-Holdfast-Account"), header.Get("X-Holdfast-Pin"), text)
	}
	if status, _, _ = call(t, http.MethodPost, s.url+"/v1/messages", "hf_no", hello); status != http.StatusUnauthorized {
		t.Errorf("without a key: got status %d, want 401", status)
	}
	if s.stop() != 0 {
		t.Errorf("it ended badly: %s", s.stderr)
	}
	for _, secret := range []string{"EXAMPLE", key, "AWS_SECRET_ACCESS_KEY"} {
		if strings.Contains(s.stderr.String(), secret) {
			t.Errorf("it shows %q: %s", secret, s.stderr)
		}
	}
	if live := b.must("status").stdout; !regexp.MustCompile(`(?m)^work .* 1$`).MatchString(live) {
		t.Errorf("the table does not show the pin:\n%s", live)
	}
}
