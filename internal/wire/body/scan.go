package body

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// maxDepth is how deep values may nest: encoding/json's own limit.
const maxDepth = 10000

// SyntaxError says why a body is not a JSON object. Its text is for a sentence that says
// that it is not.
type SyntaxError struct {
	// Offset is where the fault was found, in bytes from the start of the body; the
	// body's length when it ends too early.
	Offset int
	// Reason is what is wrong there. It quotes at most one character of the body.
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("at byte %d %s", e.Offset, e.Reason)
}

// span is a part of the body: of a string, what is between its quotes, undecoded.
type span struct{ from, to int }

// scanner walks a body. Its scanning methods take the offset they start at and return
// the offset behind what they scanned, or -1 after a fault.
type scanner struct {
	data  []byte
	fault *SyntaxError
	// objects has a bit for each level of nesting inside a skipped value, set where that
	// level is an object.
	objects [maxDepth/64 + 1]uint64
	name    [64]byte // a decoded member name

	found
}

// at is the byte at i, or 0 behind the end: no grammar rule wants a 0.
func (s *scanner) at(i int) byte {
	if i < len(s.data) {
		return s.data[i]
	}
	return 0
}

func (s *scanner) fail(i int, reason string) int {
	s.fault = &SyntaxError{Offset: i, Reason: reason}
	return -1
}

// unexpected is the fault that the byte at i is not what belongs there.
func (s *scanner) unexpected(i int, belongs string) int {
	switch {
	case i >= len(s.data):
		return s.fail(len(s.data), "it ends where "+belongs+" belongs")
	case s.data[i] < ' ' || s.data[i] > '~':
		return s.fail(i, fmt.Sprintf("there is a byte 0x%02x where %s belongs", s.data[i], belongs))
	}
	return s.fail(i, fmt.Sprintf("there is %q where %s belongs", s.data[i], belongs))
}

func (s *scanner) space(i int) int {
	d := s.data
	for i < len(d) && d[i] <= ' ' && (d[i] == ' ' || d[i] == '\n' || d[i] == '\r' || d[i] == '\t') {
		i++
	}
	return i
}

const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// Special marks, by its top bit, the lowest byte of x that cannot stand in a string as
// it is: a quote, a backslash or a control character. Bytes above that one may be marked
// without cause, because the subtractions borrow.
func Special(x uint64) uint64 {
	quote := x ^ ones*'"'
	slash := x ^ ones*'\\'
	return ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
}

