package metric

import (
	"maps"
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/serving"
)

// Fleet is what a round knows of all accounts at its end.
type Fleet struct {
	Now time.Time
	// Table is the name of the table that the fleet is on.
	Table   string
	Catalog catalog.Catalog
	States  map[account.ID]account.State
	// Watched are the accounts whose provider has a usage endpoint for them.
	Watched map[account.ID]bool
	// Failures is how often in a row the renewal of a login has failed.
	Failures map[account.ID]int
	// Served are the accounts that served last, where policy order is in force.
	Served map[account.Provider]account.ID
}

// OfFleet makes the data of one round: only those that an alarm is to hear.
func OfFleet(f Fleet) []Datum {
	var data []Datum
	figures, in := FiguresOf(f), Dimension{Table, f.Table}
	for _, p := range figures.Providers {
		of := Dimension{Provider, string(p.Provider)}
		if p.Exhausted {
			data = append(data, datum(Exhausted, 1, in, of))
		}
		if age := time.Duration(p.ReadingAge * float64(time.Second)); age > Blind {
			data = append(data, datum(ReadingAge, p.ReadingAge, in, of))
		}
	}
	for _, a := range figures.Accounts {
		of := Dimension{Account, a.Account}
		switch {
		case a.Parked:
			data = append(data, datum(NeedsOwner, Parked, in, of))
		case a.RenewalFailures >= FailuresInARow:
			data = append(data, datum(NeedsOwner, RenewalFailing, in, of))
		}
	}
	return data
}

// Figures are what a round found, for a person: the poller writes them into its log as one
// line, and panels of the dashboard are queries over such lines. Lists are in the catalog's
// order; windows of an account by name.
type Figures struct {
	Providers []ProviderFigures `json:"providers"`
	Accounts  []AccountFigures  `json:"accounts"`
	Windows   []WindowFigures   `json:"windows"`
}

// ProviderFigures are those of a provider. Providers without accounts have none.
type ProviderFigures struct {
	Provider account.Provider `json:"provider"`
	// LeastUtilization is the utilization of the emptiest account that is not parked; 1 where
	// all are parked, cool or refuse everything.
	LeastUtilization float64 `json:"least_utilization"`
	// Exhausted: LeastUtilization is at the policy's line, so that no account has room.
	Exhausted bool `json:"exhausted"`
	// Ready counts the accounts that a new conversation could be placed on.
	Ready int `json:"ready"`
	// Serving names the account that policy order gives new conversations to; empty under
	// other policies.
	Serving string `json:"serving,omitempty"`
	// ReadingAge is how old the newest reading of its watched accounts is, in seconds; 0
	// where no account is watched.
	ReadingAge float64 `json:"reading_age_s"`
}

// AccountFigures are those of an account.
type AccountFigures struct {
	Account  string           `json:"account"`
	Provider account.Provider `json:"provider"`
	Parked   bool             `json:"parked"`
	// RenewalFailures is how often in a row its renewal failed; at least FailuresInARow once
	// it was refused for good, while the login goes on.
	RenewalFailures int `json:"renewal_failures"`
	// ReadingAge is how old the newest reading is, in seconds.
	ReadingAge float64 `json:"reading_age_s"`
}

// WindowFigures are those of a window that is longer than minutes.
type WindowFigures struct {
	Account string `json:"account"`
	Window  string `json:"window"`
	// Utilization is a fraction; absent where none is known. HoursToReset is absent where no
	// reset is known.
	Utilization  *float64 `json:"utilization,omitempty"`
	HoursToReset *float64 `json:"hours_to_reset,omitempty"`
}

// FiguresOf computes the figures of a round.
func FiguresOf(f Fleet) Figures {
	f.States = account.TogetherByID(f.Now, f.Catalog.Accounts, f.States)
	var all Figures
	for _, p := range account.Providers {
		accounts := f.Catalog.Of(p)
		if len(accounts) == 0 {
			continue
		}
		all.Providers = append(all.Providers, f.provider(p, accounts))
		for _, a := range accounts {
			all.Accounts = append(all.Accounts, f.account(a))
			all.Windows = append(all.Windows, f.windows(a)...)
		}
	}
	return all
}

func (f Fleet) account(a account.Account) AccountFigures {
	s := f.States[a.ID]
	figures := AccountFigures{Account: a.Name, Provider: a.Provider, Parked: s.Parked != nil, RenewalFailures: f.Failures[a.ID], ReadingAge: f.age(a).Seconds()}
	if s.Ending != nil {
		figures.RenewalFailures = max(figures.RenewalFailures, FailuresInARow)
	}
	return figures
}

func (f Fleet) windows(a account.Account) []WindowFigures {
	var all []WindowFigures
	s := f.States[a.ID]
	for _, name := range slices.Sorted(maps.Keys(s.Windows)) {
		if account.PerMinute(name) { // too short to be measured once a minute
			continue
		}
		w, figures := s.Windows[name], WindowFigures{Account: a.Name, Window: name}
		if w.HasUtilization {
			u := w.At(f.Now)
			figures.Utilization = &u
		}
		if !w.ResetAt.IsZero() {
			hours := max(0, w.ResetAt.Sub(f.Now).Hours())
			figures.HoursToReset = &hours
		}
		all = append(all, figures)
	}
	return all
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

func (f Fleet) provider(p account.Provider, accounts []account.Account) ProviderFigures {
	settings, policy := f.Catalog.Settings(), f.Catalog.PolicyOf(p)
	// Conversations that no reading shows yet matter to a choice alone, and none is made here.
	candidates := pick.Candidates(accounts, func(id account.ID) (account.State, int64) { return f.States[id], 0 }, "")
	figures := ProviderFigures{Provider: p, LeastUtilization: 1}
	var newest time.Duration
	watched := false
	for i, a := range accounts {
		if pick.Stand(f.Now, pick.Request{}, candidates[i], settings).Usable() {
			figures.Ready++
		}
		if candidates[i].State.Parked != nil { // it waits for its owner, which another alarm says
			continue
		}
		figures.LeastUtilization = min(figures.LeastUtilization, pick.Used(f.Now, candidates[i], settings)) // draining or not
		if f.Watched[a.ID] {
			if age := f.age(a); !watched || age < newest {
				newest, watched = age, true
			}
		}
	}
	figures.ReadingAge = newest.Seconds()
	figures.Exhausted = figures.LeastUtilization >= settings.ExcludeLine
	if policy.Name == catalog.Order {
		figures.Exhausted = pick.Over(figures.LeastUtilization, policy)
		view := serving.View{Now: f.Now, Policy: policy, Settings: settings, Candidates: candidates}
		if i := view.Of(f.Served[p]); i >= 0 {
			figures.Serving = accounts[i].Name
		}
	}
	return figures
}
