package functionurl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/aws/functionurl"
)

// TestStreaming: an event arrives while the function still holds the next one, whatever
// the type of the answer. (buffered-streaming)
func TestStreaming(t *testing.T) {
	u := open(t, "serves", functionurl.Options{})
	for _, kind := range []string{"text/event-stream", "text/event-stream;charset=utf-8", "application/octet-stream", "application/json"} {
		t.Run(kind, func(t *testing.T) {
			resp := u.send("POST", "/events", "application/json", []byte("{}"), "X-Type", kind)
			if got := resp.Header.Get("Content-Type"); got != kind {
				t.Errorf("got type %q, want %q", got, kind)
			}
			for _, want := range []string{"data: 0\n\n", "data: 1\n\n", "data: 2\n\n"} {
				got := make([]byte, len(want))
				if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
					t.Fatalf("got %q, %v, want %q", got, err, want)
				}
				u.gate.want(t, want[6:7])
				u.gate.pass <- struct{}{}
			}
			if rest := whole(t, resp); rest != "" {
				t.Errorf("got %q at the end, want nothing", rest)
			}
		})
	}
}

// TestBrokenStreams: whatever ends a function in the middle of an answer, the client sees
// a broken stream. (silent-success-from-our-own-adapter, warm-process-hazards)
func TestBrokenStreams(t *testing.T) {
	for _, c := range []struct {
		name, path string
		lives      bool // the process
		do         func(pid int)
	}{
		{"panic", "/panic-later", true, nil},
		{"abort", "/abort-later", true, nil},
		{"kill -9", "/stuck", false, func(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := open(t, "serves", functionurl.Options{})
			resp := u.get(c.path)
			first := pid(t, resp)
			u.gate.want(t, "begun")
			if c.do != nil {
				c.do(first)
			} else {
				u.gate.pass <- struct{}{}
			}
			if got := broken(t, resp); got != "begun" {
				t.Errorf("got %q, want what was written before", got)
			}
			if second := u.echo(u.get("/echo")).PID; (second == first) != c.lives {
				t.Errorf("got process %d for the next request after %d, want the same: %v", second, first, c.lives)
			}
		})
	}
}

// TestNoAnswer: what the platform answers where the function did not.
func TestNoAnswer(t *testing.T) {
	for _, c := range []struct {
		name, kind, path string
		status           int
		body             string
		again            bool // the same process serves the next request
	}{
		{"panic before the first byte", "serves", "/panic", 500, `"api_error"`, true},
		{"abort before the first byte", "serves", "/abort", 502, "Internal Server Error", true},
		{"nothing written", "serves", "/nothing", 500, `"api_error"`, true},
		{"the process ends", "serves", "/exit", 502, "Internal Server Error", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := open(t, c.kind, functionurl.Options{})
			first := u.echo(u.get("/echo")).PID
			resp := u.get(c.path)
			if got := whole(t, resp); resp.StatusCode != c.status || !strings.Contains(got, c.body) {
				t.Errorf("got %d %q, want %d with %s", resp.StatusCode, got, c.status, c.body)
			}
			if second := u.echo(u.get("/echo")).PID; (second == first) != c.again {
				t.Errorf("got process %d for the next request after %d, want the same: %v", second, first, c.again)
			}
		})
	}
}

func TestFunctionsThatDoNotStart(t *testing.T) {
	for _, c := range []struct{ name, kind, log string }{
		{"initialization error", "refuses", "no table"},
		{"exit", "exits", "exit status 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := open(t, c.kind, functionurl.Options{})
			for range 2 {
				resp := u.get("/echo")
				if got := whole(t, resp); resp.StatusCode != 502 || got != "Internal Server Error" {
					t.Errorf("got %d %q, want 502", resp.StatusCode, got)
				}
			}
			if got := u.log.String(); !strings.Contains(got, c.log) {
				t.Errorf("got log %q, want %q in it", got, c.log)
			}
		})
	}
}

// TestUnframedAnswer is what a function sends that does not know of Function URLs.
func TestUnframedAnswer(t *testing.T) {
	u := open(t, "hello", functionurl.Options{})
	resp := u.get("/")
	if got := whole(t, resp); resp.StatusCode != 200 || got != `{"StatusCode":200,"Before":[]}` || resp.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("got %d %v %q, want the bytes as they are", resp.StatusCode, resp.Header, got)
	}
	// It gave one answer to another's event, one good one, and one too many.
	if got := whole(t, u.get("/")); !strings.Contains(got, "[400 202 400]") {
		t.Errorf("got %s, want the wrong answers refused", got)
	}
}

