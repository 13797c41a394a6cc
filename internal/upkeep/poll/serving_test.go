package poll_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/serving"
)

// TestSwitchWithoutTraffic: with no request to see it, a round finds that another account
// serves under policy order, and writes that down once, also when it is made again.
func TestSwitchWithoutTraffic(t *testing.T) {
	b := newBench(t)
	first := b.login(account.Anthropic, "tansy")
	b.login(account.Anthropic, "thistle").answer(claude(10, 10))
	b.change(func(c catalog.Catalog) (catalog.Catalog, error) {
		return c.SetPolicy(account.Anthropic, catalog.Order, 0.5)
	})
	for _, tt := range []struct {
		fiveHour float64
		switches int
	}{{49, 0}, {50, 1}, {51, 1}, {20, 2}} {
		first.answer(claude(tt.fiveHour, 10))
		if _, err := b.poller().Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		history, err := b.store.Switches(t.Context(), account.Anthropic)
		if err != nil || len(history) != tt.switches {
			t.Fatalf("at %v %%: got %d switches and error %v, want %d", tt.fiveHour, len(history), err, tt.switches)
		}
		b.advance(15 * time.Minute)
	}
	history, _ := b.store.Switches(t.Context(), account.Anthropic)
	for i, want := range []struct {
		from, to string
		full     float64
		reason   serving.Reason
	}{{"thistle", "tansy", 0.10, serving.Returned}, {"tansy", "thistle", 0.50, serving.Quota}} {
		s := history[i]
		if s.From.Name != want.from || s.To.Name != want.to || s.Reason != want.reason || s.From.Utilization == nil || *s.From.Utilization != want.full {
			t.Errorf("switch %d: got %+v, want %+v", s.N, s, want)
		}
	}
}
