package account

import (
	"encoding/json"
	"maps"
	"time"
)

// FeatureMemory is how long a refusal of one thing is remembered.
const FeatureMemory = time.Hour

// FeatureRegion is lacking where the provider keeps the account's data at another host than
// the one that was asked: every request is refused there, so it binds every request.
const FeatureRegion = "region"

// FeatureAddress is lacking where the account serves other addresses than ours, and
// FeatureOrganization where the organization or project that goes out with the account is
// not its credential's. They bind every request too.
const (
	FeatureAddress      = "address"
	FeatureOrganization = "organization"
)

// WhyUnverified is the rule of a refusal for an organization whose owner has not proved who
// they are, as some models ask.
const WhyUnverified = "unverified"

// maxRefused bounds how many refusals of one thing are kept: clients name the models.
const maxRefused = 64

// Ask is what a request asks of an account, as far as a block or a refusal may depend on it.
type Ask struct {
	Family, Model string
	// Tier is the service tier that the client chose; empty for the ordinary one.
	Tier string
	// Features are the entitlements that the request needs beyond an ordinary one.
	Features []string
	// Size is that of the request's body in bytes; 0 where it does not matter.
	Size int64
	// Background requests wait for what other background requests have heard.
	Background bool
	// Again: ask also for a feature, a model or a tier that was refused lately. A request that
	// is larger than a limit stays refused.
	Again bool
}

// Thing is what an account was refused: a feature; a model; a tier of a model; or, with a
// limit, requests for a model that are larger than the limit.
type Thing struct {
	Feature string `json:"feature,omitempty"`
	Model   string `json:"model,omitempty"`
	Tier    string `json:"tier,omitempty"`
	// Limit is the name of a window, such as tokens.
	Limit string `json:"limit,omitempty"`
}

// Key is what the refusal of the thing is stored under.
func (t Thing) Key() string { return t.Feature + "|" + t.Model + "|" + t.Tier + "|" + t.Limit }

// Refused is one thing that an account does not do for now. Everything else it does.
type Refused struct {
	Thing
	// Size is that of the smallest body, in bytes, that is taken to exceed the limit.
	Size int64 `json:"size,omitempty"`
	// Since is the instant of the newest refusal.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Why is the rule that recognized the refusal, for the owner.
	Why string `json:"why,omitempty"`
	// OfOwner: the owner of the account can mend it, or should know of it (Access).
	OfOwner bool `json:"of_owner,omitempty"`
}

// Everything reports whether the account refuses every request.
func (r Refused) Everything() bool {
	return r.Feature == FeatureRegion || r.Feature == FeatureAddress || r.Feature == FeatureOrganization
}

// binds reports whether a request would be refused.
func (r Refused) binds(a Ask) bool {
	switch {
	case r.Limit != "":
		return r.Model == a.Model && a.Size >= r.Size && a.Size > 0
	case a.Again:
		return false
	}
	return r.concerns(a)
}

// concerns reports whether a request asks for the thing.
func (r Refused) concerns(a Ask) bool {
	switch {
	case r.Limit != "":
		return r.Model == a.Model && a.Size >= r.Size
	case r.Everything():
		return true
	case r.Feature != "":
		for _, f := range a.Features {
			if f == r.Feature {
				return true
			}
		}
		return false
	}
	return r.Model == a.Model && (r.Tier == "" || r.Tier == a.Tier)
}

// Refused returns what the account refuses at now of what a request asks; of several the
// one that is remembered longest. It is false where there is nothing.
func (s State) Refused(now time.Time, a Ask) (Refused, bool) {
	var last Refused
	found := false
	for _, r := range s.Refuses {
		if !now.Before(r.Until) || !r.binds(a) {
			continue
		}
		if !found || r.Until.After(last.Until) || (r.Until.Equal(last.Until) && r.Key() < last.Key()) {
			last, found = r, true
		}
	}
	return last, found
}

// Thing is what a rejection is remembered for; the zero Thing for one that is of no single
// thing.
func (r Rejection) Thing() Thing {
	switch {
	case r.Kind == TooLarge:
		return Thing{Model: r.Model, Limit: r.Limit}
	case r.Kind != Entitlement && r.Kind != Access:
		return Thing{}
	case r.Feature != "":
		return Thing{Feature: r.Feature}
	case r.Model == "":
		return Thing{}
	}
	return Thing{Model: r.Model, Tier: r.Tier}
}

// sizeMargin is how much larger than a limit a request must be by its estimate before it is
// not sent: texts differ in how many bytes make a token.
const sizeMargin = 1.25

// largest is the size in bytes from which on requests are taken to exceed a limit. The
// refused request told how many tokens its bytes were; where it did not, its own size is
// all that is known.
func (r Rejection) largest() int64 {
	if r.LimitTokens <= 0 || r.Requested <= r.LimitTokens {
		return r.Size
	}
	estimate := float64(r.Size) * float64(r.LimitTokens) / float64(r.Requested) * sizeMargin
	return min(r.Size, int64(estimate)+1)
}

// refuse remembers that the account does not do one thing for now.
func (s State) refuse(r Rejection) {
	t := r.Thing()
	if t == (Thing{}) || (r.Kind == TooLarge && r.Size <= 0) {
		return
	}
	next := Refused{Thing: t, Since: r.At, Until: r.At.Add(FeatureMemory), Why: r.Reason(), OfOwner: r.Kind == Access}
	if r.Kind == TooLarge {
		next.Size = r.largest()
	}
	if old, ok := s.Refuses[t.Key()]; ok && r.At.Before(old.Until) {
		if next.Size > 0 && old.Size > 0 {
			next.Size = min(next.Size, old.Size)
		}
		if old.Since.After(next.Since) {
			next.Since, next.Until, next.Why, next.OfOwner = old.Since, old.Until, old.Why, old.OfOwner
		}
	}
	maps.DeleteFunc(s.Refuses, func(_ string, old Refused) bool { return !r.At.Before(old.Until) })
	s.Refuses[t.Key()] = next
	if len(s.Refuses) <= maxRefused {
		return
	}
	first := t.Key()
	for k, old := range s.Refuses {
		if f := s.Refuses[first]; old.Until.Before(f.Until) || (old.Until.Equal(f.Until) && k < first) {
			first = k
		}
	}
	delete(s.Refuses, first)
}

// Forget folds in that a refusal of a thing, up to an instant, says nothing of this account:
// every other one refuses it as well.
func (s State) Forget(t Thing, at time.Time) State {
	if r, ok := s.Refuses[t.Key()]; !ok || r.Since.After(at) {
		return s
	}
	s = s.clone()
	delete(s.Refuses, t.Key())
	return s
}

// Reconsidered folds in that the account's owner gave it another credential: what the old
// one was refused may be open to it.
func (s State) Reconsidered() State {
	s = s.clone()
	clear(s.Refuses)
	return s
}

// UnmarshalJSON reads the records of earlier versions too, which knew refused features alone,
// each with the instant until which it counts.
func (s *State) UnmarshalJSON(b []byte) error {
	type plain State
	stored := struct {
		*plain
		Features map[string]time.Time `json:"features"`
	}{plain: (*plain)(s)}
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	for feature, until := range stored.Features {
		r := Refused{Thing: Thing{Feature: feature}, Since: until.Add(-FeatureMemory), Until: until}
		if _, known := s.Refuses[r.Key()]; known {
			continue
		}
		if s.Refuses == nil {
			s.Refuses = map[string]Refused{}
		}
		s.Refuses[r.Key()] = r
	}
	return nil
}
