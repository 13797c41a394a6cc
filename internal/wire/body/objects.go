package body

const (
	// maxObjects bounds the ids of objects that are told of one body.
	maxObjects = 16
	// maxObjectID bounds one, in bytes. Those that providers make have 20 to 60.
	maxObjectID = 128
)

// Prefixes of ids by the sort of object, as Anthropic, OpenAI and xAI make them. An id is a
// prefix and then letters, digits, '_' and '-', written plainly; all else in such a member
// is somebody's own word, such as an argument of a tool.
var (
	containers   = []string{"container_", "cntr_"}
	files        = []string{"file_", "file-"}
	skills       = []string{"skill_"}
	vectorStores = []string{"vs_", "collection_"}
)

// Those of what only a request about an object names beside it.
var (
	agents       = []string{"agent_"}
	assistants   = []string{"asst_"}
	environments = []string{"env_"}
	memoryStores = []string{"memstore_"}
	threads      = []string{"thread_"}
	vaults       = []string{"vlt_"}
)

// note keeps the id that is the value at i, if it is one.
func (s *scanner) note(to *[][]byte, i int, prefixes []string) {
	if id := s.objectID(i, prefixes); id != nil {
		keepObject(to, id)
	}
}

// noteAll keeps the ids in the array at i, up to the first element that is not an id.
func (s *scanner) noteAll(to *[][]byte, i int, prefixes []string) {
	if s.at(i) != '[' {
		return
	}
	for more := true; more; more = s.at(i) == ',' {
		i = s.space(i + 1)
		id := s.objectID(i, prefixes)
		if id == nil {
			return
		}
		keepObject(to, id)
		i = s.space(i + len(id) + len(`""`))
	}
}

func keepObject(to *[][]byte, id []byte) {
	if len(*to) == maxObjects {
		return
	}
	for _, known := range *to {
		if string(known) == string(id) {
			return
		}
	}
	*to = append(*to, id)
}

// objectID is the id in the string at i; nil if none exists.
func (s *scanner) objectID(i int, prefixes []string) []byte {
	if i < 0 || s.at(i) != '"' {
		return nil
	}
	text := s.data[i+1:]
	for _, p := range prefixes {
		if len(text) < len(p) || string(text[:len(p)]) != p {
			continue
		}
		end := len(p)
		for end < len(text) && end <= maxObjectID && isIDByte(text[end]) {
			end++
		}
		if end > len(p) && end <= maxObjectID && end < len(text) && text[end] == '"' {
			return text[:end]
		}
	}
	return nil
}

func isIDByte(c byte) bool { return isWord(c) || c == '_' || c == '-' }
