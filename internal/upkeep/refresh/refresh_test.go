package refresh_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/provider/openai"
	"holdfast/internal/provider/xai"
	"holdfast/internal/store"
	"holdfast/internal/test/issuertest"
	"holdfast/internal/upkeep/refresh"
)

const gone = `{"error":"invalid_grant"}`

func TestRenew(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	r := b.refresher(nil)
	b.good(r, 2)
	b.good(r, 2) // what is stored is enough for who has an older one
	b.clock.advance(9 * time.Hour)
	b.good(r, 3) // what is stored has ended itself
	b.counts(issuertest.Counts{Requests: 2, Exchanges: 2})
	if got := b.renewal(); got.Spending != nil || got.Failures != 0 || got.RenewedAt.IsZero() {
		t.Errorf("got renewal %+v, want no mark, no failure and an instant", got)
	}
	if got := b.stored(); got.IssuedAt.IsZero() || got.ExpiresAt.Sub(got.IssuedAt) < 7*time.Hour {
		t.Errorf("got issued %v, ends %v; want a life of 8 h", got.IssuedAt, got.ExpiresAt)
	}
}

// Each provider's own way of asking and answering, through a renewal, a cut answer, an
// answer without a refresh token, and the end.
func TestEveryProvider(t *testing.T) {
	for name, renewer := range map[account.Provider]provider.Renewer{
		account.Anthropic: anthropic.Provider{}, account.OpenAI: openai.Provider{}, account.XAI: xai.Provider{},
	} {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", keeps its refresh token: ", keep), func(t *testing.T) {
				b := begin(t, issuertest.Options{Grace: time.Minute, KeepRefresh: keep}, nil)
				b.acct.Provider = name
				r := b.refresherWith(func(o *refresh.Options) { o.Renewers = map[account.Provider]provider.Renewer{name: renewer} })
				b.good(r, 2)
				if got := b.stored(); !got.IssuedAt.Equal(b.clock.now()) || !got.ExpiresAt.Equal(b.clock.now().Add(8*time.Hour)) || got.ClientID != issuertest.ClientID {
					t.Errorf("got issued at %v, end %v, client %q; want now, in 8 h, and the login's own", got.IssuedAt, got.ExpiresAt, got.ClientID)
				}
				b.clock.advance(time.Minute)
				b.issuer.Next(issuertest.Fault{Cut: true})
				b.good(r, 3)
				b.clock.advance(time.Minute)
				b.issuer.Next(issuertest.Fault{Status: http.StatusBadGateway, Body: "<html>"})
				b.bad(r, refresh.ErrTransient)
				b.clock.advance(5 * time.Second)
				b.good(r, 4)
				if keep {
					return
				}
				b.clock.advance(9 * time.Hour)
				b.issuer.Revoke()
				b.bad(r, refresh.ErrOwner)
				if got := b.parked(); got != refresh.ReasonRefused {
					t.Errorf("got parked %q, want %q", got, refresh.ReasonRefused)
				}
			})
		}
	}
}

func TestAnswerWithoutRefreshToken(t *testing.T) {
	b := begin(t, issuertest.Options{KeepRefresh: true}, nil)
	before := b.stored()
	r := b.refresher(nil)
	b.good(r, 2)
	b.clock.advance(time.Minute)
	b.good(b.refresher(nil), 3)
	if got := b.stored(); got.Refresh.Reveal() != before.Refresh.Reveal() || got.ClientID != before.ClientID {
		t.Error("got what the answer left out changed, want it kept")
	}
}

func TestNothingToRenewWith(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	c := b.stored()
	c.Refresh, c.Generation = credential.Secret{}, 2
	b.save(c, 1)
	b.bad(b.refresher(nil), refresh.ErrOwner)
	if got := b.parked(); got != refresh.ReasonImpossible {
		t.Errorf("got parked %q, want %q", got, refresh.ReasonImpossible)
	}
	b.counts(issuertest.Counts{})

	other := b.acct
	other.ID = "without a credential"
	if _, err := b.refresher(nil).Renew(t.Context(), other, credential.Credential{}); !errors.Is(err, refresh.ErrOwner) {
		t.Errorf("got %v, want ErrOwner", err)
	}
}

func TestTransientFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault issuertest.Fault
	}{
		{"5xx", issuertest.Fault{Status: http.StatusServiceUnavailable, Body: "busy"}},
		{"429", issuertest.Fault{Status: http.StatusTooManyRequests}},
		{"403, the login has not ended", issuertest.Fault{Status: http.StatusForbidden}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := begin(t, issuertest.Options{}, nil)
			fresh := b.issuer.Login(time.Hour)
			fresh.Generation = 2
			b.save(fresh, 1)
			b.issuer.Next(c.fault, c.fault)
			r, other := b.refresher(nil), b.refresher(nil)
			b.bad(r, refresh.ErrTransient)
			b.bad(other, refresh.ErrTransient) // backed off from, by all
			b.counts(issuertest.Counts{Requests: 1})
			b.clock.advance(5 * time.Second)
			b.bad(other, refresh.ErrTransient)
			got := b.renewal()
			if got.Spending != nil || got.Failures != 2 || got.FailingSince.IsZero() || got.Failure == "" {
				t.Errorf("got renewal %+v, want no mark and 2 failures", got)
			}
			b.clock.advance(5 * time.Second)
			b.bad(r, refresh.ErrTransient) // the second pause is longer
			b.counts(issuertest.Counts{Requests: 2})
			if p := b.parked(); p != "" {
				t.Errorf("got parked %q, want not", p)
			}
			b.clock.advance(5 * time.Second)
			b.good(r, 3)
			if got := b.renewal(); got.Failures != 0 || !got.FailingSince.IsZero() || !got.RetryAt.IsZero() {
				t.Errorf("got renewal %+v, want the failures forgotten", got)
			}
		})
	}
}

func TestNotEntitledAndEnded(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	b.issuer.Next(issuertest.Fault{Status: http.StatusForbidden})
	r := b.refresher(nil)
	b.bad(r, refresh.ErrOwner)
	if got := b.parked(); got != refresh.ReasonNotEntitled {
		t.Errorf("got parked %q, want %q", got, refresh.ReasonNotEntitled)
	}
	b.clock.advance(5 * time.Second)
	b.good(r, 2) // the plan was changed
	if got := b.parked(); got != "" {
		t.Errorf("got parked %q, want not any more", got)
	}
}

func TestNotReached(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	away := b.acct
	away.BaseURL = "http://127.0.0.1:1" // nobody listens there
	r := b.refresher(nil)
	if _, err := r.Renew(t.Context(), away, b.stored()); !errors.Is(err, refresh.ErrTransient) {
		t.Errorf("got %v, want ErrTransient", err)
	}
	if got := b.renewal(); got.Spending != nil || got.Failures != 1 {
		t.Errorf("got renewal %+v, want no mark and a failure", got)
	}
	b.clock.advance(5 * time.Second)
	b.good(r, 2)
}

func TestRefusedForGood(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	b.issuer.Next(issuertest.Fault{Status: http.StatusBadRequest, Body: gone})
	b.bad(b.refresher(nil), refresh.ErrOwner)
	if got := b.parked(); got != refresh.ReasonRefused {
		t.Errorf("got parked %q, want %q", got, refresh.ReasonRefused)
	}
	b.clock.advance(24 * time.Hour)
	b.bad(b.refresher(nil), refresh.ErrOwner) // after a restart
	if got := b.renewal(); len(got.Refused) != 1 || got.Failures != 1 || got.Spending != nil || !b.state().Parked.Since.Equal(beginning) {
		t.Errorf("got renewal %+v and parked since %v, want one refused token, told once", got, b.state().Parked.Since)
	}

	// The owner imports the same file again, which ends the parking.
	same := b.stored()
	same.Generation++
	b.save(same, 1)
	b.loggedIn(2)
	b.bad(b.refresher(nil), refresh.ErrOwner)
	if got := b.parked(); got != refresh.ReasonRefused {
		t.Errorf("got parked %q, want %q", got, refresh.ReasonRefused)
	}
	b.counts(issuertest.Counts{Requests: 1})

	fresh := b.issuer.Login(0)
	fresh.Generation = 3
	b.save(fresh, 2)
	b.good(b.refresher(nil), 4)
}

