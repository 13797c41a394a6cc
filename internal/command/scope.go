package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
)

// belongings are what goes with a credential: for whom it is used, and at which host.
type belongings struct {
	given   credential.Scope
	baseURL string
	// own is a host of the provider's own that was given as base URL, although it means none; empty if
	// none was.
	own string

	flags *cobra.Command
}

// The flags of a scope, which are also the words for its parts.
const (
	organizationFlag = "organization"
	projectFlag      = "project"
	workspaceFlag    = "workspace"
	baseURLFlag      = "base-url"
)

func (b *belongings) add(cmd *cobra.Command) {
	b.flags = cmd
	f := cmd.Flags()
	f.StringVar(&b.given.Organization, organizationFlag, "", "OpenAI: the organization that the key is used for, such as org-…")
	f.StringVar(&b.given.Project, projectFlag, "", "OpenAI: the project that the key is used for, such as proj_…")
	f.StringVar(&b.given.Workspace, workspaceFlag, "", "Anthropic: the workspace that the credential is used for, such as wrkspc_…")
	f.StringVar(&b.baseURL, baseURLFlag, "", "another host in place of the provider's, such as https://eu.api.openai.com")
}

func (b *belongings) has(flag string) bool { return b.flags.Flags().Changed(flag) }

// scoped reports whether a part of a scope was given, maybe an empty one.
func (b *belongings) scoped() bool {
	return b.has(organizationFlag) || b.has(projectFlag) || b.has(workspaceFlag)
}

// any reports whether there is something to go with a credential.
func (b *belongings) any() bool { return b.scoped() || b.has(baseURLFlag) }

// longestID bounds a part of a scope, in bytes.
const longestID = 200

// check finds ids that no header can carry, and texts that are not hosts. What is empty takes
// something away from an account that there is; a new one has nothing.
func (b *belongings) check(adding bool) error {
	if adding && b.has(baseURLFlag) && b.baseURL == "" {
		return usageError("--base-url is empty; name a host, or leave it out for the provider's own")
	}
	for _, part := range b.parts() {
		if adding && b.has(part.flag) && part.id == "" {
			return usageError(fmt.Sprintf("--%s is empty; give the provider's id, or leave it out", part.flag))
		}
		if len(part.id) > longestID || strings.ContainsFunc(part.id, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return usageError(fmt.Sprintf("--%s takes the provider's id, one word of at most %d printable characters", part.flag, longestID))
		}
	}
	return checkBaseURL(b.baseURL)
}

// scopePart is one of a scope's parts, by the name of its flag.
type scopePart struct{ flag, id string }

func (b *belongings) parts() []scopePart { return partsOf(b.given) }

func partsOf(s credential.Scope) []scopePart {
	return []scopePart{{organizationFlag, s.Organization}, {projectFlag, s.Project}, {workspaceFlag, s.Workspace}}
}

// scopeText is a scope for a listing; empty where nothing was given.
func scopeText(s credential.Scope) string {
	var parts []string
	for _, part := range partsOf(s) {
		if part.id != "" {
			parts = append(parts, part.flag+" "+part.id)
		}
	}
	return strings.Join(parts, ", ")
}

// fit refuses what the provider does not have for accounts of the kind, and takes the
// provider's own host for no base URL: at one host accounts share, and a key is held once.
func (b *belongings) fit(c *cli, p account.Provider, kind account.Kind) error {
	names := partsOf(c.Providers[p].ScopeHeaders(kind))
	for i, part := range b.parts() {
		if !b.has(part.flag) || names[i].id != "" {
			continue
		}
		if kind == account.Subscription && partsOf(c.Providers[p].ScopeHeaders(account.Key))[i].id != "" {
			return usageError(fmt.Sprintf("--%s goes with an API key; a login of %s says by itself for whom it is", part.flag, p))
		}
		return usageError(fmt.Sprintf("--%s is not for an account of %s: %s", part.flag, p, scopesOf(c, p)))
	}
	if base, err := catalog.CheckBaseURL(b.baseURL); err == nil && slices.Contains(provider.OwnHosts(c.Providers[p]), base) {
		b.baseURL, b.own = "", base
	}
	return nil
}

// sayOfHost says that the host that was given is the provider's own and not a base URL.
func (b *belongings) sayOfHost(c *cli, a account.Account) {
	if b.own != "" {
		c.say("%s is %s's own host, so account %s has no base URL.", b.own, a.Provider, a.Name)
	}
}

// scopesOf says which flags of a scope a provider has.
func scopesOf(c *cli, p account.Provider) string {
	var flags []string
	for _, part := range partsOf(c.Providers[p].ScopeHeaders(account.Key)) {
		if part.id != "" {
			flags = append(flags, "--"+part.flag)
		}
	}
	if flags == nil {
		return "its credentials say by themselves for whom they are; leave it out"
	}
	return "it takes " + strings.Join(flags, " and ")
}

