package upstreamtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Upstream is the scripted server. It is safe for concurrent use.
type Upstream struct {
	// URL is its base, such as http://127.0.0.1:40123; empty unless Start made it.
	URL string

	closed chan struct{}
	speaks dialect

	mu       sync.Mutex
	accounts []*Account
	paths    map[string]Script
	grants   map[string]renewal // by refresh token
	requests []*Request
	arrived  chan struct{} // closed and replaced with every request
}

// Account is one account of the upstream, as a test scripts it.
type Account struct {
	Name string

	up           *Upstream
	organization string
	credentials  []string
	paths        map[string]Script
	queue        []Script
	fallback     Script
}

// Request is one request as it arrived.
type Request struct {
	// Number counts from 0 in the order of arrival.
	Number int
	// Account is the name of the account its credential belongs to; empty when unknown.
	Account string
	// Credential is the one that arrived, without its scheme.
	Credential string

	Method, Path, Query string // Query as it was sent, undecoded
	Host                string
	// Header has names in canonical case. ContentLength is -1 for a chunked body.
	Header        http.Header
	ContentLength int64
	// Body is as it was sent: not decompressed. BodyErr tells why reading it stopped early.
	Body    []byte
	BodyErr error
	// At is when the headers were read.
	At time.Time

	// Model and Stream are the body's, also when it came as zstd; zero when it is no JSON object.
	Model  string
	Stream bool

	organization string
	ended, left  chan struct{}
}

// Ended is closed when the answer was written to its end, or was given up.
func (r *Request) Ended() <-chan struct{} { return r.ended }

// Left is closed when the client went away before the answer ended.
func (r *Request) Left() <-chan struct{} { return r.left }

// ClientLeft reports whether the client has gone away before the answer ended.
func (r *Request) ClientLeft() bool {
	select {
	case <-r.left:
		return true
	default:
		return false
	}
}

// Start serves a new upstream of Anthropic's on a free port of 127.0.0.1 until the test ends. Answers
// that are still held then are given up.
func Start(t testing.TB) *Upstream {
	t.Helper()
	return start(t, anthropic())
}

// start serves an upstream of the dialect until the test ends.
func start(t testing.TB, d dialect) *Upstream {
	t.Helper()
	u := &Upstream{
		closed: make(chan struct{}), speaks: d, paths: map[string]Script{}, grants: map[string]renewal{}, arrived: make(chan struct{}),
	}
	server := httptest.NewServer(u)
	u.URL = server.URL
	t.Cleanup(func() {
		u.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return u
}

// Close gives up the answers that are held.
func (u *Upstream) Close() { close(u.closed) }

// Account adds an account known by any of the credentials. Its answers are good ones
// without limit headers until it is told otherwise.
func (u *Upstream) Account(name string, credentials ...string) *Account {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := &Account{
		Name: name, up: u, credentials: credentials, paths: map[string]Script{}, fallback: u.speaks.good,
		organization: fmt.Sprintf("00000000-0000-4000-8000-%012d", len(u.accounts)+1),
	}
	u.accounts = append(u.accounts, a)
	return a
}

// OnPath answers every request to the path by the script, whatever its method and
// credential: endpoints such as a usage look-up or a token exchange.
func (u *Upstream) OnPath(path string, s Script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paths[path] = s
}

// inference are the paths at which accounts answer by their scripts, whoever's they are.
var inference = map[string]bool{
	"/v1/messages": true, "/v1/responses": true, "/v1/chat/completions": true, "/backend-api/codex/responses": true,
}

// OnPath answers the account's requests to the path by the script, whatever their method.
func (a *Account) OnPath(path string, s Script) {
	a.up.mu.Lock()
	defer a.up.mu.Unlock()
	a.paths[path] = s
}

// Queue appends scripts for the account's next requests to be answered by a model, one
// each.
func (a *Account) Queue(scripts ...Script) {
	a.up.mu.Lock()
	defer a.up.mu.Unlock()
	a.queue = append(a.queue, scripts...)
}

// Always sets what the account answers by a model when its queue is empty.
func (a *Account) Always(s Script) {
	a.up.mu.Lock()
	defer a.up.mu.Unlock()
	a.fallback = s
}

// Requests returns what arrived for the account so far, in order.
func (a *Account) Requests() []*Request {
	var mine []*Request
	for _, r := range a.up.Requests() {
		if r.Account == a.Name {
			mine = append(mine, r)
		}
	}
	return mine
}

// Requests returns everything that arrived so far, in order.
func (u *Upstream) Requests() []*Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]*Request(nil), u.requests...)
}