// loggedIn ends the parking, as a command does.
func (b *bench) loggedIn(generation int64) {
	b.Helper()
	view, err := b.store.Read(b.Context(), store.Query{States: []account.ID{accountID}})
	if err == nil {
		_, err = b.store.Fold(b.Context(), accountID, view.States[accountID], func(s account.State) (account.State, bool) { return s.LoggedIn(generation), true })
	}
	if err != nil {
		b.Fatal(err)
	}
}

func TestRenewalEndsTheParking(t *testing.T) {
	for _, c := range []struct {
		kind account.RejectionKind
		want string
	}{{account.BadCredential, ""}, {account.Funds, "no-money"}} {
		b := begin(t, issuertest.Options{}, nil)
		_, err := b.store.Fold(t.Context(), accountID, store.StateRecord{}, func(s account.State) (account.State, bool) {
			return s.Reject(account.Rejection{Kind: c.kind, At: b.clock.now(), Generation: 1, Rule: "no-money"}, account.Rules{}), true
		})
		if err != nil {
			t.Fatal(err)
		}
		b.good(b.refresher(nil), 2)
		if got := b.parked(); got != c.want {
			t.Errorf("%s: got parked %q, want %q", c.kind, got, c.want)
		}
	}
}

func TestEndedContextStartsNothing(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.refresher(nil).Renew(ctx, b.acct, b.stored()); !errors.Is(err, refresh.ErrTransient) {
		t.Errorf("got %v, want ErrTransient", err)
	}
	b.counts(issuertest.Counts{})
}

func TestStartedExchangeIsNotCancelled(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	f := issuertest.Fault{Hold: make(chan struct{}), Holding: make(chan struct{})}
	b.issuer.Next(f)
	go func() {
		<-f.Holding
		cancel() // the client leaves
		close(f.Hold)
	}()
	got, err := b.refresher(nil).Renew(ctx, b.acct, b.stored())
	if err != nil || got.Generation != 2 || b.stored().Generation != 2 {
		t.Errorf("got generation %d and error %v, want the new one, saved", got.Generation, err)
	}
}

// A stop waits for the exchange that runs, saves its grant, and begins no other.
func TestClose(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	f := &failing{store.KindCredential, 4} // one Renew's tries, and one more
	r := b.refresher(f.put)
	thaw := b.frozen(r)
	closed := make(chan error)
	go func() { closed <- r.Close(context.Background()) }()
	if _, err := thaw(); !errors.Is(err, refresh.ErrTransient) {
		t.Errorf("got %v, want ErrTransient: it is not saved", err)
	}
	if err := <-closed; err != nil || r.Unsaved() != 0 || b.stored().Generation != 2 {
		t.Errorf("close: got %v, %d unsaved, generation %d stored; want the grant saved", err, r.Unsaved(), b.stored().Generation)
	}
	b.good(r, 2) // what is stored is still found
	b.clock.advance(9 * time.Hour)
	b.bad(r, refresh.ErrTransient)
	b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
}

func TestCloseGivesUp(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	r := b.refresher((&failing{store.KindCredential, -1}).put)
	b.bad(r, refresh.ErrTransient)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Close(ctx); err == nil || r.Unsaved() != 1 {
		t.Errorf("got %v and %d unsaved, want an error and 1", err, r.Unsaved())
	}
}

