package status_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/status"
	"holdfast/internal/store"
)

// What one credential of an organization was told shows at the other as well: there is no
// more to be had through it.
func TestOrganizationsAreReportedTogether(t *testing.T) {
	now := time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)
	reset := now.Add(72 * time.Minute)
	known := account.State{Organization: "org"}
	spent := known.Reject(account.Rejection{Kind: account.WindowSpent, At: now, Spent: []account.Spent{{Window: account.FiveHour, ResetAt: reset}}}, account.Rules{})
	in := status.Input{
		Now: now,
		Catalog: catalog.Catalog{Accounts: []account.Account{
			{ID: "1", Name: "marlow", Provider: account.Anthropic, Kind: account.Key},
			{ID: "2", Name: "juniper", Provider: account.Anthropic, Kind: account.Key},
		}},
		States: map[account.ID]store.StateRecord{"1": {State: spent, Revision: 3}, "2": {State: known, Revision: 4}},
	}
	other := map[string]string{"marlow": "juniper", "juniper": "marlow"}
	for _, a := range status.Of(in).Accounts {
		if len(a.SharesWith) != 1 || a.SharesWith[0] != other[a.Name] {
			t.Errorf("%s: got shares with %v, want %s", a.Name, a.SharesWith, other[a.Name])
		}
		if a.State != status.Cooldown || a.Until == nil || !a.Until.Equal(reset) {
			t.Errorf("%s: got %s until %v, want cooldown until %s", a.Name, a.State, a.Until, reset)
		}
	}
	if len(in.States["2"].Blocks) != 0 {
		t.Error("the input was changed")
	}
}
