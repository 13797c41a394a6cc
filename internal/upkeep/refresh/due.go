package refresh

import (
	"time"

	"holdfast/internal/core/credential"
)

const (
	// margin is how long before its end a login of unknown age is renewed. The official
	// clients renew 2 to 5 minutes ahead; a poller that sees an account every 5 minutes
	// needs that and one round more.
	margin = 10 * time.Minute
	// endless is the age at which a login is renewed that does not say when it ends: Codex
	// renews such a login once the last renewal is 8 days ago.
	endless = 8 * 24 * time.Hour
)

// Due reports whether a login is to be renewed ahead of time: once half of its life has
// passed, so that hours are left to mend what goes wrong. Without a refresh token it never
// is.
func Due(c credential.Credential, now time.Time) bool {
	switch issued, ends := !c.IssuedAt.IsZero(), !c.ExpiresAt.IsZero(); {
	case c.Refresh.Empty():
		return false
	case issued && ends:
		half := c.ExpiresAt.Sub(c.IssuedAt) / 2
		return !now.Before(c.IssuedAt.Add(half))
	case ends:
		return !now.Before(c.ExpiresAt.Add(-margin))
	case issued:
		return !now.Before(c.IssuedAt.Add(endless))
	}
	return false // it is renewed when it is refused
}
