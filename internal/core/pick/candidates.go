package pick

import (
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// Candidates makes the candidates of a provider: its accounts in the owner's order, with what
// is known of each, which is its state, joined with those of accounts that share its limits,
// and how many conversations were placed on it. serving is the account that served last under
// policy order; empty where that does not matter. Everybody who picks, or who says what a pick
// would find, makes them here.
//
// They are candidates for any request of any client key. Whoever has one request clears Serves
// and Allowed where that does not suit.
func Candidates(accounts []account.Account, known func(account.ID) (account.State, int64), serving account.ID) []Candidate {
	cs := make([]Candidate, len(accounts))
	for i, a := range accounts {
		state, placed := known(a.ID)
		cs[i] = Of(a, state)
		cs[i].Placed, cs[i].Serving = placed, a.ID == serving
	}
	return cs
}

// Of is one account as a candidate, for questions that no other account and no count of
// placements matters to, such as whether it is blocked.
func Of(a account.Account, s account.State) Candidate {
	return Candidate{Account: a, State: s, Serves: true, Allowed: true}
}

// Used is how full an account counts for its provider, as a fraction, where no request is
// known: the fullest of its allowances that bind every model, per-minute limits aside, 0 where
// none is known, as with keys, which are paid by use. It is 1 while the account cools or
// refuses everything. Draining does not matter, nor does a pause.
func Used(now time.Time, c Candidate, s catalog.Settings) float64 {
	if st := StandPinned(now, Request{}, c, s); !st.Usable() && st.Reason != Paused {
		return 1
	}
	full := 0.0
	for name, w := range c.State.Windows {
		if u, told := utilization(now, w); told && account.Binds(name, "") && !account.PerMinute(name) {
			full = max(full, u)
		}
	}
	return full
}
