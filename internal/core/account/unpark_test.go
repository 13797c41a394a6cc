package account_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
)

// TestLookUnparks: an account that is parked for want of funds or access is used again once
// its usage endpoint, which needs both, shows room.
func TestLookUnparks(t *testing.T) {
	parkedAt := time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)
	window := func(name string, utilization float64) account.WindowReading {
		return account.WindowReading{Name: name, Utilization: utilization, HasUtilization: true}
	}
	reading := func(at time.Time, source account.Source, windows ...account.WindowReading) account.Reading {
		return account.Reading{At: at, Source: source, Windows: windows}
	}
	later := parkedAt.Add(time.Nanosecond)
	room := []account.WindowReading{window(account.FiveHour, 0.3), window(account.Weekly, 0.999)}
	tests := []struct {
		name    string
		kind    account.RejectionKind
		reading account.Reading
		parked  bool
	}{
		{"a newer look with room", account.Funds, reading(later, account.FromPoll, room...), false},
		{"a look of the same instant", account.Funds, reading(parkedAt, account.FromPoll, room...), true},
		{"an older look", account.Funds, reading(parkedAt.Add(-time.Nanosecond), account.FromPoll, room...), true},
		{"an answer's headers", account.Funds, reading(later, account.FromAnswer, room...), true},
		{"a full window beside an open one", account.Funds, reading(later, account.FromPoll, window(account.FiveHour, 0), window(account.Weekly, 1)), true},
		{"a full window of one family", account.Funds, reading(later, account.FromPoll, window(account.Weekly, 0.5), window(account.WeeklyOf("fable"), 1)), false},
		{"an open family alone", account.Funds, reading(later, account.FromPoll, window(account.WeeklyOf("fable"), 0)), true},
		{"a window without a figure", account.Funds, reading(later, account.FromPoll, account.WindowReading{Name: account.Weekly, Status: account.Allowed}), true},
		{"nothing told", account.Funds, reading(later, account.FromPoll), true},
		{"parked for its credential", account.BadCredential, reading(later, account.FromPoll, room...), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			no := account.Rejection{Kind: tt.kind, At: parkedAt, Rule: "no"}
			if got := (account.State{}).Reject(no, account.Rules{}).Observe(tt.reading, 0, account.Rules{}).Parked != nil; got != tt.parked {
				t.Errorf("refusal, then look: got parked %v, want %v", got, tt.parked)
			}
			if tt.reading.At.Equal(parkedAt) {
				return // at one instant the refusal wins
			}
			if got := (account.State{}).Observe(tt.reading, 0, account.Rules{}).Reject(no, account.Rules{}).Parked != nil; got != tt.parked {
				t.Errorf("look, then the refusal folded late: got parked %v, want %v", got, tt.parked)
			}
		})
	}
}
