package lambdahttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// answer is the handler's http.ResponseWriter.
type answer struct {
	method string
	post   func(*stream) // sends the stream while it is written; returns when it has ended

	header http.Header // the handler's; read once, at WriteHeader

	mu     sync.Mutex // guards what follows
	status int        // 0: not begun
	pipe   *io.PipeWriter
	posted chan struct{} // closed when post returned
	filled bool          // the body has a byte
}

func newAnswer(method string, post func(*stream)) *answer {
	return &answer{method: method, post: post, header: http.Header{}}
}

func (a *answer) Header() http.Header { return a.header }

// WriteHeader begins the answer: the prelude leaves now. 1xx are not answers and are
// dropped; the platform could not pass them on.
func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(status)
}

func (a *answer) begin(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %d", status)) // as net/http does
	}
	if status < 200 || a.status != 0 {
		return
	}
	a.status = status
	r, w := io.Pipe()
	s := &stream{
		begin: prelude(status, a.header), pipe: r,
		trailer: http.Header{trailerErrorType: nil, trailerErrorBody: nil}, // announced ahead, filled at the end
	}
	a.pipe, a.posted = w, make(chan struct{})
	go func() {
		defer close(a.posted)
		a.post(s)
	}()
}

// Write sends p at once. It returns ErrStopped when the platform takes no more.
func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status == 0 {
		if _, told := a.header["Content-Type"]; !told && len(p) > 0 && a.header.Get("Content-Encoding") == "" {
			a.header.Set("Content-Type", http.DetectContentType(p))
		}
		a.begin(http.StatusOK)
	}
	switch {
	case a.status == http.StatusNoContent || a.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case a.method == http.MethodHead:
		return len(p), nil
	}
	n, err := a.pipe.Write(p)
	a.filled = a.filled || n > 0
	return n, err
}

// FlushError has nothing to flush, but as net/http does it begins the answer.
func (a *answer) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status == 0 {
		a.begin(http.StatusOK)
	}
	return nil
}

// Flush is FlushError for those who ask for an http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// refuse answers 500 if nothing was answered yet. Both families of clients know this shape
// of an error.
func (a *answer) refuse(message string) bool {
	a.mu.Lock()
	begun := a.status != 0
	a.mu.Unlock()
	if begun {
		return false
	}
	body, _ := json.Marshal(map[string]any{
		"type": "error", "error": map[string]string{"type": "api_error", "message": message},
	})
	clear(a.header)
	a.header.Set("Content-Type", "application/json")
	a.header.Set("X-Holdfast-Error", "internal")
	a.WriteHeader(http.StatusInternalServerError)
	_, _ = a.Write(body) // a failure was logged by who posts
	return true
}

// finish ends the answer well and waits until it is delivered.
func (a *answer) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.filled {
		// A Function URL may keep the client waiting until the function's timeout when a
		// stream has no byte after the prelude (aws/aws-lambda-go#596,
		// aws/aws-lambda-nodejs-runtime-interface-client#95). A line break means nothing
		// in JSON or text, and where no body is allowed HTTP drops it.
		_, _ = a.pipe.Write([]byte{'\n'})
	}
	_ = a.pipe.Close()
	<-a.posted
}

// abort ends an answer that began as an error. It is false if none began.
func (a *answer) abort(f fault) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status == 0 {
		return false
	}
	_ = a.pipe.CloseWithError(f)
	<-a.posted
	return true
}

// stream is an answer as it is read by the client of the Runtime API: the prelude, then
// what comes through the pipe. An error in the pipe becomes the trailers.
type stream struct {
	begin   []byte
	pipe    *io.PipeReader
	trailer http.Header
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.begin) > 0 {
		n := copy(p, s.begin)
		s.begin = s.begin[n:]
		return n, nil
	}
	n, err := s.pipe.Read(p)
	var f fault
	if errors.As(err, &f) {
		f.trailer(s.trailer)
		err = io.EOF
	}
	return n, err
}

// close makes writes fail with err from now on.
func (s *stream) close(err error) { _ = s.pipe.CloseWithError(err) }

// prelude renders status and headers, and the eight NUL bytes that end them.
func prelude(status int, h http.Header) []byte {
	p := struct {
		StatusCode int               `json:"statusCode"`
		Headers    map[string]string `json:"headers,omitempty"`
		Cookies    []string          `json:"cookies,omitempty"`
	}{StatusCode: status, Headers: make(map[string]string, len(h))}
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		if len(values) == 0 || !isToken(name) || ofTheConnection(name) {
			continue
		}
		clean := make([]string, len(values))
		for i, v := range values {
			clean[i] = cleanValue(v)
		}
		if name == "Set-Cookie" { // joining would make one cookie of them
			p.Cookies = append(p.Cookies, clean...)
			continue
		}
		p.Headers[name] = strings.Join(clean, ", ")
	}
	b, _ := json.Marshal(p) // strings and a number
	return append(b, make([]byte, 8)...)
}

// ofTheConnection reports headers that are the platform's to set, or that it refuses.
func ofTheConnection(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	// What another gateway made of such a header. Sent by us, it fails the whole answer.
	return strings.HasPrefix(name, "X-Amzn-Remapped-")
}

// isToken reports whether a name may name a header (RFC 9110, section 5.6.2). One that may
// not would fail the whole answer.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// cleanValue puts a space in the place of each control character, as net/http does with
// line breaks.
func cleanValue(v string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, v), " \t")
}
