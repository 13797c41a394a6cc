package lambdahttp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/aws/aws-lambda-go/events"
)

// newRequest makes the request that an event describes. The body lies in the event's own
// bytes, which are changed: nothing may use them until the body is released.
func newRequest(event []byte) (*http.Request, *body, error) {
	e, content, err := decode(event)
	if err != nil {
		return nil, nil, err
	}
	about := e.RequestContext.HTTP
	if about.Method == "" {
		return nil, nil, errors.New("the event is no request to a Function URL: it names no method")
	}
	target := e.RawPath
	if target == "" {
		target = "/"
	}
	if e.RawQueryString != "" {
		target += "?" + e.RawQueryString
	}
	if target[0] != '/' {
		return nil, nil, errors.New("the event's path does not begin with a slash")
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, nil, errors.New("the event's path is not one of a URL")
	}
	r := &http.Request{
		Method: about.Method, URL: u, RequestURI: target,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(e.Headers)), Host: e.RequestContext.DomainName,
		RemoteAddr: net.JoinHostPort(about.SourceIP, "0"),
		Body:       http.NoBody, ContentLength: int64(len(content)),
	}
	for name, value := range e.Headers {
		r.Header.Set(name, value)
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host") // as net/http's server has it
	}
	if len(e.Cookies) > 0 {
		r.Header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	b := &body{rest: content}
	if len(content) > 0 {
		r.Body = b
	}
	return r, b, nil
}

// decode reads an event and its body, decoded in place. The body is most of an event, and
// reading it as a JSON string like any other would cost several times as much, in time and
// in copies.
func decode(event []byte) (e events.LambdaFunctionURLRequest, content []byte, err error) {
	from, found := bodyString(event)
	if found {
		text, to, err := unescape(event, from)
		if err != nil {
			return e, nil, fmt.Errorf("read the event's body: %w", err)
		}
		content = text
		rest := make([]byte, 0, len(event)-(to-from)+len(elsewhere))
		event = append(append(append(rest, event[:from]...), elsewhere...), event[to:]...)
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return e, nil, fmt.Errorf("read the event: %w", err)
	}
	if !found {
		content = []byte(e.Body)
	} else if e.Body != elsewhere {
		return e, nil, errors.New("the event has two bodies")
	}
	if e.IsBase64Encoded {
		// Each quantum is written where it was read, or before.
		n, err := base64.StdEncoding.Decode(content, content)
		if err != nil {
			return e, nil, fmt.Errorf("read the event's body: %w", err)
		}
		content = content[:n]
	}
	return e, content, nil
}

// elsewhere takes the body's place where the rest of an event is read.
const elsewhere = "(read elsewhere)"

// bodyString finds the string that is the value of the event's own member "body"; from is
// its first byte after the quote. In bytes that are no JSON it finds nothing, or anything.
func bodyString(b []byte) (from int, found bool) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := stringEnd(b, i+1)
			if end < 0 {
				return 0, false
			}
			name := b[i+1 : end]
			i = end
			if depth != 1 || string(name) != "body" {
				continue
			}
			v := skipSpace(b, i+1)
			if v == len(b) || b[v] != ':' {
				continue // it was a value
			}
			v = skipSpace(b, v+1)
			if v < len(b) && b[v] == '"' {
				return v + 1, true
			}
		}
	}
	return 0, false
}

// stringEnd returns where the string whose content begins at i ends: at its closing quote.
func stringEnd(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// body is a request's body within the bytes of its event.
type body struct {
	mu     sync.Mutex // a transport may still read after the handler returned
	rest   []byte
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *body) Close() error {
	b.release()
	return nil
}

// release makes sure that nobody reads the event's bytes from now on.
func (b *body) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.rest = true, nil
}
