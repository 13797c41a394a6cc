package provider_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/provider"
)

func TestLimitHeaders(t *testing.T) {
	h := http.Header{}
	for name, value := range map[string]string{
		"anthropic-ratelimit-unified-status": "rejected", "x-ratelimit-remaining-tokens": "0", "x-codex-primary-used-percent": "100",
		"retry-after": "12", "x-should-retry": "true",
		"authorization": "Bearer secret", "set-cookie": "a=b", "x-request-id": "req_1", "content-type": "application/json",
	} {
		h.Set(name, value)
	}
	h.Add("retry-after", "13")
	want := map[string]string{
		"anthropic-ratelimit-unified-status": "rejected", "x-ratelimit-remaining-tokens": "0", "x-codex-primary-used-percent": "100",
		"retry-after": "12, 13", "x-should-retry": "true",
	}
	if d := cmp.Diff(want, provider.LimitHeaders(h)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
