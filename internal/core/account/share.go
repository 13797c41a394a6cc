package account

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// ProjectWindow begins the names of windows that bind the keys of one project, and not all
// of an organization.
const ProjectWindow = "project-"

// Together returns what is known of accounts by their limits: of those that have the same
// limits, each is told what the answers to the others have shown, so that a spent
// organization is not tried again through its other credential. Of each, what cannot be
// believed at now is left out (Believed). states are those of accounts, in their order, and
// are not changed; where nothing is to be done, they are returned as they are.
//
// # Which accounts share
//
// Those of one provider and kind at the same host: whoever answers elsewhere can name any
// organization, and knows nothing of the limits here. API keys share when their organization is the same:
// their limits are the organization's. Logins share when they are of the same principal. A
// provider's organization alone is less than that, for the seats of a team are of one
// organization and have an allowance each. It counts where a principal is not known, unless
// the windows of the two contradict each other: one window cannot have two resets, and does
// not get emptier before its reset.
//
// # What they share
//
// Windows, the newest reading of each; spent windows and guards of overage; pauses and
// parkings of which the provider says that they are not the credential's alone (Whole).
// What a credential or a plan may do stays its own: features, a refused login, pauses of a
// burst, and the windows of a project.
func Together(now time.Time, accounts []Account, states []State) []State {
	var out []State
	for i, s := range states {
		if believed, changed := s.Believed(now); changed {
			if out == nil {
				out = slices.Clone(states)
			}
			out[i] = believed
		}
	}
	if out != nil {
		states, out = out, nil
	}
	for i := range states {
		var others []State
		for j := range states {
			if i != j && shares(accounts[i], states[i], accounts[j], states[j]) {
				others = append(others, states[j])
			}
		}
		if others == nil {
			continue
		}
		if out == nil {
			out = slices.Clone(states)
		}
		out[i] = states[i].With(others...)
	}
	if out == nil {
		return states
	}
	return out
}

// Sharing returns the names of the other accounts that have the same limits as accounts[i],
// in their order; states are as stored.
func Sharing(accounts []Account, states []State, i int) []string {
	var names []string
	for j := range accounts {
		if i != j && shares(accounts[i], states[i], accounts[j], states[j]) {
			names = append(names, accounts[j].Name)
		}
	}
	return names
}

// TogetherByID is Together for states by their accounts' ids. An account without a state
// has none.
func TogetherByID(now time.Time, accounts []Account, states map[ID]State) map[ID]State {
	list := make([]State, len(accounts))
	for i, a := range accounts {
		list[i] = states[a.ID]
	}
	out := maps.Clone(states)
	for i, s := range Together(now, accounts, list) {
		if _, ok := states[accounts[i].ID]; ok {
			out[accounts[i].ID] = s
		}
	}
	return out
}

func shares(a Account, s State, b Account, o State) bool {
	if a.Provider != b.Provider || a.Kind != b.Kind || a.BaseURL != b.BaseURL {
		return false
	}
	if a.Kind == Subscription && s.Principal != "" && o.Principal != "" {
		return s.Principal == o.Principal
	}
	if s.Organization == "" || s.Organization != o.Organization {
		return false
	}
	return a.Kind == Key || !contradict(s, o)
}

// Tolerances of contradict: resets are told in seconds from now as well as in instants, and
// figures are rounded.
const (
	sameReset = 5 * time.Minute
	sameShare = 0.02
)

// contradict reports whether two states cannot be of one set of windows.
func contradict(s, o State) bool {
	for name, w := range s.Windows {
		v, both := o.Windows[name]
		if !both {
			continue
		}
		if v.ObservedAt.Before(w.ObservedAt) {
			v, w = w, v // v is the later one
		}
		if !w.ResetAt.After(v.ObservedAt) || !v.ResetAt.After(v.ObservedAt) {
			continue // another period of the window may have begun in between
		}
		if w.ResetAt.Sub(v.ResetAt).Abs() > sameReset {
			return true
		}
		if w.HasUtilization && v.HasUtilization && v.Utilization < w.Utilization-sameShare {
			return true
		}
	}
	return false
}

