package pick

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// Standing says whether an account can be used now, and if not why and until when.
type Standing struct {
	// Reason is empty when the account can be used.
	Reason Reason
	// Block is the one that ends last, for Cooldown, Paused and ModelBlocked.
	Block account.Block
	// Refused is what the account refused, for Refuses.
	Refused account.Refused
	// Until is when the reason ends by itself; zero when it does not.
	Until time.Time
}

// Usable reports whether the account can be used.
func (s Standing) Usable() bool { return s.Reason == "" }

// Blocked reports whether an instant, and not its owner or its nature, keeps the account
// out of use.
func (s Standing) Blocked() bool {
	return s.Reason == Cooldown || s.Reason == Paused || s.Reason == ModelBlocked
}

func (s Standing) note() string {
	switch {
	case s.Blocked():
		return s.Block.Cause + " until " + s.Until.UTC().Format(time.RFC3339)
	case s.Reason == Refuses && s.Refused.Why != "":
		return s.Refused.Why + " until " + s.Until.UTC().Format(time.RFC3339)
	case !s.Until.IsZero():
		return "until " + s.Until.UTC().Format(time.RFC3339)
	}
	return ""
}

// Stand says whether a new conversation may be placed on the candidate. Of several
// reasons it gives the one that is hardest to wait out: first what the account cannot do
// or must not, last its blocks, of which the one that ends last counts.
func Stand(now time.Time, r Request, c Candidate, s catalog.Settings) Standing {
	return stand(now, r, c, true)
}

// StandPinned is Stand for a conversation that is pinned to the candidate: draining does
// not matter.
func StandPinned(now time.Time, r Request, c Candidate, s catalog.Settings) Standing {
	return stand(now, r, c, false)
}

func stand(now time.Time, r Request, c Candidate, fresh bool) Standing {
	switch {
	case !c.Serves:
		return Standing{Reason: NotServed}
	case !c.Allowed:
		return Standing{Reason: NotAllowed}
	case c.Tried:
		return Standing{Reason: Tried}
	case c.State.Parked != nil:
		return Standing{Reason: Parked}
	case fresh && c.Account.Draining:
		return Standing{Reason: Draining}
	}
	if refused, yes := c.State.Refused(now, r.Ask()); yes {
		return Standing{Reason: Refuses, Refused: refused, Until: refused.Until}
	}
	b, blocked := Blocked(now, r, c)
	if !blocked {
		return Standing{}
	}
	st := Standing{Reason: Cooldown, Block: b, Until: b.Until}
	switch {
	case b.Pause():
		st.Reason = Paused
	case b.Family != "" || b.Model != "":
		st.Reason = ModelBlocked
	}
	return st
}

// Blocks are those that hold at now for whatever is asked of the candidate, in no particular
// order. A guard of paid overage holds no more once the owner has allowed overage, even if it
// was set before.
func Blocks(now time.Time, c Candidate) []account.Block {
	var active []account.Block
	for _, b := range c.State.Blocks {
		if b.Active(now) && !(c.Account.Overage && guardsOverage(b)) {
			active = append(active, b)
		}
	}
	return active
}

// BlocksFor are those of Blocks that hold for the request.
func BlocksFor(now time.Time, r Request, c Candidate) []account.Block {
	ask := r.Ask()
	return slices.DeleteFunc(Blocks(now, c), func(b account.Block) bool { return !b.Scopes(ask) })
}

// Blocked is the block that keeps the request waiting, of several the one that ends last. It
// is false when none holds. A parking, a drain and a refusal are no blocks: Stand tells them.
func Blocked(now time.Time, r Request, c Candidate) (account.Block, bool) {
	return lastBlock(BlocksFor(now, r, c))
}

func guardsOverage(b account.Block) bool { return b.Cause == account.CauseOverage }

// lastBlock is the block that ends last; of several that end then the first by cause, so
// that the answer is always the same.
func lastBlock(blocks []account.Block) (account.Block, bool) {
	if len(blocks) == 0 {
		return account.Block{}, false
	}
	return slices.MaxFunc(blocks, func(a, b account.Block) int {
		return cmp.Or(a.Until.Compare(b.Until), strings.Compare(b.Cause, a.Cause), strings.Compare(b.Window, a.Window),
			strings.Compare(b.Family, a.Family), strings.Compare(b.Model, a.Model), strings.Compare(b.Tier, a.Tier))
	}), true
}
