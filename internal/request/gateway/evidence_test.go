package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/test/upstreamtest"
)

// TestLateAnswerEndsNoCooldown is field case late-evidence: a plain request that was sent
// before another one was refused says nothing against that refusal, however late its answer
// comes; one that was sent afterwards does.
func TestLateAnswerEndsNoCooldown(t *testing.T) {
	b := newBench(t, "marlow")
	marlow := b.account("marlow")
	reset := b.clock.now().Add(3 * time.Hour)
	room := upstreamtest.Good(upstreamtest.Plan(0.97, reset, 0.40, reset.Add(48*time.Hour)))
	gate := upstreamtest.NewGate()
	marlow.Queue(room.With(upstreamtest.Held(gate)), upstreamtest.FiveHourSpent(reset))

	late := make(chan reply, 1)
	go func() { late <- b.do(ask{session: session(1)}) }()
	<-gate.Reached()
	b.clock.advance(time.Second)
	if r := b.do(ask{session: session(2)}); r.status != http.StatusTooManyRequests {
		t.Fatalf("got %d, want the refusal", r.status)
	}
	b.clock.advance(2 * time.Second)
	gate.Release()
	if r := <-late; r.status != http.StatusOK {
		t.Fatalf("the late answer: got %d, want 200", r.status)
	}
	b.clock.advance(time.Second)
	before := b.sent()
	if r := b.do(ask{session: session(3)}); r.status != http.StatusTooManyRequests || r.errorKind() != "exhausted" || b.sent() != before {
		t.Errorf("got %d %s after %d sends, want the cooldown to hold", r.status, r.errorKind(), b.sent()-before)
	}
	b.fold("marlow", func(s account.State) account.State { // a request that was sent after the refusal
		now := b.clock.now()
		r := reading(now, 0.97, 0.4)
		r.Sent = now
		return s.Observe(r, 0, account.Rules{})
	})
	b.clock.advance(2 * time.Second)
	b.served(ask{session: session(4)})
}

// TestFullWithoutAReset is field case marks-without-an-end at each provider: an account that
// was read as full without a reset gets a request again, also while another one has room.
func TestFullWithoutAReset(t *testing.T) {
	for _, c := range []struct {
		provider account.Provider
		kind     account.Kind
		ask      ask
		window   account.WindowReading
	}{
		{account.Anthropic, account.Key, ask{}, account.WindowReading{Name: account.FiveHour, Status: account.Rejected}},
		{account.Anthropic, account.Key, ask{}, account.WindowReading{Name: account.InputTokens, Utilization: 1, HasUtilization: true}},
		{account.OpenAI, account.Key, ask{path: "/v1/responses", body: `{"model":"gpt-5.5","input":"hello"}`}, account.WindowReading{Name: account.Tokens, Utilization: 1, HasUtilization: true}},
		{account.XAI, account.Key, ask{path: "/v1/chat/completions", body: `{"model":"grok-4.6","messages":[]}`}, account.WindowReading{Name: account.Weekly, Utilization: 1, HasUtilization: true}},
	} {
		t.Run(string(c.provider)+" "+c.window.Name, func(t *testing.T) {
			for _, after := range []time.Duration{20 * time.Minute, 6 * time.Hour, 8 * 24 * time.Hour} {
				b := newBench(t)
				for _, name := range []string{"full", "half"} {
					b.addOf(c.provider, name, c.kind)
				}
				now := b.clock.now()
				b.fold("full", func(account.State) account.State {
					return account.State{}.Observe(account.Reading{At: now, Source: account.FromAnswer, Windows: []account.WindowReading{c.window}}, 0, account.Rules{})
				})
				b.fold("half", func(account.State) account.State {
					return account.State{}.Observe(account.Reading{At: now, Source: account.FromAnswer, Windows: []account.WindowReading{
						{Name: c.window.Name, Utilization: 0.5, HasUtilization: true, ResetAt: now.Add(20 * 24 * time.Hour)},
					}}, 0, account.Rules{})
				})
				begun := 0
				at := func(name string) bool { // of a dozen new conversations
					for range 12 {
						q := c.ask
						q.header = http.Header{"X-Holdfast-Conversation": {session(begun)}}
						begun++
						if b.do(q).account() == name {
							return true
						}
					}
					return false
				}
				if at("full") {
					t.Errorf("at once: a conversation began at the full account, want it passed over")
				}
				b.clock.advance(after)
				if !at("full") {
					t.Errorf("after %v: no conversation began at the account that was full, want it tried", after)
				}
			}
		})
	}
}

// A throttle that told three seconds lasts three: a client that waits as told is served.
func TestThrottleLastsAsTold(t *testing.T) {
	for _, told := range []time.Duration{time.Second, 3 * time.Second, 4 * time.Second} {
		b := newBench(t, "marlow")
		b.account("marlow").Queue(upstreamtest.Throttled(told))
		if r := b.do(ask{session: session(1)}); r.status != http.StatusTooManyRequests {
			t.Fatalf("got %d, want the throttle", r.status)
		}
		b.clock.advance(told + 400*time.Millisecond)
		if r := b.do(ask{session: session(1)}); r.status != http.StatusOK {
			t.Errorf("0.4 s after the told %v: got %d %s, want 200", told, r.status, r.body)
		}
	}
}

// A reading that answers confirm stays fresh, however short the setting fresh_for is.
func TestConfirmedReadingStaysFresh(t *testing.T) {
	b := newBench(t, "marlow")
	b.set("fresh_for", "2m")
	b.clock.advance(2 * time.Second)
	reset := b.clock.now().Add(3 * time.Hour)
	b.account("marlow").Always(upstreamtest.Good(upstreamtest.Plan(0.20, reset, 0.30, reset)))
	for range 5 {
		b.served(ask{session: session(1)})
		b.clock.advance(time.Minute)
	}
	b.await("the reading to be dated anew", func() bool {
		return b.clock.now().Sub(b.state("marlow").ReadAt) < 2*time.Minute
	})
}
