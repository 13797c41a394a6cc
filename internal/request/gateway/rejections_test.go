package gateway_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/simulate"
	"holdfast/internal/test/upstreamtest"
)

// sent counts the upstream requests so far.
func (b *bench) sent() int { return len(b.up.Requests()) }

// burst-429-read-as-exhaustion
func TestThrottlePausesAndKeepsThePin(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.account("marlow").Queue(upstreamtest.Throttled(12 * time.Second))
	r := b.do(ask{session: session(1)})
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "12" || r.errorKind() != "" || r.account() != "marlow" {
		t.Fatalf("got %d, Retry-After %q, error kind %q, want the upstream's own answer", r.status, r.header.Get("Retry-After"), r.errorKind())
	}
	sent := b.sent()
	r = b.do(ask{session: session(1)})
	if wait, _ := strconv.Atoi(r.header.Get("Retry-After")); r.status != http.StatusTooManyRequests || r.errorKind() != "paused" || wait < 1 || wait > 12 {
		t.Errorf("within the pause: got %d %q, Retry-After %d", r.status, r.errorKind(), wait)
	}
	if b.sent() != sent {
		t.Error("a request went upstream within the pause")
	}
	b.clock.advance(13 * time.Second)
	if r := b.served(ask{session: session(1)}); r.account() != "marlow" || r.pin() != "kept" {
		t.Errorf("after it: got %s, pin %s, want marlow, kept", r.account(), r.pin())
	}
}

func TestThrottledNewConversationHopsOnce(t *testing.T) {
	b := newBench(t, "marlow", "juniper", "rowan")
	b.prefer("marlow", "juniper", "rowan")
	for _, name := range []string{"marlow", "juniper", "rowan"} {
		b.account(name).Always(upstreamtest.Throttled(12 * time.Second))
	}
	r := b.do(ask{session: session(1)})
	if r.status != http.StatusTooManyRequests || b.sent() != 2 {
		t.Errorf("got %d after %d sends, want 429 after 2", r.status, b.sent())
	}
}

// bare-429-amplified
func TestBareRefusalPausesOneModelOnly(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	for i := range 4 {
		b.served(ask{session: session(i)})
	}
	for _, name := range []string{"marlow", "juniper"} {
		b.account(name).Always(func(r *upstreamtest.Request) upstreamtest.Answer {
			if r.Model == "claude-oldname-2" {
				return upstreamtest.Bare()(r)
			}
			return upstreamtest.Good(nil)(r)
		})
	}
	sent := b.sent()
	r := b.do(ask{session: session(9), model: "claude-oldname-2"})
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "" || r.errorKind() != "" || b.sent()-sent != 2 {
		t.Errorf("got %d, Retry-After %q, kind %q after %d sends, want the bare 429 after 2", r.status, r.header.Get("Retry-After"), r.errorKind(), b.sent()-sent)
	}
	for i := range 4 {
		if r := b.served(ask{session: session(i)}); r.pin() != "kept" {
			t.Errorf("another conversation: got pin %s, want kept", r.pin())
		}
	}
	b.clock.advance(5 * time.Second)
	for _, name := range []string{"marlow", "juniper"} {
		if blocks := pick.BlocksFor(b.clock.now(), pick.Request{Family: "oldname-2", Model: "claude-oldname-2"}, pick.Of(account.Account{}, b.state(name).State)); len(blocks) != 0 {
			t.Errorf("%s: got blocks %v after 5 s, want none", name, blocks)
		}
	}
}

// entitlement-429-read-as-exhaustion
func TestEntitlementCoolsNothing(t *testing.T) {
	b := newBench(t, "marlow")
	b.account("marlow").Queue(upstreamtest.NotEntitled(b.clock.now().Add(6 * 24 * time.Hour)))
	long := http.Header{"Anthropic-Beta": {"context-1m-2025-08-07"}}
	r := b.do(ask{session: session(1), header: long})
	if r.status != http.StatusTooManyRequests || !strings.Contains(r.body, "credits are required") || r.errorKind() != "" {
		t.Errorf("got %d %s, want the upstream's words", r.status, r.body)
	}
	if r := b.served(ask{session: session(2)}); r.account() != "marlow" {
		t.Errorf("an ordinary request: got %s", r.account())
	}
	b.addAccount("juniper", account.Key)
	b.clock.advance(2 * time.Second)
	if r := b.served(ask{session: session(3), header: long}); r.account() != "juniper" {
		t.Errorf("the pair was forgotten: got %s, want juniper", r.account())
	}
}

