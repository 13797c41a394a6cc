package account

import (
	"time"
)

// Observe folds a reading in. Per window the newer reading wins; a value the reading
// lacks keeps the old one. A reading newer than a block's evidence that shows the
// block's window open ends the block. placed is the number of placements known when
// the request that brought the reading was sent.
func (s State) Observe(r Reading, placed int64, rules Rules) State {
	if !r.At.After(s.ClearedAt) {
		return s
	}
	s = s.clone()
	if r.Organization != "" {
		s.Organization = r.Organization
	}
	for _, w := range r.Windows {
		s.observeWindow(w, r)
	}
	if !r.Empty() {
		if r.At.After(s.ReadAt) {
			s.ReadAt = r.At
		}
		// A newer reading shows what an older one showed, so this only rises.
		s.LoadSeen = max(s.LoadSeen, placed)
	}
	if r.showsRoom() {
		s.RoomAt = later(s.RoomAt, r.against())
		if s.Parked != nil && s.Parked.Kind == Funds && r.against().After(s.Parked.Since) {
			s.Parked = nil
		}
	}
	s.guardOverage(r, rules)
	s.bound(r.At)
	return s
}

func (s State) observeWindow(w WindowReading, r Reading) {
	old, known := s.Windows[w.Name]
	if w.open() {
		old.OpenAt = later(old.OpenAt, r.against())
		if r.Source == FromPoll {
			old.PollOpenAt = later(old.PollOpenAt, r.against())
		}
		for k, b := range s.Blocks {
			if b.endedBy(w.Name, r.Source) {
				b.EndedAt = later(b.EndedAt, r.against())
				s.Blocks[k] = b
			}
		}
	}
	if known && !r.At.After(old.ObservedAt) {
		s.Windows[w.Name] = old
		return
	}
	next := Window{
		ObservedAt: r.At, Source: r.Source, Status: w.Status, OpenAt: old.OpenAt, PollOpenAt: old.PollOpenAt,
	}
	if known {
		next.Utilization, next.HasUtilization, next.ResetAt = old.Utilization, old.HasUtilization, old.ResetAt
		if old.Lapsed(r.At) {
			next.Utilization, next.ResetAt = 0, time.Time{}
		}
	}
	if w.HasUtilization {
		next.Utilization, next.HasUtilization = min(w.Utilization, mostUtilization), true
	}
	if !w.ResetAt.IsZero() {
		next.ResetAt = w.ResetAt
	}
	s.Windows[w.Name] = next
}

// open reports whether a reading of a window shows that it has room. Without a word of
// the provider and without a figure it shows nothing.
func (w WindowReading) open() bool {
	if w.Status == Rejected {
		return false
	}
	if w.HasUtilization {
		return w.Utilization < 1
	}
	return w.Status != ""
}

// showsRoom reports whether the usage endpoint told, of an account whose every window has
// room, how full it is. That the endpoint answers shows that the credential has access, and
// what it says that there is something to spend: a parking for want of either is over.
func (r Reading) showsRoom() bool {
	if r.Source != FromPoll {
		return false
	}
	told := false
	for _, w := range r.Windows {
		if FamilyOf(w.Name) != "" {
			continue
		}
		if !w.open() {
			return false
		}
		told = told || w.HasUtilization
	}
	return told
}

// endedBy reports whether an open reading of a window from a source is evidence
// against the block. A family's block that a whole-account window caused is ended only
// by the usage endpoint's word on that window, or by the family's own window: an answer
// to another family says nothing about it. No reading ends a pause.
func (b Block) endedBy(window string, source Source) bool {
	switch {
	case b.Pause():
		return false
	case window == b.Window:
		return FamilyOf(window) == b.Family || source == FromPoll
	}
	return b.Family != "" && window == WeeklyOf(b.Family)
}

// openSince is the instant of the newest reading known that is evidence against the
// block.
func (s State) openSince(b Block) time.Time {
	var at time.Time
	for name, w := range s.Windows {
		if b.endedBy(name, FromAnswer) {
			at = later(at, w.OpenAt)
		}
		if b.endedBy(name, FromPoll) {
			at = later(at, w.PollOpenAt)
		}
	}
	return at
}

// guardOverage blocks an account whose next request would be paid beyond the plan,
// unless the owner allowed that: the answer was charged, or a plan window is at its cap
// while overage stands ready.
func (s State) guardOverage(r Reading, rules Rules) {
	if rules.Overage || (!r.Overage.Charged && !r.Overage.Available) {
		return
	}
	guarded := false
	for _, w := range r.Windows {
		if w.Status == Rejected || (w.HasUtilization && w.Utilization >= 1) {
			s.block(Block{Cause: CauseOverage, Window: w.Name, Family: FamilyOf(w.Name), Since: r.At}, w.ResetAt)
			guarded = true
		}
	}
	if r.Overage.Charged && !guarded {
		resetAt := s.Windows[r.Claim].ResetAt
		for _, w := range r.Windows {
			if w.Name == r.Claim && !w.ResetAt.IsZero() {
				resetAt = w.ResetAt
			}
		}
		s.block(Block{Cause: CauseOverage, Window: r.Claim, Family: FamilyOf(r.Claim), Since: r.At}, resetAt)
	}
}

