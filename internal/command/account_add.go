package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/provider/credentialfile"
	"holdfast/internal/status"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
)

func (c *cli) accountAdd() *cobra.Command {
	var from source
	var with belongings
	var providerName string
	cmd := &cobra.Command{
		Use:   "add NAME --provider P (--key-env VAR | --key-stdin | --import FILE)",
		Short: "Add an account, as the last of its provider's order",
		Long: "Add an account, as the last of its provider's order: an API key from an environment variable or from standard\n" +
			"input, or a subscription login from an official client's credential file (Claude Code, Codex, Grok CLI).\n\n" +
			"Of an API key nobody is asked. A login is proved by one look at its usage, and renewed before if it has\n" +
			"expired: one that the provider refuses is not added. --no-check leaves that to its first use.",
		Example: "  holdfast account add work --provider anthropic --key-env ANTHROPIC_API_KEY\n" +
			"  holdfast account add team --provider openai --key-env OPENAI_API_KEY\n" +
			"  pass show xai | holdfast account add xai --provider xai --key-stdin\n" +
			"  holdfast account add max --provider anthropic --import ~/.claude/.credentials.json\n" +
			"  holdfast account add chatgpt --provider openai --import ~/.codex/auth.json\n" +
			"  holdfast account add grok --provider xai --import ~/.grok/auth.json",
		Args: exactly("NAME"),
	}
	from.flags(cmd)
	cmd.Flags().StringVar(&providerName, "provider", "", "whose account it is: "+c.providerNames())
	with.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := catalog.CheckName(args[0]); err != nil {
			return err
		}
		if providerName == "" {
			return usageError("say whose account it is, with --provider " + c.providerNames())
		}
		p, err := c.providerOf(providerName)
		if err != nil {
			return err
		}
		if err := with.check(true); err != nil {
			return err
		}
		if err := from.check(cmd); err != nil {
			return err
		}
		if err := with.fit(c, p, from.kind()); err != nil {
			return err
		}
		got, err := c.obtain(&from)
		if err != nil {
			return err
		}
		if got.login != nil && got.login.Provider != p {
			return fmt.Errorf("import %s: this is the login of %s, which belongs to %s; say --provider %[3]s", from.importFile, got.login.Client, got.login.Provider)
		}
		got.Scope = with.given
		ctx, stop := unhurried(cmd.Context())
		defer stop()
		c.makes = true
		return c.with(ctx, func(d *data) error {
			a := account.Account{Name: args[0], Provider: p, BaseURL: with.baseURL}
			if err := c.add(ctx, d, a, got); err != nil {
				return err
			}
			with.sayOfHost(c, a)
			return nil
		})
	}
	return cmd
}

// checkBaseURL refuses a text that is not a base URL, and this program's own address.
func checkBaseURL(text string) error {
	base, err := catalog.CheckBaseURL(text)
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(defaultAddress)
	for _, own := range []string{"127.0.0.1", "localhost", "[::1]"} {
		if base == "http://"+own+":"+port {
			return usageError(base + " is where holdfast itself listens: it would ask itself for ever; an account's base URL is another host")
		}
	}
	return nil
}

// add stores a new account. Its credential is written first, under an id that nothing
// names yet, so that no server ever sees the account without it, and so that a login which
// is renewed for its proof is saved before it is used.
func (c *cli) add(ctx context.Context, d *data, a account.Account, got obtained) error {
	id, err := c.newID()
	if err != nil {
		return err
	}
	a.ID, a.Kind, a.Plan, a.AddedAt = account.ID(id), got.kind, got.plan, c.Now().UTC().Truncate(time.Second)
	old, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	box, err := d.box(ctx)
	if err != nil {
		return err
	}
	a.SecretHash = got.secretHash(box)
	planned, err := old.AddAccount(a)
	if err != nil {
		return err
	}
	base := planned.Accounts[len(planned.Accounts)-1].BaseURL
	a.BaseURL = base // as it is kept
	if got.Generation = 1; !got.anywhere {
		got.BaseURL = &base
	}
	v := vault.Vault{Store: d.Store, Box: box}
	if _, err := v.Save(ctx, a.ID, got.Credential, 0); err != nil {
		return err
	}
	proved := proof{held: got.Credential}
	if got.login != nil && !got.unchecked {
		proved, err = c.prove(ctx, d, a, got)
		if err == nil && ctx.Err() != nil && !proved.renewed {
			err = errors.New("interrupted")
		}
		ctx = context.WithoutCancel(ctx) // what was begun is brought to an end
		if err != nil {
			return errors.Join(fmt.Errorf("%w; nothing was added", err), d.Forget(ctx, a.ID))
		}
		got.Credential = proved.held
	}
	if got.login != nil && !hadSubscription(old, a.Provider) {
		if terms := credentialfile.Terms(a.Provider); terms != "" {
			c.say("%s", terms) // before it can be used
		}
	}
	next, err := d.change(ctx, func(old catalog.Catalog) (catalog.Catalog, error) { return old.AddAccount(a) })
	if errors.Is(err, store.ErrUnavailable) {
		// It may have been added all the same, and then needs its credential. If it was not,
		// nothing names what stays behind, sealed.
		return err
	}
	if err != nil {
		return errors.Join(err, d.Forget(ctx, a.ID))
	}
	c.say("Account %s is added to %s, as number %d of %d.", a.Name, a.Provider, len(next.Of(a.Provider)), len(next.Of(a.Provider)))
	c.sayOfKey(*next.Catalog, a, got, a.SecretHash, "holdfast account remove "+a.Name)
	if err := c.learn(ctx, d, a, proved); err != nil {
		return err
	}
	c.sayOfLogin(a, got, proved)
	return c.sayOfSharers(ctx, d, a.Name)
}

// hadSubscription reports whether the notice on terms was shown before.
func hadSubscription(c catalog.Catalog, p account.Provider) bool {
	for _, a := range c.Of(p) {
		if a.Kind == account.Subscription {
			return true
		}
	}
	return false
}

// sayOfLogin says what the owner of an imported login has to know.
func (c *cli) sayOfLogin(a account.Account, got obtained, proved proof) {
	if got.login == nil {
		return
	}
	if proved.warning != "" {
		c.say("Whether the login is good is not known yet: %s. Its first use will show.", proved.warning)
	}
	if !proved.reading.Empty() {
		var parts []string
		for _, w := range status.WindowsOf(proved.reading, c.Now()) {
			parts = append(parts, w.Name+" "+w.Text(c.Now()))
		}
		c.say("The login is good. Its usage: %s.", status.Plain(strings.Join(parts, ", ")))
	}
	c.say("%s", got.login.TwoRefreshers())
	ends := got.ExpiresAt.Format(time.RFC3339)
	switch {
	case !got.Refresh.Empty():
		c.say("holdfast renews this login by itself, as long as it is served or its poller runs.")
	case !got.ExpiresAt.IsZero():
		c.say("This login has no refresh token and cannot be renewed: it serves until %s. Then: holdfast account login %s --import FILE", ends, a.Name)
	}
}