// model-cap-scope
func TestFamilyCapBlocksTheFamilyOnly(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	reset := b.clock.now().Add(72 * time.Hour)
	b.account("marlow").Queue(upstreamtest.ModelSpent(reset))
	if r := b.served(ask{session: session(1), model: "claude-fable-5"}); r.account() != "juniper" {
		t.Errorf("got %s, want juniper", r.account())
	}
	b.prefer("marlow", "juniper")
	if r := b.served(ask{session: session(2), model: "claude-haiku-4-5"}); r.account() != "marlow" {
		t.Errorf("another family: got %s, want marlow", r.account())
	}
	marlow := len(b.account("marlow").Requests())
	if r := b.served(ask{session: session(3), model: "claude-fable-5"}); r.account() != "juniper" {
		t.Errorf("the family again: got %s, want juniper", r.account())
	}
	if n := len(b.account("marlow").Requests()); n != marlow {
		t.Error("the spent family was asked for again")
	}
}

func TestFiveHourBlocksEveryModel(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.account("marlow").Queue(upstreamtest.FiveHourSpentTersely(b.clock.now().Add(3 * time.Hour)))
	b.served(ask{session: session(1), model: "claude-haiku-4-5"})
	sent := len(b.account("marlow").Requests())
	b.served(ask{session: session(2), model: "claude-opus-5"})
	if n := len(b.account("marlow").Requests()); n != sent {
		t.Error("the account was asked for another model")
	}
}

// money-or-access-lost-under-an-odd-status
func TestMoneyParksAndHops(t *testing.T) {
	for _, name := range upstreamtest.Refusals() {
		if !strings.Contains(name, "credit-balance") && !strings.Contains(name, "disabled") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "marlow", "juniper")
			b.prefer("marlow", "juniper")
			b.account("marlow").Always(upstreamtest.Refusal(name))
			if r := b.served(ask{session: session(1)}); r.account() != "juniper" {
				t.Errorf("got %s, want juniper", r.account())
			}
			if b.state("marlow").Parked == nil {
				t.Fatal("the account is not parked")
			}
			b.served(ask{session: session(2)})
			if n := len(b.account("marlow").Requests()); n != 1 {
				t.Errorf("got %d requests at the parked account, want 1", n)
			}
		})
	}
}

// An error's body that comes compressed is judged by what it says.
func TestCompressedErrorIsUnderstood(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.account("marlow").Always(upstreamtest.Refusal("credit-balance").With(upstreamtest.Gzip()))
	if r := b.served(ask{session: session(1), header: http.Header{"Accept-Encoding": {"gzip"}}}); r.account() != "juniper" {
		t.Errorf("got %s, want juniper", r.account())
	}
	if p := b.state("marlow").Parked; p == nil || p.Reason != "credit-balance" {
		t.Errorf("got %+v, want parked for its credit balance", p)
	}
}

// client-fault-punishes-accounts
func TestClientFaultsAreHandedBackOnce(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(2)})
	for _, status := range []int{400, 404, 413, 422} {
		for range 3 {
			sent := b.sent()
			b.account("marlow").Queue(upstreamtest.Failed(status, simulate.Failure{Type: "invalid_request_error", Message: "messages.1: tool_result without tool_use"}))
			r := b.do(ask{session: session(1)})
			if r.status != status || r.account() != "marlow" || !strings.Contains(r.body, "tool_result without tool_use") || b.sent()-sent != 1 {
				t.Errorf("got %d from %s after %d sends, want %d after 1", r.status, r.account(), b.sent()-sent, status)
			}
		}
	}
	st := b.state("marlow")
	if len(st.Blocks) != 0 || st.Parked != nil {
		t.Errorf("got %+v, want nothing held against the account", st)
	}
	if r := b.served(ask{session: session(2)}); r.account() != "marlow" || r.pin() != "kept" {
		t.Errorf("the good one: got %s, pin %s", r.account(), r.pin())
	}
}

