package lambdahttp_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/aws/lambdahttp"
	"holdfast/internal/test/logtest"
)

// platform is a Runtime API that a test plays: it hands out events and keeps what came.
type platform struct {
	t      *testing.T
	server *httptest.Server
	events chan event
	nexts  chan struct{} // one for each time the function asked for an event
	log    *logtest.Log
}

type event struct {
	body     string
	deadline time.Time
	answers  chan *answered
	refuse   bool // take the beginning of an answer, then refuse it
}

// answered is what came for an event. Body and trailers may be read until done is closed.
type answered struct {
	path    string
	header  http.Header
	body    io.Reader
	trailer http.Header
	done    chan struct{}
}

// start runs a handler on a platform of its own until the test ends.
func start(t *testing.T, handler http.HandlerFunc, o lambdahttp.Options) *platform {
	t.Helper()
	p := &platform{t: t, events: make(chan event), nexts: make(chan struct{}, 100), log: &logtest.Log{}}
	var mu sync.Mutex
	var given []event
	closed := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		p.nexts <- struct{}{}
		select {
		case e := <-p.events:
			mu.Lock()
			given = append(given, e)
			id := fmt.Sprintf("invocation-%d", len(given))
			mu.Unlock()
			h := w.Header()
			h.Set("Lambda-Runtime-Aws-Request-Id", id)
			h.Set("Lambda-Runtime-Trace-Id", "Root=1-5759e988-bd862e3fe1be46a994272793")
			h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:gateway")
			if !e.deadline.IsZero() {
				h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(e.deadline.UnixMilli(), 10))
			}
			h.Set("Content-Length", strconv.Itoa(len(e.body)))
			_, _ = io.WriteString(w, e.body)
		case <-closed:
		case <-r.Context().Done():
		}
	})
	take := func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimPrefix(r.PathValue("id"), "invocation-"))
		mu.Lock()
		e := given[n-1]
		mu.Unlock()
		a := &answered{path: r.URL.Path, header: r.Header, body: r.Body, trailer: r.Trailer, done: make(chan struct{})}
		if e.refuse {
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			e.answers <- a
			return
		}
		e.answers <- a
		select {
		case <-a.done:
		case <-closed:
		}
		w.WriteHeader(http.StatusAccepted)
	}
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", take)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", take)
	p.server = httptest.NewServer(mux)
	o.RuntimeAPI = strings.TrimPrefix(p.server.URL, "http://")
	o.Log = slog.New(slog.NewTextHandler(p.log, nil))
	ended := make(chan error, 1)
	go func() { ended <- lambdahttp.Start(handler, o) }()
	t.Cleanup(func() {
		close(closed)
		p.server.Close()
		if err := <-ended; err == nil {
			t.Error("Start returned nil; it returns only when the Runtime API is gone")
		}
	})
	return p
}

// begin hands an event out and returns the answer as soon as it begins.
func (p *platform) begin(e event) *answered {
	p.t.Helper()
	if e.answers == nil {
		e.answers = make(chan *answered, 1)
	}
	if e.deadline.IsZero() {
		e.deadline = time.Now().Add(time.Minute)
	}
	select {
	case p.events <- e:
	case <-p.t.Context().Done():
		p.t.Fatal("the function took no event")
	}
	return <-e.answers
}

// reply is a whole answer.
type reply struct {
	status    int
	header    map[string]string
	cookies   []string
	body      string
	errorType string // of the trailers
	errorText string
}

// all reads an answer to its end.
func (a *answered) all(t *testing.T) reply {
	t.Helper()
	defer close(a.done)
	if !strings.HasSuffix(a.path, "/response") {
		b, _ := io.ReadAll(a.body)
		t.Fatalf("got the invocation failed with %s, want an answer", b)
	}
	if got, want := a.header.Get("Content-Type"), "application/vnd.awslambda.http-integration-response"; got != want {
		t.Errorf("got content type %q, want %q", got, want)
	}
	raw, err := io.ReadAll(a.body)
	if err != nil {
		t.Fatalf("the stream broke: %v", err)
	}
	r := parse(t, raw)
	r.errorType = a.trailer.Get("Lambda-Runtime-Function-Error-Type")
	if text, err := base64.StdEncoding.DecodeString(a.trailer.Get("Lambda-Runtime-Function-Error-Body")); err != nil {
		t.Errorf("the error trailer is no base64: %v", err)
	} else {
		r.errorText = string(text)
	}
	return r
}

func parse(t *testing.T, raw []byte) reply {
	t.Helper()
	head, content, found := bytes.Cut(raw, make([]byte, 8))
	if !found {
		t.Fatalf("no eight NUL bytes in %q", raw)
	}
	var prelude struct {
		StatusCode int
		Headers    map[string]string
		Cookies    []string
	}
	d := json.NewDecoder(bytes.NewReader(head))
	d.DisallowUnknownFields()
	if err := d.Decode(&prelude); err != nil {
		t.Fatalf("prelude %q: %v", head, err)
	}
	return reply{status: prelude.StatusCode, header: prelude.Headers, cookies: prelude.Cookies, body: string(content)}
}

// failure reads how an invocation was reported as failed.
func (a *answered) failure(t *testing.T) (errorType, message string) {
	t.Helper()
	defer close(a.done)
	raw, _ := io.ReadAll(a.body)
	if !strings.HasSuffix(a.path, "/error") {
		t.Fatalf("got the answer %q, want the invocation failed", raw)
	}
	var f struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatalf("read the failure %q: %v", raw, err)
	}
	if got := a.header.Get("Lambda-Runtime-Function-Error-Type"); got != f.ErrorType {
		t.Errorf("got error type %q in the header, want the body's %q", got, f.ErrorType)
	}
	return f.ErrorType, f.ErrorMessage
}

// do hands an event out and reads the answer to its end.
func (p *platform) do(text string) reply {
	p.t.Helper()
	return p.begin(event{body: text}).all(p.t)
}

// post is a small event with a JSON body.
const post = `{"version":"2.0","rawPath":"/v1/messages","headers":{"content-type":"application/json"},` +
	`"requestContext":{"http":{"method":"POST"}},"body":"{\"stream\":true}","isBase64Encoded":false}`

func withMethod(method string) string { return strings.Replace(post, "POST", method, 1) }
