package advice_test

import (
	"testing"

	"holdfast/internal/core/advice"
)

func TestIn(t *testing.T) {
	way := advice.Way{Program: "bin/holdfast", Place: " --data /d"}
	for text, want := range map[string]string{
		"Run `holdfast account add NAME`.":          "Run `bin/holdfast --data /d account add NAME`.",
		"holdfast serve --demo, or holdfast status": "bin/holdfast --data /d serve --demo, or bin/holdfast --data /d status",
		"holdfast: holdfast serves":                 "holdfast: holdfast serves",
		"see `holdfast --help`":                     "see `holdfast --help`",
		"bin/holdfast account list":                 "bin/holdfast account list",
		"~/.local/share/holdfast key":               "~/.local/share/holdfast key",
	} {
		if got := way.In(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := (advice.Way{}).In(text); got != text {
			t.Errorf("%q without a way: got %q", text, got)
		}
	}
}
