package capture

import (
	"errors"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
)

// OfCall says in lines what a provider makes of the answer to a call of the gateway's own.
// Of a look it is what Describe says of the reading; or "refused" for a refused credential,
// and "unread" where nothing was learnt. Of a renewal it is one line:
//
//	renewed access=new|old refresh=new|old [issued=TIME] [expires=TIME] [scopes=A,B]
//	final | not-entitled | lost | transient
//
// The login that is renewed has the scope "old" and is good for an hour around the answer.
func OfCall(p interface {
	provider.Renewer
	provider.Looker
}, c Capture) []string {
	reply := provider.Reply{Status: c.Status, Header: c.Header, Body: c.Body, At: c.Recorded}
	if c.Call == "renewal" {
		return []string{ofRenewal(p, reply)}
	}
	n := 0
	if c.Call == "look 1" {
		n = 1
	}
	reading, err := p.Looked(n, reply)
	switch {
	case errors.Is(err, provider.ErrCredentialRefused):
		return []string{"refused"}
	case err != nil:
		return []string{"unread"}
	case reading.Source != account.FromPoll || !reading.At.Equal(c.Recorded):
		return []string{"a reading that is of no look"}
	}
	return Describe(reading, account.Rejection{}, provider.Usage{})
}

func ofRenewal(p provider.Renewer, reply provider.Reply) string {
	old := credential.Credential{
		Access: credential.NewSecret("old"), Refresh: credential.NewSecret("old"), Scopes: []string{"old"}, Generation: 3,
		IssuedAt: reply.At.Add(-30 * time.Minute), ExpiresAt: reply.At.Add(30 * time.Minute),
	}
	next, err := p.Renewed(old, reply)
	switch {
	case errors.Is(err, provider.ErrRefusedForGood):
		return "final"
	case errors.Is(err, provider.ErrNotEntitled):
		return "not-entitled"
	case errors.Is(err, provider.ErrAnswerLost):
		return "lost"
	case err != nil:
		return "transient"
	case next.Generation != old.Generation+1:
		return "a generation that does not follow"
	}
	age := func(s credential.Secret) string {
		if s == old.Access {
			return "old"
		}
		return "new"
	}
	l := line{"renewed"}
	l.add("access", age(next.Access))
	l.add("refresh", age(next.Refresh))
	l.at("issued", next.IssuedAt)
	l.at("expires", next.ExpiresAt)
	l.add("scopes", strings.Join(next.Scopes, ","))
	return l.String()
}
