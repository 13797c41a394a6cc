package command_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pin"
)

// TestReadmeStatus: the status that the README shows is one that the program prints.
func TestReadmeStatus(t *testing.T) {
	b := newBench(t)
	b.env["OTHER"] = apiKey + "-2"
	b.must("account", "add", "work", "--provider", "anthropic", "--key-env", "KEY")
	b.must("account", "add", "home", "--provider", "anthropic", "--key-env", "OTHER")
	read := func(before time.Duration, fiveHour, weekly float64, fiveHourReset, weeklyReset time.Duration) func(account.State) account.State {
		return func(s account.State) account.State {
			return s.Observe(account.Reading{At: t0.Add(-before), Source: account.FromPoll, Windows: []account.WindowReading{
				{Name: account.FiveHour, Utilization: fiveHour, HasUtilization: true, ResetAt: t0.Add(fiveHourReset)},
				{Name: account.Weekly, Utilization: weekly, HasUtilization: true, ResetAt: t0.Add(weeklyReset)},
			}}, 0, account.Rules{})
		}
	}
	b.fold("work", read(time.Minute, 1, 0.61, 130*time.Minute, 76*time.Hour))
	b.fold("work", func(s account.State) account.State {
		return s.Reject(account.Rejection{At: t0.Add(-time.Minute), Kind: account.WindowSpent, Spent: []account.Spent{{Window: account.FiveHour, ResetAt: t0.Add(130 * time.Minute)}}}, account.Rules{})
	})
	b.fold("home", read(12*time.Second, 0.22, 0.48, 280*time.Minute, 44*time.Hour))
	s := b.open()
	snap, err := s.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	hour := pin.Hour(t0)
	for i, name := range []string{"work", "home", "home", "home"} {
		a, _ := snap.Catalog.Account(name)
		p := pin.New(a, false, t0.Add(-20*time.Minute), time.Hour)
		p.Kept = map[int64]int64{hour - 1: 46, hour - 5: 250}
		if i == 1 {
			p.MovedAt = t0.Add(-time.Minute)
		}
		if _, won, err := s.ClaimPin(t.Context(), strings.Repeat("k", i+1), p, t0); err != nil || !won {
			t.Fatalf("got %v, %v", won, err)
		}
	}
	shut(t, s)
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "```\n$ holdfast status\n" + b.must("status").stdout + "```\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("the README is to show\n%s", want)
	}
}