// over is a scope with what was given in its place; an empty word takes a part away.
func (b *belongings) over(s credential.Scope) credential.Scope {
	if b.has(organizationFlag) {
		s.Organization = b.given.Organization
	}
	if b.has(projectFlag) {
		s.Project = b.given.Project
	}
	if b.has(workspaceFlag) {
		s.Workspace = b.given.Workspace
	}
	return s
}

// host points the account at the host that was given, if one was.
func (b *belongings) host(c catalog.Catalog, name string) (catalog.Catalog, error) {
	if !b.has(baseURLFlag) {
		return c, nil
	}
	return c.SetBaseURL(name, b.baseURL)
}

// rescope gives the credential that an account has another scope, another host, or both. It
// becomes a credential of its own: what was remembered against the account ends, and late
// refusals of what was before are void.
func (c *cli) rescope(ctx context.Context, d *data, a account.Account, state store.StateRecord, b *belongings) error {
	box, err := d.box(ctx)
	if err != nil {
		return err
	}
	v := vault.Vault{Store: d.Store, Box: box}
	held, revision, err := v.Load(ctx, a.ID)
	switch {
	case err != nil:
		return fmt.Errorf("the credential of account %s cannot be read, so give it with this: --key-env, --key-stdin or --import: %w", a.Name, err)
	case revision == 0:
		return fmt.Errorf("account %s has no credential; give it with this: --key-env, --key-stdin or --import", a.Name)
	}
	scope := b.over(held.Scope)
	hash := a.SecretHash
	if a.Kind == account.Key {
		hash = obtained{Credential: credential.Credential{Key: held.Key, Scope: scope}}.secretHash(box)
	}
	record := func(old catalog.Catalog) (catalog.Catalog, error) {
		next, err := b.host(old, a.Name)
		if err != nil {
			return next, err
		}
		return next.LogIn(a.Name, hash, "")
	}
	changed, err := d.change(ctx, record)
	if err != nil {
		return err
	}
	at, err := changed.Named(a.Name)
	if err != nil {
		return err
	}
	next := func(held credential.Credential) credential.Credential {
		held.Scope, held.BaseURL = b.over(held.Scope), &at.BaseURL
		return held
	}
	generation, err := c.replace(ctx, v, a, state, next, held, revision)
	if err != nil {
		return fmt.Errorf("the account's host is recorded, but not the rest; run this again: %w", err)
	}
	_, err = d.Fold(ctx, a.ID, state, func(s account.State) (account.State, bool) {
		s, _ = s.Believed(c.Now())
		return s.LoggedIn(generation).Elsewhere(c.Now()), true
	})
	if err != nil {
		return fmt.Errorf("the credential is saved, but the account's state is not; run this again: %w", err)
	}
	c.say("Account %s keeps its credential.", a.Name)
	b.sayOfHost(c, a)
	c.sayOfScope(a, at, held.Scope, next(held).Scope)
	return nil
}

// sayOfScope says for whom and to which host an account's requests go now, where that is not a
// matter of course, and what of it is another than before.
func (c *cli) sayOfScope(was, is account.Account, before, now credential.Scope) {
	old := partsOf(before)
	for i, part := range partsOf(now) {
		switch {
		case part == old[i] && part.id != "":
			c.say("Its requests are for %s %s, as before.", part.flag, part.id)
		case part.id == "" && old[i].id != "":
			c.say("Its requests name no %s any more; it was %s.", part.flag, old[i].id)
		case part.id != "" && old[i].id != "":
			c.say("Its requests are for %s %s and no longer for %s.", part.flag, part.id, old[i].id)
		case part.id != "":
			c.say("Its requests are for %s %s.", part.flag, part.id)
		}
	}
	host := func(a account.Account) string {
		if a.BaseURL == "" {
			return string(a.Provider) + "'s own host"
		}
		return a.BaseURL
	}
	switch {
	case is.BaseURL != was.BaseURL:
		c.say("Its requests go to %s and no longer to %s.", host(is), host(was))
	case is.BaseURL != "":
		c.say("Its requests go to %s, as before.", host(is))
	}
}

// scopes are those of the accounts' credentials, which need not be opened for it.
func (d *data) scopes(ctx context.Context, ids []account.ID) (map[account.ID]credential.Scope, error) {
	view, err := d.Read(ctx, store.Query{Credentials: ids})
	if err != nil {
		return nil, err
	}
	return scopesOfRecords(view.Credentials), nil
}

func scopesOfRecords(records map[account.ID]store.SealedRecord) map[account.ID]credential.Scope {
	scopes := map[account.ID]credential.Scope{}
	for id, record := range records {
		scopes[id] = vault.Scope(record)
	}
	return scopes
}
