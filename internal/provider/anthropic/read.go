package anthropic

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/wire/limits"
)

const (
	limitPrefix   = "Anthropic-Ratelimit-"
	unifiedPrefix = "unified-"
)

// limitHeaders is what the limit headers of one answer say.
type limitHeaders struct {
	reading account.Reading
	// unified and bucket tell whether there was any header of a subscription's, or of an
	// API key's.
	unified, bucket bool
	// plan are the subscription's windows of the reading.
	plan []account.WindowReading
	// status and reset are the aggregate's; its claim is the reading's.
	status account.WindowStatus
	reset  time.Time
	// spentBuckets are the API key's windows with nothing remaining.
	spentBuckets []account.WindowReading
}

// Read implements provider.Provider. It is about the headers alone: an answer with any
// status may carry them.
//
// The answer counts as charged to paid extra usage when it states that, or when a plan
// window is rejected while extra usage is allowed, since a request is then served from
// that. On a 429 nothing was served; there the same headers only say that extra usage
// would be spent, and Classify tells the refusal.
func (Provider) Read(h http.Header, at time.Time) account.Reading { return readLimits(h, at).reading }

func readLimits(h http.Header, at time.Time) limitHeaders {
	l := limitHeaders{reading: account.Reading{
		At: at, Source: account.FromAnswer,
		Organization: strings.TrimSpace(h.Get("Anthropic-Organization-Id")),
	}}
	var windows []account.WindowReading
	var buckets []bucket
	var extra account.WindowStatus
	inUse := false
	for key, values := range h {
		if len(values) == 0 || len(key) <= len(limitPrefix) || !strings.EqualFold(key[:len(limitPrefix)], limitPrefix) {
			continue
		}
		value := strings.TrimSpace(values[0])
		name := strings.ToLower(key[len(limitPrefix):])
		name, unified := strings.CutPrefix(name, unifiedPrefix)
		if !unified {
			if setBucket(&buckets, name, value, at) {
				l.bucket = true
			}
			continue
		}
		l.unified = true
		switch name {
		case "status":
			l.status = windowStatus(value)
		case "reset":
			l.reset, _ = limits.Instant(value, at)
		case "representative-claim":
			l.reading.Claim = windowOfClaim(value)
		case "overage-status":
			extra = windowStatus(value)
		case "overage-in-use":
			inUse = strings.EqualFold(value, "true")
		default:
			if !aside(name) {
				setWindow(&windows, name, value, at)
			}
		}
	}
	l.plan = l.aggregate(merge(windows))
	l.reading.Overage = l.overage(extra, inUse)
	windows = slices.Clone(l.plan)
	for _, b := range buckets {
		w, ok := b.reading()
		if !ok {
			continue
		}
		windows = append(windows, w)
		if w.HasUtilization && w.Utilization >= 1 {
			l.spentBuckets = append(l.spentBuckets, w)
		}
	}
	slices.SortFunc(windows, func(a, b account.WindowReading) int { return strings.Compare(a.Name, b.Name) })
	l.reading.Windows = windows
	return l
}

// aside reports whether a unified header is about something else than a plan window:
// paid extra usage, the grace and low-priority lanes, offers.
func aside(name string) bool {
	return strings.HasPrefix(name, "overage-") || strings.HasPrefix(name, "grace-") || strings.HasPrefix(name, "slow-") ||
		strings.HasPrefix(name, "fallback") || strings.HasPrefix(name, "upgrade-")
}

// setWindow takes one header of a window in. A value that cannot be read is dropped alone.
func setWindow(windows *[]account.WindowReading, name, value string, at time.Time) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 {
		return
	}
	wire, field := name[:i], name[i+1:]
	w := account.WindowReading{Name: wire}
	at0 := slices.IndexFunc(*windows, func(w account.WindowReading) bool { return w.Name == wire })
	if at0 >= 0 {
		w = (*windows)[at0]
	}
	told := false
	switch field {
	case "status":
		w.Status = windowStatus(value)
		told = w.Status != ""
	case "utilization":
		w.Utilization, w.HasUtilization = limits.Fraction(value)
		told = w.HasUtilization
	case "reset":
		w.ResetAt, told = limits.Instant(value, at)
	}
	switch {
	case !told:
	case at0 >= 0:
		(*windows)[at0] = w
	default:
		*windows = append(*windows, w)
	}
}

