package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast/internal/core/advice"
	"holdfast/internal/core/hidden"
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
	fmt.Fprintln(c.Stderr, hidden.Clean(c.asTyped(fmt.Sprintf(format, args...))))
}

// asTyped has the commands that a text advises begin as the program was started, and name
// the data that it was told of.
func (c *cli) asTyped(text string) string {
	return advice.Way{Program: c.Program, Place: c.place()}.In(text)
}

// printAsTyped writes a text for people to standard output.
func (c *cli) printAsTyped(write func(io.Writer) error) error {
	var page strings.Builder
	if err := write(&page); err != nil {
		return err
	}
	_, err := io.WriteString(c.Stdout, c.asTyped(page.String()))
	return err
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
