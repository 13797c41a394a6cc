package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/status"
)

func (c *cli) switchesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "switches", Short: "List which accounts served under policy order, newest change first",
		Long: "List the changes of the account that new conversations go to under policy order, the newest first: when, from\n" +
			"which to which, how full both were, and why. A switch is normal; this is its only trace beside the status.\n\n" +
			"Mode manual is the owner's change of the list (reason order); reorder is the policy's own: quota (the old one was\n" +
			"at the threshold), cooldown, parked, or returned (an earlier one has room again).",
		Args: exactly(""),
	}
	var only string
	cmd.Flags().StringVar(&only, "provider", "", "of this provider only")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		providers := account.Providers
		if only != "" {
			p, err := c.providerOf(only)
			if err != nil {
				return err
			}
			providers = []account.Provider{p}
		}
		return c.with(cmd.Context(), func(d *data) error {
			all := []status.Switch{}
			for _, p := range providers {
				history, err := d.Switches(cmd.Context(), p)
				if err != nil {
					return err
				}
				for _, s := range history {
					all = append(all, status.SwitchOf(p, s))
				}
			}
			status.NewestFirst(all)
			if *asJSON {
				return writeJSON(c.Stdout, all)
			}
			return c.writeSwitches(all)
		})
	}
	return cmd
}

func (c *cli) writeSwitches(all []status.Switch) error {
	if len(all) == 0 {
		c.say("There was no switch yet. Accounts take turns under policy order; `holdfast status` shows which policy each provider has, and who serves.")
		return nil
	}
	var rows [][]string
	for _, s := range all {
		rows = append(rows, []string{
			s.At.Format("2006-01-02 15:04:05Z"), string(s.Provider), s.From.Text(), s.To.Text(), string(s.Mode), string(s.Reason),
		})
	}
	return writeTable(c.Stdout, "TIME PROVIDER FROM TO MODE REASON", rows)
}

// changeServing makes one change of the catalog that new conversations may go elsewhere
// for, and writes the switch down if it was one.
func (c *cli) changeServing(ctx context.Context, edit func(catalog.Catalog) (catalog.Catalog, error)) error {
	return c.with(ctx, func(d *data) error {
		return c.recordServing(ctx, d, func() error {
			_, err := d.change(ctx, edit)
			return err
		})
	})
}

// recordServing makes a change, and writes down who served before it and who serves after
// it. Who served before is only a matter where nobody looked yet. Once the change is made
// no trouble with the history makes it fail: a server, or the next look at usage, writes
// the same.
func (c *cli) recordServing(ctx context.Context, d *data, change func() error) error {
	before, looking := d.LookServing(ctx, c.Now)
	if err := change(); err != nil {
		return err
	}
	writing := d.RecordServing(ctx, before)
	after, err := d.LookServing(ctx, c.Now)
	if err := errors.Join(looking, writing, err, d.RecordServing(ctx, after)); err != nil {
		c.say("The change is made. Whether another account serves now is not in the history yet: %s", oneLine(err.Error()))
	}
	return nil
}
