package account

import (
	"maps"
	"time"
)

// Window is the newest that is known of one window.
type Window struct {
	Utilization    float64      `json:"utilization"`
	HasUtilization bool         `json:"has_utilization,omitempty"`
	ResetAt        time.Time    `json:"resets_at,omitzero"`
	Status         WindowStatus `json:"status,omitempty"`
	ObservedAt     time.Time    `json:"observed_at"`
	Source         Source       `json:"source,omitempty"`
	// OpenAt is the instant of the newest reading that showed room here, PollOpenAt of the
	// newest such one from the usage endpoint. They outlive the reading, so that an older
	// rejection that is folded late does not begin a block which they have ended.
	OpenAt     time.Time `json:"open_at,omitzero"`
	PollOpenAt time.Time `json:"poll_open_at,omitzero"`
}

// At is the utilization at an instant: a window that has lapsed counts as empty until it is
// read again. It is 0 where none was ever told.
func (w Window) At(now time.Time) float64 {
	if w.Lapsed(now) {
		return 0
	}
	return w.Utilization
}

// LookedAt is when a usage endpoint was last seen to report the window; zero if never.
func (w Window) LookedAt() time.Time {
	if w.Source == FromPoll {
		return later(w.ObservedAt, w.PollOpenAt)
	}
	return w.PollOpenAt
}

// shut is how full a window must be for its reading to keep everybody away, so that nobody
// would ever learn that it has room again: the default of the setting exclude_line.
const shut = 0.97

// Lapsed reports whether what was last read of a window holds no more, and it counts as
// empty until it is read again: its reset has passed; or it was read as full or rejected
// without any reset, which counts for five minutes (UntoldCeiling).
func (w Window) Lapsed(now time.Time) bool {
	if !w.ResetAt.IsZero() {
		return !now.Before(w.ResetAt)
	}
	full := w.Status == Rejected || (w.HasUtilization && w.Utilization >= shut)
	return full && !w.ObservedAt.IsZero() && now.Sub(w.ObservedAt) >= UntoldCeiling
}

// Causes of blocks that are not window names.
const (
	// CauseThrottle and CauseBare are pauses: short, and no word on any allowance.
	CauseThrottle = "throttle"
	CauseBare     = "bare"
	// CauseOverage guards paid extra usage that the owner did not allow.
	CauseOverage = "overage"
)

// Block keeps an account (or one family, or one model on it) out of use.
type Block struct {
	// Cause is a window's name or one of the Cause constants.
	Cause string `json:"cause"`
	// Window is the spent window whose reset or open reading ends the block; empty for pauses.
	Window string `json:"window,omitempty"`
	// Family, Model or Tier narrows the block; with none it is of the whole account.
	Family string `json:"family,omitempty"`
	Model  string `json:"model,omitempty"`
	Tier   string `json:"tier,omitempty"`
	// Background: the block holds for background requests alone.
	Background bool `json:"background,omitempty"`
	// Since is the instant of the newest evidence for the block.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Told is false when the provider gave no reset and Until is our ceiling.
	Told bool `json:"told,omitempty"`
	// Whole: the refusal was of all that the credential's owner has, not of it alone.
	Whole bool `json:"whole,omitempty"`
	// EndedAt is the instant of the newest evidence against it. It is kept after the
	// block ended, so that an older rejection that is folded late cannot revive it.
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// Pause reports whether the block is a pause and not a spent allowance.
func (b Block) Pause() bool { return b.Cause == CauseThrottle || b.Cause == CauseBare }

// Active reports whether the block holds at an instant: up to, and not at, Until, unless
// evidence newer than its own has ended it.
func (b Block) Active(now time.Time) bool { return !b.ended() && now.Before(b.Until) }

// ended reports whether there is newer evidence against the block than for it. At the
// same instant the refusal wins: an answer that was refused, or charged as overage, may
// well show room in its headers.
func (b Block) ended() bool { return b.EndedAt.After(b.Since) }

// Scopes reports whether the block applies to what a request asks.
func (b Block) Scopes(a Ask) bool {
	return (b.Family == "" || b.Family == a.Family) && (b.Model == "" || b.Model == a.Model) &&
		(b.Tier == "" || b.Tier == a.Tier) && (!b.Background || a.Background)
}

func (b Block) key() string {
	window := ""
	if b.Cause != b.Window { // several windows can guard overage, each until its own reset
		window = b.Window
	}
	key := b.Cause + "|" + window + "|" + b.Family + "|" + b.Model
	if b.Tier != "" {
		key += "|tier " + b.Tier
	}
	if b.Background {
		key += "|background"
	}
	return key
}

// Parked says why only the owner can make the account useful again.
type Parked struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
	// Kind is Funds or BadCredential: what the owner is to mend. Empty if not known.
	Kind RejectionKind `json:"kind,omitempty"`
	// Whole: the refusal was of all that the credential's owner has, not of it alone.
	Whole bool `json:"whole,omitempty"`
}

