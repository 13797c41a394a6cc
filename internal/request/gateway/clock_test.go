package gateway_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/test/upstreamtest"
)

// TestClockThatWasAhead is field case a-clock-that-was-ahead: what was written by a clock thirty
// days ahead blocks nobody, whoever wrote it, and newer figures win. It is said once.
func TestClockThatWasAhead(t *testing.T) {
	const month = 30 * 24 * time.Hour
	for name, wrong := range map[string]time.Duration{"a month ahead": month, "ten minutes ahead": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "marlow", "juniper")
			b.clock.advance(wrong)
			// Refusals and readings as they are learnt while the clock is wrong.
			for _, a := range []string{"marlow", "juniper"} {
				b.account(a).Always(upstreamtest.Bare())
			}
			for i := range 3 {
				b.do(ask{session: session(i), model: []string{"claude-opus-5", "claude-sonnet-5", "claude-haiku-4-5"}[i]})
			}
			b.account("marlow").Always(upstreamtest.FiveHourSpent(b.clock.now().Add(4 * time.Hour)))
			b.account("juniper").Always(upstreamtest.FiveHourSpent(b.clock.now().Add(4 * time.Hour)))
			b.clock.advance(10 * time.Second)
			b.do(ask{session: session(9)})
			b.fold("juniper", func(s account.State) account.State {
				return s.Observe(reading(b.clock.now(), 0.99, 0.99), 0, account.Rules{})
			})
			// The clock is put right, and the process starts anew.
			b.clock.ahead.Store(0)
			_, url := b.process(b.store, nil)
			for _, a := range []string{"marlow", "juniper"} {
				b.account(a).Always(upstreamtest.Good(nil))
			}
			r := b.do(ask{session: session(20), url: url})
			if wrong == month && r.status != 200 {
				t.Fatalf("got %d %s, Retry-After %q", r.status, r.body, r.header.Get("Retry-After"))
			}
			if after := r.header.Get("Retry-After"); len(after) > 5 {
				t.Errorf("got Retry-After %q", after)
			}
			// A newer figure of the account's wins over that of the future.
			b.fold("juniper", func(s account.State) account.State {
				s, _ = s.Believed(b.clock.now())
				return s.Observe(reading(b.clock.now(), 0.03, 0.03), 0, account.Rules{})
			})
			if got := b.state("juniper").Windows[account.Weekly].Utilization; got != 0.03 {
				t.Errorf("got a weekly window at %v, want the newer 0.03", got)
			}
			key := b.newKey(catalog.ClientKey{Name: "juniper alone", Accounts: []account.ID{"acc-juniper"}})
			b.clock.advance(2 * time.Second)
			b.served(ask{session: session(21), url: url, key: key})
			b.served(ask{session: session(22), url: url, key: key})
			if n := strings.Count(b.log.String(), "from the future"); n > 2 {
				t.Errorf("said %d times, want once for each account", n)
			}
		})
	}
}
