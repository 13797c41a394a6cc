package provider

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast/internal/wire/body"
	"holdfast/internal/wire/page"
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
	// Names returns the ids of objects that a request names, in path, query or body, the one
	// that decides first. A listing's cursor is among them.
	Names(path, query string, f body.Facts) []string
	// EventMade returns the objects that an event of a good streamed answer names. It is
	// asked for every event, and may name one object more than once.
	EventMade(f body.Facts, name string, data []byte) []Object
	// BodyMade returns the objects that a good and whole JSON answer names: made by the
	// request, or found to be there.
	BodyMade(method, path string, f body.Facts, data []byte) []Object
	// Lists reports whether a request asks for a page of a listing and names no object in its
	// path, so that the cursor in the page is all that tells where it goes on. keep is how long
	// the objects in it may be asked for.
	Lists(method, path string) (keep time.Duration, ok bool)
	// Removed returns the id of the object that is gone once the request has a good answer;
	// empty for none.
	Removed(method, path string) string
}

// HeadNamer is the part of a provider some of whose requests name an object in their head.
type HeadNamer interface {
	// HeadNames returns the ids of objects that a request's headers name.
	HeadNames(h http.Header) []string
}

// HeadKeeper is the part of a provider some of whose answers name an object in their head
// alone.
type HeadKeeper interface {
	// HeadMade returns the objects that the head of a good answer names.
	HeadMade(method, path string, h http.Header) []Object
}

// Collection is a path with objects of one sort below it, each by its id.
type Collection struct {
	Path string
	Keep time.Duration
	// Verbs are the segments in an id's place that are not ids.
	Verbs []string
	// Makes are the segments, in an id's place or behind an id, to which a POST makes another
	// object of the collection.
	Makes []string
	// Prefix begins every id of an account's own, where the provider has objects beside them
	// that are the same for everybody; empty where it has none.
	Prefix string
}

// Collections are those of a provider. Of several that a path lies below, the first counts.
type Collections []Collection

// at finds the collection of a path, the id in it (empty for the collection itself), and what
// follows the id. A path that lies below no collection and has what looks like an id names an
// object of a sort that is not known yet.
func (cs Collections) at(path string) (c Collection, id, rest string, ok bool) {
	for _, c := range cs {
		rest, below := strings.CutPrefix(path, c.Path)
		if !below || (rest != "" && rest[0] != '/') {
			continue
		}
		id, rest, _ = strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		switch {
		case id != "" && !strings.HasPrefix(id, c.Prefix):
			return Collection{}, "", "", false
		case slices.Contains(c.Makes, id):
			return c, "", id, true
		case slices.Contains(c.Verbs, id):
			return Collection{}, "", "", false
		}
		return c, id, rest, true
	}
	return unlisted(path)
}

// unlisted is at for a path that lies below no collection of the table. Models are alike on
// every account, by whatever name a provider lists some of them.
func unlisted(path string) (c Collection, id, rest string, ok bool) {
	segments := strings.Split(path, "/") // the first is empty, the second the version
	if len(segments) > 2 && strings.HasSuffix(segments[2], "models") {
		return Collection{}, "", "", false
	}
	for i := 3; i < len(segments); i++ {
		if looksMade(segments[i]) {
			return Collection{Path: strings.Join(segments[:i], "/"), Keep: Lasting}, segments[i], strings.Join(segments[i+1:], "/"), true
		}
	}
	return Collection{}, "", "", false
}

