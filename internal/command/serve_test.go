package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/command"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/test/upstreamtest"
)

// lines is a writer that tells when a line matches.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	want *regexp.Regexp
	got  chan string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.want != nil {
		if m := l.want.FindStringSubmatch(l.text.String()); m != nil {
			l.want = nil
			l.got <- m[1]
		}
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// server is `holdfast serve` running in this process.
type server struct {
	url            string
	stdout, stderr *lines
	stop           func() int // ends it and returns its exit status
}

func (b *bench) serve(args ...string) server {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	s := server{stdout: &lines{}, stderr: &lines{want: regexp.MustCompile(`holdfast is listening on (\S+)\n`), got: make(chan string, 1)}}
	o := b.options(strings.NewReader(""), nil, nil)
	o.Stdout, o.Stderr = s.stdout, s.stderr
	ended := make(chan int, 1)
	go func() {
		ended <- command.Run(ctx, slices.Concat([]string{"serve", "--addr", "127.0.0.1:0"}, b.place(), args), o)
	}()
	s.stop = sync.OnceValue(func() int { cancel(); return <-ended })
	b.t.Cleanup(func() { s.stop() })
	select {
	case s.url = <-s.stderr.got:
	case code := <-ended:
		ended <- code
		b.t.Fatalf("serve ended with status %d: %s", code, s.stderr)
	}
	return s
}

// printedKey is the client key in what --try printed.
func (s server) printedKey(t *testing.T) string {
	t.Helper()
	key := regexp.MustCompile(`hf_[0-9A-Za-z]+`).FindString(s.stdout.String())
	if !clientkey.WellFormed(key) {
		t.Fatalf("no client key was printed:\n%s", s.stdout)
	}
	return key
}

func call(t *testing.T, method, url, key, body string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

const hello = `{"model":"claude-sonnet-5","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}`

func TestServeTrySimulates(t *testing.T) {
	b := newBench(t)
	s := b.serve("--try")
	if said := b.bare(s.stderr.String()); !strings.Contains(said, "THIS IS A SIMULATION") || strings.Contains(said, "Answers are real") {
		t.Errorf("nothing says that it is a simulation:\n%s", said)
	}
	key := s.printedKey(t)
	for _, want := range []string{"curl " + s.url + "/v1/messages", "ANTHROPIC_BASE_URL=" + s.url + " ANTHROPIC_AUTH_TOKEN=" + key + " claude"} {
		if !strings.Contains(s.stdout.String(), want) {
			t.Errorf("what is printed lacks %q:\n%s", want, s.stdout)
		}
	}
	// The demonstration's data is apart: the commands name it, and Anthropic alone is simulated.
	demo := *b
	demo.dir = filepath.Join(b.dir, "demo")
	for _, want := range []string{"\n  holdfast --data " + demo.dir + " status\n", "\n  holdfast --data " + demo.dir + " key revoke try\n"} {
		if !strings.Contains(s.stdout.String(), want) {
			t.Errorf("what is printed lacks the command %q:\n%s", want, s.stdout)
		}
	}
	if !strings.Contains(s.stderr.String(), "Only Anthropic is simulated. Codex and the Grok CLI need an account") {
		t.Errorf("it does not say what is not simulated:\n%s", s.stderr)
	}
	status, header, text := call(t, http.MethodPost, s.url+"/v1/messages", key, hello)
	if status != http.StatusOK || !strings.HasPrefix(header.Get("X-Holdfast-Account"), "simulated-") {
		t.Errorf("got status %d of account %q: %s", status, header.Get("X-Holdfast-Account"), text)
	}
	if status, _, text = call(t, http.MethodGet, s.url+"/_holdfast/status.json", key, ""); status != http.StatusOK || !json.Valid([]byte(text)) {
		t.Errorf("status: got %d: %s", status, text)
	}
	if status, _, _ = call(t, http.MethodPost, s.url+"/v1/messages", "hf_no", hello); status != http.StatusUnauthorized {
		t.Errorf("without a key: got status %d, want 401", status)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("stopped with status %d: %s", code, s.stderr)
	}
	if got := b.order(); got != "" {
		t.Errorf("the owner's own data holds the accounts %q", got)
	}

	again := b.serve("--demo")
	if again.printedKey(t) != key {
		t.Error("another start printed another key")
	}
	if status, _, text := call(t, http.MethodPost, again.url+"/v1/messages", key, hello); status != http.StatusOK {
		t.Errorf("at another start: got status %d: %s", status, text)
	}
	again.stop()
	if got := demo.order(); got != "simulated-one simulated-two" {
		t.Errorf("the demonstration's data holds the accounts %q", got)
	}
}

func TestServeTryTakesKey(t *testing.T) {
	b := newBench(t)
	b.env["ANTHROPIC_API_KEY"] = apiKey
	b.program = "bin/holdfast"
	s := b.serve("--try")
	if said := b.bare(s.stderr.String()); strings.Contains(said, "SIMULATION") || !strings.Contains(said, "bin/holdfast account remove anthropic") ||
		!strings.Contains(said, "Answers are real, and are charged: account anthropic (key). For the simulation: bin/holdfast serve --demo") {
		t.Errorf("it said:\n%s", said)
	}
	if s.stop() != 0 || b.order() != "anthropic" {
		t.Errorf("accounts: got %q, want anthropic", b.order())
	}
	b.env["ANTHROPIC_API_KEY"] = "sk-ant-api03-EXAMPLE-another"
	again := b.serve("--try")
	if said := b.bare(again.stderr.String()); !strings.Contains(said, "bin/holdfast account login anthropic --key-env ANTHROPIC_API_KEY") {
		t.Errorf("another key in the environment: it said:\n%s", said)
	}
	if again.printedKey(t) != s.printedKey(t) {
		t.Error("another start printed another key")
	}
	again.stop()
	for _, out := range []string{s.stdout.String(), s.stderr.String(), again.stdout.String(), again.stderr.String()} {
		if strings.Contains(out, "EXAMPLE") {
			t.Errorf("a secret is shown:\n%s", out)
		}
	}
	b.must("key", "revoke", "try")
	anew := b.serve("--try")
	if anew.printedKey(t) == s.printedKey(t) {
		t.Error("a key that was revoked came back")
	}
	if status, _, _ := call(t, http.MethodGet, anew.url+"/_holdfast/status.json", s.printedKey(t), ""); status != http.StatusUnauthorized {
		t.Errorf("with the revoked key: got status %d, want 401", status)
	}
	anew.stop()
	b.must("key", "revoke", "try")
	b.must("key", "create", "try")
	third := b.serve("--try")
	if said := b.bare(third.stderr.String()); !strings.Contains(said, "one of your own") || !strings.Contains(said, "bin/holdfast key revoke try") || third.stdout.String() != "" {
		t.Errorf("with a key of that name of the owner's: it said %q and printed %q", said, third.stdout)
	}
}

// Each provider's variable makes an account of its own, and what is printed is for those
// that there are.
func TestServeTryTakesEachProvidersKey(t *testing.T) {
	b := newBench(t)
	b.env["OPENAI_API_KEY"] = "sk-proj-EXAMPLE"
	s := b.serve("--try")
	out := s.stdout.String()
	key := s.printedKey(t)
	for _, want := range []string{
		"curl " + s.url + "/v1/responses", `"model":"gpt-5.5"`, "HOLDFAST_KEY=" + key + " codex",
		"model_provider = \"holdfast\"\n[model_providers.holdfast]\nname = \"holdfast\"\nbase_url = \"" + s.url + "/v1\"\nenv_key = \"HOLDFAST_KEY\"\nwire_api = \"responses\"\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("what is printed lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "/v1/messages") || strings.Contains(out, "grok") {
		t.Errorf("what is printed names providers without an account:\n%s", out)
	}
	if code := s.stop(); code != 0 || b.order() != "openai" {
		t.Fatalf("status %d, accounts %q", code, b.order())
	}

	b.env["XAI_API_KEY"] = "xai-EXAMPLE"
	b.env["OPENAI_API_KEY"] = "sk-proj-EXAMPLE-other"
	s = b.serve("--try")
	out = s.stdout.String()
	for _, want := range []string{`"model":"grok-4.6"`, `[model."grok-4.6"]`, "base_url = \"" + s.url + "/v1\"\napi_backend = \"responses\"", "codex"} {
		if !strings.Contains(out, want) {
			t.Errorf("what is printed lacks %q:\n%s", want, out)
		}
	}
	said := b.bare(s.stderr.String())
	for _, want := range []string{"Answers are real, and are charged: accounts openai (key), xai (key)", "account login openai --key-env OPENAI_API_KEY"} {
		if !strings.Contains(said, want) {
			t.Errorf("it did not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said+out, "EXAMPLE") {
		t.Error("a secret is shown")
	}
}

func TestServeWithoutTry(t *testing.T) {
	b := newBench(t)
	b.env["ANTHROPIC_API_KEY"] = apiKey
	s := b.serve()
	if said := b.bare(s.stderr.String()); !strings.Contains(said, "no account yet") || s.stdout.String() != "" {
		t.Errorf("it said %q and printed %q; want advice and nothing", said, s.stdout)
	}
	if b.order() != "" {
		t.Error("an account was made without being asked for")
	}
	// A running server follows commands.
	b.add("work")
	key := strings.TrimSpace(b.must("key", "create", "laptop", "--admin").stdout)
	if status, _, text := call(t, http.MethodGet, s.url+"/_holdfast/status.json", key, ""); status != http.StatusOK || !strings.Contains(text, `"work"`) {
		t.Errorf("status: got %d: %s", status, text)
	}
}

func TestServeRefuses(t *testing.T) {
	b := newBench(t)
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, tt := range map[string]struct {
		code int
		want string
	}{
		taken.Addr().String(): {1, "is in use already"},
		"8787":                {2, "a host and a port"},
		"127.0.0.1:99999":     {2, "from 0 to 65535"},
		"127.0.0.1:http":      {2, "from 0 to 65535"},
		"192.0.2.1:8787":      {1, "no address of this machine"},
	} {
		b.refuses(tt.code, tt.want, "serve", "--addr", address)
	}
	if _, err := os.Stat(b.dir); err == nil {
		t.Error("a data directory was made for nothing")
	}
	b.refuses(2, "takes no argument", "serve", "now")
	b.env["HOLDFAST_LOG_LEVEL"] = "loud"
	b.refuses(2, "HOLDFAST_LOG_LEVEL is one of debug, info, warn, error", "serve", "--addr", "127.0.0.1:0")
}

// What a server learns shows in the status: pauses while they last, and counts once it has
// ended.
func TestServeShowsInStatus(t *testing.T) {
	b := newBench(t)
	b.now = time.Now
	up := upstreamtest.Start(t)
	work := up.Account("work", apiKey)
	b.must("account", "add", "work", "--provider", "anthropic", "--key-env", "KEY", "--base-url", up.URL)
	b.must("settings", "set", "bare_pause", "1h")
	key := strings.TrimSpace(b.must("key", "create", "laptop").stdout)
	s := b.serve()
	for range 3 {
		if status, _, text := call(t, http.MethodPost, s.url+"/v1/messages", key, hello); status != http.StatusOK {
			t.Fatalf("got status %d: %s", status, text)
		}
	}
	work.Queue(upstreamtest.Bare())
	if status, _, text := call(t, http.MethodPost, s.url+"/v1/messages", key, hello); status != http.StatusTooManyRequests {
		t.Fatalf("got status %d: %s", status, text)
	}
	if code := s.stop(); code != 0 {
		t.Fatalf("stopped with status %d: %s", code, s.stderr)
	}
	text := b.must("status").stdout
	if !strings.Contains(text, "work: model claude-sonnet-5 waits until") || !strings.Contains(text, "last hour 3 kept, 0 moved, 1 new") {
		t.Errorf("got\n%s", text)
	}
	if shown := b.must("account", "show", "work").stdout; !strings.Contains(shown, "model claude-sonnet-5 waits until") {
		t.Errorf("got\n%s", shown)
	}
}

// TestAnswersAdviseForTheirData is field case advice-for-other-data: what the gateway's answers
// advise is about the data that it serves from. A client without a key is not told where that
// is.
func TestAnswersAdviseForTheirData(t *testing.T) {
	b := newBench(t)
	key := strings.TrimSpace(b.must("key", "create", "laptop").stdout)
	b.program = "bin/holdfast"
	s := b.serve()
	if status, _, text := call(t, "POST", s.url+"/v1/messages", key, hello); status != http.StatusServiceUnavailable || !strings.Contains(text, "`bin/holdfast --data "+b.dir+" account add NAME") {
		t.Errorf("got %d %s", status, text)
	}
	if status, _, text := call(t, "POST", s.url+"/v1/messages", "hf_wrong", hello); status != http.StatusUnauthorized || strings.Contains(text, b.dir) || !strings.Contains(text, "`holdfast key create NAME`") {
		t.Errorf("without a client key: got %d %s", status, text)
	}
}

// Headers over the limit are answered by the server itself, before the gateway: see the
// README's table of answers.
func TestHeadersOverTheLimit(t *testing.T) {
	s := newBench(t).serve()
	for length, want := range map[int]int{60 << 10: http.StatusUnauthorized, 80 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		if status, h, text := call(t, "POST", s.url+"/v1/messages", strings.Repeat("k", length), hello); status != want || (h.Get("X-Holdfast-Error") == "") != (want == http.StatusRequestHeaderFieldsTooLarge) {
			t.Errorf("%d bytes: got %d %s, want %d", length, status, text, want)
		}
	}
}
