package pick

import (
	"math"
	"strings"
	"time"

	"holdfast/internal/core/account"
)

// utilization is how full a window is known to be, and false when nothing is known of it.
// A window that the provider called rejected is full whatever figure stands beside it,
// and so is one whose figure is not finite: what cannot be read must not win.
func utilization(now time.Time, w account.Window) (float64, bool) {
	if w.Lapsed(now) {
		return 0, true
	}
	u := w.Utilization
	switch {
	case !w.HasUtilization && w.Status != account.Rejected:
		return 0, false
	case !w.HasUtilization, math.IsNaN(u), math.IsInf(u, 0):
		return 1, true
	case w.Status == account.Rejected:
		return max(1, u), true
	}
	return max(0, u), true
}

// fullest is the utilization of the fullest window that binds the request, 0 when nothing
// is known.
func fullest(now time.Time, r Request, s account.State) float64 {
	_, full, _ := Fullest(now, r, s)
	return full
}

// Fullest is the name and the utilization of the fullest window that binds the request: what
// policy order compares. Of several that are as full it is the first by name. It is 0 and
// false when no window is known.
func Fullest(now time.Time, r Request, s account.State) (window string, full float64, known bool) {
	for name, w := range s.Windows {
		if !account.Binds(name, r.Family) {
			continue
		}
		u, told := utilization(now, w)
		if told && (!known || u > full || (u == full && name < window)) {
			window, full, known = name, u, true
		}
	}
	return window, full, known
}

// Room is 1 minus Fullest, never below 0; 1 and false when no window is known.
func Room(now time.Time, r Request, s account.State) (room float64, known bool) {
	_, full, known := Fullest(now, r, s)
	return max(0, 1-full), known
}

// weekly reports whether a window is a weekly one that binds the request.
func weekly(name string, r Request) bool {
	return name == account.Weekly ||
		strings.HasPrefix(name, account.Weekly+":") && account.Binds(name, r.Family)
}

// elapsed is the share of a window's week that has passed, 0 when its reset is unknown or
// past.
func elapsed(now time.Time, w account.Window) float64 {
	if !now.Before(w.ResetAt) {
		return 0
	}
	return max(0, 1-float64(w.ResetAt.Sub(now))/float64(account.Week))
}

// minHeadroom keeps the load of a full account finite.
const minHeadroom = 0.01

// load is what the placements that no reading shows yet weigh against headroom.
func load(now time.Time, r Request, c Candidate) float64 {
	n := max(0, c.Placed-c.State.LoadSeen)
	return float64(n) / max(minHeadroom, 1-fullest(now, r, c.State))
}
