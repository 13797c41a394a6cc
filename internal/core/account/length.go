package account

import (
	"math"
	"strconv"
	"time"
)

// LengthName names a whole-account window by its length: FiveHour, Weekly, or whole days
// or hours as 30d or 12h; an odd length is told in minutes, as 90m. It is empty for a
// length under a minute, which names nothing.
func LengthName(length time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case length == 5*time.Hour:
		return FiveHour
	case length == Week:
		return Weekly
	case length < time.Minute:
		return ""
	case length%day == 0:
		return strconv.FormatInt(int64(length/day), 10) + "d"
	case length%time.Hour == 0:
		return strconv.FormatInt(int64(length/time.Hour), 10) + "h"
	default:
		return strconv.FormatInt(int64(length/time.Minute), 10) + "m"
	}
}

// Length is the length of a window by its name, a model family's too (LengthName is its
// inverse); 0 where the name tells none, as that of a per-minute window.
func Length(name string) time.Duration {
	if FamilyOf(name) != "" {
		return Week
	}
	switch name {
	case Weekly:
		return Week
	case FiveHour:
		return 5 * time.Hour
	case "":
		return 0
	}
	unit, ok := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute}[name[len(name)-1]]
	n, err := strconv.ParseInt(name[:len(name)-1], 10, 32)
	if !ok || err != nil || n <= 0 || n > math.MaxInt64/int64(unit) {
		return 0
	}
	return time.Duration(n) * unit
}
