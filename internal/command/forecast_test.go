package command_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/status"
	"holdfast/internal/store"
)

// weekOf gives an account a weekly window at a figure now, and a steady rate a day before.
func (b *bench) weekOf(name string, now, perDay float64, back time.Duration, reset time.Time) {
	b.t.Helper()
	s := b.open()
	defer shut(b.t, s)
	snap, err := s.Snapshot(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	a, _ := snap.Catalog.Account(name)
	for before := back; before >= time.Hour; before -= time.Hour {
		at := t0.Add(-before)
		used, resets := now-perDay*before.Hours()/24, reset
		if used < -1e-9 {
			continue
		}
		if _, err := s.AddHistory(b.t.Context(), a.ID, store.Point{At: at, Windows: map[string]store.PointWindow{
			account.Weekly: {Utilization: used, ResetAt: resets},
		}}); err != nil {
			b.t.Fatal(err)
		}
	}
	b.fold(name, weekly(0, now, reset))
}

// At dawn an account stands at 88 %, with 33 hours to go, at 16 points a day.
func TestForecast(t *testing.T) {
	b := newBench(t)
	b.must("account", "add", "marlow", "--provider", "anthropic", "--key-env", "KEY")
	reset := t0.Add(33 * time.Hour)
	b.weekOf("marlow", 0.88, 0.16, 5*24*time.Hour, reset)
	f := decode[status.Forecast](t, b.must("forecast", "--json"))
	if len(f.Accounts) != 1 || len(f.Accounts[0].Windows) != 1 || len(f.Providers) != 1 {
		t.Fatalf("got %+v, want one window of one account", f)
	}
	w, p := f.Accounts[0].Windows[0], f.Providers[0]
	if w.DryAt == nil || w.DryAt.Sub(t0.Add(18*time.Hour)).Abs() > time.Minute || math.Abs(w.RateRecent-0.16) > 1e-3 {
		t.Errorf("got dry at %v at %v a day, want in 18 hours at 0.16", w.DryAt, w.RateRecent)
	}
	if p.Demand == nil || math.Abs(*p.Demand-112) > 1 || *p.Allowance != 100 || p.Needed != 2 || p.DryAt == nil {
		t.Errorf("got %+v, want 112 of 100, which takes two accounts", p)
	}
	text := b.must("forecast").stdout
	for _, want := range []string{
		"anthropic: does not fit: demand 112 of 100 points a week, dry on 2027-03-05 04:00Z (in 18h00m), 15h00m before the next reset; the week takes 2 accounts of this size",
		"marlow   weekly  88%  +16%   Fri 04:00Z (18h00m)  Fri 19:00Z (33h00m)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwant in it %q", text, want)
		}
	}
	// In six hours, and after the reset.
	for at, want := range map[string]float64{"6h": 0.92, "2027-03-04T16:00:00Z": 0.92, "1d21h": 0.08} {
		f := decode[status.Forecast](t, b.must("forecast", "--at", at, "--json"))
		if got := f.Accounts[0].Windows[0].Then; got == nil || math.Abs(got.Mid-want) > 1e-3 {
			t.Errorf("--at %s: got %+v, want %v", at, got, want)
		}
	}
	for _, at := range []string{"yesterday", "-3h", "2027-03-04T09:59:00Z", "3", ""} {
		if at != "" {
			b.refuses(2, "--at takes a time", "forecast", "--at", at)
		}
	}
}

func TestForecastOfTwo(t *testing.T) {
	b := newBench(t)
	b.env["OTHER"] = apiKey + "-2"
	b.must("account", "add", "marlow", "--provider", "anthropic", "--key-env", "KEY", "--plan", "max")
	b.must("account", "add", "juniper", "--provider", "anthropic", "--key-env", "OTHER", "--plan", "Max")
	b.weekOf("marlow", 0.40, 0.08, 5*24*time.Hour, t0.Add(2*24*time.Hour))
	b.weekOf("juniper", 0.40, 0.08, 5*24*time.Hour, t0.Add(2*24*time.Hour+time.Hour))
	text := b.must("forecast").stdout
	if want := "anthropic: demand 112 of 200 points a week: fits 1.8 times; cycles are aligned"; !strings.Contains(text, want) {
		t.Errorf("got\n%s\nwant in it %q", text, want)
	}
	// Plans of another size are not added.
	b.env["THIRD"] = apiKey + "-3"
	b.must("account", "add", "wren", "--provider", "anthropic", "--key-env", "THIRD", "--plan", "pro")
	b.weekOf("wren", 0.40, 0.08, 5*24*time.Hour, t0.Add(4*24*time.Hour))
	text = b.must("forecast").stdout
	if want := "anthropic: no forecast for the week: the accounts' plans differ, and how their sizes compare is not known"; !strings.Contains(text, want) {
		t.Errorf("got\n%s\nwant in it %q", text, want)
	}
}

// Where nothing is known, nothing is said.
func TestForecastOfNothing(t *testing.T) {
	b := newBench(t)
	b.must("key", "create", "laptop")
	if text := b.must("forecast").stdout; !strings.Contains(text, "There is no account yet.") {
		t.Errorf("got %q", text)
	}
	b.must("account", "add", "tansy", "--provider", "openai", "--key-env", "KEY")
	text := b.must("forecast").stdout
	if !strings.Contains(text, "openai: no forecast for the week: no account has a weekly window") || !strings.Contains(text, "No window of a length is known of tansy: API keys are paid by use") {
		t.Errorf("got\n%s", text)
	}
	b.must("account", "add", "marlow", "--provider", "anthropic", "--key-env", "KEY")
	b.fold("marlow", weekly(0, 0, t0.Add(24*time.Hour)))
	f := decode[status.Forecast](t, b.must("forecast", "--json"))
	if w := f.Accounts[0].Windows[0]; w.Known || w.Utilization != 0 || w.DryAt != nil {
		t.Errorf("got %+v, want 0 %% and no rate", w)
	}
}
