// Package alarm says which alarms the accounts have. Those that no account is named in are
// in infra/.
//
// An account is alarmed for when its owner has to act, or soon will have to: while it is
// parked, and, before it comes to that, while the renewal of its login keeps failing. One
// alarm covers both, since CloudWatch charges for each. It notifies when it is raised and
// not when it ends: an alarm that is new begins without data, and would otherwise announce
// that nothing is wrong. The poller keeps the alarms as this package has them (Changes);
// whoever removes an account removes its alarm by Name.
//
// A switch of accounts, a cooldown and a window that fills are no alarms. The package is
// pure: it knows no CloudWatch client.
package alarm

import (
	"cmp"
	"fmt"
	"slices"

	"holdfast/internal/core/account"
	"holdfast/internal/core/metric"
)

// Alarm is an alarm of one account. It is raised when Metric of the account was AtLeast so
// much, at its maximum over a Period, in Points periods in a row. Periods without data are
// good: silence is the poller's alarm.
type Alarm struct {
	Name string
	// Description is what its owner reads in the notification: what is wrong and what to do.
	Description string
	// Table and Account are the values of those dimensions.
	Table, Account string
	Metric         metric.Name
	AtLeast        float64
}

const (
	// Period is in seconds.
	Period = 60
	Points = 2
)

// Prefix is what the names of all account alarms of a table begin with, so that a role can
// be bound to them.
func Prefix(table string) string { return table + "-login-" }

// Name is that of an account's alarm.
func Name(table, account string) string { return Prefix(table) + account }

// Of is the alarm of an account.
func Of(table string, a account.Account) Alarm {
	what := fmt.Sprintf("Account %s (%s) needs its owner. It is parked: the provider refused its credential, or it has no money or access left, "+
		"and it serves nothing until its owner acts.", a.Name, a.Provider)
	if a.Kind == account.Subscription {
		what += fmt.Sprintf(" Or the renewal of its login failed %d times in a row or was refused: it serves while its token lives and is then lost.", metric.FailuresInARow)
	}
	return Alarm{
		Name: Name(table, a.Name), Table: table, Account: a.Name, Metric: metric.NeedsOwner, AtLeast: metric.Parked,
		Description: what + fmt.Sprintf(" Requests go to the provider's other accounts, if there are any. Run holdfast account show %s --table %s, which says what to do.", a.Name, table),
	}
}

// Changes says what is to be written and what removed, so that exactly the accounts have
// their alarms. have are the alarms as they are, found by Prefix.
func Changes(table string, accounts []account.Account, have []Alarm) (write []Alarm, remove []string) {
	known := map[string]Alarm{}
	for _, a := range have {
		known[a.Name] = a
	}
	for _, each := range accounts {
		want := Of(table, each)
		if known[want.Name] != want {
			write = append(write, want)
		}
		delete(known, want.Name)
	}
	for name := range known {
		remove = append(remove, name)
	}
	slices.Sort(remove)
	slices.SortFunc(write, func(a, b Alarm) int { return cmp.Compare(a.Name, b.Name) })
	return write, remove
}
