// Package hidden knows the secrets that this process holds by their value, so that they are
// taken out of whatever it logs, keeps or reports, however they look. An upstream may repeat
// a key in an error's code, in a header's name or in a malformed head, and a key that the
// owner made up himself has no form by which it could be recognized.
//
// Remember takes what package credential opens or seals; Clean and CleanLine take it out of
// a text, also where the text was cut within it, is spelled in other letters, or has it as
// JSON writes it. What is shorter than eight bytes is no secret here: it would be found in
// ordinary words. The package keeps nothing but the secrets, in memory, and gives none out.
package hidden

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// shortest is the least that is recognized, in bytes.
	shortest = 8
	// most bounds how many secrets are remembered. Logins are renewed every few hours; what
	// nobody has opened or sealed for the longest time is forgotten first.
	most = 4096
)

// mark stands in the place of a secret.
const mark = "[secret]"

// known are the secrets of the process. Readers take the index as it is; whoever adds makes
// a new one.
var known struct {
	mu    sync.Mutex
	order []string // in small letters; what was remembered longest ago is first
	index atomic.Pointer[index]
}

// index finds secrets by how they begin.
type index struct {
	// firsts are the first two bytes of all secrets.
	firsts [1 << 16 / 64]uint64
	begin  map[[shortest]byte][]string
}

// Remember takes secrets that the process holds; empty and short ones are passed over. To
// remember one again keeps it from being forgotten before others.
func Remember(secrets ...string) {
	known.mu.Lock()
	defer known.mu.Unlock()
	added := false
	for _, s := range secrets {
		if len(s) < shortest {
			continue
		}
		for _, spelling := range []string{s, quoted.Replace(s)} {
			added = remember(string(small([]byte(spelling)))) || added
		}
	}
	if added {
		known.order = known.order[max(0, len(known.order)-most):]
		known.index.Store(indexOf(known.order))
	}
}

// quoted writes a secret as it stands in JSON.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// small is a text in small letters, as far as they are ASCII: of the same length.
func small(text []byte) []byte {
	lower := bytes.Clone(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return lower
}

// remember puts a spelling of a secret last in the order, and reports whether it is new there.
func remember(s string) (added bool) {
	i := slices.Index(known.order, s)
	if i >= 0 {
		known.order = slices.Delete(known.order, i, i+1)
	}
	known.order = append(known.order, s)
	return i < 0
}

func indexOf(secrets []string) *index {
	next := &index{begin: map[[shortest]byte][]string{}}
	for _, each := range secrets {
		first := uint16(each[0])<<8 | uint16(each[1])
		next.firsts[first/64] |= 1 << (first % 64)
		b := [shortest]byte([]byte(each[:shortest]))
		next.begin[b] = append(next.begin[b], each)
	}
	return next
}

// Clean returns a text without the secrets that are remembered.
func Clean(text string) string {
	if len(text) < shortest {
		return text
	}
	return string(CleanLine([]byte(text)))
}

// CleanLine is Clean for a line of bytes, which it may return as it is and never changes.
func CleanLine(line []byte) []byte {
	i := known.index.Load()
	if i == nil {
		return line
	}
	lower := small(line)
	at, end := i.next(lower, 0)
	if at < 0 {
		return line
	}
	var out []byte
	from := 0
	for at >= 0 {
		out = append(append(out, line[from:at]...), mark...)
		from = end
		at, end = i.next(lower, from)
	}
	return append(out, line[from:]...)
}

// next finds the first secret in lower from an offset on, or as much of it as is there; at is
// below 0 where none exists.
func (i *index) next(lower []byte, from int) (at, end int) {
	for at = from; at+shortest <= len(lower); at++ {
		first := uint16(lower[at])<<8 | uint16(lower[at+1])
		if i.firsts[first/64]&(1<<(first%64)) == 0 {
			continue
		}
		longest := 0
		for _, s := range i.begin[[shortest]byte(lower[at:at+shortest])] {
			n := shared(s, lower[at:])
			if n == len(s) || n >= cut {
				longest = max(longest, n)
			}
		}
		if longest > 0 {
			return at, at + longest
		}
	}
	return -1, -1
}

// cut is how much of a secret's beginning is taken for it where the rest is missing. Fewer
// bytes would be found in words that only begin alike.
const cut = 12

// shared is how many bytes a secret and a text have in common at their beginning.
func shared(s string, text []byte) int {
	n := 0
	for n < len(s) && n < len(text) && s[n] == text[n] {
		n++
	}
	return n
}
