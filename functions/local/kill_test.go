package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// forgiving is an issuer that takes a refresh token and never answers the first time, and
// gives the new tokens when it comes again.
type forgiving struct {
	asked           atomic.Int64
	taken, repeated chan struct{}
}

func (f *forgiving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/v1/oauth/token" {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"type":"error","error":{"type":"not_found_error","message":"no"}}`)
		return
	}
	var asked struct {
		Refresh string `json:"refresh_token"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Refresh != "refresh-EXAMPLE" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	switch f.asked.Add(1) {
	case 1:
		close(f.taken)
		<-r.Context().Done()
	case 2:
		defer close(f.repeated)
		fallthrough
	default:
		fmt.Fprint(w, `{"access_token":"access-EXAMPLE-next","refresh_token":"refresh-EXAMPLE-next","expires_in":28800}`)
	}
}

// TestKilledInMidRenewal is field case killed-in-mid-renewal: the built program is killed after
// it sent a refresh token, and another server on the same data, which nobody asks for
// anything, sends it again while the issuer forgives that.
func TestKilledInMidRenewal(t *testing.T) {
	path, dir := build(t), t.TempDir()
	issuer := &forgiving{taken: make(chan struct{}), repeated: make(chan struct{})}
	upstream := httptest.NewServer(issuer)
	t.Cleanup(upstream.Close)
	file := filepath.Join(t.TempDir(), "credentials.json")
	ended := time.Now().Add(-time.Hour).UnixMilli()
	text := fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"access-EXAMPLE","refreshToken":"refresh-EXAMPLE","expiresAt":%d,"subscriptionType":"max"}}`, ended)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), path, append(args, "--data", dir)...).Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	run("account", "add", "max", "--provider", "anthropic", "--import", file, "--no-check", "--base-url", upstream.URL)
	key := run("key", "create", "agents")

	serve := func() (url string, kill func()) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, "serve", "--data", dir, "--addr", "127.0.0.1:0")
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(stderr)
		for url == "" && said.Scan() {
			_, url, _ = strings.Cut(said.Text(), "holdfast is listening on ")
		}
		if url == "" {
			t.Fatal("the server does not listen")
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for said.Scan() { // its lines are not waited for
			}
			_ = cmd.Wait()
		}()
		kill = func() { _ = cmd.Process.Kill(); <-ended }
		t.Cleanup(kill)
		return url, kill
	}
	url, kill := serve()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", strings.NewReader(`{"model":"claude-opus-5","max_tokens":1,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Anthropic-Version", "2023-06-01")
	go func() {
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	within := func(what string, done <-chan struct{}) {
		t.Helper()
		select {
		case <-done:
		case <-time.After(50 * time.Second): // a holder elsewhere would be waited for for longer
			t.Fatalf("waited too long for %s", what)
		}
	}
	within("the first send", issuer.taken)
	serve()
	kill()
	within("the token to come again", issuer.repeated)

	for deadline := time.Now().Add(10 * time.Second); ; {
		var shown struct {
			Credential struct{ Generation int }
			Status     struct{ State string }
		}
		if err := json.Unmarshal([]byte(run("account", "show", "max", "--json")), &shown); err != nil {
			t.Fatal(err)
		}
		if shown.Credential.Generation == 2 && shown.Status.State == "ready" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got generation %d and state %s, want the new tokens saved", shown.Credential.Generation, shown.Status.State)
		}
	}
	if n := issuer.asked.Load(); n != 2 {
		t.Errorf("the token was sent %d times, want 2", n)
	}
}
