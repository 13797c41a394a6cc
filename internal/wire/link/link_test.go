package link_test

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"holdfast/internal/wire/link"
)

func upper(s string) string { return strings.ToUpper(s) }

func changed(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(link.New(r, "url", upper))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 5<<10)
	for _, c := range []struct{ name, in, want string }{
		{"a member", `{"id":"a","url":"b","c":"d"}`, `{"id":"a","url":"B","c":"d"}`},
		{"with space", "{ \"url\" :\n \"b\" }", "{ \"url\" :\n \"B\" }"},
		{"at any depth", `{"data":[{"url":"b"},{"url":"c"}]}`, `{"data":[{"url":"B"},{"url":"C"}]}`},
		{"escaped", `{"url":"a\/b\"c"}`, `{"url":"A/B\"C"}`},
		{"unchanged as it is written", `{"url":"A\/B"}`, `{"url":"A\/B"}`},
		{"another value", `{"url":null,"a":"b","url":["c"],"url":{"x":"d"},"url":1}`, `{"url":null,"a":"b","url":["c"],"url":{"x":"d"},"url":1}`},
		{"a value that is the name", `{"a":"url","b":"c"}`, `{"a":"url","b":"c"}`},
		{"in an array", `["url","b"]`, `["url","b"]`},
		{"within a string", `{"a":"\"url\":\"b\"","c\"url":"d"}`, `{"a":"\"url\":\"b\"","c\"url":"d"}`},
		{"too long", `{"url":"` + long + `","url":"b"}`, `{"url":"` + long + `","url":"B"}`},
		{"cut in the value", `{"url":"htt`, `{"url":"htt`},
		{"cut before it", `{"url":`, `{"url":`},
		{"nothing", ``, ``},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
			if got := changed(t, r); got != c.want {
				t.Errorf("%s: got %.200q, want %.200q", c.name, got, c.want)
			}
		}
	}
	if _, err := io.ReadAll(link.New(iotest.ErrReader(io.ErrUnexpectedEOF), "url", upper)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the source's error", err)
	}
}

func TestLead(t *testing.T) {
	o := link.Origin{Scheme: "http", Host: "127.0.0.1:8787", Prefix: "/anthropic"}
	for text, want := range map[string]string{
		"https://api.anthropic.com/v1/messages/batches/b/results":         "http://127.0.0.1:8787/anthropic/v1/messages/batches/b/results",
		"https://api.anthropic.com/v1/messages/batches/b%20c/results?x=1": "http://127.0.0.1:8787/anthropic/v1/messages/batches/b%20c/results?x=1",
		"http://gateway.internal:8080/v1/messages/batches/b/results":      "http://127.0.0.1:8787/anthropic/v1/messages/batches/b/results",
		"/v1/messages/batches/b/results":                                  "/anthropic/v1/messages/batches/b/results",
		"https://storage.example/bucket/b?signature=s":                    "https://storage.example/bucket/b?signature=s",
		"https://api.anthropic.com/v1/messages/batchesque":                "https://api.anthropic.com/v1/messages/batchesque",
		"https://a:b@api.anthropic.com/v1/messages/batches/b":             "https://a:b@api.anthropic.com/v1/messages/batches/b",
		"ftp://api.anthropic.com/v1/messages/batches/b":                   "ftp://api.anthropic.com/v1/messages/batches/b",
		"": "", "not a link": "not a link", "%zz": "%zz",
	} {
		if got := o.Lead(text, "/v1/messages/batches"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// Whatever comes, what is no value of the member stays as it is, and JSON stays JSON.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"url":"a\u0062","x":[{"url":"c"}]}`), 3)
	f.Add([]byte(`"url":"x`), 1)
	f.Fuzz(func(t *testing.T, in []byte, _ int) {
		same, err := io.ReadAll(link.New(strings.NewReader(string(in)), "url", func(s string) string { return s }))
		if err != nil || string(same) != string(in) {
			t.Fatalf("unchanged: got %q, want %q", same, in)
		}
		var before, after any
		if json.Unmarshal(in, &before) != nil {
			return
		}
		got := changed(t, iotest.OneByteReader(strings.NewReader(string(in))))
		if err := json.Unmarshal([]byte(got), &after); err != nil {
			t.Fatalf("%q became %q: %v", in, got, err)
		}
		if !strings.Contains(string(in), "url") && !strings.Contains(string(in), `\u`) && !reflect.DeepEqual(before, after) {
			t.Errorf("%q became %q", in, got)
		}
	})
}