// TestEnvironments: one request at a time each, as many as requests at once, kept for the
// next ones, no more than allowed.
func TestEnvironments(t *testing.T) {
	const most = 3
	u := open(t, "serves", functionurl.Options{MaxEnvironments: most})
	pids := make(chan int, most)
	var group sync.WaitGroup
	for range most {
		group.Go(func() {
			resp := u.get("/wait")
			if got := whole(t, resp); got != "waited" {
				t.Errorf("got %q, want waited", got)
			}
			pids <- pid(t, resp)
		})
	}
	for range most {
		u.gate.want(t, "here") // all at once
	}
	resp := u.get("/echo")
	if got := whole(t, resp); resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(got, "Rate Exceeded") {
		t.Errorf("got %d %q while all are busy, want 429", resp.StatusCode, got)
	}
	for range most {
		u.gate.pass <- struct{}{}
	}
	group.Wait()
	seen := map[int]bool{}
	for range most {
		seen[<-pids] = true
	}
	if len(seen) != most {
		t.Errorf("got processes %v, want %d", seen, most)
	}
	if got := u.echo(u.get("/echo")).PID; !seen[got] {
		t.Errorf("got process %d, want one of %v again", got, seen)
	}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestReplace(t *testing.T) {
	u := open(t, "serves", functionurl.Options{})
	idle := u.echo(u.get("/echo")).PID
	u.front.Replace()
	if !gone(idle) {
		t.Errorf("process %d lives, want it ended", idle)
	}

	done := make(chan int)
	go func() {
		resp := u.get("/wait")
		if got := whole(t, resp); got != "waited" {
			t.Errorf("got %q from a replaced environment, want its answer", got)
		}
		done <- pid(t, resp)
	}()
	u.gate.want(t, "here")
	u.front.Replace()
	u.gate.pass <- struct{}{}
	busy := <-done
	if got := u.echo(u.get("/echo")).PID; got == busy || got == idle {
		t.Errorf("got process %d, want another than %d and %d", got, idle, busy)
	}
}

func TestClose(t *testing.T) {
	u := open(t, "serves", functionurl.Options{})
	idle := u.echo(u.get("/echo")).PID
	resp := u.get("/stuck") // takes the idle one
	u.gate.want(t, "begun")
	other := u.echo(u.get("/echo")).PID
	if err := u.front.Close(); err != nil {
		t.Errorf("got %v from Close, want nil", err)
	}
	broken(t, resp)
	for _, pid := range []int{idle, other} {
		if !gone(pid) {
			t.Errorf("process %d lives, want it ended", pid)
		}
	}
	if resp := u.get("/echo"); resp.StatusCode != 502 {
		t.Errorf("got %d from a closed front, want 502", resp.StatusCode)
	}
}

func TestTimeout(t *testing.T) {
	t.Run("before the first byte", func(t *testing.T) {
		u := open(t, "serves", functionurl.Options{Timeout: time.Second})
		resp := u.get("/stuck-early")
		if got := whole(t, resp); resp.StatusCode != 504 || !strings.Contains(got, "timed out") {
			t.Errorf("got %d %q, want 504", resp.StatusCode, got)
		}
		if got := u.echo(u.get("/echo")); got.PID == 0 {
			t.Error("got no process for the next request")
		}
	})
	t.Run("in the middle", func(t *testing.T) {
		u := open(t, "serves", functionurl.Options{Timeout: time.Second})
		resp := u.get("/stuck")
		if got := broken(t, resp); got != "begun" {
			t.Errorf("got %q, want what was written before", got)
		}
	})
	t.Run("the function ends by itself in time", func(t *testing.T) {
		u := open(t, "serves", functionurl.Options{Timeout: 2 * time.Second}) // the last quarter of it is for the end
		if got := whole(t, u.get("/deadline")); got != "begun ended" {
			t.Errorf("got %q, want the function's own end", got)
		}
	})
}

// TestClientLeaves: the function runs on, unless it is to be told.
// (client-gone-upstream-running)
func TestClientLeaves(t *testing.T) {
	leave := func(t *testing.T, u *url, path string) {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", u.at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Gate", u.gate.url)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		u.gate.want(t, map[string]string{"/events": "0", "/endless": "begun"}[path])
		cancel()
	}
	t.Run("as on Lambda", func(t *testing.T) {
		u := open(t, "serves", functionurl.Options{MaxEnvironments: 1})
		leave(t, u, "/events")
		for _, step := range []string{"1", "2"} {
			u.gate.pass <- struct{}{}
			u.gate.want(t, step)
		}
		resp := u.get("/echo")
		if resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("got %d while the function runs on, want 429", resp.StatusCode)
		}
		u.gate.pass <- struct{}{}
	})
	t.Run("told", func(t *testing.T) {
		u := open(t, "serves", functionurl.Options{TellLeave: true})
		leave(t, u, "/endless")
		u.gate.pass <- struct{}{}
		u.gate.want(t, "stopped")
		u.gate.pass <- struct{}{}
	})
}

