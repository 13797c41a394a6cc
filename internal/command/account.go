package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/pick"
	"holdfast/internal/status"
	"holdfast/internal/store"
)

func (c *cli) accountCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "account", Short: "Add, show and change accounts", Args: cobra.ArbitraryArgs, RunE: group}
	cmd.AddCommand(
		c.accountAdd(), c.accountLogin(), c.accountList(), c.accountShow(), c.accountRemove(),
		c.accountDrain(), c.accountResume(),
		c.accountClear(), c.accountOrder(), c.accountOverage(),
		c.accountCheck(),
	)
	return cmd
}

// listed is an account in a listing. Never a secret, and not the credential's id.
type listed struct {
	Name     string           `json:"name"`
	Provider account.Provider `json:"provider"`
	Kind     account.Kind     `json:"kind"`
	Plan     string           `json:"plan,omitempty"`
	// Order is the place in the provider's order, from 1.
	Order    int  `json:"order"`
	Draining bool `json:"draining"`
	// Overage is allow or deny; left out for a key, which is paid by use.
	Overage string    `json:"overage,omitempty"`
	BaseURL string    `json:"base_url,omitempty"`
	AddedAt time.Time `json:"added_at"`
	// Scope is for whom the credential is used, where the owner said so.
	credential.Scope
}

// listing lists the accounts; scopes are those of their credentials.
func listing(c catalog.Catalog, scopes map[account.ID]credential.Scope) []listed {
	list := []listed{}
	for _, p := range account.Providers {
		for i, a := range c.Of(p) {
			overage := "deny"
			switch {
			case a.Kind == account.Key:
				overage = ""
			case a.Overage:
				overage = "allow"
			}
			list = append(list, listed{a.Name, a.Provider, a.Kind, a.Plan, i + 1, a.Draining, overage, a.BaseURL, a.AddedAt, scopes[a.ID]})
		}
	}
	return list
}

func (c *cli) accountList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the accounts in their order", Args: exactly("")}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.with(cmd.Context(), func(d *data) error {
			all, err := d.catalog(cmd.Context())
			if err != nil {
				return err
			}
			var ids []account.ID
			for _, a := range all.Accounts {
				ids = append(ids, a.ID)
			}
			scopes, err := d.scopes(cmd.Context(), ids)
			if err != nil {
				return err
			}
			list := listing(all, scopes)
			if *asJSON {
				return writeJSON(c.Stdout, list)
			}
			if len(list) == 0 {
				c.say(status.NoAccounts)
				return nil
			}
			var rows [][]string
			for _, a := range list {
				rows = append(rows, []string{
					a.Name, string(a.Provider), string(a.Kind), a.Plan, fmt.Sprint(a.Order), yes(a.Draining), a.Overage, scopeText(a.Scope), a.BaseURL,
					a.AddedAt.Format(time.DateOnly),
				})
			}
			return writeTable(c.Stdout, "NAME PROVIDER KIND PLAN ORDER DRAINING OVERAGE SENT-FOR BASE-URL ADDED", rows)
		})
	}
	return cmd
}

// shown is everything about one account.
type shown struct {
	listed
	// Status is the account's part of the status report.
	Status status.Account `json:"status"`
	// Credential describes the credential without its secret.
	Credential credentialFacts `json:"credential"`
}

func (c *cli) accountShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show NAME", Short: "Show one account: its settings, windows and blocks", Args: exactly("NAME")}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.with(cmd.Context(), func(d *data) error {
			s, err := c.show(cmd.Context(), d, args[0])
			if err != nil {
				return err
			}
			if *asJSON {
				return writeJSON(c.Stdout, s)
			}
			return c.writeAccount(s)
		})
	}
	return cmd
}

func (c *cli) show(ctx context.Context, d *data, name string) (shown, error) {
	snap, err := d.Snapshot(ctx, true)
	if err != nil {
		return shown{}, err
	}
	all := *snap.Catalog.Catalog
	a, err := all.Named(name)
	if err != nil {
		return shown{}, err
	}
	d.markUnopened(ctx, snap)
	pins, err := d.PinTally(ctx, c.Now())
	if err != nil {
		return shown{}, err
	}
	report := status.Of(status.Input{Now: c.Now(), Catalog: all, States: snap.States, Credentials: snap.Credentials, Pins: pins, Serving: snap.Serving})
	var s shown
	for _, l := range listing(all, scopesOfRecords(snap.Credentials)) {
		if l.Name == name {
			s.listed = l
		}
	}
	for _, r := range report.Accounts {
		if r.Name == name {
			s.Status = r
		}
	}
	s.Credential, err = facts(ctx, d, a, snap.States[a.ID].State)
	return s, err
}

