package anthropic_test

import (
	"net/http"
	"os"
	"slices"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/test/capture"
	"holdfast/internal/wire/body"
)

var claudeCode = http.Header{"User-Agent": {"claude-cli/2.1.332 (external, cli)"}}

// inference is what Claude Code's ordinary request for a model is made into.
func inference(model string) provider.Request {
	return anthropic.Provider{}.Inspect("POST", "/v1/messages", claudeCode, body.Facts{Model: model, Stream: true})
}

type event struct{ name, data string }

func TestCaptures(t *testing.T) {
	captures, err := capture.Load(os.DirFS("../../../testdata/captures"), "anthropic")
	if err != nil {
		t.Fatal(err)
	}
	p := anthropic.Provider{}
	for _, c := range captures {
		t.Run(c.Name, func(t *testing.T) {
			answer, rejection := capture.Check(t, p, c, inference(c.Model))
			if !rejection.Rejected() {
				return
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
