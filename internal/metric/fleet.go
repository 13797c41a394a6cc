package metric

import (
	"maps"
	"slices"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
	"holdfast/internal/pick"
	"holdfast/internal/serving"
)

// Fleet is what a round knows of all accounts at its end.
type Fleet struct {
	Now     time.Time
	Catalog catalog.Catalog
	States  map[account.ID]account.State
	// Watched are the accounts whose provider has a usage endpoint for them.
	Watched map[account.ID]bool
	// Failures is how often in a row the renewal of a login has failed.
	Failures map[account.ID]int
}

// OfFleet makes the data of one round. Every provider has its figures, also one without
// accounts, so that no alarm waits for data.
func OfFleet(f Fleet) []Datum {
	f.States = account.TogetherByID(f.Catalog.Accounts, f.States)
	data := []Datum{datum(PollerRounds, 1)}
	for _, p := range account.Providers {
		accounts := f.Catalog.Of(p)
		for _, a := range accounts {
			data = append(data, f.account(a)...)
		}
		data = append(data, f.provider(p, accounts)...)
	}
	return data
}

func (f Fleet) account(a account.Account) []Datum {
	s, of := f.States[a.ID], Dimension{Account, a.Name}
	data := []Datum{datum(Parked, flag(s.Parked != nil), of)}
	if a.Kind == account.Subscription {
		failures := f.Failures[a.ID]
		if s.Ending != nil {
			failures = max(failures, FailuresInARow)
		}
		data = append(data, datum(RefreshFailures, float64(failures), of))
	}
	if f.Watched[a.ID] {
		data = append(data, datum(ReadingAge, f.age(a).Seconds(), of))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Windows)) {
		w := s.Windows[name]
		if account.PerMinute(name) { // too short to be measured once a minute
			continue
		}
		in := Dimension{Window, name}
		if w.HasUtilization {
			data = append(data, datum(Utilization, w.At(f.Now), of, in))
		}
		if !w.ResetAt.IsZero() {
			data = append(data, datum(HoursToReset, max(0, w.ResetAt.Sub(f.Now).Hours()), of, in))
		}
	}
	return data
}

// age is how long nothing was read of an account; one that was never read counts from when
// it was added.
func (f Fleet) age(a account.Account) time.Duration {
	at := f.States[a.ID].ReadAt
	if at.Before(a.AddedAt) {
		at = a.AddedAt
	}
	return max(0, f.Now.Sub(at))
}

func (f Fleet) provider(p account.Provider, accounts []account.Account) []Datum {
	of := Dimension{Provider, string(p)}
	settings, policy := f.Catalog.Settings(), f.Catalog.PolicyOf(p)
	candidates := make([]pick.Candidate, len(accounts))
	ready, least := 0, 1.0
	var newest time.Duration
	watched := false
	for i, a := range accounts {
		s := f.States[a.ID]
		candidates[i] = pick.Candidate{Account: a, State: s, Serves: true, Allowed: true}
		stand := pick.Stand(f.Now, pick.Request{}, candidates[i], settings)
		if stand.Usable() {
			ready++
		}
		if s.Parked != nil { // it waits for its owner, which another alarm says
			continue
		}
		if pick.StandPinned(f.Now, pick.Request{}, candidates[i], settings).Reason != pick.Cooldown { // draining or not
			least = min(least, fullest(f.Now, s))
		}
		if f.Watched[a.ID] {
			if age := f.age(a); !watched || age < newest {
				newest, watched = age, true
			}
		}
	}
	if len(accounts) == 0 {
		least = 0
	}
	exhausted := least >= settings.ExcludeLine
	if policy.Name == catalog.Order {
		exhausted = pick.Over(least, policy)
	}
	data := []Datum{
		datum(LeastUtilization, least, of),
		datum(Exhausted, flag(exhausted), of),
		datum(ReadyAccounts, float64(ready), of),
		datum(ReadingAge, newest.Seconds(), of),
	}
	if policy.Name == catalog.Order {
		serves := serving.View{Now: f.Now, Policy: policy, Settings: settings, Candidates: candidates}.Of()
		for i, a := range accounts {
			data = append(data, datum(Serving, flag(i == serves), of, Dimension{Account, a.Name}))
		}
	}
	return data
}

// fullest is the utilization of the fullest window that binds every model, per-minute ones
// aside; 0 where none is known, as with keys, which are paid by use. It is what picks go by:
// a window that was refused is full, whether or not its utilization was told.
func fullest(now time.Time, s account.State) float64 {
	s.Windows = maps.Clone(s.Windows)
	maps.DeleteFunc(s.Windows, func(name string, _ account.Window) bool { return account.PerMinute(name) })
	full, _ := pick.Fullest(now, pick.Request{}, s)
	return full
}
