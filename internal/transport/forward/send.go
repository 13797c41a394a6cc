package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"holdfast/internal/transport/roundtrip"
)

// Limits of the phases of an attempt. The whole has none.
type Limits struct {
	Dial    time.Duration // to connect
	TLS     time.Duration // the handshake
	Headers time.Duration // from the attempt's beginning to the answer's headers; 0 is no limit
	Idle    time.Duration // between two reads of the answer's body
	// KeepAlive is how long a stream of events may be silent before the client is sent
	// something that it ignores; 0 is never.
	KeepAlive time.Duration
	// Write is how long the client may take to accept a write.
	Write time.Duration
}

// DefaultLimits are those that are no settings: Headers and KeepAlive are the owner's to
// choose. Claude Code gives a stream up after 300 s without a byte, which keeping it
// alive prevents, and thinking pauses of nearly that length have been seen.
var DefaultLimits = Limits{
	Dial:  10 * time.Second,
	TLS:   10 * time.Second,
	Idle:  6 * time.Minute,
	Write: time.Minute,
}

// maxIdlePerHost is above the streams that one process carries: connections are reused
// instead of being opened for every request beyond the default of two.
const maxIdlePerHost = 512

// NewTransport returns a transport for attempts. It sends a request once, and goes through a
// proxy of the environment for https alone.
func NewTransport(l Limits) *roundtrip.Transport {
	dialer := &net.Dialer{Timeout: l.Dial, KeepAlive: 30 * time.Second}
	return &roundtrip.Transport{Transport: &http.Transport{
		Proxy:                  roundtrip.Proxy,
		OnProxyConnectResponse: roundtrip.ProxyAnswered,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    l.TLS,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        55 * time.Second, // below the 60 s after which common front ends close
		ExpectContinueTimeout:  time.Second,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 << 10,
	}}
}

// ErrUnreachable reports that no HTTP answer came: the upstream could not be reached, the
// connection broke before the headers, or they did not come in time.
var ErrUnreachable = errors.New("the upstream could not be reached")

// ErrNoHeaders reports that the answer's headers did not come in time. An error that wraps
// it wraps ErrUnreachable too.
var ErrNoHeaders = errors.New("the answer did not begin in time")

// Send makes one attempt under ctx, which end ends: so it gives the attempt up when the
// answer's headers have not come within a time; 0 is no limit. The error wraps
// ErrUnreachable, or is ctx's cause when that ended otherwise. The transport itself sends
// again only where a reused connection proves that the server did not take the request.
func Send(ctx context.Context, end context.CancelCauseFunc, rt http.RoundTripper, method string, target *url.URL, header http.Header, body *Body, within time.Duration) (*http.Response, error) {
	if within > 0 {
		defer time.AfterFunc(within, func() { end(ErrNoHeaders) }).Stop()
	}
	req := (&http.Request{
		Method: method, URL: target, Host: target.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	// An empty body of a method that has one is sent as Content-Length: 0.
	if r, n := body.open(); n > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		req.Body, req.ContentLength = r, n
		req.GetBody = func() (io.ReadCloser, error) {
			r, again := body.open()
			if again != n {
				return nil, errors.New("the body was released")
			}
			return r, nil
		}
	}
	resp, err := rt.RoundTrip(req)
	if err == nil {
		return resp, nil
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrNoHeaders):
		err = ErrNoHeaders
	case cause != nil:
		return nil, cause
	}
	if !errors.Is(err, ErrNoHeaders) {
		err = roundtrip.InOurWords(err)
	}
	return nil, &unreachableError{target.Host, err}
}

// unreachableError names the host and never the URL, which may hold ids.
type unreachableError struct {
	host  string
	cause error
}

func (e *unreachableError) Error() string   { return "reach " + e.host + ": " + e.cause.Error() }
func (e *unreachableError) Unwrap() []error { return []error{ErrUnreachable, e.cause} }
