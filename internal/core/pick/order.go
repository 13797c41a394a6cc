package pick

import (
	"fmt"
	"slices"
	"time"

	"holdfast/internal/core/catalog"
)

func (d *Decision) byOrder(now time.Time, p catalog.Policy, r Request, cs []Candidate, stands []Standing) {
	over, cooling := -1, -1 // the least full of each
	fulls := make([]float64, len(cs))
	resort := func(i int) bool {
		return stands[i].Blocked() && !slices.ContainsFunc(BlocksFor(now, r, cs[i]), guardsOverage)
	}
	for i, c := range cs {
		full := fullest(now, r, c.State)
		fulls[i] = full
		part := &d.Parts[i]
		part.Score = -full
		switch {
		case stands[i].Usable() && d.Chosen >= 0:
			part.Passed = Behind
		case stands[i].Usable() && !Over(full, p):
			d.Chosen, d.Reason = i, ByOrder
		case stands[i].Usable():
			part.Passed = OverThreshold
			part.Note = fmt.Sprintf("%.2f full", full)
			if over < 0 || full < fulls[over] {
				over = i
			}
		case resort(i):
			if cooling < 0 || full < fulls[cooling] {
				cooling = i
			}
		}
	}
	over, cooling = keeping(over, cs, fulls, func(i int) bool { return d.Parts[i].Passed == OverThreshold }), keeping(cooling, cs, fulls, resort)
	switch {
	case d.Chosen >= 0:
	case over >= 0:
		d.Chosen, d.Reason = over, OverThreshold
	case cooling >= 0:
		d.Chosen, d.Reason = cooling, LastResort
	}
}

// keepServing is by how much the account that serves must be fuller than the least full one
// before that takes its place, once all are passed over.
const keepServing = 0.05

// keeping is the account to serve among those that are passed over alike, of which least is
// the least full, −1 for none: the one that serves already, while it is not fuller by
// keepServing.
func keeping(least int, cs []Candidate, fulls []float64, alike func(i int) bool) int {
	for i, c := range cs {
		if least >= 0 && c.Serving && alike(i) && fulls[i]-fulls[least] < keepServing-slack {
			return i
		}
	}
	return least
}

// Over reports whether policy order passes an account that is so full over: its
// utilization is at the threshold or above.
func Over(full float64, p catalog.Policy) bool {
	threshold := p.Threshold
	if threshold == 0 {
		threshold = catalog.DefaultThreshold
	}
	return full >= threshold-slack
}
