package lambdahttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"holdfast/internal/aws/lambdahttp"
)

func TestPrelude(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    reply
	}{
		{
			"status and headers",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, "{}")
			},
			reply{status: 429, header: map[string]string{"Content-Type": "application/json", "Retry-After": "7"}, body: "{}"},
		},
		{
			"several cookies stay several",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				w.Header().Add("Set-Cookie", "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT")
				w.Header().Add("Set-Cookie", "b=2")
				_, _ = io.WriteString(w, "x")
			},
			reply{
				status: 200, header: map[string]string{"Content-Type": "text/plain"}, body: "x",
				cookies: []string{"a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "b=2"},
			},
		},
		{
			"several values are joined",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				w.Header()["Vary"] = []string{"Origin", "Accept"}
				_, _ = io.WriteString(w, "x")
			},
			reply{status: 200, header: map[string]string{"Content-Type": "text/plain", "Vary": "Origin, Accept"}, body: "x"},
		},
		{
			"what the platform sets itself or refuses is left out",
			func(w http.ResponseWriter, _ *http.Request) {
				for _, name := range []string{"Content-Length", "Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade", "Trailer", "x-amzn-Remapped-Date"} {
					w.Header()[name] = []string{"5"}
				}
				w.Header().Set("Content-Type", "text/plain")
				_, _ = io.WriteString(w, "x")
			},
			reply{status: 200, header: map[string]string{"Content-Type": "text/plain"}, body: "x"},
		},
		{
			"odd values",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["X-Lines"] = []string{"one\r\ntwo: three"}
				w.Header()["X-Nul"] = []string{"a\x00b\x7fc\td"}
				w.Header()["X-Quotes"] = []string{" \t" + `"<&>\` + "é\u2028 "}
				w.Header()["X-Long"] = []string{strings.Repeat("v", 100_000)}
				w.Header()["X Not A Name"] = []string{"x"}
				w.Header()["X-Name\n"] = []string{"x"}
				w.Header()[""] = []string{"x"}
				w.Header()["X-None"] = nil
				w.Header()["X-Empty"] = []string{""}
				w.Header()["content-type"] = []string{"text/event-stream;charset=utf-8"}
				w.WriteHeader(200)
				_, _ = io.WriteString(w, "x")
			},
			reply{status: 200, body: "x", header: map[string]string{
				"X-Lines": "one  two: three", "X-Nul": "a b c\td", "X-Quotes": `"<&>\` + "é\u2028", "X-Empty": "",
				"X-Long": strings.Repeat("v", 100_000), "Content-Type": "text/event-stream;charset=utf-8",
			}},
		},
		{
			"type of an answer that names none",
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "plain words") },
			reply{status: 200, header: map[string]string{"Content-Type": "text/plain; charset=utf-8"}, body: "plain words"},
		},
		{
			"informational answers are left out",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Link", "</style.css>; rel=preload")
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusSwitchingProtocols)
				w.Header().Del("Link")
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, "x")
			},
			reply{status: 418, header: map[string]string{"Content-Type": "text/plain"}, body: "x"},
		},
		{
			"the first status stays",
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusAccepted)
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, "x")
			},
			reply{status: 202, body: "x"},
		},
		{
			"flushing begins an answer and changes nothing else",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				w.(http.Flusher).Flush()
				_, _ = io.WriteString(w, "a")
				if err := http.NewResponseController(w).Flush(); err != nil {
					panic(err)
				}
				_, _ = io.WriteString(w, "b")
			},
			reply{status: 200, header: map[string]string{"Content-Type": "text/plain"}, body: "ab"},
		},
		{
			"empty writes are no end",
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(200)
				_, _ = w.Write(nil)
				_, _ = io.WriteString(w, "a")
				_, _ = w.Write([]byte{})
				_, _ = io.WriteString(w, "b")
			},
			reply{status: 200, body: "ab"},
		},
		{
			"a body without a byte gets a line break, or the client may wait for one",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(http.StatusFound)
			},
			reply{status: 302, header: map[string]string{"Location": "/elsewhere"}, body: "\n"},
		},
		{
			"no content",
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNoContent)
				if _, err := io.WriteString(w, "never"); !errors.Is(err, http.ErrBodyNotAllowed) {
					panic(err)
				}
			},
			reply{status: 204, body: "\n"},
		},
		{
			"a handler that answers nothing",
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Left", "over") },
			reply{
				status: 500, header: map[string]string{"Content-Type": "application/json", "X-Holdfast-Error": "internal"},
				body: `{"error":{"message":"The gateway gave no answer; its log has the details.","type":"api_error"},"type":"error"}`,
			},
		},
		{
			"a status that HTTP does not have",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(20) },
			internalFault,
		},
		{
			"a panic before the first byte",
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Left", "over")
				panic("secret words")
			},
			internalFault,
		},
		{
			"the handler's goroutine ends",
			func(http.ResponseWriter, *http.Request) { runtime.Goexit() },
			internalFault,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, c.handler, lambdahttp.Options{})
			for range 2 { // the process lives on
				if diff := cmp.Diff(c.want, p.do(post), cmp.AllowUnexported(reply{})); diff != "" {
					t.Errorf("answer differs (-want +got):\n%s", diff)
				}
			}
		})
	}
}

