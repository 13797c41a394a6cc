package pick

import (
	"fmt"
	"slices"
	"time"

	"holdfast/internal/catalog"
)

func (d *Decision) byOrder(now time.Time, p catalog.Policy, r Request, cs []Candidate, stands []Standing) {
	over, cooling := -1, -1 // the least full of each
	fulls := make([]float64, len(cs))
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
		case stands[i].Blocked() && !slices.ContainsFunc(blocks(now, r, c), guardsOverage):
			if cooling < 0 || full < fulls[cooling] {
				cooling = i
			}
		}
	}
	switch {
	case d.Chosen >= 0:
	case over >= 0:
		d.Chosen, d.Reason = over, OverThreshold
	case cooling >= 0:
		d.Chosen, d.Reason = cooling, LastResort
	}
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
