package pick

import (
	"math"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// loadWeight is how much one placement that no reading shows yet costs an account with
// all its headroom. It is large enough that a burst soon outweighs any difference of the
// other terms, which are about 1, and small enough that a single conversation on its way
// turns only close calls.
const loadWeight = 0.2

// closeCall is the step in which scores are compared: what differs by less is a tie.
// Otherwise two accounts that differ only in the second of their reset would not share,
// the same one taking every conversation until its readings move.
const closeCall = 0.01

func (d *Decision) byScore(now time.Time, s catalog.Settings, r Request, cs []Candidate, stands []Standing) {
	usable := make([]int, 0, len(cs))
	for i := range cs {
		if stands[i].Usable() {
			usable = append(usable, i)
		}
	}
	// Sums of floats depend on their order, and a choice must not depend on the order of
	// the candidates.
	sorted := slices.Clone(usable)
	slices.SortFunc(sorted, func(a, b int) int {
		return strings.Compare(string(cs[a].Account.ID), string(cs[b].Account.ID))
	})
	terms := make([]Terms, len(cs))
	var mean Terms
	read := 0.0
	for _, i := range sorted {
		if !cs[i].State.Seen() {
			continue // nothing known: only load can be told
		}
		t := weigh(now, s, r, cs[i])
		terms[i] = t
		mean.Expiring += t.Expiring
		mean.Pace += t.Pace
		mean.Short += t.Short
		mean.Model += t.Model
		read++
	}
	entries := make([]entry, 0, len(usable))
	for _, i := range usable {
		c, part := cs[i], &d.Parts[i]
		t := terms[i]
		if c.State.Seen() {
			part.Freshness = freshness(now, s, c.State)
			discount := func(term *float64, sum float64) {
				if part.Freshness < 1 {
					*term = sum/read + part.Freshness*(*term-sum/read)
				}
			}
			discount(&t.Expiring, mean.Expiring)
			discount(&t.Pace, mean.Pace)
			discount(&t.Short, mean.Short)
			discount(&t.Model, mean.Model)
		}
		t.Load = 0 - loadWeight*load(now, r, c)
		part.Terms, part.Score = t, finite(t.sum())
		e := entry{
			index: i, first: math.Round(part.Score / closeCall), tie: tie(r, c),
			rank: rankOf(c, fullest(now, r, c.State), s.ExcludeLine, s.TrialRequests),
		}
		if e.rank == rankTrial {
			e.first = -float64(c.Placed)
		}
		entries = append(entries, e)
	}
	d.choose(entries, ByScore)
}

// weigh reckons the weighted terms, load aside.
func weigh(now time.Time, s catalog.Settings, r Request, c Candidate) Terms {
	var t Terms
	expiring, pace, known := math.Inf(1), math.Inf(1), false
	for name, w := range c.State.Windows {
		u, ok := utilization(now, w)
		if !ok || !weekly(name, r) {
			continue
		}
		share := elapsed(now, w)
		expiring = min(expiring, max(0, 1-u)*share)
		pace = min(pace, max(-1, min(1, (1-s.Reserve)*share-u)))
		known = true
	}
	if known {
		t.Expiring = s.WeightExpiring * expiring
		t.Pace = s.WeightPace * pace
	}
	t.Short = s.WeightShort * shortRoom(now, s, c.State)
	if matchesAny(s.ExpensiveModels, r.Model) {
		t.Model = 0 - s.WeightModel*defaultRoom(now, s, r, c)
	}
	return t
}

// shortRoom is 1 while the five-hour window is below its line, falling to 0 at the line
// that excludes.
func shortRoom(now time.Time, s catalog.Settings, st account.State) float64 {
	u, _ := utilization(now, st.Windows[account.FiveHour])
	switch {
	case u < s.ShortWindowLine:
		return 1
	case u >= s.ExcludeLine:
		return 0
	}
	return (s.ExcludeLine - u) / (s.ExcludeLine - s.ShortWindowLine)
}

// freshness is how much a reading still counts.
func freshness(now time.Time, s catalog.Settings, st account.State) float64 {
	age := now.Sub(st.ReadAt)
	if age <= s.FreshFor {
		return 1
	}
	return max(0, float64(s.FreshFor)/float64(age))
}
