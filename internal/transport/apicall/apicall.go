// Package apicall carries the calls that holdfast makes for itself: to renew a login, and
// to look how much of an account's allowance is used.
//
// It sends one request and reads the whole answer, decoded, whatever its status. The
// account's base URL replaces scheme and host, and nothing of the path. Where a call
// brings no User-Agent, holdfast names itself. The time and the size of an answer are
// bounded. What an answer means is for the provider's package to say.
//
// # Errors
//
// After a failure it matters whether the provider can have acted: a refresh token that was
// sent may be spent. ErrNotSent says that it cannot: not a byte of the request's body left
// this process (of a request without body: there was no connection). Everything else is
// ErrNoAnswer: it may have acted.
//
// # Never
//
// It follows no redirect, which would carry a credential to another host. It sends nothing
// a second time, except where it is proved that the server did not take it (package
// roundtrip). It logs nothing, and no error repeats
// anything of the request but its host, nor anything of the answer.
package apicall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/provider"
	"holdfast/internal/transport/roundtrip"
	"holdfast/internal/wire/coding"
)

// Errors of Do.
var (
	// ErrNotSent reports that the provider cannot have acted: nothing that matters was sent.
	ErrNotSent = errors.New("the call was not sent")
	// ErrNoAnswer reports that the call was sent, or may have been, and that no whole answer
	// came.
	ErrNoAnswer = errors.New("the call was sent and no whole answer came")
)

const (
	// DefaultWithin bounds a call from its beginning to the end of its answer. The official
	// clients wait 15 to 30 s for a token.
	DefaultWithin = 20 * time.Second
	// maxBody bounds an answer, on the wire and decoded, in bytes. Real ones have a few
	// kilobytes.
	maxBody = 1 << 20
	// maxHeader bounds an answer's headers, in bytes.
	maxHeader = 256 << 10
)

// NewTransport returns a transport for calls. It uses every connection once: the next call
// is minutes away, and what became of one on a connection that was just being closed cannot
// be known.
func NewTransport() *roundtrip.Transport {
	return &roundtrip.Transport{Transport: &http.Transport{
		Proxy: roundtrip.Proxy, OnProxyConnectResponse: roundtrip.ProxyAnswered, ForceAttemptHTTP2: true, DisableKeepAlives: true,
		TLSHandshakeTimeout: DefaultWithin, MaxResponseHeaderBytes: maxHeader,
	}}
}

// Caller carries calls. The zero value is not usable: Transport is required.
type Caller struct {
	// Transport is mostly NewTransport's.
	Transport http.RoundTripper
	// Version is holdfast's own, for the User-Agent.
	Version string
	// Now is the clock that dates answers; nil stands for time.Now.
	Now func() time.Time
	// Within bounds a call; 0 stands for DefaultWithin.
	Within time.Duration
	// Last is asked when the body is about to leave, after a connection was made; an error
	// keeps it back (ErrNotSent). Nil lets everything go.
	Last func() error
}

// Do makes one call. baseURL replaces scheme and host; empty leaves them. The error wraps
// ErrNotSent or ErrNoAnswer.
func (c Caller) Do(ctx context.Context, call provider.Call, baseURL string) (provider.Reply, error) {
	within := c.Within
	if within == 0 {
		within = DefaultWithin
	}
	ctx, cancel := bounded(ctx, within, time.Since)
	defer cancel()
	sent := &sending{last: c.Last, bodyless: len(call.Body) == 0}
	req, err := c.request(httptrace.WithClientTrace(ctx, sent.trace()), call, baseURL, sent)
	if err != nil {
		return provider.Reply{}, fmt.Errorf("make a call: %w: %w", ErrNotSent, err)
	}
	if sent.bodyless && c.Last != nil {
		if err := c.Last(); err != nil {
			return provider.Reply{}, fmt.Errorf("call %s: %w: %w", req.URL.Host, ErrNotSent, err)
		}
	}
	resp, err := c.Transport.RoundTrip(req)
	if err != nil {
		err = roundtrip.InOurWords(err)
		return provider.Reply{}, fmt.Errorf("call %s: %w: %w", req.URL.Host, sent.failed(), err)
	}
	defer resp.Body.Close()
	reply := provider.Reply{Status: resp.StatusCode, Header: resp.Header, At: c.now()}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err = roundtrip.InOurWords(err); err == nil {
		reply.Body, err = coding.Decode(resp.Header.Values("Content-Encoding"), raw, maxBody)
	}
	if err != nil {
		return provider.Reply{}, fmt.Errorf("read the answer of %s (status %d): %w: %w", req.URL.Host, resp.StatusCode, ErrNoAnswer, err)
	}
	return reply, nil
}

// heldUp is how late a timer may be before it is no longer the other side that is slow.
const heldUp = 2 * time.Second

// bounded ends a context after d. A process that was frozen meanwhile finds its timer past
// its time and an answer that waits to be read: it gets some seconds to read it. since is
// time.Since.
func bounded(ctx context.Context, d time.Duration, since func(time.Time) time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	due := time.Now().Add(d)
	end := func() { cancel(context.DeadlineExceeded) }
	var mu sync.Mutex
	mu.Lock()
	defer mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		if since(due) < heldUp {
			end()
			return
		}
		timer = time.AfterFunc(heldUp, end)
	})
	return ctx, func() {
		cancel(context.Canceled)
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
	}
}

func (c Caller) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

func (c Caller) request(ctx context.Context, call provider.Call, baseURL string, sent *sending) (*http.Request, error) {
	target, err := url.Parse(call.URL)
	if err != nil {
		return nil, errors.New("its URL is not valid") // the parser's words repeat it
	}
	if baseURL != "" {
		base, err := url.Parse(baseURL)
		if err != nil {
			return nil, errors.New("the account's base URL is not valid")
		}
		target.Scheme, target.Host = base.Scheme, base.Host
	}
	header := call.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", "holdfast/"+c.Version)
	}
	req := (&http.Request{
		Method: call.Method, URL: target, Host: target.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if len(call.Body) > 0 {
		req.GetBody = func() (io.ReadCloser, error) { return &body{Reader: bytes.NewReader(call.Body), sent: sent}, nil }
		req.Body, _ = req.GetBody()
		req.ContentLength = int64(len(call.Body))
	}
	return req, nil
}

// sending watches how far a request gets.
type sending struct {
	last     func() error
	bodyless bool
	// asked and connected are set for a request without body; read once a byte of the body
	// was handed to the transport.
	asked, connected, read atomic.Bool
}

func (s *sending) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.connected.Store(true) },
	}
}

// failed says what a request without an answer was. A transport that tells nothing of its
// connections may have sent what has no body.
func (s *sending) failed() error {
	if s.bodyless && s.asked.Load() && !s.connected.Load() || !s.bodyless && !s.read.Load() {
		return ErrNotSent
	}
	return ErrNoAnswer
}

// body is a request's body that tells when it is taken.
type body struct {
	*bytes.Reader
	sent *sending
}

func (b *body) Read(p []byte) (int, error) {
	if b.sent.last != nil && b.Len() > 0 {
		if err := b.sent.last(); err != nil {
			return 0, err
		}
	}
	if len(p) > 0 {
		b.sent.read.Store(true)
	}
	return b.Reader.Read(p)
}

// WriteTo hides bytes.Reader's own, which would go around Read.
func (b *body) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{b}) }

func (b *body) Close() error { return nil }
