package alarm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/account"
	"holdfast/internal/alarm"
	"holdfast/internal/metric"
)

const table = "holdfast-Table-X"

var (
	login = account.Account{ID: "1", Name: "juniper", Provider: account.Anthropic, Kind: account.Subscription}
	key   = account.Account{ID: "2", Name: "bracken", Provider: account.XAI, Kind: account.Key}
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		account account.Account
		want    map[string]metric.Name
	}{
		{login, map[string]metric.Name{table + "-login-juniper-parked": metric.Parked, table + "-login-juniper-renewal": metric.RefreshFailures}},
		{key, map[string]metric.Name{table + "-login-bracken-parked": metric.Parked}}, // a key is never renewed
	} {
		got := map[string]metric.Name{}
		for _, a := range alarm.Of(table, c.account) {
			got[a.Name] = a.Metric
			if a.Account != c.account.Name || a.AtLeast <= 0 || !slices.Contains(alarm.Names(table, c.account.Name), a.Name) {
				t.Errorf("got %+v", a)
			}
			if !strings.Contains(a.Description, "holdfast account show "+c.account.Name+" --table "+table) {
				t.Errorf("%q does not say what to do", a.Description)
			}
			if d := metric.Of(a.Metric); d.From != metric.Poller || !cmp.Equal(d.Dimensions[0], []string{metric.Account}) {
				t.Errorf("%s reads %s, which nobody emits by account", a.Name, a.Metric)
			}
			if len(a.Description) > 1024 || len(a.Name) > 255 {
				t.Errorf("%s: longer than CloudWatch takes", a.Name)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.account.Name, diff)
		}
	}
}

func TestChanges(t *testing.T) {
	logins, keys := alarm.Of(table, login), alarm.Of(table, key)
	stale := logins[0]
	stale.Description = "as an older version had it"
	removed := alarm.Of(table, account.Account{Name: "gone", Provider: account.XAI})[0]
	all := slices.Concat(keys, logins)
	for _, c := range []struct {
		name   string
		have   []alarm.Alarm
		write  []alarm.Alarm
		remove []string
	}{
		{"none yet", nil, all, nil},
		{"all there", all, nil, nil},
		{"one of an older version", slices.Concat(keys, []alarm.Alarm{stale, logins[1]}), []alarm.Alarm{logins[0]}, nil},
		{"one of an account that was removed", append(slices.Clone(all), removed), nil, []string{table + "-login-gone-parked"}},
		{"a login whose name is a key's now", slices.Concat(logins, []alarm.Alarm{{Name: table + "-login-bracken-renewal"}}), keys, []string{table + "-login-bracken-renewal"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			write, remove := alarm.Changes(table, []account.Account{login, key}, c.have)
			if diff := cmp.Diff(c.write, write); diff != "" {
				t.Errorf("write (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.remove, remove); diff != "" {
				t.Errorf("remove (-want +got)\n%s", diff)
			}
		})
	}
}
