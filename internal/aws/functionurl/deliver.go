package functionurl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answer is what a function says to an event. Whoever delivers it reads body to its end,
// or as far as it wants, and then calls end.
type answer struct {
	failed  bool // the function gave no answer
	framed  bool // body begins with a prelude
	body    io.Reader
	trailer func() http.Header // known when body has ended
	ended   chan bool          // has room for one: whether the answer was taken whole
}

// end lets the function go on, or makes its writes fail. Only the first call counts.
func (a *answer) end(whole bool) {
	select {
	case a.ended <- whole:
	default:
	}
}

// maxPrelude bounds the search for the end of a prelude.
const maxPrelude = 1 << 20

// deliver passes an answer on to the client as it comes. It breaks off the client's
// connection where the answer does not end well.
func (f *Front) deliver(w http.ResponseWriter, a *answer) {
	if a.failed {
		f.refuse(w, errFailed)
		return
	}
	rest := []byte(nil)
	if a.framed {
		status, header, begin, err := readPrelude(a.body)
		if err != nil {
			f.refuse(w, err)
			return
		}
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		rest = begin
	} else { // what a function sends that doesn't know of Function URLs
		w.Header().Set("Content-Type", "application/octet-stream")
		w.WriteHeader(http.StatusOK)
	}
	if err := f.pass(w, rest, a.body); err != nil {
		f.log.Error("answer cut", "request", w.Header().Get("X-Amzn-Requestid"), "error", err)
		panic(http.ErrAbortHandler)
	}
	if kind := a.trailer().Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		f.log.Error("answer ended as an error", "request", w.Header().Get("X-Amzn-Requestid"), "type", kind)
		panic(http.ErrAbortHandler)
	}
}

// pass copies a body, each piece as it comes. Its error is the function's: a client that
// left does not end the function.
func (f *Front) pass(w http.ResponseWriter, begin []byte, body io.Reader) error {
	control := http.NewResponseController(w)
	left := false // nobody takes more of it
	send := func(p []byte) {
		if left {
			return
		}
		// An answer that may have no body, such as a 204, gets none: that is an error too.
		if _, err := w.Write(p); err != nil {
			left = true
			return
		}
		left = control.Flush() != nil
	}
	send(begin) // also when empty: status and headers leave now
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			send(buf[:n])
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// readPrelude reads a body up to the end of its prelude, and returns what it read of the
// body behind it.
func readPrelude(body io.Reader) (status int, header http.Header, rest []byte, err error) {
	var read []byte
	buf := make([]byte, 4<<10)
	for {
		n, err := body.Read(buf)
		read = append(read, buf[:n]...)
		if head, rest, found := bytes.Cut(read, make([]byte, 8)); found {
			status, header, err := parsePrelude(head)
			return status, header, rest, err
		}
		if err != nil {
			return 0, nil, nil, errors.Join(errUnframed, err)
		}
		if len(read) > maxPrelude {
			return 0, nil, nil, errUnframed
		}
	}
}

func parsePrelude(head []byte) (status int, header http.Header, err error) {
	var p struct {
		StatusCode int               `json:"statusCode"`
		Headers    map[string]string `json:"headers"`
		Cookies    []string          `json:"cookies"`
	}
	if err := json.Unmarshal(head, &p); err != nil {
		return 0, nil, errors.Join(errUnframed, err)
	}
	if p.StatusCode == 0 {
		p.StatusCode = http.StatusOK
	}
	if p.StatusCode < 200 || p.StatusCode > 599 {
		return 0, nil, fmt.Errorf("%w: status %d", errUnframed, p.StatusCode)
	}
	header = make(http.Header, len(p.Headers)+1)
	for name, value := range p.Headers {
		name = http.CanonicalHeaderKey(name)
		switch {
		case strings.HasPrefix(name, "X-Amzn-Remapped-"):
			return 0, nil, fmt.Errorf("%w: a header %s", errUnframed, name)
		case remapped[name]:
			name = "X-Amzn-Remapped-" + name
		}
		header[name] = []string{value}
	}
	if len(p.Cookies) > 0 {
		header["Set-Cookie"] = p.Cookies
	}
	return p.StatusCode, header, nil
}

// remapped are the headers that the platform does not let a function set.
var remapped = map[string]bool{
	"Connection": true, "Content-Length": true, "Date": true, "Keep-Alive": true, "Server": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}
