package awstest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Front stands before an endpoint. It counts what passes, and instead of passing it on can
// do what AWS does now and then and its stand-ins never do.
type Front struct {
	// URL is the front's own endpoint.
	URL string

	upstream string
	mu       sync.Mutex
	counts   map[string]int
	planned  map[string][]Trouble
	always   map[string]Trouble
	passing  *sync.Mutex
}

// Trouble answers a request instead of the upstream.
type Trouble func(*Exchange)

// Exchange is a request with the means to answer it, or not to.
type Exchange struct {
	// Operation is what is asked for, such as "UpdateItem".
	Operation string
	// Body is the request's.
	Body []byte

	writer   http.ResponseWriter
	request  *http.Request
	upstream string
}

// NewFront starts a front, which lasts as long as the test.
func NewFront(t testing.TB, upstream string) *Front {
	t.Helper()
	f := &Front{upstream: upstream, counts: map[string]int{}, planned: map[string][]Trouble{}, always: map[string]Trouble{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

// Calls returns how many requests of each operation came since the last call of it, those
// that met trouble and those repeated included.
func (f *Front) Calls() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := f.counts
	f.counts = map[string]int{}
	return counts
}

// Next plans trouble for the next requests of an operation, one each. nil lets one pass.
func (f *Front) Next(operation string, troubles ...Trouble) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planned[operation] = append(f.planned[operation], troubles...)
}

// Always gives every request of an operation the same trouble, where none is planned. nil
// ends it.
func (f *Front) Always(operation string, trouble Trouble) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.always[operation] = trouble
}

// OneByOne lets a request pass only when the one before it is answered. moto needs that: a
// conditional write of its own is not atomic.
func (f *Front) OneByOne() { f.passing = new(sync.Mutex) }

func (f *Front) next(operation string) Trouble {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[operation]++
	if planned := f.planned[operation]; len(planned) > 0 {
		f.planned[operation] = planned[1:]
		return planned[0]
	}
	return f.always[operation]
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	_, operation, inJSON := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !inJSON {
		_, operation, _ = strings.Cut(r.URL.Path, "/operation/")
	}
	x := &Exchange{Operation: operation, Body: body, writer: w, request: r, upstream: f.upstream}
	if trouble := f.next(operation); trouble != nil {
		trouble(x)
		return
	}
	if f.passing != nil {
		f.passing.Lock()
		defer f.passing.Unlock()
	}
	x.Pass()
}

// Apply passes the request on and returns the answer, which nobody has been told yet.
// With another body than the request's it applies that.
func (x *Exchange) Apply(body []byte) (int, http.Header, []byte) {
	request, err := http.NewRequestWithContext(x.request.Context(), x.request.Method, x.upstream+x.request.URL.Path, bytes.NewReader(body))
	if err != nil {
		return http.StatusInternalServerError, nil, []byte(err.Error())
	}
	request.Header = x.request.Header.Clone()
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return http.StatusInternalServerError, nil, []byte(err.Error())
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return http.StatusInternalServerError, nil, []byte(err.Error())
	}
	return response.StatusCode, response.Header, answer
}

// Pass passes the request on and answers with what comes back.
func (x *Exchange) Pass() { x.Answer(x.Apply(x.Body)) }

// Answer answers.
func (x *Exchange) Answer(status int, header http.Header, body []byte) {
	for name, values := range header {
		if name != "Content-Length" {
			x.writer.Header()[name] = values
		}
	}
	x.writer.Header().Set("Content-Length", fmt.Sprint(len(body)))
	x.writer.WriteHeader(status)
	_, _ = x.writer.Write(body) // the client may have gone
}

// Cut closes the connection without an answer.
func (x *Exchange) Cut() { panic(http.ErrAbortHandler) }

// Wait waits until the client has had enough.
func (x *Exchange) Wait() { <-x.request.Context().Done() }