// merge gives the windows their names. Should two wire names mean one window, the
// stricter word counts.
func merge(wire []account.WindowReading) []account.WindowReading {
	var out []account.WindowReading
	for _, w := range wire {
		w.Name = windowOf(w.Name)
		i := slices.IndexFunc(out, func(o account.WindowReading) bool { return o.Name == w.Name })
		if i < 0 {
			out = append(out, w)
		} else if stricter(w, out[i]) {
			out[i] = w
		}
	}
	return out
}

func stricter(a, b account.WindowReading) bool {
	if (a.Status == account.Rejected) != (b.Status == account.Rejected) {
		return a.Status == account.Rejected
	}
	if a.Utilization != b.Utilization {
		return a.Utilization > b.Utilization
	}
	return a.ResetAt.After(b.ResetAt)
}

// aggregate applies the aggregate verdict to the window it names, where that window has
// no verdict of its own. Beside per-window verdicts the aggregate says nothing: it looks
// account-wide also where one family's window decided it.
func (l limitHeaders) aggregate(windows []account.WindowReading) []account.WindowReading {
	name := l.reading.Claim
	if l.status == "" || name == "" {
		return windows
	}
	i := slices.IndexFunc(windows, func(w account.WindowReading) bool { return w.Name == name })
	if i < 0 {
		return append(windows, account.WindowReading{Name: name, Status: l.status, ResetAt: l.reset})
	}
	if windows[i].Status == "" {
		windows[i].Status = l.status
		if windows[i].ResetAt.IsZero() {
			windows[i].ResetAt = l.reset
		}
	}
	return windows
}

func (l limitHeaders) overage(extra account.WindowStatus, inUse bool) account.Overage {
	rejected := slices.ContainsFunc(l.plan, func(w account.WindowReading) bool { return w.Status == account.Rejected })
	if !slices.ContainsFunc(l.plan, hasStatus) {
		rejected = l.status == account.Rejected
	}
	available := extra == account.Allowed || extra == account.Warning
	return account.Overage{Available: available, Charged: inUse || (available && rejected)}
}

func hasStatus(w account.WindowReading) bool { return w.Status != "" }

// windowStatus reads a verdict; an unknown word gives no verdict.
func windowStatus(value string) account.WindowStatus {
	switch s := account.WindowStatus(strings.ToLower(value)); s {
	case account.Allowed, account.Warning, account.Rejected:
		return s
	}
	return ""
}

// bucket is one of an API key's limits as the wire tells it.
type bucket struct {
	name                   string
	limit, remaining       int64
	hasLimit, hasRemaining bool
	reset                  time.Time
}

// setBucket takes one header of an API key's limit in, and reports whether it was one.
func setBucket(buckets *[]bucket, name, value string, at time.Time) bool {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 {
		return false
	}
	name, field := name[:i], name[i+1:]
	if field != "limit" && field != "remaining" && field != "reset" {
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
		b.limit, b.hasLimit = limits.Count(value)
	case "remaining":
		b.remaining, b.hasRemaining = limits.Count(value)
	case "reset":
		b.reset, _ = limits.Instant(value, at)
	}
	return true
}

// reading is false when none of the bucket's values could be read.
func (b bucket) reading() (account.WindowReading, bool) {
	w := account.WindowReading{Name: b.name, ResetAt: b.reset}
	switch {
	case b.hasRemaining && b.remaining == 0:
		w.Utilization, w.HasUtilization = 1, true
	case b.hasRemaining && b.hasLimit && b.limit > 0:
		w.Utilization, w.HasUtilization = max(0, 1-float64(b.remaining)/float64(b.limit)), true
	}
	return w, w.HasUtilization || !w.ResetAt.IsZero()
}
