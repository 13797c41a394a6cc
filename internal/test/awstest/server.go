package awstest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Region is where the account on this machine is.
const Region = "us-east-1"

// Config is a configuration for the account's root user at an endpoint.
func Config(endpoint string) aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}
}

// StartMiniStack returns the endpoint of a MiniStack that this process's tests share.
// With auth it demands what AWS demands, a permission for everything, and a stack can be
// deployed there whose functions then run on this machine.
func StartMiniStack(t testing.TB, auth bool) string {
	t.Helper()
	s := &ministack
	if auth {
		s = &ministackAuth
	}
	return s.start(t)
}

// StartMoto returns the endpoint of a moto server that this process's tests share.
func StartMoto(t testing.TB) string {
	t.Helper()
	return moto.start(t)
}

var (
	ministack = server{
		program: "ministack/bin/ministack", health: "/_ministack/health",
		env: func(port string) []string { return ministackEnv(port, "false") },
	}
	ministackAuth = server{
		program: "ministack/bin/python", health: "/_ministack/health",
		args: func(string) []string { return []string{"-c", withConditions} },
		env: func(port string) []string {
			return append(ministackEnv(port, "true"), "AWS_ENDPOINT_URL=http://127.0.0.1:"+port) // for the functions
		},
	}
	moto = server{
		program: "moto/bin/moto_server", health: "/moto-api/data.json",
		args: func(port string) []string { return []string{"-H", "127.0.0.1", "-p", port} },
	}
)

//go:embed conditions.py
var withConditions string

func ministackEnv(port, auth string) []string {
	return []string{
		"BIND_HOST=127.0.0.1", "GATEWAY_PORT=" + port, "AUTH=" + auth, "IOT_MTLS_ENABLED=0",
		"SERVICES=dynamodb,kms,iam,sts,cloudformation,s3,lambda,logs,cloudwatch,sns,scheduler,events",
	}
}

// server is a program that is started when first asked for.
type server struct {
	program, health string
	args, env       func(port string) []string

	once     sync.Once
	endpoint string
	err      error
	// held is open for as long as this process lives: see run.
	held io.Closer
}

func (s *server) start(t testing.TB) string {
	t.Helper()
	tools := os.Getenv("HOLDFAST_TEST_TOOLS")
	if tools == "" {
		t.Skip("SKIPPED, not passed: HOLDFAST_TEST_TOOLS is not set, so there is no AWS to test with; `make test` sets it, and internal/test/awstest/tools.sh installs what is needed")
	}
	program := filepath.Join(tools, "aws", s.program)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: run `bash internal/test/awstest/tools.sh %s`", err, tools)
	}
	s.once.Do(func() { s.endpoint, s.err = s.run(program) })
	if s.err != nil {
		t.Fatalf("start %s: %v", s.program, s.err)
	}
	return s.endpoint
}

// supervise runs a program until its own standard input ends, which it does when the
// process that holds the other end is gone, however it went. It then ends the program, by
// its id, and removes the folder that the program wrote to.
const supervise = `trap : INT TERM HUP
dir=$1; shift
"$@" </dev/null >"$dir/log" 2>&1 & pid=$!
read -r _
kill "$pid"; wait "$pid"; rm -rf "$dir"`

func (s *server) run(program string) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "holdfast-aws-")
	if err != nil {
		return "", err
	}
	arguments := []string{"-c", supervise, "sh", dir, program}
	if s.args != nil {
		arguments = append(arguments, s.args(port)...)
	}
	cmd := exec.CommandContext(context.Background(), "sh", arguments...) // beyond the test that asked first
	cmd.Dir = dir
	cmd.Env = append(clean(os.Environ()), "TMPDIR="+dir, "HOME="+dir, "PYTHONDONTWRITEBYTECODE=1")
	if s.env != nil {
		cmd.Env = append(cmd.Env, s.env(port)...)
	}
	held, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	endpoint := "http://127.0.0.1:" + port
	if err := ready(endpoint + s.health); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return "", errors.Join(fmt.Errorf("%w; it says:\n%s", err, log), held.Close(), cmd.Wait())
	}
	s.held = held
	return endpoint, nil
}

// clean leaves out what would lead the program to a real account, or away from this one.
func clean(env []string) []string {
	var kept []string
	for _, v := range env {
		if len(v) < 4 || v[:4] != "AWS_" {
			kept = append(kept, v)
		}
	}
	return kept
}

func freePort() (string, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// startTimeout is plenty: both are up in a few seconds, on a busy machine too.
const startTimeout = time.Minute

// ready waits until a program answers.
func ready(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("status %d", response.StatusCode)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("no answer within %v: %w", startTimeout, err)
		}
	}
}
