package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider/all"
	"holdfast/internal/request/gateway"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/vault"
	"holdfast/internal/test/logtest"
	"holdfast/internal/test/upstreamtest"
	"holdfast/internal/transport/forward"
)

// bench is a gateway over accounts at a scripted upstream.
type bench struct {
	t        *testing.T
	accounts map[string]*upstreamtest.Account
	records  store.Backend
	up       *upstreamtest.Upstream
	store    *store.Store
	box      *seal.Box
	clock    *clock
	url      string
	key      string // a client key
	gw       *gateway.Gateway
	log      *logtest.Log
}

// clock runs with the real one, ahead of it by what a test says.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// secret is the credential of an account by its name.
func secret(name string) string { return "sk-ant-api03-SECRET-" + name }

// newBench makes a gateway whose accounts have the names given, in that order. Each
// account has a reading already, so that no trials are due, unless fresh is set.
func newBench(t *testing.T, names ...string) *bench {
	t.Helper()
	records := memstore.New()
	b := &bench{
		t: t, accounts: map[string]*upstreamtest.Account{}, records: records, up: upstreamtest.Start(t),
		store: store.New(records), clock: &clock{}, log: &logtest.Log{},
	}
	var err error
	if b.box, err = seal.New([32]byte{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b.addAccount(name, account.Key)
	}
	b.key = b.newKey(catalog.ClientKey{Name: "agents"})
	b.gw, b.url = b.process(b.store, nil)
	return b
}

// process starts another gateway on a store, as another process would be one.
func (b *bench) process(s *store.Store, edit func(*gateway.Options)) (*gateway.Gateway, string) {
	b.t.Helper()
	limits := forward.DefaultLimits
	o := gateway.Options{
		Store: s, Box: b.box, Now: b.clock.now, Limits: limits,
		Providers: all.Providers(),
		Log:       slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if edit != nil {
		edit(&o)
	}
	g, err := gateway.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewServer(g)
	b.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		g.Close()
	})
	return g, server.URL
}

// addAccount adds an account of the upstream to catalog and vault.
func (b *bench) addAccount(name string, kind account.Kind) *upstreamtest.Account {
	b.t.Helper()
	return b.addOf(account.Anthropic, name, kind)
}

// addOf adds an account of a provider. It has a reading already, so that no trial is due.
func (b *bench) addOf(p account.Provider, name string, kind account.Kind) *upstreamtest.Account {
	b.t.Helper()
	a := account.Account{ID: account.ID("acc-" + name), Name: name, Provider: p, Kind: kind, BaseURL: b.up.URL}
	b.change(func(c catalog.Catalog) catalog.Catalog {
		c.Accounts = append(append([]account.Account(nil), c.Accounts...), a)
		return c
	})
	b.login(a, secret(name), 1)
	b.fold(name, func(s account.State) account.State {
		return s.Observe(reading(b.clock.now(), 0.2, 0.2), 0, account.Rules{})
	})
	b.accounts[name] = b.up.Account(name, secret(name))
	return b.accounts[name]
}

// account is the upstream's side of an account, to script.
func (b *bench) account(name string) *upstreamtest.Account { return b.accounts[name] }

// backend is what the bench's store stands on.
func (b *bench) backend() store.Backend { return b.records }

func reading(at time.Time, fiveHour, weekly float64) account.Reading {
	return account.Reading{At: at, Source: account.FromAnswer, Windows: []account.WindowReading{
		{Name: account.FiveHour, Utilization: fiveHour, HasUtilization: true, ResetAt: at.Add(4 * time.Hour)},
		{Name: account.Weekly, Utilization: weekly, HasUtilization: true, ResetAt: at.Add(100 * time.Hour)},
	}}
}

// login saves a credential for an account.
func (b *bench) login(a account.Account, text string, generation int64) {
	b.t.Helper()
	c := credential.Credential{Generation: generation}
	if a.Kind == account.Key {
		c.Key = credential.NewSecret(text)
	} else {
		c.Access, c.Refresh = credential.NewSecret(text), credential.NewSecret("refresh-"+text)
		c.Principal = "user-" + a.Name + "/workspace-" + a.Name
	}
	b.save(a, c)
}

