package openai_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
	"holdfast/internal/test/capture"
)

// t0 is the instant answers of these tests arrived: epoch 1804154400.
var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

// headers makes headers of lines as the wire has them, with c- short for the prefix of a
// plan's main limit, r- for that of a key's limits.
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, ok := strings.Cut(l, ": ")
		if !ok {
			panic("a header line without a colon: " + l)
		}
		if rest, ok := strings.CutPrefix(name, "c-"); ok {
			name = "x-codex-" + rest
		} else if rest, ok := strings.CutPrefix(name, "r-"); ok {
			name = "x-ratelimit-" + rest
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
		{"nothing", []string{"x-request-id: r", "openai-version: 2020-10-01"}, []string{"nothing"}},

		// window-identified-by-slot
		{"week in the first slot", []string{"c-primary-used-percent: 40", "c-primary-window-minutes: 10080", "c-secondary-used-percent: 0", "c-secondary-window-minutes: 0", "c-secondary-reset-at: "},
			[]string{"window weekly utilization=0.4"}},
		{"month and week", []string{"c-primary-used-percent: 100", "c-primary-window-minutes: 43200", "c-secondary-used-percent: 20", "c-secondary-window-minutes: 10080"},
			[]string{"window 30d utilization=1", "window weekly utilization=0.2"}},
		{"swapped", []string{"c-primary-used-percent: 20", "c-primary-window-minutes: 10080", "c-secondary-used-percent: 70", "c-secondary-window-minutes: 300"},
			[]string{"window five-hour utilization=0.7", "window weekly utilization=0.2"}},
		{"no length: by the slot", []string{"c-primary-used-percent: 7", "c-secondary-used-percent: 9"},
			[]string{"window five-hour utilization=0.07", "window weekly utilization=0.09"}},
		{"a length never seen", []string{"c-primary-used-percent: 50", "c-primary-window-minutes: 720", "c-secondary-used-percent: 25", "c-secondary-window-minutes: 90"},
			[]string{"window 12h utilization=0.5", "window 90m utilization=0.25"}},
		{"lengths a minute short", []string{"c-primary-used-percent: 50", "c-primary-window-minutes: 299", "c-secondary-used-percent: 25", "c-secondary-window-minutes: 10079"},
			[]string{"window five-hour utilization=0.5", "window weekly utilization=0.25"}},
		{"lengths a little long, and too much so", []string{"c-primary-used-percent: 50", "c-primary-window-minutes: 303", "c-secondary-used-percent: 25", "c-secondary-window-minutes: 304"},
			[]string{"window 304m utilization=0.25", "window five-hour utilization=0.5"}},
		{"an absurd length is left out", []string{"c-primary-used-percent: 50", "c-primary-window-minutes: 9223372036854775807"}, []string{"window five-hour utilization=0.5"}},
		{"two of one length, the stricter", []string{"c-primary-used-percent: 20", "c-primary-window-minutes: 300", "c-secondary-used-percent: 70", "c-secondary-window-minutes: 300"},
			[]string{"window five-hour utilization=0.7"}},

		{"nothing used", []string{"c-primary-used-percent: 0", "c-primary-window-minutes: 300", "c-primary-reset-at: 1804172400"},
			[]string{"window five-hour utilization=0 resets=2027-03-04T15:00:00Z"}},
		{"empty except for a reset", []string{"c-primary-used-percent: 0", "c-primary-window-minutes: 0", "c-primary-reset-at: 1804172400"},
			[]string{"window five-hour utilization=0 resets=2027-03-04T15:00:00Z"}},
		{"empty", []string{"c-primary-used-percent: 0", "c-primary-window-minutes: 0", "c-primary-reset-at: ", "c-primary-reset-after-seconds: 0", "c-secondary-used-percent: 0.0"}, []string{"nothing"}},
		{"reset by seconds from now", []string{"c-primary-used-percent: 1.5", "c-primary-window-minutes: 300", "c-primary-reset-at: ", "c-primary-reset-after-seconds: 18000"},
			[]string{"window five-hour utilization=0.015 resets=2027-03-04T15:00:00Z"}},
		{"reset at an instant counts first", []string{"c-primary-used-percent: 1", "c-primary-window-minutes: 300", "c-primary-reset-at: 1804158720", "c-primary-reset-after-seconds: 18000"},
			[]string{"window five-hour utilization=0.01 resets=2027-03-04T11:12:00Z"}},
		{"reset in milliseconds", []string{"c-primary-used-percent: 1", "c-primary-window-minutes: 300", "c-primary-reset-at: 1804158720000"},
			[]string{"window five-hour utilization=0.01 resets=2027-03-04T11:12:00Z"}},
		{"above 100", []string{"c-primary-used-percent: 104", "c-primary-window-minutes: 300"}, []string{"window five-hour utilization=1.04"}},
		{"bad values go alone", []string{"c-primary-used-percent: NaN", "c-primary-window-minutes: 300", "c-primary-reset-at: 1804172400",
			"c-secondary-used-percent: 12", "c-secondary-window-minutes: weekly", "c-secondary-reset-at: soon", "c-secondary-reset-after-seconds: -5"},
			[]string{"window five-hour resets=2027-03-04T15:00:00Z", "window weekly utilization=0.12"}},
		{"nothing readable", []string{"c-primary-used-percent: -1", "c-primary-window-minutes: 300", "c-primary-reset-at: never"}, []string{"nothing"}},

		{"a limit without a name of its own", []string{"x-codex-bengalfox-primary-used-percent: 5", "x-codex-bengalfox-primary-window-minutes: 10080"}, []string{"window weekly:bengalfox utilization=0.05"}},
		{"a limit named for a model", []string{"x-codex-bengalfox-primary-used-percent: 5", "x-codex-bengalfox-primary-window-minutes: 300", "x-codex-bengalfox-limit-name: GPT-5.3-Codex-Spark"},
			[]string{"window five-hour:gpt-5.3-codex-spark utilization=0.05"}},
		{"a limit with an odd name", []string{"x-codex-other-primary-used-percent: 5", "x-codex-other-primary-window-minutes: 300", "x-codex-other-limit-name: A: b/C"},
			[]string{"window five-hour:a--b-c utilization=0.05"}},
		{"an additional limit", []string{"X-Codex-Additional-Spark-Primary-Used-Percent: 5", "X-Codex-Additional-Spark-Primary-Window-Minutes: 300"}, []string{"window five-hour:spark utilization=0.05"}},
		{"a limit outside the family", []string{"x-premium-primary-used-percent: 5", "x-premium-primary-window-minutes: 300"}, []string{"window five-hour:premium utilization=0.05"}},

		{"credits", []string{"c-credits-has-credits: True", "c-credits-unlimited: False", "c-credits-balance: 12.50"}, []string{"overage available"}},
		{"credits, balance untold", []string{"c-credits-has-credits: 1", "c-credits-balance: "}, []string{"overage available"}},
		{"credits used up", []string{"c-credits-has-credits: true", "c-credits-balance: 0.00"}, []string{"nothing"}},
		{"credits without end", []string{"c-credits-has-credits: False", "c-credits-unlimited: TRUE", "c-credits-balance: 0"}, []string{"overage available"}},
		{"no credits", []string{"c-credits-has-credits: False", "c-credits-unlimited: False", "c-credits-balance: 5"}, []string{"nothing"}},

		{"key", []string{"r-limit-requests: 60", "r-remaining-requests: 45", "r-reset-requests: 1s", "r-limit-tokens: 150000", "r-remaining-tokens: 0", "r-reset-tokens: 6m0s"},
			[]string{"window requests utilization=0.25 resets=2027-03-04T10:00:01Z", "window tokens utilization=1 resets=2027-03-04T10:06:00Z"}},
		{"key, project", []string{"r-limit-project-tokens: 100", "r-remaining-project-tokens: 25", "r-reset-project-tokens: 1m", "r-remaining-project-requests: 0"},
			[]string{"window project-requests utilization=1", "window project-tokens utilization=0.75 resets=2027-03-04T10:01:00Z"}},
		{"key, odd spellings", []string{"r-limit-tokens: 30,000", "r-remaining-tokens: 15,000", "r-reset-tokens: 90", "r-reset-requests: 16m17.764s"},
			[]string{"window requests resets=2027-03-04T10:16:17Z", "window tokens utilization=0.5 resets=2027-03-04T10:01:30Z"}},
		{"key, by use", []string{"r-limit-tokens_usage_based: 40000", "r-remaining-tokens_usage_based: 30000"}, []string{"window tokens_usage_based utilization=0.25"}},
		{"key, bad values go alone", []string{"r-limit-tokens: 1,00", "r-remaining-tokens: 5", "r-reset-tokens: 250ms", "r-limit-requests: -1", "r-remaining-requests: -1", "r-reset-requests: "},
			[]string{"window tokens resets=2027-03-04T10:00:00Z"}},
		{"key, a limit of nothing is left out", []string{"r-limit-tokens: 0", "r-remaining-tokens: 0"}, []string{"nothing"}},
		{"key, more remaining than the limit", []string{"r-limit-tokens: 10", "r-remaining-tokens: 12"}, []string{"window tokens utilization=0"}},
		{"organization", []string{"openai-organization: org-example"}, []string{"organization org-example"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := openai.Provider{}.Read(headers(c.h...), t0)
			if !r.At.Equal(t0) || r.Source != account.FromAnswer {
				t.Errorf("got a reading of %v from %q, want %v from answer", r.At, r.Source, t0)
			}
			if got := capture.Describe(r, account.Rejection{}, provider.Usage{}); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// A limit's name and the model it is about are one family, so that the window binds that
// model and no other.
func TestLimitBindsItsModel(t *testing.T) {
	r := openai.Provider{}.Read(headers("x-codex-bengalfox-primary-used-percent: 100", "x-codex-bengalfox-primary-window-minutes: 300", "x-codex-bengalfox-limit-name: GPT-5.3-Codex-Spark"), t0)
	name := r.Windows[0].Name
	if !account.Binds(name, inference("gpt-5.3-codex-spark").Family) {
		t.Errorf("%s does not bind its model", name)
	}
	if account.Binds(name, inference("gpt-5.3-codex").Family) {
		t.Errorf("%s binds another model", name)
	}
}

func checkReading(t *testing.T, from string, r account.Reading) {
	t.Helper()
	for i, w := range r.Windows {
		if w.Name == "" {
			t.Errorf("%q: a window without a name", from)
		}
		if i > 0 && r.Windows[i-1].Name > w.Name {
			t.Errorf("%q: windows out of order", from)
		}
		if !(w.Utilization >= 0) || w.Utilization > 1e308 || (!w.HasUtilization && w.Utilization != 0) {
			t.Errorf("%q: %s is %v full", from, w.Name, w.Utilization)
		}
		if w.ResetAt.After(t0.AddDate(1, 0, 2)) {
			t.Errorf("%q: %s resets at %v", from, w.Name, w.ResetAt)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("x-codex-primary-used-percent: 100\nx-codex-primary-window-minutes: 300\nx-codex-primary-reset-at: 1804172400")
	f.Add("x-codex-primary-used-percent: NaN\nx-codex-active-limit: codex_bengalfox\nx-codex-bengalfox-secondary-used-percent: 1e300\nx-codex-bengalfox-limit-name: :")
	f.Add("x-ratelimit-limit-requests: 0\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-: 1\nx-ratelimit-reset-tokens: 6m0s")
	f.Add("x--primary-used-percent: 3\nx-codex-credits-balance: Inf\nretry-after: 9223372037")
	f.Fuzz(func(t *testing.T, lines string) {
		h := http.Header{}
		for line := range strings.SplitSeq(lines, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		p := openai.Provider{}
		checkReading(t, lines, p.Read(h, t0))
		// A 429 is always classified, and whatever it blocks is named.
		for _, body := range []string{"", `{"error":{"type":"usage_limit_reached"}}`} {
			x := p.Classify(provider.Answer{Status: 429, Header: h, Body: []byte(body), At: t0, Request: inference("gpt-5.5"), Kind: account.Subscription})
			if !x.Rejected() || x.Rule == "" {
				t.Errorf("%q: got %+v, want a class and a rule", lines, x)
			}
			for _, s := range x.Spent {
				if s.Window == "" {
					t.Errorf("%q: a spent window without a name", lines)
				}
			}
			if (x.Kind == account.WindowSpent || x.Kind == account.ModelWindow) != (len(x.Spent) > 0) {
				t.Errorf("%q: kind %s with %d spent windows", lines, x.Kind, len(x.Spent))
			}
		}
	})
}

// Field case marks-without-an-end: an empty reset, or one of zero seconds, is no reset, in
// headers and at the usage endpoint.
func TestEmptyResets(t *testing.T) {
	for _, lines := range [][]string{
		{"c-primary-reset-at: ", "c-primary-reset-after-seconds: 0"},
		{"c-primary-reset-at: null", "c-primary-reset-after-seconds: 0"},
		{"c-primary-reset-at: 0", "c-primary-reset-after-seconds: "},
		{"c-primary-reset-after-seconds: 0.0"},
	} {
		h := headers(append(lines, "c-primary-used-percent: 42", "c-primary-window-minutes: 300")...)
		r := openai.Provider{}.Read(h, t0)
		if len(r.Windows) != 1 || r.Windows[0].Utilization != 0.42 || !r.Windows[0].ResetAt.IsZero() {
			t.Errorf("%q: got %+v, want 42 %% and no reset", lines, r.Windows)
		}
	}
	for _, reset := range []string{`"reset_at":null,"reset_after_seconds":0`, `"reset_at":0,"reset_after_seconds":0`, `"reset_after_seconds":null`} {
		body := `{"rate_limit":{"allowed":true,"limit_reached":false,"primary_window":{"used_percent":42,"limit_window_seconds":18000,` + reset + `},"secondary_window":null}}`
		r, err := openai.Provider{}.Looked(0, provider.Reply{Status: http.StatusOK, Body: []byte(body), At: t0})
		if err != nil || len(r.Windows) != 1 || r.Windows[0].Utilization != 0.42 || !r.Windows[0].ResetAt.IsZero() {
			t.Errorf("%s: got %+v, %v, want 42 %% and no reset", reset, r.Windows, err)
		}
	}
}
