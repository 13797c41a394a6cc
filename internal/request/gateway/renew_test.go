package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/request/gateway"
	"holdfast/internal/test/upstreamtest"
	"holdfast/internal/upkeep/refresh"
)

// renewals stands in for the refresher: it stores a next credential, or fails.
type renewals struct {
	b    *bench
	fail error
	n    atomic.Int64
}

func (r *renewals) renew(_ context.Context, a account.Account, held credential.Credential) (credential.Credential, error) {
	n := r.n.Add(1)
	if r.fail != nil {
		return credential.Credential{}, fmt.Errorf("renew: %w", r.fail)
	}
	next := held
	next.Generation++
	next.Access = credential.NewSecret(fmt.Sprintf("%s-renewed-%d", secret(a.Name), n))
	next.ExpiresAt = r.b.clock.now().Add(time.Hour)
	r.b.save(a, next)
	return next, nil
}

// withRenewals is a bench of Anthropic logins whose gateway renews them; every renewed
// token is the account's at the upstream.
func withRenewals(t *testing.T, names ...string) (*bench, *renewals) {
	t.Helper()
	b := newBench(t)
	for _, name := range names {
		b.addAccount(name, account.Subscription)
	}
	r := &renewals{b: b}
	b.gw, b.url = b.process(b.store, func(o *gateway.Options) { o.Renew = r.renew })
	return b, r
}

func (b *bench) expire(name string, at time.Time) {
	b.t.Helper()
	a := account.Account{ID: account.ID("acc-" + name), Name: name, Kind: account.Subscription}
	b.save(a, credential.Credential{
		Access: credential.NewSecret(secret(name)), Refresh: credential.NewSecret("refresh-" + name), ExpiresAt: at, Generation: 1,
	})
}

// An access token that is known to have ended is not sent, and renewed before; up to that
// instant it is good.
func TestEndedTokenIsRenewedBeforeTheSend(t *testing.T) {
	b, r := withRenewals(t, "marlow")
	renewed := b.up.Account("marlow renewed", secret("marlow")+"-renewed-1")
	b.expire("marlow", b.clock.now().Add(time.Hour))
	b.served(ask{session: session(1)})
	if r.n.Load() != 0 {
		t.Fatal("a token that lives was renewed")
	}
	b.clock.advance(time.Hour)
	if got := b.served(ask{session: session(1)}); got.account() != "marlow" || got.pin() != "new" && got.pin() != "kept" {
		t.Errorf("got %s, pin %s", got.account(), got.pin())
	}
	b.served(ask{session: session(1)})
	if n, old, next := r.n.Load(), len(b.account("marlow").Requests()), len(renewed.Requests()); n != 1 || old != 1 || next != 2 {
		t.Errorf("got %d renewals, %d sends with the old token, %d with the new, want 1, 1, 2", n, old, next)
	}
}

// warm-process-hazards: a process that was frozen while another renewed uses what that one
// stored, and spends no refresh token itself.
func TestFrozenProcessUsesWhatAnotherRenewed(t *testing.T) {
	for name, ends := range map[string]time.Duration{"known to have ended": 30 * time.Minute, "refused": 0} {
		t.Run(name, func(t *testing.T) {
			b, r := withRenewals(t, "marlow")
			at := time.Time{}
			if ends > 0 {
				at = b.clock.now().Add(ends)
			}
			b.expire("marlow", at)
			b.served(ask{session: session(1)})
			b.clock.advance(40 * time.Minute)
			b.up.Account("marlow renewed", "TOKEN-OF-ANOTHER")
			b.save(account.Account{ID: "acc-marlow"}, credential.Credential{
				Access: credential.NewSecret("TOKEN-OF-ANOTHER"), Refresh: credential.NewSecret("refresh-2"), Generation: 2, ExpiresAt: b.clock.now().Add(time.Hour),
			})
			b.account("marlow").Always(upstreamtest.Refusal("token-expired"))
			if got := b.served(ask{session: session(1)}); got.account() != "marlow" {
				t.Errorf("got %s", got.account())
			}
			if r.n.Load() != 0 || b.state("marlow").Parked != nil {
				t.Errorf("got %d renewals, parked %v", r.n.Load(), b.state("marlow").Parked)
			}
		})
	}
}

