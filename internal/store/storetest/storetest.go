// Package storetest says what every store.Backend must do, as a suite of tests.
//
// The names of its subtests are the specification. A backend's own test is a Harness and
// one call of Run; what only that backend promises it tests for itself. The suite asks
// for no more than the contract: it never waits for a backend to delete by itself, never
// judges time, and keeps bodies below the 400 KB that DynamoDB takes. It works in a store
// that others use at the same time, since every test has records of its own.
package storetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/store"
)

// Harness gives the suite the store under test.
type Harness struct {
	// Open returns another handle on one and the same store, as a second process would
	// have it. The suite closes it.
	Open func(t *testing.T) store.Backend
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"Get", getTests},
		{"Put", putTests},
		{"Count", countTests},
		{"Body", bodyTests},
		{"Expiry", expiryTests},
		{"Delete", deleteTests},
		{"List", listTests},
		{"Context", contextTests},
		{"Concurrent", concurrentTests},
		{"Pin", pinTests},
		{"Owner", ownerTests},
		{"State", stateTests},
		{"Place", placeTests},
		{"Catalog", catalogTests},
		{"Credential", credentialTests},
		{"Poll", pollTests},
		{"History", historyTests},
		{"Usage", usageTests},
		{"Event", eventTests},
		{"Lease", leaseTests},
		{"Renewal", renewalTests},
		{"Forget", forgetTests},
		{"Serving", servingTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.tests {
				t.Run(c.name, func(t *testing.T) { c.run(t, h) })
			}
		})
	}
}

type test struct {
	name string
	run  func(t *testing.T, h Harness)
}

// open is a handle that is closed when the test ends.
func (h Harness) open(t *testing.T) store.Backend {
	t.Helper()
	b := h.Open(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: got %v, want no error", err)
		}
	})
	return b
}

// handles are n handles on the one store.
func (h Harness) handles(t *testing.T, n int) []store.Backend {
	t.Helper()
	all := make([]store.Backend, n)
	for i := range all {
		all[i] = h.open(t)
	}
	return all
}

// stores are n stores, each on a handle of its own.
func (h Harness) stores(t *testing.T, n int) []*store.Store {
	t.Helper()
	all := make([]*store.Store, n)
	for i, b := range h.handles(t, n) {
		// What is kept is the suite's matter, not how fast: a stand-in that answers one call
		// after the other needs longer for a race than a request would wait.
		all[i] = store.New(b).Within(patience)
	}
	return all
}

// unique is an id that no other test has.
func unique() string {
	var b [12]byte
	rand.Read(b[:]) // never fails, as its documentation says
	return hex.EncodeToString(b[:])
}

// newKind is a kind that no other test has; newKey a key of such a kind.
func newKind() store.Kind    { return store.Kind("suite-" + unique()) }
func newKey() store.Key      { return store.Key{Kind: newKind(), ID: unique()} }
func newAccount() account.ID { return account.ID(unique()) }
func instant() time.Time     { return time.Now().UTC().Truncate(time.Millisecond) }

// patience bounds a call of the suite.
const patience = 30 * time.Second

// soon is the context of a call that has to answer: a backend that hangs fails its test.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// together calls f n times at once, with 0 to n-1, and waits for all of them.
func together(n int, f func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// put writes and expects success.
func put(t *testing.T, b store.Backend, r store.Record, cond store.Condition) store.Record {
	t.Helper()
	stored, err := b.Put(soon(t), r, cond)
	if err != nil {
		t.Fatalf("put: got %v, want no error", err)
	}
	return stored
}

// create writes a record that was never put.
func create(t *testing.T, b store.Backend, r store.Record) store.Record {
	t.Helper()
	return put(t, b, r, store.Condition{})
}

// conflict writes and expects to be told the stored record.
func conflict(t *testing.T, b store.Backend, r store.Record, cond store.Condition, want store.Record) {
	t.Helper()
	stored, err := b.Put(soon(t), r, cond)
	if !errors.Is(err, store.ErrConflict) {
		t.Fatalf("put: got error %v, want ErrConflict", err)
	}
	same(t, "told by the conflict", stored, want)
	if want.Revision == 0 && want.Count == 0 {
		absent(t, b, r.Key)
	} else {
		same(t, "stored after the conflict", get(t, b, r.Key), want)
	}
}

// get reads one record, which must be there.
func get(t *testing.T, b store.Backend, key store.Key) store.Record {
	t.Helper()
	found, err := b.Get(soon(t), []store.Key{key})
	if err != nil {
		t.Fatalf("get: got %v, want no error", err)
	}
	if len(found) != 1 {
		t.Fatalf("get: got %d records, want 1", len(found))
	}
	return found[0]
}

// absent checks that there is no such record.
func absent(t *testing.T, b store.Backend, key store.Key) {
	t.Helper()
	found, err := b.Get(soon(t), []store.Key{key})
	if err != nil {
		t.Fatalf("get: got %v, want no error", err)
	}
	if len(found) != 0 {
		t.Errorf("get: got %s, want no record", words(found[0]))
	}
}

// same compares records, except DeleteAfter, which is not read back.
func same(t *testing.T, what string, got, want store.Record) {
	t.Helper()
	if words(got) != words(want) {
		t.Errorf("%s: got %s, want %s", what, words(got), words(want))
	}
}

func words(r store.Record) string {
	body := string(r.Body)
	if len(body) > 64 {
		body = fmt.Sprintf("%s… (%d bytes)", body[:64], len(body))
	}
	expires := "never"
	if !r.ExpiresAt.IsZero() {
		expires = r.ExpiresAt.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("{%s/%s revision %d body %q expires %s count %d}", r.Kind, r.ID, r.Revision, body, expires, r.Count)
}
