// Package vault keeps accounts' credentials: sealed in the store, open only in memory.
//
// A stored credential is a small envelope: the credential's generation, end and scope in the
// clear, and its sealed form with the account's id and that generation as additional data,
// so that a record put back under another account or another generation does not open.
// The vault seals, opens, and writes conditionally on the record's revision. It also
// recognizes a data key that is not the store's, before anything is sealed with it. It
// never decides when a credential is due for renewal, and never sends one anywhere.
package vault

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/store"
)

// Box seals and opens; data sealed with additional data opens only with the same.
type Box interface {
	Seal(plaintext []byte, additional string) ([]byte, error)
	Open(sealed []byte, additional string) ([]byte, error)
}

// Vault keeps credentials in Store, sealed by Box. Both are required.
type Vault struct {
	Store *store.Store
	Box   Box
}

// envelope is the stored form. Generation is authenticated by the seal.
type envelope struct {
	Generation int64 `json:"generation"`
	// ExpiresAt is for those who look and may not open; whoever opens has the sealed one.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Scope is for listings, as ExpiresAt is.
	Scope  credential.Scope `json:"scope,omitzero"`
	Sealed []byte           `json:"sealed"`
}

// ExpiresAt is when a stored credential says that it ends, without opening it: zero for
// what does not end, or does not say.
func ExpiresAt(record store.SealedRecord) time.Time {
	var e envelope
	if json.Unmarshal(record.Sealed, &e) != nil {
		return time.Time{} // opening says what is wrong
	}
	return e.ExpiresAt
}

// Scope is for whom a stored credential is used, without opening it.
func Scope(record store.SealedRecord) credential.Scope {
	var e envelope
	if json.Unmarshal(record.Sealed, &e) != nil {
		return credential.Scope{} // opening says what is wrong
	}
	return e.Scope
}

func additional(id account.ID, generation int64) string {
	return string(id) + "|" + strconv.FormatInt(generation, 10)
}

// Load reads and opens an account's credential. It returns the revision to give to Save;
// 0 with the zero Credential when the account has none.
func (v Vault) Load(ctx context.Context, id account.ID) (credential.Credential, int64, error) {
	record, err := v.Store.Credential(ctx, id)
	if err != nil || record.Revision == 0 {
		return credential.Credential{}, 0, err
	}
	c, err := v.Open(id, record)
	return c, record.Revision, err
}

// Open opens a record that was read from the store.
func (v Vault) Open(id account.ID, record store.SealedRecord) (credential.Credential, error) {
	var e envelope
	if err := json.Unmarshal(record.Sealed, &e); err != nil {
		return credential.Credential{}, fmt.Errorf("decode a sealed credential: %w", err)
	}
	plaintext, err := v.Box.Open(e.Sealed, additional(id, e.Generation))
	if err != nil {
		return credential.Credential{}, fmt.Errorf("open a credential: %w", err)
	}
	return credential.FromPlaintext(plaintext)
}

// Save seals a credential and writes it if the stored revision is the one given (0: none
// yet). It returns the new revision. When another process wrote in between it returns
// store.ErrConflict and nothing was written.
func (v Vault) Save(ctx context.Context, id account.ID, c credential.Credential, revision int64) (int64, error) {
	plaintext, err := c.Plaintext()
	if err != nil {
		return 0, fmt.Errorf("encode a credential: %w", err)
	}
	sealed, err := v.Box.Seal(plaintext, additional(id, c.Generation))
	if err != nil {
		return 0, fmt.Errorf("seal a credential: %w", err)
	}
	body, err := json.Marshal(envelope{c.Generation, c.ExpiresAt, c.Scope, sealed})
	if err != nil {
		return 0, fmt.Errorf("encode a sealed credential: %w", err)
	}
	record, ours, err := v.Store.PutCredential(ctx, id, body, revision)
	if err == nil && !ours {
		err = fmt.Errorf("write credential: %w", store.ErrConflict)
	}
	if err != nil {
		return 0, err
	}
	return record.Revision, nil
}
