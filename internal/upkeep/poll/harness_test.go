package poll_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/provider/openai"
	"holdfast/internal/provider/xai"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/vault"
	"holdfast/internal/test/logtest"
	"holdfast/internal/transport/apicall"
	"holdfast/internal/upkeep/poll"
)

// endpoint is a provider's usage endpoint, which answers as a test says, and notes when it
// was asked by the test's clock.
type endpoint struct {
	*httptest.Server
	mu      sync.Mutex
	handler http.HandlerFunc
	asked   []time.Duration // since t0
	tokens  []string
	paths   []string
}

func (e *endpoint) answer(h http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handler = h
}

// calls returns when it was asked since the last call, and forgets.
func (e *endpoint) calls() []time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	asked := e.asked
	e.asked, e.tokens, e.paths = nil, nil, nil
	return asked
}

// says answers with a status and JSON.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// bench is a fleet: a store, and accounts at usage endpoints.
type bench struct {
	*testing.T
	backend *memstore.Backend
	store   *store.Store
	vault   vault.Vault
	log     *logtest.Log
	renewer *renewer
	looker  map[account.Provider]provider.Looker

	mu  sync.Mutex
	now time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	box, err := seal.New([32]byte{7})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, backend: memstore.New(), log: &logtest.Log{}, now: t0, looker: map[account.Provider]provider.Looker{
		account.Anthropic: anthropic.Provider{}, account.OpenAI: openai.Provider{}, account.XAI: xai.Provider{},
	}}
	b.store = store.New(b.backend)
	b.vault = vault.Vault{Store: b.store, Box: box}
	b.renewer = &renewer{b: b}
	t.Cleanup(func() {
		if strings.Contains(b.log.String(), "EXAMPLE") {
			t.Errorf("the log holds a secret:\n%s", b.log)
		}
		if t.Failed() {
			t.Logf("the log:\n%s", b.log)
		}
	})
	return b
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// poller is another process's.
func (b *bench) poller(edits ...func(*poll.Options)) *poll.Poller {
	b.Helper()
	o := poll.Options{
		Store: store.New(b.backend), OpenBox: func(context.Context) (vault.Box, error) { return b.vault.Box, nil },
		Caller: apicall.Caller{Transport: http.DefaultTransport, Version: "1.2.3", Now: b.clock}, Lookers: b.looker, Refresher: b.renewer,
		Log: slog.New(slog.NewTextHandler(b.log, nil)), Now: b.clock, Jitter: func() float64 { return 0 },
	}
	for _, edit := range edits {
		edit(&o)
	}
	p, err := poll.New(o)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// login adds an account with a login, at an endpoint of its own.
func (b *bench) login(p account.Provider, name string) *endpoint {
	b.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.asked = append(e.asked, b.clock().Sub(t0))
		e.tokens = append(e.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		e.paths = append(e.paths, r.URL.Path)
		h := e.handler
		e.mu.Unlock()
		h(w, r)
	}))
	b.Cleanup(e.Close)
	b.add(account.Account{ID: account.ID("acc-" + name), Name: name, Provider: p, Kind: account.Subscription, BaseURL: e.URL},
		credential.Credential{Generation: 1, Access: credential.NewSecret(name + "-access-EXAMPLE-1"), Refresh: credential.NewSecret(name + "-refresh-EXAMPLE-1")})
	return e
}

func (b *bench) add(a account.Account, c credential.Credential) {
	b.Helper()
	b.change(func(old catalog.Catalog) (catalog.Catalog, error) { return old.AddAccount(a) })
	if _, err := b.vault.Save(b.Context(), a.ID, c, 0); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) change(edit func(catalog.Catalog) (catalog.Catalog, error)) {
	b.Helper()
	if _, err := b.store.ChangeCatalog(b.Context(), edit); err != nil {
		b.Fatal(err)
	}
}

// edit replaces an account's credential.
func (b *bench) edit(name string, change func(credential.Credential) credential.Credential) {
	b.Helper()
	c, revision, err := b.vault.Load(b.Context(), account.ID("acc-"+name))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.vault.Save(b.Context(), account.ID("acc-"+name), change(c), revision); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) state(name string) store.StateRecord {
	b.Helper()
	id := account.ID("acc-" + name)
	v, err := b.store.Read(b.Context(), store.Query{States: []account.ID{id}})
	if err != nil {
		b.Fatal(err)
	}
	return v.States[id]
}

func (b *bench) learn(name string, change func(account.State) account.State) {
	b.Helper()
	_, err := b.store.Fold(b.Context(), account.ID("acc-"+name), b.state(name), func(s account.State) (account.State, bool) { return change(s), true })
	if err != nil {
		b.Fatal(err)
	}
}

// round makes a round that has to be made, and finds an account in it.
func (b *bench) round(p *poll.Poller, name string) poll.Finding {
	b.Helper()
	report, err := p.Round(b.Context())
	if err != nil || report.Skipped != "" {
		b.Fatalf("round: got error %v, skipped %q, want a round", err, report.Skipped)
	}
	return b.find(report, name)
}

func (b *bench) find(report poll.Report, name string) poll.Finding {
	b.Helper()
	for _, f := range report.Accounts {
		if f.Account.Name == name {
			return f
		}
	}
	b.Fatalf("the report has no account %s", name)
	return poll.Finding{}
}

// renewer renews logins in the store, without a provider.
type renewer struct {
	b       *bench
	mu      sync.Mutex
	renewed []string
	held    credential.Credential // of the last call
	fails   error
	parks   bool // where it fails
	saved   int  // how often Retry was called
	unsaved int
}

func (r *renewer) Renew(ctx context.Context, a account.Account, held credential.Credential) (credential.Credential, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed, r.held = append(r.renewed, a.Name), held
	if r.fails != nil {
		if r.parks {
			r.b.learn(a.Name, func(s account.State) account.State {
				s.Parked = &account.Parked{Since: r.b.clock(), Kind: account.BadCredential}
				return s
			})
		}
		return credential.Credential{}, r.fails
	}
	c, revision, err := r.b.vault.Load(ctx, a.ID)
	if err != nil || c.Generation > held.Generation {
		return c, err
	}
	c.Generation++
	c.Access = credential.NewSecret(a.Name + "-access-EXAMPLE-" + string(rune('0'+c.Generation)))
	c.IssuedAt, c.ExpiresAt = r.b.clock(), r.b.clock().Add(8*time.Hour)
	_, err = r.b.vault.Save(ctx, a.ID, c, revision)
	return c, err
}

func (r *renewer) Unsaved() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unsaved
}

func (r *renewer) Retry(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.saved++
	return errors.New("the store is still away")
}

// renewals returns whose login was renewed since the last call, and forgets.
func (r *renewer) renewals() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	renewed := r.renewed
	r.renewed = nil
	return renewed
}
