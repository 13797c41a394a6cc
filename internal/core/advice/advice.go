// Package advice has the commands that a text advises begin as the program was started, and
// name the data that it was told of, so that they can be pasted.
//
// It is pure, and knows commands by their names alone: what is no command line of holdfast's
// stays as it is.
package advice

import (
	"regexp"
	"strings"
)

// Way is how a command reaches the program and its data.
type Way struct {
	// Program is how the program was started; empty stands for holdfast.
	Program string
	// Place is the flag that names the data, with a space before it, as a shell takes it; empty
	// for the owner's own directory.
	Place string
}

// advised is a command line within a sentence, one that works on the data.
var advised = regexp.MustCompile(`(^|[^/.\w-])holdfast (account|key|policy|settings|status|forecast|usage|events|switches|poll|pick|serve|explain)\b`)

// In returns a text whose commands take the way.
func (w Way) In(text string) string {
	program := w.Program
	if program == "" {
		program = "holdfast"
	}
	return advised.ReplaceAllStringFunc(text, func(found string) string {
		before, after, _ := strings.Cut(found, "holdfast")
		return before + program + w.Place + after
	})
}
