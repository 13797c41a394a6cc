// Package datakey makes and opens the data key of a holdfast in AWS.
//
// A data key seals the credentials that a table keeps. KMS makes it under a key of the
// owner's that never leaves KMS, and hands it out twice: open, and wrapped. The wrapped
// one is a record of the table, made once: of several processes that find none, one's is
// stored, and the others throw theirs away and open that. Opening asks KMS, whose own
// permissions and log then say who may read the credentials, and who did.
//
// The wrapped key is bound to its table by KMS's encryption context: put in another
// table, it does not open. The open one is kept nowhere but in memory, and is in no error
// or log.
package datakey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"holdfast/internal/store"
)

// Size is the length of a data key in bytes.
const Size = 32

// ContextName is the name in KMS's encryption context whose value is the table's name. A
// policy may demand it.
const ContextName = "holdfast:table"

var recordKey = store.Key{Kind: store.KindDataKey, ID: "datakey"}

// record is the body of the stored record. What opens the key is Wrapped alone; the
// others say what went wrong when it does not.
type record struct {
	Wrapped []byte `json:"wrapped"`
	KMSKey  string `json:"kms_key"`
	Table   string `json:"table"`
}

// Source says whose data key it is. All fields are required.
type Source struct {
	// Records are those of the table.
	Records store.Backend
	// KMS is the client to make and open the key with.
	KMS *kms.Client
	// KMSKey is the id, ARN or alias of the owner's key.
	KMSKey string
	// Table is the table's name.
	Table string
}

// Load returns the table's data key and makes it first if none exists. Where the store
// or KMS did not answer it returns store.ErrUnavailable and may be called again; other
// errors are for the owner to put right, and say how.
func (s Source) Load(ctx context.Context) ([Size]byte, error) {
	found, err := s.Records.Get(ctx, []store.Key{recordKey})
	if err != nil {
		return [Size]byte{}, fmt.Errorf("read the data key: %w", err)
	}
	if len(found) > 0 {
		return s.unwrap(ctx, found[0])
	}
	return s.create(ctx)
}

func (s Source) create(ctx context.Context) (key [Size]byte, err error) {
	made, err := s.KMS.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: &s.KMSKey, KeySpec: types.DataKeySpecAes256, EncryptionContext: s.context(),
	})
	if err != nil {
		return key, s.failed("make", "kms:GenerateDataKey", record{}, err)
	}
	r := record{Wrapped: made.CiphertextBlob, KMSKey: s.KMSKey, Table: s.Table}
	if made.KeyId != nil {
		r.KMSKey = *made.KeyId // an alias may come to mean another key
	}
	body, err := json.Marshal(r)
	if err != nil {
		return key, fmt.Errorf("encode the data key: %w", err)
	}
	stored, err := s.Records.Put(ctx, store.Record{Key: recordKey, Body: body}, store.Condition{})
	switch {
	case err == nil:
		return plain(made.Plaintext)
	case errors.Is(err, store.ErrConflict):
		clear(made.Plaintext)
		return s.unwrap(ctx, stored)
	}
	return key, fmt.Errorf("store the data key: %w", err)
}

func (s Source) unwrap(ctx context.Context, stored store.Record) (key [Size]byte, err error) {
	var r record
	if err := json.Unmarshal(stored.Body, &r); err != nil {
		return key, fmt.Errorf("decode the data key: %w", err)
	}
	opened, err := s.KMS.Decrypt(ctx, &kms.DecryptInput{
		CiphertextBlob: r.Wrapped, KeyId: &s.KMSKey, EncryptionContext: s.context(),
	})
	if err != nil {
		return key, s.failed("open", "kms:Decrypt", r, err)
	}
	return plain(opened.Plaintext)
}

func (s Source) context() map[string]string { return map[string]string{ContextName: s.Table} }

// plain moves a key to where no copy of it stays behind.
func plain(from []byte) (key [Size]byte, err error) {
	defer clear(from)
	if copy(key[:], from) != Size || len(from) != Size {
		return [Size]byte{}, fmt.Errorf("the data key has %d bytes, want %d", len(from), Size)
	}
	return key, nil
}
