// Package logging is the one door through which log lines leave: JSON, one line a record,
// and without anything that looks like a secret.
//
// Whoever logs should not hand secrets over in the first place. But an upstream may repeat
// a key in an error, a header or a status line, and a client may put one where a model's
// name belongs; so every finished line is looked through once more: for the secrets that
// this process holds, by their value (package hidden), and for what looks like one. The
// package decides what looks like a secret, not what is worth a line.
package logging

import (
	"bytes"
	"io"
	"log/slog"
	"regexp"

	"holdfast/internal/core/hidden"
)

// New returns a handler that writes lines of at least a level to w.
func New(w io.Writer, level slog.Leveler) slog.Handler {
	return slog.NewJSONHandler(&door{w}, &slog.HandlerOptions{Level: level})
}

// Level is the level that a text names, such as "debug" or "WARN"; info where it names none.
func Level(text string) (l slog.Level) {
	_ = l.UnmarshalText([]byte(text)) // what is no level leaves the zero one, which is info
	return l
}

// secret matches the keys and tokens of the providers and of clients, web tokens, and
// whatever stands behind the word bearer.
var secret = regexp.MustCompile(`(?i)\b(?:sk[-_][a-z0-9_-]{4,}|(?:hf_|xai-)[a-z0-9_-]{16,}|eyJ[a-z0-9_-]{8,}\.[a-z0-9_-]+\.[a-z0-9_-]*)|\bbearer +[a-z0-9._~+/=-]{8,}`)

// marks are parts of which every secret has one, in lower case: a line without any is
// passed on at once.
var marks = [][]byte{[]byte("sk-"), []byte("sk_"), []byte("hf_"), []byte("xai-"), []byte("eyj"), []byte("bearer")}

type door struct{ w io.Writer }

// Write takes one line, as slog's handlers give it.
func (d *door) Write(line []byte) (int, error) {
	clean := hidden.CleanLine(line)
	if suspect(clean) {
		clean = secret.ReplaceAll(clean, []byte("[secret]"))
	}
	if _, err := d.w.Write(clean); err != nil {
		return 0, err
	}
	return len(line), nil
}

func suspect(line []byte) bool {
	lower := bytes.ToLower(line)
	for _, m := range marks {
		if bytes.Contains(lower, m) {
			return true
		}
	}
	return false
}
