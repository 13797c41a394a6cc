package pick

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// rank orders candidates before any figure does: the lowest wins.
type rank int

const (
	rankTrial rank = iota
	rankOpen
	rankNoWeekly // soonest-reset only
	rankLine
	rankCap
	rankUnread
)

var rankNotes = map[rank]string{
	rankTrial: "trial", rankOpen: "", rankNoWeekly: "no weekly window",
	rankLine: "at the line", rankCap: "at its cap", rankUnread: "unread",
}

// entry is a usable candidate on its way through a policy.
type entry struct {
	index int
	rank  rank
	// first and second are compared within a rank, higher wins.
	first, second float64
	tie           uint64
}

// rankOf is the candidate's rank as far as its readings go; line is exclude_line.
func rankOf(c Candidate, full, line float64, trials int64) rank {
	switch {
	case !c.State.Seen() && c.Placed < trials:
		return rankTrial
	case !c.State.Seen():
		return rankUnread
	case full >= 1:
		return rankCap
	case full >= line:
		return rankLine
	}
	return rankOpen
}

// before reports whether a is preferred to b.
func (a entry) before(b entry) bool {
	switch {
	case a.rank != b.rank:
		return a.rank < b.rank
	case a.first != b.first:
		return a.first > b.first
	case a.second != b.second:
		return a.second > b.second
	case a.tie != b.tie:
		return a.tie > b.tie
	}
	return a.index < b.index
}

// choose takes the best entry into the decision.
func (d *Decision) choose(entries []entry, by Reason) {
	if len(entries) == 0 {
		return
	}
	best := entries[0]
	for _, e := range entries {
		d.Parts[e.index].Note = note(d.Parts[e.index].Note, rankNotes[e.rank])
		if e.before(best) {
			best = e
		}
	}
	d.Chosen, d.Reason = best.index, by
	if best.rank == rankTrial {
		d.Trial, d.Reason = true, ByTrial
	}
}

func note(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return b + ", " + a
}

// tie is the rendezvous weight of an account for a conversation; 0 without a key, which
// leaves the owner's order.
func tie(r Request, c Candidate) uint64 {
	if r.Key == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(r.Key + "\x00" + string(c.Account.ID)))
	return binary.BigEndian.Uint64(sum[:])
}

// finite makes a value that is not finite the least there is.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return -math.MaxFloat64
	}
	return v
}
