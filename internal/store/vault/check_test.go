package vault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/vault"
)

// keyed is a vault on a store, with the data key that a number stands for.
func keyed(t *testing.T, s *store.Store, key byte) vault.Vault {
	t.Helper()
	box, err := seal.New([32]byte{key})
	if err != nil {
		t.Fatal(err)
	}
	return vault.Vault{Store: s, Box: box}
}

const file = "/data/holdfast.key"

// checkKeys checks what opening with keys 1 and 2 says, in this order.
func checkKeys(t *testing.T, s *store.Store, first, second bool) {
	t.Helper()
	for range 2 {
		for i, right := range []bool{first, second} {
			err := keyed(t, s, byte(i+1)).CheckKey(t.Context(), file)
			if right && err != nil {
				t.Errorf("key %d: got %v, want no error", i+1, err)
			}
			if !right && (err == nil || !strings.Contains(err.Error(), file+" is not the key") || !strings.Contains(err.Error(), "put the right one back")) {
				t.Errorf("key %d: got %v, want it to name the file and what to do", i+1, err)
			}
		}
	}
}

func TestCheckKeyOfANewStore(t *testing.T) {
	s := store.New(memstore.New())
	checkKeys(t, s, true, false)
	check, err := s.KeyCheck(t.Context())
	if err != nil || check.Revision != 1 {
		t.Errorf("got revision %d and error %v, want it written once", check.Revision, err)
	}
}

// addAccounts puts accounts into the catalog, as a store from before keys were checked has
// them, and saves a credential of each under the key of its number; 0 is for none.
func addAccounts(t *testing.T, s *store.Store, keys ...byte) {
	t.Helper()
	for i, key := range keys {
		id := account.ID(fmt.Sprint("account", i))
		_, err := s.ChangeCatalog(t.Context(), func(c catalog.Catalog) (catalog.Catalog, error) {
			c.Accounts = append(c.Accounts[:len(c.Accounts):len(c.Accounts)], account.Account{ID: id, Name: string(id)})
			return c, nil
		})
		if err == nil && key != 0 {
			_, err = keyed(t, s, key).Save(t.Context(), id, login(1), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheckKeyOfAStoreWithoutCheck(t *testing.T) {
	for _, c := range []struct {
		name          string
		keys          []byte
		first, second bool
	}{
		{"no credential", []byte{0, 0}, true, false}, // nothing speaks against whoever comes first
		{"the key's credential", []byte{1}, true, false},
		{"another key's credential", []byte{2}, false, true},
		{"another key's, and none", []byte{0, 2, 2}, false, true},
		{"of two keys", []byte{2, 1}, true, false}, // either opens some; the first is kept
	} {
		t.Run(c.name, func(t *testing.T) {
			s := store.New(memstore.New())
			addAccounts(t, s, c.keys...)
			checkKeys(t, s, c.first, c.second)
		})
	}
}

func TestCheckKeyRace(t *testing.T) {
	for range 20 {
		s := store.New(memstore.New())
		var right [2]error
		var all sync.WaitGroup
		for i := range right {
			v := keyed(t, s, byte(i+1))
			all.Go(func() { right[i] = v.CheckKey(context.Background(), file) })
		}
		all.Wait()
		if (right[0] == nil) == (right[1] == nil) {
			t.Fatalf("got errors %v and %v, want one key to win", right[0], right[1])
		}
	}
}

func TestCheckKeyOfANewerHoldfast(t *testing.T) {
	s := store.New(memstore.New())
	if _, err := s.KeepKeyCheck(t.Context(), append([]byte{2}, make([]byte, 40)...)); err != nil {
		t.Fatal(err)
	}
	if err := keyed(t, s, 1).CheckKey(t.Context(), file); err == nil || !strings.Contains(err.Error(), "update holdfast") {
		t.Errorf("got %v, want to be told to update holdfast", err)
	}
}

// A check is no credential, and no credential is a check.
func TestCheckIsForNothingElse(t *testing.T) {
	s := store.New(memstore.New())
	v := keyed(t, s, 1)
	if err := v.CheckKey(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	check, err := s.KeyCheck(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Open("check", check); err == nil {
		t.Error("it opened as a credential")
	}
	other := store.New(memstore.New())
	sealed, err := v.Box.Seal([]byte("{}"), "check|1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.KeepKeyCheck(t.Context(), sealed); err != nil {
		t.Fatal(err)
	}
	if err := keyed(t, other, 1).CheckKey(t.Context(), file); err == nil {
		t.Error("a sealed credential passed for a check")
	}
}

func TestCheckKeyWithoutStore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := keyed(t, store.New(memstore.New()), 1).CheckKey(ctx, file)
	if !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want ErrUnavailable and nothing on the key", err)
	}
}