var internalFault = reply{
	status: 500, header: map[string]string{"Content-Type": "application/json", "X-Holdfast-Error": "internal"},
	body: `{"error":{"message":"The gateway met an internal fault; its log has the details.","type":"api_error"},"type":"error"}`,
}

func TestHeadSendsNoBody(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if n, err := io.WriteString(w, "body"); n != 4 || err != nil {
			t.Errorf("got %d, %v from a write, want 4, nil", n, err)
		}
	}, lambdahttp.Options{})
	got := p.do(withMethod("HEAD"))
	if want := (reply{status: 200, header: map[string]string{"Content-Type": "text/plain"}, body: "\n"}); !cmp.Equal(got, want, cmp.AllowUnexported(reply{})) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestBrokenOff: however a handler breaks its answer off, nobody takes it for whole, and
// the next event is served. (silent-success-from-our-own-adapter, warm-process-hazards)
func TestBrokenOff(t *testing.T) {
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer cut.Close()
	target, err := url.Parse(cut.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	begun := func(end func()) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "begun")
			end()
		}
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // error type
		logged  bool
	}{
		{"panic", begun(func() { panic("secret words") }), "Function.Panic", true},
		{"nil panic", begun(func() { panic(nil) }), "Function.Panic", true},
		{"abort", begun(func() { panic(http.ErrAbortHandler) }), "Function.Aborted", false},
		{"goroutine ends", begun(runtime.Goexit), "Function.Panic", true},
		{"reverse proxy whose upstream is cut", proxy.ServeHTTP, "Function.Aborted", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, c.handler, lambdahttp.Options{})
			for range 2 {
				got := p.do(withMethod("GET"))
				if got.status != 200 || got.body != "begun" {
					t.Errorf("got %d %q, want 200 with what was written", got.status, got.body)
				}
				if got.errorType != c.want {
					t.Errorf("got error type %q, want %q", got.errorType, c.want)
				}
				if !strings.Contains(got.errorText, `"errorMessage"`) || strings.Contains(got.errorText, "secret") {
					t.Errorf("got error %q, want a message that says nothing of the panic's value", got.errorText)
				}
			}
			if logged := strings.Contains(p.log.String(), "panic"); logged != c.logged {
				t.Errorf("got panic logged: %v, want %v", logged, c.logged)
			}
		})
	}
}

// TestAbortBeforeTheFirstByte: there is no connection to break, so the invocation fails.
func TestAbortBeforeTheFirstByte(t *testing.T) {
	p := start(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, lambdahttp.Options{})
	for range 2 {
		if got, _ := p.begin(event{body: post}).failure(t); got != "Function.Aborted" {
			t.Errorf("got error type %q, want Function.Aborted", got)
		}
	}
}

// TestStreaming: each write arrives before the handler makes the next one, the prelude
// before the first. (buffered-streaming)
func TestStreaming(t *testing.T) {
	step := make(chan struct{})
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.WriteHeader(200)
		for _, s := range []string{"a", "bc", strings.Repeat("d", 100_000)} {
			<-step
			_, _ = io.WriteString(w, s)
		}
		<-step
	}, lambdahttp.Options{})
	a := p.begin(event{body: post})
	r := io.LimitReader(a.body, 1<<30)
	read := func(n int) string {
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			t.Fatalf("read the stream: %v", err)
		}
		return string(b)
	}
	want := `{"statusCode":200,"headers":{"Content-Type":"application/octet-stream"}}` + "\x00\x00\x00\x00\x00\x00\x00\x00"
	if got := read(len(want)); got != want {
		t.Fatalf("got prelude %q, want %q", got, want)
	}
	for _, want := range []string{"a", "bc", strings.Repeat("d", 100_000)} {
		step <- struct{}{} // the handler is let on only now
		if got := read(len(want)); got != want {
			t.Errorf("got %.10q, want %.10q", got, want)
		}
	}
	step <- struct{}{}
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
		t.Errorf("got %q, %v at the end, want nothing", rest, err)
	}
	if got := a.trailer.Get("Lambda-Runtime-Function-Error-Type"); got != "" {
		t.Errorf("got error type %q of a good answer, want none", got)
	}
	close(a.done)
}

// TestHeadersChangedLater must be clean under the race detector, too.
func TestHeadersChangedLater(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-One", "1")
		w.WriteHeader(200)
		for i := range 1000 {
			w.Header().Set("X-One", strings.Repeat("2", i))
			w.Header().Set("X-Two", "2")
		}
		_, _ = io.WriteString(w, "x")
	}, lambdahttp.Options{})
	if got := p.do(post); got.header["X-One"] != "1" || got.header["X-Two"] != "" {
		t.Errorf("got headers %v, want those at WriteHeader", got.header)
	}
}

