package refresh_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/vault"
	"holdfast/internal/test/issuertest"
	"holdfast/internal/test/logtest"
	"holdfast/internal/upkeep/refresh"
)

// renewer speaks with an issuer as Anthropic's does.
type renewer struct{}

func (renewer) Renewal(c credential.Credential) (provider.Call, bool) {
	body, _ := json.Marshal(map[string]string{"grant_type": "refresh_token", "refresh_token": c.Refresh.Reveal(), "client_id": c.ClientID})
	return provider.Call{
		Method: http.MethodPost, URL: "https://token.example/v1/oauth/token",
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body,
	}, !c.Refresh.Empty()
}

func (renewer) Renewed(old credential.Credential, r provider.Reply) (credential.Credential, error) {
	var a struct {
		Access    string `json:"access_token"`
		Refresh   string `json:"refresh_token"`
		ExpiresIn int    `json:"expires_in"`
		Error     string `json:"error"`
	}
	err := json.Unmarshal(r.Body, &a)
	switch {
	case r.Status == http.StatusForbidden:
		return credential.Credential{}, provider.ErrNotEntitled
	case a.Error == "invalid_grant":
		return credential.Credential{}, fmt.Errorf("%w: %s", provider.ErrRefusedForGood, a.Error)
	case r.Status != http.StatusOK:
		return credential.Credential{}, errors.New("not now")
	case err != nil || a.Access == "":
		return credential.Credential{}, provider.ErrAnswerLost
	}
	next := old
	next.Access, next.IssuedAt, next.ExpiresAt = credential.NewSecret(a.Access), r.At, r.At.Add(time.Duration(a.ExpiresIn)*time.Second)
	if a.Refresh != "" {
		next.Refresh = credential.NewSecret(a.Refresh)
	}
	next.Generation++
	return next, nil
}

// clock stands still until a test moves it on. All of them begin at one instant, those of
// other processes too.
type clock struct{ ahead atomic.Int64 }

var beginning = time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *clock) now() time.Time          { return beginning.Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

const accountID account.ID = "login"

// bench is a login, its issuer, and a store that processes share.
type bench struct {
	*testing.T
	clock  *clock
	issuer *issuertest.Issuer
	box    *seal.Box
	open   func() store.Backend
	store  *store.Store
	vault  vault.Vault
	log    *logtest.Log
	acct   account.Account
}

func newBox(t testing.TB) *seal.Box {
	t.Helper()
	box, err := seal.New([32]byte{7})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// begin makes a bench with a login that has just expired. open opens the shared store
// once more; nil stands for one in memory.
func begin(t *testing.T, o issuertest.Options, open func() store.Backend) *bench {
	t.Helper()
	b := &bench{T: t, clock: &clock{}, box: newBox(t), open: open, log: &logtest.Log{}}
	if open == nil {
		backend := memstore.New()
		b.open = func() store.Backend { return backend }
	}
	o.Now = b.clock.now
	b.issuer = issuertest.Start(t, o)
	b.store = b.handle(nil)
	b.vault = vault.Vault{Store: b.store, Box: b.box}
	b.acct = account.Account{ID: accountID, Name: "max", Provider: account.Anthropic, Kind: account.Subscription, BaseURL: b.issuer.URL}
	b.save(b.issuer.Login(0), 0)
	t.Cleanup(func() {
		if strings.Contains(b.log.String(), "EXAMPLE") {
			t.Errorf("got a secret in the log:\n%s", b.log)
		}
	})
	return b
}

// handle opens the store once more; put, unless nil, stands between.
func (b *bench) handle(put func(store.Record) error) *store.Store {
	backend := b.open()
	b.Cleanup(func() {
		if err := backend.Close(); err != nil {
			b.Errorf("close: %v", err)
		}
	})
	return store.New(&faulty{Backend: backend, put: put}).Within(20 * time.Second)
}

// faulty lets a test hold back or refuse writes.
type faulty struct {
	store.Backend
	put func(store.Record) error
}

func (f *faulty) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	if f.put != nil {
		if err := f.put(r); err != nil {
			return store.Record{}, err
		}
	}
	return f.Backend.Put(ctx, r, cond)
}

// refresher is one of another process.
func (b *bench) refresher(put func(store.Record) error) *refresh.Refresher {
	b.Helper()
	return b.refresherWith(func(o *refresh.Options) { o.Store = b.handle(put) })
}

func (b *bench) refresherWith(set func(*refresh.Options)) *refresh.Refresher {
	b.Helper()
	o := refresh.Options{
		OpenBox:  func(context.Context) (refresh.Box, error) { return b.box, nil },
		Renewers: map[account.Provider]provider.Renewer{account.Anthropic: renewer{}},
		Now:      b.clock.now, Log: slog.New(slog.NewTextHandler(b.log, nil)), Version: "test", Wait: time.Minute,
	}
	set(&o)
	if o.Store == nil {
		o.Store = b.handle(nil)
	}
	r, err := refresh.New(o)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// impatient waits for nobody.
func (b *bench) impatient() *refresh.Refresher {
	return b.refresherWith(func(o *refresh.Options) { o.Wait = time.Nanosecond })
}

func (b *bench) save(c credential.Credential, revision int64) {
	b.Helper()
	if _, err := b.vault.Save(b.Context(), accountID, c, revision); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) stored() credential.Credential {
	b.Helper()
	c, _, err := b.vault.Load(b.Context(), accountID)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *bench) renewal() store.Renewal {
	b.Helper()
	all, err := b.store.Renewals(b.Context(), []account.ID{accountID})
	if err != nil {
		b.Fatal(err)
	}
	return all[accountID]
}

// state is what is stored of the account.
func (b *bench) state() account.State {
	b.Helper()
	view, err := b.store.Read(b.Context(), store.Query{States: []account.ID{accountID}})
	if err != nil {
		b.Fatal(err)
	}
	return view.States[accountID].State
}

// parked is why the account is parked; empty if it is not.
func (b *bench) parked() string {
	b.Helper()
	if p := b.state().Parked; p != nil {
		return p.Reason
	}
	return ""
}

// good renews and expects a stored and good credential of a generation.
func (b *bench) good(r *refresh.Refresher, generation int64) {
	b.Helper()
	got, err := r.Renew(b.Context(), b.acct, credential.Credential{Generation: generation - 1})
	if err != nil {
		b.Fatalf("renew: got %v, want no error\n%s", err, b.log)
	}
	if got.Generation != generation || !b.issuer.Good(got) || b.stored().Access.Reveal() != got.Access.Reveal() {
		b.Errorf("got generation %d (good: %v), stored is %d; want a good and stored one of %d", got.Generation, b.issuer.Good(got), b.stored().Generation, generation)
	}
}

// bad renews and expects an error.
func (b *bench) bad(r *refresh.Refresher, want error) {
	b.Helper()
	got, err := r.Renew(b.Context(), b.acct, credential.Credential{Generation: b.stored().Generation})
	if !errors.Is(err, want) {
		b.Fatalf("renew: got generation %d and error %v, want %v\n%s", got.Generation, err, want, b.log)
	}
	if !got.Bearer().Empty() {
		b.Error("got a credential beside an error")
	}
	if strings.Contains(err.Error(), "EXAMPLE") {
		b.Errorf("got a secret in %v", err)
	}
}

func (b *bench) counts(want issuertest.Counts) {
	b.Helper()
	if got := b.issuer.Counts(); got != want {
		b.Errorf("the issuer saw %+v, want %+v\n%s", got, want, b.log)
	}
}
