package command

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/store"
	"holdfast/internal/store/seal"
)

// Table is a DynamoDB table, opened.
type Table interface {
	store.Backend
	// Box returns the box of the table's data key, which is made if none exists yet. It
	// asks a key service the first time.
	Box(context.Context) (*seal.Box, error)
	// Environment is what a function needs in its environment to open the same table.
	Environment(context.Context) ([]string, error)
	// RemoveAlarm removes the alarm of an account by its name; where the account has no alarm, it does nothing.
	RemoveAlarm(ctx context.Context, account string) error
	// HearSilence turns on the alarm about a poller that has never made a round, once the
	// stack is older than ten minutes. It reports whether it did.
	HearSilence(ctx context.Context, now time.Time) (bool, error)
}

// openTableWithin bounds the search for the owner's AWS identity: an SSO login that is
// renewed takes a second or two, a program that asks somebody would take forever.
const openTableWithin = 15 * time.Second

func (c *cli) openTable(ctx context.Context) (*data, error) {
	t, err := c.namedTable(ctx)
	if err != nil {
		return nil, err
	}
	return &data{Store: store.New(t), box: t.Box, removeAlarm: t.RemoveAlarm, hearSilence: t.HearSilence}, nil
}

func (c *cli) namedTable(ctx context.Context) (Table, error) {
	if c.OpenTable == nil {
		return nil, errors.New("this holdfast was built without AWS; use --data")
	}
	ctx, cancel := context.WithTimeout(ctx, openTableWithin)
	defer cancel()
	return c.OpenTable(ctx, c.table)
}

// tableName is what DynamoDB calls a table. An ARN would do for it, but not for the data
// key, which is bound to the name.
var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// checkPlace finds wrong usage of --data and --table. An empty one is a variable that was
// not set, and must not lead to other data than was meant.
func (c *cli) checkPlace(cmd *cobra.Command) error {
	data, table := cmd.Flags().Changed("data"), cmd.Flags().Changed("table")
	switch {
	case data && table:
		return usageError("give --data or --table, not both: the data is in a directory or in a DynamoDB table")
	case data && c.dir == "":
		return usageError("--data is empty; name a directory, or leave it out for your own")
	case table && c.table == "":
		return usageError("--table is empty; name a DynamoDB table, or leave it out for data on this machine")
	case table && !tableName.MatchString(c.table):
		return usageError("--table takes the name of a DynamoDB table, not an ARN: 3 to 255 letters, digits, and _ . -")
	}
	return nil
}

// place is how another command is told where the data is: what was typed, with a space
// before it.
func (c *cli) place() string {
	switch {
	case c.table != "":
		return " --table " + c.table
	case c.dir != "":
		return " --data " + quoted(c.dir)
	}
	return ""
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("/._-+:@%", r))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
