package command

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/store"
)

// How a credential stands agrees with how its account does: one that the provider refused
// is not called good, nor one that is not renewed any more renewable.
func TestCredentialText(t *testing.T) {
	now := time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	with := func(f credentialFacts, expires *time.Time) credentialFacts {
		f.ExpiresAt, f.Renewable = expires, true
		return f
	}
	var failing, begun credentialFacts
	failing.renewal(store.Renewal{Failures: 2, Failure: "status 503", FailingSince: before, RetryAt: after}, nil)
	begun.renewal(store.Renewal{Spending: &store.Spending{By: "another", Since: now.Add(-20 * time.Second)}}, nil)
	for name, tt := range map[string]struct {
		f      credentialFacts
		want   string
		beside string
	}{
		"good":                       {with(credentialFacts{}, &after), "good until 2027-03-04T11:00:00Z (1h00m)", ""},
		"refused":                    {with(credentialFacts{refused: true}, &after), "refused by the provider, though it was to be good until 2027-03-04T11:00:00Z", ""},
		"refused, of unknown end":    {with(credentialFacts{refused: true}, nil), "present, and refused by the provider", ""},
		"expired":                    {with(credentialFacts{}, &before), "expired 2027-03-04T09:00:00Z; it is renewed when it is needed", ""},
		"expired, and refused":       {with(credentialFacts{refused: true}, &before), "expired 2027-03-04T09:00:00Z, and is not renewed any more", ""},
		"expired, and failing":       {with(failing, &before), "expired 2027-03-04T09:00:00Z; it could not be renewed yet", "2 tries failed since 2027-03-04T09:00:00Z: status 503; the next is at 2027-03-04T11:00:00Z"},
		"expired, and being renewed": {with(begun, &before), "expired 2027-03-04T09:00:00Z; it is being renewed", "begun 2027-03-04T09:59:40Z (20s ago); if the process that does it is gone, another may from 2027-03-04T10:01:20Z"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.f.text(now, "max"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			var beside []string
			for _, row := range tt.f.rows(now) {
				beside = append(beside, row[1])
			}
			if got := strings.Join(beside, "\n"); got != tt.beside {
				t.Errorf("beside: got %q, want %q", got, tt.beside)
			}
		})
	}
}
