package placement_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/placement"
)

// A blocked account that the usage endpoint is looked at for is not tried with a request;
// once looking has ended, it is, so that a reset is not outlived.
func TestProbeOnlyWhereNobodyLooks(t *testing.T) {
	look := func(s account.State, ago time.Duration, windows ...string) account.State {
		r := account.Reading{At: t0.Add(-ago), Source: account.FromPoll}
		for _, name := range windows {
			r.Windows = append(r.Windows, account.WindowReading{Name: name, Utilization: 1, HasUtilization: true, ResetAt: t0.Add(time.Hour)})
		}
		return s.Observe(r, 0, rules)
	}
	blocked := func() account.State { return spent(t0.Add(-time.Hour), t0.Add(time.Hour)) }
	answered := func(s account.State) account.State { // by a try that was refused
		return s.Observe(account.Reading{At: t0.Add(-11 * time.Minute), Source: account.FromAnswer, Windows: []account.WindowReading{
			{Name: account.FiveHour, Utilization: 1, HasUtilization: true, ResetAt: t0.Add(time.Hour)},
		}}, 0, rules)
	}
	for _, tt := range []struct {
		name  string
		state account.State
		want  bool
	}{
		{"nobody looks", blocked(), true},
		{"looked at a minute ago", look(blocked(), time.Minute, account.FiveHour), false},
		{"just within two intervals", look(blocked(), 20*time.Minute-1, account.FiveHour), false},
		{"two intervals ago", look(blocked(), 20*time.Minute, account.FiveHour), true},
		{"the look does not report the window", look(blocked(), time.Minute, account.Weekly), true},
		{"an answer since is no look", answered(look(blocked(), 30*time.Minute, account.FiveHour)), true},
		{"the look came before the refusal, and none after", look(spent(t0.Add(-10*time.Minute), t0.Add(time.Hour)), 21*time.Minute, account.FiveHour), true},
		{"one of two blocked windows is not told", look(blocked().Reject(account.Rejection{
			Kind: account.ModelWindow, At: t0.Add(-time.Hour), Spent: []account.Spent{{Window: account.WeeklyOf("opus"), Family: "opus", ResetAt: t0.Add(2 * time.Hour)}},
		}, rules), time.Minute, account.FiveHour), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := placement.Begin(situation(read(0.1, 0.1), tt.state))
			if p.Probe != tt.want {
				t.Errorf("got probe %v (%s), want %v", p.Probe, p.Why, tt.want)
			}
		})
	}
	t.Run("a poll_interval that is longer has longer to look", func(t *testing.T) {
		s := situation(read(0.1, 0.1), look(blocked(), 30*time.Minute, account.FiveHour))
		s.Settings.PollInterval = 20 * time.Minute
		if p := placement.Begin(s); p.Probe {
			t.Error("got a try between two looks")
		}
	})
}
