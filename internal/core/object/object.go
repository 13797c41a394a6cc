// Package object says whose an object is: which account made a response, a conversation, a
// batch, a file, a container that exists nowhere else.
//
// # Words
//
// An object is what a provider keeps on one account and lets requests name by an id. Its
// owner is that account. A record of it is made when an answer names the object, is
// touched while requests name it, and expires a while after the last of them; that is
// judged by our clock, here, and never by a store's own expiry.
//
// What is uploaded by one client key is likely to be named together later. So there is a
// record, too, of the account that a client key's uploads go to: its word is a wish, and an
// upload that it cannot take goes elsewhere, with those after it.
//
// # Keys
//
// A record goes by a hash over the provider and the object's id, so that what is stored
// tells no ids, and equal ids at two providers are two objects. The client key is no part
// of it. The accounts are one person's and the client keys are that person's own agents,
// which share files and batches; the provider, too, lets every key of an account see what
// is on it. What a client key may not use it still may not: its restriction to accounts
// holds, and a request that names an object elsewhere is refused. That tells such a key
// that the object exists, of ids that nobody can guess.
//
// # What it never does
//
// It does not know which ids a request or an answer names (package provider), nor
// what follows from an owner (package placement), and it does no I/O.
package object

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"holdfast/internal/core/account"
)

// Record is whose an object is.
type Record struct {
	Account  account.ID       `json:"account"`
	Provider account.Provider `json:"provider"`
	// Keep is how long after its last sight the object may still be asked for, in
	// nanoseconds.
	Keep time.Duration `json:"keep"`
	// TouchedAt is the sight of it that the expiry was reckoned from.
	TouchedAt time.Time `json:"touched_at"`
	ExpiresAt time.Time `json:"expires_at"`

	// Revision is the stored record's; 0 for one never stored.
	Revision int64 `json:"-"`
}

// maxTouchEvery bounds how often a record is written for being used alone.
const maxTouchEvery = 24 * time.Hour

// touchEvery is the least time between two touches: a day, or a thirtieth of the time the
// record is kept if that is shorter.
func touchEvery(keep time.Duration) time.Duration { return min(maxTouchEvery, keep/30) }

// New is the record of an object that an account was just seen to have.
func New(a account.Account, keep time.Duration, now time.Time) Record {
	return Record{Account: a.ID, Provider: a.Provider, Keep: keep}.Touch(now)
}

// Live reports whether the record still holds: it ends at the instant ExpiresAt.
func (r Record) Live(now time.Time) bool { return r.Account != "" && now.Before(r.ExpiresAt) }

// TouchDue reports whether being named now is worth a write.
func (r Record) TouchDue(now time.Time) bool { return now.Sub(r.TouchedAt) >= touchEvery(r.Keep) }

// Touch is the record after the object was seen now. The expiry includes one touch
// interval, so that a use which was not written never lets a record end early.
func (r Record) Touch(now time.Time) Record {
	r.TouchedAt = now
	r.ExpiresAt = now.Add(r.Keep + touchEvery(r.Keep))
	return r
}

// Key is what the record of an object goes by: 43 characters that are safe in paths.
func Key(p account.Provider, id string) string { return key("holdfast object", p, id) }

// UploadsKey is what the record goes by of the account that a client key's uploads go to.
func UploadsKey(p account.Provider, clientKeyID string) string {
	return key("holdfast uploads", p, clientKeyID)
}

func key(kind string, p account.Provider, id string) string {
	b := make([]byte, 0, 256)
	for _, part := range [...]string{kind, string(p), id} {
		// Each part goes in with its length, so that none can pass for another's end.
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
