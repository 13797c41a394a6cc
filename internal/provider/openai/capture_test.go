package openai_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/account"
	"holdfast/internal/body"
	"holdfast/internal/capture"
	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
)

var codex = http.Header{"Originator": {"codex_exec"}, "User-Agent": {"codex_exec/0.171.0 (Linux 6.1; x86_64) xterm"}}

// inference is what Codex's ordinary request for a model is made into.
func inference(model string) provider.Request {
	return openai.Provider{}.Inspect("POST", "/v1/responses", codex, body.Facts{Model: model, Stream: true})
}

type event struct{ name, data string }

// events splits a stream as the captures have it: LF, one data line, often no name.
func events(stream []byte) []event {
	var out []event
	for block := range bytes.SplitSeq(stream, []byte("\n\n")) {
		name, data, ok := strings.Cut("\n"+string(block), "\ndata: ")
		if ok {
			out = append(out, event{strings.TrimPrefix(strings.TrimSpace(name), "event: "), data})
		}
	}
	return out
}

func TestCaptures(t *testing.T) {
	captures, err := capture.Load(os.DirFS("../../../testdata/captures"), "openai")
	if err != nil {
		t.Fatal(err)
	}
	p := openai.Provider{}
	for _, c := range captures {
		t.Run(c.Name, func(t *testing.T) {
			if c.Call != "" {
				if got := capture.OfCall(p, c); !slices.Equal(got, c.Expect) {
					t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.Expect, "\n\t"))
				}
				return
			}
			answer := provider.Answer{
				Status: c.Status, Header: c.Header, Body: c.Body, At: c.Recorded,
				Request: inference(c.Model), Kind: c.Kind, Generation: 3,
			}
			reading, rejection := p.Read(c.Header, c.Recorded), p.Classify(answer)
			var usage provider.Usage
			if strings.HasPrefix(c.Header.Get("Content-Type"), "text/event-stream") {
				for _, e := range events(c.Body) {
					p.EventUsage(&usage, e.name, []byte(e.data))
					if r, ok := (openai.Provider{}).EventReading(e.name, []byte(e.data), c.Recorded); ok {
						reading = r
					}
					if p.Event(e.name, []byte(e.data)) == provider.Failure {
						answer.InStream, answer.Body = true, []byte(e.data)
						rejection = p.Classify(answer)
					}
				}
			} else {
				usage = p.BodyUsage(c.Body)
			}
			got := capture.Describe(reading, rejection, usage)
			if !slices.Equal(got, c.Expect) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.Expect, "\n\t"))
			}
			if !rejection.Rejected() {
				return
			}
			if rejection.Model != c.Model || !rejection.At.Equal(c.Recorded) || rejection.Generation != 3 {
				t.Errorf("got model %q at %v of generation %d, want those of the answer", rejection.Model, rejection.At, rejection.Generation)
			}
			// The same error within a stream means the same, as far as the body alone tells it.
			inStream := answer
			inStream.InStream, inStream.Status = true, http.StatusOK
			known := []account.RejectionKind{account.Funds, account.WindowSpent, account.ModelWindow}
			if slices.Contains(known, rejection.Kind) && p.Classify(inStream).Kind != rejection.Kind {
				t.Errorf("in a stream: got %v, want %v", p.Classify(inStream).Kind, rejection.Kind)
			}
		})
	}
}
