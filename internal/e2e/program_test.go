package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// binary builds the program once for all tests. TestMain removes it.
var binary = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "holdfast-e2e-"); err != nil {
		return "", err
	}
	path := filepath.Join(built, "holdfast")
	cmd := exec.Command("go", "build", "-o", path, "./functions/local")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &buildError{string(out)}
	}
	return path, nil
})

type buildError struct{ output string }

func (e *buildError) Error() string { return "build functions/local:\n" + e.output }

var built string

func TestMain(m *testing.M) {
	code := functiontest.Main(m)
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// bench is the program's data, in a folder or a table, with two accounts at a scripted
// upstream, a client key, and a front. Programs are started on it as a test needs them.
type bench struct {
	t        *testing.T
	up       *upstreamtest.Upstream
	one, two *upstreamtest.Account
	front    *front
	data     string   // the folder, if it is one
	place    []string // the flag that says where the data is
	aws      []string // the owner's environment that leads to AWS, if it is there
	key      string   // of the clients
	secrets  []string // must be in no output
	path     string
}

// The credentials the two accounts are known by at the upstream.
const (
	keyOne = "sk-ant-api03-e2e-account-one-SECRET"
	keyTwo = "sk-ant-api03-e2e-account-two-SECRET"
)

// newBench makes a bench on a folder, without accounts.
func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOn(t, upstreamtest.Start(t))
}

// newBenchOn makes a bench on a folder, without accounts, whose upstream speaks as that
// one does.
func newBenchOn(t *testing.T, up *upstreamtest.Upstream) *bench {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	return newBenchAt(t, &bench{up: up, data: data, place: []string{"--data", data}})
}

// onTable makes a bench on a DynamoDB table, with the accounts one and two.
func onTable(t *testing.T, table string, aws []string) *bench {
	t.Helper()
	return newBenchAt(t, &bench{up: upstreamtest.Start(t), place: []string{"--table", table}, aws: aws}).withAccounts()
}

// newBenchAt completes a bench that knows where its data is.
func newBenchAt(t *testing.T, b *bench) *bench {
	t.Helper()
	tool(t, "claude") // before anything is built
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	b.t, b.front, b.path = t, newFront(t), path
	b.key = strings.TrimSpace(b.run(nil, "key", "create", "agents").stdout)
	if b.key == "" || strings.ContainsAny(b.key, " \n") {
		t.Fatalf("key create: got %q on standard output, want the key alone", b.key)
	}
	b.secrets = append(b.secrets, b.key)
	t.Cleanup(func() { b.checkUpstream(b.up) })
	return b
}

// checkUpstream checks what every request that was sent on must keep: one credential, an
// account's, and nothing of the client's or of ours. A token endpoint's stands in the body.
func (b *bench) checkUpstream(up *upstreamtest.Upstream) {
	for _, r := range up.Requests() {
		credentials := (r.Header.Get("Authorization") == "") != (r.Header.Get("x-api-key") == "")
		if isToken := strings.HasSuffix(r.Path, "/token"); !isToken && (!credentials || r.Account == "") {
			b.t.Errorf("upstream request %d: want exactly one credential, and an account's", r.Number)
		}
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), b.key) || strings.HasPrefix(name, "X-Holdfast-") || strings.HasPrefix(name, "X-Forwarded-") {
				b.t.Errorf("upstream request %d: %s went out, which is the client's or ours", r.Number, name)
			}
		}
		if bytes.Contains(r.Body, []byte(b.key)) {
			b.t.Errorf("upstream request %d: the client's key went out in the body", r.Number)
		}
	}
}

// withAccounts makes a bench with the accounts one and two, by API key, which look the
// same until a test says otherwise.
func withAccounts(t *testing.T) *bench {
	t.Helper()
	return newBench(t).withAccounts()
}

func (b *bench) withAccounts() *bench {
	b.t.Helper()
	b.one, b.two = b.addKey("one", keyOne), b.addKey("two", keyTwo)
	b.equal()
	return b
}

func (b *bench) addKey(name, key string) *upstreamtest.Account {
	b.t.Helper()
	return b.addKeyOf("anthropic", name, key)
}

func (b *bench) addKeyOf(provider, name, key string) *upstreamtest.Account {
	b.t.Helper()
	b.secrets = append(b.secrets, key)
	b.run([]string{"E2E_ACCOUNT_KEY=" + key}, "account", "add", name,
		"--provider", provider, "--key-env", "E2E_ACCOUNT_KEY", "--base-url", b.up.URL)
	return b.up.Account(name, key)
}

// equal makes both accounts answer well and look equally attractive.
func (b *bench) equal() {
	now := time.Now()
	limits := upstreamtest.Plan(0.20, now.Add(3*time.Hour), 0.30, now.Add(80*time.Hour))
	b.one.Always(upstreamtest.Good(limits))
	b.two.Always(upstreamtest.Good(limits))
}

// account is an account of the bench by its name; other is the one beside it.
func (b *bench) account(name string) *upstreamtest.Account {
	if name == b.one.Name {
		return b.one
	}
	return b.two
}

func (b *bench) other(name string) *upstreamtest.Account {
	if name == b.one.Name {
		return b.two
	}
	return b.one
}

