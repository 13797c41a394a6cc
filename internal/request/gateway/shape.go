package gateway

import (
	"bytes"
	"slices"
)

// shape is what the body of an answer is, by its beginning and whatever its headers call it.
type shape int

const (
	// undecided: nothing came yet, or blanks only.
	undecided shape = iota
	// document: JSON, an object or a list.
	document
	// stream: events.
	stream
	// neither: no provider answers inference so. Something between us and it did.
	neither
)

// fields begin the lines of a stream of events (WHATWG HTML, section 9.2.6), a colon aside,
// which begins a comment.
var fields = []string{"event", "data", "id", "retry"}

const (
	blanks        = " \t\r\n"
	byteOrderMark = "\ufeff"
)

// beginning finds the shape of a body from its plain bytes, however they come.
type beginning struct {
	text   [8]byte // what came behind blanks; longer than a field's name, or than a mark
	length int
	marked bool // a byte order mark came
}

// take takes the next bytes.
func (b *beginning) take(p []byte) shape {
	for _, c := range p {
		if b.length == 0 && bytes.IndexByte([]byte(blanks), c) >= 0 {
			continue
		}
		b.text[b.length] = c
		b.length++
		if s := b.shape(b.text[:b.length]); s != undecided {
			return s
		}
	}
	return undecided
}

func (b *beginning) shape(text []byte) shape {
	switch text[0] {
	case '{', '[':
		return document
	case ':':
		return stream
	}
	if !b.marked && bytes.HasPrefix([]byte(byteOrderMark), text) {
		if len(text) == len(byteOrderMark) {
			b.marked, b.length = true, 0
		}
		return undecided
	}
	known := slices.ContainsFunc(fields, func(f string) bool { return bytes.HasPrefix([]byte(f), text) })
	ends := slices.Contains(fields, string(text[:len(text)-1])) && bytes.IndexByte([]byte(":\r\n"), text[len(text)-1]) >= 0
	switch {
	case ends:
		return stream
	case known:
		return undecided
	}
	return neither
}

// tellsError reports whether JSON may be that of an error: somewhere in it "error" stands for
// something. It is right about all that are, and spares the others being read.
func tellsError(b []byte) bool {
	const name = `"error"`
	for {
		i := bytes.Index(b, []byte(name))
		if i < 0 {
			return false
		}
		b = bytes.TrimLeft(b[i+len(name):], blanks)
		value, named := bytes.CutPrefix(b, []byte(":"))
		if !named || !bytes.HasPrefix(bytes.TrimLeft(value, blanks), []byte("null")) {
			return true
		}
	}
}
