package limits_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/wire/limits"
)

// at is the instant the answers of these tests arrived.
var at = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

func TestRetryAfter(t *testing.T) {
	const year = 366 * 24 * time.Hour
	date := func(s string) http.Header { return http.Header{"Retry-After": {s}} }
	for _, c := range []struct {
		name string
		h    http.Header
		want time.Duration // from at; negative: not told
	}{
		{"none", http.Header{}, -1},
		{"seconds", date("12"), 12 * time.Second},
		{"fraction", date("12.5"), 12500 * time.Millisecond},
		{"spaces", date(" 90 "), 90 * time.Second},
		{"word", date("soon"), -1},
		{"empty", date(""), -1},
		{"NaN", date("NaN"), -1},
		{"Inf", date("+Inf"), -1},
		{"hexadecimal", date("0x10"), -1},
		{"two signs", date("--5"), -1},
		{"point alone", date("."), -1},
		{"zero", date("0"), 5 * time.Second},
		{"negative", date("-5"), 5 * time.Second},
		{"shorter than the floor but told", date("2"), 2 * time.Second},
		{"negative as a Go duration", date("9223372037"), year},
		{"more digits than a float", date(strings.Repeat("9", 400)), year},
		{"date", date("Thu, 04 Mar 2027 10:01:30 GMT"), 90 * time.Second},
		{"date that has passed", date("Thu, 04 Mar 2027 09:50:00 GMT"), 5 * time.Second},
		{"date now", date("Thu, 04 Mar 2027 10:00:00 GMT"), 5 * time.Second},
		{"date a thousand years ahead", date("Thu, 04 Mar 3027 10:01:30 GMT"), year},
		{"their clock five minutes ahead", http.Header{
			"Retry-After": {"Thu, 04 Mar 2027 10:06:30 GMT"}, "Date": {"Thu, 04 Mar 2027 10:05:00 GMT"},
		}, 90 * time.Second},
		{"their clock five minutes behind", http.Header{
			"Retry-After": {"Thu, 04 Mar 2027 09:56:30 GMT"}, "Date": {"Thu, 04 Mar 2027 09:55:00 GMT"},
		}, 90 * time.Second},
		{"skew is no matter for seconds", http.Header{
			"Retry-After": {"30"}, "Date": {"Thu, 04 Mar 2027 09:55:00 GMT"},
		}, 30 * time.Second},
		{"unreadable Date", http.Header{
			"Retry-After": {"Thu, 04 Mar 2027 10:01:30 GMT"}, "Date": {"today"},
		}, 90 * time.Second},
		{"two headers, the longer", http.Header{"Retry-After": {"5", "90"}}, 90 * time.Second},
		{"two headers, the longer first", http.Header{"Retry-After": {"90", "5"}}, 90 * time.Second},
		{"two headers, one unreadable", http.Header{"Retry-After": {"soon", "7"}}, 7 * time.Second},
		{"milliseconds", http.Header{"Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond},
		{"milliseconds beside seconds", http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"2"}}, 2 * time.Second},
		{"milliseconds, zero", http.Header{"Retry-After-Ms": {"0"}}, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := limits.RetryAfter(c.h, at)
			if ok != (c.want >= 0) {
				t.Fatalf("told: got %v, want %v", ok, c.want >= 0)
			}
			if ok && !got.Equal(at.Add(c.want)) {
				t.Errorf("got %v, want %v", got.Sub(at), c.want)
			}
		})
	}
}

func TestInstant(t *testing.T) {
	for _, c := range []struct {
		text, want string // want is RFC 3339; empty: not told
	}{
		{"1804158720", "2027-03-04T11:12:00Z"},
		{"1804158720000", "2027-03-04T11:12:00Z"},
		{"1804158720.5", "2027-03-04T11:12:00.5Z"},
		{"2027-03-04T11:12:00Z", "2027-03-04T11:12:00Z"},
		{"2027-03-04T12:12:00+01:00", "2027-03-04T11:12:00Z"},
		{"2026-03-02T11:00:00.521744+00:00", "2026-03-02T11:00:00.521744Z"},
		{" 1804158720 ", "2027-03-04T11:12:00Z"},
		{"6m0s", "2027-03-04T10:06:00Z"},
		{"250ms", "2027-03-04T10:00:00.25Z"},
		{"0s", "2027-03-04T10:00:00Z"},
		{"1h12m0s", "2027-03-04T11:12:00Z"},
		{"-5s", ""},
		{"NaN", ""},
		{"Inf", ""},
		{"", ""},
		{"soon", ""},
		{"0", ""},
		{"60", ""},
		{"-1804158720", ""},
		{"100000000000", ""}, // as milliseconds: 1973
		{"0001-01-01T00:00:00Z", ""},
		{"1970-01-01T00:00:00Z", ""},
		{"1785518400", "2026-07-31T17:20:00Z"}, // in the past: the caller's to judge
		// Absurd: clamped to 366 days ahead.
		{"99999999999", "2028-03-04T10:00:00Z"},
		{"99999999999999999999", "2028-03-04T10:00:00Z"},
		{"9999-12-31T23:59:59Z", "2028-03-04T10:00:00Z"},
		{"2000000h", "2028-03-04T10:00:00Z"},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, ok := limits.Instant(c.text, at)
			if ok != (c.want != "") {
				t.Fatalf("told: got %v (%v), want %v", ok, got, c.want != "")
			}
			if s := got.Format(time.RFC3339Nano); ok && s != c.want {
				t.Errorf("got %v, want %v", s, c.want)
			}
		})
	}
}

