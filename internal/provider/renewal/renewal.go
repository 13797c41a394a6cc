// Package renewal reads what OAuth token endpoints answer to a refresh token (RFC 6749,
// sections 5 and 6), as far as the providers agree. What differs (hosts, the form of the
// question, which refusals are final) is in each provider's own package.
//
// # Words
//
// A grant is the good answer: new tokens. A refusal is the endpoint's own word against
// the request, in JSON. Everything else (a web page, a status that is neither) says nothing
// about the login: something in between answered, or the endpoint is in trouble.
//
// # Never
//
// No error repeats anything of an answer but its status and an error code that looks like
// one: an answer is made of secrets, and some servers quote what they were sent.
package renewal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
	"holdfast/internal/wire/limits"
)

// Grant is a good answer. What it left out is empty or zero.
type Grant struct {
	Access, Refresh credential.Secret
	// ExpiresAt is when Access ends by the answer's expires_in.
	ExpiresAt time.Time
	Scopes    []string
}

// Refusal is an answer that brought no grant.
type Refusal struct {
	Status int
	// codes are the words that name the error, from wherever they stood.
	codes []string
	// own: the endpoint itself refused, in its own form.
	own bool
}

// Own reports whether the token endpoint itself refused, in JSON. A page of HTML or plain
// text comes from something in between, whatever its status.
func (r *Refusal) Own() bool { return r.own }

// Named reports whether the error is named by one of the codes.
func (r *Refusal) Named(codes ...string) bool {
	return slices.ContainsFunc(codes, func(c string) bool { return slices.Contains(r.codes, c) })
}

// Error tells the status, and the first code that is surely none of a secret's.
func (r *Refusal) Error() string {
	s := fmt.Sprintf("the token endpoint answered %d", r.Status)
	if i := slices.IndexFunc(r.codes, isWord); i >= 0 {
		s += " " + r.codes[i]
	}
	if !r.own {
		s += " without a word of its own"
	}
	return s
}

// longestWord bounds an error code that is repeated, in bytes.
const longestWord = 48

// isWord reports whether a text is written like an error code: lower case and underscores
// alone, which no token is.
func isWord(text string) bool {
	return text != "" && len(text) <= longestWord && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// answer is everything a token endpoint may say.
type answer struct {
	Access    dialect.Text    `json:"access_token"`
	Refresh   dialect.Text    `json:"refresh_token"`
	ExpiresIn dialect.Number  `json:"expires_in"`
	Scope     dialect.Text    `json:"scope"`
	Error     json.RawMessage `json:"error"`
	Code      dialect.Text    `json:"code"`
}

// Read reads an answer. The error is a *Refusal, or wraps provider.ErrAnswerLost where a
// 2xx brought no token whole: the endpoint may then have spent the refresh token. A grant
// may lack either of its tokens.
func Read(r provider.Reply) (Grant, error) {
	var a answer
	body := bytes.TrimSpace(r.Body)
	isObject := len(body) > 0 && body[0] == '{' && json.Unmarshal(body, &a) == nil
	if r.Status < 200 || r.Status > 299 {
		refusal := &Refusal{Status: r.Status, own: isObject}
		if isObject {
			refusal.codes = codesOf(a)
		}
		return Grant{}, refusal
	}
	if r.Status != http.StatusOK && r.Status != http.StatusCreated {
		return Grant{}, fmt.Errorf("read tokens: the token endpoint answered %d: %w", r.Status, provider.ErrAnswerLost)
	}
	if !isObject {
		return Grant{}, fmt.Errorf("read tokens: the answer is not whole JSON: %w", provider.ErrAnswerLost)
	}
	g := Grant{Access: token(a.Access), Refresh: token(a.Refresh), Scopes: strings.Fields(string(a.Scope))}
	if g.Access.Empty() && g.Refresh.Empty() {
		return Grant{}, fmt.Errorf("read tokens: the answer holds none: %w", provider.ErrAnswerLost)
	}
	if d, ok := seconds(a.ExpiresIn); ok {
		g.ExpiresAt = r.At.Add(d).UTC()
	}
	return g, nil
}

// NoAccess is the error for a grant without an access token, where the provider never
// leaves that out.
func NoAccess() error {
	return fmt.Errorf("read tokens: the answer has no access token: %w", provider.ErrAnswerLost)
}

// Renew gives the login its new tokens at the instant of the answer. What the grant left
// out is kept, except the life of the access token: the old one's says nothing of the
// new one's, which is unknown unless told.
func (g Grant) Renew(old credential.Credential, at time.Time) credential.Credential {
	next := old
	next.Generation++
	if !g.Access.Empty() {
		next.Access, next.ExpiresAt, next.IssuedAt = g.Access, g.ExpiresAt, at.UTC()
	}
	if !g.Refresh.Empty() {
		next.Refresh = g.Refresh
	}
	if len(g.Scopes) > 0 {
		next.Scopes = g.Scopes
	}
	return next
}

// Claimed returns a renewed login with what the claims of its new access token say: when the
// token was issued and when it ends, each zero where it is not claimed, and whose it is, where
// the login did not name a principal before.
func Claimed(next credential.Credential, issuedAt, expiresAt time.Time, principal string) credential.Credential {
	if !expiresAt.IsZero() {
		next.ExpiresAt = expiresAt
	}
	if !issuedAt.IsZero() {
		next.IssuedAt = issuedAt
	}
	if next.Principal == "" {
		next.Principal = principal
	}
	return next
}

// codesOf are the words for an error: error as a string, its code and type, and a code
// beside it.
func codesOf(a answer) []string {
	var list []string
	add := func(t dialect.Text) {
		if t != "" {
			list = append(list, strings.ToLower(string(t)))
		}
	}
	var name dialect.Text
	_ = json.Unmarshal(a.Error, &name) // an object is not a name
	add(name)
	var inner struct {
		Code dialect.Text `json:"code"`
		Type dialect.Text `json:"type"`
	}
	_ = json.Unmarshal(a.Error, &inner) // a string has none
	add(inner.Code)
	add(a.Code)
	add(inner.Type)
	return list
}

// token takes a token in; one that could not go out in a header counts as missing.
func token(t dialect.Text) credential.Secret {
	s := strings.TrimSpace(string(t))
	if len(s) > maxToken || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return credential.Secret{}
	}
	return credential.NewSecret(s)
}

// maxToken bounds a token, in bytes.
const maxToken = 64 << 10

// seconds reads a life in seconds; nothing and less is not told, and none is longer than
// any limit.
func seconds(n dialect.Number) (time.Duration, bool) {
	v, ok := limits.Fraction(string(n))
	if !ok || v <= 0 {
		return 0, false
	}
	if v >= limits.Furthest.Seconds() {
		return limits.Furthest, true
	}
	return time.Duration(v * float64(time.Second)), true
}
