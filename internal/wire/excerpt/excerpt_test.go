package excerpt_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"holdfast/internal/wire/excerpt"
)

func excerptOf(limit int, chunk int, text string) string {
	r := excerpt.New(limit)
	for p := []byte(text); len(p) > 0; {
		n := min(chunk, len(p))
		_, _ = r.Write(p[:n])
		p = p[n:]
	}
	return string(r.JSON())
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("x", 3*excerpt.MaxText)
	kept := long[:excerpt.MaxText]
	escapes := strings.Repeat(`\u00e9`, excerpt.MaxText)
	for _, c := range []struct{ name, in, want string }{
		{"small", ` {"a" : [1, -2.5e3, true, null, {"b":"\"c\\"}], "d":{}, "e":[] } `, `{"a":[1,-2.5e3,true,null,{"b":"\"c\\"}],"d":{},"e":[]}`},
		{"a scalar", `"a"`, `"a"`},
		{"a long string", `{"id":"r","b64":"` + long + `","usage":{"n":1}}`, `{"id":"r","b64":"` + kept + `","usage":{"n":1}}`},
		{"long names and strings of escapes", `{"` + long + `":"` + escapes + `"}`, `{"` + kept + `":"` + escapes[:6*((excerpt.MaxText+5)/6)] + `"}`},
		{"a long number", `{"a":1` + strings.Repeat("0", 100) + `,"b":2}`, `{"a":null,"b":2}`},
		{"not ended, in a name", `{"a":{"b":1,"c`, `{"a":{"b":1}}`},
		{"not ended, before a value", `{"a":[{"b":1,"c":`, `{"a":[{"b":1}]}`},
		{"not ended, in a string", `{"a":["b","c`, `{"a":["b"]}`},
		{"not ended, in a number", `{"a":[1,2`, `{"a":[1]}`},
		{"nothing", ` `, ``},
		{"no JSON", `data`, ``},
		{"no JSON inside", `{"a":oh}`, ``},
		{"two documents", `{} {}`, ``},
		{"an end without a beginning", `}`, ``},
		{"another end", `{]`, ``},
		{"too deep", `{"a":` + strings.Repeat(`[`, 120) + strings.Repeat(`]`, 120) + `,"b":1}`, `{"a":` + strings.Repeat(`[`, 99) + `null` + strings.Repeat(`]`, 99) + `,"b":1}`},
	} {
		for _, chunk := range []int{1, 7, 1 << 20} {
			if got := excerptOf(1<<20, chunk, c.in); got != c.want {
				t.Errorf("%s, %d at a time: got %.200q, want %.200q", c.name, chunk, got, c.want)
			}
		}
	}
}

// What stands at the beginning and at the end is found, whatever is between, and the
// excerpt keeps its bounds.
func TestExcerptOfLargeDocuments(t *testing.T) {
	const limit = 8 << 10
	items := strings.Repeat(`{"type":"message","content":[{"text":"`+strings.Repeat("y", 200)+`"}]},`, 2000)
	var members strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&members, `"m%d":[1,2,3],`, i)
	}
	for name, middle := range map[string]string{
		"a string":        `"result":"` + strings.Repeat("A", 5<<20) + `",`,
		"an array":        `"output":[` + items + `{}],`,
		"arrays":          `"output":[` + strings.Repeat(`[`, 50) + items + `1` + strings.Repeat(`]`, 50) + `],`,
		"one deep object": `"tools":[{"schema":{` + members.String() + `"z":{}}}],`,
		"members":         `"map":{` + members.String() + `"z":1},`,
	} {
		doc := `{"type":"response.completed","response":{"id":"resp_1",` + middle + `"usage":{"input_tokens":7}}}`
		got := excerptOf(limit, 32<<10, doc)
		var d struct {
			Type     string `json:"type"`
			Response struct {
				ID    string `json:"id"`
				Usage struct {
					Input int `json:"input_tokens"`
				} `json:"usage"`
			} `json:"response"`
		}
		if err := json.Unmarshal([]byte(got), &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found := d.Type == "response.completed" && d.Response.ID == "resp_1"
		if name != "members" { // of those no more than twice the limit is kept
			found = found && d.Response.Usage.Input == 7
		}
		if !found {
			t.Errorf("%s: got %+v", name, d)
		}
		if len(got) > 2*limit+2*excerpt.MaxText {
			t.Errorf("%s: got %d bytes, with a limit of %d", name, len(got), limit)
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\u00e9\"x"},[],null],"c":{"d":-1e9}}`), 3, 10)
	f.Add([]byte(`[[[[{"a":{"b":[1,2,3]}}]]],"`+strings.Repeat("x", 2000)+`"]`), 1, 0)
	f.Add([]byte(`{"a":1}{`), 2, 5)
	f.Fuzz(func(t *testing.T, doc []byte, chunk, limit int) {
		chunk, limit = max(1, chunk), max(0, min(limit, 1<<20))
		got := excerptOf(limit, chunk, string(doc))
		if whole := excerptOf(limit, len(doc)+1, string(doc)); got != whole {
			t.Fatalf("%d at a time got %q, at once %q", chunk, got, whole)
		}
		if len(got) > 2*limit+2*excerpt.MaxText+500 {
			t.Fatalf("got %d bytes, with a limit of %d", len(got), limit)
		}
		if !json.Valid(doc) {
			return
		}
		if container := bytes.ContainsAny(doc[:1], "[{"); container && !json.Valid([]byte(got)) {
			t.Fatalf("of %q got %q", doc, got)
		}
		for i := range doc { // as far as it goes it is a document at any time
			if part := excerptOf(limit, chunk, string(doc[:i])); part != "" && !json.Valid([]byte(part)) {
				t.Fatalf("of %q got %q", doc[:i], part)
			}
		}
		if limit > len(doc) && len(doc) < excerpt.MaxText && bytes.Count(doc, []byte{'['})+bytes.Count(doc, []byte{'{'}) < 50 {
			var want, have any
			if json.Unmarshal(doc, &want) != nil || json.Unmarshal([]byte(got), &have) != nil {
				return // a number that is too large, or a scalar that has not ended
			}
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(have)
			if !bytes.Equal(a, b) && !bytes.Contains(b, []byte("null")) {
				t.Fatalf("of %q got %q", doc, got)
			}
		}
	})
}

func BenchmarkExcerpt(b *testing.B) {
	for name, doc := range map[string]string{
		"base64": `{"a":"` + strings.Repeat("A", 1<<20) + `"}`,
		"items":  `{"a":[` + strings.Repeat(`{"type":"message","text":"a line of\ntext"},`, 20000) + `1]}`,
	} {
		p := []byte(doc)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = excerpt.New(64 << 10).Write(p)
			}
		})
	}
}
