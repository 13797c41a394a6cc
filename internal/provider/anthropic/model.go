package anthropic

import (
	"slices"
	"strings"
)

// families are the words in model names that name a family. A model of a family not
// listed here is a family by itself, under its own name.
var families = []string{"opus", "sonnet", "haiku", "fable"}

// Family is the model family whose windows bind a model: opus for claude-opus-5,
// claude-opus-4-5-20251101 and claude-opus-5[1m]. An unknown model gives its own name,
// trimmed of marks and date; empty gives empty.
func Family(model string) string {
	name, _ := trimMarks(model)
	for word := range strings.FieldsFuncSeq(name, notWord) {
		if slices.Contains(families, word) {
			return word
		}
	}
	return trimDate(name)
}

func notWord(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// trimMarks lowers a model name and takes the bracketed marks off its end that Claude
// Code writes for itself, and tells whether one of them asked for the long context.
func trimMarks(model string) (name string, long bool) {
	name = strings.ToLower(strings.TrimSpace(model))
	for strings.HasSuffix(name, "]") {
		i := strings.LastIndexByte(name, '[')
		if i < 0 {
			break
		}
		long = long || name[i:] == "[1m]"
		name = strings.TrimSpace(name[:i])
	}
	return name, long
}

// trimDate takes off what tells one release of a model from another: -20251001,
// @20251001, -latest.
func trimDate(name string) string {
	if short, ok := strings.CutSuffix(name, "-latest"); ok {
		return short
	}
	const date = len("20060102")
	i := len(name) - date - 1
	if i > 0 && (name[i] == '-' || name[i] == '@') && strings.Trim(name[i+1:], "0123456789") == "" {
		return name[:i]
	}
	return name
}
