package event_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/event"
)

var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

// reading is of the five-hour and the weekly window.
func reading(at time.Time, fiveHour, weekly float64) account.Reading {
	return account.Reading{At: at, Source: account.FromPoll, Windows: []account.WindowReading{
		{Name: account.FiveHour, Utilization: fiveHour, HasUtilization: true, ResetAt: t0.Add(4 * time.Hour)},
		{Name: account.Weekly, Utilization: weekly, HasUtilization: true, ResetAt: t0.Add(100 * time.Hour)},
	}}
}

// spent is a rejection of the five-hour window.
func spent(at time.Time) account.Rejection {
	return account.Rejection{At: at, Kind: account.WindowSpent, Rule: "five-hour", Spent: []account.Spent{{Window: account.FiveHour, ResetAt: t0.Add(4 * time.Hour)}}}
}

func name(id account.ID) string { return string(id) }

// A life of one account, each step with the events that it makes and their sentences.
func TestChanges(t *testing.T) {
	rules := account.Rules{BarePause: 5 * time.Second}
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	steps := []struct {
		step   string
		change func(account.State) account.State
		want   []string
	}{
		{"a first reading", func(s account.State) account.State { return s.Observe(reading(t0, 0.5, 0.4), 0, rules) }, nil},
		{"a bare refusal", func(s account.State) account.State {
			return s.Reject(account.Rejection{At: at(time.Minute), Kind: account.Bare, Model: "claude-opus-5", Family: "opus"}, rules)
		}, nil},
		{"a throttle of four minutes", func(s account.State) account.State {
			return s.Reject(account.Rejection{At: at(time.Minute), Kind: account.Throttle, Until: at(5 * time.Minute)}, rules)
		}, nil},
		{"a spent window", func(s account.State) account.State { return s.Reject(spent(at(time.Hour)), rules) },
			[]string{"m cools until 2027-03-04 14:00Z (five-hour)"}},
		{"the same again", func(s account.State) account.State { return s.Reject(spent(at(61*time.Minute)), rules) }, nil},
		{"a look that shows room", func(s account.State) account.State { return s.Observe(reading(at(2*time.Hour), 0.02, 0.41), 0, rules) },
			[]string{"m is back before its time: newer evidence shows room (five-hour)", "the window five-hour of m was reset early; its reset was told for 2027-03-04 14:00Z"}},
		{"a point less", func(s account.State) account.State { return s.Observe(reading(at(3*time.Hour), 0.01, 0.41), 0, rules) }, nil},
		{"no money", func(s account.State) account.State {
			return s.Reject(account.Rejection{At: at(3*time.Hour + time.Minute), Kind: account.Funds, Rule: "credit-balance"}, rules)
		}, []string{"m is parked and needs its owner (credit-balance)"}},
		{"the owner clears it", func(s account.State) account.State { return s.Clear(at(3*time.Hour + 2*time.Minute)) }, []string{"m is back; it was parked (credit-balance)"}},
		{"a model that it lacks", func(s account.State) account.State {
			return s.Reject(account.Rejection{At: at(3*time.Hour + 3*time.Minute), Kind: account.Access, Model: "claude-fable-5", Family: "fable", Rule: "model-access"}, rules)
		}, []string{"the provider refuses m something"}},
		{"spent until its reset comes", func(s account.State) account.State { return s.Reject(spent(at(3*time.Hour+30*time.Minute)), rules) },
			[]string{"m cools until 2027-03-04 14:00Z (five-hour)"}},
		{"and its end", func(s account.State) account.State { return s.Observe(reading(at(5*time.Hour), 0.01, 0.42), 0, rules) }, nil},
	}
	var s account.State
	for _, step := range steps {
		next := step.change(s)
		var got []string
		for _, e := range event.Changes("m", s, next) {
			got = append(got, e.Sentence(name))
		}
		ok := len(got) == len(step.want)
		for i := range got {
			ok = ok && i < len(step.want) && strings.HasPrefix(got[i], step.want[i])
		}
		if !ok {
			t.Errorf("%s (-want +got):\n%s", step.step, cmp.Diff(step.want, got))
		}
		s = next
	}
}

func TestBuffer(t *testing.T) {
	var b event.Buffer
	if b.Any() {
		t.Error("an empty buffer has something")
	}
	for i := range 2000 {
		b.Add(event.Event{At: t0.Add(time.Duration(i) * time.Second), Kind: event.Trial})
	}
	all := b.Take()
	if len(all) != 1000 || !all[999].At.Equal(t0.Add(1999*time.Second)) || b.Any() {
		t.Errorf("got %d events, want the newest 1000", len(all))
	}
}
