package openai

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/wire/limits"
)

const (
	bucketPrefix = "X-Ratelimit-"
	planPrefix   = "X-Codex-"
)

// limitHeaders is what the limit headers of one answer say.
type limitHeaders struct {
	reading account.Reading
	// plan are a plan's windows, and bucket tells whether there was any header of a key's.
	plan   []planWindow
	bucket bool
	// active is the id of the limit that a refusal is about, as headers spell it; empty
	// when not told.
	active string
	// spentBuckets are a key's windows with nothing remaining, and untoldBuckets those that
	// are not full and do not say what remains.
	spentBuckets, untoldBuckets []account.WindowReading
}

// Read implements provider.Provider. It is about the headers alone: an answer with any
// status may carry them. A key's limits are absent for some models and times, which says
// nothing about them.
//
// Extra usage stands ready where the plan has credits, which are drawn on once a window
// is full.
func (Provider) Read(h http.Header, at time.Time) account.Reading { return readLimits(h, at).reading }

func readLimits(h http.Header, at time.Time) limitHeaders {
	l := limitHeaders{
		reading: account.Reading{
			At: at, Source: account.FromAnswer,
			Organization: strings.TrimSpace(h.Get("Openai-Organization")),
		},
		plan:   planWindows(h, at),
		active: limitID(h.Get(planPrefix + "Active-Limit")),
	}
	l.reading.Overage.Available = credits(isTrue(h.Get(planPrefix+"Credits-Has-Credits")),
		isTrue(h.Get(planPrefix+"Credits-Unlimited")), h.Get(planPrefix+"Credits-Balance"))
	for _, w := range l.plan {
		l.reading.Windows = append(l.reading.Windows, w.WindowReading)
	}
	var buckets []bucket
	for name, values := range h {
		if len(values) > 0 && len(name) > len(bucketPrefix) && strings.EqualFold(name[:len(bucketPrefix)], bucketPrefix) {
			l.bucket = setBucket(&buckets, strings.ToLower(name[len(bucketPrefix):]), strings.TrimSpace(values[0]), at) || l.bucket
		}
	}
	for _, b := range buckets {
		w, ok := b.reading()
		if !ok {
			continue
		}
		l.reading.Windows = append(l.reading.Windows, w)
		if w.HasUtilization && w.Utilization >= 1 {
			l.spentBuckets = append(l.spentBuckets, w)
		} else if !b.hasRemaining && w.ResetAt.After(at) {
			l.untoldBuckets = append(l.untoldBuckets, w)
		}
	}
	slices.SortFunc(l.reading.Windows, func(a, b account.WindowReading) int { return strings.Compare(a.Name, b.Name) })
	return l
}

// credits reports whether a plan's credits can pay for what its windows do not. The
// balance is a text that may be empty; only one that reads as nothing rules them out.
func credits(has, unlimited bool, balance string) bool {
	if unlimited {
		return true
	}
	left, err := strconv.ParseFloat(strings.TrimSpace(balance), 64)
	return has && (err != nil || left > 0)
}

// bucket is one of a key's limits as the wire tells it.
type bucket struct {
	name                   string
	limit, remaining       int64
	hasLimit, hasRemaining bool
	reset                  time.Time
}

// setBucket takes one header of a key's limit in, by the rest of its name such as
// remaining-project-tokens, and reports whether it was one.
func setBucket(buckets *[]bucket, name, value string, at time.Time) bool {
	field, name, ok := strings.Cut(name, "-")
	if !ok || name == "" || (field != "limit" && field != "remaining" && field != "reset") {
		return false
	}
	n := slices.IndexFunc(*buckets, func(b bucket) bool { return b.name == name })
	if n < 0 {
		n = len(*buckets)
		*buckets = append(*buckets, bucket{name: name})
	}
	b := &(*buckets)[n]
	switch field {
	case "limit":
		b.limit, b.hasLimit = count(value)
	case "remaining":
		b.remaining, b.hasRemaining = count(value)
	case "reset":
		if b.reset, ok = limits.Instant(value, at); !ok {
			b.reset, _ = after(value, at) // a bare number of seconds
		}
	}
	return true
}

// count reads a whole number, possibly with commas between its thousands.
func count(text string) (int64, bool) {
	groups := strings.Split(strings.TrimSpace(text), ",")
	for _, g := range groups[1:] {
		if len(g) != 3 || groups[0] == "" {
			return 0, false
		}
	}
	return limits.Count(strings.Join(groups, ""))
}

// reading is false when none of the bucket's values says anything. A limit of nothing is
// how an absent one has been told. The reset is when the bucket is full again, which may
// be far off while much remains.
func (b bucket) reading() (account.WindowReading, bool) {
	w := account.WindowReading{Name: b.name, ResetAt: b.reset}
	switch {
	case b.hasLimit && b.limit == 0:
	case b.hasRemaining && b.remaining == 0:
		w.Utilization, w.HasUtilization = 1, true
	case b.hasRemaining && b.hasLimit:
		w.Utilization, w.HasUtilization = max(0, 1-float64(b.remaining)/float64(b.limit)), true
	}
	return w, w.HasUtilization || !w.ResetAt.IsZero()
}
