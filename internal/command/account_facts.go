package command

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/checkup"
	"holdfast/internal/core/credential"
	"holdfast/internal/status"
	"holdfast/internal/store"
	"holdfast/internal/upkeep/presence"
	"holdfast/internal/upkeep/refresh"
)

// credentialFacts describe a credential without its secret. Times are null where they are
// not known, or never were.
type credentialFacts struct {
	// Generation counts the credentials the account has had, renewed ones too.
	Generation int64 `json:"generation"`
	// IssuedAt and ExpiresAt bound the life of a login's access token.
	IssuedAt  *time.Time `json:"issued_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	// Renewable: there is a refresh token.
	Renewable bool `json:"renewable"`
	// Owner is whose login it is: personal, team or unknown; empty for keys. Principal is the
	// provider's word for who logged in, Organization its word for whom the limits belong to.
	Owner        checkup.Verdict `json:"owner,omitempty"`
	Principal    string          `json:"principal,omitempty"`
	Organization string          `json:"organization,omitempty"`
	// RenewedAt is when a new grant was last saved.
	RenewedAt *time.Time `json:"renewed_at"`
	// RenewalFailures counts the tries since then that brought none, since FailingSince; the
	// last one's trouble is RenewalFailure, and the next one is at RetryAt.
	RenewalFailures int        `json:"renewal_failures"`
	FailingSince    *time.Time `json:"failing_since"`
	RenewalFailure  string     `json:"renewal_failure,omitempty"`
	RetryAt         *time.Time `json:"retry_at"`
	// RenewingSince is when a process began a renewal that is not at its end; others take it
	// over at TakenOverAt, should that process be gone.
	RenewingSince *time.Time `json:"renewing_since"`
	TakenOverAt   *time.Time `json:"taken_over_at"`
	// Missing: there is no credential that can be opened.
	Missing bool `json:"missing"`
	// Unread says why a credential that is there could not be looked at from here.
	Unread string `json:"unread,omitempty"`

	// refused: the account is parked for it. ending: it goes on and is not renewed any more.
	refused, ending bool
	// held is the credential itself, for those who go on with it.
	held credential.Credential
}

// facts describes a credential. Whoever may not open it is told so, and sees the rest of
// the account.
func facts(ctx context.Context, d *data, a account.Account, s account.State) (credentialFacts, error) {
	f := credentialFacts{Organization: s.Organization, refused: s.Parked != nil && s.Parked.Kind == account.BadCredential, ending: s.Ending != nil}
	stored, err := d.Credential(ctx, a.ID)
	if err != nil {
		return credentialFacts{}, err
	}
	if a.Kind == account.Subscription {
		renewals, err := d.Renewals(ctx, []account.ID{a.ID})
		if err != nil {
			return credentialFacts{}, err
		}
		f.renewal(renewals[a.ID], d.presence)
	}
	if stored.Revision == 0 {
		f.Missing = true
		return f, nil
	}
	v, err := d.vault(ctx)
	if err != nil {
		f.Unread = oneLine(err.Error())
		return f, nil
	}
	held, err := v.Open(a.ID, stored)
	if err != nil {
		f.Missing = true
		return f, nil
	}
	f.held = held
	f.Generation, f.Renewable, f.Principal = held.Generation, !held.Refresh.Empty(), held.Principal
	f.IssuedAt, f.ExpiresAt = told(held.IssuedAt), told(held.ExpiresAt)
	if a.Kind == account.Subscription {
		f.Owner = checkup.OwnerOf(held.Principal, a.Plan)
	}
	return f, nil
}

func (f *credentialFacts) renewal(r store.Renewal, others refresh.Presence) {
	f.RenewedAt, f.RenewalFailures, f.FailingSince = told(r.RenewedAt), r.Failures, told(r.FailingSince)
	if r.Failures > 0 {
		f.RenewalFailure, f.RetryAt = r.Failure, told(r.RetryAt)
	}
	if m := r.Spending; m != nil && m.By != "" {
		after := refresh.TakeoverAfter
		if others != nil {
			switch others.Look(m.By) {
			case presence.Here:
				after = refresh.FrozenAfter
			case presence.Gone:
				after = 0
			case presence.Unknown:
			}
		}
		f.RenewingSince, f.TakenOverAt = told(m.Since), told(m.Since.Add(after))
	}
}

// told is an instant as listings have it: null for none.
func told(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

// text says in a line how the credential stands.
func (f credentialFacts) text(now time.Time, name string) string {
	switch {
	case f.Missing:
		return "missing, or sealed under another key: give it a new one with `holdfast account login " + name + "`"
	case f.Unread != "":
		return "present, but not to be looked at from here: " + f.Unread
	case f.refused && f.ExpiresAt == nil:
		return "present, and refused by the provider"
	case f.ExpiresAt == nil && f.ending:
		return "present, and is not renewed any more; when it ends is not told"
	case f.ExpiresAt == nil && f.Owner != "": // a login
		return "present; when it ends is not told"
	case f.ExpiresAt == nil:
		return "present"
	case f.refused && now.Before(*f.ExpiresAt):
		return "refused by the provider, though it was to be good until " + f.ExpiresAt.Format(time.RFC3339)
	case f.refused:
		return "expired " + f.ExpiresAt.Format(time.RFC3339) + ", and is not renewed any more"
	case !now.Before(*f.ExpiresAt) && f.Renewable && f.RenewalFailures > 0:
		return "expired " + f.ExpiresAt.Format(time.RFC3339) + "; it could not be renewed yet"
	case !now.Before(*f.ExpiresAt) && f.Renewable && f.RenewingSince != nil:
		return "expired " + f.ExpiresAt.Format(time.RFC3339) + "; it is being renewed"
	case !now.Before(*f.ExpiresAt) && f.Renewable:
		return "expired " + f.ExpiresAt.Format(time.RFC3339) + "; it is renewed when it is needed"
	case !now.Before(*f.ExpiresAt):
		return "expired " + f.ExpiresAt.Format(time.RFC3339) + ", and cannot be renewed: holdfast account login " + name + " --import FILE"
	}
	text := fmt.Sprintf("good until %s (%s)", f.ExpiresAt.Format(time.RFC3339), status.Span(f.ExpiresAt.Sub(now)))
	if f.ending {
		text += ", and is not renewed any more"
	}
	if !f.Renewable {
		text += ", and cannot be renewed"
	}
	return text
}

// rows are what there is to say of a login beside.
func (f credentialFacts) rows(now time.Time) [][]string {
	var rows [][]string
	if f.RenewedAt != nil {
		rows = append(rows, []string{"renewed", fmt.Sprintf("%s (%s ago)", f.RenewedAt.Format(time.RFC3339), status.Span(now.Sub(*f.RenewedAt)))})
	}
	if f.RenewingSince != nil {
		rows = append(rows, []string{"renewal", fmt.Sprintf("begun %s (%s ago); if the process that does it is gone, another may from %s",
			f.RenewingSince.Format(time.RFC3339), status.Span(now.Sub(*f.RenewingSince)), f.TakenOverAt.Format(time.RFC3339))})
	}
	if f.RenewalFailures > 0 {
		tries := "1 try"
		if f.RenewalFailures > 1 {
			tries = fmt.Sprintf("%d tries", f.RenewalFailures)
		}
		text := tries + " failed"
		if f.FailingSince != nil {
			text += " since " + f.FailingSince.Format(time.RFC3339)
		}
		text += ": " + status.Plain(f.RenewalFailure)
		if f.RetryAt != nil && now.Before(*f.RetryAt) {
			text += "; the next is at " + f.RetryAt.Format(time.RFC3339)
		}
		rows = append(rows, []string{"renewal", text})
	}
	if f.Owner != "" {
		rows = append(rows, []string{"owner", ownerText(f.Owner, f.Principal)})
	}
	if f.Organization != "" {
		rows = append(rows, []string{"organization", status.Plain(f.Organization)})
	}
	return rows
}

func ownerText(owner checkup.Verdict, principal string) string {
	text := map[checkup.Verdict]string{
		checkup.Personal: "a personal login",
		checkup.Team:     "a team's or an organization's login",
		checkup.Unknown:  "whether it is a personal login or a team's is not told",
	}[owner]
	if principal != "" {
		text += " (" + status.Plain(principal) + ")"
	}
	return text
}
