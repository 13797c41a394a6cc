// Package limits reads the values in which providers report limits: waits, instants,
// fractions and counts. One parser per kind of value, shared by every provider, because
// each of these has been misread somewhere: a date as "now", milliseconds as a far
// future, NaN as a utilization, a huge wait as a negative one.
//
// A value that cannot be read is as good as absent: the functions return false, and
// their callers drop that one value and keep the rest. A value that can be read but is
// absurd is clamped, never trusted and never turned around.
//
// The package decides nothing about accounts; it has no clock (the instant an answer
// arrived is passed in) and does no I/O.
package limits

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/core/account"
)

const (
	// Floor is what a told wait of zero, or until an instant that has passed, stands
	// for: the refusals that carry one go on for a moment.
	Floor = account.PauseFloor
	// Furthest is how far ahead an instant may lie; no limit of any provider is longer
	// than a year, and what is told beyond it is clamped to it.
	Furthest = 366 * 24 * time.Hour

	// earliest is the least epoch second taken for an instant (September 2001): smaller
	// numbers are something else, often 0 for "none".
	earliest = 1e9
	// inMillis is where an epoch number is read as milliseconds: as seconds it would lie
	// in the year 5138.
	inMillis = 1e11
)

// RetryAfter reads how long an answer asks to wait, from its Retry-After and
// Retry-After-Ms headers, as the instant until which to wait. Retry-After is in seconds,
// possibly with a fraction, or an HTTP date; a date is compared with the answer's own
// Date header, so that a clock that is off (ours or theirs) cancels out. Of several
// values the longest counts. at is when the answer's headers arrived.
func RetryAfter(h http.Header, at time.Time) (time.Time, bool) {
	longest, told := time.Duration(0), false
	hear := func(wait time.Duration) {
		longest, told = max(longest, clampWait(wait)), true
	}
	for _, v := range h["Retry-After"] {
		v = strings.TrimSpace(v)
		if wait, ok := seconds(v, time.Second); ok {
			hear(wait)
		} else if date, err := http.ParseTime(v); err == nil {
			hear(date.Sub(sentAt(h, at)))
		}
	}
	for _, v := range h["Retry-After-Ms"] {
		if wait, ok := seconds(strings.TrimSpace(v), time.Millisecond); ok {
			hear(wait)
		}
	}
	return at.Add(longest), told
}

// sentAt is the instant of the answer by its sender's clock, where the answer has a date.
func sentAt(h http.Header, at time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return at
}

func clampWait(wait time.Duration) time.Duration {
	if wait <= 0 {
		return Floor
	}
	return min(wait, Furthest)
}

// seconds reads a decimal number of units; one too large for a duration becomes the
// largest, where multiplying would have made it negative.
func seconds(text string, unit time.Duration) (time.Duration, bool) {
	n, ok := decimal(text)
	if !ok {
		return 0, false
	}
	d := n * float64(unit)
	switch {
	case d >= math.MaxInt64:
		return math.MaxInt64, true
	case d <= math.MinInt64:
		return math.MinInt64, true
	}
	return time.Duration(d), true
}

// decimal reads a number written with digits, at most one point and a sign. Names that
// ParseFloat knows too (NaN, Inf) and its hexadecimal and exponent forms are no numbers
// here. Digits beyond the largest float give an infinity, for the caller to clamp.
func decimal(text string) (float64, bool) {
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(n, 0) {
		return 0, false
	}
	return n, true
}

// Instant reads when a limit resets: epoch seconds or milliseconds, RFC 3339, or a
// duration in Go's spelling (6m0s, 250ms) reckoned from at, when the answer's headers
// arrived. The instant may lie in the past; it is in UTC.
func Instant(text string, at time.Time) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if n, ok := decimal(text); ok {
		return epoch(n, at)
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		if t.Unix() < earliest {
			return time.Time{}, false
		}
		return clampInstant(t, at), true
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return clampInstant(at.Add(min(d, Furthest)), at), true
	}
	return time.Time{}, false
}

func epoch(n float64, at time.Time) (time.Time, bool) {
	if n >= inMillis {
		n /= 1000
	}
	if n < earliest {
		return time.Time{}, false
	}
	if n >= inMillis {
		return at.Add(Furthest).UTC(), true
	}
	whole, part := math.Modf(n)
	return clampInstant(time.Unix(int64(whole), int64(part*1e9)), at), true
}

func clampInstant(t, at time.Time) time.Time {
	if last := at.Add(Furthest); t.After(last) {
		t = last
	}
	return t.UTC()
}

// Fraction reads a utilization: a number that is finite and not negative. It may exceed 1.
func Fraction(text string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 || strings.ContainsAny(text, "xX_") {
		return 0, false
	}
	return f + 0, true // +0 makes a negative zero plain
}

// Count reads a whole number that is not negative.
func Count(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	return n, true
}

// WaitSeconds is the wait until an instant in whole seconds, rounded up, for a
// Retry-After that is never too early. It is at least 1: a client told 0 asks at once.
func WaitSeconds(now, until time.Time) int64 {
	wait := until.Sub(now)
	whole := int64(wait / time.Second)
	if wait%time.Second > 0 {
		whole++
	}
	return max(1, whole)
}
