package gateway

import (
	"errors"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/upkeep/refresh"
)

// hostChanged is the rule by which a credential is kept back that was given for another host
// than the account has, as far as is known here.
const hostChanged = "host-changed"

// credentialFor returns the credential to ask candidate i with: one that is known to have
// expired is renewed before it is sent. Where it returns none, the rejection says why.
func (x *exchange) credentialFor(i int) (credential.Credential, account.Rejection, error) {
	c := x.sit.Candidates[i]
	cred, ok, err := x.credentialOf(c.Account.ID, c.State.Generation)
	switch {
	case err != nil:
		return cred, account.Rejection{}, err
	case !ok:
		return cred, account.Rejection{
			Kind: account.BadCredential, At: x.g.now(), Generation: c.State.Generation, Code: "credential_missing", Rule: "no-credential",
		}, nil
	case !cred.Expired(x.g.now()):
		return cred, account.Rejection{}, nil
	}
	if newer, ok := x.newerCredential(c.Account.ID, cred); ok {
		cred = newer // renewed by another process, while this one may have been frozen
	}
	if !cred.Expired(x.g.now()) || !x.renewable(i, cred) {
		return cred, account.Rejection{}, nil
	}
	cred, refused := x.renew(i, cred)
	return cred, refused, nil
}

// credentialAfter returns another credential to ask candidate i with, once, after the one
// used was refused: the store's where that is newer, else a renewed one. The rejection says
// why it returns none; its kind is Unrenewed where a later attempt may return one.
func (x *exchange) credentialAfter(i int, used credential.Credential) (credential.Credential, account.Rejection) {
	if newer, ok := x.newerCredential(x.sit.Candidates[i].Account.ID, used); ok {
		if !newer.Expired(x.g.now()) || !x.renewable(i, newer) {
			return newer, account.Rejection{}
		}
		used = newer
	}
	if !x.renewable(i, used) {
		return used, account.Rejection{Kind: account.BadCredential}
	}
	next, refused := x.renew(i, used.Refused())
	if refused.Rule == refresh.ReasonNotEntitled {
		refused.Kind = account.Funds // refused on both ways, and only the owner can change the plan
	}
	return next, refused
}

// newerCredential re-reads an account's credential: another process may have renewed it.
func (x *exchange) newerCredential(id account.ID, used credential.Credential) (credential.Credential, bool) {
	c, ok, err := x.rereadCredential(id)
	if err != nil {
		x.g.log.Warn("re-read a credential", "request", x.id, "error", err)
		return c, false
	}
	return c, ok && c.Generation > used.Generation
}

// renewable reports whether candidate i's credential could be renewed here. A key never is.
func (x *exchange) renewable(i int, c credential.Credential) bool {
	return x.g.renew != nil && x.sit.Candidates[i].Account.Kind != account.Key && !c.Refresh.Empty()
}

// renew has candidate i's login renewed. A renewal that failed for the moment marks
// nothing: the account is as good as before.
func (x *exchange) renew(i int, held credential.Credential) (credential.Credential, account.Rejection) {
	a := x.sit.Candidates[i].Account
	c, err := x.g.renew(x.r.Context(), a, held)
	if err == nil {
		x.g.credentials.put(a.ID, heldCredential{Credential: c})
		return c, account.Rejection{}
	}
	r := account.Rejection{Kind: account.Unrenewed, At: x.g.now(), Generation: held.Generation, Rule: "not-renewed"}
	var later *refresh.LaterError
	if errors.As(err, &later) {
		r.Until = later.Until
	}
	switch {
	case errors.Is(err, refresh.ErrOwner):
		r.Kind, r.Rule = account.BadCredential, refresh.ReasonRefused
	case errors.Is(err, provider.ErrNotEntitled):
		r.Rule = refresh.ReasonNotEntitled
	}
	x.g.log.Warn("renew a login", "request", x.id, "account", a.Name, "error", err)
	return held, r
}

// withoutAnswer is what the client hears where it would be handed an upstream's answer and
// no such answer may reach it.
func (x *exchange) withoutAnswer() provider.Refusal {
	if r, ok := x.comesBack(); ok {
		return r
	}
	return contended(x.g.now()) // the race was lost to an account that cannot serve now
}

// comesBack is the refusal where this request met a login that could not be renewed just
// now and may be later; it is false if it met none.
func (x *exchange) comesBack() (provider.Refusal, bool) {
	if x.unrenewed == "" {
		return provider.Refusal{}, false
	}
	if x.unrenewedHost {
		return busy("account "+x.unrenewed+" is being pointed at another host; try again", x.g.now()), true
	}
	return unrenewed(x.name, x.unrenewed, x.unrenewedUntil, x.g.now()), true
}