// Await returns once at least n requests have arrived, or with ctx's error.
func (u *Upstream) Await(ctx context.Context, n int) ([]*Request, error) {
	for {
		u.mu.Lock()
		arrived := u.arrived
		requests := append([]*Request(nil), u.requests...)
		u.mu.Unlock()
		if len(requests) >= n {
			return requests, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return requests, fmt.Errorf("await request %d of %d: %w", len(requests)+1, n, ctx.Err())
		}
	}
}

// Forget empties the record of requests; numbers go on from 0.
func (u *Upstream) Forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = nil
}

func (u *Upstream) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	r := &Request{
		Method: hr.Method, Path: hr.URL.Path, Query: hr.URL.RawQuery, Host: hr.Host,
		Header: hr.Header.Clone(), ContentLength: hr.ContentLength, At: time.Now(),
		Credential: credential(hr.Header), ended: make(chan struct{}), left: make(chan struct{}),
	}
	r.Body, r.BodyErr = io.ReadAll(hr.Body)
	var told struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if json.Unmarshal(r.Plain(), &told) == nil {
		r.Model, r.Stream = told.Model, told.Stream
	}
	script := u.arrive(r)

	// The server ends the context when the client goes, and also when this returns: the
	// first of the two decides.
	stop := context.AfterFunc(hr.Context(), func() { close(r.left) })
	defer func() {
		stop()
		close(r.ended)
	}()
	if r.BodyErr != nil {
		panic(http.ErrAbortHandler)
	}
	script(r).write(w, r, u.closed)
}

// arrive records the request and takes the script that answers it.
func (u *Upstream) arrive(r *Request) Script {
	u.mu.Lock()
	defer u.mu.Unlock()
	var account *Account
	for _, a := range u.accounts {
		for _, c := range a.credentials {
			if c == r.Credential {
				account = a
			}
		}
	}
	if account != nil {
		r.Account, r.organization = account.Name, account.organization
	}
	r.Number = len(u.requests)
	u.requests = append(u.requests, r)
	close(u.arrived)
	u.arrived = make(chan struct{})

	if s := u.paths[r.Path]; s != nil {
		return s
	}
	if r.Path == u.speaks.token && r.Method == http.MethodPost {
		return u.exchange(r)
	}
	if u.speaks.probe != nil {
		if s := u.speaks.probe(r); s != nil {
			return s
		}
	}
	if account == nil {
		return u.speaks.unknown
	}
	if s := account.paths[r.Path]; s != nil {
		return s
	}
	if u.speaks.scripted(r) {
		if len(account.queue) == 0 {
			return account.fallback
		}
		next := account.queue[0]
		account.queue = account.queue[1:]
		return next
	}
	if s := u.speaks.aside(r); s != nil {
		return s
	}
	return u.speaks.nowhere
}

// credential is the one secret of a request: an API key before a bearer token.
func credential(h http.Header) string {
	if key := h.Get("x-api-key"); key != "" {
		return key
	}
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "bearer") {
		return token
	}
	return ""
}

func jsonType() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// Plain is the body without zstd, the coding in which Codex may send it; as it was sent
// when it has another or none.
func (r *Request) Plain() []byte {
	if r.Header.Get("Content-Encoding") != "zstd" {
		return r.Body
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return r.Body
	}
	defer decoder.Close()
	plain, err := decoder.DecodeAll(r.Body, nil)
	if err != nil {
		return r.Body
	}
	return plain
}
