package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
)

// Call is a request that holdfast makes for itself: to renew a login, or to look how much
// of an account's allowance is used. The account's base URL replaces scheme and host.
type Call struct {
	Method, URL string
	// Header has everything the call needs, its credential included; holdfast's own
	// User-Agent is the caller's to add where none exists.
	Header http.Header
	// Body is sent as it is; nil for none.
	Body []byte
}

// Reply is the whole answer to a Call.
type Reply struct {
	Status int
	Header http.Header
	// Body is decoded and whole; an answer too large to be one is the caller's error.
	Body []byte
	// At is when the answer's headers arrived.
	At time.Time
}

// Unexpected is an error that says in a few words what came instead of the answer hoped
// for: its status, and whether its body is JSON, a web page or something else. It repeats
// nothing of the body.
func (r Reply) Unexpected() error {
	what := "something else than JSON"
	switch body := bytes.TrimSpace(r.Body); {
	case len(body) == 0:
		what = "nothing"
	case json.Valid(body):
		what = "JSON"
	case body[0] == '<':
		what = "a web page"
	}
	return fmt.Errorf("the answer has status %d and holds %s", r.Status, what)
}

// Renewer is the part of a provider that keeps logins alive.
type Renewer interface {
	// Renewal is the call that exchanges a login's refresh token for new tokens. It is
	// false for what cannot be renewed: a key, or a login without a refresh token.
	Renewal(c credential.Credential) (Call, bool)
	// Renewed reads the answer to Renewal: the login with its new tokens, everything that
	// the answer left out kept as it was in old, Generation one higher. The error wraps
	// ErrRefusedForGood where the provider said that this refresh token will never do
	// again, ErrNotEntitled where the login is good and the plan does not include this,
	// ErrAnswerLost where the provider may have acted and its new tokens did not arrive
	// whole; any other error is transient and has spent nothing.
	Renewed(old credential.Credential, r Reply) (credential.Credential, error)
}

// Renewers are those of the providers that keep logins alive.
func Renewers(providers map[account.Provider]Provider) map[account.Provider]Renewer {
	out := map[account.Provider]Renewer{}
	for name, p := range providers {
		if r, ok := p.(Renewer); ok {
			out[name] = r
		}
	}
	return out
}

// What a renewal's answer can mean besides a new grant.
var (
	ErrRefusedForGood = errors.New("the provider refused the refresh token for good")
	ErrNotEntitled    = errors.New("the login is good, but its plan does not include this use")
	ErrAnswerLost     = errors.New("the provider's answer with the new tokens did not arrive whole")
)

// Looker is the part of a provider that asks how much of an account's allowance is used,
// without a model call and without spending any of it.
type Looker interface {
	// Looks are the calls that can tell, best first: the next is for when the one before
	// it failed other than by a refused credential. None where the provider has no usage
	// endpoint for the kind.
	Looks(kind account.Kind, c credential.Credential) []Call
	// Looked reads the answer to the nth of Looks. The error wraps ErrCredentialRefused
	// where the access token was refused; any other says that nothing was learnt, which
	// blocks nobody. A reading is of Source account.FromPoll, dated r.At.
	Looked(n int, r Reply) (account.Reading, error)
}

// Lookers are those of the providers that can be asked for usage.
func Lookers(providers map[account.Provider]Provider) map[account.Provider]Looker {
	out := map[account.Provider]Looker{}
	for name, p := range providers {
		if l, ok := p.(Looker); ok {
			out[name] = l
		}
	}
	return out
}

// ErrCredentialRefused reports that a look was refused for its access token.
var ErrCredentialRefused = errors.New("the provider refused the access token")