// TestFreeze: an idle environment stands still, and is woken for the next request.
func TestFreeze(t *testing.T) {
	u := open(t, "serves", functionurl.Options{MaxEnvironments: 1, Freeze: syscall.SIGSTOP, Thaw: syscall.SIGCONT})
	first := u.echo(u.get("/echo")).PID
	for range 20 {
		waitStopped(t, first)
		if got := u.echo(u.get("/echo")).PID; got != first {
			t.Fatalf("got process %d, want %d again", got, first)
		}
	}
	if got := strings.Count(u.log.String(), "environment started"); got != 1 {
		t.Errorf("got %d environments, want 1", got)
	}
}

// waitStopped waits until a process stands still, where the system has a file that shows it.
func waitStopped(t *testing.T, pid int) {
	t.Helper()
	var stat []byte
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); runtime.Gosched() {
		var err error
		if stat, err = os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil && runtime.GOOS != "linux" {
			return
		}
		if bytes.Contains(stat, []byte(") T ")) {
			return
		}
	}
	t.Errorf("got process state %s, want it stopped", stat)
}

// TestLargeAnswers are more than a buffered URL could pass on.
func TestLargeAnswers(t *testing.T) {
	u := open(t, "serves", functionurl.Options{})
	const n = 20 << 20
	if got := whole(t, u.get("/bytes?20971520")); len(got) != n || strings.Trim(got, "x") != "" {
		t.Errorf("got %d bytes, want %d", len(got), n)
	}
}

func TestAnswerHeaders(t *testing.T) {
	u := open(t, "serves", functionurl.Options{})
	for _, c := range []struct {
		status string
		body   string
	}{
		{"200", "\n"}, {"404", "\n"}, {"302", "\n"}, // a byte that keeps the platform from waiting
		{"204", ""}, {"304", ""},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			t.Run(method+" "+c.status, func(t *testing.T) {
				resp := u.send(method, "/status?"+c.status, "", nil)
				want := c.body
				if method == "HEAD" {
					want = ""
				}
				if got := whole(t, resp); got != want || !strings.HasPrefix(resp.Status, c.status) {
					t.Errorf("got %s %q, want %s %q", resp.Status, got, c.status, want)
				}
				if got, want := resp.Header.Get("X-Odd"), "é \"<&>\\\u2028, b"; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if got := strings.Join(resp.Header["Set-Cookie"], "|"); got != "a=1; Path=/|b=2" {
					t.Errorf("got cookies %q, want two", got)
				}
				for name := range resp.Header {
					if strings.HasPrefix(name, "X-Amzn-Remapped-") {
						t.Errorf("got %s, which is not the function's to send", name)
					}
				}
			})
		}
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name string
		o    functionurl.Options
	}{
		{"neither", functionurl.Options{}},
		{"both", functionurl.Options{Binary: "/bin/sh", Endpoint: "http://127.0.0.1:3001"}},
		{"no such binary", functionurl.Options{Binary: "/no/such/bootstrap"}},
		{"no address", functionurl.Options{Endpoint: "127.0.0.1:3001"}},
	} {
		if _, err := functionurl.New(c.o); err == nil {
			t.Errorf("%s: got no error, want one", c.name)
		}
	}
}
