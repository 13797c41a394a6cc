package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/status"
)

// How often a watched status is printed again. Each time it reads all that is stored,
// which costs money where that is a table.
const (
	watchEvery      = 2 * time.Second
	watchTableEvery = 10 * time.Second
)

func (c *cli) statusCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "status", Short: "Show how accounts, providers and pins stand", Args: exactly("")}
	asJSON := jsonFlag(cmd)
	watch := cmd.Flags().Bool("watch", false, "show it again every two seconds (of a table: ten), until interrupted")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.with(cmd.Context(), func(d *data) error {
			if !*watch {
				return c.writeStatus(cmd.Context(), d, *asJSON)
			}
			return c.watch(cmd.Context(), d, *asJSON)
		})
	}
	return cmd
}

// clearScreen moves a terminal's cursor to the top left and clears what is below.
const clearScreen = "\x1b[H\x1b[2J"

func (c *cli) watch(ctx context.Context, d *data, asJSON bool) error {
	every := watchEvery
	if c.table != "" {
		every = watchTableEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if !asJSON {
			fmt.Fprint(c.Stdout, clearScreen)
		}
		if err := c.writeStatus(ctx, d, asJSON); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *cli) writeStatus(ctx context.Context, d *data, asJSON bool) error {
	report, err := c.report(ctx, d)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(c.Stdout, report)
	}
	return report.WriteText(c.Stdout)
}

// report reads the store and makes the status of it. What is in flight is known to the
// server's process alone.
func (c *cli) report(ctx context.Context, d *data) (status.Report, error) {
	snap, err := d.Snapshot(ctx, true)
	if err != nil {
		return status.Report{}, err
	}
	return status.Of(status.Input{Now: c.Now(), Catalog: *snap.Catalog.Catalog, States: snap.States, Credentials: snap.Credentials, Pins: snap.Pins}), nil
}
