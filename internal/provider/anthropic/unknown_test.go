package anthropic_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
)

// window-identified-by-slot: a family's window that nobody knew before blocks the family
// that was refused until its own reset, whatever the claim says of windows that allow.
func TestRejectedWindowOfAnUnknownFamily(t *testing.T) {
	at := time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)
	reset := at.Add(6 * 24 * time.Hour)
	for _, claim := range []string{"", "seven_day_newthing", "five_hour"} {
		t.Run("claim "+claim, func(t *testing.T) {
			h := http.Header{}
			for name, value := range map[string]string{
				"Status": "rejected", "Representative-Claim": claim, "5h-Status": "allowed", "5h-Utilization": "0.1", "7d-Status": "allowed",
				"7d-Utilization": "0.2", "7d_newthing-Status": "rejected", "7d_newthing-Utilization": "1.0", "7d_newthing-Reset": strconv.FormatInt(reset.Unix(), 10),
			} {
				if value != "" {
					h.Set("Anthropic-Ratelimit-Unified-"+name, value)
				}
			}
			r := anthropic.Provider{}.Classify(provider.Answer{
				Status: http.StatusTooManyRequests, Header: h, At: at, Kind: account.Subscription,
				Request: provider.Request{Model: "claude-opus-5", Family: "opus"},
				Body:    []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit."}}`),
			})
			s := account.State{}.Reject(r, account.Rules{})
			b, blocked := pick.Blocked(at, pick.Request{Family: "opus", Model: "claude-opus-5"}, pick.Of(account.Account{}, s))
			if r.Kind != account.ModelWindow || !blocked || !b.Until.Equal(reset) {
				t.Errorf("got %s (%s), blocked %v until %v, want the family until %v", r.Kind, r.Rule, blocked, b.Until, reset)
			}
			if _, blocked := pick.Blocked(at, pick.Request{Family: "haiku", Model: "claude-haiku-4-5"}, pick.Of(account.Account{}, s)); blocked {
				t.Error("a family that was not refused is blocked")
			}
		})
	}
}
