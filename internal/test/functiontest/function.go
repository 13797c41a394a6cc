package functiontest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/aws/functionurl"
	"holdfast/internal/test/logtest"
)

// Function is a Function URL with the processes behind it. Its embedded front replaces
// and ends them.
type Function struct {
	*functionurl.Front
	URL string

	b      *Bench
	output logtest.Log // what the processes wrote
	events logtest.Log // what the platform logged
}

// Serve starts a function of the bench, which lasts as long as the test.
func (b *Bench) Serve(edits ...func(*functionurl.Options)) *Function {
	b.t.Helper()
	f := &Function{b: b}
	o := functionurl.Options{
		Binary: Binary(b.t), Env: b.Env(), Freeze: syscall.SIGSTOP, Thaw: syscall.SIGCONT,
		Output: &f.output, Log: slog.New(slog.NewTextHandler(&f.events, nil)),
	}
	for _, edit := range edits {
		edit(&o)
	}
	var err error
	if f.Front, err = functionurl.New(o); err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewServer(f.Front)
	f.URL = server.URL
	b.t.Cleanup(func() {
		server.CloseClientConnections()
		_ = f.Close() // never fails
		server.Close()
		f.look()
	})
	return f
}

// look searches what the processes wrote for secrets, and shows it if the test failed.
func (f *Function) look() {
	t, output := f.b.t, f.output.String()
	for _, secret := range f.b.hidden() {
		if strings.Contains(output, secret) {
			t.Errorf("the function wrote the secret that begins with %.16q", secret)
			output = strings.ReplaceAll(output, secret, "(secret)")
		}
	}
	if t.Failed() {
		t.Logf("the function wrote:\n%s\nthe platform logged:\n%s", output, f.events.String())
	}
}

// Output is what the processes wrote so far.
func (f *Function) Output() string { return f.output.String() }

// Says reports whether the function has written text, and gives it ten seconds to: what a
// request logs comes by another way than its answer, and may come later.
func (f *Function) Says(text string) bool { return says(&f.output, text) }

// PlatformSays is Says of what the platform logged.
func (f *Function) PlatformSays(text string) bool { return says(&f.events, text) }

func says(l *logtest.Log, text string) bool {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(l.String(), text) {
			return true
		}
	}
	return false
}

// Started is how many processes were started so far.
func (f *Function) Started() int { return strings.Count(f.events.String(), "environment started") }

// PIDs are the ids of the processes started so far, in that order.
func (f *Function) PIDs() []int {
	var pids []int
	for line := range strings.Lines(f.events.String()) {
		var pid int
		if _, text, ok := strings.Cut(line, `msg="environment started" pid=`); ok {
			if _, err := fmt.Sscan(text, &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Request is a request of an agent's.
type Request struct {
	Path    string // /v1/messages
	Key     string // the bench's
	Session string // Claude Code's session header
	Stream  bool
	Body    []byte // instead of a message
	Header  http.Header
}

// Reply is a whole answer.
type Reply struct {
	Status int
	Header http.Header
	Body   string
	// Err is of reading the body: an answer that broke off has one.
	Err error
}

// Account, Pin and Refusal are the gateway's own headers.
func (r Reply) Account() string { return r.Header.Get("X-Holdfast-Account") }
func (r Reply) Pin() string     { return r.Header.Get("X-Holdfast-Pin") }
func (r Reply) Refusal() string { return r.Header.Get("X-Holdfast-Error") }

// Send sends a request and returns when the answer's headers are there. The answer is
// broken off when ctx ends.
func (f *Function) Send(ctx context.Context, r Request) (*http.Response, error) {
	if r.Path == "" {
		r.Path = "/v1/messages?beta=true"
	}
	if r.Key == "" {
		r.Key = f.b.Key
	}
	if r.Body == nil {
		r.Body = fmt.Appendf(nil, `{"model":"claude-opus-5","max_tokens":100,"stream":%v,"messages":[{"role":"user","content":"hello"}]}`, r.Stream)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Authorization", "Bearer "+r.Key)
	if r.Session != "" {
		req.Header.Set("X-Claude-Code-Session-Id", r.Session)
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(req)
}

// Ask sends a request and reads the whole answer.
func (f *Function) Ask(ctx context.Context, r Request) (Reply, error) {
	resp, err := f.Send(ctx, r)
	if err != nil {
		return Reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Reply{resp.StatusCode, resp.Header, string(body), err}, nil
}

// Do sends a request that has to be answered, and reads the whole answer.
func (f *Function) Do(t testing.TB, r Request) Reply {
	t.Helper()
	got, err := f.Ask(t.Context(), r)
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	return got
}

// Served sends a request that has to be answered well.
func (f *Function) Served(t testing.TB, r Request) Reply {
	t.Helper()
	got := f.Do(t, r)
	if got.Status != http.StatusOK || got.Err != nil {
		t.Fatalf("got %d %s (%v), want 200", got.Status, got.Body, got.Err)
	}
	return got
}
