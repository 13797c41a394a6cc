package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/checkup"
	"holdfast/internal/core/credential"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
)

func (c *cli) accountLogin() *cobra.Command {
	var from source
	var with belongings
	var otherPrincipal bool
	cmd := &cobra.Command{
		Use:   "login NAME [--key-env VAR | --key-stdin | --import FILE] [--organization ID] [--project ID] [--workspace ID] [--base-url URL]",
		Short: "Give an account a new credential; it keeps its conversations, order and history",
		Long: "Give an account a new credential. It keeps its conversations, its order and its history, and is used again if\n" +
			"it was parked. A login is proved as `account add` does it; one that the provider refuses changes nothing.\n\n" +
			"--organization, --project, --workspace and --base-url alone leave it the credential that it has, for another use\n" +
			"or at another host. What is not given stays as it is; an empty word, such as --project \"\", takes away what there is.",
		Example: "  holdfast account login max --import ~/.claude/.credentials.json\n" +
			"  holdfast account login work --key-env ANTHROPIC_API_KEY\n" +
			"  holdfast account login lab --organization org-… --project proj_…\n" +
			"  holdfast account login lab --base-url https://eu.api.openai.com",
		Args: exactly("NAME"),
	}
	from.flags(cmd)
	with.add(cmd)
	cmd.Flags().BoolVar(&otherPrincipal, "other-principal", false, "the credential is somebody else's: forget what was read of the account")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := with.check(false); err != nil {
			return err
		}
		alone := from.given(cmd) == 0 && with.any()
		switch {
		case alone && (otherPrincipal || cmd.Flags().Changed("plan") || from.team || from.noCheck):
			return usageError("--other-principal, --plan, --team and --no-check go with a new credential: --key-env VARIABLE, --key-stdin or --import FILE")
		case !with.any() && from.given(cmd) == 0:
			return usageError("say where the new credential is (--key-env VARIABLE, --key-stdin or --import FILE), or what is to be another for the one that it has (--organization, --project, --workspace or --base-url)")
		case !alone:
			if err := from.check(cmd); err != nil {
				return err
			}
		}
		ctx, stop := unhurried(cmd.Context())
		defer stop()
		return c.with(ctx, func(d *data) error {
			a, state, err := d.account(ctx, args[0])
			if err != nil {
				return err
			}
			if err := with.fit(c, a.Provider, a.Kind); err != nil {
				return err
			}
			if alone {
				return c.rescope(ctx, d, a, state, &with)
			}
			got, err := c.obtain(&from)
			if err != nil {
				return err
			}
			return c.login(ctx, d, a, state, got, &with, otherPrincipal)
		})
	}
	return cmd
}

// otherOwner reports whether two credentials are certainly of different principals. Keys
// report none, and neither does every client's file.
func otherOwner(held, next credential.Credential) bool {
	return held.Principal != "" && next.Principal != "" && held.Principal != next.Principal
}

// otherSeat reports whether two plans cannot be the same person's at the same place: one is
// personal, and one an organization's. A plan that the owner named otherwise tells nothing.
func otherSeat(held, next string) bool {
	if strings.HasPrefix(held, "team") && strings.HasPrefix(next, "enterprise") || strings.HasPrefix(held, "enterprise") && strings.HasPrefix(next, "team") {
		return true
	}
	was, is := checkup.OwnerOf("", held), checkup.OwnerOf("", next)
	return was != checkup.Unknown && is != checkup.Unknown && was != is
}

// fits returns why what was obtained cannot be the credential of an account as it is.
func (o obtained) fits(a account.Account) error {
	if o.kind != a.Kind {
		words := map[account.Kind]string{account.Key: "an API key", account.Subscription: "a subscription login"}
		return fmt.Errorf("account %s is %s and this is %s: add it as an account of its own", a.Name, words[a.Kind], words[o.kind])
	}
	if o.login != nil && o.login.Provider != a.Provider {
		return fmt.Errorf("account %s belongs to %s and this login to %s: add it as an account of its own", a.Name, a.Provider, o.login.Provider)
	}
	return nil
}

