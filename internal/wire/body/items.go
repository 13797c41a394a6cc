package body

// maxItems bounds the ids of stored items that are kept of one body. All of the items are on one
// account, so a few ids are enough to find it.
const maxItems = 8

// item is an element of a Responses API's input, as far as is needed to see whether it refers
// to content that the provider has stored.
type item struct {
	id, kind span
	has      content
}

// content is the set of the kinds of content that an item has beside its labels.
type content uint8

const (
	hasContent   content = 1 << iota // a content that is not empty
	hasSaid                          // a content that is not null: a message may say nothing
	hasEncrypted                     // an encrypted content that is not empty
	hasResult                        // a picture
	hasMore                          // anything else
)

// itemMember scans a member of an item that no other scan reads.
func (s *scanner) itemMember(name []byte, i, depth int) int {
	if string(name) == "type" {
		s.item.kind, i = s.str(i, depth)
		return i
	}
	return s.restOfItem(name, i, depth)
}

// restOfItem scans a member of an item that is not its type.
func (s *scanner) restOfItem(name []byte, i, depth int) int {
	switch string(name) {
	case "id":
		s.item.id, i = s.str(i, depth)
		return i
	default:
		s.carries(name, i)
	}
	return s.skip(i, depth)
}

// carries adds to the item the kind of content that the value at i of the named member is.
func (s *scanner) carries(name []byte, i int) {
	var has content
	switch string(name) {
	case "role", "status", "summary", "phase", "call_id", "name", "namespace", "server_label", "created_by", "container_id":
		return // labels: they stand beside the content and are not content
	case "content":
		if s.at(i) != 'n' {
			has = hasSaid
		}
		if !s.empty(i) {
			has |= hasContent
		}
	case "encrypted_content":
		if !s.empty(i) {
			has = hasEncrypted
		}
	case "result":
		if !s.empty(i) {
			has = hasResult
		}
	case "arguments", "input", "output", "code": // what a tool takes and gives may be an empty text
		if s.at(i) != 'n' {
			has = hasMore
		}
	default:
		if !s.empty(i) {
			has = hasMore
		}
	}
	s.item.has |= has
}

// empty reports whether the value at i is null, or a text, an array or an object with nothing
// in it.
func (s *scanner) empty(i int) bool {
	switch s.at(i) {
	case 'n':
		return true
	case '"':
		return s.at(i+1) == '"'
	case '[':
		return s.at(s.space(i+1)) == ']'
	case '{':
		return s.at(s.space(i+1)) == '}'
	}
	return false
}

// keepItem keeps the id of the item that was scanned, where the item itself has no content, so
// that the provider must take it from what it has stored.
func (s *scanner) keepItem() {
	if s.item.id == (span{}) || len(s.items) == maxItems || !s.isStored() {
		return
	}
	id := s.data[s.item.id.from:s.item.id.to]
	for _, known := range s.items {
		if string(known) == string(id) {
			return
		}
	}
	s.items = append(s.items, id)
}

func (s *scanner) isStored() bool {
	it := &s.item
	id := s.data[it.id.from:it.id.to]
	if len(id) == 0 || len(id) > maxObjectID {
		return false
	}
	for _, c := range id {
		if !isIDByte(c) {
			return false
		}
	}
	if s.equal(it.kind, "item_reference") {
		return true
	}
	switch {
	case !hasPrefix(id): // a client's own word
		return false
	case s.equal(it.kind, "reasoning"):
		return it.has&(hasContent|hasEncrypted) == 0
	case s.equal(it.kind, "image_generation_call"):
		return it.has&hasResult == 0
	}
	return it.has == 0
}

// hasPrefix reports whether an id begins with small letters and a '_', such as rs_, msg_, fc_
// and ig_, as the ids do that a provider gives to items.
func hasPrefix(id []byte) bool {
	for i, c := range id {
		if c == '_' {
			return i > 0 && i+1 < len(id)
		}
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return false
}

// copies returns the ids as strings that do not keep the body in memory.
func copies(spans [][]byte) []string {
	if len(spans) == 0 {
		return nil
	}
	all := make([]string, len(spans))
	for i, t := range spans {
		all[i] = string(t)
	}
	return all
}
