package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/issuertest"
	"holdfast/internal/test/logtest"
)

func TestMain(m *testing.M) { os.Exit(functiontest.Main(m)) }

// platform is the Runtime API of one process: each event waits for the answer before it.
type platform struct {
	*httptest.Server
	events  chan []byte
	answers chan answer
}

// answer is what the process made of an event: "response" or "error", and its body.
type answer struct{ kind, body string }

func newPlatform(t *testing.T) *platform {
	p := &platform{events: make(chan []byte), answers: make(chan answer)}
	n := 0
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/2018-06-01/runtime/")
		if path == "invocation/next" {
			select {
			case event := <-p.events:
				n++
				w.Header().Set("Lambda-Runtime-Aws-Request-Id", fmt.Sprint("event-", n))
				w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(2*time.Minute).UnixMilli()))
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(event)
			case <-r.Context().Done():
			}
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		parts := strings.Split(path, "/")
		p.answers <- answer{parts[len(parts)-1], string(body)}
	}))
	t.Cleanup(p.Close)
	return p
}

// invoke sends the schedule's event and returns what the process made of it.
func (p *platform) invoke(t *testing.T) answer {
	t.Helper()
	event, err := os.ReadFile("../../events/schedule.json")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case p.events <- event:
	case <-ctx.Done():
		t.Fatal("the function asks for no event")
	}
	select {
	case a := <-p.answers:
		return a
	case <-ctx.Done():
		t.Fatal("the function does not answer")
		return answer{}
	}
}

// start starts the program, which ends with the test.
func start(t *testing.T, p *platform, env []string) *logtest.Log {
	t.Helper()
	out := &logtest.Log{}
	cmd := exec.CommandContext(t.Context(), functiontest.Poller(t))
	cmd.Env = append(env, "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(p.URL, "http://"))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return out
}

// TestRounds: each event is a round. The first looks at an account and renews the login of
// another, in the table that the gateway reads; the second begins too soon after it.
func TestRounds(t *testing.T) {
	b := functiontest.New(t)
	usage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/backend-api/wham/usage" || r.Header.Get("Authorization") != "Bearer tansy-access-EXAMPLE" ||
			!strings.HasPrefix(r.UserAgent(), "holdfast/") {
			t.Errorf("got %s %s by %s, want a look at usage by holdfast with the account's token", r.Method, r.URL.Path, r.UserAgent())
		}
		w.Header().Set("Content-Type", "application/json")
		reset := time.Now().Add(100 * time.Hour).Unix()
		fmt.Fprintf(w, `{"plan_type":"pro","rate_limit":{"allowed":true,"limit_reached":false,"primary_window":`+
			`{"used_percent":37,"limit_window_seconds":604800,"reset_after_seconds":360000,"reset_at":%d},"secondary_window":null}}`, reset)
	}))
	defer usage.Close()
	b.Login(account.OpenAI, "tansy", usage.URL, credential.Credential{
		Generation: 1, Access: credential.NewSecret("tansy-access-EXAMPLE"), Refresh: credential.NewSecret("tansy-refresh-EXAMPLE"),
	})
	issuer := issuertest.Start(t, issuertest.Options{})
	held := issuer.Login(0)
	held.IssuedAt, held.ExpiresAt = time.Now().Add(-5*time.Hour), time.Now().Add(3*time.Hour)
	b.Login(account.Anthropic, "marlow", issuer.URL, held)

	p := newPlatform(t)
	out := start(t, p, b.Env())
	if got := p.invoke(t); got.kind != "response" {
		t.Errorf("got %+v, want a response\n%s", got, out)
	}
	if w := b.State("tansy").Windows[account.Weekly]; w.Utilization != 0.37 || w.Source != account.FromPoll {
		t.Errorf("got %+v, want weekly read at 0.37\n%s", w, out)
	}
	if c := b.Credential("marlow"); c.Generation != held.Generation+1 {
		t.Errorf("got generation %d, want %d: past half of its life\n%s", c.Generation, held.Generation+1, out)
	}
	points, err := b.Store.History(t.Context(), "acc-tansy", time.Now().Add(-time.Hour), time.Now().Add(time.Minute))
	if err != nil || len(points) != 1 {
		t.Errorf("got history %v (%v), want a point", points, err)
	}
	if got := p.invoke(t); got.kind != "response" {
		t.Errorf("the second event: got %+v, want a response", got)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("got line %q, want JSON", line)
		}
	}
	for _, want := range []string{`"msg":"round"`, `"result_read":1`, `"msg":"no round"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got no %s in the log:\n%s", want, out)
		}
	}
	for _, secret := range b.Hidden() {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the log holds the secret that begins with %.12q", secret)
		}
	}
}

// TestWithoutTable: a round that cannot be made fails the invocation, and the process
// serves the next event.
func TestWithoutTable(t *testing.T) {
	b := functiontest.WithoutTable(t)
	p := newPlatform(t)
	out := start(t, p, b.Env())
	if got := p.invoke(t); got.kind != "error" || !strings.Contains(got.body, "begin a round") {
		t.Errorf("got %+v, want an error that says what could not be done\n%s", got, out)
	}
	b.CreateTable()
	if got := p.invoke(t); got.kind != "response" {
		t.Errorf("with a table: got %+v, want a response\n%s", got, out)
	}
}

// TestWithoutEnvironment: the platform is told why the function cannot start.
func TestWithoutEnvironment(t *testing.T) {
	p := newPlatform(t)
	start(t, p, nil)
	select {
	case got := <-p.answers:
		if got.kind != "error" || !strings.Contains(got.body, "HOLDFAST_TABLE is not set") {
			t.Errorf("got %+v, want an error that names the variable", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("the function tells nothing")
	}
}