// looksMade reports whether a segment of a path looks like an id that a provider made, and
// not like a word of its API: those have neither digits nor capitals.
func looksMade(segment string) bool {
	return strings.ContainsAny(segment, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

// Has reports whether a path is one of a collection or of an object.
func (cs Collections) Has(path string) bool {
	_, _, _, ok := cs.at(path)
	return ok
}

// Named are the ids in a path and its query, the path's first. Of a listing that is the
// cursor, which its account gave; where the path names an object, a cursor below it tells
// nothing more. params are the members of a query that name an object of their own.
func (cs Collections) Named(path, query string, params ...string) []string {
	_, id, _, ok := cs.at(path)
	if !ok {
		return nil
	}
	if id != "" {
		return []string{id}
	}
	if query == "" {
		return nil
	}
	values, _ := url.ParseQuery(query) // what cannot be read names nothing
	var ids []string
	for _, names := range [...][]string{params, cursors} {
		for _, name := range names {
			for _, id := range values[name] {
				if id != "" {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}

// cursors are the members of a query by which a client asks for another page. The SDKs of
// the three providers have no others (Anthropic's TypeScript 1.14.0, OpenAI's 7.59.0, xAI's
// Python 1.21.0; 2026-12-01).
var cursors = []string{"after", "after_id", "before", "before_id", "page", "page_token", "pagination_token"}

// Removed is the id of the object that a request deletes; empty for none.
func (cs Collections) Removed(method, path string) string {
	if _, id, rest, ok := cs.at(path); ok && rest == "" && method == http.MethodDelete {
		return id
	}
	return ""
}

// Lists reports whether a request asks for a page of a collection, and how long its objects
// may be asked for.
func (cs Collections) Lists(method, path string) (keep time.Duration, ok bool) {
	c, id, rest, ok := cs.at(path)
	return c.Keep, ok && id == "" && rest == "" && method == http.MethodGet
}

// Of a page's members, those that are a cursor whatever else it has (of the SDKs above), and
// those that repeat the id of its first and last object.
var (
	tokens          = []string{"next_page", "prev_page", "next", "pagination_token"}
	firstID, lastID = "first_id", "last_id"
)

// tokenLife is how long a cursor is remembered that is no object's id.
const tokenLife = 24 * time.Hour

// NewPage returns a reader of a page, for Cursors.
func NewPage() *page.Reader { return page.New(append([]string{firstID, lastID}, tokens...)...) }

// Cursors are what a page of a listing says of where it goes on: a token, or the id of its
// last object, which the next request names; and the id of its first, if there may be more
// before it. keep is what Lists says.
func Cursors(query string, p *page.Reader, keep time.Duration) []Object {
	var found []Object
	add := func(id string, keep time.Duration) {
		if id != "" {
			found = append(found, Object{id, keep})
		}
	}
	for _, name := range tokens {
		add(p.Member(name), tokenLife)
	}
	if found != nil {
		return found
	}
	asked, _ := url.ParseQuery(query) // what cannot be read asked for nothing
	backwards := asked.Has("before_id") || asked.Has("before")
	if !backwards {
		add(cmp.Or(p.Member(lastID), p.Last()), keep)
	}
	if backwards || asked.Has("after_id") || asked.Has("after") {
		add(cmp.Or(p.Member(firstID), p.First()), keep)
	}
	return found
}

// Made are the objects that the answer to a request for one of a collection's objects
// reports. own are the members that may have the object's own id; others those that have
// the ids of more, such as a batch's results, dots leading inwards.
func (cs Collections) Made(method, path string, data []byte, own, others []string) []Object {
	c, id, rest, ok := cs.at(path)
	if !ok || method == http.MethodDelete || (id == "" && method != http.MethodPost) {
		return nil
	}
	another := method == http.MethodPost && slices.Contains(c.Makes, rest)
	root := members(data)
	for _, name := range own {
		told := textAt(root, name)
		if told == "" || (id != "" && told != id && !another) {
			continue
		}
		made := []Object{{told, c.Keep}}
		for _, name := range others {
			for _, other := range textsAt(root, name) {
				made = append(made, Object{other, Lasting})
			}
		}
		return made
	}
	return nil
}

func members(data []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(data, &m) // what cannot be read names no object
	return m
}

// textAt is the string that a name leads to; empty when none exists.
func textAt(m map[string]json.RawMessage, name string) string {
	if all := textsAt(m, name); len(all) == 1 {
		return all[0]
	}
	return ""
}

// textsAt are the strings that a name leads to, one or the elements of an array.
func textsAt(m map[string]json.RawMessage, name string) []string {
	name, inner, nested := strings.Cut(name, ".")
	if nested {
		return textsAt(members(m[name]), inner)
	}
	var one string
	if json.Unmarshal(m[name], &one) == nil && one != "" {
		return []string{one}
	}
	var several []string
	_ = json.Unmarshal(m[name], &several)
	return slices.DeleteFunc(several, func(s string) bool { return s == "" })
}
