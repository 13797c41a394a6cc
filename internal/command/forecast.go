package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/status"
	"holdfast/internal/store"
)

func (c *cli) forecastCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "forecast", Short: "Say when accounts run dry, and whether the week fits",
		Long: "Say for each window how fast it fills, when it is full and when it resets, and for each provider whether the\n" +
			"week's demand fits into what its accounts allow. Rates come from what was read over the last two weeks: the last\n" +
			"day counts most for what comes soon, the last week for what comes later. A point is 1 % of one account's week.",
		Args: exactly(""),
	}
	asJSON := jsonFlag(cmd)
	then := cmd.Flags().String("at", "", "also say how full each window is then: a time such as 2027-03-04T18:00:00Z, or from now, such as 12h or 3d")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		now := c.Now()
		at, err := laterTime(*then, now)
		if err != nil {
			return err
		}
		return c.with(cmd.Context(), func(d *data) error {
			f, err := c.forecast(cmd.Context(), d, now, at)
			if err != nil {
				return err
			}
			if *asJSON {
				return writeJSON(c.Stdout, f)
			}
			return c.printAsTyped(f.WriteText)
		})
	}
	return cmd
}

func (c *cli) forecast(ctx context.Context, d *data, now, at time.Time) (status.Forecast, error) {
	snap, err := d.Snapshot(ctx, true)
	if err != nil {
		return status.Forecast{}, err
	}
	in := status.ForecastInput{
		Now: now, For: at, Catalog: *snap.Catalog.Catalog, States: d.whose(ctx, snap), Points: map[account.ID][]store.Point{},
	}
	for _, a := range snap.Catalog.Accounts {
		if in.Points[a.ID], err = d.History(ctx, a.ID, now.Add(-store.HistoryFor), now); err != nil {
			return status.Forecast{}, err
		}
	}
	return status.ForecastOf(in), nil
}

// laterTime reads a time to come: an instant, or a duration from now; now for none.
func laterTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		d, ok := catalog.Duration(text)
		if !ok {
			return time.Time{}, usageError(fmt.Sprintf("--at takes a time such as 2027-03-04T18:00:00Z, or one from now such as 12h or 3d, not %q", text))
		}
		at = now.Add(d)
	}
	if at.Before(now) {
		return time.Time{}, usageError("--at takes a time to come; what was is in `holdfast status`")
	}
	return at, nil
}
