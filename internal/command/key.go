package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
)

func (c *cli) keyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "Create, list and revoke client keys", Args: cobra.ArbitraryArgs, RunE: group}
	cmd.AddCommand(c.keyCreate(), c.keyList(), c.keyRevoke())
	return cmd
}

func (c *cli) keyCreate() *cobra.Command {
	var background, admin bool
	var accounts string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a client key and print it, once",
		Long: "Create a client key and print it, once: only a hash of it is kept. The key alone goes to standard output.",
		Args: exactly("NAME"),
	}
	cmd.Flags().BoolVar(&background, "background", false, "requests with this key yield to interactive ones")
	cmd.Flags().BoolVar(&admin, "admin", false, "this key may read the status")
	cmd.Flags().StringVar(&accounts, "accounts", "", "the accounts this key may use, between commas (default: all)")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		key := catalog.ClientKey{Name: args[0], Background: background, Admin: admin, CreatedAt: c.Now().UTC().Truncate(time.Second)}
		var allowed []string
		if cmd.Flags().Changed("accounts") {
			allowed = strings.Split(accounts, ",")
		}
		if err := catalog.CheckName(args[0]); err != nil {
			return err
		}
		secret, err := clientkey.New(c.Random)
		if err != nil {
			return err
		}
		if key.ID, err = c.newID(); err != nil {
			return err
		}
		c.makes = true
		return c.with(cmd.Context(), func(d *data) error {
			box, err := d.box(cmd.Context())
			if err != nil {
				return err
			}
			key.Hash = clientkey.Hash(box, secret.Reveal())
			next, err := d.change(cmd.Context(), func(old catalog.Catalog) (catalog.Catalog, error) { return old.AddKey(key, allowed) })
			if err != nil {
				return err
			}
			if *asJSON {
				added, _ := next.Key(key.Name)
				return writeJSON(c.Stdout, createdKey{secret.Reveal(), listingOf(*next.Catalog, added)})
			}
			c.say("Client key %s, shown this once:", args[0])
			_, err = fmt.Fprintln(c.Stdout, secret.Reveal())
			return err
		})
	}
	return cmd
}

// listedKey is a client key in a listing.
type listedKey struct {
	Name       string `json:"name"`
	Background bool   `json:"background"`
	Admin      bool   `json:"admin"`
	// Accounts names those the key may use; null means all.
	Accounts  []string  `json:"accounts"`
	CreatedAt time.Time `json:"created_at"`
}

// createdKey is a client key with its secret, which is printed this once.
type createdKey struct {
	Key string `json:"key"`
	listedKey
}

func listingOf(all catalog.Catalog, k catalog.ClientKey) listedKey {
	entry := listedKey{Name: k.Name, Background: k.Background, Admin: k.Admin, CreatedAt: k.CreatedAt}
	for _, id := range k.Accounts {
		a, _ := all.ByID(id)
		entry.Accounts = append(entry.Accounts, a.Name)
	}
	return entry
}

func (c *cli) keyList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the client keys", Args: exactly("")}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.with(cmd.Context(), func(d *data) error {
			all, err := d.catalog(cmd.Context())
			if err != nil {
				return err
			}
			list := []listedKey{}
			for _, k := range all.Keys {
				list = append(list, listingOf(all, k))
			}
			if *asJSON {
				return writeJSON(c.Stdout, list)
			}
			if len(list) == 0 {
				c.say("There are no client keys yet. Create one: holdfast key create NAME")
				return nil
			}
			var rows [][]string
			for _, k := range list {
				accounts := "all"
				if k.Accounts != nil {
					accounts = strings.Join(k.Accounts, ",")
				}
				rows = append(rows, []string{k.Name, yes(k.Background), yes(k.Admin), accounts, k.CreatedAt.Format(time.DateOnly)})
			}
			return writeTable(c.Stdout, "NAME BACKGROUND ADMIN ACCOUNTS CREATED", rows)
		})
	}
	return cmd
}

func (c *cli) keyRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a client key, within two seconds everywhere", Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := c.change(cmd.Context(), func(old catalog.Catalog) (catalog.Catalog, error) { return old.RevokeKey(args[0]) })
			if err == nil {
				c.say("Client key %s is revoked.", args[0])
			}
			return err
		},
	}
}