// text scans a string from behind its opening quote to behind the closing one, and
// reports whether it has escapes. Bytes that are not UTF-8 are let pass, as
// encoding/json does.
func (s *scanner) text(i int) (end int, escaped bool) {
	d := s.data
	for {
		if i+8 <= len(d) {
			m := Special(binary.LittleEndian.Uint64(d[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) / 8
		} else {
			for i < len(d) && d[i] != '"' && d[i] != '\\' && d[i] >= ' ' {
				i++
			}
			if i == len(d) {
				return s.fail(i, "it ends inside a string"), escaped
			}
		}
		switch d[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			// Escapes come in rows: the end of a line, and the next one's indentation.
			for i+1 < len(d) && d[i] == '\\' && shortEscapes[d[i+1]] {
				i += 2
			}
			escaped = true
			if s.at(i) == '\\' {
				if i = s.longEscape(i + 1); i < 0 {
					return i, escaped
				}
			}
		default:
			return s.fail(i, "there is a control character in a string"), escaped
		}
	}
}

// shortEscapes has the letters of the escapes that are two bytes long.
var shortEscapes = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// longEscape scans an escape from behind its backslash, unless it is a short one.
func (s *scanner) longEscape(i int) int {
	if s.at(i) != 'u' {
		return s.unexpected(i, "the letter of an escape")
	}
	for k := i + 1; k < i+5; k++ {
		if hexDigit(s.at(k)) < 0 {
			return s.unexpected(k, "a hexadecimal digit of an escape")
		}
	}
	return i + 5
}

// scalar scans a number or a literal.
func (s *scanner) scalar(i int) int {
	switch c := s.at(i); {
	case c == '-' || isDigit(c):
		return s.number(i)
	case c == 't':
		return s.literal(i, "true")
	case c == 'f':
		return s.literal(i, "false")
	case c == 'n':
		return s.literal(i, "null")
	}
	return s.unexpected(i, "a value")
}

func (s *scanner) literal(i int, word string) int {
	for k := range len(word) {
		if s.at(i+k) != word[k] {
			return s.unexpected(i+k, "the rest of "+word)
		}
	}
	return i + len(word)
}

func (s *scanner) number(i int) int {
	if s.at(i) == '-' {
		i++
	}
	if s.at(i) == '0' {
		i++
	} else if i = s.digits(i); i < 0 {
		return i
	}
	if s.at(i) == '.' {
		if i = s.digits(i + 1); i < 0 {
			return i
		}
	}
	if c := s.at(i); c == 'e' || c == 'E' {
		i++
		if c := s.at(i); c == '+' || c == '-' {
			i++
		}
		return s.digits(i)
	}
	return i
}

// digits scans one digit or more.
func (s *scanner) digits(i int) int {
	if !isDigit(s.at(i)) {
		return s.unexpected(i, "a digit")
	}
	for isDigit(s.at(i)) {
		i++
	}
	return i
}

// key scans a member's name at i, and on to the value, whose offset it returns. The name
// is decoded; one that is longer than any the wire has may come cut.
func (s *scanner) key(i int) (name []byte, value int) {
	d := s.data
	if s.at(i) != '"' {
		return nil, s.unexpected(i, "a member's name")
	}
	end, escaped := s.text(i + 1)
	if end < 0 {
		return nil, end
	}
	name = d[i+1 : end-1]
	if escaped {
		name = appendText(s.name[:0], name, len(s.name))
	}
	i = s.space(end)
	if s.at(i) != ':' {
		return nil, s.unexpected(i, "a colon")
	}
	i = s.space(i + 1)
	switch string(name) {
	case "encrypted_content":
		s.encrypted = s.encrypted || s.at(i) == '"' && s.at(i+1) != '"'
	case "id":
		s.note(&s.named, i, containers)
		s.note(&s.parts, i, agents)
	case "container", "container_id":
		s.note(&s.named, i, containers)
	case "file_id", "input_file_id", "training_file", "validation_file":
		s.note(&s.named, i, files)
	case "file_ids":
		s.noteAll(&s.named, i, files)
	case "skill_id":
		s.note(&s.named, i, skills)
	case "vector_store_ids", "collection_ids":
		s.noteAll(&s.named, i, vectorStores)
	case "agent", "agent_id":
		s.note(&s.parts, i, agents)
	case "assistant_id":
		s.note(&s.parts, i, assistants)
	case "environment_id":
		s.note(&s.parts, i, environments)
	case "memory_store_id":
		s.note(&s.parts, i, memoryStores)
	case "thread_id":
		s.note(&s.parts, i, threads)
	case "vault_ids":
		s.noteAll(&s.parts, i, vaults)
	}
	return name, i
}

// skip scans a value of any kind that depth containers are around.
func (s *scanner) skip(i, depth int) int {
	switch s.at(i) {
	case '"':
		i, _ = s.text(i + 1)
		return i
	case '{', '[':
		return s.skipContainer(i, depth)
	}
	return s.scalar(i)
}

// skipContainer skips without recursion: the nesting is the client's to choose.
func (s *scanner) skipContainer(i, base int) int {
	depth := base
	for {
		// A value begins at i.
		switch c := s.at(i); c {
		case '{', '[':
			if depth++; depth > maxDepth {
				return s.fail(i, fmt.Sprintf("values nest deeper than %d levels", maxDepth))
			}
			i = s.space(i + 1)
			if c == '{' {
				s.objects[depth/64] |= 1 << (depth % 64)
				if s.at(i) != '}' {
					if _, i = s.key(i); i < 0 {
						return i
					}
					continue
				}
			} else {
				s.objects[depth/64] &^= 1 << (depth % 64)
				if s.at(i) != ']' {
					continue
				}
			}
			i++
			depth--
		case '"':
			i, _ = s.text(i + 1)
		default:
			i = s.scalar(i)
		}
		// It ended at i.
		for {
			if i < 0 || depth == base {
				return i
			}
			i = s.space(i)
			object := s.objects[depth/64]&(1<<(depth%64)) != 0
			c := s.at(i)
			if c == ',' {
				i = s.space(i + 1)
				if object {
					if _, i = s.key(i); i < 0 {
						return i
					}
				}
				break
			}
			if object && c != '}' {
				return s.unexpected(i, "a comma or the end of an object")
			}
			if !object && c != ']' {
				return s.unexpected(i, "a comma or the end of an array")
			}
			i++
			depth--
		}
	}
}

// object scans the object at i, which depth containers are around, and hands each
// member's value to member. Called for shallow objects only, so depth needs no check.
func (s *scanner) object(i, depth int, member func(s *scanner, name []byte, i, depth int) int) int {
	i = s.space(i + 1)
	if s.at(i) == '}' {
		return i + 1
	}
	for {
		name, value := s.key(i)
		if value < 0 {
			return value
		}
		if i = member(s, name, value, depth+1); i < 0 {
			return i
		}
		i = s.space(i)
		switch s.at(i) {
		case ',':
			i = s.space(i + 1)
		case '}':
			return i + 1
		default:
			return s.unexpected(i, "a comma or the end of an object")
		}
	}
}

// array scans the array at i like object, and hands each element to element.
func (s *scanner) array(i, depth int, element func(s *scanner, i, depth int) int) int {
	i = s.space(i + 1)
	if s.at(i) == ']' {
		return i + 1
	}
	for {
		if i = element(s, i, depth+1); i < 0 {
			return i
		}
		i = s.space(i)
		switch s.at(i) {
		case ',':
			i = s.space(i + 1)
		case ']':
			return i + 1
		default:
			return s.unexpected(i, "a comma or the end of an array")
		}
	}
}

// str scans any value; of a string it returns the span, of anything else a zero one.
func (s *scanner) str(i, depth int) (span, int) {
	if s.at(i) != '"' {
		return span{}, s.skip(i, depth)
	}
	end, _ := s.text(i + 1)
	return span{i + 1, end - 1}, end
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// hexDigit is the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
