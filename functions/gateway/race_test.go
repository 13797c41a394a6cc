package main_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// TestRace: two functions on one table get the first requests of the same conversations at
// the same instant, and in every third round the processes of one of them are killed while
// they serve. Every conversation ends on one account, and stays there.
func TestRace(t *testing.T) {
	const rounds, requests = 30, 3 // requests at each function
	b := functiontest.New(t)
	one, two := b.Account("one", 0.20), b.Account("two", 0.20)
	first, second := b.Serve(), b.Serve()
	placed := map[string]int{}
	for round := range rounds {
		b.Upstream.Forget()
		// Nobody is answered before all have been sent on, so that nobody can know the pin
		// from an answer.
		all := upstreamtest.NewGate()
		for _, a := range []*upstreamtest.Account{one, two} {
			a.Always(upstreamtest.Good(b.Limits(0.20)).With(upstreamtest.Held(all)))
		}
		turn := functiontest.Request{Session: fmt.Sprintf("round %d", round)}
		replies := make([]functiontest.Reply, 2*requests)
		errs := make([]error, len(replies))
		var sent sync.WaitGroup
		for i := range replies {
			f := first
			if i%2 == 1 {
				f = second
			}
			sent.Go(func() { replies[i], errs[i] = f.Ask(t.Context(), turn) })
		}
		arrived, err := b.Upstream.Await(t.Context(), len(replies))
		if err != nil {
			t.Fatal(err)
		}
		kill := round%3 == 2
		if kill {
			if err := second.Close(); err != nil {
				t.Fatal(err)
			}
			second = b.Serve()
		}
		all.Release()
		sent.Wait()

		home := arrived[0].Account
		for _, r := range arrived {
			if r.Account != home {
				t.Errorf("round %d: got requests on accounts %s and %s, want one account", round, home, r.Account)
			}
		}
		pins := map[string]int{}
		for i, got := range replies {
			if kill && i%2 == 1 {
				if errs[i] == nil && got.Err == nil && got.Status == http.StatusOK {
					t.Errorf("round %d, request %d: got a whole answer from a process that was killed", round, i)
				}
				continue
			}
			if errs[i] != nil || got.Err != nil || got.Status != http.StatusOK || got.Account() != home {
				t.Errorf("round %d, request %d: got %d from account %q (%v, %v), want 200 from account %s", round, i, got.Status, got.Account(), errs[i], got.Err, home)
			}
			pins[got.Pin()]++
		}
		if !kill && (pins["new"] != 1 || pins["kept"] != len(replies)-1) {
			t.Errorf("round %d: got pins %v, want one new and all others kept", round, pins)
		}
		for i, f := range []*functiontest.Function{first, second} {
			if got := f.Served(t, turn); got.Account() != home || got.Pin() != "kept" {
				t.Errorf("round %d, afterwards at function %d: got account %s, pin %s; want account %s, kept", round, i, got.Account(), got.Pin(), home)
			}
		}
		placed[home]++
	}
	pins, err := b.Store.Pins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(pins) != rounds {
		t.Errorf("got %d pins, want %d", len(pins), rounds)
	}
	if placed["one"] == 0 || placed["two"] == 0 {
		t.Errorf("got conversations placed as %v, want some on each account, or the races prove nothing", placed)
	}
}
