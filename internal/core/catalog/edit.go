package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/internal/core/account"
)

// AddAccount adds an account as the last of its provider's order. Its ID and AddedAt are
// the caller's to set; its base URL is kept as CheckBaseURL returns it.
func (c Catalog) AddAccount(a account.Account) (Catalog, error) {
	if err := CheckName(a.Name); err != nil {
		return Catalog{}, err
	}
	base, err := CheckBaseURL(a.BaseURL)
	if err != nil {
		return Catalog{}, err
	}
	if _, taken := c.Account(a.Name); taken {
		return Catalog{}, fmt.Errorf("there is an account %q already; choose another name, or give it a new credential with `holdfast account login %s`", a.Name, a.Name)
	}
	a.BaseURL = base
	if err := c.heldElsewhere(a); err != nil {
		return Catalog{}, err
	}
	c.Accounts = append(slices.Clone(c.Accounts), a)
	return c, nil
}

// heldElsewhere refuses a credential that another account has: it would count twice, and
// has its limits once.
func (c Catalog) heldElsewhere(a account.Account) error {
	for _, other := range c.Accounts {
		if a.SecretHash != "" && other.SecretHash == a.SecretHash && other.Name != a.Name && other.Provider == a.Provider && other.BaseURL == a.BaseURL {
			return fmt.Errorf("account %q holds this credential already, for the same organization, project, workspace and host; use that account, or give another credential", other.Name)
		}
	}
	return nil
}

// Named finds an account by name; its error says that no account has it.
func (c Catalog) Named(name string) (account.Account, error) {
	a, ok := c.Account(name)
	if !ok {
		return account.Account{}, noAccount(name)
	}
	return a, nil
}

// RemoveAccount takes an account out, also of the keys that are restricted to it and
// others. A key that is restricted to it alone stands in the way: with nothing left in
// its list it would be allowed everything.
func (c Catalog) RemoveAccount(name string) (Catalog, error) {
	gone, err := c.Named(name)
	if err != nil {
		return Catalog{}, err
	}
	keys := slices.Clone(c.Keys)
	for i, key := range keys {
		if !slices.Contains(key.Accounts, gone.ID) {
			continue
		}
		keys[i].Accounts = without(key.Accounts, gone.ID)
		if len(keys[i].Accounts) == 0 {
			return Catalog{}, fmt.Errorf("client key %q may use account %q only, and with nothing left could use all; revoke it first: `holdfast key revoke %s`", key.Name, name, key.Name)
		}
	}
	c.Keys = keys
	c.Accounts = slices.DeleteFunc(slices.Clone(c.Accounts), func(a account.Account) bool { return a.ID == gone.ID })
	return c, nil
}

func without(ids []account.ID, gone account.ID) []account.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id account.ID) bool { return id == gone })
}

// change applies edit to a copy of one account.
func (c Catalog) change(name string, edit func(*account.Account)) (Catalog, error) {
	i := slices.IndexFunc(c.Accounts, func(a account.Account) bool { return a.Name == name })
	if i < 0 {
		return Catalog{}, noAccount(name)
	}
	c.Accounts = slices.Clone(c.Accounts)
	edit(&c.Accounts[i])
	return c, nil
}

// Drain keeps new conversations off an account; those it has, stay.
func (c Catalog) Drain(name string) (Catalog, error) {
	return c.change(name, func(a *account.Account) { a.Draining = true })
}

// Resume ends Drain.
func (c Catalog) Resume(name string) (Catalog, error) {
	return c.change(name, func(a *account.Account) { a.Draining = false })
}

// SetOverage says whether paid extra usage may be spent on an account.
func (c Catalog) SetOverage(name string, allow bool) (Catalog, error) {
	return c.change(name, func(a *account.Account) { a.Overage = allow })
}

// SetBaseURL points an account at another host; the URL is kept as CheckBaseURL returns it.
func (c Catalog) SetBaseURL(name, url string) (Catalog, error) {
	base, err := CheckBaseURL(url)
	if err != nil {
		return Catalog{}, err
	}
	return c.change(name, func(a *account.Account) { a.BaseURL = base })
}

