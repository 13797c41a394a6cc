package command

import (
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
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
	get := &cobra.Command{Use: "get KEY", Short: "Print the value in force of one setting", Args: exactly("KEY")}
	get.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := (catalog.Catalog{}).Reset(args[0]); err != nil {
			return err // no such setting
		}
		return c.with(cmd.Context(), func(d *data) error {
			all, err := d.catalog(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.Stdout, valueOf(all, args[0]))
			return err
		})
	}
	cmd.AddCommand(list, get, &cobra.Command{
		Use: "set KEY VALUE", Short: "Change a setting; running servers follow within two seconds", Args: exactly("KEY VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := (catalog.Catalog{}).Set(args[0], args[1]); err != nil {
				return err // before a data directory is made
			}
			c.makes = true
			var next catalog.Catalog
			err := c.change(cmd.Context(), func(old catalog.Catalog) (_ catalog.Catalog, err error) {
				next, err = old.Set(args[0], args[1])
				return next, err
			})
			if err == nil {
				c.say("%s is %s.", args[0], valueOf(next, args[0]))
			}
			return err
		},
	}, &cobra.Command{
		Use: "reset KEY", Short: "Put a setting back to its default", Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := (catalog.Catalog{}).Reset(args[0]); err != nil {
				return err
			}
			c.makes = true
			var next catalog.Catalog
			err := c.change(cmd.Context(), func(old catalog.Catalog) (_ catalog.Catalog, err error) {
				next, err = old.Reset(args[0])
				return next, err
			})
			if err == nil {
				c.say("%s is at its default, %s.", args[0], valueOf(next, args[0]))
			}
			return err
		},
	})
	return cmd
}

// valueOf is the value in force of a setting that exists.
func valueOf(c catalog.Catalog, name string) string {
	for _, s := range catalog.Registry() {
		if s.Name == name {
			return orQuotes(s.In(c.Settings()))
		}
	}
	return ""
}

// orQuotes shows an empty value as it is typed.
func orQuotes(value string) string {
	if value == "" {
		return `""`
	}
	return value
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
			rows = append(rows, []string{s.Name, orQuotes(s.Value), s.Default, s.About, s.Range})
		}
		return writeTable(c.Stdout, "NAME VALUE DEFAULT MEANING ALLOWED", rows)
	})
}

func (c *cli) policyCommand() *cobra.Command {
	var threshold string
	cmd := &cobra.Command{
		Use: "policy PROVIDER [score | order | soonest-reset]", Short: "Show or choose how a provider's accounts are picked for new conversations",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return exactly("PROVIDER")(cmd, args)
			}
			return exactly("PROVIDER score|order|soonest-reset")(cmd, args)
		},
	}
	asJSON := jsonFlag(cmd)
	cmd.Flags().StringVar(&threshold, "threshold", "", "with order: pass an account over from this utilization on (default 0.80)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := c.providerOf(args[0])
		if err != nil {
			return err
		}
		if len(args) == 1 {
			if cmd.Flags().Changed("threshold") {
				return usageError(c.asTyped("--threshold goes with a rule: holdfast policy " + args[0] + " order --threshold " + strconv.FormatFloat(catalog.DefaultThreshold, 'g', -1, 64)))
			}
			return c.showPolicy(cmd, p, *asJSON)
		}
		at := 0.0 // the default
		if cmd.Flags().Changed("threshold") {
			var ok bool
			if at, ok = catalog.Share(threshold); !ok || at == 0 {
				at = math.NaN() // refused with the range
			}
		}
		if _, err := (catalog.Catalog{}).SetPolicy(p, catalog.PolicyName(args[1]), at); err != nil {
			return err
		}
		c.makes = true
		var next catalog.Policy
		err = c.changeServing(cmd.Context(), func(old catalog.Catalog) (catalog.Catalog, error) {
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

// listedPolicy is a provider's rule in a listing.
type listedPolicy struct {
	Provider account.Provider   `json:"provider"`
	Policy   catalog.PolicyName `json:"policy"`
	// Threshold is the utilization from which on policy order passes an account over; null
	// under the others.
	Threshold *float64 `json:"threshold"`
}

func (c *cli) showPolicy(cmd *cobra.Command, p account.Provider, asJSON bool) error {
	return c.with(cmd.Context(), func(d *data) error {
		all, err := d.catalog(cmd.Context())
		if err != nil {
			return err
		}
		policy := all.PolicyOf(p)
		listed := listedPolicy{Provider: p, Policy: policy.Name}
		if policy.Name == catalog.Order {
			listed.Threshold = &policy.Threshold
		}
		if asJSON {
			return writeJSON(c.Stdout, listed)
		}
		text := fmt.Sprintf("%s: policy %s", p, policy.Name)
		if listed.Threshold != nil {
			text += fmt.Sprintf(", threshold %g", policy.Threshold)
		}
		_, err = fmt.Fprintln(c.Stdout, text)
		return err
	})
}