// TestDeadlinesCannotBeSet so that a handler falls back on its own.
func TestDeadlinesCannotBeSet(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		for _, err := range []error{c.SetWriteDeadline(time.Now()), c.SetReadDeadline(time.Now())} {
			if !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("got %v, want http.ErrNotSupported", err)
			}
		}
		_, _ = io.WriteString(w, "x")
	}, lambdahttp.Options{})
	p.do(post)
}

// TestPlatformStopsReading: the handler learns of it by its writes and by its context.
// (client-gone-upstream-running)
func TestPlatformStopsReading(t *testing.T) {
	failed, ended := make(chan error, 1), make(chan error, 1)
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/messages" {
			_, _ = io.WriteString(w, "next")
			return
		}
		for {
			if _, err := io.WriteString(w, strings.Repeat("x", 10_000)); err != nil {
				failed <- err
				<-r.Context().Done()
				ended <- context.Cause(r.Context())
				return
			}
		}
	}, lambdahttp.Options{})
	p.begin(event{body: post, refuse: true})
	if err := <-failed; !errors.Is(err, lambdahttp.ErrStopped) {
		t.Errorf("got %v from a write, want ErrStopped", err)
	}
	if err := <-ended; !errors.Is(err, lambdahttp.ErrStopped) {
		t.Errorf("got cause %v, want ErrStopped", err)
	}
	if got := p.do(strings.Replace(post, "/v1/messages", "/next", 1)).body; got != "next" {
		t.Errorf("got %q after a refused answer, want the next one served", got)
	}
	if !strings.Contains(p.log.String(), "413") {
		t.Errorf("got log %q, want the platform's status", p.log)
	}
}

// TestDeadline: the handler has the margin to end the answer in its own words.
func TestDeadline(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun ")
		<-r.Context().Done()
		if !errors.Is(context.Cause(r.Context()), lambdahttp.ErrDeadline) || !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
			t.Errorf("got %v with cause %v, want ErrDeadline", r.Context().Err(), context.Cause(r.Context()))
		}
		_, _ = io.WriteString(w, "ended")
	}, lambdahttp.Options{Margin: time.Hour})
	got := p.begin(event{body: post, deadline: time.Now().Add(300 * time.Millisecond)}).all(t)
	if got.body != "begun ended" || got.errorType != "" {
		t.Errorf("got %q with error %q, want the handler's own end", got.body, got.errorType)
	}
}

func TestMargin(t *testing.T) {
	for _, c := range []struct {
		name         string
		left, margin time.Duration
		from, to     time.Duration // of the context's deadline before the platform's
	}{
		{"by default", time.Hour, 0, lambdahttp.DefaultMargin, lambdahttp.DefaultMargin},
		{"as set", time.Hour, 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{"a quarter of little time", 20 * time.Second, time.Minute, 4 * time.Second, 5 * time.Second},
		{"time that is over", -time.Second, time.Minute, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var deadline time.Time
			p := start(t, func(w http.ResponseWriter, r *http.Request) {
				deadline, _ = r.Context().Deadline()
				_, _ = io.WriteString(w, "x")
			}, lambdahttp.Options{Margin: c.margin})
			at := time.UnixMilli(time.Now().Add(c.left).UnixMilli())
			p.begin(event{body: post, deadline: at}).all(t)
			if got := at.Sub(deadline); got < c.from || got > c.to {
				t.Errorf("got a margin of %v, want %v to %v", got, c.from, c.to)
			}
		})
	}
}

func TestInvocationContext(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		lc, ok := lambdacontext.FromContext(r.Context())
		if !ok || lc.AwsRequestID != "invocation-1" || lc.InvokedFunctionArn != "arn:aws:lambda:us-east-1:123456789012:function:gateway" {
			t.Errorf("got %+v, want the invocation's id and function", lc)
		}
		if got, want := r.Context().Value("x-amzn-trace-id"), "Root=1-5759e988-bd862e3fe1be46a994272793"; got != want {
			t.Errorf("got trace id %v, want %v", got, want)
		}
		_, _ = io.WriteString(w, "x")
	}, lambdahttp.Options{})
	p.do(post)
}

// TestWriteAfterReturn: a goroutine that outlives its handler can harm nobody.
func TestAfterReturn(t *testing.T) {
	type left struct {
		w http.ResponseWriter
		r *http.Request
	}
	kept := make(chan left, 1)
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		kept <- left{w, r}
	}, lambdahttp.Options{})
	p.do(post)
	l := <-kept
	<-p.nexts
	<-p.nexts // the function asks for its second event: the first one is done with
	if _, err := l.w.Write([]byte("late")); err == nil {
		t.Error("got a late write taken, want an error")
	}
	if _, err := l.r.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("got %v from a late read, want http.ErrBodyReadAfterClose", err)
	}
	if l.r.Context().Err() == nil {
		t.Error("got a live context, want it ended")
	}
}
