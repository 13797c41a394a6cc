package alarm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/alarm"
	"holdfast/internal/core/metric"
)

const table = "holdfast-Table-X"

var (
	login = account.Account{ID: "1", Name: "juniper", Provider: account.Anthropic, Kind: account.Subscription}
	key   = account.Account{ID: "2", Name: "bracken", Provider: account.XAI, Kind: account.Key}
)

func TestOf(t *testing.T) {
	for _, of := range []account.Account{login, key} {
		a := alarm.Of(table, of)
		if a.Name != table+"-login-"+of.Name || a.Name != alarm.Name(table, of.Name) || a.Account != of.Name || a.Metric != metric.NeedsOwner || a.AtLeast != metric.Parked {
			t.Errorf("got %+v", a)
		}
		if !strings.Contains(a.Description, "holdfast account show "+of.Name+" --table "+table) {
			t.Errorf("%q does not say what to do", a.Description)
		}
		// One alarm hears of both, and a key is never renewed.
		if !strings.Contains(a.Description, "parked") || strings.Contains(a.Description, "renewal") != (of.Kind == account.Subscription) {
			t.Errorf("%q does not say what may be wrong", a.Description)
		}
		if metric.RenewalFailing < a.AtLeast {
			t.Error("a renewal that fails does not raise the alarm")
		}
		if d := metric.Of(a.Metric); d.From != metric.Poller || !cmp.Equal(d.Dimensions[0], []string{metric.Table, metric.Account}) || a.Table != table {
			t.Errorf("%s is not emitted by account", a.Metric)
		}
		if len(a.Description) > 1024 || len(a.Name) > 255 {
			t.Errorf("%s: longer than CloudWatch takes", a.Name)
		}
	}
}

func TestChanges(t *testing.T) {
	ofLogin, ofKey := alarm.Of(table, login), alarm.Of(table, key)
	stale := ofLogin
	stale.Description = "as an older version had it"
	all := []alarm.Alarm{ofKey, ofLogin}
	for _, c := range []struct {
		name   string
		have   []alarm.Alarm
		write  []alarm.Alarm
		remove []string
	}{
		{"none yet", nil, all, nil},
		{"all there", all, nil, nil},
		{"one of an older version", []alarm.Alarm{ofKey, stale}, []alarm.Alarm{ofLogin}, nil},
		{"two that an older version had for an account", append(slices.Clone(all), alarm.Alarm{Name: table + "-login-juniper-parked"}, alarm.Alarm{Name: table + "-login-juniper-renewal"}),
			nil, []string{table + "-login-juniper-parked", table + "-login-juniper-renewal"}},
		{"one of an account that was removed", append(slices.Clone(all), alarm.Alarm{Name: table + "-login-gone"}), nil, []string{table + "-login-gone"}},
		{"a key whose name is a login's now", []alarm.Alarm{ofKey, alarm.Of(table, account.Account{Name: "juniper", Provider: account.Anthropic, Kind: account.Key})}, []alarm.Alarm{ofLogin}, nil},
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