func TestFraction(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64 // negative: not told
	}{
		{"0", 0}, {"0.0", 0}, {"0.01", 0.01}, {"1", 1}, {"1.08", 1.08}, {" 0.5 ", 0.5}, {"1e-3", 0.001}, {"-0", 0},
		{"", -1}, {"NaN", -1}, {"nan", -1}, {"Inf", -1}, {"+Inf", -1}, {"-Inf", -1}, {"infinity", -1}, {"-0.1", -1},
		{"1e400", -1}, {"50%", -1}, {"0x1p-2", -1}, {"half", -1}, {"0,5", -1}, {"1_0", -1},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, ok := limits.Fraction(c.text)
			if ok != (c.want >= 0) {
				t.Fatalf("told: got %v (%v), want %v", ok, got, c.want >= 0)
			}
			if ok && (got != c.want || math.Signbit(got)) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64 // negative: not told
	}{
		{"0", 0}, {"1000", 1000}, {" 7 ", 7},
		{"", -1}, {"-1", -1}, {"1.5", -1}, {"30,000", -1}, {"many", -1}, {"99999999999999999999", -1},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, ok := limits.Count(c.text)
			if ok != (c.want >= 0) || (ok && got != c.want) {
				t.Errorf("got %v %v, want %v", got, ok, c.want)
			}
		})
	}
}

func TestWaitSeconds(t *testing.T) {
	for _, c := range []struct {
		wait time.Duration
		want int64
	}{
		{72 * time.Minute, 4320},
		{1500 * time.Millisecond, 2},
		{time.Second, 1},
		{time.Second + 1, 2},
		{1, 1},
		{0, 1},
		{-time.Hour, 1},
	} {
		if got := limits.WaitSeconds(at, at.Add(c.wait)); got != c.want {
			t.Errorf("WaitSeconds(%v): got %v, want %v", c.wait, got, c.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"12", "12.5", "soon", "", "0", "-5", "9223372037", "Thu, 04 Mar 2027 10:01:30 GMT", "NaN"} {
		f.Add(v, "90", "Thu, 04 Mar 2027 10:05:00 GMT")
	}
	f.Fuzz(func(t *testing.T, a, b, date string) {
		one, okOne := limits.RetryAfter(http.Header{"Retry-After": {a}, "Date": {date}}, at)
		both, okBoth := limits.RetryAfter(http.Header{"Retry-After": {a, b}, "Date": {date}}, at)
		for _, got := range []time.Time{one, both} {
			if got.Before(at) || got.After(at.Add(limits.Furthest)) {
				t.Errorf("Retry-After %q, %q: got %v, want within a year of %v", a, b, got, at)
			}
		}
		if okOne && (!okBoth || both.Before(one)) {
			t.Errorf("a second header %q shortened the wait of %q: got %v, want at least %v", b, a, both, one)
		}
	})
}

func FuzzInstant(f *testing.F) {
	for _, v := range []string{"1804158720", "1804158720000", "2027-03-04T11:12:00Z", "6m0s", "250ms", "NaN", "", "1e12", "-1"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := limits.Instant(text, at)
		if ok == got.IsZero() {
			t.Fatalf("Instant(%q): got %v %v, want a time exactly when told", text, got, ok)
		}
		if ok && (got.After(at.Add(limits.Furthest)) || got.Unix() < 1e9) {
			t.Errorf("Instant(%q): got %v, want between 2001 and a year ahead", text, got)
		}
	})
}

func FuzzFraction(f *testing.F) {
	for _, v := range []string{"0", "1.08", "NaN", "Inf", "-0", "1e400", "0x1p-2"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := limits.Fraction(text)
		if math.IsNaN(got) || math.IsInf(got, 0) || got < 0 || (!ok && got != 0) {
			t.Errorf("Fraction(%q): got %v %v, want finite and not negative", text, got, ok)
		}
	})
}
