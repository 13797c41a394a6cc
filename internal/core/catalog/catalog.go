package catalog

import (
	"slices"
	"time"

	"holdfast/internal/core/account"
)

// Catalog is the owner's whole configuration. The zero value is an empty gateway.
type Catalog struct {
	// Accounts in the owner's order: within a provider, the order of policy "order".
	Accounts []account.Account `json:"accounts,omitempty"`
	Keys     []ClientKey       `json:"keys,omitempty"`
	// Policies by provider; a provider that is absent has its default.
	Policies map[account.Provider]Policy `json:"policies,omitempty"`
	// Overrides are the settings that differ from their defaults, as the owner typed them.
	Overrides map[string]string `json:"settings,omitempty"`
	// SpentSeed is the highest Seed of a key that was revoked; 0 for none.
	SpentSeed int `json:"spent_seed,omitempty"`
}

// ClientKey is an agent's right to call the gateway.
type ClientKey struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Hash is the keyed hash of the secret, in hex; the secret itself is nowhere.
	Hash string `json:"hash"`
	// Background keys yield to interactive traffic.
	Background bool `json:"background,omitempty"`
	// Admin keys may read the status.
	Admin bool `json:"admin,omitempty"`
	// Accounts restricts the key to these; empty allows all.
	Accounts  []account.ID `json:"accounts,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	// Seed is above 0 for a key that is derived and not drawn: which one it is. A seed whose
	// key was revoked is spent, or the key would come back.
	Seed int `json:"seed,omitempty"`
}

// Allows reports whether the key may use an account.
func (k ClientKey) Allows(id account.ID) bool {
	return len(k.Accounts) == 0 || slices.Contains(k.Accounts, id)
}

// PolicyName names a rule that picks an account for a new conversation.
type PolicyName string

const (
	Score        PolicyName = "score"
	Order        PolicyName = "order"
	SoonestReset PolicyName = "soonest-reset"
)

// Policy is a provider's rule and its figure.
type Policy struct {
	Name PolicyName `json:"name"`
	// Threshold is the utilization at which policy "order" passes an account over: a
	// fraction above 0, at most 1; 0 stands for DefaultThreshold.
	Threshold float64 `json:"threshold,omitempty"`
}

// DefaultThreshold is where policy "order" passes an account over unless told otherwise.
const DefaultThreshold = 0.80

// DefaultPolicies are the rules of providers whose owner chose none.
var DefaultPolicies = map[account.Provider]PolicyName{
	account.Anthropic: Score,
	account.OpenAI:    SoonestReset,
	account.XAI:       Order,
}

// PolicyOf returns the rule in force for a provider.
func (c Catalog) PolicyOf(p account.Provider) Policy {
	policy := c.Policies[p]
	if policy.Name == "" {
		policy.Name = DefaultPolicies[p]
	}
	if policy.Threshold == 0 {
		policy.Threshold = DefaultThreshold
	}
	return policy
}

// Of returns the accounts of a provider in the owner's order.
func (c Catalog) Of(p account.Provider) []account.Account {
	var out []account.Account
	for _, a := range c.Accounts {
		if a.Provider == p {
			out = append(out, a)
		}
	}
	return out
}

// Account finds an account by name.
func (c Catalog) Account(name string) (account.Account, bool) {
	for _, a := range c.Accounts {
		if a.Name == name {
			return a, true
		}
	}
	return account.Account{}, false
}

// ByID finds an account by its id.
func (c Catalog) ByID(id account.ID) (account.Account, bool) {
	for _, a := range c.Accounts {
		if a.ID == id {
			return a, true
		}
	}
	return account.Account{}, false
}
