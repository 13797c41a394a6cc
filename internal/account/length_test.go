package account_test

import (
	"testing"
	"time"

	"holdfast/internal/account"
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