// Served folds in that a request was answered well: newer than the evidence of a block on
// its family, or than the refusal of a thing it asked for, it ends them. at is when the work
// began, since what was refused meanwhile is newer. It counts for what is known when it is
// folded; it is not kept for later, since answers are many.
func (s State) Served(a Ask, at time.Time) State {
	ended := func(b Block) bool {
		return a.Family != "" && b.Family == a.Family && b.Cause == b.Window && at.After(b.EndedAt)
	}
	cloned := false
	for k, b := range s.Blocks {
		if !ended(b) {
			continue
		}
		if !cloned {
			s, cloned = s.clone(), true
		}
		b.EndedAt = at
		s.Blocks[k] = b
	}
	for k, r := range s.Refuses {
		if r.concerns(a) && at.After(r.Since) {
			if !cloned {
				s, cloned = s.clone(), true
			}
			delete(s.Refuses, k)
		}
	}
	return s
}

// Returned folds in that one of placed placements came to nothing, by no fault of the
// account's: it need not count as load. The others do, so it does not look idle for it.
func (s State) Returned(placed int64) State {
	s.LoadSeen = max(s.LoadSeen, min(s.LoadSeen+1, placed))
	return s
}

// Reject folds a rejection in. Kinds that say nothing about the account change nothing.
func (s State) Reject(r Rejection, rules Rules) State {
	if !r.At.After(s.ClearedAt) {
		return s
	}
	if !r.nameable() {
		// Nobody asks for such a model but the one client that made its name up.
		r.Model, r.Family, r.Tier, r.Feature, r.Limit = "", "", "", "", ""
		if r.Kind == Throttle || r.Kind == ModelWindow {
			return s // without its scope it would be of the whole account
		}
	}
	s = s.clone()
	defer s.bound(r.At)
	switch r.Kind {
	case WindowSpent, ModelWindow:
		for _, sp := range r.Spent {
			s.block(Block{Cause: sp.Window, Window: sp.Window, Family: sp.Family, Since: r.At}, sp.ResetAt)
		}
	case Throttle:
		b := Block{Cause: CauseThrottle, Since: r.At, Whole: r.Whole, Background: r.Background}
		switch {
		case r.Tier != "":
			b.Tier, b.Model = r.Tier, r.Model
		case r.PerModel:
			b.Family = r.Family
		}
		s.pause(b, throttleEnd(r))
	case Bare:
		s.bare(r, rules.BarePause)
	case Entitlement, Access, TooLarge:
		s.refuse(r)
	case Funds, BadCredential:
		if r.Generation < s.Generation {
			break // a refusal of a credential that has been replaced since
		}
		if r.Kind == Funds && s.RoomAt.After(r.At) {
			break // a look has shown since that it is over
		}
		if s.Parked == nil || r.At.After(s.Parked.Since) {
			s.Parked = &Parked{Since: r.At, Reason: r.Reason(), Kind: r.Kind, Whole: r.Whole && r.Kind == Funds}
		}
	case Unrenewed, Overload, ClientFault, Network, NotAnswered:
	}
	return s
}

// throttleEnd is the told end of a throttle within [PauseLeast, ThrottleCeiling]. A throttle
// that told nothing, or an end that has passed, lasts PauseFloor.
func throttleEnd(r Rejection) time.Time {
	if !r.Until.After(r.At) {
		return r.At.Add(PauseFloor)
	}
	return earlier(later(r.Until, r.At.Add(PauseLeast)), r.At.Add(ThrottleCeiling))
}

// bare pauses the model; a second model within the pause shows that it is the account.
// A request that named no model shows nothing about any.
func (s State) bare(r Rejection, pause time.Duration) {
	if r.Model == "" {
		return
	}
	for _, b := range s.Blocks {
		if b.Cause == CauseBare && b.Background == r.Background && b.Model != "" && b.Model != r.Model && r.At.Sub(b.Since).Abs() < pause {
			second := later(r.At, b.Since)
			s.pause(Block{Cause: CauseBare, Since: second, Background: r.Background}, second.Add(pause))
		}
	}
	until := r.At.Add(pause)
	s.pause(Block{Cause: CauseBare, Model: r.Model, Since: r.At, Background: r.Background}, until)
	for k, b := range s.Blocks {
		if b.Cause == CauseBare && b.Model != "" && b.Model != r.Model && !r.At.Before(b.Until) {
			delete(s.Blocks, k) // models come and go; their pauses must not pile up
		}
	}
}

// block adds a block for a spent window under the ceilings of its length.
func (s State) block(b Block, resetAt time.Time) {
	b.Told = resetAt.After(b.Since)
	switch {
	case !b.Told:
		b.Until = b.Since.Add(UntoldCeiling)
	case b.Window == FiveHour:
		b.Until = earlier(resetAt, b.Since.Add(FiveHourCeiling))
	default:
		b.Until = earlier(resetAt, b.Since.Add(ToldCeiling))
	}
	s.extend(b)
}

func (s State) pause(b Block, until time.Time) {
	b.Until = until
	s.extend(b)
}

