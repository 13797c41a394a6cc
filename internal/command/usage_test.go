package command_test

import (
	"math"
	"strings"
	"testing"
	"time"

	used "holdfast/internal/core/usage"
	"holdfast/internal/status"
)

func TestUsageCommand(t *testing.T) {
	b := newBench(t)
	b.must("account", "add", "marlow", "--provider", "anthropic", "--key-env", "KEY")
	if text := b.must("usage").stdout; text != "Nothing was used since 2027-02-25 10:00Z.\n" {
		t.Errorf("got %q", text)
	}
	s := b.open()
	hour := t0.Truncate(time.Hour)
	for i, batch := range []used.Batch{
		{Hour: hour, Rows: used.Rows{
			{Account: "marlow", Model: "claude-opus-5", Key: "laptop", Agent: "claude-cli"}: {Requests: 3, Input: 1000, CacheRead: 8_000_000, CacheWrite: 1_000_000, Output: 20_000},
			{Account: "tansy", Model: "gpt-5.5", Key: "laptop", Agent: "codex_cli_rs"}:      {Requests: 2, Moved: 1, Reread: 40_000, Input: 50_000, Output: 3000, Reasoning: 2000},
			{Model: "claude-opus-5", Key: "batch", Agent: "curl"}:                           {Requests: 1, Refused: 1},
		}},
		{Hour: hour.Add(-30 * 24 * time.Hour), Rows: used.Rows{
			{Account: "marlow", Model: "claude-opus-5", Key: "laptop", Agent: "claude-cli"}: {Requests: 7, Output: 1_000_000},
		}},
	} {
		batch.Number = int64(i + 1)
		if err := s.AddUsage(t.Context(), "server", batch); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, s)
	u := decode[status.Usage](t, b.must("usage", "--json"))
	if len(u.Rows) != 3 || u.Rows[0].Name != "marlow" || u.Total.Requests != 6 || u.Total.Refused != 1 || u.Total.Moved != 1 || u.Total.Input != 51_000 {
		t.Errorf("got %+v", u)
	}
	// 1,000 at 5, 8 million at 0.50, a million at 6.25 and 20,000 at 25 dollars a million.
	if got := u.Rows[0].Cost; got == nil || math.Abs(*got-(0.005+4+6.25+0.5)) > 1e-9 {
		t.Errorf("got a cost of %v", got)
	}
	if u.Rows[1].Cost != nil || u.Total.Cost != nil || len(u.Total.Unpriced) != 1 || u.Total.Unpriced[0] != "gpt-5.5" {
		t.Errorf("got %+v, want a model without a price to have no cost", u.Rows[1])
	}
	text := b.must("usage", "--by", "agent").stdout
	for _, want := range []string{
		"AGENT         REQUESTS  REFUSED  MOVED  INPUT  CACHED  WRITTEN  OUTPUT     COST",
		"claude-cli           3        0      0   1000    8.0M     1.0M     20k    10.76",
		"codex_cli_rs         2        0      1    50k       0        0    3000  unknown",
		"total                6        1      1    51k    8.0M     1.0M     23k   10.76+",
		"Caches gave 88% of the prompts' tokens.\nMoves had 40k tokens read again.\nReasoning was 2000 of the output.",
		"No price is known of gpt-5.5. Set one: holdfast settings set prices MODEL=IN/CACHED/WRITTEN/OUT",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwant in it %q", text, want)
		}
	}
	for _, line := range strings.Split(b.must("usage", "--by", "agent", "--since", "90d").stdout, "\n") {
		if len(line) > 100 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
	b.must("settings", "set", "prices", "gpt-5*=1/0.1/1/10")
	if u := decode[status.Usage](t, b.must("usage", "--by", "model", "--json")); u.Total.Cost == nil || math.Abs(*u.Total.Cost-(10.755+0.05+0.03)) > 1e-9 {
		t.Errorf("with a price of the owner's: got %+v", u.Total)
	}
	days := decode[status.Usage](t, b.must("usage", "--by", "day", "--since", "40d", "--json"))
	if len(days.Rows) != 2 || days.Rows[0].Name != "2027-02-02" || days.Rows[0].Requests != 7 || days.Total.Requests != 13 {
		t.Errorf("got %+v", days)
	}
	b.refuses(2, "--by takes one of account, key, agent, model, day, hour", "usage", "--by", "colour")
	for _, since := range []string{"91d", "soon", "-3h"} {
		b.refuses(2, "--since takes a time", "usage", "--since", since)
	}
	b.refuses(2, "prices must be", "settings", "set", "prices", "gpt=1/2")
}
