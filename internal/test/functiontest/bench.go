package functiontest

import (
	"crypto/rand"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"holdfast/internal/aws/cloud"
	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/store/vault"
	"holdfast/internal/test/awstest"
	"holdfast/internal/test/upstreamtest"
)

// Bench is the owner's side. Make one with New.
type Bench struct {
	// Upstream is where the accounts are.
	Upstream *upstreamtest.Upstream
	// AWS is what the functions take for AWS.
	AWS *awstest.Front
	// Store is the owner's view of the table.
	Store *store.Store
	// Table and KMSKey name what a function is to use.
	Table, KMSKey string
	// Key is a client key that may use every account; empty before the first Account.
	Key string

	t     testing.TB
	cfg   aws.Config
	table *cloud.Table
	// resets are those of all readings: whole seconds, as the wire has them.
	fiveHour, weekly time.Time

	mu      sync.Mutex
	secrets []string
}

// New returns a bench with an empty table.
func New(t testing.TB) *Bench {
	t.Helper()
	b := WithoutTable(t)
	b.CreateTable()
	return b
}

// WithoutTable returns a bench whose table does not exist yet.
func WithoutTable(t testing.TB) *Bench {
	t.Helper()
	endpoint := awstest.StartMiniStack(t, false)
	now := time.Now().Truncate(time.Second)
	b := &Bench{
		t: t, Upstream: upstreamtest.Start(t), AWS: awstest.NewFront(t, endpoint), Table: "holdfast-" + rand.Text(),
		cfg: awstest.Config(endpoint), fiveHour: now.Add(4 * time.Hour), weekly: now.Add(100 * time.Hour),
	}
	b.cfg.HTTPClient = &http.Client{Transport: http.DefaultTransport} // the owner is patient
	made, err := kms.NewFromConfig(b.cfg).CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	b.KMSKey = *made.KeyMetadata.Arn
	b.table = cloud.Open(b.cfg, b.Table, cloud.Key(b.KMSKey))
	b.Store = store.New(b.table)
	return b
}

// CreateTable makes the table.
func (b *Bench) CreateTable() {
	b.t.Helper()
	if err := dynamostore.CreateTable(b.t.Context(), dynamodb.NewFromConfig(b.cfg), b.Table); err != nil {
		b.t.Fatal(err)
	}
}

