package status_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/serving"
	"holdfast/internal/status"
	"holdfast/internal/store"
)

func record(switches ...serving.Switch) store.ServingRecord {
	return store.ServingRecord{Record: serving.Record{Switches: switches}, Revision: 1}
}

func TestLastSwitch(t *testing.T) {
	half := 0.5
	made := func(ago time.Duration, from, to string) serving.Switch {
		return serving.Switch{
			N: 1, At: t0.Add(-ago), From: serving.Account{ID: "id-of-one", Name: from, Utilization: &half}, To: serving.Account{ID: "id-of-other", Name: to},
			Mode: serving.Reorder, Reason: serving.Quota,
		}
	}
	in := status.Input{
		Now: t0, Catalog: catalog.Catalog{Accounts: []account.Account{anthropic("marlow")}},
		Serving: map[account.Provider]store.ServingRecord{
			account.Anthropic: record(made(3*time.Hour, "gone", "marlow")),
			account.XAI:       record(made(130*time.Minute, "bracken", "sorrel"), made(4*time.Hour, "sorrel", "bracken")),
		},
	}
	r := status.Of(in)
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `"last_switch":{"at":"2027-03-04T08:05:00Z","provider":"xai","from":{"account":"bracken","utilization":0.5},` +
		`"to":{"account":"sorrel","utilization":null},"mode":"reorder","reason":"quota"}`
	if !strings.Contains(string(got), want) || strings.Contains(string(got), "id-of") {
		t.Errorf("got %s, want %s in it, and nobody's id", got, want)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	line := "last switch: 2027-03-04 08:05Z (2h10m ago), xai from bracken (50%) to sorrel (unknown), reorder, quota\n"
	if !strings.Contains(text.String(), line) {
		t.Errorf("got %s, want %s in it", text.String(), line)
	}
}