func TestOwnerLogsInMeanwhile(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	f := issuertest.Fault{Hold: make(chan struct{}), Holding: make(chan struct{})}
	b.issuer.Next(f)
	own := b.issuer.Login(time.Hour)
	own.Generation = 2
	go func() {
		<-f.Holding
		_, _ = b.vault.Save(context.Background(), accountID, own, 1)
		close(f.Hold)
	}()
	b.good(b.refresher(nil), 2)
	if b.stored().Access.Reveal() != own.Access.Reveal() {
		t.Error("got the late grant stored, want the owner's login")
	}
	b.clock.advance(2 * time.Hour)
	b.good(b.refresher(nil), 3) // the old mark concerns nobody
}

func TestDue(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC).Add(d) }
	token := credential.NewSecret("refresh")
	for _, c := range []struct {
		name string
		c    credential.Credential
		now  time.Duration
		want bool
	}{
		{"at half of its life", credential.Credential{Refresh: token, IssuedAt: at(0), ExpiresAt: at(8 * time.Hour)}, 4 * time.Hour, true},
		{"1 ns before", credential.Credential{Refresh: token, IssuedAt: at(0), ExpiresAt: at(8 * time.Hour)}, 4*time.Hour - 1, false},
		{"a life of minutes", credential.Credential{Refresh: token, IssuedAt: at(0), ExpiresAt: at(15 * time.Minute)}, 7*time.Minute + 30*time.Second, true},
		{"ended", credential.Credential{Refresh: token, IssuedAt: at(0), ExpiresAt: at(time.Hour)}, 2 * time.Hour, true},
		{"of unknown age, 10 minutes ahead", credential.Credential{Refresh: token, ExpiresAt: at(time.Hour)}, 50 * time.Minute, true},
		{"of unknown age, 1 ns before", credential.Credential{Refresh: token, ExpiresAt: at(time.Hour)}, 50*time.Minute - 1, false},
		{"of unknown end, after 8 days", credential.Credential{Refresh: token, IssuedAt: at(0)}, 8 * 24 * time.Hour, true},
		{"of unknown end, 1 ns before", credential.Credential{Refresh: token, IssuedAt: at(0)}, 8*24*time.Hour - 1, false},
		{"nothing known", credential.Credential{Refresh: token}, 1000 * time.Hour, false},
		{"without refresh token", credential.Credential{IssuedAt: at(0), ExpiresAt: at(time.Hour)}, 2 * time.Hour, false},
		{"a key", credential.Credential{Key: credential.NewSecret("key")}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := refresh.Due(c.c, at(c.now)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Of many requests none waits longer than one: whoever waits for a renewal of this very
// process gives up like those who wait for another's.
func TestWaitIsForTheTurnToo(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	held, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r := b.refresherWith(func(o *refresh.Options) {
		o.Wait = time.Nanosecond
		o.Store = b.handle(func(store.Record) error {
			once.Do(func() { close(held); <-let })
			return nil
		})
	})
	first := make(chan error, 1)
	go func() {
		_, err := r.Renew(t.Context(), b.acct, credential.Credential{Generation: 1})
		first <- err
	}()
	<-held
	b.bad(r, refresh.ErrTransient)
	close(let)
	if err := <-first; err != nil {
		t.Errorf("who was at it: got %v, want no error", err)
	}
	b.good(r, 2)
	b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
}

// With a token that lives yet nobody is parked, and who asks hears what it was.
func TestNotEntitledYet(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	living := b.stored()
	living.ExpiresAt = b.clock.now().Add(time.Hour)
	b.save(living, 1)
	b.issuer.Next(issuertest.Fault{Status: http.StatusForbidden})
	r := b.refresher(nil)
	b.bad(r, provider.ErrNotEntitled)
	b.bad(r, refresh.ErrTransient)
	if got := b.parked(); got != "" {
		t.Errorf("got parked %q, want not", got)
	}
}
