// Package seal encrypts what must not lie open in the store, and makes the keyed hashes
// by which a secret is recognized without being kept.
//
// A Box holds one data key of 32 bytes. From it are derived, by HKDF-SHA256, a key for
// AES-256-GCM and one for each purpose of hashing, so that no two uses share a key. Sealed
// data carries a version and a random nonce, and opens only with the additional data it was
// sealed with. Where the data key comes from is the caller's: a file beside the data
// (LoadOrCreate), or a key service. The package never logs and its errors hold no secret.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
)

// version is the first byte of sealed data.
const version = 1

// ErrOpen reports sealed data that does not open: another key, other additional data, or
// damage. Which of them it is cannot be told apart.
var ErrOpen = errors.New("sealed data does not open: it was sealed with another key or for something else, or it is damaged")

// Box seals and opens, and makes keyed hashes. It is safe for concurrent use.
type Box struct {
	key    [32]byte
	aead   cipher.AEAD
	hashes sync.Map // purpose → derived key
}

// New returns the box of a data key.
func New(key [32]byte) (*Box, error) {
	b := &Box{key: key}
	derived, err := b.derive("seal", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	if b.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return b, nil
}

func (b *Box) derive(purpose string, n int) ([]byte, error) {
	out, err := hkdf.Key(sha256.New, b.key[:], nil, "holdfast "+purpose, n)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	return out, nil
}

// Seal encrypts plaintext for additional data.
func (b *Box) Seal(plaintext, additional []byte) ([]byte, error) {
	return b.aead.Seal([]byte{version}, nil, plaintext, additional), nil
}

// Open decrypts what Seal made. The error is ErrOpen.
func (b *Box) Open(sealed, additional []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != version {
		return nil, ErrOpen
	}
	plaintext, err := b.aead.Open(nil, nil, sealed[1:], additional)
	if err != nil {
		return nil, ErrOpen
	}
	return plaintext, nil
}

// KeyedHash is the hash of data, in hex, under a key of its own for every purpose.
func (b *Box) KeyedHash(purpose string, data []byte) string {
	key, ok := b.hashes.Load(purpose)
	if !ok {
		key, _ = b.hashes.LoadOrStore(purpose, b.Derive("hash "+purpose, 32))
	}
	mac := hmac.New(sha256.New, key.([]byte))
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

// Derive makes n bytes, at most 8160, that only the holder of the data key can make, and
// always the same for a purpose.
func (b *Box) Derive(purpose string, n int) []byte {
	out, err := b.derive("derive "+purpose, n)
	if err != nil {
		panic(err) // n is out of range
	}
	return out
}
