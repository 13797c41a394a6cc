package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
)

// TestRows: each known refusal is understood by its own row, whether the word comes as code
// or as type, and within a stream as outside of one.
func TestRows(t *testing.T) {
	asked := provider.Request{
		Role: provider.Inference, Model: "gpt-x", Family: "gpt-x", Tier: "priority", Features: []string{"scope:responses"},
	}
	things := map[subject]account.Thing{
		theModel: {Model: "gpt-x"}, theTier: {Model: "gpt-x", Tier: "priority"}, theScope: {Feature: "scope:responses"},
		theAddress: {Feature: account.FeatureAddress}, theRegion: {Feature: account.FeatureRegion}, theOrganization: {Feature: account.FeatureOrganization},
	}
	for i, r := range refusals {
		t.Run(fmt.Sprint(i, " ", r.word, r.phrase, r.part), func(t *testing.T) {
			if r.word == "" && r.phrase == "" && r.part == "" && r.status == 0 {
				t.Fatal("the row matches everything")
			}
			status := r.status
			if status == 0 {
				status = http.StatusBadRequest
			}
			for _, word := range []string{"code", "type"} {
				body, err := json.Marshal(map[string]any{"error": map[string]string{word: r.word, "message": r.phrase + " " + r.part}})
				if err != nil {
					t.Fatal(err)
				}
				x := Provider{}.Classify(provider.Answer{Status: status, Body: body, At: time.Unix(1, 0), Request: asked, Kind: account.Key})
				if x.Kind != r.kind || x.Rule != r.rule {
					t.Errorf("as %s: got %s by %s, want %s by %s", word, x.Kind, x.Rule, r.kind, r.rule)
				}
				if want := things[r.of]; r.kind == account.Access && x.Thing() != want {
					t.Errorf("as %s: got it of %+v, want %+v", word, x.Thing(), want)
				}
				if r.status != 0 {
					continue
				}
				x = Provider{}.Classify(provider.Answer{Status: http.StatusOK, InStream: true, Body: body, At: time.Unix(1, 0), Request: asked, Kind: account.Key})
				if x.Kind != r.kind {
					t.Errorf("as %s in a stream: got %s, want %s", word, x.Kind, r.kind)
				}
			}
		})
	}
}

// TestPublishedCodes: every code that the SDKs and the documentation list is judged by a row,
// or is a rate limit's or an allowance's.
func TestPublishedCodes(t *testing.T) {
	for _, code := range []string{
		// ResponseError of the SDKs.
		"server_error", "rate_limit_exceeded", "invalid_prompt", "vector_store_timeout", "invalid_image", "invalid_image_format",
		"invalid_base64_image", "invalid_image_url", "image_too_large", "image_too_small", "image_parse_error",
		"image_content_policy_violation", "invalid_image_mode", "image_file_too_large", "unsupported_image_media_type",
		"empty_image_file", "failed_to_download_image", "image_file_not_found",
		// The error codes guide and the articles it links.
		"invalid_api_key", "slow_down", "server_is_overloaded", "credit_balance_exhausted", "organization_spend_limit_exceeded",
		"project_spend_limit_exceeded", "organization_usage_limit_exceeded", "insufficient_quota", "resource_unavailable",
		"model_not_found", "incorrect_hostname", "unsupported_country_region_territory", "usage_limit_reached",
	} {
		f := failure{code: code}
		if _, known := f.known(0); !known && !f.is(limitWords...) && !f.is(spentWords...) {
			t.Errorf("%s has no row", code)
		}
	}
}

// TestTierLimits is field case bulk-refusals-stop-interactive-work: what a tier of low or high
// priority hears is of that tier, unless a budget of the model is spent.
func TestTierLimits(t *testing.T) {
	for _, c := range []struct {
		name, tier, code string
		h                http.Header
		kind             account.RejectionKind
		want             string
	}{
		{"flex without room", "flex", "resource_unavailable", nil, account.Throttle, "flex"},
		{"flex, bare", "flex", "", nil, account.Throttle, "flex"},
		{"flex with budgets that are not spent", "flex", "rate_limit_exceeded", http.Header{"X-Ratelimit-Remaining-Tokens": {"9"}}, account.Throttle, "flex"},
		{"flex, and the model's budget is spent", "flex", "rate_limit_exceeded", http.Header{"X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {"6s"}}, account.Throttle, ""},
		{"the project's own tier", "", "resource_unavailable", nil, account.Throttle, ""},
		{"bare", "", "", nil, account.Bare, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := Provider{}.Classify(provider.Answer{
				Status: http.StatusTooManyRequests, Header: c.h, Body: []byte(`{"error":{"message":"no","code":"` + c.code + `"}}`), At: time.Unix(1, 0),
				Request: provider.Request{Role: provider.Inference, Model: "m", Family: "m", Tier: c.tier}, Kind: account.Key,
			})
			if x.Kind != c.kind || x.Tier != c.want {
				t.Errorf("got %s of tier %q by %s, want %s of tier %q", x.Kind, x.Tier, x.Rule, c.kind, c.want)
			}
		})
	}
}
