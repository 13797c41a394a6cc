package pick

import (
	"path"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// defaultRoom is the room an account still has for the default families, leaving out
// whatever binds the request itself.
func defaultRoom(now time.Time, s catalog.Settings, r Request, c Candidate) float64 {
	room := 1.0
	for name, w := range c.State.Windows {
		family := account.FamilyOf(name)
		if family == r.Family || !namesAny(s.DefaultModels, family) {
			continue
		}
		if u, known := utilization(now, w); known {
			room = min(room, max(0, 1-u))
		}
	}
	for _, b := range Blocks(now, c) {
		// A pause says nothing about an allowance.
		if !b.Pause() && namesAny(s.DefaultModels, b.Family) {
			return 0
		}
	}
	return room
}

// ServesDefault reports whether an account could take a new conversation with a model that
// the setting default_models means. Which models an account has is not known here, so a
// pattern counts as served until what it means is blocked or was refused there.
func ServesDefault(now time.Time, s catalog.Settings, c Candidate) bool {
	if !Stand(now, Request{}, c, s).Usable() {
		return false
	}
	open := func(pattern string) bool {
		means := []string{pattern}
		for _, b := range Blocks(now, c) {
			if !b.Background && b.Tier == "" && (namesAny(means, b.Family) || matchesAny(means, b.Model)) {
				return false
			}
		}
		for _, r := range c.State.Refuses {
			if now.Before(r.Until) && r.Limit == "" && r.Tier == "" && matchesAny(means, r.Model) {
				return false
			}
		}
		return true
	}
	return len(s.DefaultModels) == 0 || slices.ContainsFunc(s.DefaultModels, open)
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
