package account

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// What an upstream, or a client, can name without end is kept in a bounded number, so that
// the state of an account stays small: a record of DynamoDB takes 400 KB and no more.
const (
	// mostInvented bounds the windows besides those that every plan has.
	mostInvented = 16
	// mostBlocks bounds the blocks of a part of what an account serves, or of such a window,
	// those that have ended too.
	mostBlocks = 64
	// mostName bounds the name of a window, a model or a family in bytes. What is longer is
	// not kept.
	mostName = 200
	// inventedFor is how long a window of no known length is kept after it was last read.
	inventedFor = 8 * 24 * time.Hour
	// endedFor is how long a block is kept after its end, for refusals that are folded late.
	endedFor = 24 * time.Hour
)

// invented reports whether a window is none of those that every plan has.
func invented(name string) bool {
	return name != FiveHour && name != Weekly && !PerMinute(name)
}

// bound drops what is too much, the oldest first, as of an instant. Windows that every plan
// has are always kept.
func (s State) bound(at time.Time) {
	maps.DeleteFunc(s.Windows, func(name string, w Window) bool {
		return len(name) > mostName || invented(name) && at.Sub(w.ObservedAt) > max(inventedFor, Length(name))
	})
	drop(s.Windows, mostInvented, func(name string, _ Window) bool { return invented(name) }, func(w Window) time.Time { return w.ObservedAt })
	maps.DeleteFunc(s.Blocks, func(_ string, b Block) bool {
		return len(b.Model)+len(b.Family)+len(b.Cause) > 3*mostName || at.Sub(later(b.Until, b.EndedAt)) > endedFor
	})
	drop(s.Blocks, mostBlocks, func(_ string, b Block) bool {
		return b.Family+b.Model+b.Tier != "" || b.Window != "" && invented(b.Window)
	}, func(b Block) time.Time { return b.Until })
}

// drop leaves the newest of those values that count, and all others.
func drop[T any](of map[string]T, most int, counts func(string, T) bool, at func(T) time.Time) {
	var names []string
	for name, v := range of {
		if counts(name, v) {
			names = append(names, name)
		}
	}
	if len(names) <= most {
		return
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(at(of[b]).Compare(at(of[a])), cmp.Compare(a, b))
	})
	for _, name := range names[most:] {
		delete(of, name)
	}
}

// nameable reports whether what a rejection names is short enough to be kept.
func (r Rejection) nameable() bool {
	return len(r.Model) <= mostName && len(r.Family) <= mostName && len(r.Tier) <= mostName && len(r.Feature) <= mostName && len(r.Limit) <= mostName
}
