package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/store"
)

func (c *cli) accountDrain() *cobra.Command {
	return &cobra.Command{
		Use: "drain NAME", Short: "Give an account no new conversations; it keeps those it has", Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.with(ctx, func(d *data) error {
				var next store.CatalogRecord
				err := c.recordServing(ctx, d, func() (err error) {
					next, err = d.change(ctx, func(old catalog.Catalog) (catalog.Catalog, error) { return old.Drain(args[0]) })
					return err
				})
				if err != nil {
					return err
				}
				c.say("Account %s gets no new conversations and keeps those it has.", args[0])
				return c.sayOfLast(ctx, d, *next.Catalog, args[0])
			})
		},
	}
}

// sayOfLast says what becomes of new conversations where no account of a provider takes any
// after one was drained. One in a cooldown takes them later.
func (c *cli) sayOfLast(ctx context.Context, d *data, all catalog.Catalog, drained string) error {
	a, err := all.Named(drained)
	if err != nil {
		return err
	}
	of := all.Of(a.Provider)
	var ids []account.ID
	for _, other := range of {
		ids = append(ids, other.ID)
	}
	view, err := d.Read(ctx, store.Query{States: ids})
	if err != nil {
		return err
	}
	states := store.Together(c.Now(), of, view.States)
	takes := func(a account.Account) bool { return !a.Draining && states[a.ID].Parked == nil }
	if !slices.ContainsFunc(of, takes) {
		c.say("No account of %s is left that takes them, so new conversations will be refused until there is one: holdfast account resume %s", a.Provider, drained)
	}
	return nil
}

func (c *cli) accountResume() *cobra.Command {
	return &cobra.Command{
		Use: "resume NAME", Short: "End drain", Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := c.changeServing(cmd.Context(), func(old catalog.Catalog) (catalog.Catalog, error) { return old.Resume(args[0]) })
			if err == nil {
				c.say("Account %s gets new conversations again.", args[0])
			}
			return err
		},
	}
}
