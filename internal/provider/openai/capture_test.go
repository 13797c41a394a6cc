package openai_test

import (
	"net/http"
	"os"
	"slices"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
	"holdfast/internal/test/capture"
	"holdfast/internal/wire/body"
)

var codex = http.Header{"Originator": {"codex_exec"}, "User-Agent": {"codex_exec/0.171.0 (Linux 6.1; x86_64) xterm"}}

// inference is what Codex's ordinary request for a model is made into.
func inference(model string) provider.Request {
	return openai.Provider{}.Inspect("POST", "/v1/responses", codex, body.Facts{Model: model, Stream: true})
}

type event struct{ name, data string }

func TestCaptures(t *testing.T) {
	captures, err := capture.Load(os.DirFS("../../../testdata/captures"), "openai")
	if err != nil {
		t.Fatal(err)
	}
	p := openai.Provider{}
	for _, c := range captures {
		t.Run(c.Name, func(t *testing.T) {
			answer, rejection := capture.Check(t, p, c, inference(c.Model))
			if !rejection.Rejected() {
				return
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
