package account_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
)

// A refusal that may be for want of money or for want of allowance is settled by what is
// known of resets. T is the refusal's instant.
func TestSettle(t *testing.T) {
	at := time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)
	const monthly = "30d"
	window := func(reset time.Time) account.Window {
		return account.Window{Utilization: 0.9, HasUtilization: true, ResetAt: reset, ObservedAt: at.Add(-time.Hour)}
	}
	open := []account.Spent{{Window: account.Weekly}, {Window: monthly}}
	funds := account.Rejection{Kind: account.Funds, At: at, Spent: open, Rule: "out-of-credits", Generation: 3}
	spent := func(spent ...account.Spent) account.Rejection {
		r := funds
		r.Kind, r.Spent = account.WindowSpent, spent
		return r
	}
	week, month := at.Add(3*24*time.Hour), at.Add(20*24*time.Hour)
	for _, c := range []struct {
		name    string
		windows map[string]account.Window
		r, want account.Rejection
	}{
		{"nothing known", nil, funds, funds},
		{"the week's reset is to come", map[string]account.Window{account.Weekly: window(week)}, funds, spent(account.Spent{Window: account.Weekly, ResetAt: week})},
		{"the month's", map[string]account.Window{monthly: window(month)}, funds, spent(account.Spent{Window: monthly, ResetAt: month})},
		{
			"both", map[string]account.Window{account.Weekly: window(week), monthly: window(month)}, funds,
			spent(account.Spent{Window: account.Weekly, ResetAt: week}, account.Spent{Window: monthly, ResetAt: month}),
		},
		{"one past, one to come", map[string]account.Window{account.Weekly: window(at.Add(-time.Hour)), monthly: window(month)}, funds, spent(account.Spent{Window: monthly, ResetAt: month})},
		{"the reset is this instant", map[string]account.Window{account.Weekly: window(at)}, funds, funds},
		{"a nanosecond after", map[string]account.Window{account.Weekly: window(at.Add(1))}, funds, spent(account.Spent{Window: account.Weekly, ResetAt: at.Add(1)})},
		{"a nanosecond before", map[string]account.Window{account.Weekly: window(at.Add(-1))}, funds, funds},
		{"no reset told", map[string]account.Window{account.Weekly: window(time.Time{})}, funds, funds},
		{"another window's reset", map[string]account.Window{account.FiveHour: window(week)}, funds, funds},
		{"a key's lists none", map[string]account.Window{account.Weekly: window(week)}, account.Rejection{Kind: account.Funds, At: at}, account.Rejection{Kind: account.Funds, At: at}},
		{
			"another kind", map[string]account.Window{account.Weekly: window(week)},
			account.Rejection{Kind: account.BadCredential, At: at, Spent: open}, account.Rejection{Kind: account.BadCredential, At: at, Spent: open},
		},
		{
			"told by the refusal itself", nil,
			account.Rejection{Kind: account.Funds, At: at, Spent: []account.Spent{{Window: "1d:grok", Family: "grok", ResetAt: week}}},
			account.Rejection{Kind: account.ModelWindow, At: at, Spent: []account.Spent{{Window: "1d:grok", Family: "grok", ResetAt: week}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := account.State{Windows: c.windows}
			got := s.Settle(c.r)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if d := cmp.Diff(got, s.Settle(got)); d != "" {
				t.Errorf("settled again it changes (-once +twice)\n%s", d)
			}
		})
	}
	if open[0].ResetAt != (time.Time{}) {
		t.Error("the argument was changed")
	}
}
