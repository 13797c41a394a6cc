package account

import "time"

// Provider names a vendor whose API the gateway serves.
type Provider string

// The providers. A new one needs a package below internal/provider and a route.
const (
	Anthropic Provider = "anthropic"
	OpenAI    Provider = "openai"
	XAI       Provider = "xai"
)

// Providers lists every provider in the order listings show them.
var Providers = []Provider{Anthropic, OpenAI, XAI}

// Kind says what sort of credential an account is.
type Kind string

const (
	// Key is an API key, paid by use.
	Key Kind = "key"
	// Subscription is a login whose plan has an allowance; its tokens expire.
	Subscription Kind = "subscription"
)

// ID identifies an account for ever: random, made when the account is added, never
// shown to clients and never reused, so that an account removed and added again
// under the same name inherits nothing.
type ID string

// Account is what the owner configured. What the account's answers taught us is in
// State.
type Account struct {
	ID       ID       `json:"id"`
	Name     string   `json:"name"`
	Provider Provider `json:"provider"`
	Kind     Kind     `json:"kind"`
	// Plan is the owner's or the login's word for the plan; empty when unknown.
	Plan string `json:"plan,omitempty"`
	// BaseURL replaces scheme and host of every endpoint; empty means the provider's own.
	BaseURL string `json:"base_url,omitempty"`
	// Draining accounts keep their conversations and get no new ones.
	Draining bool `json:"draining,omitempty"`
	// Overage is true when the owner allowed paid extra usage on this account.
	Overage bool      `json:"overage,omitempty"`
	AddedAt time.Time `json:"added_at"`
	// SecretHash is a keyed hash of the credential that the owner gave last, by which the
	// same one is recognized when it is given again. Empty if not known.
	SecretHash string `json:"secret_hash,omitempty"`
}
