package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
)

// switched is a switch in --json, by the documented names.
type switched struct {
	At       time.Time `json:"at"`
	Provider string    `json:"provider"`
	From     side      `json:"from"`
	To       side      `json:"to"`
	Mode     string    `json:"mode"`
	Reason   string    `json:"reason"`
}

type side struct {
	Account     string   `json:"account"`
	Utilization *float64 `json:"utilization"`
}

// switches is the history as words, newest first.
func (b *bench) switches(args ...string) []string {
	b.t.Helper()
	words := []string{}
	for _, s := range decode[[]switched](b.t, b.must(append([]string{"switches", "--json"}, args...)...)) {
		words = append(words, strings.Join([]string{s.Provider, s.From.Account, s.To.Account, s.Mode, s.Reason}, " "))
	}
	return words
}

// weekly sets how full an account's week is read to be.
func (b *bench) weekly(name string, u float64) {
	b.t.Helper()
	b.fold(name, func(s account.State) account.State {
		return s.Observe(account.Reading{At: b.now(), Source: account.FromPoll, Windows: []account.WindowReading{
			{Name: account.Weekly, Utilization: u, HasUtilization: true, ResetAt: b.now().Add(72 * time.Hour)},
		}}, 0, account.Rules{})
	})
}

func TestSwitches(t *testing.T) {
	b := newBench(t)
	b.add("marlow", "juniper", "sorrel")
	b.weekly("marlow", 0.5)
	b.weekly("juniper", 0.12)
	if r := b.must("switches"); r.stdout != "" || !strings.Contains(r.stderr, "no switch yet") {
		t.Errorf("before any: got %q and %q, want a sentence that there was no switch", r.stdout, r.stderr)
	}
	var want []string
	since := func(did []string, more ...string) {
		t.Helper()
		b.must(did...)
		want = append(more, want...)
		if d := cmp.Diff(append([]string{}, want...), b.switches()); d != "" {
			t.Fatalf("after %v (-want +got):\n%s", did, d)
		}
	}
	since([]string{"account", "order", "anthropic", "juniper"}) // another policy: nobody serves
	since([]string{"account", "order", "anthropic", "marlow"})
	since([]string{"policy", "anthropic", "order"}) // the first is no switch
	since([]string{"policy", "anthropic", "order", "--threshold", "0.3"}, "anthropic marlow juniper reorder quota")
	since([]string{"policy", "anthropic", "order", "--threshold", "0.8"}, "anthropic juniper marlow reorder returned")
	since([]string{"account", "order", "anthropic", "juniper"}, "anthropic marlow juniper manual order")
	since([]string{"account", "order", "anthropic", "juniper", "sorrel"}) // who serves is the same
	since([]string{"account", "drain", "juniper"}, "anthropic juniper sorrel manual order")
	since([]string{"account", "resume", "juniper"}, "anthropic sorrel juniper manual order")
	b.fold("juniper", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.Funds, At: t0.Add(time.Second), Generation: 9}, account.Rules{})
	})
	since([]string{"account", "resume", "marlow"}, "anthropic juniper sorrel reorder parked") // whatever was seen with it
	since([]string{"account", "clear", "juniper"}, "anthropic sorrel juniper reorder returned")
	since([]string{"account", "remove", "juniper"}, "anthropic juniper sorrel manual order")
	since([]string{"policy", "anthropic", "score"})

	b.refuses(2, "no provider", "switches", "--provider", "nobody")
	if got := b.switches("--provider", "xai"); len(got) != 0 {
		t.Errorf("of another provider: got %v, want none", got)
	}
	table := b.must("switches", "--provider", "anthropic").stdout
	for _, line := range []string{
		"TIME                  PROVIDER   FROM               TO                MODE     REASON\n" +
			"2027-03-04 10:00:00Z  anthropic  juniper (unknown)  sorrel (unknown)  manual   order\n",
		"2027-03-04 10:00:00Z  anthropic  marlow (50%)       juniper (12%)     reorder  quota\n",
	} {
		if !strings.Contains(table, line) {
			t.Errorf("got\n%s\nwant in it\n%s", table, line)
		}
	}
	if text := b.must("status").stdout; !strings.Contains(text, "last switch: 2027-03-04 10:00Z (0s ago), anthropic from juniper (") {
		t.Errorf("got\n%s\nwant the last switch in it", text)
	}
}

// TestOrderIsTheFirstSwitch: the owner's word is a switch also where nobody looked before.
func TestOrderIsTheFirstSwitch(t *testing.T) {
	b := newBench(t)
	b.must("policy", "anthropic", "order")
	b.add("marlow", "juniper")
	b.must("account", "order", "anthropic", "juniper")
	if d := cmp.Diff([]string{"anthropic marlow juniper manual order"}, b.switches()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	b.refuses(1, "no account", "account", "order", "anthropic", "nobody")
}