// With returns the state with what the states of accounts with the same limits say about those limits.
// The order of the others does not matter.
func (s State) With(others ...State) State {
	all := append([]State{s}, others...)
	var cleared time.Time
	for _, o := range all {
		cleared = later(cleared, o.ClearedAt)
	}
	next := s.clone()
	maps.DeleteFunc(next.Windows, func(_ string, w Window) bool { return w.voidBy(cleared) })
	maps.DeleteFunc(next.Blocks, func(_ string, b Block) bool { return !b.Since.After(cleared) })
	if p := next.Parked; p != nil && p.Whole && !p.Since.After(cleared) {
		next.Parked = nil
	}
	own := next.Parked
	for _, o := range others {
		for name, w := range o.Windows {
			if !strings.HasPrefix(name, ProjectWindow) && !w.voidBy(cleared) {
				next.Windows[name] = next.Windows[name].or(w)
			}
		}
		for k, b := range o.Blocks {
			if (b.Pause() && !b.Whole) || strings.HasPrefix(b.Window, ProjectWindow) || !b.Since.After(cleared) {
				continue
			}
			next.Blocks[k] = next.Blocks[k].or(b)
		}
		if p := o.Parked; own == nil && p != nil && p.Whole && p.Since.After(cleared) && next.Parked.before(p) {
			next.Parked = p
		}
		next.RoomAt = later(next.RoomAt, o.RoomAt)
		next.ReadAt = later(next.ReadAt, o.ReadAt)
		next.ProbedAt = later(next.ProbedAt, o.ProbedAt)
	}
	for k, b := range next.Blocks {
		b.EndedAt = later(b.EndedAt, next.openSince(b))
		next.Blocks[k] = b
	}
	if p := next.Parked; own == nil && p != nil && p.Kind == Funds && next.RoomAt.After(p.Since) {
		next.Parked = nil // a look through another credential has shown since that it is over
	}
	return next
}

// voidBy reports whether a window was read as spent before the owner said that the account
// is to be used again.
func (w Window) voidBy(cleared time.Time) bool {
	return !w.ObservedAt.After(cleared) && (w.Status == Rejected || w.Utilization >= 1)
}

// or is the newer of two readings of a window; of two of one instant, the stricter.
func (w Window) or(o Window) Window {
	open, pollOpen := later(w.OpenAt, o.OpenAt), later(w.PollOpenAt, o.PollOpenAt)
	if w.older(o) {
		w = o
	}
	w.OpenAt, w.PollOpenAt = open, pollOpen
	return w
}

func (w Window) older(o Window) bool {
	switch {
	case !w.ObservedAt.Equal(o.ObservedAt):
		return w.ObservedAt.Before(o.ObservedAt)
	case w.Utilization != o.Utilization:
		return w.Utilization < o.Utilization
	case w.HasUtilization != o.HasUtilization:
		return o.HasUtilization
	case !w.ResetAt.Equal(o.ResetAt):
		return w.ResetAt.Before(o.ResetAt)
	case w.Status != o.Status:
		return w.Status < o.Status
	}
	return w.Source < o.Source
}

// or is the block with the newer evidence for it; of two of one instant, the longer.
func (b Block) or(o Block) Block {
	ended := later(b.EndedAt, o.EndedAt)
	if b.Since.Before(o.Since) || (b.Since.Equal(o.Since) && (b.Until.Before(o.Until) || (b.Until.Equal(o.Until) && o.Told && !b.Told))) {
		whole := b.Whole
		b = o
		b.Whole = b.Whole || whole
	} else {
		b.Whole = b.Whole || o.Whole
	}
	b.EndedAt = ended
	return b
}

func (p *Parked) before(o *Parked) bool {
	return p == nil || p.Since.Before(o.Since) || (p.Since.Equal(o.Since) && p.Reason < o.Reason)
}

// LoginOf folds in who the credential belongs to, as the provider spells it; an empty word
// says nothing.
func (s State) LoginOf(principal string) State {
	if principal != "" {
		s.Principal = principal
	}
	return s
}