// extend puts a block in, never shortening one that holds: only evidence ends those. A
// rejection that is folded after a newer one, and before the evidence that came between
// the two, lends the block its end; the newest alone would be truer, and the difference
// is nothing where both told the same reset.
func (s State) extend(b Block) {
	old, ok := s.Blocks[b.key()]
	b.EndedAt = later(old.EndedAt, s.openSince(b))
	if b.ended() {
		return
	}
	if ok && !old.ended() {
		if old.Until.After(b.Until) {
			b.Until, b.Told = old.Until, old.Told
		}
		b.Since, b.Whole = later(b.Since, old.Since), b.Whole || old.Whole
	}
	s.Blocks[b.key()] = b
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Clear folds in the owner's word that the account is to be used again: blocks, refused
// features and the parking end, windows that were read as spent are unknown again, and
// evidence up to at is void.
func (s State) Clear(at time.Time) State {
	s = s.clone()
	clear(s.Blocks)
	clear(s.Refuses)
	for name, w := range s.Windows {
		if w.Status == Rejected || w.Utilization >= 1 {
			delete(s.Windows, name) // it would keep new conversations away as well as a block does
		}
	}
	s.Parked = nil
	s.ClearedAt = later(s.ClearedAt, at)
	return s
}

// LoggedIn folds in a new credential of the owner's: the account is no longer parked,
// and late refusals of older credentials are void. Blocks stay: a login moves no limit.
func (s State) LoggedIn(generation int64) State {
	s = s.clone()
	s.Generation = max(s.Generation, generation)
	s.Parked = nil
	if s.Ending != nil && s.Ending.Generation < generation {
		s.Ending = nil
	}
	return s
}

// Ends folds in that a login goes on and is not renewed any more. It says nothing of a
// credential that has been replaced since.
func (s State) Ends(e Ending) State {
	if e.Generation < s.Generation || s.Ending != nil && s.Ending.Generation >= e.Generation {
		return s
	}
	s.Ending = &e
	return s
}

// Elsewhere folds in that the account's requests go to another host, or are for another
// organization, project or workspace, from at on: whatever was refused before was refused
// there, and whose the limits are is to be learnt anew.
func (s State) Elsewhere(at time.Time) State {
	s = s.Clear(at)
	s.Organization = ""
	return s
}

// Probed folds in that a blocked account is being tried with a real request.
func (s State) Probed(at time.Time) State {
	if at.After(s.ProbedAt) {
		s.ProbedAt = at
	}
	return s
}

// Tuning of WorthStoring.
const (
	// utilizationStep is the least change of a utilization worth a write.
	utilizationStep = 0.005
	// resetStep is the least change of a reset worth a write.
	resetStep = time.Minute
	// RedateEvery is how old a stored reading gets while answers confirm it; see Rules.Redate.
	RedateEvery = 5 * time.Minute
)

// WorthStoring reports whether next tells anything that prev, the stored state, does
// not: a reading that changed, any block, mark or parking, or a confirmation after redate.
// Readings that merely repeat the stored one cost no write.
func WorthStoring(prev, next State, redate time.Duration) bool {
	if len(prev.Windows) != len(next.Windows) || len(prev.Blocks) != len(next.Blocks) || len(prev.Refuses) != len(next.Refuses) {
		return true
	}
	for name, w := range next.Windows {
		if windowChanged(prev.Windows[name], w, redate) {
			return true
		}
	}
	for k, b := range next.Blocks {
		o := prev.Blocks[k]
		if !b.Since.Equal(o.Since) || !b.Until.Equal(o.Until) || b.ended() != o.ended() {
			return true
		}
	}
	for k, r := range next.Refuses {
		if o := prev.Refuses[k]; !r.Until.Equal(o.Until) || r.Size != o.Size {
			return true
		}
	}
	parkedChanged := (prev.Parked == nil) != (next.Parked == nil) ||
		(next.Parked != nil && (next.Parked.Reason != prev.Parked.Reason || !next.Parked.Since.Equal(prev.Parked.Since)))
	return parkedChanged || endingChanged(prev.Ending, next.Ending) ||
		next.LoadSeen != prev.LoadSeen ||
		next.Generation != prev.Generation || next.Organization != prev.Organization || next.Principal != prev.Principal ||
		!next.ClearedAt.Equal(prev.ClearedAt) || !next.ProbedAt.Equal(prev.ProbedAt)
}

func endingChanged(prev, next *Ending) bool {
	return (prev == nil) != (next == nil) || (next != nil && (next.Generation != prev.Generation || !next.Until.Equal(prev.Until)))
}

func windowChanged(prev, next Window, redate time.Duration) bool {
	d := next.Utilization - prev.Utilization
	return d >= utilizationStep || d <= -utilizationStep ||
		prev.HasUtilization != next.HasUtilization || prev.Status != next.Status ||
		next.ResetAt.Sub(prev.ResetAt).Abs() >= resetStep ||
		next.ObservedAt.Sub(prev.ObservedAt) >= redate ||
		(next.Source == FromPoll && prev.Source != FromPoll) // the endpoint works: nobody need try the account
}
