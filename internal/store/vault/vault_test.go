package vault_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/vault"
)

func newVault(t *testing.T) vault.Vault {
	t.Helper()
	box, err := seal.New([32]byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	return vault.Vault{Store: store.New(memstore.New()), Box: box}
}

func login(generation int64) credential.Credential {
	return credential.Credential{
		Access: credential.NewSecret("access-EXAMPLE"), Refresh: credential.NewSecret("refresh-EXAMPLE"),
		IssuedAt: time.Date(2027, 3, 4, 2, 0, 0, 0, time.UTC), ExpiresAt: time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC),
		ClientID: "client", Scopes: []string{"a"}, Principal: "somebody", Generation: generation,
	}
}

// plaintext compares credentials with their secrets.
func plaintext(t *testing.T, c credential.Credential) string {
	t.Helper()
	b, err := c.Plaintext()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSaveLoad(t *testing.T) {
	v := newVault(t)
	if c, revision, err := v.Load(t.Context(), "a"); err != nil || revision != 0 || !c.Bearer().Empty() {
		t.Fatalf("of an account without a credential: revision %d, %v", revision, err)
	}
	revision, err := v.Save(t.Context(), "a", login(1), 0)
	if err != nil || revision != 1 {
		t.Fatalf("first save: revision %d, %v", revision, err)
	}
	got, revision, err := v.Load(t.Context(), "a")
	if err != nil || revision != 1 {
		t.Fatalf("load: revision %d, %v", revision, err)
	}
	if diff := cmp.Diff(plaintext(t, login(1)), plaintext(t, got)); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	if revision, err = v.Save(t.Context(), "a", login(2), revision); err != nil || revision != 2 {
		t.Errorf("second save: revision %d, %v", revision, err)
	}
}

func TestSaveLosesRace(t *testing.T) {
	v := newVault(t)
	if _, err := v.Save(t.Context(), "a", login(1), 0); err != nil {
		t.Fatal(err)
	}
	for _, stale := range []int64{0, 2} {
		if _, err := v.Save(t.Context(), "a", login(9), stale); !errors.Is(err, store.ErrConflict) {
			t.Errorf("on revision %d: got %v, want %v", stale, err, store.ErrConflict)
		}
	}
	if c, _, err := v.Load(t.Context(), "a"); err != nil || c.Generation != 1 {
		t.Errorf("stored: generation %d, %v, want the first", c.Generation, err)
	}
}

func TestSealed(t *testing.T) {
	v := newVault(t)
	if _, err := v.Save(t.Context(), "a", login(3), 0); err != nil {
		t.Fatal(err)
	}
	record, err := v.Store.Credential(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(record.Sealed, []byte("EXAMPLE")) {
		t.Error("the stored record holds a secret in the clear")
	}

	change := func(edit func(map[string]any)) store.SealedRecord {
		t.Helper()
		var envelope map[string]any
		if err := json.Unmarshal(record.Sealed, &envelope); err != nil {
			t.Fatal(err)
		}
		edit(envelope)
		body, err := json.Marshal(envelope)
		if err != nil {
			t.Fatal(err)
		}
		return store.SealedRecord{Sealed: body}
	}
	tests := []struct {
		name   string
		id     account.ID
		record store.SealedRecord
	}{
		{"under another account", "b", record},
		{"of another generation", "a", change(func(e map[string]any) { e["generation"] = 4 })},
		{"cut", "a", change(func(e map[string]any) { e["sealed"] = e["sealed"].(string)[:8] })},
		{"empty", "a", change(func(e map[string]any) { delete(e, "sealed") })},
		{"no envelope", "a", store.SealedRecord{Sealed: []byte("refresh-EXAMPLE")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := v.Open(tt.id, tt.record)
			if err == nil || !c.Bearer().Empty() {
				t.Fatalf("opened: %v", err)
			}
			if strings.Contains(err.Error(), "EXAMPLE") {
				t.Error("the error holds a secret")
			}
		})
	}
	if _, err := v.Open("a", change(func(map[string]any) {})); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}