// save puts a credential in the place of an account's.
func (b *bench) save(a account.Account, c credential.Credential) {
	b.t.Helper()
	v := vault.Vault{Store: b.store, Box: b.box}
	_, revision, err := v.Load(b.t.Context(), a.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := v.Save(b.t.Context(), a.ID, c, revision); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) change(edit func(catalog.Catalog) catalog.Catalog) {
	b.t.Helper()
	_, err := b.store.ChangeCatalog(b.t.Context(), func(c catalog.Catalog) (catalog.Catalog, error) { return edit(c), nil })
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) set(setting, value string) {
	b.t.Helper()
	_, err := b.store.ChangeCatalog(b.t.Context(), func(c catalog.Catalog) (catalog.Catalog, error) { return c.Set(setting, value) })
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) newKey(k catalog.ClientKey) string {
	b.t.Helper()
	s := clientkey.FromSeed([]byte(k.Name))
	k.ID, k.Hash = "key-"+k.Name, clientkey.Hash(b.box, s.Reveal())
	b.change(func(c catalog.Catalog) catalog.Catalog {
		c.Keys = append(append([]catalog.ClientKey(nil), c.Keys...), k)
		return c
	})
	return s.Reveal()
}

// state is what the store knows of an account.
func (b *bench) state(name string) store.StateRecord {
	b.t.Helper()
	id := account.ID("acc-" + name)
	v, err := b.store.Read(b.t.Context(), store.Query{States: []account.ID{id}})
	if err != nil {
		b.t.Fatal(err)
	}
	return v.States[id]
}

func (b *bench) fold(name string, change func(account.State) account.State) {
	b.t.Helper()
	_, err := b.store.Fold(b.t.Context(), account.ID("acc-"+name), b.state(name), func(s account.State) (account.State, bool) { return change(s), true })
	if err != nil {
		b.t.Fatal(err)
	}
}

// prefer makes an account the most attractive one for new conversations.
func (b *bench) prefer(name string, others ...string) {
	b.t.Helper()
	for _, o := range others {
		b.fold(o, func(s account.State) account.State {
			return s.Observe(reading(b.clock.now(), 0.5, 0.5), 0, account.Rules{})
		})
	}
	b.fold(name, func(s account.State) account.State {
		return s.Observe(reading(b.clock.now(), 0.01, 0.01), 0, account.Rules{})
	})
}

// ask is a request to make.
type ask struct {
	method  string // POST
	path    string // /v1/messages
	session string // Claude Code's session header
	agent   string
	model   string // claude-opus-5
	text    string
	stream  bool
	body    string // instead of the one made from the fields above
	header  http.Header
	url     string // of another process
	key     string
	ctx     context.Context
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func (r reply) account() string { return r.header.Get("X-Holdfast-Account") }
func (r reply) pin() string     { return r.header.Get("X-Holdfast-Pin") }
func (r reply) errorKind() string {
	return r.header.Get("X-Holdfast-Error")
}

// errorType is error.type of the body.
func (r reply) errorType() string {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(r.body), &e)
	return e.Error.Type
}

func (b *bench) request(a ask) *http.Request {
	b.t.Helper()
	if a.method == "" {
		a.method = http.MethodPost
	}
	if a.path == "" {
		a.path = "/v1/messages?beta=true"
	}
	if a.model == "" {
		a.model = "claude-opus-5"
	}
	if a.text == "" {
		a.text = "hello"
	}
	if a.url == "" {
		a.url = b.url
	}
	if a.key == "" {
		a.key = b.key
	}
	if a.ctx == nil {
		a.ctx = b.t.Context()
	}
	body := a.body
	if body == "" {
		body = fmt.Sprintf(`{"model":%q,"max_tokens":100,"stream":%v,"messages":[{"role":"user","content":%q}]}`, a.model, a.stream, a.text)
	}
	var in io.Reader
	if a.method != http.MethodGet && a.method != http.MethodHead {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(a.ctx, a.method, a.url+a.path, in)
	if err != nil {
		b.t.Fatal(err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Authorization", "Bearer "+a.key)
	if a.session != "" {
		req.Header.Set("X-Claude-Code-Session-Id", a.session)
	}
	if a.agent != "" {
		req.Header.Set("X-Claude-Code-Agent-Id", a.agent)
	}
	for k, v := range a.header {
		if len(v) == 0 {
			req.Header.Del(k)
			continue
		}
		req.Header[k] = v
	}
	return req
}

// do sends a request and reads the whole answer.
func (b *bench) do(a ask) reply {
	b.t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(b.request(a))
	if err != nil {
		b.t.Fatalf("send: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body), err}
}

// served asks and requires a good answer.
func (b *bench) served(a ask) reply {
	b.t.Helper()
	r := b.do(a)
	if r.status != http.StatusOK || r.err != nil {
		b.t.Fatalf("got %d %s %v, want 200", r.status, r.body, r.err)
	}
	return r
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// await polls until done returns true; what it waits for comes from another goroutine.
func (b *bench) await(what string, done func() bool) {
	b.t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			b.t.Fatalf("waited too long for %s", what)
		case <-tick.C:
		}
	}
}
