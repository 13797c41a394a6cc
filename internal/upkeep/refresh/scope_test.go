package refresh_test

import (
	"testing"

	"holdfast/internal/core/credential"
	"holdfast/internal/store"
	"holdfast/internal/test/issuertest"
)

// The owner may give a login another scope while it is renewed: its new tokens are saved
// over that, and keep the scope.
func TestScopeIsGivenDuringARenewal(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	scope := credential.Scope{Workspace: "wrkspc_1"}
	given := false
	r := b.refresher(func(record store.Record) error {
		if record.Key.Kind == store.KindCredential && !given {
			given = true
			c := b.stored()
			c.Scope = scope
			c.Generation++
			b.save(c, 1)
		}
		return nil
	})
	b.good(r, 3)
	if got := b.stored().Scope; got != scope {
		t.Errorf("got scope %+v, want %+v", got, scope)
	}
	b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
}
