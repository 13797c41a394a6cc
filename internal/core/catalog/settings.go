package catalog

import (
	"time"

	"holdfast/internal/core/usage"
)

// Settings are the figures in force, defaults and overrides together. Shares are
// fractions.
type Settings struct {
	PinTTL               time.Duration // pin_ttl: idle life of a pin
	BoundPinTTL          time.Duration // bound_pin_ttl: the same for bound conversations
	MoveAfter            time.Duration // move_after: a shorter block moves no pinned conversation
	Reserve              float64       // reserve: share of a week that pacing keeps back
	ShortWindowLine      float64       // short_window_line: where the five-hour window begins to count against an account
	ExcludeLine          float64       // exclude_line: where a window all but excludes an account
	TrialRequests        int64         // trial_requests: how many go to an account never seen before it ranks last
	BackgroundHeadroom   float64       // background_headroom: below this, background traffic yields
	FreshFor             time.Duration // fresh_for: age up to which a reading counts in full
	BarePause            time.Duration // bare_pause: pause after a 429 without limit headers
	ProbeInterval        time.Duration // probe_interval: how often a blocked account may be tried
	PollInterval         time.Duration // poll_interval
	MaxBody              int64         // max_body: bytes, also once decompressed
	UpstreamTimeout      time.Duration // upstream_timeout: from sending a request to the first header of its answer
	KeepAlive            time.Duration // keep_alive: silence after which a stream is kept alive; 0 is off
	WeightExpiring       float64       // weight_expiring
	WeightPace           float64       // weight_pace
	WeightShort          float64       // weight_short
	WeightModel          float64       // weight_model
	ExpensiveModels      []string      // expensive_models: patterns
	DefaultModels        []string      // default_models: patterns
	YieldKnownBackground bool          // yield_known_background
	AllowedOrigins       []string      // allowed_origins: of browsers' pages, as those send them
	Prices               []usage.Price // prices: the owner's own
}
