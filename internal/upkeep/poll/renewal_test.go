package poll_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/upkeep/poll"
)

// TestRenewedAheadOfTime: logins past half of their life are renewed in the round, looked at
// or not, and parked for funds or not.
func TestRenewedAheadOfTime(t *testing.T) {
	b := newBench(t)
	for name, parkedFor := range map[string]account.RejectionKind{"half": "", "young": "", "funds": account.Funds, "dead": account.BadCredential} {
		b.login(account.Anthropic, name).answer(claude(1, 1))
		life := 8 * time.Hour
		b.edit(name, func(c credential.Credential) credential.Credential {
			c.IssuedAt = t0.Add(-life / 2)
			if name == "young" {
				c.IssuedAt = c.IssuedAt.Add(time.Second)
			}
			c.ExpiresAt = c.IssuedAt.Add(life)
			return c
		})
		b.learn(name, func(s account.State) account.State {
			s = read(account.Weekly, t0, account.FromAnswer) // nobody is due for a look
			if parkedFor != "" {
				s.Parked = &account.Parked{Since: t0, Kind: parkedFor}
			}
			return s
		})
	}
	b.renewer.unsaved = 1
	report, err := b.poller().Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := b.renewer.renewals()
	slices.Sort(got)
	if !slices.Equal(got, []string{"funds", "half"}) || !b.find(report, "half").Renewed {
		t.Errorf("got renewals of %v, want funds and half", got)
	}
	if b.renewer.saved != 1 {
		t.Errorf("a grant that is not saved was tried %d times, want once", b.renewer.saved)
	}
}

// TestNoRenewalAtTheEnd: nothing is renewed in a process that has not the time for it.
func TestNoRenewalAtTheEnd(t *testing.T) {
	b := newBench(t)
	e := b.login(account.Anthropic, "marlow")
	e.answer(claude(1, 1))
	b.edit("marlow", func(c credential.Credential) credential.Credential {
		c.IssuedAt, c.ExpiresAt = t0.Add(-7*time.Hour), t0.Add(time.Hour)
		return c
	})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	report, err := b.poller().Round(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f := b.find(report, "marlow")
	if got := b.renewer.renewals(); len(got) != 0 || f.RenewTrouble == "" {
		t.Errorf("got renewals %v and %q, want none, and words for that", got, f.RenewTrouble)
	}
	if f.Result != poll.WasRead {
		t.Errorf("got %s (%s), want a reading all the same", f.Result, f.Trouble)
	}
}

// TestStopped: a round that is ended is no failure of the endpoint's.
func TestStopped(t *testing.T) {
	b := newBench(t)
	e := b.login(account.Anthropic, "marlow")
	ctx, cancel := context.WithCancel(t.Context())
	e.answer(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	report, err := b.poller().Round(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if f := b.find(report, "marlow"); f.Result != poll.NotReached || f.Clock.Failures != 0 {
		t.Errorf("got %s, %+v, want not reached", f.Result, f.Clock)
	}
	e.calls()
	e.answer(claude(1, 1))
	b.advance(time.Minute)
	if f := b.round(b.poller(), "marlow"); f.Result != poll.WasRead {
		t.Errorf("the next round: got %s, want a reading", f.Result)
	}
}

// TestDiedInARound: a process that dies while it looks has set the clock before.
func TestDiedInARound(t *testing.T) {
	b := newBench(t)
	b.login(account.Anthropic, "marlow").answer(func(w http.ResponseWriter, r *http.Request) {
		p, err := b.store.Poll(t.Context())
		if c := p.Clocks["acc-marlow"]; err != nil || !c.NextAt.Equal(t0.Add(5*time.Minute)) || !p.RoundAt.Equal(t0) {
			t.Errorf("while it is asked: got %+v (%v), want the next look 5 minutes on", p, err)
		}
		claude(1, 1)(w, r)
	})
	b.round(b.poller(), "marlow")
}
