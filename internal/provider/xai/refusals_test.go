package xai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
)

// TestRows: each known refusal is understood by its own row, under each of its statuses.
func TestRows(t *testing.T) {
	asked := provider.Request{Role: provider.Inference, Model: "grok-x", Family: "grok-x", Features: []string{ChatEndpoint}}
	things := map[subject]account.Thing{
		theModel: {Model: "grok-x"}, theKeyPath: {Feature: KeyPath}, theChatEndpoint: {Feature: ChatEndpoint},
	}
	for i, r := range refusals {
		t.Run(fmt.Sprint(i, " ", r.code, r.begins, r.has), func(t *testing.T) {
			statuses := r.statuses
			if statuses == nil {
				statuses = []int{http.StatusBadRequest, http.StatusForbidden}
			}
			body, err := json.Marshal(map[string]string{"code": r.code, "error": r.begins + r.has})
			if err != nil {
				t.Fatal(err)
			}
			for _, status := range statuses {
				// What a stream tells has no status of its own.
				a := provider.Answer{Status: status, Body: body, At: time.Unix(1, 0), Request: asked, Kind: account.Subscription, InStream: status >= 500}
				if a.InStream {
					a.Status = http.StatusOK
				}
				x := Provider{}.Classify(a)
				if x.Kind != r.kind || x.Rule != r.rule {
					t.Errorf("%d: got %s by %s, want %s by %s", status, x.Kind, x.Rule, r.kind, r.rule)
				}
				if want := things[r.of]; (r.kind == account.Access || r.kind == account.Entitlement) && x.Thing() != want {
					t.Errorf("%d: got it of %+v, want %+v", status, x.Thing(), want)
				}
				if (r.of == theAllowance || r.of == theDay) != (len(x.Spent) > 0) {
					t.Errorf("%d: got %d windows spent", status, len(x.Spent))
				}
			}
		})
	}
}
