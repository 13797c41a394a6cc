package command

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build is what a program was made from.
type Build struct {
	Version string `json:"version"`          // of the release, or of the nearest one and how far it is behind
	Commit  string `json:"commit,omitempty"` // of the source; ends in "+changes" where the source was changed after it
	Date    string `json:"date,omitempty"`   // of the commit, RFC 3339
}

// BuildOf reads the commit and its date from what the Go tool writes into a program. A
// program that was built outside a repository has neither.
func BuildOf(version string, info *debug.BuildInfo) Build {
	b := Build{Version: version}
	if info == nil {
		return b
	}
	changed := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	if b.Commit != "" && changed {
		b.Commit += "+changes"
	}
	return b
}

// String is the build in one line.
func (b Build) String() string {
	text := "holdfast " + b.Version
	if b.Commit != "" {
		text += fmt.Sprintf(" (commit %s, %s)", b.Commit, b.Date)
	}
	return text
}

func (c *cli) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version, the commit and its date", Args: exactly("")}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if *asJSON {
			return writeJSON(c.Stdout, c.Build)
		}
		_, err := fmt.Fprintln(c.Stdout, c.Build)
		return err
	}
	return cmd
}
