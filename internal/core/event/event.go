// Package event says what happened: to accounts, to conversations, and by the owner's hand.
//
// # Words
//
// An event is one thing that happened at an instant, of one kind. Changes finds those that
// lie between two states of an account: a cooldown that began or was ended by newer evidence,
// an account that was parked or came back, a window that was reset early, a thing that the
// provider refuses, a login that is not renewed any more. The rest is told by who does it: a
// move, a trial, a command of the owner's.
//
// A pause of seconds is not an event, and neither is a switch, of which package serving keeps
// the history. An event holds ids of accounts and no secret, and no id of a conversation.
package event

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/internal/core/account"
)

// Kind is what sort of thing happened.
type Kind string

// The kinds of events.
const (
	CooldownBegan Kind = "cooldown"
	CooldownEnded Kind = "cooldown-ended"
	Parked        Kind = "parked"
	Unparked      Kind = "unparked"
	EarlyReset    Kind = "early-reset"
	Refusal       Kind = "refusal"
	LoginEnding   Kind = "login-ending"
	Moved         Kind = "moved"
	Trial         Kind = "trial"
	Command       Kind = "command"
)

// Event is one thing that happened. Which fields are set goes by the kind.
type Event struct {
	// At is zero where nothing tells it; it then counts as of when it is written.
	At   time.Time `json:"at,omitzero"`
	Kind Kind      `json:"kind"`
	// Account is the one that it happened to; of a move, the one that the conversation went to.
	Account account.ID `json:"account,omitempty"`
	// From is the account that a conversation left.
	From account.ID `json:"from,omitempty"`
	// What is the cause of a cooldown, the reason of a parking, the window that was reset, the
	// thing that is refused, why a conversation moved, or the owner's command.
	What string `json:"what,omitempty"`
	// Scope narrows a cooldown to a model family, a model or a tier.
	Scope string `json:"scope,omitempty"`
	// Until is when a cooldown or a refusal ends, or a login stops.
	Until time.Time `json:"until,omitzero"`
}

// pause is the longest block that makes no event.
const pause = 6 * time.Minute

// earlyBy is how long before its told reset a window must have emptied, and emptied how far
// it must have fallen, to count as reset early. Providers correct figures by a point or two.
const (
	earlyBy = 10 * time.Minute
	fallen  = 0.05
)