// environment is the program's: bare, and as talkative as it can be.
func (b *bench) environment(more []string) []string {
	home := os.DevNull // where there is nothing to be found or left
	if b.data != "" {
		home = filepath.Dir(b.data)
	}
	env := append([]string{"PATH=" + basePath, "HOME=" + home, "HOLDFAST_LOG_LEVEL=debug"}, b.aws...)
	return append(env, more...)
}

// run runs one of the operator's commands on the data, which must succeed.
func (b *bench) run(env []string, args ...string) result {
	b.t.Helper()
	r := command(b.t, b.t.TempDir(), b.environment(env), b.path, append(args, b.place...)...)
	if r.code != 0 {
		b.t.Fatalf("holdfast %s: exit %d: %s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r
}

// program is one that runs on, such as `holdfast serve`.
type program struct {
	t    *testing.T
	url  string
	cmd  *exec.Cmd
	gone chan struct{} // closed when the process has ended and its output is complete

	mu  sync.Mutex
	out bytes.Buffer
}

var listening = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// serve starts a program on the data folder, waits until it listens, and points the front
// at it.
func (b *bench) serve(args ...string) *program {
	b.t.Helper()
	args = append(append([]string{"serve", "--addr", "127.0.0.1:0"}, b.place...), args...)
	p := b.background(b.environment(nil), b.path, args...)
	b.front.to(b.t, p.url)
	return p
}

// background starts a program that runs on, and waits until it says where it listens. At
// the end of the test it is killed and its output is searched for secrets.
func (b *bench) background(env []string, path string, args ...string) *program {
	b.t.Helper()
	p := &program{t: b.t, gone: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Env = env
	p.cmd.Dir = b.t.TempDir()
	name := filepath.Base(path) + " " + args[0]
	// One pipe for both outputs: the log must keep secrets wherever it goes.
	read, write, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	_ = write.Close()
	found := make(chan string, 1)
	go p.collect(read, found)
	b.t.Cleanup(func() {
		p.kill()
		for _, secret := range b.secrets {
			if strings.Contains(p.output(), secret) {
				b.t.Errorf("the output of %s holds the secret that begins with %.16q", name, secret)
			}
		}
		if b.t.Failed() {
			b.t.Logf("the output of %s:\n%s", name, redacted(p.output(), b.secrets))
		}
	})
	select {
	case p.url = <-found:
	case <-p.gone:
		b.t.Fatalf("%s ended: %s", name, redacted(p.output(), b.secrets))
	case <-time.After(clientLimit):
		b.t.Fatalf("%s does not listen: %s", name, redacted(p.output(), b.secrets))
	}
	return p
}

// collect keeps the output and reports the first address in it.
func (p *program) collect(read io.ReadCloser, found chan<- string) {
	defer close(p.gone)
	defer read.Close()
	lines := bufio.NewReader(read)
	for {
		line, err := lines.ReadString('\n')
		p.mu.Lock()
		p.out.WriteString(line)
		p.mu.Unlock()
		if address := listening.FindString(line); address != "" {
			select {
			case found <- address:
			default:
			}
		}
		if err != nil {
			_ = p.cmd.Wait()
			return
		}
	}
}

// kill ends the program at once, as a power cut would, and returns when it is gone.
func (p *program) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.gone
}

// output is everything it wrote so far.
func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func redacted(s string, secrets []string) string {
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, "(secret)")
	}
	return s
}

// shown is the part of an account's status that the tests look at.
type shown struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	Windows []struct {
		Name        string  `json:"name"`
		Utilization float64 `json:"utilization"`
	} `json:"windows"`
}

func (s shown) utilization(window string) float64 {
	for _, w := range s.Windows {
		if w.Name == window {
			return w.Utilization
		}
	}
	return -1
}

// show asks the operator's command how an account stands.
func (b *bench) show(name string) shown {
	b.t.Helper()
	var status struct{ Accounts []shown }
	out := b.run(nil, "status", "--json").stdout
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		b.t.Fatalf("status --json: %v in %s", err, out)
	}
	for _, s := range status.Accounts {
		if s.Name == name {
			return s
		}
	}
	b.t.Fatalf("status --json has no account %s: %s", name, out)
	return shown{}
}

// until asks again and again until the account stands as wanted: what an answer taught
// is written beside the stream, so it may come a moment after the client's turn.
func (b *bench) until(name, what string, stands func(shown) bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), clientLimit)
	defer cancel()
	for {
		s := b.show(name)
		if stands(s) {
			return
		}
		if ctx.Err() != nil {
			b.t.Fatalf("account %s: got %+v, want %s", name, s, what)
		}
	}
}

// sealed checks that no file of the data folder holds a secret or can be read by others.
func (b *bench) sealed() {
	b.t.Helper()
	err := filepath.WalkDir(b.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
			b.t.Errorf("%s: got mode %v, want it closed to others", d.Name(), info.Mode())
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, secret := range b.secrets {
			if bytes.Contains(content, []byte(secret)) {
				b.t.Errorf("%s holds the secret that begins with %.16q", d.Name(), secret)
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// quiet checks that an output holds no secret.
func (b *bench) quiet(whose, output string) {
	b.t.Helper()
	if output == "" {
		b.t.Errorf("%s wrote nothing, which proves nothing", whose)
	}
	for _, secret := range b.secrets {
		if strings.Contains(output, secret) {
			b.t.Errorf("what %s wrote holds the secret that begins with %.16q", whose, secret)
		}
	}
}
