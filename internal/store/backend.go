package store

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Kind is the sort of thing a record is. A backend treats all alike.
type Kind string

const (
	KindCatalog    Kind = "catalog"    // one record, id "catalog": catalog.Catalog
	KindState      Kind = "state"      // by account id: account.State; Count counts placements
	KindPin        Kind = "pin"        // by hashed conversation key: pin.Record
	KindCredential Kind = "credential" // by account id: a sealed credential
	KindDataKey    Kind = "datakey"    // "datakey": the wrapped data key, where a key service wraps it; "check": see Store.KeyCheck
	KindOwner      Kind = "owner"      // by hashed id of an object that lives on one account: owner.Record
	KindLease      Kind = "lease"      // by what it is for: who may do it now
	KindRenewal    Kind = "renewal"    // by account id: how far the renewal of its login has come
	KindServing    Kind = "serving"    // by provider: who serves under policy order, and the newest switches; PROVIDER/past: older ones
	KindPoll       Kind = "poll"       // "poll": when who was looked at, and who is backed off from
	KindHistory    Kind = "history"    // by account id and day: readings, for forecasts
	KindEvent      Kind = "event"      // by day: what happened
	KindUsage      Kind = "usage"      // by hour, and by day: what accounts were used for
)

// Key names a record.
type Key struct {
	Kind Kind
	ID   string
}

// Record is what a backend keeps: bytes under a key, with a revision.
type Record struct {
	Key
	// Revision rises by one with every Put. 0 means that nothing was ever put: such a
	// record exists only if Add made it.
	Revision int64
	Body     []byte
	// ExpiresAt is when the record is void; zero for never. Backends cut it to whole
	// milliseconds and MUST return records past it: expiry is the caller's to judge.
	// They may delete such records on their own, later than DeleteAfter.
	ExpiresAt time.Time
	// DeleteAfter lets a backend tidy up; zero for never. It is not read back.
	DeleteAfter time.Time
	// Count is what Add counted. Put neither reads nor changes it.
	Count int64
}

// Condition is what a Put or Delete depends on: the stored revision is Revision (0: the
// key was never put), or, where ExpiredBy is set, the stored record has an expiry that is
// not after ExpiredBy, both in whole milliseconds.
type Condition struct {
	Revision  int64
	ExpiredBy time.Time
}

var (
	// ErrConflict reports that a condition did not hold; nothing was written.
	ErrConflict = errors.New("the record was changed by another process")
	// ErrUnavailable reports that the store did not answer in time or failed. A write
	// may or may not have happened.
	ErrUnavailable = errors.New("the store is unavailable")
)

// Backend keeps records. Every method MUST give up when its context ends, MUST wrap
// ErrUnavailable where the store failed or did not answer, and MUST be safe for use by
// several goroutines and, on one store, by several processes.
type Backend interface {
	// Get reads the records that exist among keys, in one round trip, every one of them
	// current (strongly consistent); the set need not be a snapshot. Duplicate keys are
	// the caller's fault. The bodies MUST NOT be changed by the caller.
	Get(ctx context.Context, keys []Key) ([]Record, error)
	// Put writes Body and ExpiresAt if the condition holds and returns the record as
	// written: the revision is one more than the stored one. If it does not hold it
	// returns ErrConflict with the stored record (the zero Record when none exists),
	// read in the same round trip. Not idempotent: a Put that failed with ErrUnavailable
	// may have been applied.
	Put(ctx context.Context, r Record, cond Condition) (Record, error)
	// Add adds one to Count and returns the new count. With limit > 0 it does so only if
	// the count is below limit; else it returns the stored count and ErrConflict. Not
	// idempotent. It makes the record (revision 0) if none exists.
	Add(ctx context.Context, key Key, limit int64) (int64, error)
	// Delete removes a record if its revision is the one given; ErrConflict otherwise.
	// Deleting what is not there succeeds.
	Delete(ctx context.Context, key Key, revision int64) error
	// List yields every record of a kind, in no order. It is not for the request path.
	List(ctx context.Context, kind Kind) iter.Seq2[Record, error]
	// Close releases what the backend holds. Nothing may be called after it.
	Close() error
}
