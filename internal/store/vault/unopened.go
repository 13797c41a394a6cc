package vault

import (
	"holdfast/internal/core/account"
	"holdfast/internal/store"
)

// Unopened marks, among the states of accounts, those whose stored credential does not open,
// as reports and picks are to see them. It changes states.
func (v Vault) Unopened(states map[account.ID]store.StateRecord, sealed map[account.ID]store.SealedRecord) {
	for id, record := range sealed {
		if record.Revision == 0 {
			continue
		}
		if _, err := v.Open(id, record); err != nil {
			s := states[id]
			s.State = account.Unreadable(s.State, account.UnreadableCredential)
			states[id] = s
		}
	}
}
