package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/test/upstreamtest"
)

// Two credentials of one organization are recognized by what the provider says with every
// answer, and a spent organization is not tried again through the other of them.
func TestOneOrganizationIsNotTriedTwice(t *testing.T) {
	ours := upstreamtest.Header("anthropic-organization-id", "org-ours")
	b := newBench(t, "marlow", "juniper", "rowan")
	for i, name := range []string{"marlow", "juniper"} { // each is seen once
		b.account(name).Always(upstreamtest.Good(nil).With(ours))
		b.prefer(name, "marlow", "juniper", "rowan")
		if r := b.served(ask{session: session(i)}); r.account() != name {
			t.Fatalf("got %s, want %s", r.account(), name)
		}
	}
	b.prefer("marlow", "rowan")
	b.prefer("juniper", "rowan")
	reset := b.clock.now().Add(3 * time.Hour)
	for _, name := range []string{"marlow", "juniper"} {
		b.account(name).Always(upstreamtest.FiveHourSpent(reset).With(ours))
	}
	sent := b.sent()
	if r := b.served(ask{session: session(10)}); r.account() != "rowan" || b.sent() != sent+2 {
		t.Errorf("got %s after %d sends, want rowan after 2", r.account(), b.sent()-sent)
	}
	sent = b.sent()
	for i := range 2 { // the conversations of both move, and neither is asked again
		if r := b.served(ask{session: session(i)}); r.account() != "rowan" || r.pin() != "moved" {
			t.Errorf("got %s, pin %s, want rowan, moved", r.account(), r.pin())
		}
	}
	if b.sent() != sent+2 {
		t.Errorf("got %d sends, want 2", b.sent()-sent)
	}
	one, other := b.state("marlow"), b.state("juniper")
	if len(pick.BlocksFor(b.clock.now(), pick.Request{}, pick.Of(account.Account{}, one.State)))+len(pick.BlocksFor(b.clock.now(), pick.Request{}, pick.Of(account.Account{}, other.State))) != 1 {
		t.Errorf("got blocks %v and %v, want each state to tell what its own answers did", one.Blocks, other.Blocks)
	}
}

// Two seats of a team are of one organization, and each has an allowance.
func TestSeatsOfATeamShareNothing(t *testing.T) {
	team := upstreamtest.Header("anthropic-organization-id", "org-team")
	b := newBench(t)
	for _, name := range []string{"marlow", "juniper"} {
		b.addAccount(name, account.Subscription).Always(upstreamtest.Good(nil).With(team))
	}
	b.clock.advance(2 * time.Second)
	for i, name := range []string{"marlow", "juniper"} {
		b.prefer(name, "marlow", "juniper")
		b.served(ask{session: session(i)})
	}
	if got := b.state("marlow").Principal; got != "user-marlow/workspace-marlow" {
		t.Errorf("got principal %q", got)
	}
	b.prefer("marlow", "juniper")
	b.account("marlow").Always(upstreamtest.FiveHourSpent(b.clock.now().Add(3 * time.Hour)).With(team))
	if r := b.served(ask{session: session(10)}); r.account() != "juniper" {
		t.Errorf("got %s, want juniper", r.account())
	}
}

