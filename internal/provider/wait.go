package provider

import (
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/wire/limits"
)

// storePause is the wait told when the store was away and nothing else is known.
const storePause = 2 * time.Second

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

// Wait puts a refusal's wait into the two headers that the clients of every provider read.
//
// Clients retry by themselves: the SDKs a 408, a 409, a 429 and every 5xx, Claude Code a 401
// too, for minutes in which it shows nothing. They sit a Retry-After out up to a minute and
// take shorter pauses of their own where it is longer. So a refusal that does not end by
// itself within moments says not to retry, and its message is shown at once.
func (r Refusal) Wait(h http.Header, now time.Time) {
	if until := r.Until(now); !until.IsZero() {
		h.Set("Retry-After", strconv.FormatInt(limits.WaitSeconds(now, until), 10))
	}
	if r.final() {
		h.Set("X-Should-Retry", "false")
	}
}

// final reports whether sending the same request again at once is useless. Of the statuses
// below 500, and of 503, all are but those that pass: a pause, background traffic that yields,
// a gateway that is busy, a store that is away, a login that is being renewed. The other
// statuses leave it to the client.
func (r Refusal) final() bool {
	switch r.Kind {
	case Paused, Yielded, Busy, StoreUnavailable, UpstreamUnreachable:
		return false
	default:
		return r.Status < http.StatusInternalServerError || r.Status == http.StatusServiceUnavailable
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
