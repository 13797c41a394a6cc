package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// jsonFlag adds --json to a listing.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON")
}

// writeJSON prints a value for programs, indented for people.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// writeTable prints rows under a head; empty cells show as a dash.
func writeTable(w io.Writer, head string, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(strings.Fields(head), "\t"))
	for _, row := range rows {
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// say prints a confirmation for people.
func (c *cli) say(format string, args ...any) {
	fmt.Fprintf(c.Stderr, format+"\n", args...)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
