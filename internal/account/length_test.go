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
