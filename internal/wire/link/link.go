// Package link changes one member of a JSON document as it passes by: a link, which a client
// would follow with its secret to another host.
//
// It holds back the value of that member alone, up to a bounded length. Every other byte passes
// on as it comes. It never judges whether a document is valid.
package link

import (
	"encoding/json"
	"io"
	"net/url"
	"strings"
)

// maxText bounds a string that is looked at, in bytes as they are written. A longer one is
// passed on as it is.
const maxText = 4 << 10

// Origin is where links must lead: a scheme, a host, and a prefix of every path there.
type Origin struct{ Scheme, Host, Prefix string }

// Lead returns the link to the same path at the origin, where text is a link to a path below
// under; it returns any other text unchanged. A link without a host gets the prefix and no host.
func (o Origin) Lead(text, under string) string {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.User != nil || !strings.HasPrefix(u.EscapedPath(), under+"/") {
		return text
	}
	switch {
	case u.Host != "" && (u.Scheme == "https" || u.Scheme == "http"):
		u.Scheme, u.Host = o.Scheme, o.Host
	case u.Host != "" || u.Scheme != "":
		return text
	}
	u.Path, u.RawPath = o.Prefix+u.Path, o.Prefix+u.EscapedPath()
	return u.String()
}

// Reader is a document in which a member is changed. Make one with New.
type Reader struct {
	src    io.Reader
	name   string // the member's, as JSON writes it
	change func(string) string

	in   [4 << 10]byte
	out  []byte // not yet read
	left []byte // of out
	err  error  // of src

	inText, escape, long bool
	text                 []byte // of the string that is read, from its quotation mark
	named                bool   // the last token was the member's name
	valued               bool   // and a colon came
	held                 bool   // the string is the member's value
}

// New returns a reader of src. In every member called name, at whatever depth, whose value is a
// string, change(value) stands in the place of the value.
func New(src io.Reader, name string, change func(string) string) *Reader {
	return &Reader{src: src, name: `"` + name + `"`, change: change}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.out = r.out[:0]
		n, err := r.src.Read(r.in[:])
		for _, c := range r.in[:n] {
			r.take(c)
		}
		if r.err = err; err != nil && r.held { // the document broke off
			r.out, r.held = append(r.out, r.text...), false
		}
		r.left = r.out
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// take takes one byte of the document.
func (r *Reader) take(c byte) {
	if r.inText {
		r.inside(c)
		return
	}
	switch c {
	case '"':
		r.inText, r.long, r.escape = true, false, false
		r.text, r.held = append(r.text[:0], c), r.valued
		r.named, r.valued = false, false
		if r.held {
			return
		}
	case ':':
		r.named, r.valued = false, r.named
	case ' ', '\t', '\r', '\n':
	default:
		r.named, r.valued = false, false
	}
	r.out = append(r.out, c)
}

// inside takes a byte of a string.
func (r *Reader) inside(c byte) {
	if len(r.text) == maxText && !r.long {
		r.long = true
		if r.held {
			r.out, r.held = append(r.out, r.text...), false
		}
	}
	if !r.long {
		r.text = append(r.text, c)
	}
	if !r.held {
		r.out = append(r.out, c)
	}
	switch {
	case r.escape:
		r.escape = false
	case c == '\\':
		r.escape = true
	case c == '"':
		r.inText = false
		r.end()
	}
}

// end is the end of a string.
func (r *Reader) end() {
	if !r.held {
		r.named = !r.long && string(r.text) == r.name
		return
	}
	r.held = false
	var text string
	if json.Unmarshal(r.text, &text) == nil {
		if changed := r.change(text); changed != text {
			r.text, _ = json.Marshal(changed) // strings always encode
		}
	}
	r.out = append(r.out, r.text...)
}
