package provider_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"holdfast/internal/provider"
)

// TestWait is field case should-retry: clients retry a refusal for minutes in which they do
// not show its message, unless it says that retrying is useless. What passes by itself within
// moments never names one.
func TestWait(t *testing.T) {
	now := time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)
	in := func(d time.Duration) time.Time { return now.Add(d) }
	for _, c := range []struct {
		name          string
		r             provider.Refusal
		after, should string
	}{
		{"unauthorized", provider.Refusal{Kind: provider.Unauthorized, Status: 401}, "", "false"},
		{"not an admin key", provider.Refusal{Kind: provider.Unauthorized, Status: 403}, "", "false"},
		{"bad request", provider.Refusal{Kind: provider.BadRequest, Status: 400}, "", "false"},
		{"no such method", provider.Refusal{Kind: provider.BadRequest, Status: 405}, "", "false"},
		{"a slow body", provider.Refusal{Kind: provider.BadRequest, Status: 408}, "", "false"},
		{"an unknown coding", provider.Refusal{Kind: provider.BadRequest, Status: 415}, "", "false"},
		{"upgrade", provider.Refusal{Kind: provider.BadRequest, Status: 426}, "", "false"},
		{"not found", provider.Refusal{Kind: provider.NotFound, Status: 404}, "", "false"},
		{"too large", provider.Refusal{Kind: provider.TooLarge, Status: 413}, "", "false"},
		{"no account", provider.Refusal{Kind: provider.NoAccount, Status: 503}, "", "false"},
		{"exhausted", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(90 * time.Minute), ResetAt: in(2 * time.Hour)}, "5400", "false"},
		{"exhausted, by the reset alone", provider.Refusal{Kind: provider.Exhausted, Status: 429, ResetAt: in(59500 * time.Millisecond)}, "60", "false"},
		{"exhausted, without a reset", provider.Refusal{Kind: provider.Exhausted, Status: 429}, "", "false"},
		{"paused, rounded up", provider.Refusal{Kind: provider.Paused, Status: 429, RetryAt: in(4100 * time.Millisecond)}, "5", ""},
		{"paused, over by now", provider.Refusal{Kind: provider.Paused, Status: 429, RetryAt: in(-time.Second)}, "1", ""},
		{"paused for minutes", provider.Refusal{Kind: provider.Paused, Status: 429, RetryAt: in(4 * time.Minute)}, "240", ""},
		{"yielded", provider.Refusal{Kind: provider.Yielded, Status: 429, RetryAt: in(time.Hour)}, "3600", ""},
		{"yielded, nothing known", provider.Refusal{Kind: provider.Yielded, Status: 429}, "", ""},
		{"busy", provider.Refusal{Kind: provider.Busy, Status: 503, RetryAt: in(time.Second)}, "1", ""},
		{"store away", provider.Refusal{Kind: provider.StoreUnavailable, Status: 503}, "2", ""},
		{"store away, told how long", provider.Refusal{Kind: provider.StoreUnavailable, Status: 503, RetryAt: in(9 * time.Second)}, "9", ""},
		{"a login that is being renewed", provider.Refusal{Kind: provider.UpstreamUnreachable, Status: 503, RetryAt: in(5 * time.Second)}, "5", ""},
		{"unreachable", provider.Refusal{Kind: provider.UpstreamUnreachable, Status: 502}, "", ""},
		{"internal", provider.Refusal{Kind: provider.Internal, Status: 500}, "", ""},
	} {
		h, want := http.Header{}, http.Header{}
		c.r.Wait(h, now)
		if c.after != "" {
			want["Retry-After"] = []string{c.after}
		}
		if c.should != "" {
			want["X-Should-Retry"] = []string{c.should}
		}
		if !maps.EqualFunc(h, want, slices.Equal) {
			t.Errorf("%s: got %v, want %v", c.name, h, want)
		}
	}
}
