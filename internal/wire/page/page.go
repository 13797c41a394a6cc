// Package page reads a page of a listing as it passes by in chunks. It keeps the cursors to the
// next and the previous page: some members of the document, and the ids of the first and the
// last object in its data. A page has up to ten thousand objects, so nothing else is kept.
//
// It never judges whether a document is valid, and does not know what a member means: the
// provider's package does.
package page

import "encoding/json"

// maxText bounds a string that is kept, in bytes as the document writes them. A longer one is
// left out: it is neither an id nor a cursor.
const maxText = 2 << 10

// data is the member with the objects, and id the member of each that names it.
const (
	data = "data"
	id   = "id"
)

// Reader reads one page. Make one with New.
type Reader struct {
	members     map[string]string // those wanted, as far as they were read
	first, last string

	depth  int     // of the containers that are open
	arrays [3]bool // whether the outer ones are arrays, by their depth
	names  [3]string
	valued bool // in an object: the name was read, a value follows

	inText, escape, long bool
	text                 []byte
	ended                bool
}

// New returns a Reader that keeps the members of the document with these names.
func New(members ...string) *Reader {
	r := &Reader{members: map[string]string{}}
	for _, name := range members {
		r.members[name] = ""
	}
	return r
}

// Write takes the next bytes of the page. It always takes all, without an error.
func (r *Reader) Write(p []byte) (int, error) {
	for _, c := range p {
		if r.inText {
			r.inside(c)
			continue
		}
		switch c {
		case '"':
			r.inText, r.long, r.text = true, false, append(r.text[:0], '"')
		case ':':
			r.valued = true
		case ',':
			r.valued = false
		case '{', '[':
			if r.depth < len(r.arrays) {
				r.arrays[r.depth], r.names[r.depth] = c == '[', ""
			}
			r.depth++
			r.valued = false
		case '}', ']':
			r.depth = max(0, r.depth-1) // of what is no document nothing is kept
			r.valued = false
			r.ended = r.ended || r.depth == 0
		}
	}
	return len(p), nil
}

// inside takes a byte of a string.
func (r *Reader) inside(c byte) {
	if r.long = r.long || len(r.text) == maxText; !r.long {
		r.text = append(r.text, c)
	}
	switch {
	case r.escape:
		r.escape = false
	case c == '\\':
		r.escape = true
	case c == '"':
		r.inText = false
		r.string()
	}
}

// string takes a string that is at its end.
func (r *Reader) string() {
	level := r.depth - 1
	if level < 0 || level >= len(r.arrays) || r.arrays[level] {
		return
	}
	var text string
	if !r.long {
		_ = json.Unmarshal(r.text, &text) // what cannot be read is empty
	}
	switch {
	case !r.valued:
		r.names[level] = text
	case level == 0:
		if _, wanted := r.members[r.names[0]]; wanted {
			r.members[r.names[0]] = text
		}
	case level == 2 && r.names[0] == data && r.arrays[1] && r.names[2] == id && text != "":
		if r.first == "" {
			r.first = text
		}
		r.last = text
	}
}

// Ended reports whether the document is at its end.
func (r *Reader) Ended() bool { return r.ended }

// Member is the string that a wanted member of the document has; empty when it has none.
func (r *Reader) Member(name string) string { return r.members[name] }

// First is the id of the first object in the page's data; empty when none exists.
func (r *Reader) First() string { return r.first }

// Last is the id of the last object in the page's data; empty when none exists.
func (r *Reader) Last() string { return r.last }
