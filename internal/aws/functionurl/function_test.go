package functionurl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-lambda-go/lambdaurl"

	"holdfast/internal/aws/functionurl"
	"holdfast/internal/aws/lambdahttp"
	"holdfast/internal/test/logtest"
)

// asFunction makes this test's binary the function instead of the tests.
const asFunction = "HOLDFAST_TEST_FUNCTION"

func TestMain(m *testing.M) {
	switch os.Getenv(asFunction) {
	case "":
		os.Exit(m.Run())
	case "refuses":
		_ = lambdahttp.ReportInit(errors.New("no table"))
	case "exits":
	case "hello": // what stands in many a bootstrap: not framed for a URL
		hello()
	case "stock":
		lambdaurl.Start(http.HandlerFunc(function))
	default:
		err := lambdahttp.Start(http.HandlerFunc(function), lambdahttp.Options{Margin: time.Minute})
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

// hello speaks the Runtime API by hand and answers without a prelude.
func hello() {
	api := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	var before []int // what the platform said to the answers to the last event
	for {
		resp, err := http.Get(api + "next")
		if err != nil {
			return
		}
		resp.Body.Close()
		id, text := resp.Header.Get("Lambda-Runtime-Aws-Request-Id"), fmt.Sprintf(`{"StatusCode":200,"Before":%d}`, before)
		before = nil
		for _, id := range []string{"another", id, id} {
			if resp, err = http.Post(api+id+"/response", "application/json", strings.NewReader(text)); err != nil {
				return
			}
			resp.Body.Close()
			before = append(before, resp.StatusCode)
		}
	}
}

// received is a request as the function sees it.
type received struct {
	PID                                               int
	Method, RequestURI, EscapedPath, Host, RemoteAddr string
	Header                                            http.Header
	ContentLength                                     int64
	Body                                              []byte
	Deadline                                          time.Time
	Invocation, Memory                                string
}

// function is the handler of the function's process. What it does is in the path; its
// steps wait at the test's gate, whose address is in a header.
func function(w http.ResponseWriter, r *http.Request) {
	pass := func(step string) {
		resp, err := http.Get(r.Header.Get("X-Gate") + "/" + step)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
	}
	w.Header().Set("X-Pid", strconv.Itoa(os.Getpid()))
	switch r.URL.Path {
	case "/echo":
		content, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		deadline, _ := r.Context().Deadline()
		lc, _ := lambdacontext.FromContext(r.Context())
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(received{
			os.Getpid(), r.Method, r.RequestURI, r.URL.EscapedPath(), r.Host, r.RemoteAddr, r.Header, r.ContentLength, content,
			deadline, lc.AwsRequestID, os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"),
		})
	case "/cost":
		answerCost(w, r)
	case "/events":
		w.Header().Set("Content-Type", r.Header.Get("X-Type"))
		for i := range 3 {
			if _, err := fmt.Fprintf(w, "data: %d\n\n", i); err != nil {
				pass("failed")
			}
			pass(strconv.Itoa(i))
		}
	case "/status":
		status, _ := strconv.Atoi(r.URL.RawQuery)
		w.Header()["X-Odd"] = []string{"é \"<&>\\\u2028", "b"}
		w.Header().Add("Set-Cookie", "a=1; Path=/")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("Content-Length", "7")
		w.Header().Set("Connection", "close")
		w.WriteHeader(status)
	case "/panic":
		panic("at once")
	case "/abort":
		panic(http.ErrAbortHandler)
	case "/panic-later":
		_, _ = io.WriteString(w, "begun")
		pass("begun")
		panic("later")
	case "/abort-later":
		_, _ = io.WriteString(w, "begun")
		pass("begun")
		panic(http.ErrAbortHandler)
	case "/exit":
		os.Exit(3)
	case "/wait":
		pass("here")
		_, _ = io.WriteString(w, "waited")
	case "/stuck":
		_, _ = io.WriteString(w, "begun")
		pass("begun")
		select {}
	case "/stuck-early":
		select {}
	case "/deadline":
		_, _ = io.WriteString(w, "begun ")
		<-r.Context().Done()
		if errors.Is(context.Cause(r.Context()), lambdahttp.ErrDeadline) {
			_, _ = io.WriteString(w, "ended")
		}
	case "/endless":
		_, err := io.WriteString(w, "begun")
		pass("begun")
		for err == nil {
			_, err = w.Write(make([]byte, 1000))
		}
		if errors.Is(err, lambdahttp.ErrStopped) {
			pass("stopped")
		}
	case "/bytes":
		n, _ := strconv.Atoi(r.URL.RawQuery)
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(bytes.Repeat([]byte("x"), n))
	}
}

// gate is where the function's steps wait until the test lets them pass.
type gate struct {
	url     string
	reached chan string
	pass    chan struct{}
}

func newGate(t *testing.T) *gate {
	g := &gate{reached: make(chan string, 100), pass: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.reached <- strings.TrimPrefix(r.URL.Path, "/")
		select {
		case <-g.pass:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	g.url = s.URL
	return g
}

// url is a front on the loopback address, whose function is this test's binary.
type url struct {
	t     *testing.T
	front *functionurl.Front
	at    string
	gate  *gate
	log   *logtest.Log
}

// open makes a URL of a kind of function (TestMain).
func open(t *testing.T, kind string, o functionurl.Options) *url {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	u := &url{t: t, gate: newGate(t), log: &logtest.Log{}}
	o.Binary, o.Output, o.Log = self, u.log, slog.New(slog.NewTextHandler(u.log, nil))
	o.Env = append(os.Environ(), asFunction+"="+kind)
	if u.front, err = functionurl.New(o); err != nil {
		t.Fatal(err)
	}
	return u.listen()
}

func (u *url) listen() *url {
	s := httptest.NewUnstartedServer(u.front)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	u.t.Cleanup(func() {
		_ = u.front.Close()
		s.Close()
	})
	u.at = s.URL
	return u
}

// send sends a request and returns the answer when its headers are there.
func (u *url) send(method, path, contentType string, body []byte, header ...string) *http.Response {
	u.t.Helper()
	req, err := http.NewRequestWithContext(u.t.Context(), method, u.at+path, bytes.NewReader(body))
	if err != nil {
		u.t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("X-Gate", u.gate.url)
	for i := 0; i < len(header); i += 2 {
		req.Header[header[i]] = append(req.Header[header[i]], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		u.t.Fatalf("%s %s: %v\n%s", method, path, err, u.log)
	}
	u.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (u *url) get(path string) *http.Response { return u.send("GET", path, "", nil) }

// whole reads an answer that has to end well.
func whole(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("got %v after %d bytes, want the whole answer", err, len(b))
	}
	return string(b)
}

// broken reads an answer that must not end well.
func broken(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q and %v at the end, want a broken stream", b, err)
	}
	return string(b)
}

func pid(t *testing.T, resp *http.Response) int {
	t.Helper()
	n, err := strconv.Atoi(resp.Header.Get("X-Pid"))
	if err != nil {
		t.Fatalf("got headers %v, want one with a process id", resp.Header)
	}
	return n
}

func (u *url) echo(resp *http.Response) received {
	u.t.Helper()
	var r received
	text := whole(u.t, resp)
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		u.t.Fatalf("got %d %.200q, want an echo: %v\n%s", resp.StatusCode, text, err, u.log)
	}
	return r
}

// want fails unless a gate is reached by this step.
func (g *gate) want(t *testing.T, step string) {
	t.Helper()
	select {
	case got := <-g.reached:
		if got != step {
			t.Fatalf("got step %q, want %q", got, step)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("step %q was not reached", step)
	}
}
