package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Member is an account of a provider that has a weekly window.
type Member struct {
	Name string
	// Plan tells accounts of one size from others; empty is a plan of its own.
	Plan   string
	Weekly Outlook
}

// Week is a provider's demand for a week beside what its accounts allow.
type Week struct {
	// Known is false without members, or where none of them has a rate.
	Known bool
	// Unequal says that plans differ in size by a ratio that is not known. Nothing is added
	// then, and the rest is empty.
	Unequal bool
	// Demand and Allowance are in points: 100 are a week's window of one account, of the first
	// member's plan.
	Demand, Allowance float64
	// DryAt is when no account has room, within a week; zero: not so.
	DryAt time.Time
	// ResetAt is the first reset after DryAt.
	ResetAt time.Time
	// Needed is how many accounts of the first member's plan the demand takes.
	Needed int
	// Apart is how far from evenly the resets lie: 0 is evenly spread over the week, 1 is all
	// at one time. It is 0 with one account.
	Apart float64
}

// Fits is how many times the demand fits into the allowance; +Inf where none exists.
func (w Week) Fits() float64 {
	if w.Demand <= 0 {
		return math.Inf(1)
	}
	return w.Allowance / w.Demand
}

// Together reckons a provider's week as of an instant. size is a plan's size against the
// first member's; a plan that it lacks has a size of its own that nobody knows.
func Together(members []Member, size map[string]float64, now time.Time) Week {
	var w Week
	if len(members) == 0 {
		return w
	}
	sizes := make([]float64, len(members))
	for i, m := range members {
		known := size[m.Plan]
		switch {
		case m.Plan == members[0].Plan:
			sizes[i] = 1
		case known > 0:
			sizes[i] = known
		default:
			return Week{Unequal: true}
		}
	}
	var used, usual float64
	var covered time.Duration
	for i, m := range members {
		used += m.Weekly.Usual * days(m.Weekly.Covered) * sizes[i]
		usual += m.Weekly.Usual * sizes[i]
		covered = max(covered, m.Weekly.Covered)
		w.Known = w.Known || m.Weekly.Known
		w.Allowance += 100 * sizes[i]
	}
	if !w.Known {
		return Week{}
	}
	// An account that was added in the middle of the week took its part of one demand.
	perDay := used / days(covered)
	w.Demand = perDay * weekDays * 100
	w.Needed = max(1, int(math.Ceil(w.Demand/100-1e-9)))
	w.Apart = bunched(members)
	if perDay <= 0 {
		return w
	}
	w.DryAt = dryTogether(members, sizes, perDay/usual, now)
	if !w.DryAt.IsZero() {
		for _, m := range members {
			next := nextReset(m.Weekly.ResetAt, m.Weekly.window.Length, w.DryAt)
			if !next.IsZero() && (w.ResetAt.IsZero() || next.Before(w.ResetAt)) {
				w.ResetAt = next
			}
		}
	}
	return w
}

// dryTogether plays a week hour by hour: what is asked for is taken from the account that
// resets soonest, as long as it has room.
func dryTogether(members []Member, sizes []float64, share float64, now time.Time) time.Time {
	room, resets := make([]float64, len(members)), make([]time.Time, len(members))
	for i, m := range members {
		room[i] = max(0, 1-m.Weekly.Utilization.Mid) * sizes[i]
		resets[i] = m.Weekly.ResetAt
	}
	inTurn := make([]int, len(members))
	for i := range inTurn {
		inTurn[i] = i
	}
	const step = 10 * time.Minute
	for at := now; at.Before(now.Add(week)); at = at.Add(step) {
		for i := range resets {
			if !resets[i].IsZero() && !resets[i].After(at) {
				room[i] = sizes[i]
				resets[i] = nextReset(resets[i], max(members[i].Weekly.window.Length, day), at)
			}
		}
		var asked float64
		for i, m := range members {
			asked += m.Weekly.course.between(at, at.Add(step)) * sizes[i] * share
		}
		slices.SortStableFunc(inTurn, func(a, b int) int { return cmp.Compare(unix(resets[a]), unix(resets[b])) })
		left := asked
		for _, i := range inTurn {
			taken := min(left, room[i])
			room[i] -= taken
			left -= taken
		}
		if left > 1e-9 {
			return at.Add(time.Duration(float64(step) * (asked - left) / asked)).Round(time.Second)
		}
	}
	return time.Time{}
}

// unix orders instants, unknown ones last.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return t.Unix()
}

// bunched says how far from evenly the members' resets lie on the week.
func bunched(members []Member) float64 {
	var at []float64 // as parts of the week
	for _, m := range members {
		if !m.Weekly.ResetAt.IsZero() {
			at = append(at, math.Mod(float64(m.Weekly.ResetAt.Unix()), week.Seconds())/week.Seconds())
		}
	}
	if len(at) < 2 {
		return 0
	}
	slices.Sort(at)
	longest := at[0] + 1 - at[len(at)-1]
	for i := 1; i < len(at); i++ {
		longest = max(longest, at[i]-at[i-1])
	}
	even := 1 / float64(len(at))
	return (longest - even) / (1 - even)
}
