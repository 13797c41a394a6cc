package command

import (
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast/internal/catalog"
)

func (c *cli) settingsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "settings", Short: "List and change settings", Args: cobra.ArbitraryArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return group(cmd, args)
		}
		return c.listSettings(cmd, *asJSON)
	}
	list := &cobra.Command{Use: "list", Short: "List the settings", Args: exactly("")}
	listJSON := jsonFlag(list)
	list.RunE = func(cmd *cobra.Command, _ []string) error { return c.listSettings(cmd, *listJSON) }
	cmd.AddCommand(list, &cobra.Command{
		Use: "set KEY VALUE", Short: "Change a setting; running servers follow within two seconds", Args: exactly("KEY VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := (catalog.Catalog{}).Set(args[0], args[1]); err != nil {
				return err // before a data directory is made
			}
			err := c.change(cmd.Context(), func(old catalog.Catalog) (catalog.Catalog, error) { return old.Set(args[0], args[1]) })
			if err == nil {
				c.say("%s is set.", args[0])
			}
			return err
		},
	}, &cobra.Command{
		Use: "reset KEY", Short: "Put a setting back to its default", Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := (catalog.Catalog{}).Reset(args[0]); err != nil {
				return err
			}
			err := c.change(cmd.Context(), func(old catalog.Catalog) (catalog.Catalog, error) { return old.Reset(args[0]) })
			if err == nil {
				c.say("%s is at its default.", args[0])
			}
			return err
		},
	})
	return cmd
}

// listedSetting is a setting in a listing; values read as they are typed.
type listedSetting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default string `json:"default"`
	// Set: the owner chose the value.
	Set   bool   `json:"set"`
	Range string `json:"range"`
	About string `json:"about"`
}

func (c *cli) listSettings(cmd *cobra.Command, asJSON bool) error {
	return c.with(cmd.Context(), func(d *data) error {
		all, err := d.catalog(cmd.Context())
		if err != nil {
			return err
		}
		inForce := all.Settings()
		var list []listedSetting
		for _, s := range catalog.Registry() {
			_, set := all.Overrides[s.Name]
			list = append(list, listedSetting{s.Name, s.In(inForce), s.Default, set, s.Range, s.About})
		}
		if asJSON {
			return writeJSON(c.Stdout, list)
		}
		var rows [][]string
		for _, s := range list {
			value := s.Value
			if !s.Set {
				value = s.Default // as the documentation writes it: 60s, not 1m
			} else if value == "" {
				value = `""`
			}
			rows = append(rows, []string{s.Name, value, s.Default, s.About})
		}
		return writeTable(c.Stdout, "NAME VALUE DEFAULT MEANING", rows)
	})
}

func (c *cli) policyCommand() *cobra.Command {
	var threshold string
	cmd := &cobra.Command{
		Use: "policy PROVIDER (score | order | soonest-reset)", Short: "Choose how a provider's accounts are picked for new conversations",
		Args: exactly("PROVIDER score|order|soonest-reset"),
	}
	cmd.Flags().StringVar(&threshold, "threshold", "", "with order: pass an account over from this utilization on (default 0.80)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := c.providerOf(args[0])
		if err != nil {
			return err
		}
		at := 0.0 // the default
		if cmd.Flags().Changed("threshold") {
			if at, err = strconv.ParseFloat(threshold, 64); err != nil || at == 0 {
				at = math.NaN() // refused with the range
			}
		}
		if _, err := (catalog.Catalog{}).SetPolicy(p, catalog.PolicyName(args[1]), at); err != nil {
			return err
		}
		var next catalog.Policy
		err = c.change(cmd.Context(), func(old catalog.Catalog) (catalog.Catalog, error) {
			changed, err := old.SetPolicy(p, catalog.PolicyName(args[1]), at)
			next = changed.PolicyOf(p)
			return changed, err
		})
		if err != nil {
			return err
		}
		if next.Name == catalog.Order {
			c.say("New conversations at %s go by policy order, passing over accounts from %g on.", p, next.Threshold)
		} else {
			c.say("New conversations at %s go by policy %s.", p, next.Name)
		}
		return nil
	}
	return cmd
}
