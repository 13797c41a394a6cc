package serving

import "slices"

// Kept bounds the switches of a provider that are kept in all, about.
const Kept = 500

// Past are a provider's switches that its record no longer holds, newest first.
type Past struct {
	Switches []Switch `json:"switches,omitempty"`
}

// Join returns the past with a record's switches, the oldest beyond Kept left out. Those
// that it has already are not doubled: joining twice is joining once.
func (p Past) Join(newer []Switch) Past { return Past{merge(newer, p.Switches)} }

// History is all that is known of a provider's switches, newest first.
func History(r Record, p Past) []Switch { return merge(r.Switches, p.Switches) }

func merge(newer, older []Switch) []Switch {
	all := slices.Concat(newer, older)
	slices.SortStableFunc(all, func(a, b Switch) int { return int(b.N - a.N) })
	all = slices.CompactFunc(all, func(a, b Switch) bool { return a.N == b.N })
	return all[:min(len(all), Kept)]
}
