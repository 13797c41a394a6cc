package openai

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/wire/limits"
)

const (
	primary = "primary"
	// mainLimit is the id of the limit that binds a whole plan.
	mainLimit = "codex"
	// longestScope bounds the name of a further limit, in bytes.
	longestScope = 64
	// maxMinutes is the longest length that is taken for one: a year.
	maxMinutes = 366 * 24 * 60
	// slack is how many minutes a length may be off its hour: 299 has been told for 300,
	// and 10079 for 10080.
	slack = 3
)

// planWindow is one window of a plan, and the id of the limit it belongs to.
type planWindow struct {
	account.WindowReading
	limit string
}

// slot is a window as the wire tells it, in whatever words.
type slot struct {
	used, minutes, resetAt, resetAfter string
}

// window reads a slot. It is false for an empty one: nothing used, no length and no
// reset. scope narrows the window to what a further limit is about.
func (s slot) window(name, scope string, at time.Time) (account.WindowReading, bool) {
	var w account.WindowReading
	if percent, ok := limits.Fraction(s.used); ok {
		w.Utilization, w.HasUtilization = percent/100, true
	}
	minutes, _ := limits.Count(s.minutes)
	reset, hasReset := limits.Instant(s.resetAt, at)
	if w.Utilization == 0 && minutes == 0 && !hasReset {
		return account.WindowReading{}, false
	}
	if !hasReset {
		reset, _ = after(s.resetAfter, at)
	}
	w.ResetAt = reset
	if w.Name = lengthName(minutes); w.Name == "" {
		// Only where no length is told does the slot say what it once always meant.
		w.Name = account.Weekly
		if name == primary {
			w.Name = account.FiveHour
		}
	}
	if scope != "" {
		w.Name += ":" + scope
	}
	return w, w.HasUtilization || !w.ResetAt.IsZero()
}

// lengthName names a window by its length in minutes; empty when that tells nothing.
func lengthName(minutes int64) string {
	if minutes <= 0 || minutes > maxMinutes {
		return ""
	}
	if hours := (minutes + slack) / 60; hours > 0 && minutes-hours*60 <= slack {
		minutes = hours * 60
	}
	return account.LengthName(time.Duration(minutes) * time.Minute)
}

// after reads a number of seconds from at; zero and less tell nothing.
func after(text string, at time.Time) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return time.Time{}, false
	}
	t, ok := limits.Instant(text+"s", at)
	if !ok || !t.After(at) {
		return time.Time{}, false
	}
	return t, true
}

// planWindows reads every limit of a plan from headers: the main one, and any other that
// has a header ending in -primary-used-percent.
func planWindows(h http.Header, at time.Time) []planWindow {
	fields := map[string]string{} // in lower case
	ids := []string{mainLimit}
	for name, values := range h {
		name = strings.ToLower(name)
		if len(values) == 0 || !strings.HasPrefix(name, "x-") {
			continue
		}
		fields[name] = strings.TrimSpace(values[0])
		for _, end := range []string{"-primary-used-percent", "-secondary-used-percent"} {
			if id, ok := strings.CutSuffix(name[len("x-"):], end); ok && id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	var out []planWindow
	for _, id := range ids {
		prefix := "x-" + id + "-"
		scope := scopeOf(id, fields[prefix+"limit-name"])
		for _, name := range []string{primary, "secondary"} {
			field := func(what string) string { return fields[prefix+name+"-"+what] }
			s := slot{field("used-percent"), field("window-minutes"), field("reset-at"), field("reset-after-seconds")}
			if w, ok := s.window(name, scope, at); ok {
				out = append(out, planWindow{w, id})
			}
		}
	}
	return merge(out)
}

// limitID spells a limit's id as headers do.
func limitID(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
}

// scopeOf is what a limit is about, as its windows' names have it: empty for the main
// one, else the model that its own name tells (GPT-5.3-Codex-Spark is that family's limit),
// else its bare id, which binds no model that is known by another name.
func scopeOf(id, name string) string {
	if id == mainLimit {
		return ""
	}
	if s := scopeName(name); s != "" {
		return Family(s)
	}
	if s := scopeName(strings.TrimPrefix(strings.TrimPrefix(id, "codex-"), "additional-")); s != "" {
		return s
	}
	return "other"
}

// scopeName makes a name that can stand in a window's.
func scopeName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if len(name) > longestScope {
		return ""
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, name)
	return strings.Trim(name, "-")
}

// merge puts windows in the order of their names; of two of one name the stricter counts.
func merge(windows []planWindow) []planWindow {
	var out []planWindow
	for _, w := range windows {
		i := slices.IndexFunc(out, func(o planWindow) bool { return o.Name == w.Name })
		if i < 0 {
			out = append(out, w)
		} else if stricter(w.WindowReading, out[i].WindowReading) {
			out[i] = w
		}
	}
	slices.SortFunc(out, func(a, b planWindow) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func stricter(a, b account.WindowReading) bool {
	if a.Utilization != b.Utilization {
		return a.Utilization > b.Utilization
	}
	return a.ResetAt.After(b.ResetAt)
}
