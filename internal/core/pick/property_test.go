package pick_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
)

var windowNames = []string{
	account.FiveHour, account.Weekly, account.WeeklyOf("opus"), account.WeeklyOf("sonnet"), account.WeeklyOf("fable"), account.Tokens, "30d",
}

// figures are utilizations around every line, beside those in between.
var figures = []float64{0, 0.5, 0.79, 0.80, 0.85, 0.9699, 0.97, 0.98, 0.999, 1, 1.08}

func randomFigure(rnd *rand.Rand) float64 {
	if rnd.IntN(2) == 0 {
		return figures[rnd.IntN(len(figures))]
	}
	return rnd.Float64() * 1.1
}

func randomCandidates(rnd *rand.Rand) []pick.Candidate {
	cs := make([]pick.Candidate, 1+rnd.IntN(5))
	for i := range cs {
		var changes []change
		for _, name := range windowNames {
			if rnd.IntN(2) == 0 {
				in := time.Duration(rnd.Int64N(int64(8*24*time.Hour))) - 12*time.Hour
				changes = append(changes, window(name, randomFigure(rnd), in))
			}
		}
		changes = append(changes, readAgo(time.Duration(rnd.Int64N(int64(time.Hour)))), unseen(rnd.Int64N(4)))
		for _, f := range []change{
			unread(rnd.Int64N(5)), drain, tried, foreign, denied, parked, cooling(time.Hour), cooling(0),
			block(account.Block{Cause: account.CauseThrottle}, time.Minute),
			block(account.Block{Cause: account.CauseOverage, Window: account.Weekly}, time.Hour),
			block(account.Block{Cause: "weekly:opus", Window: "weekly:opus", Family: "opus"}, time.Hour),
		} {
			if rnd.IntN(10) == 0 {
				changes = append(changes, f)
			}
		}
		cs[i] = candidate(fmt.Sprintf("account%d", i), changes...)
	}
	return cs
}

func randomRequest(rnd *rand.Rand) pick.Request {
	family := []string{"opus", "sonnet", "fable", ""}[rnd.IntN(4)]
	return pick.Request{Key: fmt.Sprint(rnd.Uint64()), Family: family, Model: "claude-" + family}
}

// each runs a property over random picks.
func each(t *testing.T, policies []catalog.Policy, property func(t *testing.T, rnd *rand.Rand, p catalog.Policy, r pick.Request, cs []pick.Candidate)) {
	t.Helper()
	for seed := range uint64(4000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		p := policies[rnd.IntN(len(policies))]
		property(t, rnd, p, randomRequest(rnd), randomCandidates(rnd))
		if t.Failed() {
			t.Fatalf("with seed %d under %s", seed, p.Name)
		}
	}
}

func TestNeverOneThatCannotBeUsed(t *testing.T) {
	each(t, []catalog.Policy{score, reset, order}, func(t *testing.T, _ *rand.Rand, p catalog.Policy, r pick.Request, cs []pick.Candidate) {
		d := pick.Pick(now, p, settings(), r, cs)
		usable, blocked := 0, 0
		for _, c := range cs {
			st := pick.Stand(now, r, c, settings())
			if st.Usable() {
				usable++
			}
			if st.Blocked() && !guarded(c, r) {
				blocked++
			}
		}
		if d.Chosen >= 0 {
			c := cs[d.Chosen]
			st := pick.Stand(now, r, c, settings())
			lastResort := p.Name == catalog.Order && usable == 0 && st.Blocked() && !guarded(c, r)
			if !st.Usable() && !lastResort {
				t.Errorf("got %s, which is %q", c.Account.Name, st.Reason)
			}
		}
		want := usable > 0 || (p.Name == catalog.Order && blocked > 0)
		if (d.Chosen >= 0) != want {
			t.Errorf("got %d of %d usable and %d blocked", d.Chosen, usable, blocked)
		}
	})
}

func guarded(c pick.Candidate, r pick.Request) bool {
	return slices.ContainsFunc(pick.BlocksFor(now, pick.Request{Family: r.Family, Model: r.Model}, pick.Of(account.Account{}, c.State)), func(b account.Block) bool {
		return b.Cause == account.CauseOverage
	})
}

func TestInputOrderDoesNotMatter(t *testing.T) {
	each(t, []catalog.Policy{score, reset}, func(t *testing.T, rnd *rand.Rand, p catalog.Policy, r pick.Request, cs []pick.Candidate) {
		first := pick.Pick(now, p, settings(), r, cs)
		want, parts := nameOf(cs, first), map[string]pick.Part{}
		for _, part := range first.Parts {
			parts[part.Account] = part
		}
		rnd.Shuffle(len(cs), func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
		d := pick.Pick(now, p, settings(), r, cs)
		if got := nameOf(cs, d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for _, part := range d.Parts {
			if part != parts[part.Account] {
				t.Errorf("got %+v, want %+v", part, parts[part.Account])
			}
		}
	})
}

// TestMoreUtilizationNeverRanksHigher: an account that is not chosen is not chosen
// either when a window that binds the request is fuller.
func TestMoreUtilizationNeverRanksHigher(t *testing.T) {
	changed := 0
	each(t, []catalog.Policy{score, reset, order}, func(t *testing.T, rnd *rand.Rand, p catalog.Policy, r pick.Request, cs []pick.Candidate) {
		before := pick.Pick(now, p, settings(), r, cs).Chosen
		i := rnd.IntN(len(cs))
		name := windowNames[rnd.IntN(len(windowNames))]
		w, known := cs[i].State.Windows[name]
		if !known || !account.Binds(name, r.Family) {
			return
		}
		w.Utilization += rnd.Float64() * 0.3
		cs[i].State.Windows[name] = w
		after := pick.Pick(now, p, settings(), r, cs).Chosen
		if after == i && before != i {
			t.Errorf("%s with a fuller %s is chosen instead of account%d", cs[i].Account.Name, name, before)
		}
		if after != before {
			changed++
		}
	})
	if changed == 0 {
		t.Error("no fuller window ever turned a pick: the property was not tried")
	}
}

// TestPickChangesNothing: candidates are values.
func TestPickChangesNothing(t *testing.T) {
	each(t, []catalog.Policy{score, reset, order}, func(t *testing.T, _ *rand.Rand, p catalog.Policy, r pick.Request, cs []pick.Candidate) {
		first := fmt.Sprintf("%+v", cs)
		pick.Pick(now, p, settings(), r, cs)
		pick.Yields(now, settings(), r, cs)
		if got := fmt.Sprintf("%+v", cs); got != first {
			t.Errorf("got %s, want %s", got, first)
		}
	})
}

// TestNoScoreIsMinusZero is field case minus-zero: JSON tells a zero from minus zero, which
// means nothing to its reader.
func TestNoScoreIsMinusZero(t *testing.T) {
	empty := candidate("a", window(account.FiveHour, 0, time.Hour), window(account.Weekly, 0, 0))
	never := candidate("b", unread(0))
	for _, name := range catalog.PolicyNames {
		for _, cs := range [][]pick.Candidate{{empty}, {never}, {empty, never}, {empty, empty, never}} {
			d := pick.Pick(now, catalog.Policy{Name: name, Threshold: 0.8}, settings(), pick.Request{Model: "claude-fable-5"}, cs)
			text, err := json.Marshal(d.Parts)
			if err != nil || regexp.MustCompile(`:-0[,}]`).Match(text) {
				t.Errorf("%s: %s %v", name, text, err)
			}
		}
	}
}
