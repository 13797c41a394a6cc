package poll_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/pick"
	"holdfast/internal/store/vault"
	"holdfast/internal/upkeep/poll"
	"holdfast/internal/upkeep/refresh"
)

// TestRefusedTwice: a second refusal is a failed look. The account lives on.
func TestRefusedTwice(t *testing.T) {
	b := newBench(t)
	e := b.login(account.OpenAI, "tansy")
	refuse := says(http.StatusUnauthorized, `{"error":{"message":"Your authentication token has been invalidated.","code":"token_invalidated"}}`)
	e.answer(refuse)
	f := b.round(b.poller(), "tansy")
	if f.Result != poll.HasFailed || len(b.renewer.renewals()) != 1 || len(e.calls()) != 2 || b.state("tansy").Parked != nil {
		t.Errorf("got %s, parked %v, want a failed look after one renewal and two calls", f.Result, b.state("tansy").Parked)
	}
	b.renewer.fails = fmt.Errorf("renew: %w", refresh.ErrOwner)
	b.renewer.parks = true
	b.advance(5 * time.Minute)
	f = b.round(b.poller(), "tansy")
	if f.State.Parked == nil {
		t.Error("the report does not say that the refresher has parked the account")
	}
	if held := b.renewer.held; !held.Access.Empty() || held.Refresh.Empty() {
		t.Error("the refresher is not told that the access token is refused")
	}
	if f.Result != poll.HasFailed || !strings.Contains(f.Trouble, "needs its owner") || len(e.calls()) != 1 || f.Clock.Failures != 2 {
		t.Errorf("got %s (%s) %+v, want a failed look whose words name the renewal", f.Result, f.Trouble, f.Clock)
	}
}

// TestCooldownOutlivesReset is field case cooldown-outlives-reset: a look newer than the
// rejection that shows room ends the cooldown, also while another account is healthy, and
// also in a process that never saw the rejection.
func TestCooldownOutlivesReset(t *testing.T) {
	for _, c := range []struct {
		name    string
		sibling bool
	}{{"(a) the only account", false}, {"(b) beside a healthy one", true}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			e := b.login(account.Anthropic, "juniper")
			if c.sibling {
				b.login(account.Anthropic, "marlow").answer(claude(10, 10))
			}
			rejected := account.Rejection{Kind: account.WindowSpent, At: t0, Spent: []account.Spent{{Window: account.Weekly, ResetAt: t0.Add(6 * 24 * time.Hour)}}}
			b.learn("juniper", func(s account.State) account.State { return s.Reject(rejected, account.Rules{}) })
			e.answer(claude(100, 100))
			for range 60 {
				b.round(b.poller(), "juniper")
				b.advance(time.Minute)
			}
			if calls := e.calls(); len(calls) != 12 {
				t.Errorf("got %d calls in an hour of cooling (%v), want one every 5 minutes", len(calls), calls)
			}
			if _, blocked := pick.Blocked(b.clock(), pick.Request{}, pick.Of(account.Account{}, b.state("juniper").State)); !blocked {
				t.Error("a full window frees the account")
			}
			e.answer(claude(0, 0))
			b.round(b.poller(), "juniper") // (c) every round here is a new process's
			if block, blocked := pick.Blocked(b.clock(), pick.Request{}, pick.Of(account.Account{}, b.state("juniper").State)); blocked {
				t.Errorf("got %+v, want the cooldown ended by the look", block)
			}
			// The rejection, folded once more and late, is no relapse.
			b.learn("juniper", func(s account.State) account.State { return s.Reject(rejected, account.Rules{}) })
			if block, blocked := pick.Blocked(b.clock(), pick.Request{}, pick.Of(account.Account{}, b.state("juniper").State)); blocked {
				t.Errorf("got %+v, want no relapse", block)
			}
		})
	}
}

// TestFamilyFreed is field case model-cap-scope (d).
func TestFamilyFreed(t *testing.T) {
	b := newBench(t)
	e := b.login(account.Anthropic, "marlow")
	b.learn("marlow", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.ModelWindow, At: t0, Family: "opus", Spent: []account.Spent{
			{Window: account.WeeklyOf("opus"), Family: "opus", ResetAt: t0.Add(72 * time.Hour)},
		}}, account.Rules{})
	})
	b.advance(time.Hour)
	e.answer(says(http.StatusOK, `{"five_hour":{"utilization":1,"resets_at":"2027-03-04T15:00:00Z"},"seven_day_opus":{"utilization":0,"resets_at":"2027-03-10T10:00:00Z"}}`))
	b.round(b.poller(), "marlow")
	if block, blocked := pick.Blocked(b.clock(), pick.Request{Family: "opus", Model: "claude-opus-5"}, pick.Of(account.Account{}, b.state("marlow").State)); blocked {
		t.Errorf("got %+v, want the family freed", block)
	}
}

// TestFullByPollerAlone: an account that only the poller knows to be full gets no new
// conversation after the round.
func TestFullByPollerAlone(t *testing.T) {
	b := newBench(t)
	b.login(account.OpenAI, "tansy").answer(codex(100, 40, true))
	b.login(account.OpenAI, "thistle").answer(codex(20, 60, false))
	report, err := b.poller().Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var candidates []pick.Candidate
	for _, f := range report.Accounts {
		candidates = append(candidates, pick.Candidate{Account: f.Account, State: b.state(f.Account.Name).State, Serves: true, Allowed: true})
	}
	for _, policy := range []catalog.PolicyName{catalog.Score, catalog.SoonestReset, catalog.Order} {
		got := pick.Pick(b.clock(), catalog.Policy{Name: policy, Threshold: catalog.DefaultThreshold}, catalog.Catalog{}.Settings(), pick.Request{}, candidates)
		if got.Chosen != 1 {
			t.Errorf("policy %s: got candidate %d, want thistle", policy, got.Chosen)
		}
	}
}

