package account_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
)

// TestInventedWindows is field case invented-windows: whatever an upstream or a client names,
// a state stays small, and what every plan has is never dropped for it.
func TestInventedWindows(t *testing.T) {
	rules := account.Rules{BarePause: 5 * time.Second}
	var s account.State
	s = s.Observe(account.Reading{At: at(0), Windows: []account.WindowReading{
		{Name: account.FiveHour, Utilization: 0.4, HasUtilization: true, ResetAt: at(4 * time.Hour)},
		{Name: account.Weekly, Utilization: 0.5, HasUtilization: true, ResetAt: at(day)},
	}}, 0, rules)
	for i := range 500 {
		now := at(time.Duration(i) * time.Second)
		var windows []account.WindowReading
		for j := range 30 {
			windows = append(windows, account.WindowReading{Name: fmt.Sprintf("weekly:invented-%d-%d", i, j), Utilization: 0.1, HasUtilization: true, ResetAt: now.Add(day)})
		}
		windows = append(windows, account.WindowReading{Name: strings.Repeat("w", 5000), Utilization: 1, HasUtilization: true, ResetAt: now.Add(day)})
		s = s.Observe(account.Reading{At: now, Windows: windows}, 0, rules)
		model := fmt.Sprintf("invented-%d", i)
		s = s.Reject(account.Rejection{At: now, Kind: account.Bare, Model: model}, rules)
		s = s.Reject(account.Rejection{At: now, Kind: account.Access, Model: model, Rule: "model-access"}, rules)
		s = s.Reject(account.Rejection{At: now, Kind: account.Throttle, Tier: "flex", Model: model, Until: now.Add(4 * time.Minute)}, rules)
		s = s.Reject(account.Rejection{At: now, Kind: account.Throttle, PerModel: true, Family: model, Until: now.Add(4 * time.Minute)}, rules)
		s = s.Reject(account.Rejection{At: now, Kind: account.ModelWindow, Family: model, Spent: []account.Spent{{Window: account.WeeklyOf(model), Family: model, ResetAt: now.Add(day)}}}, rules)
		s = s.Reject(account.Rejection{At: now, Kind: account.Bare, Model: strings.Repeat("m", 5000)}, rules)
		s = s.Reject(account.Rejection{At: now, Kind: account.TooLarge, Model: model, Limit: account.InputTokens, Size: 1000}, rules)
	}
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 60_000 {
		t.Errorf("got a state of %d bytes, %d windows, %d blocks and %d refusals", len(body), len(s.Windows), len(s.Blocks), len(s.Refuses))
	}
	if w := s.Windows[account.Weekly]; w.Utilization != 0.5 {
		t.Errorf("the weekly window was lost: %+v", w)
	}
	for name := range s.Windows {
		if name != account.FiveHour && name != account.Weekly && !strings.HasPrefix(name, "weekly:invented-499-") {
			t.Errorf("the window %s is kept, and newer ones are not", name)
		}
	}
	// A refusal of the account's own window blocks it, whatever was invented before.
	s = s.Reject(account.Rejection{At: at(time.Hour), Kind: account.WindowSpent, Spent: []account.Spent{{Window: account.FiveHour, ResetAt: at(4 * time.Hour)}}}, rules)
	blocked := false
	for _, b := range s.Blocks {
		blocked = blocked || b.Cause == account.FiveHour && b.Active(at(2*time.Hour))
	}
	if !blocked {
		t.Error("the account is not blocked")
	}
}

// A window that nobody has read for long is forgotten, one of a long cycle later.
func TestInventedWindowsEnd(t *testing.T) {
	var s account.State
	read := func(after time.Duration, names ...string) {
		r := account.Reading{At: at(after)}
		for _, name := range names {
			r.Windows = append(r.Windows, account.WindowReading{Name: name, Utilization: 0.3, HasUtilization: true})
		}
		s = s.Observe(r, 0, account.Rules{})
	}
	read(0, account.Weekly, "30d", "kestrel", "weekly:fable")
	read(8*day+time.Second, account.FiveHour)
	for name, want := range map[string]bool{account.Weekly: true, account.FiveHour: true, "30d": true, "kestrel": false, "weekly:fable": false} {
		if _, got := s.Windows[name]; got != want {
			t.Errorf("%s after eight days: got %v, want %v", name, got, want)
		}
	}
	read(31*day, account.FiveHour)
	if _, there := s.Windows["30d"]; there {
		t.Error("a window of thirty days is kept after thirty-one")
	}
}
