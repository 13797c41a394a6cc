package gateway_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/event"
	"holdfast/internal/test/upstreamtest"
)

// What a request moved, and what its answer began, is among the events when it has ended.
func TestEventsOfAMove(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(4 * time.Hour)))
	if r := b.served(ask{session: session(1)}); r.pin() != "moved" {
		t.Fatalf("got pin %s", r.pin())
	}
	events, _, err := b.store.Events(t.Context(), b.clock.now().Add(-time.Hour), b.clock.now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	var cooled, moved bool
	for _, e := range events {
		cooled = cooled || e.Kind == event.CooldownBegan && e.Account == account.ID("acc-marlow") && e.What == account.FiveHour
		moved = moved || e.Kind == event.Moved && e.From == "acc-marlow" && e.Account == "acc-juniper" && e.What != ""
	}
	if !cooled || !moved {
		t.Errorf("got %+v, want the cooldown and the move", events)
	}
}