// LogIn records a new credential's hash, and its plan unless that is empty.
func (c Catalog) LogIn(name, secretHash, plan string) (Catalog, error) {
	next, err := c.change(name, func(a *account.Account) {
		a.SecretHash = secretHash
		if plan != "" {
			a.Plan = plan
		}
	})
	if err != nil {
		return Catalog{}, err
	}
	a, _ := next.Account(name)
	return next, c.heldElsewhere(a)
}

// Reorder puts the named accounts of a provider first, in that order; its others follow
// in the order they have.
func (c Catalog) Reorder(p account.Provider, names []string) (Catalog, error) {
	if len(names) == 0 {
		return Catalog{}, Invalid("name the accounts in the order they are to have")
	}
	var ordered []account.Account
	for i, name := range names {
		a, err := c.Named(name)
		switch {
		case err != nil:
			return Catalog{}, err
		case a.Provider != p:
			return Catalog{}, fmt.Errorf("account %q belongs to %s, not to %s; name accounts of one provider only", name, a.Provider, p)
		case slices.Contains(names[:i], name):
			return Catalog{}, Invalid(fmt.Sprintf("account %q is named twice; name each account once", name))
		}
		ordered = append(ordered, a)
	}
	for _, a := range c.Of(p) {
		if !slices.Contains(names, a.Name) {
			ordered = append(ordered, a)
		}
	}
	c.Accounts = slices.Clone(c.Accounts)
	next := 0
	for i, a := range c.Accounts {
		if a.Provider == p {
			c.Accounts[i] = ordered[next]
			next++
		}
	}
	return c, nil
}

// PolicyNames are the rules there are.
var PolicyNames = []PolicyName{Score, Order, SoonestReset}

// SetPolicy chooses a provider's rule. threshold belongs to policy order; 0 leaves it at
// its default.
func (c Catalog) SetPolicy(p account.Provider, name PolicyName, threshold float64) (Catalog, error) {
	if !slices.Contains(PolicyNames, name) {
		return Catalog{}, Invalid("a policy is score, order or soonest-reset")
	}
	if threshold != 0 {
		if name != Order {
			return Catalog{}, Invalid("a threshold belongs to policy order only")
		}
		if !(threshold > 0 && threshold <= 1) { // NaN fails both
			return Catalog{}, Invalid("a threshold is a fraction above 0, at most 1, such as 0.80")
		}
	}
	c.Policies = maps.Clone(c.Policies)
	if c.Policies == nil {
		c.Policies = map[account.Provider]Policy{}
	}
	c.Policies[p] = Policy{Name: name, Threshold: threshold}
	return c, nil
}

// AddKey adds a client key. Its ID, Hash and CreatedAt are the caller's to set; names of
// the accounts it is restricted to are resolved here, and none means all.
func (c Catalog) AddKey(key ClientKey, accounts []string) (Catalog, error) {
	if err := CheckName(key.Name); err != nil {
		return Catalog{}, err
	}
	if slices.ContainsFunc(c.Keys, func(k ClientKey) bool { return k.Name == key.Name }) {
		return Catalog{}, fmt.Errorf("there is a client key %q already; choose another name, or `holdfast key revoke %s` first", key.Name, key.Name)
	}
	key.Accounts = nil
	for _, name := range accounts {
		name = strings.TrimSpace(name)
		if name == "" {
			return Catalog{}, Invalid("name the accounts between commas, without an empty one; without --accounts a key may use all")
		}
		a, err := c.Named(name)
		if err != nil {
			return Catalog{}, err
		}
		if !slices.Contains(key.Accounts, a.ID) {
			key.Accounts = append(key.Accounts, a.ID)
		}
	}
	c.Keys = append(slices.Clone(c.Keys), key)
	return c, nil
}

// Key finds a client key by name.
func (c Catalog) Key(name string) (ClientKey, bool) {
	for _, key := range c.Keys {
		if key.Name == name {
			return key, true
		}
	}
	return ClientKey{}, false
}

// RevokeKey takes a client key out.
func (c Catalog) RevokeKey(name string) (Catalog, error) {
	gone, ok := c.Key(name)
	if !ok {
		return Catalog{}, noKey(name)
	}
	c.SpentSeed = max(c.SpentSeed, gone.Seed)
	c.Keys = slices.DeleteFunc(slices.Clone(c.Keys), func(k ClientKey) bool { return k.Name == name })
	return c, nil
}
