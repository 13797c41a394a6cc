package status_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/status"
	"holdfast/internal/store"
)

func TestLastPoll(t *testing.T) {
	in := status.Input{
		Now: t0, Catalog: catalog.Catalog{Accounts: []account.Account{anthropic("marlow"), anthropic("juniper"), anthropic("sorrel")}},
		Poll: store.Poll{RoundAt: t0.Add(-40 * time.Second), Clocks: map[account.ID]store.Clock{
			"id-marlow":  {LookedAt: t0.Add(-3 * time.Minute), ReadAt: t0.Add(-3 * time.Minute), NextAt: t0.Add(2 * time.Minute)},
			"id-juniper": {LookedAt: t0.Add(-10 * time.Minute), Failures: 2, Trouble: "the answer has status 429 and holds JSON", NextAt: t0.Add(10 * time.Minute)},
			"id-sorrel":  {AnswerAt: t0}, // never looked at
			"id-removed": {LookedAt: t0, Failures: 9},
		}},
	}
	report := status.Of(in)
	got, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	want := `"last_poll":{"at":"2027-03-04T10:14:20Z","looks":[` +
		`{"account":"marlow","at":"2027-03-04T10:12:00Z","read_at":"2027-03-04T10:12:00Z","failures":0,"next_at":"2027-03-04T10:17:00Z"},` +
		`{"account":"juniper","at":"2027-03-04T10:05:00Z","read_at":null,"failures":2,"error":"the answer has status 429 and holds JSON","next_at":"2027-03-04T10:25:00Z"}]}`
	if !strings.Contains(string(got), want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"last poll: 40s ago\n",
		"juniper: its usage could not be looked up, 2 times in a row (the answer has status 429 and holds JSON); next try 2027-03-04 10:25Z (in 10m)\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got\n%swant %q", text.String(), want)
		}
	}
}
