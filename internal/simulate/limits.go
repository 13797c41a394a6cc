package simulate

import (
	"net/http"
	"strconv"
	"time"
)

const unifiedPrefix = "anthropic-ratelimit-unified-"

// Window is one window as the unified headers report it.
type Window struct {
	// Name is the header's own word: 5h, 7d, 7d_oi, overage.
	Name string
	// Status is allowed, allowed_warning or rejected; empty leaves the line out.
	Status string
	// Utilization is a fraction: 0 empty, 1 full, above 1 possible. NoUtilization leaves
	// the line out.
	Utilization   float64
	NoUtilization bool
	// ResetAt is sent in epoch seconds; zero leaves the line out.
	ResetAt time.Time
	// Surpassed is the highest warning line crossed, such as 0.75; zero leaves it out.
	Surpassed float64
}

// Unified is what a subscription's answer says of its limits. Fields left empty are left
// out of the headers, as Anthropic leaves out what it doesn't tell.
type Unified struct {
	// Status is the verdict over all windows; Claim the window that decided it
	// (five_hour, seven_day, seven_day_overage_included); ResetAt that window's reset.
	Status, Claim string
	ResetAt       time.Time
	Windows       []Window
	// OverageStatus and OverageDisabled are about paid extra usage; OverageInUse that this
	// answer was charged to it.
	OverageStatus, OverageDisabled string
	OverageInUse                   bool
	// FallbackPercentage is always 0.5 where it is seen; zero leaves it out.
	FallbackPercentage float64
}

// Header renders the limits, with the precision Anthropic uses (utilizations to 1 %).
func (u Unified) Header() http.Header {
	h := http.Header{}
	put := func(name, value string) {
		if value != "" {
			h.Set(unifiedPrefix+name, value)
		}
	}
	put("status", u.Status)
	put("reset", epoch(u.ResetAt))
	put("representative-claim", u.Claim)
	if u.FallbackPercentage != 0 {
		put("fallback-percentage", decimal(u.FallbackPercentage))
	}
	for _, w := range u.Windows {
		put(w.Name+"-status", w.Status)
		put(w.Name+"-reset", epoch(w.ResetAt))
		if !w.NoUtilization {
			put(w.Name+"-utilization", decimal(w.Utilization))
		}
		if w.Surpassed != 0 {
			put(w.Name+"-surpassed-threshold", decimal(w.Surpassed))
		}
	}
	put("overage-status", u.OverageStatus)
	put("overage-disabled-reason", u.OverageDisabled)
	if u.OverageInUse {
		put("overage-in-use", "true")
	}
	return h
}

// Bucket is one per-minute limit of an API key.
type Bucket struct {
	// Name is requests, tokens, input-tokens or output-tokens.
	Name             string
	Limit, Remaining int64
	ResetAt          time.Time
}

// KeyLimits is what an API key's answer says of its limits.
type KeyLimits []Bucket

// Header renders the limits; resets are RFC 3339 in UTC.
func (l KeyLimits) Header() http.Header {
	h := http.Header{}
	for _, b := range l {
		name := "anthropic-ratelimit-" + b.Name
		h.Set(name+"-limit", strconv.FormatInt(b.Limit, 10))
		h.Set(name+"-remaining", strconv.FormatInt(b.Remaining, 10))
		h.Set(name+"-reset", b.ResetAt.UTC().Format(time.RFC3339))
	}
	return h
}

func epoch(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.Unix(), 10)
}

// decimal writes a fraction to two places, with at least one: 0.0, 0.5, 1.01.
func decimal(f float64) string {
	s := strconv.FormatFloat(f, 'f', 2, 64)
	if s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	return s
}
