package e2e_test

import (
	"path/filepath"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
	"holdfast/internal/credential"
	"holdfast/internal/seal"
	"holdfast/internal/store"
	"holdfast/internal/store/sqlitestore"
	"holdfast/internal/vault"
)

// importLogin writes a login's account into the store.
func (b *bench) importLogin(provider string, l login) {
	b.t.Helper()
	ctx := b.t.Context()
	backend, err := sqlitestore.Open(b.data, "holdfast.key")
	if err != nil {
		b.t.Fatal(err)
	}
	s := store.New(backend)
	defer s.Close()
	key, err := seal.LoadOrCreate(filepath.Join(b.data, "holdfast.key"))
	if err != nil {
		b.t.Fatal(err)
	}
	box, err := seal.New(key)
	if err != nil {
		b.t.Fatal(err)
	}
	id := account.ID("e2e-" + provider + l.name)
	c := credential.Credential{
		Access: credential.NewSecret(l.access), Refresh: credential.NewSecret(l.refresh), ExpiresAt: l.ends, ClientID: grokClient, Generation: 1,
		Principal: "user-" + l.user + "/" + l.workspace,
	}
	if _, err := (vault.Vault{Store: s, Box: box}).Save(ctx, id, c, 0); err != nil {
		b.t.Fatal(err)
	}
	_, err = s.ChangeCatalog(ctx, func(c catalog.Catalog) (catalog.Catalog, error) {
		c.Accounts = append(c.Accounts[:len(c.Accounts):len(c.Accounts)], account.Account{
			ID: id, Name: l.name, Provider: account.Provider(provider), Kind: account.Subscription, BaseURL: b.up.URL, AddedAt: time.Now(),
		})
		return c, nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}
