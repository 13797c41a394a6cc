package command_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
)

func TestEvents(t *testing.T) {
	b := newBench(t)
	b.must("key", "create", "laptop")
	if r := b.run("events", "--since", "0h"); r.code != 0 || !strings.Contains(r.stdout, "the owner: key create laptop") {
		t.Errorf("got %+v", r)
	}
	b.must("account", "add", "marlow", "--provider", "anthropic", "--key-env", "KEY")
	b.must("settings", "set", "reserve", "0.2")
	now := t0
	b.now = func() time.Time { return now }
	now = now.Add(time.Minute)
	b.must("account", "drain", "marlow")
	s := b.open()
	snap, err := s.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := snap.Catalog.Account("marlow")
	if _, err := s.Fold(t.Context(), a.ID, snap.States[a.ID], func(s account.State) (account.State, bool) {
		return s.Reject(account.Rejection{At: t0.Add(30 * time.Second), Kind: account.Funds, Rule: "credit-balance\x1b[31m"}, account.Rules{}), true
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteEvents(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	got := b.must("events").stdout
	want := "2027-03-04 10:00:00Z  the owner: key create laptop\n" +
		"2027-03-04 10:00:00Z  the owner: account add marlow\n" +
		"2027-03-04 10:00:00Z  the owner: settings set reserve 0.2\n" +
		"2027-03-04 10:00:30Z  \"marlow is parked and needs its owner (credit-balance\\x1b[31m)\"\n" +
		"2027-03-04 10:01:00Z  the owner: account drain marlow\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	type row struct {
		At                  time.Time
		Kind, Account, Text string
	}
	rows := decode[[]row](t, b.must("events", "--account", "marlow", "--json"))
	if len(rows) != 1 || rows[0].Kind != "parked" || rows[0].Account != "marlow" {
		t.Errorf("got %+v, want the parking", rows)
	}
	now = now.Add(3 * time.Hour)
	if r := decode[[]row](t, b.must("events", "--since", "1h", "--json")); len(r) != 0 {
		t.Errorf("got %+v, want none within the hour", r)
	}
	b.refuses(1, "there is no account", "events", "--account", "nobody")
	b.refuses(2, "--since takes a time of 30 days at most", "events", "--since", "31d")
	// A command that changed nothing is no event, and no secret becomes one.
	b.refuses(2, "no command", "account", apiKey)
	if got := b.must("events", "--since", "1d").stdout; strings.Count(got, "\n") != 5 {
		t.Errorf("got\n%s", got)
	}
}

// What people type: a day in a duration, percent, decimal sizes, one setting, a short name.
func TestAsPeopleTypeIt(t *testing.T) {
	b := newBench(t)
	b.env["OTHER"] = apiKey + "-2"
	b.must("account", "add", "marlow", "--provider", "anthropic", "--key-env", "KEY")
	b.must("account", "add", "juniper", "--provider", "anthropic", "--key-env", "OTHER")
	for _, c := range []struct{ name, typed, want string }{
		{"pin_ttl", "2d", "48h"}, {"bound_pin_ttl", "1d12h", "36h"}, {"reserve", "20%", "0.2"}, {"reserve", "7.5 %", "0.075"}, {"max_body", "10MB", "10MB"}, {"max_body", "1024kB", "1000KiB"},
	} {
		b.must("settings", "set", c.name, c.typed)
		if got := strings.TrimSpace(b.must("settings", "get", c.name).stdout); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.name, c.typed, got, c.want)
		}
	}
	for _, wrong := range [][]string{{"reserve", "120%"}, {"reserve", "%"}, {"pin_ttl", "d"}, {"pin_ttl", "-1d"}, {"pin_ttl", "99999d"}, {"max_body", "2GB"}} {
		b.refuses(2, "must be", append([]string{"settings", "set"}, wrong...)...)
	}
	b.refuses(2, "no such setting", "settings", "get", "nothing")
	b.must("policy", "anthropic", "order", "--threshold", "75%")
	if got := b.must("policy", "anthropic").stdout; !strings.Contains(got, "0.75") {
		t.Errorf("got %q", got)
	}
	if got := b.must("account", "order", "anthropic").stdout; got != "marlow\njuniper\n" {
		t.Errorf("the order: got %q", got)
	}
	b.must("account", "rm", "juniper")
	if got := b.must("account", "order", "anthropic").stdout; got != "marlow\n" {
		t.Errorf("the order: got %q", got)
	}
}
