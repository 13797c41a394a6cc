package vault

import (
	"context"
	"errors"
	"fmt"

	"holdfast/internal/core/account"
	"holdfast/internal/store"
	"holdfast/internal/store/seal"
)

// The check is known text, sealed. Its additional data is no credential's, all of which
// name a generation.
const (
	checked           = "holdfast"
	checkedAdditional = "the data key's check"
)

// CheckKey refuses a box of another data key than the store's. The store's is the first
// that was checked, once that is kept in the store; a store of before keys were checked is
// the key's if that opens any of its credentials. The refusal names file, the data key's.
//
// It is for a key that is kept apart from the store, where one may be mixed up with
// another. Where the store keeps the key itself, wrapped, there is nothing to check.
func (v Vault) CheckKey(ctx context.Context, file string) error {
	check, err := v.Store.KeyCheck(ctx)
	if err == nil && check.Revision == 0 {
		check, err = v.keepCheck(ctx, file)
	}
	if err != nil {
		return err
	}
	text, err := v.Box.Open(check.Sealed, checkedAdditional)
	switch {
	case errors.Is(err, seal.ErrCannotOpen) || err == nil && string(text) != checked:
		return otherKey(file)
	case err != nil:
		return fmt.Errorf("check the data key %s: %w", file, err)
	}
	return nil
}

func otherKey(file string) error {
	return fmt.Errorf("%s is not the key that the stored credentials and client keys were made with: put the right one back, or begin anew in another directory with --data", file)
}

// keepCheck keeps the check of a key that opens what is there already. If another process
// was first, it returns that one's.
func (v Vault) keepCheck(ctx context.Context, file string) (store.SealedRecord, error) {
	view, err := v.Store.Read(ctx, store.Query{Catalog: true})
	if err != nil {
		return store.SealedRecord{}, err
	}
	var ids []account.ID
	for _, a := range view.Catalog.Accounts {
		ids = append(ids, a.ID)
	}
	view, err = v.Store.Read(ctx, store.Query{Credentials: ids})
	if err != nil {
		return store.SealedRecord{}, err
	}
	opens := len(view.Credentials) == 0
	for id, record := range view.Credentials {
		if _, err := v.Open(id, record); err == nil {
			opens = true
		}
	}
	if !opens {
		return store.SealedRecord{}, otherKey(file)
	}
	sealed, err := v.Box.Seal([]byte(checked), checkedAdditional)
	if err != nil {
		return store.SealedRecord{}, fmt.Errorf("seal the data key's check: %w", err)
	}
	return v.Store.KeepKeyCheck(ctx, sealed)
}
