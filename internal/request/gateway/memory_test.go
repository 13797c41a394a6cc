package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/hidden"
)

// A secret that the gateway holds in memory since its start stays out of the log, however
// many credentials came after it: each newer credential has those in use remembered anew.
func TestSecretsInUseStayHidden(t *testing.T) {
	const key = "formless-and-in-use-since-the-start"
	b, log := withKey(t, account.Anthropic, key)
	b.served(ask{session: session(1)})
	for i := range 4 {
		var replaced []string
		for n := range 1500 {
			replaced = append(replaced, fmt.Sprintf("replaced-long-ago-%d-%d", i, n))
		}
		hidden.Remember(replaced...)
		name := fmt.Sprint("later", i)
		b.addAccount(name, account.Key)
		b.clock.advance(3 * time.Second)
		b.served(ask{session: session(2 + i)})
	}
	b.account("hazel").Always(jsonAnswer(402, nil, fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":"Your credit balance is too low"}}`, key)))
	b.do(ask{session: session(1)})
	b.silent(log, key)
}

// What the gateway remembers of an account ends: the count of placements once the store has
// had its time, the credential of an account that was removed with the next that is opened.
func TestMemoryOfRemovedAccountsEnds(t *testing.T) {
	b := newBench(t, "marlow")
	for i := range 5 {
		name := fmt.Sprint("leaving", i)
		b.addAccount(name, account.Key)
		b.prefer(name, "marlow")
		b.clock.advance(3 * time.Second)
		if got := b.served(ask{session: session(i)}); got.account() != name {
			t.Fatalf("got %s, want %s", got.account(), name)
		}
		b.change(func(c catalog.Catalog) catalog.Catalog {
			kept := c.Accounts[:0:0]
			for _, a := range c.Accounts {
				if !strings.HasPrefix(a.Name, "leaving") {
					kept = append(kept, a)
				}
			}
			c.Accounts = kept
			return c
		})
	}
	b.clock.advance(2 * time.Minute)
	b.served(ask{session: session(10)})
	if counts, credentials := b.gw.Remembered(); counts > 1 || credentials > 2 {
		t.Errorf("got %d counts and %d credentials, want those of the account that is left and one credential that was held since the last was opened", counts, credentials)
	}
}

// An account whose state was dropped, because its login is now another principal's, counts as
// never seen: this process does not keep the old login's count of placements above the store's.
func TestCountBeginsAnewWithTheState(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	for i := range 12 {
		b.served(ask{session: session(i)})
	}
	if err := b.store.ForgetState(t.Context(), "acc-marlow"); err != nil {
		t.Fatal(err)
	}
	b.clock.advance(2 * time.Minute)
	for i := range 3 { // its trials
		if got := b.served(ask{session: session(20 + i)}); got.account() != "marlow" {
			t.Errorf("conversation %d: got %s, want the account that counts as never seen", i, got.account())
		}
	}
}
