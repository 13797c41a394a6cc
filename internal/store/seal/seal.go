// Package seal keeps secrets unreadable where they are stored, with one data key.
//
// A Box is a data key at work. It seals with AES-256-GCM: what was sealed opens only with
// the same key and the same additional data, which names whose secret it is, so that one
// account's credential cannot be passed off as another's. It also makes keyed hashes, for
// what has to be recognized but never read back, and derives keys for other uses. All of
// these use keys of their own, derived from the data key by HKDF-SHA256 (RFC 5869), so
// that none tells anything of another.
//
// LoadOrCreate keeps the data key in a file beside the data, for holdfast on one machine.
// The package knows nothing of stores, accounts or key services. It prints no key and no
// plaintext, in errors neither: a Box prints as REDACTED.
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
	"io"
	"sync"
)

// KeySize is the length of a data key in bytes.
const KeySize = 32

// version begins everything sealed. It is that of the format: a random nonce of 12 bytes,
// the ciphertext, and a tag of 16 bytes follow it.
const version = 1

// ErrCannotOpen reports that something sealed does not open: it was sealed with another
// data key or for another purpose, or it was altered. Which of these cannot be told.
var ErrCannotOpen = errors.New("the sealed value does not open with this data key: it was sealed with another one, or altered")

// Box seals and hashes with one data key. It is safe for use by several goroutines.
type Box struct {
	keys *keys // behind a pointer, which is all that fmt writes where it asks no Formatter
}

type keys struct {
	aead   cipher.AEAD
	secret []byte   // from which all other keys are expanded
	hash   sync.Map // []byte by purpose: every request hashes
}

// New returns a box for a data key.
func New(key [KeySize]byte) (*Box, error) {
	secret, err := hkdf.Extract(sha256.New, key[:], []byte("holdfast data key"))
	if err != nil {
		return nil, fmt.Errorf("derive keys: %w", err)
	}
	b := &Box{&keys{secret: secret}}
	block, err := aes.NewCipher(b.expand("seal", "", KeySize))
	if err != nil {
		return nil, fmt.Errorf("derive keys: %w", err)
	}
	if b.keys.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, fmt.Errorf("derive keys: %w", err)
	}
	return b, nil
}

// expand derives n bytes for a use and a purpose within it.
func (b *Box) expand(use, purpose string, n int) []byte {
	key, err := hkdf.Expand(sha256.New, b.keys.secret, "holdfast/"+use+"/"+purpose, n)
	if err != nil {
		panic(fmt.Sprintf("derive %d bytes: %v", n, err)) // more than 8160: no key is that long
	}
	return key
}

// Seal encrypts plaintext so that only Open with the same aad gives it back. Sealing the
// same twice gives different bytes.
func (b *Box) Seal(plaintext []byte, aad string) ([]byte, error) {
	sealed := make([]byte, 1, 1+len(plaintext)+b.keys.aead.Overhead())
	sealed[0] = version
	return b.keys.aead.Seal(sealed, nil, plaintext, additional(aad)), nil
}

// Open gives the plaintext back, or ErrCannotOpen.
func (b *Box) Open(sealed []byte, aad string) ([]byte, error) {
	if len(sealed) > 0 && sealed[0] > version {
		return nil, fmt.Errorf("the sealed value has format %d, which only a newer holdfast knows (or it was altered): update holdfast", sealed[0])
	}
	if len(sealed) == 0 || sealed[0] != version {
		return nil, ErrCannotOpen
	}
	plaintext, err := b.keys.aead.Open(nil, nil, sealed[1:], additional(aad))
	if err != nil {
		return nil, ErrCannotOpen
	}
	return plaintext, nil
}

// additional binds the format to what is sealed, so that no later format can be passed
// off as this one.
func additional(aad string) []byte { return append([]byte{version}, aad...) }

// KeyedHash is the HMAC-SHA256 of data in hex, under a key that is the purpose's own.
// Purposes are few and fixed: their keys are remembered.
func (b *Box) KeyedHash(purpose string, data []byte) string {
	key, ok := b.keys.hash.Load(purpose)
	if !ok {
		key, _ = b.keys.hash.LoadOrStore(purpose, b.expand("hash", purpose, sha256.Size))
	}
	mac := hmac.New(sha256.New, key.([]byte))
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

// Derive returns n bytes of a key for a purpose, the same ones every time. It panics for
// more than 8160.
func (b *Box) Derive(purpose string, n int) []byte { return b.expand("derive", purpose, n) }

// Format implements fmt.Formatter: no verb prints the keys.
func (Box) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "seal.Box(REDACTED)") }
