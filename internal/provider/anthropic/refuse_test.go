package anthropic_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
)

// Cases of what-the-client-is-told-when-all-is-spent.
func TestRefuseHeaders(t *testing.T) {
	in := func(d time.Duration) time.Time { return t0.Add(d) }
	for _, c := range []struct {
		name string
		r    provider.Refusal
		want map[string]string // without content-type; u- as in headers
	}{
		{"spent until 72 minutes", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(72 * time.Minute), Window: account.FiveHour, ResetAt: in(72 * time.Minute)},
			map[string]string{"u-status": "rejected", "u-representative-claim": "five_hour", "u-reset": "1804158720",
				"u-5h-status": "rejected", "u-5h-reset": "1804158720"}},
		{"spent for seconds: to be sat out", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(59500 * time.Millisecond), Window: account.FiveHour, ResetAt: in(59500 * time.Millisecond)},
			map[string]string{"u-status": "rejected", "u-representative-claim": "five_hour", "u-reset": "1804154460",
				"u-5h-status": "rejected", "u-5h-reset": "1804154460"}},
		{"a week spent", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(72 * time.Hour), Window: account.Weekly, ResetAt: in(72 * time.Hour)},
			map[string]string{"u-status": "rejected", "u-representative-claim": "seven_day", "u-reset": "1804413600",
				"u-7d-status": "rejected", "u-7d-reset": "1804413600"}},
		{"the Opus window spent", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(72 * time.Hour), Window: "weekly:opus", Family: "opus", ResetAt: in(72 * time.Hour)},
			map[string]string{"u-status": "rejected", "u-representative-claim": "seven_day_opus", "u-reset": "1804413600",
				"u-7d_opus-status": "rejected", "u-7d_opus-reset": "1804413600"}},
		{"the week spent for Sonnet", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(time.Hour), Window: account.Weekly, Family: "sonnet", ResetAt: in(time.Hour)},
			map[string]string{"u-status": "rejected", "u-representative-claim": "seven_day_sonnet", "u-reset": "1804158000",
				"u-7d_sonnet-status": "rejected", "u-7d_sonnet-reset": "1804158000"}},
		{"the Fable window spent", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(time.Hour), Window: "weekly:fable", Family: "fable", ResetAt: in(time.Hour)},
			map[string]string{"u-status": "rejected", "u-representative-claim": "seven_day_overage_included", "u-reset": "1804158000",
				"u-7d_oi-status": "rejected", "u-7d_oi-reset": "1804158000"}},
		{"the week spent for a family without a claim", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(time.Hour), Window: account.Weekly, Family: "haiku", ResetAt: in(time.Hour)},
			map[string]string{"u-status": "rejected", "u-representative-claim": "seven_day", "u-reset": "1804158000",
				"u-7d-status": "rejected", "u-7d-reset": "1804158000"}},
		{"a window without a claim", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(time.Hour), Window: "30d", ResetAt: in(time.Hour)},
			map[string]string{"u-status": "rejected", "u-reset": "1804158000"}},
		{"the account is tried before the window resets", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(10 * time.Minute), Window: account.FiveHour, ResetAt: in(time.Hour)},
			map[string]string{"u-status": "rejected", "u-representative-claim": "five_hour", "u-reset": "1804158000",
				"u-5h-status": "rejected", "u-5h-reset": "1804158000"}},
		{"spent, no reset known", provider.Refusal{Kind: provider.Exhausted, Status: 429, RetryAt: in(time.Hour), Window: account.FiveHour},
			map[string]string{"u-status": "rejected", "u-representative-claim": "five_hour", "u-reset": "1804158000",
				"u-5h-status": "rejected", "u-5h-reset": "1804158000"}},
		{"spent, nothing known", provider.Refusal{Kind: provider.Exhausted, Status: 429},
			map[string]string{"u-status": "rejected"}},
		{"paused", provider.Refusal{Kind: provider.Paused, Status: 429, RetryAt: in(4200 * time.Millisecond)}, nil},
		{"yielded", provider.Refusal{Kind: provider.Yielded, Status: 429, RetryAt: in(30 * time.Second)}, nil},
		{"store away", provider.Refusal{Kind: provider.StoreUnavailable, Status: 503}, nil},
		{"no account", provider.Refusal{Kind: provider.NoAccount, Status: 503}, nil},
		{"unreachable", provider.Refusal{Kind: provider.UpstreamUnreachable, Status: 502}, nil},
		{"unauthorized", provider.Refusal{Kind: provider.Unauthorized, Status: 401}, nil},
		{"too large", provider.Refusal{Kind: provider.TooLarge, Status: 413}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := anthropic.Provider{}.Refuse(c.r, t0)
			want := http.Header{"Content-Type": {"application/json"}}
			for name, value := range c.want {
				for k, v := range headers(name + ": " + value) {
					want[k] = v
				}
			}
			if !maps.EqualFunc(h, want, slices.Equal) {
				t.Errorf("got\n\t%v\nwant\n\t%v", h, want)
			}
		})
	}
}