// Account adds an account with an API key whose windows are read at a utilization, and
// which answers well, with that reading. The first one brings the client key along.
func (b *Bench) Account(name string, utilization float64) *upstreamtest.Account {
	b.t.Helper()
	secret := "sk-ant-api03-function-" + name + "-SECRET"
	b.hide(secret)
	ctx := b.t.Context()
	a := account.Account{ID: account.ID("acc-" + name), Name: name, Provider: account.Anthropic, Kind: account.Key, BaseURL: b.Upstream.URL}
	b.Change(func(c catalog.Catalog) (catalog.Catalog, error) { return c.AddAccount(a) })
	box, err := b.table.Box(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	sealed := vault.Vault{Store: b.Store, Box: box}
	if _, err := sealed.Save(ctx, a.ID, credential.Credential{Generation: 1, Key: credential.NewSecret(secret)}, 0); err != nil {
		b.t.Fatal(err)
	}
	b.Read(name, utilization)
	if b.Key == "" {
		b.Key = b.ClientKey("agents")
	}
	up := b.Upstream.Account(name, secret)
	up.Always(upstreamtest.Good(b.Limits(utilization)))
	return up
}

// Login adds an account with a login, whose endpoints are at a base URL.
func (b *Bench) Login(p account.Provider, name, baseURL string, c credential.Credential) {
	b.t.Helper()
	b.hide(c.Access.Reveal())
	b.hide(c.Refresh.Reveal())
	a := account.Account{ID: account.ID("acc-" + name), Name: name, Provider: p, Kind: account.Subscription, BaseURL: baseURL}
	b.Change(func(c catalog.Catalog) (catalog.Catalog, error) { return c.AddAccount(a) })
	box, err := b.table.Box(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := (vault.Vault{Store: b.Store, Box: box}).Save(b.t.Context(), a.ID, c, 0); err != nil {
		b.t.Fatal(err)
	}
}

// Renewed stores the next generation of an account's login, as another process does that
// has renewed it.
func (b *Bench) Renewed(name string, c credential.Credential) {
	b.t.Helper()
	b.hide(c.Access.Reveal())
	b.hide(c.Refresh.Reveal())
	box, err := b.table.Box(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	v, id := vault.Vault{Store: b.Store, Box: box}, account.ID("acc-"+name)
	_, revision, err := v.Load(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := v.Save(b.t.Context(), id, c, revision); err != nil {
		b.t.Fatal(err)
	}
}

// Credential is the login of an account as stored.
func (b *Bench) Credential(name string) credential.Credential {
	b.t.Helper()
	box, err := b.table.Box(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	c, _, err := vault.Vault{Store: b.Store, Box: box}.Load(b.t.Context(), account.ID("acc-"+name))
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// Hidden are the secrets that nobody may write.
func (b *Bench) Hidden() []string { return b.hidden() }

// Limits are the headers of a reading with both windows at a utilization.
func (b *Bench) Limits(utilization float64) http.Header {
	return upstreamtest.Plan(utilization, b.fiveHour, utilization, b.weekly)
}

// ClientKey makes a client key.
func (b *Bench) ClientKey(name string) string {
	b.t.Helper()
	box, err := b.table.Box(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	secret, err := clientkey.New(rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	b.hide(secret.Reveal())
	key := catalog.ClientKey{ID: "key-" + name, Name: name, Hash: clientkey.Hash(box, secret.Reveal())}
	b.Change(func(c catalog.Catalog) (catalog.Catalog, error) { return c.AddKey(key, nil) })
	return secret.Reveal()
}

// Change changes the catalog.
func (b *Bench) Change(change func(catalog.Catalog) (catalog.Catalog, error)) {
	b.t.Helper()
	if _, err := b.Store.ChangeCatalog(b.t.Context(), change); err != nil {
		b.t.Fatal(err)
	}
}

// State is what is stored of an account.
func (b *Bench) State(name string) store.StateRecord {
	b.t.Helper()
	id := account.ID("acc-" + name)
	v, err := b.Store.Read(b.t.Context(), store.Query{States: []account.ID{id}})
	if err != nil {
		b.t.Fatal(err)
	}
	return v.States[id]
}

// Read stores a reading of an account, of now, with both windows at a utilization.
func (b *Bench) Read(name string, utilization float64) {
	b.t.Helper()
	now := time.Now()
	b.Learn(name, func(s account.State) account.State {
		return s.Observe(anthropic.Provider{}.Read(b.Limits(utilization), now), 0, account.Rules{})
	})
}

// Learn changes what is stored of an account.
func (b *Bench) Learn(name string, change func(account.State) account.State) {
	b.t.Helper()
	_, err := b.Store.Fold(b.t.Context(), account.ID("acc-"+name), b.State(name), func(s account.State) (account.State, bool) {
		return change(s), true
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// Age makes every pin look as if its conversation had last been active so long ago.
func (b *Bench) Age(by time.Duration) {
	b.t.Helper()
	pins, err := b.Store.Pins(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for key, p := range pins {
		p.TouchedAt = p.TouchedAt.Add(-by)
		p.ExpiresAt = p.ExpiresAt.Add(-by)
		if _, ours, err := b.Store.ReplacePin(b.t.Context(), key, p); err != nil || !ours {
			b.t.Fatalf("age a pin: ours %v, error %v", ours, err)
		}
	}
}

// Env is the environment of a function of this bench, as the template declares it and the
// platform adds to it.
func (b *Bench) Env() []string {
	return []string{
		"HOLDFAST_TABLE=" + b.Table, "HOLDFAST_KMS_KEY_ID=" + b.KMSKey, "HOLDFAST_LOG_LEVEL=debug",
		"AWS_ENDPOINT_URL_DYNAMODB=", "AWS_ENDPOINT_URL_KMS=", "AWS_ENDPOINT_URL_CLOUDWATCH=",
		"AWS_ENDPOINT_URL=" + b.AWS.URL, "AWS_REGION=" + awstest.Region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_SESSION_TOKEN=",
	}
}

// Owner is the environment of a program that the owner runs on the table.
func (b *Bench) Owner() []string {
	return append(ownersEnviron(*b.cfg.BaseEndpoint), "HOLDFAST_KMS_KEY_ID="+b.KMSKey)
}

// hide notes a secret that nobody may write.
func (b *Bench) hide(secret string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.secrets = append(b.secrets, secret)
}

func (b *Bench) hidden() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.secrets...)
}
