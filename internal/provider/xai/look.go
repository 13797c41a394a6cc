package xai

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/core/claims"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
)

const (
	billingURL = "https://cli-chat-proxy.grok.com/v1/billing?format=credits"
	creditsURL = "https://grok.com/grok_api_v2.GrokBuildBilling/GetGrokCreditsConfig"
)

// The two looks, by their place in Looks.
const (
	overREST = iota
	overGRPC
)

// Looks implements provider.Looker: over REST, and where that tells nothing over gRPC-Web.
// A team has no personal allowance, which is all that the second knows.
//
// The calls carry what the credential requires (the bearer token, the mark that says what
// sort of token it is, whose account is asked for) and what the protocol requires. They do
// not carry what would pass them off as the Grok CLI or as xAI's web page: no client
// version or mode, no Origin or Referer, no other library's x-user-agent. Callers have been
// answered with the bearer token alone.
func (p Provider) Looks(kind account.Kind, c credential.Credential) []provider.Call {
	if kind != account.Subscription {
		return nil
	}
	rest := http.Header{"Accept": {"application/json"}}
	p.Authorize(rest, kind, c)
	principal, user := claims.GrokPrincipalOf(c.Principal)
	if token, ok := claims.ReadGrok(c.Access.Reveal()); ok && token.Subject != "" {
		user = token.Subject
	}
	if user != "" {
		rest.Set("X-Userid", user)
	}
	calls := []provider.Call{{Method: http.MethodGet, URL: billingURL, Header: rest}}
	if principal == claims.GrokTeam {
		return calls
	}
	web := http.Header{
		"Authorization": rest["Authorization"], "Accept": {"*/*"},
		"Content-Type": {"application/grpc-web+proto"}, "X-Grpc-Web": {"1"},
	}
	return append(calls, provider.Call{
		Method: http.MethodPost, URL: creditsURL, Header: web,
		Body: make([]byte, 5), // one frame, with an empty message
	})
}

// Looked implements provider.Looker.
func (p Provider) Looked(n int, r provider.Reply) (account.Reading, error) {
	if r.Status != http.StatusOK {
		x := p.Classify(provider.Answer{Status: r.Status, Header: r.Header, Body: r.Body, At: r.At, Kind: account.Subscription})
		if n == overREST && x.Kind == account.BadCredential {
			return account.Reading{}, fmt.Errorf("look at usage: %w: %w", provider.ErrCredentialRefused, r.Unexpected())
		}
		return account.Reading{}, fmt.Errorf("look at usage: %w", r.Unexpected())
	}
	if n == overREST {
		reading, err := Usage(r.Body, r.At)
		if err != nil {
			return account.Reading{}, fmt.Errorf("look at usage: %w: %w", err, r.Unexpected())
		}
		return reading, nil
	}
	err := CallStatus(r.Header)
	var reading account.Reading
	if err == nil {
		reading, err = UsageGRPC(r.Body, r.At)
	}
	var status *StatusError
	switch {
	case err == nil:
		return reading, nil
	case errors.As(err, &status):
		return account.Reading{}, fmt.Errorf("look at usage: %w", refusedCall(status))
	}
	return account.Reading{}, fmt.Errorf("look at usage: %w: %w", err, r.Unexpected())
}

// refusedCall says what a refused call means, without the server's own words. Only a
// status 7 that names bad credentials is about the token: 16 has come for good ones
// too, since it is not settled whether this way takes the tokens of logins at all.
func refusedCall(e *StatusError) error {
	if e.Code == 7 && strings.Contains(strings.ToLower(e.Message), "bad-credentials") {
		return fmt.Errorf("grpc status %d: %w", e.Code, provider.ErrCredentialRefused)
	}
	return fmt.Errorf("the call was refused with grpc status %d", e.Code)
}