// TestAbsentFigures: xAI leaves zeros out, over REST and over gRPC-Web, and the second way
// is asked in the same turn where the first fails.
func TestAbsentFigures(t *testing.T) {
	const rest = `{"config":{"currentPeriod":{"type":"USAGE_PERIOD_TYPE_WEEKLY","start":"2027-03-03T10:00:00Z","end":"2027-03-10T10:00:00Z"},"onDemandCap":{"val":0},"onDemandUsed":{"val":0},"isUnifiedBillingUser":true}}`
	// A message whose current period ends at 1804672800 and that has no percent, then a
	// trailer with status 0.
	const grpc = "\x00\x00\x00\x00\x0c\x0a\x0a\x42\x08\x1a\x06\x08\xa0\xbe\xc4\xdc\x06" +
		"\x80\x00\x00\x00\x10grpc-status: 0\r\n"
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		paths  []string
	}{
		{"REST", says(http.StatusOK, rest), []string{"/v1/billing"}},
		{"gRPC-Web after REST failed", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/billing" {
				says(http.StatusBadGateway, `<html>`)(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/grpc-web+proto")
			_, _ = w.Write([]byte(grpc))
		}, []string{"/v1/billing", "/grok_api_v2.GrokBuildBilling/GetGrokCreditsConfig"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			e := b.login(account.XAI, "bracken")
			b.learn("bracken", func(s account.State) account.State { return read(account.Weekly, t0.Add(-time.Hour), account.FromPoll) })
			e.answer(c.answer)
			f := b.round(b.poller(), "bracken")
			if !slices.Equal(e.paths, c.paths) {
				t.Errorf("got calls %v, want %v", e.paths, c.paths)
			}
			if f.Result != poll.WasRead {
				t.Fatalf("got %s (%s), want a reading", f.Result, f.Trouble)
			}
			w := b.state("bracken").Windows[account.Weekly]
			if w.Utilization != 0 || !w.HasUtilization || !w.ResetAt.Equal(t0.Add(6*24*time.Hour)) {
				t.Errorf("got %+v, want 0 until 2027-03-10T10:00:00Z", w)
			}
		})
	}
}

// TestKeysAreNeverAsked: keys have no usage endpoint, and nothing is done for them.
func TestKeysAreNeverAsked(t *testing.T) {
	b := newBench(t)
	for _, p := range account.Providers {
		b.add(account.Account{ID: account.ID("acc-" + p), Name: "key-" + string(p), Provider: p, Kind: account.Key, BaseURL: "http://127.0.0.1:1"},
			credential.Credential{Generation: 1, Key: credential.NewSecret("EXAMPLE")})
	}
	p := b.poller(func(o *poll.Options) {
		o.OpenBox = func(context.Context) (vault.Box, error) { return nil, errors.New("there is nothing to open") }
	})
	report, err := p.RoundOfAll(t.Context(), nil)
	if err != nil || len(report.Accounts) != 3 {
		t.Fatalf("got %d accounts and error %v, want 3 and none", len(report.Accounts), err)
	}
	for _, f := range report.Accounts {
		if f.Result != poll.Unwatched || f.Watched {
			t.Errorf("%s: got %s, want unwatched", f.Account.Name, f.Result)
		}
	}
}

// TestUnparked is the end of field case money-or-access-lost-under-an-odd-status.
func TestUnparked(t *testing.T) {
	b := newBench(t)
	e := b.login(account.XAI, "bracken")
	refusal := account.Rejection{Kind: account.Funds, At: t0, Rule: "personal-team-blocked:spending-limit"}
	b.learn("bracken", func(s account.State) account.State { return s.Reject(refusal, account.Rules{}) })
	full := `{"config":{"creditUsagePercent":%v,"currentPeriod":{"type":"USAGE_PERIOD_TYPE_WEEKLY","end":"2027-03-10T10:00:00Z"}}}`
	e.answer(says(http.StatusOK, fmt.Sprintf(full, 100)))
	var asked []time.Duration
	for range 61 {
		b.round(b.poller(), "bracken")
		b.advance(time.Minute)
	}
	asked = e.calls()
	if want := []time.Duration{30 * time.Minute, time.Hour}; !slices.Equal(asked, want) {
		t.Errorf("got calls at %v, want %v: now and then", asked, want)
	}
	if b.state("bracken").Parked == nil {
		t.Fatal("a full account is not parked any more")
	}
	e.answer(says(http.StatusOK, fmt.Sprintf(full, 3)))
	b.advance(29 * time.Minute)
	f := b.round(b.poller(), "bracken")
	if s := b.state("bracken"); s.Parked != nil || f.Clock.Unparked != 1 {
		t.Errorf("got parked %+v, clock %+v, want it freed, once", s.Parked, f.Clock)
	}
	b.learn("bracken", func(s account.State) account.State { return s.Reject(refusal, account.Rules{}) })
	if b.state("bracken").Parked != nil {
		t.Error("the refusal, folded late, parks it again")
	}
}
