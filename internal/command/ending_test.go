package command_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/status"
	"holdfast/internal/upkeep/refresh"
)

// A login that goes on and is not renewed any more is told of wherever its account is shown;
// part of field case a-dead-refresh-token-and-a-living-access-token.
func TestEndingLoginIsTold(t *testing.T) {
	b := newBench(t)
	b.must("account", "add", "max", "--provider", "anthropic", "--no-check", "--import", b.login("credentials.json", ""))
	ends := t0.Add(2 * time.Hour)
	b.fold("max", func(s account.State) account.State {
		return s.Ends(account.Ending{Since: t0, Until: ends, Reason: refresh.ReasonRefused, Generation: 1})
	})
	const command = "holdfast account login max --import FILE"
	for _, args := range [][]string{{"status"}, {"account", "show", "max"}, {"account", "check", "max", "--no-look"}} {
		if text := b.must(args...).stdout; !strings.Contains(text, command) || !strings.Contains(text, "it serves until 2027-03-04 12:00Z (in 2h00m), and not longer") {
			t.Errorf("%v does not report it:\n%s", args, text)
		}
	}
	shown := decode[struct{ Status status.Account }](t, b.must("account", "show", "max", "--json")).Status
	if shown.State != status.Ready || shown.NeedsOwner == nil || shown.NeedsOwner.Command != command || !shown.NeedsOwner.Until.Equal(ends) {
		t.Errorf("got state %s and need %+v, want it ready and its owner told until %v", shown.State, shown.NeedsOwner, ends)
	}
}
