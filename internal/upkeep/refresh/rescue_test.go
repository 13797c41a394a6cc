package refresh_test

import (
	"context"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/store"
	"holdfast/internal/test/issuertest"
	"holdfast/internal/upkeep/presence"
	"holdfast/internal/upkeep/refresh"
)

// standings are what is known of other processes; the test says it.
type standings struct {
	other presence.Standing
	left  int
}

func (*standings) Announce(string) error           { return nil }
func (s *standings) Leave(string) error            { s.left++; return nil }
func (s *standings) Look(string) presence.Standing { return s.other }

// marked leaves a mark of another process on the login's token, which the issuer has taken.
func (b *bench) marked() {
	b.Helper()
	_, err := b.store.ChangeCatalog(b.Context(), func(c catalog.Catalog) (catalog.Catalog, error) { return c.AddAccount(b.acct) })
	if err != nil {
		b.Fatal(err)
	}
	thaw := b.frozen(b.refresherWith(func(o *refresh.Options) {
		o.Store = b.handle(func(r store.Record) error {
			if r.Kind == store.KindCredential {
				return store.ErrUnavailable // it never comes to save what it gets
			}
			return nil
		})
	}))
	mark := *b.renewal().Spending
	b.Cleanup(func() {
		if _, err := thaw(); err == nil {
			b.Error("the grant was saved by who could not")
		}
	})
	if mark.By == "" || mark.Lost {
		b.Fatalf("got the mark %+v, want another's", mark)
	}
}

// TestRescue is part of field case killed-in-mid-renewal: with nobody asking for the login, a
// server ends what a process that is gone began, at once; one that lives, or of which nothing
// is known, it leaves alone.
func TestRescue(t *testing.T) {
	for _, c := range []struct {
		name  string
		other presence.Standing
		want  int64
	}{{"gone", presence.Gone, 2}, {"here", presence.Here, 1}, {"unknown", presence.Unknown, 1}} {
		t.Run(c.name, func(t *testing.T) {
			b := begin(t, issuertest.Options{Grace: time.Second}, nil)
			b.living(8 * time.Hour) // nobody asks for it
			b.marked()
			s := &standings{other: c.other}
			r := b.refresherWith(func(o *refresh.Options) { o.Presence = s })
			if err := r.Rescue(t.Context()); err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if got := b.stored().Generation; got != c.want {
				t.Errorf("got generation %d, want %d", got, c.want)
			}
			if err := r.Close(context.Background()); err != nil || s.left != 1 {
				t.Errorf("close: got %v, and it left %d times, want once", err, s.left)
			}
		})
	}
}

// Where the login is truly lost, the refresher reports it at once: the issuer forgives nothing. While the
// access token lives, the account goes on.
func TestRescueOfALostLogin(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	b.living(8 * time.Hour)
	b.marked()
	r := b.refresherWith(func(o *refresh.Options) { o.Presence = &standings{other: presence.Gone} })
	for range 2 { // the second finds nothing to do
		err := r.Rescue(t.Context())
		if e := b.state().Ending; e == nil || e.Reason != refresh.ReasonAnswerLost || b.parked() != "" {
			t.Errorf("got ending %+v, parked %q and error %v, want the login to end since an answer was lost", e, b.parked(), err)
		}
	}
	b.counts(issuertest.Counts{Requests: 2, Exchanges: 1, Reuses: 1, Revoked: 1})
}

// A login without its account, or an account without its login, is nobody's to rescue.
func TestRescueOfNothing(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	r := b.refresherWith(func(o *refresh.Options) { o.Presence = &standings{other: presence.Gone} })
	if err := r.Rescue(t.Context()); err != nil {
		t.Errorf("without accounts: got %v", err)
	}
	_, err := b.store.ChangeCatalog(t.Context(), func(c catalog.Catalog) (catalog.Catalog, error) {
		return c.AddAccount(account.Account{ID: "other", Name: "other", Provider: account.Anthropic, Kind: account.Subscription})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Rescue(t.Context()); err != nil {
		t.Errorf("without marks: got %v", err)
	}
	b.counts(issuertest.Counts{})
}
