package account

import (
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
