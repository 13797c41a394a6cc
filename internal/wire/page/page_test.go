package page_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"holdfast/internal/wire/page"
)

func read(chunk int, text string) *page.Reader {
	r := page.New("last_id", "next_page")
	for text != "" {
		n := min(chunk, len(text))
		_, _ = r.Write([]byte(text[:n]))
		text = text[n:]
	}
	return r
}

func TestReader(t *testing.T) {
	var many []string
	for i := range 10000 {
		many = append(many, fmt.Sprintf(`{"id":"file-%d","bytes":1,"nested":{"id":"no"},"list":[{"id":"no"}]}`, i))
	}
	long := strings.Repeat("x", 4<<10)
	for _, c := range []struct{ name, in, first, last, lastID, next string }{
		{"empty", ` {"data":[],"next_page":null,"last_id":null}`, "", "", "", ""},
		{"tokens", `{"data":[{"id":"a"}],"next_page":"p\u0061ge","last_id":"a"}`, "a", "a", "a", "page"},
		{"many", `{"object":"list","data":[` + strings.Join(many, ",") + `],"has_more":true}`, "file-0", "file-9999", "", ""},
		{"inner members", `{"data":[{"id":"a","last_id":"no"},{"other":"x"}],"more":{"next_page":"no","data":[{"id":"no"}]}}`, "a", "a", "", ""},
		{"other lists", `{"files":[{"id":"a"}],"next_page":"t"}`, "", "", "", "t"},
		{"a long string", `{"data":[{"id":"` + long + `"},{"id":"b"}],"next_page":"` + long + `","last_id":"b"}`, "b", "b", "b", ""},
		{"quotes in strings", `{"data":[{"name":"\"id\":\"no\\","id":"a"}],"last_id":"a"}`, "a", "a", "a", ""},
		{"a list alone", `[{"id":"no"}]`, "", "", "", ""},
	} {
		for _, chunk := range []int{1, 7, 1 << 20} {
			r := read(chunk, c.in)
			if r.First() != c.first || r.Last() != c.last || r.Member("last_id") != c.lastID || r.Member("next_page") != c.next {
				t.Errorf("%s: got %q to %q, last_id %q, next_page %q", c.name, r.First(), r.Last(), r.Member("last_id"), r.Member("next_page"))
			}
			if !r.Ended() {
				t.Errorf("%s: got no end", c.name)
			}
		}
		if r := read(3, c.in[:len(c.in)-1]); r.Ended() {
			t.Errorf("%s: got an end before it came", c.name)
		}
	}
}

// What a valid page says is what encoding/json reads in it.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":"a"},{"id":"b"}],"last_id":"b","next_page":null}`), 3)
	f.Add([]byte(`{"data":{"id":"a"},"last_id":["x"]}`), 1)
	f.Add([]byte(`]}{"`), 2)
	f.Fuzz(func(t *testing.T, text []byte, chunk int) {
		r := read(max(1, chunk), string(text))
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil || strings.Count(string(text), `last_id`) > 1 {
			return
		}
		if strings.Contains(string(text), `\u`) {
			return // a name may be written otherwise
		}
		var want string
		_ = json.Unmarshal(members["last_id"], &want)
		if len(members["last_id"]) < 2000 && r.Member("last_id") != want {
			t.Errorf("got %q, want %q", r.Member("last_id"), want)
		}
		if !r.Ended() {
			t.Error("got no end of a whole document")
		}
	})
}
