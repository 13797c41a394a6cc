package gateway

import (
	"context"
	"time"

	"holdfast/internal/core/event"
	"holdfast/internal/core/pin"
	"holdfast/internal/core/placement"
)

// securePin claims, moves or touches the pin as the plan says. It is false when another
// process changed it; x.sit.Pin is then the winner's.
func (x *exchange) securePin(p *placement.Plan) (won bool, err error) {
	g, ctx, now := x.g, x.r.Context(), x.g.now()
	a := x.sit.Candidates[p.Chosen].Account
	ttl := x.pinTTL()
	var stored pin.Record
	switch p.Pin {
	case placement.NoPin:
		x.pinSaid = "none"
		return true, nil
	case placement.Keep:
		x.pinSaid = "kept"
		x.keep(*x.sit.Pin, now, ttl)
		return true, nil
	case placement.New:
		stored, won, err = g.store.ClaimPin(ctx, x.who.Key, pin.New(a, x.sit.Bound, now, ttl).Of(x.req.Model), now)
		if won {
			x.sit.Fresh, x.pinSaid = true, "new"
		}
	case placement.Move:
		held := x.sit.Pin.Account
		if x.takeTouch(); x.sit.Pin.Account != held {
			return false, nil // another process moved it before our touch came
		}
		next := x.sit.Pin.Move(a.ID, now, ttl).Of(x.req.Model)
		if x.sit.Fresh {
			next = x.sit.Pin.Rehome(a.ID, now, ttl)
		}
		before := *x.sit.Pin
		stored, won, err = g.store.ReplacePin(ctx, x.who.Key, next)
		if won && !x.sit.Fresh {
			x.pinSaid = "moved"
			g.store.Note(event.Event{At: now, Kind: event.Moved, Account: a.ID, From: held, What: p.Why})
			if x.moved == nil {
				x.moved = &before
			}
		}
	}
	if err != nil {
		return false, err
	}
	x.sit.Pin = &stored
	return won, nil
}

// unpin ends the pin that this exchange made: its conversation's first turn failed before
// any content, so nothing is cached for it.
func (x *exchange) unpin() {
	if x.sit.Fresh {
		x.restorePin()
		x.sit.Pin = nil
	}
}

// restorePin undoes what this exchange did to the pin when no account served it after all:
// the conversation's cache is where it was, and one that has none yet begins anew. It is
// best effort, so a failure has no consequence: the next request plans by what is stored.
func (x *exchange) restorePin() {
	if x.sit.Pin == nil {
		return
	}
	now := x.g.now()
	next := *x.sit.Pin
	switch {
	case x.sit.Fresh:
		next = next.End(now)
		x.pinSaid = "none"
	case x.moved != nil:
		revision := next.Revision
		next = *x.moved
		next.Revision = revision
		if next.Bound { // it may have become so by the answer that undid the move
			next = next.Touch(true, 0, now, x.sit.Settings.BoundPinTTL)
		}
		x.pinSaid = "kept"
	default:
		return
	}
	if _, _, err := x.g.store.ReplacePin(context.WithoutCancel(x.r.Context()), x.who.Key, next); err != nil {
		x.g.log.Warn("restore the pin", "request", x.id, "error", err)
	}
}

func (x *exchange) pinTTL() time.Duration {
	if x.sit.Bound || (x.sit.Pin != nil && x.sit.Pin.Bound) {
		return x.sit.Settings.BoundPinTTL
	}
	return x.sit.Settings.PinTTL
}

// keep counts a request that found its pin, and touches the pin if that is due.
func (x *exchange) keep(p pin.Record, now time.Time, ttl time.Duration) {
	x.g.kept.add(x.who.Key)
	if p.TouchDue(x.sit.Bound, now, ttl) {
		x.beside("touch the pin", x.touch(p, now, ttl))
	}
}

func (x *exchange) touch(p pin.Record, now time.Time, ttl time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		n := x.g.kept.take(x.who.Key)
		stored, won, err := x.g.store.ReplacePin(ctx, x.who.Key, p.Touch(x.sit.Bound, n, now, ttl))
		if n > 0 && (err != nil || !won) {
			x.g.kept.put(x.who.Key, n)
		}
		if err == nil {
			x.touched.Store(&stored)
		}
		return err // a lost race is no error: the winner touched or moved it
	}
}

// takeTouch waits for a touch that runs beside the answer: whatever is written next is made
// from the pin as that left it, or it would lose against ourselves.
func (x *exchange) takeTouch() {
	x.writes.Wait()
	if touched := x.touched.Swap(nil); touched != nil {
		x.sit.Pin = touched
	}
}

// touchLate touches the pin again at the end of an answer that took long: the
// conversation was active until now.
func (x *exchange) touchLate() {
	if x.pinSaid == "none" || x.sit.Pin == nil {
		return
	}
	now, ttl := x.g.now(), x.pinTTL()
	if now.Sub(x.sit.Now) < pin.TouchEvery(ttl) {
		return
	}
	x.takeTouch()
	if p := *x.sit.Pin; p.Live(now) && p.TouchDue(x.sit.Bound, now, ttl) {
		x.beside("touch the pin", x.touch(p, now, ttl))
	}
}