// An organization without money is told once, and the client is served by another.
func TestOrganizationWithoutMoney(t *testing.T) {
	h := http.Header{"Openai-Organization": {"org-ours"}}
	b := newBench(t)
	b.add(account.OpenAI, account.Key, "hazel", "alder", "rowan")
	good := func(r *upstreamtest.Request) upstreamtest.Answer {
		a := answerTo(r)
		a.Header["Openai-Organization"] = h["Openai-Organization"]
		return a
	}
	for i, name := range []string{"hazel", "alder"} {
		b.account(name).Always(good)
		b.prefer(name, "hazel", "alder", "rowan")
		b.served(chatAsk(i, "gpt-5.5"))
	}
	b.prefer("hazel", "rowan")
	b.prefer("alder", "rowan")
	for _, name := range []string{"hazel", "alder"} {
		b.account(name).Always(jsonAnswer(http.StatusTooManyRequests, h, `{"error":{"message":"Your credit balance is exhausted.","type":"insufficient_quota","code":"credit_balance_exhausted"}}`))
	}
	sent := b.sent()
	if r := b.served(chatAsk(9, "gpt-5.5")); r.account() != "rowan" || b.sent() != sent+2 {
		t.Errorf("got %s after %d sends, want rowan after 2", r.account(), b.sent()-sent)
	}
	b.fold("rowan", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.BadCredential, At: b.clock.now(), Generation: 1, Rule: "invalid-key"}, account.Rules{})
	})
	r := b.do(chatAsk(8, "gpt-5.5"))
	if r.status != http.StatusServiceUnavailable || strings.Count(r.body, "credit-balance") != 2 {
		t.Errorf("got %d %s, want both credentials named", r.status, r.body)
	}
}

// TestNothingIsSharedAcrossHosts is field case sharing-across-hosts: whoever answers at another
// host can name any organization; what it refuses is that account's alone.
func TestNothingIsSharedAcrossHosts(t *testing.T) {
	quota := jsonAnswer(http.StatusTooManyRequests, http.Header{"Openai-Organization": {"org-ours"}},
		`{"error":{"message":"Your credit balance is exhausted.","type":"insufficient_quota","code":"credit_balance_exhausted"}}`)
	named := upstreamtest.Header("anthropic-organization-id", "org-ours")
	messages := func(n int) ask { return ask{session: session(n)} }
	for _, c := range []struct {
		name     string
		provider account.Provider
		kind     account.Kind
		ask      func(n int) ask
		good     upstreamtest.Script
		refusal  func(b *bench) upstreamtest.Script
	}{
		{"a five-hour window of a login", account.Anthropic, account.Subscription, messages, upstreamtest.Good(nil).With(named),
			func(b *bench) upstreamtest.Script {
				return upstreamtest.FiveHourSpent(b.clock.now().Add(3 * time.Hour)).With(named)
			}},
		{"a five-hour window of a key", account.Anthropic, account.Key, messages, upstreamtest.Good(nil).With(named),
			func(b *bench) upstreamtest.Script {
				return upstreamtest.FiveHourSpent(b.clock.now().Add(3 * time.Hour)).With(named)
			}},
		{"no credit", account.Anthropic, account.Key, messages, upstreamtest.Good(nil).With(named),
			func(*bench) upstreamtest.Script { return upstreamtest.Refusal("credit-balance").With(named) }},
		{"no quota", account.OpenAI, account.Key, func(n int) ask { return chatAsk(n, "gpt-5.5") }, func(r *upstreamtest.Request) upstreamtest.Answer {
			a := answerTo(r)
			a.Header["Openai-Organization"] = []string{"org-ours"}
			return a
		}, func(*bench) upstreamtest.Script { return quota }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.add(c.provider, c.kind, "marlow", "evil")
			other := upstreamtest.Start(t)
			b.change(func(all catalog.Catalog) catalog.Catalog {
				next, err := all.SetBaseURL("evil", other.URL)
				if err != nil {
					t.Fatal(err)
				}
				return next
			})
			b.clock.advance(3 * time.Second)
			evil := other.Account("evil", secret("evil"))
			b.account("marlow").Always(c.good)
			evil.Always(c.good)
			for n, name := range []string{"marlow", "evil"} {
				b.prefer(name, "marlow", "evil")
				if r := b.served(c.ask(n)); r.account() != name {
					t.Fatalf("got %s, want %s", r.account(), name)
				}
			}
			evil.Always(c.refusal(b))
			b.prefer("evil", "marlow")
			b.served(c.ask(2)) // refused there, and served here
			if n := len(evil.Requests()); n != 2 {
				t.Fatalf("the other host had %d requests, want 2", n)
			}
			if r := b.served(c.ask(0)); r.account() != "marlow" || r.pin() != "kept" {
				t.Errorf("got %s, pin %s, want marlow, kept", r.account(), r.pin())
			}
		})
	}
}