// Changes are the events that lie between two states of one account, the oldest first. A
// block that lapsed by its own end makes no event: its beginning told when.
func Changes(id account.ID, before, after account.State) []Event {
	var all []Event
	for _, key := range slices.Sorted(maps.Keys(after.Blocks)) {
		was, is := before.Blocks[key], after.Blocks[key]
		if is.Pause() || is.Until.Sub(is.Since) <= pause {
			continue
		}
		held := was.Active(is.Since) // when the newer evidence came
		switch {
		case is.Active(is.Since) && !held:
			all = append(all, Event{At: is.Since, Kind: CooldownBegan, Account: id, What: is.Cause, Scope: scope(is), Until: is.Until})
		case was.Active(is.EndedAt) && !is.EndedAt.Equal(was.EndedAt) && is.EndedAt.After(is.Since):
			all = append(all, Event{At: is.EndedAt, Kind: CooldownEnded, Account: id, What: is.Cause, Scope: scope(is)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before.Blocks)) {
		was := before.Blocks[key]
		if _, there := after.Blocks[key]; !there && !after.ClearedAt.Equal(before.ClearedAt) && was.Active(after.ClearedAt) && !was.Pause() && was.Until.Sub(was.Since) > pause {
			all = append(all, Event{At: after.ClearedAt, Kind: CooldownEnded, Account: id, What: was.Cause, Scope: scope(was)})
		}
	}
	switch {
	case after.Parked != nil && (before.Parked == nil || before.Parked.Reason != after.Parked.Reason):
		all = append(all, Event{At: after.Parked.Since, Kind: Parked, Account: id, What: after.Parked.Reason})
	case after.Parked == nil && before.Parked != nil:
		all = append(all, Event{Kind: Unparked, Account: id, What: before.Parked.Reason})
	}
	if after.Ending != nil && (before.Ending == nil || before.Ending.Generation != after.Ending.Generation) {
		all = append(all, Event{At: after.Ending.Since, Kind: LoginEnding, Account: id, What: after.Ending.Reason, Until: after.Ending.Until})
	}
	for _, key := range slices.Sorted(maps.Keys(after.Refuses)) {
		was, is := before.Refuses[key], after.Refuses[key]
		if was.Since.IsZero() || !is.Since.Before(was.Until) && is.Since.After(was.Since) {
			all = append(all, Event{At: is.Since, Kind: Refusal, Account: id, What: cmp.Or(is.Why, key), Scope: key, Until: is.Until})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Windows)) {
		was, is := before.Windows[name], after.Windows[name]
		early := was.HasUtilization && is.HasUtilization && is.ObservedAt.After(was.ObservedAt) &&
			was.ResetAt.Sub(is.ObservedAt) > earlyBy && is.Utilization < was.Utilization-fallen && !account.PerMinute(name)
		if early {
			all = append(all, Event{At: is.ObservedAt, Kind: EarlyReset, Account: id, What: name, Until: was.ResetAt})
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	return all
}

func scope(b account.Block) string {
	var parts []string
	for _, p := range []string{b.Family, b.Model, b.Tier} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if b.Background {
		parts = append(parts, "background")
	}
	return strings.Join(parts, " ")
}

// Sentence says in one sentence what happened. name gives an account's name.
func (e Event) Sentence(name func(account.ID) string) string {
	who := name(e.Account)
	of := ""
	if e.Scope != "" {
		of = " for " + e.Scope
	}
	until := ""
	if !e.Until.IsZero() {
		until = " until " + e.Until.UTC().Format("2006-01-02 15:04Z")
	}
	switch e.Kind {
	case CooldownBegan:
		return fmt.Sprintf("%s cools%s%s (%s)", who, of, until, e.What)
	case CooldownEnded:
		return fmt.Sprintf("%s is back%s before its time: newer evidence shows room (%s)", who, of, e.What)
	case Parked:
		return fmt.Sprintf("%s is parked and needs its owner (%s)", who, e.What)
	case Unparked:
		return fmt.Sprintf("%s is back; it was parked (%s)", who, e.What)
	case EarlyReset:
		return fmt.Sprintf("the window %s of %s was reset early; its reset was told for %s", e.What, who, e.Until.UTC().Format("2006-01-02 15:04Z"))
	case Refusal:
		return fmt.Sprintf("the provider refuses %s something%s%s (%s)", who, of, until, e.What)
	case LoginEnding:
		return fmt.Sprintf("the login of %s is not renewed any more%s; log in again (%s)", who, strings.Replace(until, " until", " and serves until", 1), e.What)
	case Moved:
		return fmt.Sprintf("a conversation moved from %s to %s (%s)", name(e.From), who, e.What)
	case Trial:
		return fmt.Sprintf("%s gets a first request, to learn its limits", who)
	case Command:
		return "the owner: " + e.What
	}
	return string(e.Kind)
}

// Buffer keeps events until they are written. The zero Buffer is ready, and safe for use by
// several goroutines.
type Buffer struct {
	mu     sync.Mutex
	events []Event
}

// most bounds the events that wait for a store which is away; the oldest go first.
const most = 1000

// Add adds events.
func (b *Buffer) Add(events ...Event) {
	if len(events) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, events...)
	if over := len(b.events) - most; over > 0 {
		b.events = slices.Delete(b.events, 0, over)
	}
}

// Any reports whether an event waits.
func (b *Buffer) Any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events) > 0
}

// Take takes all out.
func (b *Buffer) Take() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.events
	b.events = nil
	return all
}
