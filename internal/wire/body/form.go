package body

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// modelField is the name of what names the model, in an object and in a form.
const modelField = "model"

// maxParts bounds the parts of a multipart form that are looked at. A form that edits
// pictures has some twenty.
const maxParts = 1000

// formModel is what the fields of a form say of the model.
type formModel struct {
	value string
	found bool // there is such a field
	// unread: what there is of it cannot be told, or says two things.
	unread bool
}

// readForm reads the model of a form, and whether it could be told. Nothing else of a form
// is ours to read.
func readForm(data []byte, contentType string) Facts {
	// Of an error in the parameters only a boundary matters, which is missing then.
	media, params, _ := mime.ParseMediaType(contentType)
	var m formModel
	switch media {
	case "multipart/form-data":
		m.multipart(data, params["boundary"])
	case "application/x-www-form-urlencoded":
		m.urlencoded(data)
		// Any text is such a form, and this type is what curl says of all that it sends.
		m.unread = m.unread || !m.found
	default:
		m.unread = true
	}
	if m.unread {
		return Facts{ModelUnread: true}
	}
	return Facts{Model: m.value}
}

// take takes the value of one field.
func (m *formModel) take(value string) {
	value = strings.TrimSpace(value)
	if len(value) > maxID || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) || m.found && m.value != value {
		m.unread = true
	}
	m.value, m.found = value, true
}

// multipart reads a form of RFC 7578. It has to be whole: a parser that takes one which is
// not may find another model in it.
func (m *formModel) multipart(data []byte, boundary string) {
	r := multipart.NewReader(bytes.NewReader(data), boundary)
	obscure := false // there is a part whose name cannot be read, or is in capitals
	for range maxParts {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) && errors.Unwrap(err) == nil { // an error around it is one of a form that is cut
			m.unread = m.unread || obscure && !m.found
			return
		}
		if err != nil {
			break
		}
		dispositions := part.Header["Content-Disposition"]
		if len(dispositions) != 1 {
			obscure = true
			continue
		}
		kind, params, err := mime.ParseMediaType(dispositions[0])
		if err != nil || kind != "form-data" {
			obscure = true
			continue
		}
		if params["name"] != modelField {
			obscure = obscure || strings.EqualFold(params["name"], modelField)
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, maxID+1))
		if _, isFile := params["filename"]; isFile || err != nil || !isPlain(part.Header.Get("Content-Transfer-Encoding")) {
			m.unread = true
		}
		m.take(string(value))
	}
	m.unread = true
}

// isPlain reports whether a part with this Content-Transfer-Encoding stands there as it is.
func isPlain(encoding string) bool {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "7bit", "8bit", "binary":
		return true
	}
	return false
}

// urlencoded reads a form in the coding of URLs.
func (m *formModel) urlencoded(data []byte) {
	const longest = len("%00") // of one byte
	for len(data) > 0 {
		var field []byte
		field, data, _ = bytes.Cut(data, []byte{'&'})
		name, value, _ := bytes.Cut(field, []byte{'='})
		if len(name) < len(modelField) || len(name) > longest*len(modelField) {
			continue
		}
		if plain, err := url.QueryUnescape(string(name)); err != nil || plain != modelField {
			continue
		}
		value = value[:min(len(value), longest*(maxID+1))]
		plain, err := url.QueryUnescape(string(value))
		m.unread = m.unread || err != nil
		m.take(plain)
	}
}
