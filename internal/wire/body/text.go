package body

import (
	"bytes"
	"crypto/sha256"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxText bounds FirstUser, in bytes.
	maxText = 4096
	// maxUserRead and maxSystemRead bound what is decoded of a user text and of all
	// system text, in bytes. What is behind cannot tell conversations apart.
	maxUserRead, maxSystemRead = 32 << 10, 128 << 10
)

// appendText appends what the inside of a valid JSON string stands for, as encoding/json
// decodes it: a surrogate without its partner and a byte that is not UTF-8 become U+FFFD.
// It appends max bytes at most and does not cut a character.
func appendText(dst, raw []byte, max int) []byte {
	end := len(dst) + max
	for len(raw) > 0 {
		var r rune
		switch c := raw[0]; {
		case c == '\\':
			r, raw = unescape(raw)
		case c < utf8.RuneSelf:
			n := 1
			for n < len(raw) && raw[n] != '\\' && raw[n] < utf8.RuneSelf {
				n++
			}
			if room := end - len(dst); n > room {
				return append(dst, raw[:room]...)
			}
			dst, raw = append(dst, raw[:n]...), raw[n:]
			continue
		default:
			var n int
			r, n = utf8.DecodeRune(raw)
			raw = raw[n:]
		}
		if len(dst)+utf8.RuneLen(r) > end {
			return dst
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// unescape takes an escape off the beginning of raw.
func unescape(raw []byte) (rune, []byte) {
	switch c := raw[1]; c {
	case 'b':
		return '\b', raw[2:]
	case 'f':
		return '\f', raw[2:]
	case 'n':
		return '\n', raw[2:]
	case 'r':
		return '\r', raw[2:]
	case 't':
		return '\t', raw[2:]
	case 'u':
		r := unit(raw)
		raw = raw[6:]
		if !utf16.IsSurrogate(r) {
			return r, raw
		}
		if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
			if pair := utf16.DecodeRune(r, unit(raw)); pair != utf8.RuneError {
				return pair, raw[6:]
			}
		}
		return utf8.RuneError, raw
	default:
		return rune(c), raw[2:]
	}
}

// unit is the UTF-16 unit of the \uXXXX that raw begins with.
func unit(raw []byte) rune {
	var r rune
	for _, c := range raw[2:6] {
		r = r<<4 | rune(hexDigit(c))
	}
	return r
}

var (
	reminderStart = []byte("<system-reminder>")
	reminderEnd   = []byte("</system-reminder>")
)

// appendUserText appends the user's own words of the message whose texts are in
// s.content.
func (s *scanner) appendUserText(dst []byte) []byte {
	for _, p := range s.content {
		s.scratch = appendText(s.scratch[:0], s.data[p.from:p.to], maxUserRead)
		s.own = appendOwn(s.own[:0], s.scratch)
		own := bytes.TrimSpace(s.own)
		if len(own) == 0 {
			continue
		}
		if len(dst) > 0 {
			dst = append(dst, '\n')
		}
		if dst = append(dst, own...); len(dst) > maxText {
			n := maxText
			for !utf8.RuneStart(dst[n]) {
				n--
			}
			return dst[:n]
		}
	}
	return dst
}

// appendOwn appends text without the reminders in it. One that does not end takes the
// rest of the text along.
func appendOwn(dst, text []byte) []byte {
	for {
		own, rest, reminded := bytes.Cut(text, reminderStart)
		dst = append(dst, own...)
		if !reminded {
			return dst
		}
		_, text, _ = bytes.Cut(rest, reminderEnd)
	}
}

// billing begins Claude Code's first system block. Some releases change it on every
// request; Anthropic leaves such a first block out of the prompt.
var billing = []byte("x-anthropic-billing-header:")

// lineHash hashes system text by its lines: those that stay the same from turn to turn.
type lineHash struct {
	buf   []byte // the lines to hash, each with a newline; behind them the text being read
	kept  int    // how much of buf is lines to hash
	read  int    // how much text was decoded, in bytes
	begun bool   // the first text was read
}

// text takes the next text, the inside of a JSON string.
func (h *lineHash) text(raw []byte) {
	h.buf = appendText(h.buf[:h.kept], raw, maxSystemRead-h.read)
	text := h.buf[h.kept:]
	h.read += len(text)
	first := !h.begun
	h.begun = true
	if first && bytes.HasPrefix(text, billing) {
		return
	}
	if maxSystemRead-h.read < utf8.UTFMax {
		// The text may be cut here. Where in its line depends on the lines before, so
		// the line is left out.
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		if line = bytes.TrimSpace(line); len(line) == 0 || volatile(line) {
			continue
		}
		// In place: a line moves down or stays, and its newline lands where it had one,
		// or behind all text.
		h.buf = append(append(h.buf[:h.kept], line...), '\n')
		h.kept = len(h.buf)
	}
}

func (h *lineHash) sum() [32]byte {
	if h.kept == 0 {
		return [32]byte{}
	}
	return sha256.Sum256(h.buf[:h.kept])
}
