package status

import (
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/serving"
	"holdfast/internal/store"
)

// Switch is a change of the account that serves at a provider under policy order.
type Switch struct {
	At       time.Time        `json:"at"`
	Provider account.Provider `json:"provider"`
	From     Side             `json:"from"`
	To       Side             `json:"to"`
	Mode     serving.Mode     `json:"mode"`
	Reason   serving.Reason   `json:"reason"`
}

// Side is one of a switch's two accounts.
type Side struct {
	// Account is the name it had then.
	Account string `json:"account"`
	// Utilization is that of its fullest window then; null if none was known.
	Utilization *float64 `json:"utilization"`
}

// SwitchOf describes a provider's switch.
func SwitchOf(p account.Provider, s serving.Switch) Switch {
	return Switch{second(s.At), p, Side{s.From.Name, s.From.Utilization}, Side{s.To.Name, s.To.Utilization}, s.Mode, s.Reason}
}

// Text is the side with how full it was, for a terminal.
func (s Side) Text() string {
	if s.Utilization == nil {
		return s.Account + " (unknown)"
	}
	return s.Account + " (" + percent(*s.Utilization) + ")"
}

// lastSwitch is the newest switch of all; of several at one instant the first provider's.
func lastSwitch(records map[account.Provider]store.ServingRecord) *Switch {
	var last *Switch
	for _, p := range account.Providers {
		of := records[p].Switches
		if len(of) == 0 {
			continue
		}
		if s := SwitchOf(p, of[0]); last == nil || s.At.After(last.At) {
			last = &s
		}
	}
	return last
}

// servingNow returns which of a provider's candidates serves, −1 if none does.
func servingNow(in Input, p account.Provider, cs []pick.Candidate) int {
	v := serving.View{Now: in.Now, Policy: in.Catalog.PolicyOf(p), Settings: in.Catalog.Settings(), Candidates: cs}
	return v.Of(in.Serving[p].Account)
}

// NewestFirst orders switches of several providers.
func NewestFirst(all []Switch) {
	slices.SortStableFunc(all, func(a, b Switch) int { return b.At.Compare(a.At) })
}
