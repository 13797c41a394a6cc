package pick

import (
	"fmt"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

func (d *Decision) byReset(now time.Time, s catalog.Settings, r Request, cs []Candidate, stands []Standing) {
	var entries []entry
	for i, c := range cs {
		if !stands[i].Usable() {
			continue
		}
		full := fullest(now, r, c.State)
		e := entry{
			index: i, tie: tie(r, c),
			rank: rankOf(c, full, s.ExcludeLine, s.TrialRequests),
		}
		if c.Account.Kind == account.Key && (e.rank == rankTrial || e.rank == rankUnread) {
			e.rank = rankNoWeekly // it has no week to be found out, and every try is paid for
		}
		wait, hasWeekly := untilReset(now, c.State)
		calm := 0 - load(now, r, c)
		switch e.rank {
		case rankTrial:
			e.first = -float64(c.Placed)
		case rankUnread:
			e.first = calm
		case rankLine, rankCap:
			e.first, e.second = -full, -wait.Hours()
		case rankOpen, rankNoWeekly:
			if hasWeekly {
				e.first, e.second = -wait.Hours(), calm
				d.Parts[i].Note = fmt.Sprintf("weekly resets in %s", wait.Round(time.Second))
			} else {
				e.rank, e.first = rankNoWeekly, calm
			}
		}
		e.first, e.second = finite(e.first), finite(e.second)
		d.Parts[i].Score = e.first
		entries = append(entries, e)
	}
	d.choose(entries, ByReset)
}

// untilReset is the time to the reset of the account's weekly window, a week when that is
// unknown or past, and false when it has none.
func untilReset(now time.Time, st account.State) (time.Duration, bool) {
	w, ok := st.Windows[account.Weekly]
	if !ok || !now.Before(w.ResetAt) {
		return account.Week, ok
	}
	return w.ResetAt.Sub(now), true
}
