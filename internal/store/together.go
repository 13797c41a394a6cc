package store

import (
	"maps"
	"time"

	"holdfast/internal/core/account"
)

// Together returns states as they are to be judged: those of accounts that share limits
// with what is known of each other (account.Together). They are for decisions and reports,
// and MUST NOT be the base of a Fold: each stored state tells what its own account's
// answers taught.
func Together(now time.Time, accounts []account.Account, states map[account.ID]StateRecord) map[account.ID]StateRecord {
	plain := make(map[account.ID]account.State, len(states))
	for id, s := range states {
		plain[id] = s.State
	}
	out := maps.Clone(states)
	for id, s := range account.TogetherByID(now, accounts, plain) {
		record := out[id]
		record.State = s
		out[id] = record
	}
	return out
}

// Known returns what a pick knows of an account (pick.Candidates): its state, which is to be
// one of Together, and how many conversations were placed on it.
func Known(states map[account.ID]StateRecord) func(account.ID) (account.State, int64) {
	return func(id account.ID) (account.State, int64) { return states[id].State, states[id].Placed }
}
