package provider_test

import (
	"strings"
	"testing"

	"holdfast/internal/provider"
)

func TestChoices(t *testing.T) {
	const role = `{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}`
	for _, c := range []struct {
		name   string
		chunks string
		want   bool
	}{
		{"none", `{"choices":[],"usage":{}}`, false},
		{"begun", role, false},
		{"finished", role + "\n" + `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, true},
		{"finished, with spaces", role + "\n" + `{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}`, true},
		{"finished, then usage", role + "\n" + `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n" + `{"choices":[],"usage":{}}`, true},
		{"a text that mentions it", role + "\n" + `{"choices":[{"index":0,"delta":{"content":"\"finish_reason\":\"stop\""},"finish_reason":null}]}`, false},
		{"one of two", role + "\n" + `{"choices":[{"index":1,"delta":{"content":"x"}}]}` + "\n" + `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, false},
		{"two of two", role + "\n" + `{"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"length"}]}` + "\n" + `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, true},
		{"two in one chunk", role + "\n" + `{"choices":[{"index":0,"delta":{},"finish_reason":null},{"index":1,"delta":{},"finish_reason":"stop"}]}` + "\n" + `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, true},
		{"the older completions", `{"choices":[{"text":"x","index":0,"logprobs":null,"finish_reason":null}]}` + "\n" + `{"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}]}`, true},
		{"what cannot be read", role + "\n" + `{"choices":[{"index":0,"finish_reason":"stop"}`, false},
		{"of another type", `{"choices":[{"index":0,"finish_reason":7}]}`, false},
	} {
		var got provider.Choices
		for chunk := range strings.SplitSeq(c.chunks, "\n") {
			got.Read([]byte(chunk))
		}
		if got.Finished() != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got.Finished(), c.want)
		}
	}
}
