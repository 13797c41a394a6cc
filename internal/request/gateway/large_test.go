package gateway_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/test/upstreamtest"
)

// picture is one as base64, larger than what is kept of any answer.
var picture = strings.Repeat("iVBORw0KGgo", 410<<10)

// TestTheOwnerOfALargeAnswer is field case the-owner-of-a-large-answer: the id stands at the
// beginning and the usage at the end of an answer of 4.5 MB. Both are read, plain and
// compressed, with a length and without one, as a whole and as a stream.
func TestTheOwnerOfALargeAnswer(t *testing.T) {
	response := `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"image_generation_call","id":"ig_1","result":"` + picture + `"}],"usage":{"input_tokens":1234,"output_tokens":5}}`
	events := []string{
		`{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","store":true}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"image_generation_call","id":"ig_1"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"image_generation_call","id":"ig_1","result":"` + picture + `"}}`,
		`{"type":"response.completed","response":` + response + `}`,
	}
	gzipped := func(text string) upstreamtest.Script {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		return upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, b.Bytes())
	}
	for _, p := range []struct {
		name  account.Provider
		model string
	}{{account.OpenAI, "gpt-5.5"}, {account.XAI, "grok-4.6"}} {
		for name, script := range map[string]upstreamtest.Script{
			"whole": jsonAnswer(http.StatusOK, nil, response), "compressed": gzipped(response), "stream": streamed(events...),
			"id behind the picture": jsonAnswer(http.StatusOK, nil, `{"output":[{"result":"`+picture+`"},{"id":"ig_1","type":"x"}],"id":"resp_1","usage":{"input_tokens":1234,"output_tokens":5}}`),
		} {
			t.Run(string(p.name)+" "+name, func(t *testing.T) {
				b := keyBench(t, p.name, "tansy", "thistle")
				b.prefer("tansy", "thistle")
				b.account("tansy").Queue(script)
				if r := b.served(plainAsk("POST", "/v1/responses", `{"model":"`+p.model+`","stream":`+map[bool]string{true: "true", false: "false"}[name == "stream"]+`,"input":"draw"}`)); r.account() != "tansy" {
					t.Fatalf("got %s", r.account())
				}
				if got := b.recordedAs(p.name, "resp_1").Account; got != "acc-tansy" {
					t.Errorf("the response: got %q, want tansy's", got)
				}
				if got := b.recordedAs(p.name, "ig_1").Account; got != "acc-tansy" && name != "id behind the picture" {
					t.Errorf("the picture: got %q, want tansy's", got)
				}
				b.await("the usage", func() bool { return strings.Contains(b.log.String(), `"input_tokens":1234`) })
				b.prefer("thistle", "tansy")
				b.account("tansy").Queue(makes("resp_2"))
				next := plainAsk("POST", "/v1/responses", `{"model":"`+p.model+`","input":"and then","previous_response_id":"resp_1"}`)
				if r := b.served(next); r.account() != "tansy" {
					t.Errorf("the next turn: got %s, want tansy", r.account())
				}
			})
		}
	}
}

// The same for Messages: the container and the usage of a large answer.
func TestTheContainerOfALargeMessage(t *testing.T) {
	b := newBench(t, "marlow")
	b.account("marlow").Queue(jsonAnswer(http.StatusOK, nil, `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"`+picture+`"}],"stop_reason":"end_turn","container":{"id":"container_1"},"usage":{"input_tokens":1234,"output_tokens":5}}`))
	b.served(ask{})
	if got := b.recordedAs(account.Anthropic, "container_1").Account; got != "acc-marlow" {
		t.Errorf("got %q, want marlow's", got)
	}
	b.await("the usage", func() bool { return strings.Contains(b.log.String(), `"input_tokens":1234`) })
}
