package anthropic_test

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
	"holdfast/internal/provider/anthropic"
)

var claudeCode = http.Header{"User-Agent": {"claude-cli/2.1.332 (external, cli)"}}

// inference is what Claude Code's ordinary request for a model is made into.
func inference(model string) provider.Request {
	return anthropic.Provider{}.Inspect("POST", "/v1/messages", claudeCode, body.Facts{Model: model, Stream: true})
}

type event struct{ name, data string }

// events splits a stream as the captures have it: LF, one data line.
func events(stream []byte) []event {
	var out []event
	for block := range bytes.SplitSeq(stream, []byte("\n\n")) {
		name, data, ok := strings.Cut(string(block), "\ndata: ")
		if ok {
			out = append(out, event{strings.TrimPrefix(name, "event: "), data})
		}
	}
	return out
}

func TestCaptures(t *testing.T) {
	captures, err := capture.Load(os.DirFS("../../../testdata/captures"), "anthropic")
	if err != nil {
		t.Fatal(err)
	}
	p := anthropic.Provider{}
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
			rejection := p.Classify(answer)
			var usage provider.Usage
			if strings.HasPrefix(c.Header.Get("Content-Type"), "text/event-stream") {
				for _, e := range events(c.Body) {
					p.EventUsage(&usage, e.name, []byte(e.data))
					if p.Event(e.name, []byte(e.data)) == provider.Failure {
						answer.InStream, answer.Body = true, []byte(e.data)
						rejection = p.Classify(answer)
					}
				}
			} else {
				usage = p.BodyUsage(c.Body)
			}
			got := capture.Describe(p.Read(c.Header, c.Recorded), rejection, usage)
			if !slices.Equal(got, c.Expect) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.Expect, "\n\t"))
			}
			if !rejection.Rejected() {
				return
			}
			if rejection.Model != c.Model || !rejection.At.Equal(c.Recorded) || rejection.Generation != 3 {
				t.Errorf("got model %q at %v of generation %d, want those of the answer", rejection.Model, rejection.At, rejection.Generation)
			}
			// The same error as the first event of a stream means the same, as far as the
			// body alone tells it.
			inStream := answer
			inStream.InStream, inStream.Status = true, http.StatusOK
			known := []account.RejectionKind{account.Funds, account.Entitlement, account.Overload, account.WindowSpent, account.ModelWindow, account.Bare}
			if slices.Contains(known, rejection.Kind) && p.Classify(inStream).Kind != rejection.Kind {
				t.Errorf("in a stream: got %v, want %v", p.Classify(inStream).Kind, rejection.Kind)
			}
		})
	}
}
