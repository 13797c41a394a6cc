package lambdahttp

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	requestbody "holdfast/internal/wire/body"
)

var (
	errUnterminated = errors.New("a string does not end")
	errEscape       = errors.New("a string has an escape that JSON does not know")
	errControl      = errors.New("a string has a bare control character")
)

// unescape decodes the JSON string whose content begins at b[from], in place: the decoded
// text is never longer than the escaped one. It returns the text and where the string
// ended, at its closing quote. Half a surrogate pair becomes U+FFFD, as encoding/json has
// it; bytes that are not UTF-8 stay as they are.
func unescape(b []byte, from int) (text []byte, end int, err error) {
	r, w := from, from // where to read and to write; w never passes r
	for {
		if r-w >= 8 && r+8 <= len(b) {
			// Eight bytes at once, since those written are not ones still to be read. What is
			// written behind a byte that does not stand for itself is written over later.
			x := binary.LittleEndian.Uint64(b[r:])
			binary.LittleEndian.PutUint64(b[w:], x)
			m := requestbody.Special(x)
			if m == 0 {
				r, w = r+8, w+8
				continue
			}
			n := bits.TrailingZeros64(m) / 8
			r, w = r+n, w+n
		} else {
			for r < len(b) && !stops[b[r]] {
				b[w] = b[r]
				r, w = r+1, w+1
			}
			if r == len(b) {
				return nil, 0, errUnterminated
			}
		}
		switch c := b[r]; {
		case c == '"':
			return b[from:w], r, nil
		case c != '\\':
			return nil, 0, errControl
		case r+1 < len(b) && short[b[r+1]] != 0:
			b[w] = short[b[r+1]]
			r, w = r+2, w+1
		default:
			char, n, err := codePoint(b[r:])
			if err != nil {
				return nil, 0, err
			}
			r, w = r+n, w+utf8.EncodeRune(b[w:r+n], char)
		}
	}
}

// stops are the bytes that do not stand for themselves.
var stops = func() (s [256]bool) {
	for c := range ' ' {
		s[c] = true
	}
	s['"'], s['\\'] = true, true
	return s
}()

// short are the escapes of two characters.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// codePoint decodes the escape \uXXXX, or the pair of them, at the beginning of b. It
// returns how many bytes that was.
func codePoint(b []byte) (char rune, n int, err error) {
	if len(b) < 2 {
		return 0, 0, errUnterminated
	}
	char, ok := hex4(b[2:])
	if b[1] != 'u' || !ok {
		return 0, 0, errEscape
	}
	if !utf16.IsSurrogate(char) {
		return char, 6, nil
	}
	if len(b) >= 8 && b[6] == '\\' && b[7] == 'u' {
		if low, ok := hex4(b[8:]); ok {
			if pair := utf16.DecodeRune(char, low); pair != utf8.RuneError {
				return pair, 12, nil
			}
		}
	}
	return utf8.RuneError, 6, nil
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
