// Package status says in one value how the gateway stands: every account with its
// windows, every provider with its policy and who serves, how pins fared, the last look at
// usage endpoints and the last switch. The command `status` prints it; the gateway serves
// the same as status.json. It has the words for a terminal, too, and what the owner of a
// parked account is to do (Remedy).
//
// Of is a pure function of what was read: it does no I/O and reads no clock. States are
// shown as they are judged, those of accounts that share limits together. It never holds a
// secret.
package status

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/pin"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
)

// Input is what was read for a report.
type Input struct {
	Now     time.Time
	Catalog catalog.Catalog
	States  map[account.ID]store.StateRecord
	// Credentials are as stored: sealed. Only when they end is looked at.
	Credentials map[account.ID]store.SealedRecord
	// Pins sums up all stored pins, ended ones too; nil where they were not read.
	Pins *pin.Tally
	// Serving are the records of who served, for the last switch. Who serves at Now is
	// reckoned from the rest.
	Serving map[account.Provider]store.ServingRecord
	// Poll is what the poller remembers.
	Poll store.Poll
	// InFlight counts requests by account; nil where it is not known, as in another process.
	InFlight map[account.ID]int
}

// Report is how the gateway stood at an instant.
type Report struct {
	At        time.Time  `json:"at"`
	Accounts  []Account  `json:"accounts"`
	Providers []Provider `json:"providers"`
	Totals    Totals     `json:"totals"`
	// LastPoll is the newest look at usage endpoints; null when there was never one.
	LastPoll *LastPoll `json:"last_poll"`
	// LastSwitch is the newest switch of any provider; null when there was none.
	LastSwitch *Switch `json:"last_switch"`
}

// State is an account's standing in one word.
type State string

// An account that is several of these has the first that applies in the order unreadable,
// parked, cooldown, draining.
const (
	Ready    State = "ready"
	Draining State = "draining"
	Cooldown State = "cooldown"
	Parked   State = "parked"
	// Unreadable: a record of the account is damaged, and its owner has to mend that.
	Unreadable State = "unreadable"
)

// Account is one account's part of the report.
type Account struct {
	Name     string           `json:"name"`
	Provider account.Provider `json:"provider"`
	Kind     account.Kind     `json:"kind"`
	Plan     string           `json:"plan,omitempty"`
	// Order is the account's place in its provider's order, from 1.
	Order int   `json:"order"`
	State State `json:"state"`
	// Reason of a cooldown is its cause (a window's name, throttle, bare, overage); of a
	// parked account it is the provider's own word.
	Reason string `json:"reason,omitempty"`
	// Until is when a cooldown ends; null for all else.
	Until *time.Time `json:"until"`
	// ParkedSince is null for an account that is not parked. ParkedFor is what its owner is
	// to mend: "credential" or "funds"; empty if not known.
	ParkedSince *time.Time            `json:"parked_since"`
	ParkedFor   account.RejectionKind `json:"parked_for,omitempty"`
	// LoginExpiresAt is when a login's access token ends, or ended; null for keys, and where
	// it is not known.
	LoginExpiresAt *time.Time `json:"login_expires_at"`
	// NeedsOwner is what only the account's owner can mend; null where there is nothing.
	NeedsOwner *NeedsOwner `json:"needs_owner"`
	// Warning says what is going to happen unless the owner acts, while the account serves.
	Warning string   `json:"warning,omitempty"`
	Windows []Window `json:"windows"`
	// BlockedModels are families, or single models, that the account may not serve now.
	BlockedModels []BlockedModel `json:"blocked_models"`
	// Refuses are the features, models, tiers and sizes that the provider refuses the account.
	Refuses []Refuses `json:"refuses"`
	// SharesWith names the accounts that have the same limits, being of one organization or
	// login; what is known of those limits shows at each of them.
	SharesWith []string `json:"shares_with,omitempty"`
	LivePins   int      `json:"live_pins"`
	// InFlight is null where it is not known.
	InFlight *int `json:"in_flight"`
	// Serving: under policy order, new conversations go here now.
	Serving bool `json:"serving"`
}

// NeedsOwner is what the owner of an account is to do.
type NeedsOwner struct {
	// What is wrong and what is to be done about it, in a sentence; Command is what ends it
	// here.
	What    string `json:"what"`
	Command string `json:"command"`
	// Until is when an account stops that still serves; null for one that does not serve, and
	// where it is not known.
	Until *time.Time `json:"until"`
}

// Window is what is known of one window.
type Window struct {
	Name string `json:"name"`
	// Utilization is a fraction: 0 empty, 1 full; null when none was ever told. A window
	// past its reset counts as empty.
	Utilization *float64 `json:"utilization"`
	// ResetsAt is null when not told, or when it has passed.
	ResetsAt   *time.Time `json:"resets_at"`
	ObservedAt time.Time  `json:"observed_at"`
}

// BlockedModel is a model family or a model that waits for Until.
type BlockedModel struct {
	Family string    `json:"family,omitempty"`
	Model  string    `json:"model,omitempty"`
	Reason string    `json:"reason"`
	Until  time.Time `json:"until"`
}

// Provider is one provider's part of the report; only providers with accounts have one.
type Provider struct {
	Name   account.Provider   `json:"name"`
	Policy catalog.PolicyName `json:"policy"`
	// Serving names the account that new conversations go to under policy order, null
	// under the others.
	Serving *string `json:"serving"`
	// BestHeadroom is the most room that any account ready for new conversations was read to
	// have, over the windows that bind every model: a fraction, 0 when no account is ready,
	// null when no window of the accounts that are ready was ever read.
	BestHeadroom *float64 `json:"best_headroom"`
	// SoonestReset is the next reset of a window (per-minute limits aside) of an account
	// that is not parked; null when none is known.
	SoonestReset *time.Time `json:"soonest_reset"`
}

