package main

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/core/credential"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/vault"
)

// fleet is whose accounts there are.
type fleet struct {
	name      string
	providers []account.Provider // in turn
	accounts  int
	kind      account.Kind
}

// fleets are what is counted.
var fleets = []fleet{
	{"3 keys", account.Providers, 3, account.Key},
	{"1 login", []account.Provider{account.Anthropic}, 1, account.Subscription},
	{"3 logins", account.Providers, 3, account.Subscription},
	{"6 logins", account.Providers, 6, account.Subscription},
	{"12 logins", account.Providers, 12, account.Subscription},
	{"12 of one", []account.Provider{account.Anthropic}, 12, account.Subscription},
}

// began is the midnight at which every count begins: a day's history then begins empty.
var began = time.Date(2027, 3, 4, 0, 0, 0, 0, time.UTC)

// owner is a holdfast as its owner set it up.
type owner struct {
	records *ledger
	store   *store.Store
	box     *seal.Box
	up      *upstream
	key     string // a client key
	now     time.Time
}

func (o *owner) clock() time.Time        { return o.now }
func (o *owner) advance(d time.Duration) { o.now = o.now.Add(d) }

func setUp(ctx context.Context, f fleet) (*owner, error) {
	box, err := seal.New([32]byte{1})
	if err != nil {
		return nil, err
	}
	secret := clientkey.FromSeed([]byte("bill"))
	o := &owner{records: &ledger{Backend: memstore.New()}, box: box, key: secret.Reveal(), now: began}
	o.up = &upstream{now: o.clock, used: 0.20}
	o.store = store.New(o.records)
	add := func(change func(catalog.Catalog) (catalog.Catalog, error)) error {
		_, err := o.store.ChangeCatalog(ctx, change)
		return err
	}
	if err := add(func(c catalog.Catalog) (catalog.Catalog, error) {
		return c.AddKey(catalog.ClientKey{ID: "key-agents", Name: "agents", Hash: clientkey.Hash(box, o.key)}, nil)
	}); err != nil {
		return nil, err
	}
	for i := range f.accounts {
		a := account.Account{
			ID: account.ID(fmt.Sprintf("acc-%016d", i)), Name: fmt.Sprintf("account-%02d", i),
			Provider: f.providers[i%len(f.providers)], Kind: f.kind, AddedAt: began,
		}
		if err := add(func(c catalog.Catalog) (catalog.Catalog, error) { return c.AddAccount(a) }); err != nil {
			return nil, err
		}
		held := credential.Credential{Generation: 1, Key: credential.NewSecret(fmt.Sprintf("EXAMPLE-key-%040d", i))}
		if f.kind == account.Subscription {
			held = credential.Credential{
				Generation: 1, Access: credential.NewSecret(o.up.token()), Refresh: credential.NewSecret("EXAMPLE"),
				IssuedAt: began, ExpiresAt: began.Add(tokenLife),
			}
		}
		if _, err := (vault.Vault{Store: o.store, Box: box}).Save(ctx, a.ID, held, 0); err != nil {
			return nil, err
		}
	}
	return o, nil
}