// What we say of a spent window, we would understand ourselves.
func TestRefuseIsReadBack(t *testing.T) {
	p := anthropic.Provider{}
	for _, window := range []string{account.FiveHour, account.Weekly, "weekly:opus", "weekly:sonnet", "weekly:fable"} {
		h, b := p.Refuse(provider.Refusal{
			Kind: provider.Exhausted, Status: 429, Window: window, Family: account.FamilyOf(window), ResetAt: t0.Add(time.Hour), RetryAt: t0.Add(time.Hour),
		}, t0)
		r := p.Read(h, t0)
		if len(r.Windows) != 1 || r.Windows[0].Name != window || r.Windows[0].Status != account.Rejected || !r.Windows[0].ResetAt.Equal(t0.Add(time.Hour)) || r.Claim != window {
			t.Errorf("%s: got %+v, want it rejected for an hour", window, r)
		}
		x := p.Classify(provider.Answer{Status: 429, Header: h, Body: b, At: t0, Request: inference("claude-opus-5"), Kind: account.Subscription})
		if x.Kind != account.WindowSpent && x.Kind != account.ModelWindow {
			t.Errorf("%s: got kind %s, want a spent window", window, x.Kind)
		}
	}
}

func TestRefuseBody(t *testing.T) {
	for _, c := range []struct {
		status   int
		wantType string
	}{
		{400, "invalid_request_error"}, {401, "authentication_error"}, {402, "billing_error"}, {403, "permission_error"}, {404, "not_found_error"},
		{409, "conflict_error"}, {413, "request_too_large"}, {415, "invalid_request_error"}, {426, "invalid_request_error"}, {429, "rate_limit_error"},
		{500, "api_error"}, {502, "api_error"}, {503, "api_error"}, {504, "timeout_error"}, {529, "overloaded_error"},
	} {
		r := provider.Refusal{Kind: provider.Internal, Status: c.status, Message: "Say \"so\" <here>.\nThen wait.", Request: "hr_1", Dialect: provider.Messages}
		_, plain := anthropic.Provider{}.Refuse(r, t0)
		stream := anthropic.Provider{}.StreamError(r)
		data, ok := bytes.CutPrefix(stream, []byte("event: error\ndata: "))
		data, end := bytes.CutSuffix(data, []byte("\n\n"))
		if !ok || !end || bytes.ContainsAny(data, "\r\n") {
			t.Fatalf("stream error: got %q, want one event of one data line", stream)
		}
		for _, b := range [][]byte{plain, data} {
			var got struct {
				Type  string `json:"type"`
				Error struct {
					Type    string `json:"type"`
					Message string `json:"message"`
				} `json:"error"`
				RequestID string `json:"request_id"`
			}
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			if got.Type != "error" || got.Error.Type != c.wantType || got.Error.Message != r.Message || got.RequestID != "hr_1" {
				t.Errorf("%d: got %+v, want %s with the message and id", c.status, got, c.wantType)
			}
		}
	}
	_, b := anthropic.Provider{}.Refuse(provider.Refusal{Kind: provider.NotFound, Status: 404}, t0)
	if strings.Contains(string(b), "request_id") || !strings.Contains(string(b), "Not Found") {
		t.Errorf("got %s, want a message and no id", b)
	}
}