// Totals count what became of pins, over all accounts.
type Totals struct {
	LastHour Counts `json:"last_hour"`
	LastDay  Counts `json:"last_day"`
}

// Counts of requests that found their pin, of pins that moved, and of pins made. Kept is
// counted by the clock's hour, so the hour before counts for the share of it that lies
// within the period.
type Counts struct {
	Kept  int64 `json:"kept"`
	Moved int64 `json:"moved"`
	New   int64 `json:"new"`
}

// Of makes the report.
func Of(in Input) Report {
	stored := in.States
	in.States = store.Together(in.Now, in.Catalog.Accounts, in.States)
	r := Report{At: second(in.Now), Accounts: []Account{}, Providers: []Provider{}, Totals: totals(in.Pins), LastPoll: lastPoll(in), LastSwitch: lastSwitch(in.Serving)}
	var live map[account.ID]int
	if in.Pins != nil {
		live = in.Pins.Live
	}
	for _, p := range account.Providers {
		of := in.Catalog.Of(p)
		if len(of) == 0 {
			continue
		}
		section := Provider{Name: p, Policy: in.Catalog.PolicyOf(p).Name}
		cs := pick.Candidates(of, store.Known(in.States), in.Serving[p].Account)
		serving, ready, room := servingNow(in, p, cs), false, -1.0
		apart := make([]account.State, len(of))
		for i, a := range of {
			apart[i] = stored[a.ID].State
		}
		for i, a := range of {
			entry := accountEntry(in.Now, cs[i])
			entry.SharesWith = account.Sharing(of, apart, i)
			entry.Order = i + 1
			entry.LivePins = live[a.ID]
			if ends := vault.ExpiresAt(in.Credentials[a.ID]); !ends.IsZero() {
				ends = second(ends)
				entry.LoginExpiresAt = &ends
			}
			if in.InFlight != nil {
				n := in.InFlight[a.ID]
				entry.InFlight = &n
			}
			if i == serving {
				entry.Serving = true
				section.Serving = &entry.Name
			}
			if pick.Stand(in.Now, pick.Request{}, cs[i], in.Catalog.Settings()).Usable() {
				ready = true
				if left, known := pick.Room(in.Now, pick.Request{}, cs[i].State); known {
					room = max(room, left)
				}
			}
			if entry.State != Parked && entry.State != Unreadable {
				section.SoonestReset = soonest(section.SoonestReset, entry.Windows)
			}
			r.Accounts = append(r.Accounts, entry)
		}
		if !ready || room >= 0 {
			best := math.Round(max(0, room)*1e4) / 1e4 // 1 - 0.41 reads 0.59
			section.BestHeadroom = &best
		}
		r.Providers = append(r.Providers, section)
	}
	return r
}

func accountEntry(now time.Time, c pick.Candidate) Account {
	a, s := c.Account, c.State
	entry := Account{
		Name: a.Name, Provider: a.Provider, Kind: a.Kind, Plan: a.Plan,
		State: Ready, Windows: windows(now, s), BlockedModels: blockedModels(pick.Blocks(now, c)),
	}
	entry.Refuses = entry.refuses(now, c)
	block, blocked := pick.Blocked(now, pick.Request{}, c)
	switch {
	case s.Parked.Unreadable():
		entry.State, entry.Reason = Unreadable, s.Parked.Reason
	case s.Parked != nil:
		since := second(s.Parked.Since)
		entry.State, entry.Reason, entry.ParkedSince, entry.ParkedFor = Parked, s.Parked.Reason, &since, s.Parked.Kind
	case blocked:
		until := second(block.Until)
		entry.State, entry.Reason, entry.Until = Cooldown, block.Cause, &until
	case a.Draining:
		entry.State = Draining
	}
	entry.ends(now, s)
	entry.refusesAll(now, s)
	return entry
}

func windows(now time.Time, s account.State) []Window {
	list := []Window{}
	for _, name := range slices.SortedFunc(maps.Keys(s.Windows), byLength) {
		w := s.Windows[name]
		entry := Window{Name: name, ObservedAt: second(w.ObservedAt)}
		if w.HasUtilization {
			u := w.At(now)
			entry.Utilization = &u
		}
		if w.ResetAt.After(now) {
			reset := second(w.ResetAt)
			entry.ResetsAt = &reset
		}
		list = append(list, entry)
	}
	return list
}

// byLength puts the five-hour window first, the weekly one next, its families' after it.
func byLength(a, b string) int {
	rank := func(name string) int {
		switch name {
		case account.FiveHour:
			return 0
		case account.Weekly:
			return 1
		}
		return 2
	}
	return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
}

func blockedModels(blocks []account.Block) []BlockedModel {
	list := []BlockedModel{}
	for _, b := range blocks {
		if (b.Family != "" || b.Model != "") && b.Tier == "" && !b.Background {
			list = append(list, BlockedModel{Family: b.Family, Model: b.Model, Reason: b.Cause, Until: second(b.Until)})
		}
	}
	slices.SortFunc(list, func(a, b BlockedModel) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

func soonest(known *time.Time, windows []Window) *time.Time {
	for _, w := range windows {
		if w.ResetsAt == nil || account.PerMinute(w.Name) { // too short to plan by
			continue
		}
		if known == nil || w.ResetsAt.Before(*known) {
			known = w.ResetsAt
		}
	}
	return known
}

func totals(pins *pin.Tally) Totals {
	if pins == nil {
		return Totals{}
	}
	return Totals{LastHour: Counts(pins.Hour()), LastDay: Counts(pins.Day)}
}

func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
