package provider

import (
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/limits"
)

const (
	// patience is how long a wait clients sit out by themselves.
	patience = time.Minute
	// storePause is the wait told when the store was away and nothing else is known.
	storePause = 2 * time.Second
)

// Until is when trying again makes sense, as far as the refusal knows; zero when it does
// not.
func (r Refusal) Until(now time.Time) time.Time {
	switch {
	case !r.RetryAt.IsZero():
		return r.RetryAt
	case r.Kind == Exhausted:
		return r.ResetAt
	case r.Kind == StoreUnavailable:
		return now.Add(storePause)
	}
	return time.Time{}
}

// Wait puts a refusal's wait into the two headers that the SDKs of every provider read.
// They sit a Retry-After out up to a minute and fall back to shorter pauses of their own
// above it; therefore a longer wait, and a refusal that only the owner can end, says not
// to retry.
func (r Refusal) Wait(h http.Header, now time.Time) {
	until := r.Until(now)
	if !until.IsZero() {
		h.Set("Retry-After", strconv.FormatInt(limits.WaitSeconds(now, until), 10))
	}
	hopeless := r.Kind == NoAccount || (r.Kind == Exhausted && until.IsZero())
	if hopeless || (!until.IsZero() && until.Sub(now) > patience) {
		h.Set("X-Should-Retry", "false")
	}
}

// EpochUp is an instant in epoch seconds, rounded up, so that a client that waits for it
// is not early.
func EpochUp(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
