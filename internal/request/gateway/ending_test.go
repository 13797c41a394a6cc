package gateway_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/alarm"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/metric"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/provider/openai"
	"holdfast/internal/provider/xai"
	"holdfast/internal/request/gateway"
	"holdfast/internal/status"
	"holdfast/internal/store/vault"
	"holdfast/internal/test/upstreamtest"
	"holdfast/internal/upkeep/poll"
	"holdfast/internal/upkeep/refresh"
)

// refusing is a token endpoint that refuses every refresh token for good.
type refusing struct {
	status int
	body   string
	asked  atomic.Int64
}

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	r.asked.Add(1)
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: r.status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(r.body)), Request: req,
	}, nil
}

// dying is a bench whose account tansy is a login with three hours left that is due to be
// renewed, with a poller, and a token endpoint that refuses it.
type dying struct {
	*bench
	issuer *refusing
	poller *poll.Poller
	ask    func(n int) ask
}

func newDying(t *testing.T, p account.Provider) *dying {
	t.Helper()
	d := &dying{bench: newBench(t), issuer: &refusing{status: http.StatusBadRequest, body: `{"error":"invalid_grant"}`}}
	d.add(p, account.Subscription, "tansy")
	switch p {
	case account.OpenAI:
		d.issuer.status, d.issuer.body = http.StatusUnauthorized, `{"error":{"code":"refresh_token_reused"}}`
		d.ask = func(n int) ask { return codexAsk(n, "gpt-5.5") }
	case account.XAI:
		d.ask = func(n int) ask { return grokAsk(n) }
	default:
		d.account("tansy").Always(upstreamtest.Good(nil))
		d.ask = func(n int) ask { return ask{session: session(n)} }
	}
	now := d.clock.now()
	d.save(account.Account{ID: "acc-tansy"}, credential.Credential{
		Access: credential.NewSecret(secret("tansy")), Refresh: credential.NewSecret("refresh-EXAMPLE"), Generation: 1,
		IssuedAt: now.Add(-7 * time.Hour), ExpiresAt: now.Add(3 * time.Hour), Principal: "user-tansy/workspace-tansy",
	})
	logins, err := refresh.New(refresh.Options{
		Store: d.store, OpenBox: func(context.Context) (refresh.Box, error) { return d.box, nil }, Transport: d.issuer, Now: d.clock.now,
		Renewers: map[account.Provider]provider.Renewer{account.Anthropic: anthropic.Provider{}, account.OpenAI: openai.Provider{}, account.XAI: xai.Provider{}},
	})
	if err == nil {
		d.poller, err = poll.New(poll.Options{
			Store: d.store, OpenBox: func(context.Context) (vault.Box, error) { return d.box, nil }, Now: d.clock.now,
			Lookers: map[account.Provider]provider.Looker{}, Refresher: logins,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	d.gw, d.url = d.process(d.store, func(o *gateway.Options) { o.Renew = logins.Renew })
	return d
}

// round makes a round of the poller, a minute after the last.
func (d *dying) round() {
	d.t.Helper()
	d.clock.advance(time.Minute)
	if r, err := d.poller.Round(d.t.Context()); err != nil || r.Skipped != "" {
		d.t.Fatalf("round: %v %s", err, r.Skipped)
	}
}

func (d *dying) status() status.Account {
	d.t.Helper()
	snap, err := d.store.Snapshot(d.t.Context(), true)
	if err != nil {
		d.t.Fatal(err)
	}
	return status.Of(status.Input{Now: d.clock.now(), Catalog: *snap.Catalog.Catalog, States: snap.States, Credentials: snap.Credentials}).Accounts[0]
}

// alarmed reports whether the account's alarm is raised by what a round measures.
func (d *dying) alarmed() bool {
	d.t.Helper()
	fleet, err := d.poller.Fleet(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	a := alarm.Of("holdfast", fleet.Catalog.Accounts[0])
	return slices.ContainsFunc(metric.OfFleet(fleet), func(d metric.Datum) bool {
		return d.Name == a.Metric && d.Dimensions[1].Value == a.Account && d.Value >= a.AtLeast
	})
}

// lost checks that the account is parked and that its refresh token was sent once.
func (d *dying) lost() {
	d.t.Helper()
	if r := d.do(d.ask(0)); r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account" {
		d.t.Errorf("got %d %s, want 503 no_account", r.status, r.errorKind())
	}
	s := d.status()
	if s.State != status.Parked || s.NeedsOwner == nil || s.NeedsOwner.Until != nil || !d.alarmed() {
		d.t.Errorf("got state %s and need %+v, want it parked, and its owner told", s.State, s.NeedsOwner)
	}
	if n := d.issuer.asked.Load(); n != 1 {
		d.t.Errorf("the refused token was sent %d times, want once", n)
	}
}

// TestRefusedRenewalBesideALivingToken is field case
// a-dead-refresh-token-and-a-living-access-token: the access token goes on until it ends or
// is refused, the refresh token is not sent again, and the owner is told at once.
func TestRefusedRenewalBesideALivingToken(t *testing.T) {
	for _, p := range account.Providers {
		begin := func(t *testing.T) *dying {
			d := newDying(t, p)
			d.served(d.ask(0))
			if d.alarmed() || d.status().NeedsOwner != nil {
				t.Error("the owner is told before anything is wrong")
			}
			d.round()
			return d
		}
		t.Run(string(p)+" until it ends", func(t *testing.T) {
			d := begin(t)
			ends := d.status().LoginExpiresAt
			for range 3 {
				if r := d.served(d.ask(0)); r.pin() != "kept" {
					t.Errorf("got pin %s, want kept", r.pin())
				}
				d.served(d.ask(1)) // new conversations too
				s := d.status()
				if s.State != status.Ready || s.NeedsOwner == nil || s.NeedsOwner.Until == nil || !s.NeedsOwner.Until.Equal(*ends) ||
					s.NeedsOwner.Command != "holdfast account login tansy --import FILE" || !strings.Contains(s.Warning, s.NeedsOwner.Command) {
					t.Errorf("got state %s, need %+v and warning %q, want it ready, and its owner told until %v", s.State, s.NeedsOwner, s.Warning, ends)
				}
				if !d.alarmed() {
					t.Error("no alarm is raised")
				}
				d.round()
			}
			d.clock.advance(3 * time.Hour)
			d.lost()
		})
		t.Run(string(p)+" until the poller sees that it ended", func(t *testing.T) {
			d := begin(t)
			d.clock.advance(3 * time.Hour)
			d.round()
			if s := d.status(); s.State != status.Parked {
				t.Errorf("got state %s, want it parked", s.State)
			}
			d.lost()
		})
		t.Run(string(p)+" until it is refused", func(t *testing.T) {
			d := begin(t)
			d.account("tansy").Known()
			d.lost()
		})
		t.Run(string(p)+" until the owner logs in", func(t *testing.T) {
			d := begin(t)
			c := credential.Credential{
				Access: credential.NewSecret(secret("tansy")), Refresh: credential.NewSecret("another-EXAMPLE"), Generation: 2,
				ExpiresAt: d.clock.now().Add(8 * time.Hour), Principal: "user-tansy/workspace-tansy",
			}
			d.save(account.Account{ID: "acc-tansy"}, c)
			d.fold("tansy", func(s account.State) account.State { return s.LoggedIn(2) })
			d.served(d.ask(0))
			if s := d.status(); s.NeedsOwner != nil || s.Warning != "" {
				t.Errorf("got need %+v and warning %q, want none", s.NeedsOwner, s.Warning)
			}
		})
	}
}
