package refresh_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/credential"
	"holdfast/internal/test/issuertest"
	"holdfast/internal/upkeep/refresh"
)

// living makes the login one that has a time left to live.
func (b *bench) living(left time.Duration) {
	b.Helper()
	c := b.stored()
	c.ExpiresAt = time.Time{}
	if left > 0 {
		c.ExpiresAt = b.clock.now().Add(left)
	}
	b.save(c, 1)
}

// A refresh token that is refused ends the login only with its access token: at the instant
// of its end, when it is refused, or never where its end is not told.
func TestRefusedForGoodWhileItLives(t *testing.T) {
	const left = 3 * time.Hour
	for _, c := range []struct {
		name    string
		left    time.Duration // 0: not told
		after   time.Duration
		refused bool
		parked  string
	}{
		{"just before its end", left, left - 1, false, ""},
		{"at its end", left, left, false, refresh.ReasonRefused},
		{"refused before", left, time.Minute, true, refresh.ReasonRefused},
		{"without a told end", 0, 1000 * time.Hour, false, ""},
		{"without a told end, refused", 0, time.Minute, true, refresh.ReasonRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := begin(t, issuertest.Options{}, nil)
			b.living(c.left)
			b.issuer.Next(issuertest.Fault{Status: http.StatusBadRequest, Body: gone})
			renew := func(held credential.Credential) {
				t.Helper()
				// Of another process each time: what is remembered is remembered in the store.
				if _, err := b.refresher(nil).Renew(t.Context(), b.acct, held); !errors.Is(err, refresh.ErrOwner) {
					t.Errorf("got %v, want %v", err, refresh.ErrOwner)
				}
			}
			renew(b.stored())
			e := b.state().Ending
			if e == nil || e.Reason != refresh.ReasonRefused || !e.Until.Equal(b.stored().ExpiresAt) || b.parked() != "" {
				t.Fatalf("got ending %+v, parked %q, want it to end with its access token", e, b.parked())
			}
			b.clock.advance(c.after)
			held := b.stored()
			if c.refused {
				held = held.Refused()
			}
			renew(held)
			if got := b.parked(); got != c.parked {
				t.Errorf("got parked %q, want %q", got, c.parked)
			}
			b.counts(issuertest.Counts{Requests: 1})
			if got := b.renewal().Refused; len(got) != 1 || slices.ContainsFunc(got, func(hash string) bool { return strings.Contains(hash, "EXAMPLE") }) {
				t.Errorf("got %d refused tokens, want one, as a hash", len(got))
			}
			if n := strings.Count(b.log.String(), "not renewed any more"); n != 1 {
				t.Errorf("the owner is told %d times, want once", n)
			}
		})
	}
}

// A grant that is over by our clock as it comes, or is refused at once, is not renewed again
// for a while: not by each request, and by no other process.
func TestRenewalsAreApart(t *testing.T) {
	b := begin(t, issuertest.Options{Life: -time.Hour}, nil)
	r := b.refresher(nil)
	b.good(r, 2)
	if got := b.stored(); got.Expired(b.clock.now()) || refresh.Due(got, b.clock.now()) {
		t.Errorf("got a login that ends %v and was issued %v, want it used until it is refused", got.ExpiresAt, got.IssuedAt)
	}
	b.bad(r, refresh.ErrTransient)
	b.clock.advance(30*time.Second - 1)
	b.bad(b.refresher(nil), refresh.ErrTransient)
	b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
	var later *refresh.LaterError
	if _, err := r.Renew(t.Context(), b.acct, b.stored()); !errors.As(err, &later) || !later.Until.Equal(beginning.Add(30*time.Second)) {
		t.Errorf("got %v, want it to say when the next try is", err)
	}
	b.clock.advance(1)
	b.good(r, 3)
	b.counts(issuertest.Counts{Requests: 2, Exchanges: 2})
}
