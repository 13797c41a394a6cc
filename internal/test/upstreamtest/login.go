package upstreamtest

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"time"
)

// Grant is what a token endpoint gives for a refresh token.
type Grant struct {
	Access, Refresh string
	// Ends is when Access does, as far as the answer says.
	Ends time.Time
	// at is when it was asked for.
	at time.Time
}

func (g Grant) seconds() int64 { return int64(g.Ends.Sub(g.at) / time.Second) }

// Renewable makes a refresh token of the account good for one exchange: the provider then
// knows the account by the grant's access token and by nothing it knew it by before. The
// token is not good a second time, nor is one that nobody was told of.
func (a *Account) Renewable(refresh string, g Grant) {
	a.up.mu.Lock()
	defer a.up.mu.Unlock()
	a.up.grants[refresh] = renewal{a, g}
}

type renewal struct {
	account *Account
	grant   Grant
}

// Known makes the credentials all that the account is known by: none are those of before.
func (a *Account) Known(credentials ...string) {
	a.up.mu.Lock()
	defer a.up.mu.Unlock()
	a.credentials = credentials
}

// exchange answers the token endpoint. The upstream is locked.
func (u *Upstream) exchange(r *Request) Script {
	found, ok := u.grants[u.speaks.refresh(r)]
	if !ok {
		return u.speaks.reused
	}
	delete(u.grants, u.speaks.refresh(r))
	found.account.credentials = []string{found.grant.Access}
	r.Account, r.organization = found.account.Name, found.account.organization
	found.grant.at = r.At
	return u.speaks.granted(found.grant)
}

func jsonRefresh(r *Request) string {
	var asked struct {
		Refresh string `json:"refresh_token"`
	}
	_ = json.Unmarshal(r.Body, &asked)
	return asked.Refresh
}

func formRefresh(r *Request) string {
	asked, _ := url.ParseQuery(string(r.Body))
	return asked.Get("refresh_token")
}

// JWT is a token with the claims, signed by nobody: clients and gateways read the claims,
// and only the provider, which this is, would check a signature.
func JWT(claims map[string]any) string {
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic("upstreamtest: render claims: " + err.Error())
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return part(map[string]string{"alg": "none", "typ": "JWT"}) + "." + part(claims) + ".unsigned"
}