func (c *cli) writeAccount(s shown) error {
	now := c.Now()
	rows := [][]string{
		{"name", s.Name},
		{"provider", string(s.Provider)},
		{"kind", string(s.Kind)},
		{"plan", s.Plan},
		{"order", fmt.Sprint(s.Order)},
		{"state", s.Status.Standing(now)},
		{"draining", yes(s.Draining)},
		{"overage", s.Overage},
		{"base URL", s.BaseURL},
		{"added", s.AddedAt.UTC().Format(time.RFC3339)},
		{"credential", s.Credential.text(now, s.Name)},
	}
	for _, part := range partsOf(s.Scope) {
		if part.id != "" {
			rows = append(rows, []string{"sent " + part.flag, part.id})
		}
	}
	rows = append(rows, s.Credential.rows(now)...)
	rows = append(rows, [][]string{
		{"live pins", fmt.Sprint(s.Status.LivePins)},
	}...)
	for _, w := range s.Status.Windows {
		rows = append(rows, []string{"window " + w.Name, w.Text(now)})
	}
	if remedy := s.Status.Remedy(); remedy != "" {
		rows = append(rows, []string{"to use it again", remedy})
	}
	for _, remark := range s.Status.Remarks(now) {
		rows = append(rows, []string{"now", remark})
	}
	for i := range rows {
		if rows[i][1] == "" {
			rows[i][1] = "-"
		}
		fmt.Fprintf(c.Stdout, "%-20s %s\n", rows[i][0], c.asTyped(rows[i][1]))
	}
	return nil
}

func (c *cli) accountRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove an account, its credential and what was learnt of it",
		Long: "Remove an account, its credential and what was learnt of it. Its conversations move to other accounts with\n" +
			"their next request, except those that only it can continue (all of Codex, and any that carry encrypted\n" +
			"reasoning or name what is stored there): these end. `account drain` lets them go on. A client key that may use\n" +
			"this account only stands in the way and is to be revoked first.",
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.with(ctx, func(d *data) error {
				var gone account.Account
				var narrowed []string
				remove := func(old catalog.Catalog) (catalog.Catalog, error) {
					next, err := old.RemoveAccount(args[0])
					if err != nil {
						return next, err
					}
					gone, _ = old.Account(args[0])
					narrowed = nil
					for _, key := range old.Keys {
						if slices.Contains(key.Accounts, gone.ID) {
							narrowed = append(narrowed, key.Name)
						}
					}
					return next, nil
				}
				err := c.recordServing(ctx, d, func() error {
					_, err := d.change(ctx, remove)
					return err
				})
				if err != nil {
					return err
				}
				for _, key := range narrowed {
					c.say("Client key %s may no longer use account %s, only the others it was given.", key, args[0])
				}
				if err := forget(ctx, d, gone.ID); err != nil {
					return fmt.Errorf("account %s is removed and not used any more, but its sealed credential is still in the store, where nothing uses it; to be sure, revoke it at its provider: %w", args[0], err)
				}
				c.say("Account %s is removed, with its credential and what was learnt of it.", args[0])
				c.removeAlarm(ctx, d, args[0])
				return nil
			})
		},
	}
}

// removeAlarmWithin bounds what a removal waits for beside the table.
const removeAlarmWithin = 10 * time.Second

// removeAlarm removes an account's alarm now, since a stack that is deleted next has no
// poller any more to do it. That it cannot is no failure of the removal, but is said.
func (c *cli) removeAlarm(ctx context.Context, d *data, name string) {
	if d.removeAlarm == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeAlarmWithin)
	defer cancel()
	if err := d.removeAlarm(ctx, name); err != nil {
		c.say("Its alarm, if it had one, is still there: %v. The poller removes it with its next round; wait for that before you delete the stack.", err)
	}
}

