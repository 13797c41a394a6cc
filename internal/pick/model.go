package pick

import (
	"path"
	"strings"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
)

// defaultRoom is the room an account still has for the default families, leaving out
// whatever binds the request itself.
func defaultRoom(now time.Time, s catalog.Settings, r Request, st account.State) float64 {
	room := 1.0
	for name, w := range st.Windows {
		family := account.FamilyOf(name)
		if family == r.Family || !namesAny(s.DefaultModels, family) {
			continue
		}
		if u, known := utilization(now, w); known {
			room = min(room, max(0, 1-u))
		}
	}
	for _, b := range st.Blocks {
		// A pause says nothing about an allowance.
		if b.Active(now) && !b.Pause() && namesAny(s.DefaultModels, b.Family) {
			return 0
		}
	}
	return room
}

// matchesAny reports whether a pattern matches a model. A pattern that is malformed
// matches nothing.
func matchesAny(patterns []string, model string) bool {
	if model == "" {
		return false
	}
	for _, p := range patterns {
		if ok, err := path.Match(strings.ToLower(p), strings.ToLower(model)); ok && err == nil {
			return true
		}
	}
	return false
}

// namesAny reports whether a pattern names a model family: matches it, or has it as a
// word.
func namesAny(patterns []string, family string) bool {
	if family == "" {
		return false
	}
	if matchesAny(patterns, family) {
		return true
	}
	for _, p := range patterns {
		for word := range strings.FieldsFuncSeq(p, separates) {
			if strings.EqualFold(word, family) {
				return true
			}
		}
	}
	return false
}

func separates(c rune) bool { return strings.ContainsRune(`-_./:*?[]\ `, c) }
