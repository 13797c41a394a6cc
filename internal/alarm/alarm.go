// Package alarm says which alarms the accounts have. Those that no account is named in are
// in infra/.
//
// An account is alarmed for when its owner has to log in again, or soon will have to: while
// it is parked, and, before it comes to that, while the renewal of its login keeps failing.
// The poller keeps the alarms as this package has them (Changes); whoever removes an
// account removes its alarms by Names.
//
// A switch of accounts, a cooldown and a window that fills are no alarms. The package is
// pure: it knows no CloudWatch client.
package alarm

import (
	"cmp"
	"fmt"
	"slices"

	"holdfast/internal/account"
	"holdfast/internal/metric"
)

// Alarm is an alarm of one account. It is raised when Metric of the account was AtLeast so
// much, at its maximum over a Period, in Points periods in a row. Periods without data are
// good: silence is the poller's alarm.
type Alarm struct {
	Name string
	// Description is what its owner reads in the notification: what is wrong and what to do.
	Description string
	// Account is the value of dimension Account.
	Account string
	Metric  metric.Name
	AtLeast float64
}

const (
	// Period is in seconds.
	Period = 60
	Points = 2
)

// Prefix is what the names of all account alarms of a table begin with, so that a role can
// be bound to them.
func Prefix(table string) string { return table + "-login-" }

func parkedName(table, account string) string  { return Prefix(table) + account + "-parked" }
func renewalName(table, account string) string { return Prefix(table) + account + "-renewal" }

// Names are those of every alarm that an account can have.
func Names(table, account string) []string {
	return []string{parkedName(table, account), renewalName(table, account)}
}

// Of are the alarms of an account: a key is never renewed, so it has one.
func Of(table string, a account.Account) []Alarm {
	all := []Alarm{{
		Name: parkedName(table, a.Name), Account: a.Name, Metric: metric.Parked, AtLeast: 1,
		Description: fmt.Sprintf("Account %s (%s) is parked: the provider refused its credential, or it has no money or access left. It serves nothing until its owner acts; "+
			"requests go to the provider's other accounts, if there are any. Run holdfast account show %s --table %s, which says what to do.", a.Name, a.Provider, a.Name, table),
	}}
	if a.Kind == account.Subscription {
		all = append(all, Alarm{
			Name: renewalName(table, a.Name), Account: a.Name, Metric: metric.RefreshFailures, AtLeast: metric.FailuresInARow,
			Description: fmt.Sprintf("The login of account %s (%s) could not be renewed %d times in a row, or was refused for good. It serves while its token lives and would then be lost. "+
				"Run holdfast account show %s --table %s, which says why and until when.", a.Name, a.Provider, metric.FailuresInARow, a.Name, table),
		})
	}
	return all
}

// Changes says what is to be written and what removed, so that exactly the accounts have
// their alarms. have are the alarms as they are, found by Prefix.
func Changes(table string, accounts []account.Account, have []Alarm) (write []Alarm, remove []string) {
	known := map[string]Alarm{}
	for _, a := range have {
		known[a.Name] = a
	}
	for _, each := range accounts {
		for _, want := range Of(table, each) {
			if known[want.Name] != want {
				write = append(write, want)
			}
			delete(known, want.Name)
		}
	}
	for name := range known {
		remove = append(remove, name)
	}
	slices.Sort(remove)
	slices.SortFunc(write, func(a, b Alarm) int { return cmp.Compare(a.Name, b.Name) })
	return write, remove
}
