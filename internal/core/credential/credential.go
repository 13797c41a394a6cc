// Package credential holds what an account proves itself with, and keeps it from
// being printed.
//
// A Secret prints as REDACTED in every way Go prints a value; Reveal is the one way to
// its text, and only the code that puts it on the wire or seals it may call it. What is
// sealed or opened is remembered by package hidden, which takes it out of whatever is logged
// or kept. The package stores nothing and calls nobody: sealing is package seal's, keeping package
// store's, renewing package refresh's.
package credential

import (
	"encoding/json"
	"log/slog"
	"time"

	"holdfast/internal/core/hidden"
)

const redacted = "REDACTED"

// Secret is a text that must not be seen.
type Secret struct{ text string }

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text, for the wire and for sealing only.
func (s Secret) Reveal() string { return s.text }

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.text == "" }

func (s Secret) String() string               { return redacted }
func (s Secret) GoString() string             { return redacted }
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }

// Credential is an API key, or the tokens of a subscription login.
type Credential struct {
	// Key is the API key; empty for a login.
	Key Secret
	// Access and Refresh are the tokens of a login; empty for a key.
	Access, Refresh Secret
	// IssuedAt is when Access was issued; zero when unknown.
	IssuedAt time.Time
	// ExpiresAt is when Access ends; zero when unknown.
	ExpiresAt time.Time
	// ClientID is the OAuth client the login was made with; a refresh must name it.
	ClientID string
	Scopes   []string
	// Principal identifies who logged in, as the provider spells it; empty when unknown.
	Principal string
	// Scope says for whom at the provider the credential is used.
	Scope Scope
	// BaseURL is the account's base URL that the credential was given for: it is shown to no
	// other host. Nil where that was not noted.
	BaseURL *string
	// Generation rises by one with every new secret and fences writes.
	Generation int64
}

// Scope is for whom at its provider a credential is used, as far as the credential alone
// does not say it: a key may be good for several organizations, projects or workspaces. Each
// is the provider's id, and is empty where nothing is to be said. They are no secrets.
type Scope struct {
	Organization string `json:"organization,omitempty"`
	Project      string `json:"project,omitempty"`
	Workspace    string `json:"workspace,omitempty"`
}

// Bearer returns the secret that goes out as a bearer token or key.
func (c Credential) Bearer() Secret {
	if !c.Key.Empty() {
		return c.Key
	}
	return c.Access
}

// MeantFor reports whether the credential may be shown to the host of an account's base URL.
func (c Credential) MeantFor(baseURL string) bool { return c.BaseURL == nil || *c.BaseURL == baseURL }

// Refused returns what is left of a login whose access token was refused, before its end
// maybe: all but that token.
func (c Credential) Refused() Credential {
	c.Access = Secret{}
	return c
}

// Expired reports whether the access token is known to have ended.
func (c Credential) Expired(now time.Time) bool {
	return !c.ExpiresAt.IsZero() && !now.Before(c.ExpiresAt)
}

// Hide has package hidden remember the secrets anew, before it could forget them for newer ones.
func (c Credential) Hide() { hidden.Remember(c.Key.text, c.Access.text, c.Refresh.text) }

// plain is the sealed form: the only encoding that carries the secrets.
type plain struct {
	Key       string    `json:"key,omitempty"`
	Access    string    `json:"access,omitempty"`
	Refresh   string    `json:"refresh,omitempty"`
	IssuedAt  time.Time `json:"issued_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	ClientID  string    `json:"client_id,omitempty"`
	Scopes    []string  `json:"scopes,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Scope
	BaseURL    *string `json:"base_url,omitempty"`
	Generation int64   `json:"generation"`
}

// Plaintext encodes the credential with its secrets, for sealing.
func (c Credential) Plaintext() ([]byte, error) {
	c.Hide()
	return json.Marshal(plain{
		c.Key.text, c.Access.text, c.Refresh.text, c.IssuedAt, c.ExpiresAt, c.ClientID, c.Scopes, c.Principal, c.Scope, c.BaseURL, c.Generation,
	})
}

// FromPlaintext is the inverse of Plaintext.
func FromPlaintext(b []byte) (Credential, error) {
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return Credential{}, err
	}
	hidden.Remember(p.Key, p.Access, p.Refresh)
	return Credential{
		Key: NewSecret(p.Key), Access: NewSecret(p.Access), Refresh: NewSecret(p.Refresh), IssuedAt: p.IssuedAt,
		ExpiresAt: p.ExpiresAt, ClientID: p.ClientID, Scopes: p.Scopes, Principal: p.Principal, Scope: p.Scope, BaseURL: p.BaseURL, Generation: p.Generation,
	}, nil
}