// auth-failure-routing: a refused token that has not ended is renewed once and the request
// sent once more on the same account.
func TestRefusedTokenIsRenewedOnce(t *testing.T) {
	for _, refusal := range []string{"invalid-token", "token-expired"} {
		t.Run(refusal, func(t *testing.T) {
			b, r := withRenewals(t, "marlow", "juniper")
			b.prefer("marlow", "juniper")
			b.up.Account("marlow renewed", secret("marlow")+"-renewed-1")
			b.account("marlow").Always(upstreamtest.Refusal(refusal))
			if got := b.served(ask{session: session(1)}); got.account() != "marlow" || b.sent() != 2 {
				t.Errorf("got %s after %d sends, want marlow after 2", got.account(), b.sent())
			}
			if r.n.Load() != 1 || b.state("marlow").Parked != nil {
				t.Errorf("got %d renewals, parked %v", r.n.Load(), b.state("marlow").Parked)
			}
		})
	}
	t.Run("refused again: parked, and one hop", func(t *testing.T) {
		b, r := withRenewals(t, "marlow", "juniper")
		b.prefer("marlow", "juniper")
		b.up.Account("marlow renewed", secret("marlow")+"-renewed-1").Always(upstreamtest.Refusal("invalid-token"))
		b.account("marlow").Always(upstreamtest.Refusal("invalid-token"))
		if got := b.served(ask{session: session(1)}); got.account() != "juniper" || b.sent() != 3 {
			t.Errorf("got %s after %d sends, want juniper after 3", got.account(), b.sent())
		}
		if p := b.state("marlow").Parked; p == nil || p.Kind != account.BadCredential || r.n.Load() != 1 {
			t.Errorf("got parked %+v after %d renewals, want parked after 1", p, r.n.Load())
		}
	})
	t.Run("a key is parked by its first", func(t *testing.T) {
		b, r := withRenewals(t)
		b.addAccount("rowan", account.Key)
		b.clock.advance(2 * time.Second)
		b.account("rowan").Always(upstreamtest.Refusal("invalid-key"))
		if got := b.do(ask{session: session(1)}); got.status != http.StatusServiceUnavailable || got.errorKind() != "no_account" || b.sent() != 1 || r.n.Load() != 0 {
			t.Errorf("got %d %s after %d sends and %d renewals", got.status, got.errorKind(), b.sent(), r.n.Load())
		}
		if b.state("rowan").Parked == nil {
			t.Error("the key is not parked")
		}
	})
}

// A renewal that fails for the moment parks nobody and hands no 401 on: a conversation
// waits on its account, and a new one goes elsewhere.
func TestRenewalThatFailsForTheMoment(t *testing.T) {
	for name, prepare := range map[string]func(*bench){
		"the token has ended":  func(b *bench) { b.clock.advance(2 * time.Minute) },
		"the token is refused": func(b *bench) { b.account("marlow").Always(upstreamtest.Refusal("invalid-token")) },
	} {
		t.Run(name, func(t *testing.T) {
			b, r := withRenewals(t, "marlow", "juniper")
			r.fail = refresh.ErrTransient
			b.prefer("marlow", "juniper")
			b.expire("marlow", b.clock.now().Add(time.Minute))
			b.served(ask{session: session(1)})
			prepare(b)
			got := b.do(ask{session: session(1)})
			if got.status != http.StatusServiceUnavailable || got.errorKind() != "upstream_unreachable" || got.header.Get("Retry-After") != "5" || got.header.Get("X-Should-Retry") == "false" {
				t.Errorf("pinned: got %d %s, Retry-After %q", got.status, got.errorKind(), got.header.Get("Retry-After"))
			}
			if !strings.Contains(got.body, "marlow") || containsAny(got.body, "authentication_error") {
				t.Errorf("got %s", got.body)
			}
			if got := b.served(ask{session: session(2)}); got.account() != "juniper" {
				t.Errorf("new: got %s, want juniper", got.account())
			}
			if st := b.state("marlow"); st.Parked != nil || len(st.Blocks) > 0 {
				t.Errorf("got %+v %v, want nothing held against the account", st.Parked, st.Blocks)
			}
			r.fail = nil
			b.up.Account("marlow renewed", fmt.Sprintf("%s-renewed-%d", secret("marlow"), r.n.Load()+1))
			if got := b.served(ask{session: session(1)}); got.account() != "marlow" || got.pin() != "kept" {
				t.Errorf("afterwards: got %s, pin %s, want marlow, kept", got.account(), got.pin())
			}
		})
	}
}

// A login that is not renewed for longer than a pinned conversation should wait is one that
// cannot serve: the conversation moves, unless only that account can go on with it.
func TestRenewalThatFailsForLong(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Duration
		want  string // who serves; empty for nobody
	}{
		"for less than move_after": {40 * time.Second, ""},
		"for longer":               {10 * time.Minute, "juniper"},
	} {
		t.Run(name, func(t *testing.T) {
			b, r := withRenewals(t, "marlow", "juniper")
			b.prefer("marlow", "juniper")
			b.expire("marlow", b.clock.now().Add(time.Minute))
			b.served(ask{session: session(1)})
			b.clock.advance(2 * time.Minute)
			r.fail = &refresh.LaterError{Until: b.clock.now().Add(c.until), Err: refresh.ErrTransient}
			got := b.do(ask{session: session(1)})
			if c.want == "" {
				wait, _ := strconv.Atoi(got.header.Get("Retry-After"))
				if got.status != http.StatusServiceUnavailable || got.errorKind() != "upstream_unreachable" || wait <= 5 || wait > 40 {
					t.Errorf("got %d %s, Retry-After %q, want 503 and the time of the next try", got.status, got.errorKind(), got.header.Get("Retry-After"))
				}
				return
			}
			if got.status != http.StatusOK || got.account() != c.want || got.pin() != "moved" {
				t.Errorf("got %d by %s, pin %s, want it moved to %s", got.status, got.account(), got.pin(), c.want)
			}
		})
	}
}

