// Package excerpt reads a JSON document as it passes by in chunks and keeps an excerpt of
// it: the same document, of a bounded size, without what is large.
//
// # What it keeps
//
// Structure, numbers, literals and the beginning of each string. A string is cut after
// MaxText bytes. Once the excerpt is as long as its limit, further elements of arrays and
// further members of objects that are nested deep are left out, and once it is twice as long,
// further members of any; what comes before, and the members that stand beside or behind a
// large value, are there. So an id at the
// beginning and a count at the end of a document are both found, whatever is between.
//
// An excerpt of a valid document is a valid document, also where the document has not ended:
// what is open is closed, and what is half there is left out.
//
// # What it never does
//
// It never judges whether a document is valid: of one that is not, the excerpt is not either.
// It keeps nothing of what passed by except the excerpt.
package excerpt

const (
	// MaxText is how much is kept of a string, in bytes as they are written.
	MaxText = 1 << 10
	// maxScalar bounds a number or literal, in bytes; a longer one is null.
	maxScalar = 64
	// shallow is how deep an object may be nested whose members are kept for longest: a
	// document, its response, the response's usage.
	shallow = 3
	// maxDepth bounds how deep what is kept is nested; what is deeper is null.
	maxDepth = 100
)

// place says where in a document a Reader stands.
type place uint8

const (
	between  place = iota // two tokens
	inText                // a string
	inScalar              // a number or literal
)

// Reader makes an excerpt of one document. Make one with New.
type Reader struct {
	limit int
	out   []byte
	open  []byte // the kept containers that are open, each by its first byte
	in    place

	valued bool // in an object: the name was read, a value follows
	start  int  // where the token begins in out

	escape  bool // in a string: a backslash came
	hex     int  // in a string: digits of an escape that are still to come
	cut     bool // of the string no more is kept
	leaving bool // the element or member is left out
	inside  int  // how many containers of what is left out are open

	// whole is how much of out can stand by itself, once the first closing containers of
	// open are closed.
	whole, closing int
	bad            bool
}

// New returns a Reader whose excerpt is about limit bytes long at most, and never more than
// twice that and a few strings.
func New(limit int) *Reader { return &Reader{limit: limit} }

// Write takes the next bytes of the document. It always takes all, without an error.
func (r *Reader) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && !r.bad {
		switch r.in {
		case inText:
			p = r.text(p)
		case inScalar:
			p = r.scalar(p)
		case between:
			p = r.token(p)
		}
	}
	return n, nil
}

// JSON returns the excerpt of what was read so far; nil where that is no JSON. It is the
// Reader's until the next Write.
func (r *Reader) JSON() []byte {
	if r.bad || r.whole == 0 {
		return nil
	}
	out := r.out[:r.whole:r.whole]
	for i := r.closing - 1; i >= 0; i-- {
		out = append(out, closer(r.open[i]))
	}
	return out
}

func closer(c byte) byte { return c + 2 } // in ASCII the end stands two behind: [ ] and { }

// token takes one byte between two tokens, or what begins one.
func (r *Reader) token(p []byte) []byte {
	switch c := p[0]; c {
	case ' ', '\t', '\r', '\n':
	case ',':
		if r.inside == 0 {
			r.leaving, r.valued = false, false
		}
	case ':':
		if !r.leaving {
			r.out, r.valued = append(r.out, ':'), true
		}
	case '[', '{':
		r.begin(c)
	case ']', '}':
		r.end(c)
	case '"':
		r.in, r.escape, r.hex, r.cut = inText, false, 0, false
		if r.begins(); !r.leaving {
			r.out = append(r.out, '"')
		}
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 't', 'f', 'n':
		r.in = inScalar
		r.begins()
		return p
	default:
		r.bad = true
	}
	return p[1:]
}

// top is the container that r is in; 0 outside of all.
func (r *Reader) top() byte {
	if len(r.open) == 0 {
		return 0
	}
	return r.open[len(r.open)-1]
}

// begins decides on the value or name that begins here, and separates it from the one before.
func (r *Reader) begins() {
	if r.leaving {
		return
	}
	top := r.top()
	switch {
	case top == 0:
		r.bad = len(r.out) > 0 // something is behind the document's end
	case top == '{' && r.valued:
	case len(r.out) > r.limit && (top == '[' || len(r.open) > shallow || len(r.out) > 2*r.limit):
		r.leaving = true
		return
	default:
		if last := r.out[len(r.out)-1]; last != '[' && last != '{' {
			r.out = append(r.out, ',')
		}
	}
	r.start = len(r.out)
}

func (r *Reader) begin(c byte) {
	if r.begins(); r.leaving {
		r.inside++
		return
	}
	if len(r.open) == maxDepth {
		r.out = append(r.out, "null"...)
		r.ended()
		r.leaving, r.inside = true, 1
		return
	}
	r.out, r.open, r.valued = append(r.out, c), append(r.open, c), false
	r.ended()
}

func (r *Reader) end(c byte) {
	if r.inside > 0 {
		r.inside--
		return
	}
	top := r.top()
	if r.bad = top == 0 || closer(top) != c; r.bad {
		return
	}
	r.leaving = false
	r.out, r.open = append(r.out, c), r.open[:len(r.open)-1]
	r.ended()
}

// ended notes that out can stand by itself up to here.
func (r *Reader) ended() { r.whole, r.closing = len(r.out), len(r.open) }

// text takes more of a string.
func (r *Reader) text(p []byte) []byte {
	for i, c := range p {
		switch {
		case r.hex > 0:
			r.hex--
		case r.escape:
			r.escape = false
			if c == 'u' {
				r.hex = 4
			}
		case c == '"':
			r.keep(p[:i])
			r.in = between
			if !r.leaving {
				r.out = append(r.out, '"')
				if r.top() != '{' || r.valued {
					r.ended()
				}
			}
			return p[i+1:]
		default:
			if !r.cut && len(r.out)-r.start+i > MaxText { // here an escape cannot be cut in two
				r.keep(p[:i])
				r.cut = true
			}
			r.escape = c == '\\'
		}
	}
	r.keep(p)
	return nil
}

// keep adds to a string.
func (r *Reader) keep(p []byte) {
	if !r.leaving && !r.cut {
		r.out = append(r.out, p...)
	}
}

// scalar takes more of a number or literal.
func (r *Reader) scalar(p []byte) []byte {
	for i, c := range p {
		switch c {
		case ' ', '\t', '\r', '\n', ',', ':', '[', ']', '{', '}', '"':
			r.keepScalar(p[:i])
			r.in = between
			if !r.leaving {
				if len(r.out)-r.start > maxScalar {
					r.out = append(r.out[:r.start], "null"...)
				}
				r.ended()
			}
			return p[i:]
		}
	}
	r.keepScalar(p)
	return nil
}

// keepScalar adds to a number or literal, to the byte that shows that it is too long.
func (r *Reader) keepScalar(p []byte) {
	if !r.leaving {
		r.out = append(r.out, p[:max(0, min(len(p), maxScalar+1-(len(r.out)-r.start)))]...)
	}
}
