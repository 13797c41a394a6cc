package poll

import (
	"context"
	"fmt"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/metric"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
)

// Fleet reads what is measured of all accounts, whoever made the last round: one that
// another process made is as good as our own.
func (p *Poller) Fleet(ctx context.Context) (metric.Fleet, error) {
	snap, err := p.Store.Snapshot(ctx, false)
	if err != nil {
		return metric.Fleet{}, fmt.Errorf("measure the accounts: %w", err)
	}
	f := metric.Fleet{
		Now: p.Now(), Catalog: *snap.Catalog.Catalog, States: map[account.ID]account.State{},
		Watched: map[account.ID]bool{}, Failures: map[account.ID]int{}, Served: map[account.Provider]account.ID{},
	}
	if order := ordered(f.Catalog); len(order) > 0 {
		v, err := p.Store.Read(ctx, store.Query{Serving: order})
		if err != nil {
			return metric.Fleet{}, fmt.Errorf("measure the accounts: %w", err)
		}
		for of, r := range v.Serving {
			f.Served[of] = r.Account
		}
	}
	var logins []account.ID // keys have neither a usage endpoint nor renewals
	for _, a := range f.Catalog.Accounts {
		f.States[a.ID] = snap.States[a.ID].State
		if a.Kind == account.Subscription {
			logins = append(logins, a.ID)
		}
	}
	if len(logins) == 0 {
		return f, nil
	}
	renewals, err := p.Store.Renewals(ctx, logins)
	if err != nil {
		return metric.Fleet{}, fmt.Errorf("measure the accounts: %w", err)
	}
	for id, r := range renewals {
		f.Failures[id] = r.Failures
	}
	held, err := p.Store.Read(ctx, store.Query{Credentials: logins})
	if err != nil {
		return metric.Fleet{}, fmt.Errorf("measure the accounts: %w", err)
	}
	box, err := p.OpenBox(ctx)
	if err != nil {
		return metric.Fleet{}, fmt.Errorf("measure the accounts: %w", err)
	}
	open := vault.Vault{Store: p.Store, Box: box}
	for _, a := range f.Catalog.Accounts {
		looker, record := p.Lookers[a.Provider], held.Credentials[a.ID]
		if record.Revision == 0 {
			continue
		}
		c, err := open.Open(a.ID, record)
		switch {
		case err != nil: // which the round logs
			f.States[a.ID] = account.Unreadable(f.States[a.ID], account.UnreadableCredential)
		case looker != nil:
			f.Watched[a.ID] = len(looker.Looks(a.Kind, c)) > 0
		}
	}
	return f, nil
}

// ordered are the providers under policy order.
func ordered(c catalog.Catalog) []account.Provider {
	var list []account.Provider
	for _, p := range account.Providers {
		if c.PolicyOf(p).Name == catalog.Order {
			list = append(list, p)
		}
	}
	return list
}
