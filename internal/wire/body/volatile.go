package body

import "bytes"

// volatile reports whether a line of system text may read differently in the next turn
// of the same conversation: it names a date, a time of day or an id. To take a steady
// line for volatile costs next to nothing, the other way round costs the conversation
// its account, so the rules are generous. A line is volatile when it has
//
//   - four decimal digits on end: a year, a date without separators, seconds since the epoch;
//   - two numbers with a colon, a slash or a dash between them, as in 10:42 or 4/3/27;
//   - a number beside the name of a month or a day of the week, as in "Mar 4";
//   - seven or more hexadecimal digits on end, a decimal one among them: a UUID, a hash;
//   - sixteen or more letters and digits on end, a digit among them: other sorts of id;
//   - a nonce that Claude Code puts there (see billing).
//
// So a line without a decimal digit is steady, and "at most 3 tools" is too.
func volatile(line []byte) bool {
	if bytes.HasPrefix(line, billing) {
		return true
	}
	i := 0
	for i < len(line) && !isDigit(line[i]) {
		i++
	}
	if i == len(line) {
		return false
	}
	var last word // the word before, and where it ended
	end := -1
	for i = 0; i < len(line); {
		if !isWord(line[i]) {
			i++
			continue
		}
		w := wordAt(line[i:])
		if w.volatile() || w.number && last.named || w.named && last.number {
			return true
		}
		if w.number && last.number && i == end+1 && bytes.IndexByte([]byte(":/-"), line[end]) >= 0 {
			return true
		}
		i += w.length
		last, end = w, i
	}
	return false
}

// word is a run of ASCII letters and digits.
type word struct {
	length, digits int
	run            int  // the longest run of decimal digits
	hexRun         bool // seven or more hexadecimal digits on end, a decimal one among them
	number         bool // begins with a digit: 4, 4th, 10am
	named          bool // is the name of a month or of a day of the week
}

func (w word) volatile() bool { return w.run >= 4 || w.hexRun || w.length >= 16 && w.digits > 0 }

func wordAt(b []byte) word {
	var w word
	run, hex, hexDigits := 0, 0, 0
	for w.length < len(b) && isWord(b[w.length]) {
		c := b[w.length]
		w.length++
		if hexDigit(c) < 0 {
			run, hex, hexDigits = 0, 0, 0
			continue
		}
		hex++
		if isDigit(c) {
			w.digits++
			hexDigits++
			run++
		} else {
			run = 0
		}
		w.run = max(w.run, run)
		w.hexRun = w.hexRun || hex >= 7 && hexDigits > 0
	}
	w.number = isDigit(b[0])
	w.named = !w.number && calendarName(b[:w.length])
	return w
}

func isWord(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

var calendarNames = [...]string{
	"january", "february", "march", "april", "may", "june", "july", "august", "september",
	"october", "november", "december",
	"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
}

// calendarName reports whether b is a month or a day of the week, in full or by its
// first three letters or four.
func calendarName(b []byte) bool {
	if len(b) < 3 {
		return false
	}
	for _, name := range calendarNames {
		if len(b) <= len(name) && (len(b) <= 4 || len(b) == len(name)) && bytes.EqualFold(b, []byte(name[:len(b)])) {
			return true
		}
	}
	return false
}
