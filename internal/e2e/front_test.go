package e2e_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// exchange is one request of a client and what the program answered.
type exchange struct {
	method, path string
	asked        http.Header
	sent         *bytes.Buffer // the client's body; complete once its turn is over
	status       int
	answered     http.Header
	body         *bytes.Buffer // complete once the client's turn is over
}

func (e exchange) pin() string     { return e.answered.Get("X-Holdfast-Pin") }
func (e exchange) account() string { return e.answered.Get("X-Holdfast-Account") }

// front stands between the clients and the program.
type front struct {
	url string

	mu     sync.Mutex
	target *url.URL
	seen   []exchange
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	transport := &http.Transport{DisableCompression: true} // pass on as it is
	t.Cleanup(transport.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			f.mu.Lock()
			defer f.mu.Unlock()
			r.SetURL(f.target)
			sent := &bytes.Buffer{}
			if r.Out.Body != nil {
				r.Out.Body = copied{io.TeeReader(r.Out.Body, sent), r.Out.Body}
			}
			r.Out = r.Out.WithContext(context.WithValue(r.Out.Context(), sentKey{}, sent))
		},
		ModifyResponse: func(resp *http.Response) error {
			body := &bytes.Buffer{}
			sent, _ := resp.Request.Context().Value(sentKey{}).(*bytes.Buffer)
			f.mu.Lock()
			f.seen = append(f.seen, exchange{
				resp.Request.Method, resp.Request.URL.Path, resp.Request.Header.Clone(), sent,
				resp.StatusCode, resp.Header.Clone(), body,
			})
			f.mu.Unlock()
			resp.Body = copied{io.TeeReader(resp.Body, body), resp.Body}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// sentKey is where a request's context has the copy of its body.
type sentKey struct{}

type copied struct {
	io.Reader
	io.Closer
}

// to points the front at a program.
func (f *front) to(t *testing.T, base string) {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target = target
}

// exchanges returns what went through so far, in the order of the answers.
func (f *front) exchanges() []exchange {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]exchange(nil), f.seen...)
}