func TestOverloadIsHandedBackOnce(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.account("marlow").Queue(upstreamtest.Overloaded())
	if r := b.do(ask{session: session(1)}); r.status != 529 || b.sent() != 1 || r.errorType() != "overloaded_error" {
		t.Errorf("got %d %s after %d sends, want 529 after 1", r.status, r.body, b.sent())
	}
	if blocks := b.state("marlow").Blocks; len(blocks) != 0 {
		t.Errorf("got blocks %v, want none", blocks)
	}
}

// auth-failure-routing
func TestRefusedCredential(t *testing.T) {
	t.Run("parks, hops, and is never the client's 401", func(t *testing.T) {
		b := newBench(t, "marlow", "juniper")
		b.prefer("marlow", "juniper")
		b.account("marlow").Always(upstreamtest.Refusal("invalid-key"))
		if r := b.served(ask{session: session(1)}); r.account() != "juniper" {
			t.Errorf("got %s, want juniper", r.account())
		}
		b.account("juniper").Always(upstreamtest.Refusal("invalid-key"))
		r := b.do(ask{session: session(1)})
		if r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account" || !strings.Contains(r.body, "juniper") {
			t.Errorf("got %d %s %s, want 503 no_account that names the account", r.status, r.errorKind(), r.body)
		}
		sent := b.sent()
		if r := b.do(ask{session: session(3)}); r.status != http.StatusServiceUnavailable || !containsAny(r.body, "marlow") || b.sent() != sent {
			t.Errorf("got %d %s, want 503 without a send", r.status, r.body)
		}
	})
	t.Run("a newer one in the store is used at once", func(t *testing.T) {
		b := newBench(t, "marlow")
		b.served(ask{session: session(1)})
		b.up.Account("marlow again", "sk-ant-api03-NEW")
		b.account("marlow").Always(upstreamtest.Refusal("invalid-key"))
		a := account.Account{ID: "acc-marlow", Kind: account.Key}
		b.login(a, "sk-ant-api03-NEW", 2) // another process renewed it; this one holds the old
		if r := b.served(ask{session: session(1)}); r.account() != "marlow" || r.pin() != "kept" {
			t.Errorf("got %s, pin %s", r.account(), r.pin())
		}
		if b.state("marlow").Parked != nil {
			t.Error("the account is parked")
		}
	})
}

// what-the-client-is-told-when-all-is-spent
func TestAllSpent(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	now := b.clock.now().Truncate(time.Second)
	soon, late := now.Add(72*time.Minute), now.Add(4*time.Hour)
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(late))
	b.account("juniper").Queue(upstreamtest.FiveHourSpent(soon))
	for i := range 2 { // the first time from the answers, then from memory
		sent := b.sent()
		r := b.do(ask{session: session(1)})
		if r.status != http.StatusTooManyRequests || r.errorType() != "rate_limit_error" {
			t.Fatalf("got %d %s, want 429 rate_limit_error", r.status, r.body)
		}
		if got := r.header.Get("Anthropic-Ratelimit-Unified-Status"); got != "rejected" {
			t.Errorf("got unified status %q, want rejected", got)
		}
		if got := r.header.Get("Anthropic-Ratelimit-Unified-Representative-Claim"); got != "five_hour" {
			t.Errorf("got claim %q, want five_hour", got)
		}
		if got := r.header.Get("Anthropic-Ratelimit-Unified-Reset"); got != strconv.FormatInt(soon.Unix(), 10) {
			t.Errorf("got reset %q, want the soonest, %d", got, soon.Unix())
		}
		if i == 1 && b.sent() != sent {
			t.Error("a request went upstream although every account is known to be spent")
		}
		if i == 1 && (r.errorKind() != "exhausted" || !strings.Contains(r.body, soon.UTC().Format(time.RFC3339))) {
			t.Errorf("got %q %s, want exhausted with the reset in words", r.errorKind(), r.body)
		}
	}
	b.clock.advance(73 * time.Minute)
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(late)) // it may be tried by now
	if r := b.served(ask{session: session(1)}); r.account() != "juniper" {
		t.Errorf("after the reset: got %s, want juniper", r.account())
	}
}

