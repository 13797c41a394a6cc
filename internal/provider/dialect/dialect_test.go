package dialect_test

import (
	"encoding/json"
	"testing"

	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
)

func TestChunk(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       provider.Meaning
	}{
		{"the role alone", `{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, provider.Opening},
		{"the usage alone", `{"choices":[],"usage":{"prompt_tokens":1}}`, provider.Opening},
		{"usage without choices", `{"usage":{"prompt_tokens":1}}`, provider.Opening},
		{"text", `{"choices":[{"delta":{"content":"Hi"}}]}`, provider.Content},
		{"a tool call", `{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}`, provider.Content},
		{"a field that is new", `{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, provider.Content},
		{"a reason to end", `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, provider.Content},
		{"text of the older kind", `{"choices":[{"text":"Hi"}]}`, provider.Content},
		{"an error", `{"error":{"message":"x"}}`, provider.Failure},
		{"an error of null", `{"error":null,"choices":[]}`, provider.Opening},
		{"no chunk", `{"anything":1}`, provider.Content},
		{"no JSON", `{"choices":`, provider.Content},
	} {
		if got := dialect.Chunk([]byte(c.data)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if !dialect.IsDone([]byte(" [DONE]\n")) || dialect.IsDone([]byte("[]")) {
		t.Error("the mark of the end is not told from another")
	}
}

func TestValuesAreDroppedAlone(t *testing.T) {
	var v struct {
		T dialect.Text   `json:"t"`
		N dialect.Number `json:"n"`
		C dialect.Tokens `json:"c"`
	}
	for _, c := range []struct {
		json, text, number string
		count              int64 // negative: not told
	}{
		{`{"t":"a","n":1.5,"c":7}`, "a", "1.5", 7},
		{`{"t":5,"n":"12.5","c":-7}`, "", "12.5", -1},
		{`{"t":{},"n":[1],"c":"7"}`, "", "", -1},
		{`{"t":null,"n":null,"c":null}`, "", "", -1},
		{`{}`, "", "", -1},
		{`{"c":1.5,"n":"lots","t":"b"}`, "b", "", -1},
	} {
		v.T, v.N, v.C = "", "", dialect.Tokens{}
		if err := json.Unmarshal([]byte(c.json), &v); err != nil {
			t.Errorf("%s: %v", c.json, err)
		}
		count := int64(-1)
		if v.C.Told {
			count = v.C.N
		}
		if string(v.T) != c.text || string(v.N) != c.number || count != c.count {
			t.Errorf("%s: got %q %q %d, want %q %q %d", c.json, v.T, v.N, count, c.text, c.number, c.count)
		}
	}
	if name := dialect.EventType([]byte(`{"type":"error"}`)); name != "error" {
		t.Errorf("got the event %q, want error", name)
	}
}