func (c *cli) login(ctx context.Context, d *data, a account.Account, state store.StateRecord, got obtained, with *belongings, otherPrincipal bool) error {
	if err := got.fits(a); err != nil {
		return err
	}
	box, err := d.box(ctx)
	if err != nil {
		return err
	}
	v := vault.Vault{Store: d.Store, Box: box}
	held, revision, err := v.Load(ctx, a.ID)
	if err != nil && revision == 0 {
		return err // the store's; a credential that does not open is what a login mends
	}
	if err != nil { // and for whom it was is kept beside the seal
		scopes, err := d.scopes(ctx, []account.ID{a.ID})
		if err != nil {
			return err
		}
		held.Scope = scopes[a.ID]
	}
	if got.Scope = with.over(held.Scope); otherPrincipal {
		got.Scope = with.given // what is kept would be somebody else's
	}
	hash := got.secretHash(box)
	record := func(old catalog.Catalog) (catalog.Catalog, error) {
		next, err := with.host(old, a.Name)
		if err != nil {
			return next, err
		}
		return next.LogIn(a.Name, hash, got.plan)
	}
	all, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	changed, err := record(all)
	if err != nil {
		return err
	}
	at, err := changed.Named(a.Name) // as it is going to be: a login is proved at its host
	if err != nil {
		return err
	}
	got.BaseURL = &at.BaseURL
	if got.login != nil && a.SecretHash == hash && !held.Refresh.Empty() && !got.Refresh.Empty() {
		return givenBefore(a.Name, got, held)
	}
	if otherOwner(held, got.Credential) && !otherPrincipal {
		return somebodyElses(a.Name)
	}
	if got.login != nil && otherSeat(a.Plan, got.login.Plan) && !otherPrincipal {
		return fmt.Errorf("account %s has a %s plan and this login a %s one, so it is another seat: add it as an account of its own, or say --other-principal", a.Name, a.Plan, got.login.Plan)
	}
	var proved proof
	var renewal store.Renewal
	if got.login != nil && !got.unchecked {
		proved, renewal, err = c.proveApart(ctx, d, at, got)
		if err == nil && ctx.Err() != nil && !proved.renewed {
			err = errors.New("interrupted")
		}
		ctx = context.WithoutCancel(ctx) // what was begun is brought to an end
		if err != nil {
			return fmt.Errorf("%w; account %s keeps the credential that it has", err, a.Name)
		}
		got.Credential = proved.held
		// Some providers tell only now whose login it is.
		if (otherOwner(held, got.Credential) || otherOrganization(state.Organization, proved.reading)) && !otherPrincipal {
			err := somebodyElses(a.Name)
			if proved.renewed {
				err = fmt.Errorf("%w; its file is spent by this: log in with %s again before you import it", err, got.login.Client)
			}
			return err
		}
	}
	if with.has(baseURLFlag) {
		// First, and no credential is shown to a host that it was not given for: until both are
		// known, the account serves nothing.
		if _, err := d.change(ctx, func(old catalog.Catalog) (catalog.Catalog, error) { return with.host(old, a.Name) }); err != nil {
			return err
		}
	}
	got.Generation, err = c.replace(ctx, v, a, state, func(credential.Credential) credential.Credential { return got.Credential }, held, revision)
	if err != nil {
		if proved.renewed {
			err = fmt.Errorf("the new login could not be saved, and its file is spent: log in with %s again before you import it: %w", got.login.Client, err)
		}
		return err
	}
	if got.login != nil {
		if err := c.beginRenewal(ctx, d, a.ID, renewal, got.Generation); err != nil {
			return fmt.Errorf("the new credential is saved, but how its renewal stands is not; look at it with `holdfast account show %s`: %w", a.Name, err)
		}
	}
	if otherPrincipal {
		if err := d.ForgetState(ctx, a.ID); err != nil {
			return fmt.Errorf("the new credential is saved, but what was read of the account is still there; run this again: %w", err)
		}
		state = store.StateRecord{}
	}
	_, err = d.Fold(ctx, a.ID, state, func(s account.State) (account.State, bool) {
		s, _ = s.Believed(c.Now())
		s = s.LoggedIn(got.Generation).Reconsidered().LoginOf(got.Principal)
		if at.BaseURL != a.BaseURL || got.Scope != held.Scope {
			s = s.Elsewhere(c.Now())
		}
		return s, true
	})
	if err != nil {
		return fmt.Errorf("the new credential is saved, but the account's state is not; run this again: %w", err)
	}
	if _, err := d.change(ctx, record); err != nil {
		return fmt.Errorf("the new credential is saved, but not its plan, nor that it is held; run this again: %w", err)
	}
	c.say("Account %s has a new credential.", a.Name)
	c.sayOfKey(all, a, got, hash, "holdfast account login "+a.Name+" --key-env VARIABLE")
	if err := c.learn(ctx, d, a, proved); err != nil {
		return err
	}
	c.sayOfLogin(a, got, proved)
	with.sayOfHost(c, a)
	c.sayOfScope(a, at, held.Scope, got.Scope)
	return c.sayOfSharers(ctx, d, a.Name)
}

