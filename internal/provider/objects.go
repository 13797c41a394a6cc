package provider

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/internal/body"
)

// Object is something that a provider keeps on one account and lets requests name.
type Object struct {
	ID string
	// Keep is how long after it was last seen the object may still be asked for. Where the
	// provider keeps it until it is deleted, that is Lasting.
	Keep time.Duration
}

const (
	// Stored is how long what providers keep "for 30 days" may be asked for.
	Stored = 30 * 24 * time.Hour
	// Lasting is how long an object without an end of its own is remembered without use.
	Lasting = 90 * 24 * time.Hour
)

// Keeper is the part of a provider that knows of the objects it keeps on one account.
type Keeper interface {
	// Names returns the ids of objects that a request names, in path or body, the one that
	// decides first.
	Names(path string, f body.Facts) []string
	// EventMade returns the objects that an event of a good streamed answer tells of. It is
	// asked for every event, and may tell of one object more than once.
	EventMade(f body.Facts, name string, data []byte) []Object
	// BodyMade returns the objects that a good and whole JSON answer tells of: made by the
	// request, or found to be there.
	BodyMade(method, path string, f body.Facts, data []byte) []Object
	// Removed returns the id of the object that is gone once the request has a good answer;
	// empty for none.
	Removed(method, path string) string
}

// Collection is a path with objects of one sort below it, each by its id.
type Collection struct {
	Path string
	Keep time.Duration
	// Verbs are the segments in an id's place that are none.
	Verbs []string
}

// Collections are those of a provider.
type Collections []Collection

// at finds the collection of a path, the id in it (empty for the collection itself), and
// whether more follows.
func (cs Collections) at(path string) (c Collection, id string, more, ok bool) {
	for _, c := range cs {
		rest, below := strings.CutPrefix(path, c.Path)
		if !below || (rest != "" && rest[0] != '/') {
			continue
		}
		id, _, more = strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		if slices.Contains(c.Verbs, id) {
			return Collection{}, "", false, false
		}
		return c, id, more, true
	}
	return Collection{}, "", false, false
}

// Named is the id in a path; empty when it names none.
func (cs Collections) Named(path string) string {
	_, id, _, _ := cs.at(path)
	return id
}

// Removed is the id of the object that a request deletes; empty for none.
func (cs Collections) Removed(method, path string) string {
	if _, id, more, ok := cs.at(path); ok && !more && method == http.MethodDelete {
		return id
	}
	return ""
}

// Made are the objects that the answer to a request for one of a collection's objects
// tells of. own are the members that may have the object's own id; others those that have
// the ids of more, such as a batch's results, dots leading inwards.
func (cs Collections) Made(method, path string, data []byte, own, others []string) []Object {
	c, id, _, ok := cs.at(path)
	if !ok || method == http.MethodDelete || (id == "" && method != http.MethodPost) {
		return nil
	}
	root := members(data)
	for _, name := range own {
		told := textAt(root, name)
		if told == "" || (id != "" && told != id) {
			continue
		}
		made := []Object{{told, c.Keep}}
		for _, name := range others {
			if other := textAt(root, name); other != "" {
				made = append(made, Object{other, Lasting})
			}
		}
		return made
	}
	return nil
}

func members(data []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(data, &m) // what cannot be read tells of nothing
	return m
}

// textAt is the string that a name leads to; empty when there is none.
func textAt(m map[string]json.RawMessage, name string) string {
	name, inner, nested := strings.Cut(name, ".")
	if nested {
		return textAt(members(m[name]), inner)
	}
	var s string
	_ = json.Unmarshal(m[name], &s)
	return s
}
