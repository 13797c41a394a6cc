package openai

import "strings"

// Family is the model family whose limits bind a model: its own name in lower case,
// without what tells one release from another. A fine-tuned model has the limits of the
// model it was made from. Empty gives empty.
func Family(model string) string {
	name := strings.ToLower(strings.TrimSpace(model))
	if tuned, ok := strings.CutPrefix(name, "ft:"); ok {
		name, _, _ = strings.Cut(tuned, ":")
	}
	return trimRelease(name)
}

// trimRelease takes off -2025-08-07 and -latest.
func trimRelease(name string) string {
	if short, ok := strings.CutSuffix(name, "-latest"); ok {
		return short
	}
	const date = "-2006-01-02"
	i := len(name) - len(date)
	if i <= 0 {
		return name
	}
	for k := range len(date) {
		c := name[i+k]
		if (date[k] == '-') != (c == '-') || (c != '-' && (c < '0' || c > '9')) {
			return name
		}
	}
	return name[:i]
}
