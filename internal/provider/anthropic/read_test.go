package anthropic_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/test/capture"
)

// t0 is the instant answers of these tests arrived: epoch 1804154400.
var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

// headers makes headers of lines as the wire has them, with u- short for the unified
// prefix and k- for that of API keys.
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, ok := strings.Cut(l, ": ")
		if !ok {
			panic("a header line without a colon: " + l)
		}
		if rest, ok := strings.CutPrefix(name, "u-"); ok {
			name = "anthropic-ratelimit-unified-" + rest
		} else if rest, ok := strings.CutPrefix(name, "k-"); ok {
			name = "anthropic-ratelimit-" + rest
		}
		h.Add(name, value)
	}
	return h
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name string
		h    []string
		want []string
	}{
		{"nothing", []string{"request-id: req_01Example"}, []string{"nothing"}},
		{"every known window", []string{
			"u-5h-status: allowed", "u-7d-status: allowed", "u-7d_sonnet-status: rejected", "u-7d_opus-utilization: 0.5", "u-7d_oi-utilization: 0.25",
		}, []string{
			"window five-hour status=allowed", "window weekly status=allowed", "window weekly:fable utilization=0.25",
			"window weekly:opus utilization=0.5", "window weekly:sonnet status=rejected",
		}},
		{"unknown windows are windows of their own", []string{
			"u-30d-utilization: 0.4", "u-12h-utilization: 0.3", "u-168h-utilization: 0.2", "u-5h_sonnet-utilization: 0.1", "u-7d_cowork-utilization: 0.9",
			"u-monthly-utilization: 0.05", "u-99999d-utilization: 0.6",
		}, []string{
			"window 12h utilization=0.3", "window 30d utilization=0.4", "window 99999d utilization=0.6", "window five-hour:sonnet utilization=0.1",
			"window monthly utilization=0.05", "window weekly utilization=0.2", "window weekly:cowork utilization=0.9",
		}},
		{"what is no plan window", []string{
			"u-overage-period-monthly-utilization: 0.9", "u-grace-5h-utilization: 1.0", "u-grace-status: rejected", "u-slow-status: active",
			"u-slow-budget-utilization: 1.0", "u-slow-budget-reset: 1804172400", "u-fallback: available", "u-fallback-percentage: 0.5", "u-upgrade-paths: overage",
			"u-overage-utilization: 1.05", "u-overage-reset: 1804172400",
		}, []string{"nothing"}},
		{"values above 1", []string{"u-5h-utilization: 1.08"}, []string{"window five-hour utilization=1.08"}},
		{"bad values go alone", []string{
			"u-5h-status: allowed", "u-5h-utilization: NaN", "u-5h-reset: soon", "u-7d-status: bent", "u-7d-utilization: -0.1", "u-7d-reset: 1804672800",
			"u-7d_opus-status: ", "u-7d_opus-utilization: Inf", "u-7d_opus-reset: 0", "u-7d_sonnet-utilization: half",
		}, []string{"window five-hour status=allowed", "window weekly resets=2027-03-10T10:00:00Z"}},
		{"reset in milliseconds", []string{"u-5h-reset: 1804172400000"}, []string{"window five-hour resets=2027-03-04T15:00:00Z"}},
		{"a reset that has passed is told", []string{"u-5h-reset: 1804154000"}, []string{"window five-hour resets=2027-03-04T09:53:20Z"}},
		{"upper case", []string{"ANTHROPIC-RATELIMIT-UNIFIED-5H-STATUS: Allowed", "ANTHROPIC-RATELIMIT-UNIFIED-7D_OI-STATUS: REJECTED"},
			[]string{"window five-hour status=allowed", "window weekly:fable status=rejected"}},
		{"aggregate alone", []string{"u-status: rejected", "u-representative-claim: seven_day", "u-reset: 1804672800"},
			[]string{"window weekly resets=2027-03-10T10:00:00Z status=rejected", "claim weekly"}},
		{"aggregate without a claim", []string{"u-status: rejected", "u-reset: 1804672800"}, []string{"nothing"}},
		{"aggregate of another window than told", []string{"u-status: rejected", "u-representative-claim: seven_day_opus", "u-reset: 1804672800", "u-5h-status: allowed"},
			[]string{"window five-hour status=allowed", "window weekly:opus resets=2027-03-10T10:00:00Z status=rejected", "claim weekly:opus"}},
		{"aggregate beside the window's own verdict", []string{
			"u-status: rejected", "u-representative-claim: five_hour", "u-reset: 1804672800", "u-5h-status: allowed", "u-5h-reset: 1804172400",
		}, []string{"window five-hour resets=2027-03-04T15:00:00Z status=allowed", "claim five-hour"}},
		{"aggregate fills a window without verdict", []string{"u-status: allowed_warning", "u-representative-claim: five_hour", "u-reset: 1804172400", "u-5h-utilization: 0.91"},
			[]string{"window five-hour utilization=0.91 resets=2027-03-04T15:00:00Z status=allowed_warning", "claim five-hour"}},
		{"claims", []string{"u-representative-claim: seven_day_overage_included"}, []string{"claim weekly:fable"}},
		{"claim five-hour included", []string{"u-representative-claim: five_hour_overage_included"}, []string{"claim five-hour:fable"}},
		{"claim sonnet", []string{"u-representative-claim: seven_day_sonnet"}, []string{"claim weekly:sonnet"}},
		{"claim overage", []string{"u-representative-claim: overage"}, []string{"nothing"}},
		{"claim unknown", []string{"u-representative-claim: seven_days"}, []string{"nothing"}},
		{"overage stands ready", []string{"u-5h-status: allowed", "u-overage-status: allowed"},
			[]string{"window five-hour status=allowed", "overage available"}},
		{"overage stands ready, with a warning", []string{"u-overage-status: allowed_warning"}, []string{"overage available"}},
		{"overage cannot be used", []string{"u-5h-status: rejected", "u-overage-status: rejected"}, []string{"window five-hour status=rejected"}},
		{"charged by its own word", []string{"u-5h-status: allowed", "u-overage-in-use: true"},
			[]string{"window five-hour status=allowed", "overage charged"}},
		{"not in use", []string{"u-overage-in-use: false"}, []string{"nothing"}},
		{"charged, as the plan is spent", []string{"u-status: rejected", "u-5h-status: rejected", "u-overage-status: allowed"},
			[]string{"window five-hour status=rejected", "overage available", "overage charged"}},
		{"charged by the aggregate alone", []string{"u-status: rejected", "u-overage-status: allowed"}, []string{"overage available", "overage charged"}},
		{"two names of one window, the stricter", []string{"u-7d-utilization: 0.2", "u-168h-status: rejected"}, []string{"window weekly status=rejected"}},
		{"organization", []string{"anthropic-organization-id: 00000000-0000-4000-8000-0000000000b1"},
			[]string{"organization 00000000-0000-4000-8000-0000000000b1"}},
		{"key", []string{"k-requests-limit: 50", "k-requests-remaining: 40", "k-requests-reset: 2027-03-04T10:00:12Z"},
			[]string{"window requests utilization=0.2 resets=2027-03-04T10:00:12Z"}},
		{"key, nothing remaining and no limit", []string{"k-tokens-remaining: 0"}, []string{"window tokens utilization=1"}},
		{"key, more remaining than the limit", []string{"k-tokens-limit: 10", "k-tokens-remaining: 12"}, []string{"window tokens utilization=0"}},
		{"key, bad values go alone", []string{"k-tokens-limit: 0", "k-tokens-remaining: 5", "k-tokens-reset: 2027-03-04T10:00:12Z", "k-requests-limit: many"},
			[]string{"window tokens resets=2027-03-04T10:00:12Z"}},
		{"key, a bucket not known", []string{"k-web-search-requests-limit: 100", "k-web-search-requests-remaining: 75"},
			[]string{"window web-search-requests utilization=0.25"}},
		{"other pools", []string{
			"anthropic-priority-input-tokens-limit: 10", "anthropic-priority-input-tokens-remaining: 0",
			"anthropic-fast-output-tokens-limit: 10", "anthropic-fast-output-tokens-remaining: 0",
		}, []string{"nothing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := anthropic.Provider{}.Read(headers(c.h...), t0)
			if !r.At.Equal(t0) || r.Source != account.FromAnswer {
				t.Errorf("got a reading of %v from %q, want %v from answer", r.At, r.Source, t0)
			}
			if got := capture.Describe(r, account.Rejection{}, provider.Usage{}); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add("anthropic-ratelimit-unified-5h-status: rejected\nanthropic-ratelimit-unified-5h-utilization: NaN")
	f.Add("anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-representative-claim: seven_day\nanthropic-ratelimit-unified-reset: 1804672800")
	f.Add("anthropic-ratelimit-requests-limit: 0\nanthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit--reset: 1")
	f.Add("anthropic-ratelimit-unified--status: allowed\nanthropic-ratelimit-unified-_-reset: 1804172400\nretry-after: 9223372037")
	f.Fuzz(func(t *testing.T, lines string) {
		h := http.Header{}
		for line := range strings.SplitSeq(lines, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		p := anthropic.Provider{}
		r := p.Read(h, t0)
		for i, w := range r.Windows {
			if w.Name == "" {
				t.Errorf("%q: a window without a name", lines)
			}
			if i > 0 && r.Windows[i-1].Name > w.Name {
				t.Errorf("%q: windows out of order", lines)
			}
			if !(w.Utilization >= 0) || w.Utilization > 1e308 || (!w.HasUtilization && w.Utilization != 0) {
				t.Errorf("%q: %s is %v full", lines, w.Name, w.Utilization)
			}
			if w.ResetAt.After(t0.AddDate(1, 0, 2)) {
				t.Errorf("%q: %s resets at %v", lines, w.Name, w.ResetAt)
			}
		}
		// A 429 is always classified, and whatever it blocks is named.
		x := p.Classify(provider.Answer{Status: 429, Header: h, At: t0, Request: inference("claude-opus-5"), Kind: account.Subscription})
		if !x.Rejected() || x.Rule == "" {
			t.Errorf("%q: got %+v, want a class and a rule", lines, x)
		}
		for _, s := range x.Spent {
			if s.Window == "" {
				t.Errorf("%q: a spent window without a name", lines)
			}
			if s.Window == account.Weekly && s.Family == "" {
				t.Errorf("%q: a weekly window blocks the whole account", lines)
			}
		}
		if (x.Kind == account.WindowSpent || x.Kind == account.ModelWindow) != (len(x.Spent) > 0) {
			t.Errorf("%q: kind %s with %d spent windows", lines, x.Kind, len(x.Spent))
		}
	})
}