func TestNoAccount(t *testing.T) {
	b := newBench(t)
	r := b.do(ask{})
	if r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account" || !strings.Contains(r.body, "holdfast account add") {
		t.Errorf("got %d %s %s", r.status, r.errorKind(), r.body)
	}
}

// cooldown-outlives-reset: with no usage endpoint looked at, one real request tries the
// account after probe_interval, also while others are healthy, and a single one.
func TestSpentAccountIsTriedOnceAnInterval(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(4 * time.Hour)))
	b.served(ask{session: session(1)})
	b.clock.advance(9 * time.Minute)
	b.served(ask{session: session(2)})
	if n := len(b.account("marlow").Requests()); n != 1 {
		t.Fatalf("got %d requests within the interval, want 1", n)
	}
	b.clock.advance(time.Minute)
	gate := upstreamtest.NewGate()
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(4 * time.Hour)).With(upstreamtest.Held(gate)))
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() { b.served(ask{session: session(10 + i)}) })
	}
	<-gate.Reached()
	b.await("the others", func() bool { return len(b.account("juniper").Requests()) >= 6 })
	gate.Release()
	wg.Wait()
	if n := len(b.account("marlow").Requests()); n != 2 {
		t.Errorf("got %d requests, want one try", n)
	}
	b.clock.advance(10 * time.Minute)
	now := b.clock.now()
	b.account("marlow").Queue(upstreamtest.Good(upstreamtest.Plan(0.01, now.Add(5*time.Hour), 0.3, now.Add(90*time.Hour))))
	if r := b.served(ask{session: session(20)}); r.account() != "marlow" {
		t.Fatalf("the try after an early reset: got %s, want marlow", r.account())
	}
	if blocks := pick.BlocksFor(b.clock.now(), pick.Request{Family: "opus", Model: "claude-opus-5"}, pick.Of(account.Account{}, b.state("marlow").State)); len(blocks) != 0 {
		t.Errorf("got blocks %v after a reading that shows room, want none", blocks)
	}
}

func TestNoHTTPAnswerMarksNobody(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.account("marlow").Queue(func(*upstreamtest.Request) upstreamtest.Answer {
		panic(http.ErrAbortHandler) // the connection breaks before any header
	})
	r := b.do(ask{session: session(1)})
	if r.status != http.StatusBadGateway || r.errorKind() != "upstream_unreachable" || b.sent() != 1 {
		t.Errorf("got %d %s after %d sends", r.status, r.errorKind(), b.sent())
	}
	if st := b.state("marlow"); len(st.Blocks) != 0 || st.Parked != nil {
		t.Errorf("got %+v, want nothing held against the account", st)
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	page := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	tests := map[string]upstreamtest.Script{
		"empty":                 upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}}, nil),
		"a web page":            upstreamtest.Raw(200, page, []byte("<html>login to the guest network</html>")),
		"a page without a type": upstreamtest.Raw(200, http.Header{"Content-Type": {"application/json"}}, []byte("\n <!doctype html>")),
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "marlow")
			for _, stream := range []bool{false, true} {
				b.account("marlow").Queue(script)
				r := b.do(ask{session: session(1), stream: stream})
				if r.status != http.StatusBadGateway || r.errorKind() != "upstream_unreachable" || strings.Contains(r.body, "<") {
					t.Errorf("stream %v: got %d %s %s", stream, r.status, r.errorKind(), r.body)
				}
			}
			if st := b.state("marlow"); len(st.Blocks) != 0 || st.Parked != nil {
				t.Errorf("got %+v, want nothing held against the account", st)
			}
		})
	}
}

// A request in the low-priority lane belongs to the account that offered it.
func TestUsageLimitHeaderStays(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(time.Hour)))
	r := b.do(ask{session: session(1), header: http.Header{"Anthropic-Usage-Limit": {"slow"}}})
	if r.status != http.StatusTooManyRequests || r.account() != "marlow" || b.sent() != 2 {
		t.Errorf("got %d from %s, want the account's own 429", r.status, r.account())
	}
}
