package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
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

// How a terminal is written over without flickering: from its top left, every line to its
// end, and what is below.
const (
	topLeft   = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

func (c *cli) watch(ctx context.Context, d *data, asJSON bool) error {
	every := watchEvery
	if c.table != "" {
		every = watchTableEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		report, err := c.report(ctx, d)
		if err != nil {
			return err
		}
		var page bytes.Buffer
		if asJSON { // one line each, for programs
			if err := json.NewEncoder(&page).Encode(report); err != nil {
				return err
			}
		} else {
			fmt.Fprintf(&page, "%s\n\n", report.At.Format("2006-01-02 15:04:05Z"))
			if err := report.WriteText(&page); err != nil {
				return err
			}
			text := strings.ReplaceAll(page.String(), "\n", clearLine+"\n")
			page = *bytes.NewBufferString(topLeft + text + clearRest)
		}
		if _, err := page.WriteTo(c.Stdout); err != nil {
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
	return c.printAsTyped(report.WriteText)
}

// report reads the store and makes the status of it. What is in flight is known to the
// server's process alone.
func (c *cli) report(ctx context.Context, d *data) (status.Report, error) {
	snap, err := d.Snapshot(ctx, true)
	if err != nil {
		return status.Report{}, err
	}
	d.markUnopened(ctx, snap)
	pins, err := d.PinTally(ctx, c.Now())
	if err != nil {
		return status.Report{}, err
	}
	return status.Of(status.Input{Now: c.Now(), Catalog: *snap.Catalog.Catalog, States: snap.States, Credentials: snap.Credentials, Pins: pins, Serving: snap.Serving, Poll: snap.Poll}), nil
}
