package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
)

// TestRows: each known refusal is understood by its own row.
func TestRows(t *testing.T) {
	asked := provider.Request{Role: provider.Inference, Model: "claude-x", Family: "opus", Features: []string{FastMode}}
	things := map[subject]account.Thing{
		theModel: {Model: "claude-x"}, theFeature: {Feature: FastMode}, theOwnFeature: {Feature: FastMode}, theLongContext: {Feature: LongContext},
		theThirdParty: {Feature: ThirdParty}, theKeyPath: {Feature: KeyPath}, theWorkspace: {Feature: account.FeatureOrganization},
	}
	for i, r := range append(append([]row(nil), refusals...), extraUsages...) {
		t.Run(fmt.Sprint(i, " ", r.errorType, r.code, r.phrase, r.part), func(t *testing.T) {
			if r == (row{kind: r.kind, rule: r.rule, of: r.of}) {
				t.Fatal("the row matches everything")
			}
			status := r.status
			if status == 0 {
				status = http.StatusBadRequest
			}
			body, err := json.Marshal(map[string]any{"error": map[string]any{
				"type": r.errorType, "message": r.phrase + " " + r.part, "details": map[string]string{"error_code": r.code},
			}})
			if err != nil {
				t.Fatal(err)
			}
			x := Provider{}.Classify(provider.Answer{Status: status, Body: body, At: time.Unix(1, 0), Request: asked, Kind: account.Key})
			if x.Kind != r.kind || x.Rule != r.rule {
				t.Errorf("got %s by %s, want %s by %s", x.Kind, x.Rule, r.kind, r.rule)
			}
			if want := things[r.of]; (r.kind == account.Access || r.kind == account.Entitlement) && x.Thing() != want {
				t.Errorf("got it of %+v, want %+v", x.Thing(), want)
			}
		})
	}
}

// TestPublishedTypes: every error type that the documentation and the SDKs list is judged, in
// a stream too.
func TestPublishedTypes(t *testing.T) {
	for kind, want := range map[string]account.RejectionKind{
		"invalid_request_error": account.ClientFault, "authentication_error": account.BadCredential, "billing_error": account.Funds,
		"permission_error": account.Access, "not_found_error": account.ClientFault, "conflict_error": account.ClientFault,
		"request_too_large": account.ClientFault, "rate_limit_error": account.Bare, "api_error": account.Overload,
		"timeout_error": account.Overload, "overloaded_error": account.Overload,
	} {
		x := Provider{}.Classify(provider.Answer{
			Status: http.StatusOK, InStream: true, Body: []byte(`{"type":"error","error":{"type":"` + kind + `","message":"no"}}`), At: time.Unix(1, 0),
			Request: provider.Request{Role: provider.Inference, Model: "m"}, Kind: account.Key,
		})
		if x.Kind != want {
			t.Errorf("%s: got %s by %s, want %s", kind, x.Kind, x.Rule, want)
		}
	}
}

// TestTooLarge is field case grown-beyond-a-key: a bucket that refuses while it is full shows
// that the request alone is more than the limit.
func TestTooLarge(t *testing.T) {
	const message = "This request would exceed your organization's rate limit of 30,000 input tokens per minute (org: x, model: claude-x)."
	for _, c := range []struct {
		name, limit, remaining, message string
		want                            account.RejectionKind
	}{
		{"full", "30000", "30000", message, account.TooLarge},
		{"not full", "30000", "29000", message, account.Throttle},
		{"full, and another limit refuses", "30000", "30000", "This request would exceed your organization's rate limit of 50 requests per minute.", account.Throttle},
		{"untold", "", "", message, account.Bare},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			if c.limit != "" {
				h.Set("Anthropic-Ratelimit-Input-Tokens-Limit", c.limit)
				h.Set("Anthropic-Ratelimit-Input-Tokens-Remaining", c.remaining)
				h.Set("Anthropic-Ratelimit-Input-Tokens-Reset", "1970-01-01T00:01:00Z")
			}
			body, err := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": "rate_limit_error", "message": c.message}})
			if err != nil {
				t.Fatal(err)
			}
			x := Provider{}.Classify(provider.Answer{
				Status: http.StatusTooManyRequests, Header: h, Body: body, At: time.Unix(1, 0),
				Request: provider.Request{Role: provider.Inference, Model: "m"}, Kind: account.Key,
			})
			if x.Kind != c.want || (c.want == account.TooLarge && (x.Limit != account.InputTokens || x.LimitTokens != 30000)) {
				t.Errorf("got %+v, want %s", x, c.want)
			}
		})
	}
}
