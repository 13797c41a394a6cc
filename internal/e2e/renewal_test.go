package e2e_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/upstreamtest"
)

// client is a real client of a provider's.
type client interface {
	start(prompt string) result
	turn(prompt string) result
}

// renewals are the providers with the client that each is reached by.
var renewals = []struct {
	provider string
	up       func(testing.TB) *upstreamtest.Upstream
	token    string              // the path of the token endpoint
	refusal  upstreamtest.Script // of an access token that does no more
	client   func(t *testing.T, base, key string) client
}{
	{"openai", upstreamtest.StartOpenAI, upstreamtest.OpenAIToken, upstreamtest.OpenAIRefusal("token-expired"), func(t *testing.T, base, key string) client { return newCodex(t, base, key) }},
	{"xai", upstreamtest.StartXAI, upstreamtest.XAIToken, upstreamtest.XAIRefusal("bad-credentials"), func(t *testing.T, base, key string) client { return newGrok(t, base, key) }},
}

// renewable makes a bench with one login, whose refresh token the upstream takes once.
func renewable(t *testing.T, provider string, up *upstreamtest.Upstream, refusal upstreamtest.Script, ends time.Time) (b *bench, next login) {
	t.Helper()
	b = newBenchOn(t, up)
	old := newLogin(provider, "one", 1, ends)
	next = old
	next.ends = time.Now().Add(6 * time.Hour)
	next.access, next.refresh = old.token(provider, next.ends), old.refresh+"-next"
	b.secrets = append(b.secrets, old.access, old.refresh, next.access, next.refresh)
	b.imported(provider, old, "--no-check")
	up.Account("what one was", old.access).Always(refusal)
	b.one = up.Account("one")
	b.one.Renewable(old.refresh, upstreamtest.Grant{Access: next.access, Refresh: next.refresh, Ends: next.ends})
	b.roomy(b.one)
	return b, next
}

// A login that has ended, or that the provider takes no more, is renewed within the turn
// that needs it, once; its client hears nothing of it.
func TestLoginIsRenewedWithinATurn(t *testing.T) {
	for _, r := range renewals {
		for _, c := range []struct {
			name string
			ends time.Duration // of the stored access token, from now
		}{
			{"ended", -time.Minute},
			{"refused before its end", 5 * time.Hour},
		} {
			t.Run(r.provider+", "+c.name, func(t *testing.T) {
				b, next := renewable(t, r.provider, r.up(t), r.refusal, time.Now().Add(c.ends).Truncate(time.Second))
				b.serve()
				agent := r.client(t, b.front.url, b.key)
				answered(t, "first turn", agent.start("hello"), "by account one.")
				answered(t, "second turn", agent.turn("go on"), "by account one.")
				if n := exchanges(b.up, r.token); n != 1 {
					t.Errorf("exchanges of the refresh token: got %d, want 1", n)
				}
				for _, request := range turns(b.one.Requests()) {
					if request.Credential != next.access {
						t.Errorf("request %d of the account: not with the new access token", request.Number)
					}
				}
				for _, e := range b.front.exchanges() {
					if e.status != 200 {
						t.Errorf("%s %s: got status %d, want 200", e.method, e.path, e.status)
					}
				}
				b.sealed()
			})
		}
	}
}

// A round of the poller renews a login that is due, and looks at its usage with the new
// token; the turn after it finds nothing left to do.
func TestPollerRenewsALogin(t *testing.T) {
	for _, r := range renewals {
		t.Run(r.provider, func(t *testing.T) {
			b, next := renewable(t, r.provider, r.up(t), r.refusal, time.Now().Add(-time.Minute).Truncate(time.Second))
			b.quiet("holdfast poll", b.run(nil, "poll").all())
			if n := exchanges(b.up, r.token); n != 1 {
				t.Errorf("exchanges in the round: got %d, want 1", n)
			}
			b.until("one", "the reading of its usage", func(s shown) bool { return s.utilization("weekly") > 0 })
			b.serve()
			answered(t, "first turn", r.client(t, b.front.url, b.key).start("hello"), "by account one.")
			if n := exchanges(b.up, r.token); n != 1 {
				t.Errorf("exchanges after a turn: got %d, want still 1", n)
			}
			for _, request := range turns(b.up.Requests()) {
				if request.Credential != next.access {
					t.Errorf("request %d: not with the new access token", request.Number)
				}
			}
		})
	}
}

// A refresh token that the provider has revoked is sent once and never again; the client
// stops, and is told which account needs its owner.
func TestLoginThatCannotBeRenewed(t *testing.T) {
	b := newBenchOn(t, upstreamtest.StartXAI(t))
	l := newLogin("xai", "one", 1, time.Now().Add(-time.Minute).Truncate(time.Second))
	b.secrets = append(b.secrets, l.access, l.refresh)
	b.imported("xai", l, "--no-check")
	b.one = b.up.Account("one")
	b.serve()
	agent := newGrok(t, b.front.url, b.key)
	for range 2 {
		if got := agent.start("hello"); got.code == 0 || !strings.Contains(got.all(), "need their owner: one") {
			t.Errorf("got exit %d and %q, want a failure that says whose login is at an end", got.code, got.all())
		}
	}
	if n := exchanges(b.up, upstreamtest.XAIToken); n != 1 {
		t.Errorf("exchanges of the refresh token: got %d, want 1", n)
	}
	b.until("one", "parked", func(s shown) bool { return s.State == "parked" })
}

// exchanges counts what the token endpoint was asked.
func exchanges(up *upstreamtest.Upstream, path string) int {
	n := 0
	for _, r := range up.Requests() {
		if r.Path == path {
			n++
		}
	}
	return n
}
