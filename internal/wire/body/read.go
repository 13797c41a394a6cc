package body

import (
	"bytes"
	"errors"
	"strings"
)

// mark is the byte order mark of UTF-8, which some clients put before JSON.
const mark = "\ufeff"

// Read reads a request body of whatever kind. The types are the values of its Content-Type
// headers, of which clients send wrong ones: what begins with '{', behind a byte order mark
// and blanks, is read as JSON whatever its type. Else a form gives its model. Of any other
// body the facts say only that its model is unread. A body without a type, or of one that
// says JSON, is refused unless it is a JSON object: the error is Inspect's.
func Read(data []byte, types []string) (Facts, error) {
	declared := len(types) == 0 || isJSON(types[0])
	plain := bytes.TrimPrefix(data, []byte(mark))
	if declared || bytes.HasPrefix(bytes.TrimLeft(plain, " \t\r\n"), []byte{'{'}) {
		f, err := Inspect(plain)
		var fault *SyntaxError
		switch {
		case err == nil:
			return f, nil
		case declared && errors.As(err, &fault):
			fault.Offset += len(data) - len(plain)
			return Facts{}, err
		case declared:
			return Facts{}, err
		}
	}
	if len(types) != 1 {
		return Facts{ModelUnread: true}, nil // of two types nobody knows which one the provider goes by
	}
	return readForm(plain, types[0]), nil
}

// isJSON reports whether a content type says JSON. A text, and a body without a type, count:
// that is what these APIs are sent.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "" || media == "application/json" || strings.HasSuffix(media, "+json") || media == "text/plain"
}