// What comes back by itself is told, though others that were asked need their owner.
func TestRenewalThatFailsBesideAParkedAccount(t *testing.T) {
	b, r := withRenewals(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.expire("marlow", b.clock.now().Add(time.Minute))
	b.clock.advance(2 * time.Minute)
	r.fail = &refresh.LaterError{Until: b.clock.now().Add(9 * time.Second), Err: refresh.ErrTransient}
	b.fold("juniper", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.BadCredential, At: b.clock.now(), Generation: 9, Rule: "invalid-key"}, account.Rules{})
	})
	got := b.do(ask{session: session(1)})
	if got.status != http.StatusServiceUnavailable || got.errorKind() != "upstream_unreachable" || got.header.Get("X-Should-Retry") == "false" || !strings.Contains(got.body, "marlow") {
		t.Errorf("got %d %s %q: %s, want to be told that marlow may serve again", got.status, got.errorKind(), got.header.Get("X-Should-Retry"), got.body)
	}
}

// A login whose token is refused and whose plan does not include a new one serves nothing
// until its owner changes the plan, however long the token was to live.
func TestPlanThatRenewsNoRefusedToken(t *testing.T) {
	b, r := withRenewals(t, "marlow", "juniper")
	r.fail = errors.Join(refresh.ErrTransient, provider.ErrNotEntitled)
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.account("marlow").Always(upstreamtest.Refusal("invalid-token"))
	if got := b.served(ask{session: session(1)}); got.account() != "juniper" || got.pin() != "moved" {
		t.Errorf("got %s, pin %s, want juniper, moved", got.account(), got.pin())
	}
	if p := b.state("marlow").Parked; p == nil || p.Reason != refresh.ReasonNotEntitled || p.Kind != account.Funds {
		t.Errorf("got parked %+v, want %s", p, refresh.ReasonNotEntitled)
	}
	before := len(b.account("marlow").Requests())
	b.served(ask{session: session(2)})
	if got := len(b.account("marlow").Requests()) - before; got != 0 {
		t.Errorf("got %d more sends to an account that serves nothing, want none", got)
	}
}

// What only the owner can mend is parked with the refresher's own word, and the request
// goes elsewhere.
func TestRenewalThatNeedsTheOwner(t *testing.T) {
	b, r := withRenewals(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.account("marlow").Always(upstreamtest.Refusal("invalid-token"))
	_, url := b.process(b.store, func(o *gateway.Options) {
		o.Renew = func(ctx context.Context, a account.Account, held credential.Credential) (credential.Credential, error) {
			b.fold(a.Name, func(s account.State) account.State {
				return s.Reject(account.Rejection{Kind: account.BadCredential, At: b.clock.now(), Generation: held.Generation, Rule: "invalid_grant"}, account.Rules{})
			})
			return credential.Credential{}, errors.Join(refresh.ErrOwner)
		}
	})
	got := b.served(ask{session: session(1), url: url})
	if got.account() != "juniper" || got.pin() != "moved" || r.n.Load() != 0 {
		t.Errorf("got %s, pin %s", got.account(), got.pin())
	}
	if p := b.state("marlow").Parked; p == nil || p.Reason != "invalid_grant" {
		t.Errorf("got parked %+v, want the refresher's reason", p)
	}
}

// A token may turn out to have ended when the stream has begun. Before content it is
// renewed and asked with again; after it nobody is parked, since the next request renews.
func TestTokenThatEndsInTheStream(t *testing.T) {
	failed := `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"token_expired","message":"Your token has expired."}}}`
	for name, at := range map[string]int{"before content": 2, "after content": 4} {
		t.Run(name, func(t *testing.T) {
			b := codexBench(t, "tansy", "thistle")
			r := &renewals{b: b}
			_, url := b.process(b.store, func(o *gateway.Options) { o.Renew = r.renew })
			b.up.Account("tansy renewed", secret("tansy")+"-renewed-1").Always(answerTo)
			events := append(append([]string(nil), responsesStream[:at]...), failed)
			b.account("tansy").Queue(streamed(events...))
			a := codexAsk(1, "gpt-5.5")
			a.url = url
			got := b.do(a)
			want, renewed := string(frame(responsesStream...)), int64(1)
			if at == 4 {
				want, renewed = string(frame(events...)), 0
			}
			if got.status != http.StatusOK || got.account() != "tansy" || got.body != want || r.n.Load() != renewed {
				t.Errorf("got %d from %s after %d renewals:\n%s", got.status, got.account(), r.n.Load(), got.body)
			}
			if p := b.state("tansy").Parked; p != nil {
				t.Errorf("got parked %+v", p)
			}
		})
	}
}
