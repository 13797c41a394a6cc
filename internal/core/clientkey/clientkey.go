// Package clientkey is the secret an agent shows to the gateway: how one is made, how a
// text is recognized as one, and how a stored key is found by it.
//
// A key reads hf_, then 43 characters that carry 256 random bits, then 6 that are a
// checksum of what stands before them. All characters are letters and digits, so that a
// double click selects the whole. The checksum lets a mistyped, cut or foreign text be
// turned away without a look into the store; it protects nothing by itself.
//
// Of a key only a keyed hash is kept. The package makes and compares hashes with a
// hasher it is given; it stores nothing, does no I/O, and never says what a key allows
// (package catalog does).
package clientkey

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"strings"

	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
)

const (
	prefix       = "hf_"
	randomLength = 43 // 62^43 is more than 2^256
	sumLength    = 6  // 62^6 is more than 2^32
	length       = len(prefix) + randomLength + sumLength
	alphabet     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// New makes a key of 32 bytes of random.
func New(random io.Reader) (credential.Secret, error) {
	var bits [32]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return credential.Secret{}, fmt.Errorf("draw a client key: %w", err)
	}
	return render(bits), nil
}

// FromSeed makes the key that a secret seed always gives. Whoever knows the seed knows
// the key.
func FromSeed(seed []byte) credential.Secret { return render(sha256.Sum256(seed)) }

func render(bits [32]byte) credential.Secret {
	text := prefix + base62(new(big.Int).SetBytes(bits[:]), randomLength)
	return credential.NewSecret(text + checksum(text))
}

func checksum(text string) string {
	return base62(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(text)))), sumLength)
}

// base62 writes a number with exactly width digits, the most significant first.
func base62(n *big.Int, width int) string {
	digits, base, digit := make([]byte, width), big.NewInt(int64(len(alphabet))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		digits[i] = alphabet[digit.Int64()]
	}
	return string(digits)
}

// LooksLike reports whether a text begins as client keys do.
func LooksLike(text string) bool { return strings.HasPrefix(text, prefix) }

// WellFormed reports whether a text is a client key by its form: made by New or
// FromSeed, here or elsewhere.
func WellFormed(text string) bool {
	if len(text) != length || !strings.HasPrefix(text, prefix) {
		return false
	}
	for _, c := range []byte(text[len(prefix):]) {
		if strings.IndexByte(alphabet, c) < 0 {
			return false
		}
	}
	return checksum(text[:length-sumLength]) == text[length-sumLength:]
}

// Hasher makes keyed hashes; purposes keep hashes of different things apart.
type Hasher interface {
	KeyedHash(purpose string, data []byte) string
}

// Hash is what is kept of a key.
func Hash(h Hasher, text string) string { return h.KeyedHash("client-key", []byte(text)) }

// Find returns the key with a hash. How long it takes tells nothing about the hashes.
func Find(keys []catalog.ClientKey, hash string) (catalog.ClientKey, bool) {
	found := -1
	for i, key := range keys {
		same := subtle.ConstantTimeCompare([]byte(key.Hash), []byte(hash))
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 || hash == "" {
		return catalog.ClientKey{}, false
	}
	return keys[found], true
}
