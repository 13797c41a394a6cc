package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/catalog"
	"holdfast/internal/status"
	"holdfast/internal/store"
)

func (c *cli) usageCommand() *cobra.Command {
	var all []string
	for _, by := range status.Bys {
		all = append(all, string(by))
	}
	cmd := &cobra.Command{
		Use: "usage", Short: "Show what accounts were used for, and what it would have cost",
		Long: "Show requests and tokens since a time, summed by account, client key, agent, model, day or hour. Tokens of a\n" +
			"prompt are counted once: as input, as read from a cache, or as written to one. REFUSED are requests that were\n" +
			"answered with an error, MOVED those with which a conversation moved. Hours are kept for a week, days for 90.\n" +
			"What a running server counted in the last minute may be missing.",
		Args: exactly(""),
	}
	by := cmd.Flags().String("by", string(status.ByAccount), "what to sum by: "+strings.Join(all, ", "))
	since := cmd.Flags().String("since", "7d", "how far back, such as 12h or 30d; 90d at most")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains(status.Bys, status.By(*by)) {
			return usageError(fmt.Sprintf("--by takes one of %s, not %q", strings.Join(all, ", "), *by))
		}
		back, ok := catalog.Duration(*since)
		if !ok || back > store.UsageDays {
			return usageError(fmt.Sprintf("--since takes a time of 90 days at most, such as 12h or 30d, not %q", *since))
		}
		return c.with(cmd.Context(), func(d *data) error {
			u, err := c.usage(cmd.Context(), d, status.By(*by), back)
			if err != nil {
				return err
			}
			if *asJSON {
				return writeJSON(c.Stdout, u)
			}
			return c.printAsTyped(u.WriteText)
		})
	}
	return cmd
}

func (c *cli) usage(ctx context.Context, d *data, by status.By, back time.Duration) (status.Usage, error) {
	now := c.Now()
	conf, err := d.catalog(ctx)
	if err != nil {
		return status.Usage{}, err
	}
	spans, err := d.Usage(ctx, now.Add(-back), now)
	if err != nil {
		return status.Usage{}, err
	}
	return status.UsageOf(spans, by, conf.Settings().Prices, now.Add(-back), now), nil
}
