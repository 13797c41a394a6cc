package account_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
)

func TestLengthName(t *testing.T) {
	for _, c := range []struct {
		length time.Duration
		want   string
	}{
		{5 * time.Hour, "five-hour"},
		{10080 * time.Minute, "weekly"},
		{604800 * time.Second, "weekly"},
		{43200 * time.Minute, "30d"},
		{24 * time.Hour, "1d"},
		{12 * time.Hour, "12h"},
		{36 * time.Hour, "36h"},
		{90 * time.Minute, "90m"},
		{time.Minute, "1m"},
		{time.Second, ""},
		{0, ""},
		{-5 * time.Hour, ""},
	} {
		if got := account.LengthName(c.length); got != c.want {
			t.Errorf("LengthName(%v): got %q, want %q", c.length, got, c.want)
		}
	}
}

// TestLength: each name that LengthName gives is read back, and what names no length is 0.
func TestLength(t *testing.T) {
	for _, length := range []time.Duration{5 * time.Hour, account.Week, 30 * 24 * time.Hour, 12 * time.Hour, 90 * time.Minute, time.Minute} {
		if got := account.Length(account.LengthName(length)); got != length {
			t.Errorf("%s: got %v, want %v", account.LengthName(length), got, length)
		}
	}
	for name, want := range map[string]time.Duration{
		"weekly:opus": account.Week, "requests": 0, "tokens": 0, "": 0, "d": 0, "0d": 0, "-3d": 0, "99999999999d": 0, "999999999d": 0, "12x": 0,
	} {
		if got := account.Length(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

func TestPerMinute(t *testing.T) {
	for window, want := range map[string]bool{
		"requests": true, "tokens": true, "input-tokens": true, "output-tokens": true,
		"project-requests": true, "project-tokens": true, // an OpenAI key's, of its project
		"five-hour": false, "weekly": false, "weekly:opus": false, "30d": false, "90m": false, "": false,
	} {
		if got := account.PerMinute(window); got != want {
			t.Errorf("%q: got %v, want %v", window, got, want)
		}
	}
}