// givenBefore refuses the login that the account was given last. Its refresh token is the
// account's own, which a server may be renewing just now, or was spent for the one that the
// account has: sent once more, it could end both.
func givenBefore(name string, got obtained, held credential.Credential) error {
	if held.Refresh == got.Refresh {
		return fmt.Errorf("account %s has this very login already; `holdfast account clear %[1]s` has it used again if it is parked", name)
	}
	return fmt.Errorf("account %s was given this login before and has renewed it since, so what the file holds is spent; log in with %s again, then import its file", name, got.login.Client)
}

func somebodyElses(name string) error {
	return fmt.Errorf("this credential belongs to somebody else than account %s: add it as an account of its own, or say --other-principal", name)
}

// otherOrganization reports whether a reading is certainly of another organization.
func otherOrganization(known string, r account.Reading) bool {
	return known != "" && r.Organization != "" && known != r.Organization
}

// proveApart proves a login under an id of its own, so that the account keeps what it has
// until the login is known to be good. It also returns how far the login's renewal came.
func (c *cli) proveApart(ctx context.Context, d *data, a account.Account, got obtained) (_ proof, _ store.Renewal, err error) {
	id, err := c.newID()
	if err != nil {
		return proof{}, store.Renewal{}, err
	}
	apart := a
	apart.ID = account.ID(id)
	v, err := d.vault(ctx)
	if err != nil {
		return proof{}, store.Renewal{}, err
	}
	got.Generation = 1
	if _, err := v.Save(ctx, apart.ID, got.Credential, 0); err != nil {
		return proof{}, store.Renewal{}, err
	}
	defer func() { err = errors.Join(err, d.Forget(context.WithoutCancel(ctx), apart.ID)) }()
	p, err := c.prove(ctx, d, apart, got)
	if err != nil {
		return p, store.Renewal{}, err
	}
	renewals, err := d.Renewals(context.WithoutCancel(ctx), []account.ID{apart.ID})
	return p, renewals[apart.ID], err
}

// replace writes what becomes of an account's credential over the one it has, and returns
// its generation. A server may just be renewing the old one: that is replaced too.
func (c *cli) replace(
	ctx context.Context, v vault.Vault, a account.Account, state store.StateRecord,
	become func(held credential.Credential) credential.Credential, held credential.Credential, revision int64,
) (int64, error) {
	for tries := 0; ; tries++ {
		next := become(held)
		next.Generation = max(held.Generation, state.Generation) + 1
		_, err := v.Save(ctx, a.ID, next, revision)
		if err == nil || !errors.Is(err, store.ErrConflict) {
			return next.Generation, err
		}
		if tries == 3 {
			return 0, errors.New("the account's credential was changed by another process just now; look whether that is what you want, and try again")
		}
		var lerr error
		if held, revision, lerr = v.Load(ctx, a.ID); lerr != nil && revision == 0 {
			return 0, lerr
		}
	}
}

// beginRenewal replaces how the renewal of the old login stood by that of the new one; what
// was refused stays refused.
func (c *cli) beginRenewal(ctx context.Context, d *data, id account.ID, next store.Renewal, generation int64) error {
	renewals, err := d.Renewals(ctx, []account.ID{id})
	if err != nil {
		return err
	}
	stored := renewals[id]
	for range 5 {
		fresh := next
		fresh.Refused, fresh.Revision = stored.Refused, stored.Revision
		if open := stored.Spending; open != nil && open.Generation >= generation {
			return nil // a server renews the new login already, and does all of this
		}
		if next.Spending != nil { // an answer was lost: the account's renewal goes on from there
			spending := *next.Spending
			spending.Generation = generation
			fresh.Spending = &spending
		}
		now, ours, err := d.PutRenewal(ctx, id, fresh)
		if err != nil || ours {
			return err
		}
		stored = now
	}
	return store.ErrConflict
}