// Reasons of accounts whose own records cannot be read. Nothing is held against them by
// their provider.
const (
	// UnreadableState: what was known of the account is lost; the owner clears it.
	UnreadableState = "unreadable-state"
	// UnreadableCredential: its credential does not open; the owner gives it another.
	UnreadableCredential = "unreadable-credential"
)

// Unreadable is the state of an account one of whose records cannot be read: nobody uses it
// until its owner has mended that.
func Unreadable(s State, reason string) State {
	if s.Parked == nil {
		s.Parked = &Parked{Reason: reason}
	}
	return s
}

// Unreadable reports whether an account is parked for a record that cannot be read.
func (p *Parked) Unreadable() bool {
	return p != nil && (p.Reason == UnreadableState || p.Reason == UnreadableCredential)
}

// Ending says that a login goes on and is not renewed any more: its refresh token will never
// do again, and only its owner can log in anew.
type Ending struct {
	Since time.Time `json:"since"`
	// Until is when its access token ends; zero where that was not told. It may be refused
	// before.
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason"`
	// Generation is the credential's.
	Generation int64 `json:"generation"`
}

// State is what an account's answers have taught us. The zero value is an account
// never seen.
type State struct {
	Windows map[string]Window `json:"windows,omitempty"`
	Blocks  map[string]Block  `json:"blocks,omitempty"`
	// Refuses is what the account does not do for now, by Thing.Key, while it does all else.
	Refuses map[string]Refused `json:"refuses,omitempty"`
	Parked  *Parked            `json:"parked,omitempty"`
	// Ending is set while the login goes on and is not renewed any more.
	Ending *Ending `json:"ending,omitempty"`
	// RoomAt is the instant of the newest look that showed room in every window of the whole
	// account. It outlives the look, so that an older refusal that is folded late does not
	// park an account which the look has shown to be in order.
	RoomAt time.Time `json:"room_at,omitzero"`
	// ReadAt is the instant that the newest reading describes; zero when there was never one.
	ReadAt time.Time `json:"read_at,omitzero"`
	// LoadSeen is the count of placements that the newest reading can have taken into
	// account; placements beyond it are load that no reading shows yet.
	LoadSeen int64 `json:"load_seen,omitempty"`
	// ProbedAt is when a blocked account was last tried with a real request.
	ProbedAt time.Time `json:"probed_at,omitzero"`
	// ClearedAt is when the owner last cleared the account; older evidence is void.
	ClearedAt time.Time `json:"cleared_at,omitzero"`
	// Generation is that of the newest credential known; refusals of older ones are void.
	Generation int64 `json:"generation,omitempty"`
	// Organization is the provider's id of the credential's owner; empty when unknown.
	Organization string `json:"organization,omitempty"`
	// Principal identifies who logged in, as the provider spells it; empty for keys and when
	// unknown.
	Principal string `json:"principal,omitempty"`
}

// Rules are the owner's settings that folding needs.
type Rules struct {
	// BarePause is how long a 429 without limit headers pauses a model.
	BarePause time.Duration
	// Overage is true when paid extra usage is allowed on this account.
	Overage bool
	// FreshFor is how old a reading may be and count in full. Zero stands for its default.
	FreshFor time.Duration
}

// Redate is how old a stored reading gets while answers confirm it: RedateEvery, or half of
// FreshFor where that is shorter, so that a reading that is confirmed stays fresh.
func (r Rules) Redate() time.Duration {
	if r.FreshFor > 0 {
		return min(RedateEvery, r.FreshFor/2)
	}
	return RedateEvery
}

// clone copies the maps that a fold may change.
func (s State) clone() State {
	s.Windows = maps.Clone(s.Windows)
	s.Blocks = maps.Clone(s.Blocks)
	s.Refuses = maps.Clone(s.Refuses)
	if s.Windows == nil {
		s.Windows = map[string]Window{}
	}
	if s.Blocks == nil {
		s.Blocks = map[string]Block{}
	}
	if s.Refuses == nil {
		s.Refuses = map[string]Refused{}
	}
	return s
}

// Seen reports whether there was ever a reading.
func (s State) Seen() bool { return !s.ReadAt.IsZero() }
