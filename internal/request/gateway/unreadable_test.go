package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/status"
	"holdfast/internal/store"
)

// damage changes the body of a stored record.
func (b *bench) damage(key store.Key, how func([]byte) []byte) {
	b.t.Helper()
	records, err := b.backend().Get(b.t.Context(), []store.Key{key})
	if err != nil || len(records) != 1 {
		b.t.Fatalf("got %d records of %v and error %v", len(records), key, err)
	}
	r := records[0]
	r.Body = how(append([]byte(nil), r.Body...))
	if _, err := b.backend().Put(b.t.Context(), r, store.Condition{Revision: r.Revision}); err != nil {
		b.t.Fatal(err)
	}
}

// flipBit changes one bit in the middle, where a sealed credential has its ciphertext.
func flipBit(body []byte) []byte {
	at := len(body) - 20
	for body[at] == '"' || body[at] == '\\' {
		at--
	}
	if body[at] == 'A' {
		body[at] = 'B'
	} else {
		body[at] = 'A'
	}
	return body
}

// TestOneBadRecord is field case one-bad-record: a record that cannot be read leaves out the
// account that it is of, and no other.
func TestOneBadRecord(t *testing.T) {
	damages := map[string]func([]byte) []byte{
		"flipped":    flipBit,
		"garbage":    func([]byte) []byte { return []byte{0, 1, 2, 0xff} },
		"empty":      func([]byte) []byte { return nil },
		"wrong type": func([]byte) []byte { return []byte(`{"windows":7,"sealed":{},"blocks":"x"}`) },
	}
	for name, how := range damages {
		for _, kind := range []store.Kind{store.KindState, store.KindCredential} {
			if kind == store.KindState && name == "flipped" {
				continue // a flipped letter may be JSON still
			}
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				b := newBench(t, "marlow", "juniper")
				b.prefer("marlow", "juniper")
				b.served(ask{session: session(1)}) // pinned to marlow
				b.damage(store.Key{Kind: kind, ID: "acc-marlow"}, how)
				_, url := b.process(b.store, nil)
				for i := range 5 {
					if r := b.served(ask{session: session(10 + i), url: url}); r.account() != "juniper" {
						t.Errorf("a new conversation: got %s", r.account())
					}
				}
				if r := b.served(ask{session: session(1), url: url}); r.account() != "juniper" || r.pin() != "moved" {
					t.Errorf("its own conversation: got %s, pin %s, want it moved", r.account(), r.pin())
				}
				admin := b.newKey(catalog.ClientKey{Name: "admin", Admin: true})
				b.clock.advance(2 * time.Second)
				r := b.served(ask{method: "GET", path: "/_holdfast/status.json", key: admin, url: url})
				var report status.Report
				if err := json.Unmarshal([]byte(r.body), &report); err != nil {
					t.Fatal(err)
				}
				a := report.Accounts[0]
				cure := map[store.Kind]string{store.KindState: "holdfast account clear marlow", store.KindCredential: "holdfast account login marlow --key-env VARIABLE"}[kind]
				if a.Name != "marlow" || a.State != status.Unreadable || a.NeedsOwner == nil || a.NeedsOwner.Command != cure {
					t.Errorf("got %+v, want it unreadable, with %q", a, cure)
				}
				if kind == store.KindCredential && strings.Count(b.log.String(), "cannot be opened") != 1 {
					t.Errorf("the log says it %d times, want once", strings.Count(b.log.String(), "cannot be opened"))
				}
				// What cures it.
				if kind == store.KindState {
					b.fold("marlow", func(s account.State) account.State { return s.Clear(b.clock.now()) })
				} else {
					b.clock.advance(time.Second)
					b.relogin("marlow")
				}
				b.prefer("marlow", "juniper")
				if r := b.served(ask{session: session(30), url: url}); r.account() != "marlow" {
					t.Errorf("afterwards: got %s, want marlow", r.account())
				}
			})
		}
	}
}

// relogin gives an account its credential again, over whatever stands there.
func (b *bench) relogin(name string) {
	b.t.Helper()
	id := account.ID("acc-" + name)
	record, err := b.store.Credential(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	fresh := newBench(b.t, name)
	sealed, err := fresh.store.Credential(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, _, err := b.store.PutCredential(b.t.Context(), id, sealed.Sealed, record.Revision); err != nil {
		b.t.Fatal(err)
	}
}

// A pin that cannot be read ends, and is replaced; nobody else hears of it. So does what is
// known of an object.
func TestOneBadPin(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.served(ask{session: session(1)})
	pins, err := b.store.Pins(t.Context())
	if err != nil || len(pins) != 1 {
		t.Fatalf("got %d pins and error %v", len(pins), err)
	}
	for key := range pins {
		b.damage(store.Key{Kind: store.KindPin, ID: key}, func([]byte) []byte { return []byte("{") })
	}
	if r := b.served(ask{session: session(1)}); r.pin() != "new" {
		t.Errorf("got pin %s, want a new one", r.pin())
	}
	if r := b.served(ask{session: session(1)}); r.pin() != "kept" {
		t.Errorf("then: got pin %s, want it kept", r.pin())
	}
}
