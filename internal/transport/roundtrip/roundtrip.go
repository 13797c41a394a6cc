// Package roundtrip carries one request over HTTP and has it sent once.
//
// net/http's transport sends a request again by itself where it believes that this does no
// harm: it takes any request with an Idempotency-Key for harmless, and over HTTP/2 any that
// the server broke off with PROTOCOL_ERROR. A prompt costs money every time it is taken,
// and a refresh token counts once. So a request is sent again only where it is proved that
// the server did not take it:
//
//   - over HTTP/1, where not a byte of it was written to a reused connection;
//   - over HTTP/2, where the server reports it: its GOAWAY leaves the request's stream out, or
//     it refuses the stream (RFC 9113, sections 6.8 and 8.7). Then it is sent once more.
//
// A request without a body, whose method only reads (GET, HEAD), is sent again as net/http
// does. One without a body that acts is not, except after a PROTOCOL_ERROR.
//
// # Proxies
//
// Proxy names the proxy of a request: HTTPS_PROXY and NO_PROXY for https, whose secrets a
// proxy does not see. Plain http never goes through one.
package roundtrip

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Transport is an http.Transport that sends a request once. A request's GetBody says that
// its body can be had again, and not that it may be sent again.
type Transport struct {
	*http.Transport
	// older are the hosts whose last answer came over HTTP/1. Only there net/http asks for a
	// body again for the one good reason; over HTTP/2 it does not tell its reasons apart.
	older sync.Map
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	once := *r
	once.Header = plainly(r.Header)
	if _, older := t.older.Load(host); !older || reads(r.Method) {
		once.GetBody = nil
	}
	resp, err := t.Transport.RoundTrip(&once)
	if err != nil && r.GetBody != nil && untaken(err) {
		if body, none := r.GetBody(); none == nil {
			again := once
			again.Body = body
			resp, err = t.Transport.RoundTrip(&again)
		}
	}
	if err != nil {
		return resp, t.throughProxy(r, err)
	}
	t.saw(host, resp.ProtoMajor)
	return resp, nil
}

func (t *Transport) saw(host string, major int) {
	switch _, older := t.older.Load(host); {
	case major == 1 && !older:
		t.older.Store(host, nil)
	case major != 1 && older:
		t.older.Delete(host)
	}
}

// reads reports methods whose requests net/http takes for repeatable when it can have their
// body again.
func reads(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// repeatable are the headers by which net/http takes a request for repeatable. It looks them
// up as they are spelled here.
var repeatable = []string{"Idempotency-Key", "X-Idempotency-Key"}

// plainly returns headers that mean the same, in which net/http does not find those of
// repeatable: the names of headers are the same in small letters.
func plainly(h http.Header) http.Header {
	cloned := false
	for _, name := range repeatable {
		v, ok := h[name]
		if !ok {
			continue
		}
		if !cloned {
			h, cloned = maps.Clone(h), true
		}
		delete(h, name)
		h[strings.ToLower(name)] = v
	}
	return h
}

// untaken reports whether an error proves that an HTTP/2 server did not take a request.
// net/http has only words for it; they begin the text, so that no server can forge them.
func untaken(err error) bool {
	cause, ok := strings.CutPrefix(err.Error(), "http2: Transport: cannot retry err [")
	if !ok {
		return false
	}
	return strings.HasPrefix(cause, "http2: Transport received Server's graceful shutdown GOAWAY]") ||
		strings.HasPrefix(cause, "stream error: ") && strings.Contains(cause, "; REFUSED_STREAM; received from peer]")
}