// forget tries hard: once an account has left the catalog, nothing names what it left.
func forget(ctx context.Context, d *data, id account.ID) (err error) {
	for range 3 {
		if err = d.Forget(ctx, id); !errors.Is(err, store.ErrUnavailable) {
			break
		}
	}
	return err
}

func (c *cli) accountClear() *cobra.Command {
	return &cobra.Command{
		Use: "clear NAME", Short: "Use an account again: end its cooldowns, blocks and parking",
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.with(ctx, func(d *data) error {
				a, base, err := d.account(ctx, args[0])
				if err != nil {
					return err
				}
				now := c.Now()
				var next store.StateRecord
				err = c.recordServing(ctx, d, func() (err error) {
					next, err = d.Fold(ctx, a.ID, base, func(s account.State) (account.State, bool) {
						s, _ = s.Believed(now)
						return s.Clear(now), true
					})
					return err
				})
				if err != nil {
					return err
				}
				c.say("Account %s is used again; whatever the provider refused before now no longer counts.", args[0])
				if forgotten := unread(base.State, next.State); len(forgotten) > 0 {
					c.say("What was read of its full windows is forgotten, and counts as unknown until it is read again: %s.", strings.Join(forgotten, ", "))
				}
				all, err := d.catalog(ctx)
				if err != nil {
					return err
				}
				if name, full, known := pick.Fullest(now, pick.Request{}, next.State); known && full >= all.Settings().ExcludeLine {
					c.say("Its last reading still says %s %.0f%%, so new conversations go to it only where no other account has room.", name, 100*full)
				}
				return nil
			})
		},
	}
}

// unread names the windows of before that after knows nothing of, in order.
func unread(before, after account.State) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(before.Windows)), func(name string) bool {
		_, known := after.Windows[name]
		return known
	})
}

func (c *cli) accountOrder() *cobra.Command {
	return &cobra.Command{
		Use: "order PROVIDER NAME…", Short: "Put accounts first, in this order; the others follow as they are",
		Long: "Put accounts first, in this order; the others follow as they are. Without names, print the order.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return exactly("PROVIDER NAME…")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			p, err := c.providerOf(args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return c.with(ctx, func(d *data) error {
					all, err := d.catalog(ctx)
					if err != nil {
						return err
					}
					for _, a := range all.Of(p) {
						fmt.Fprintln(c.Stdout, a.Name)
					}
					return nil
				})
			}
			return c.with(ctx, func(d *data) error {
				var next store.CatalogRecord
				err := c.recordServing(ctx, d, func() (err error) {
					next, err = d.change(ctx, func(old catalog.Catalog) (catalog.Catalog, error) { return old.Reorder(p, args[1:]) })
					return err
				})
				if err != nil {
					return err
				}
				text := ""
				for i, a := range next.Of(p) {
					if i > 0 {
						text += ", "
					}
					text += a.Name
				}
				c.say("The order of %s is now: %s.", p, text)
				if name := next.PolicyOf(p).Name; name != catalog.Order {
					c.say("It counts under policy order; %s has policy %s. Change that with: holdfast policy %s order", p, name, p)
				}
				return nil
			})
		},
	}
}

func (c *cli) accountOverage() *cobra.Command {
	return &cobra.Command{
		Use: "overage NAME (allow | deny)", Short: "Say whether paid extra usage may be spent on an account (default deny)",
		Args: exactly("NAME allow|deny"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "allow" && args[1] != "deny" {
				return usageError("say allow or deny: may paid extra usage be spent on this account?")
			}
			allow := args[1] == "allow"
			err := c.changeServing(cmd.Context(), func(old catalog.Catalog) (catalog.Catalog, error) {
				if a, there := old.Account(args[0]); there && a.Kind == account.Key {
					return old, fmt.Errorf("account %s is an API key, which is paid by use; there is no plan to go beyond, and nothing to allow or deny", a.Name)
				}
				return old.SetOverage(args[0], allow)
			})
			if err != nil {
				return err
			}
			if allow {
				c.say("Account %s may spend paid extra usage once its plan is used up. A cooldown that was set only to prevent that no longer holds.", args[0])
			} else {
				c.say("Account %s spends no paid extra usage.", args[0])
			}
			return nil
		},
	}
}
