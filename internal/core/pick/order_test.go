package pick_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
)

func serves(c *pick.Candidate) { c.Serving = true }

func TestOrder(t *testing.T) {
	overage := block(account.Block{Cause: account.CauseOverage, Window: account.Weekly}, time.Hour)
	throttled := block(account.Block{Cause: account.CauseThrottle}, time.Minute)
	opus := block(account.Block{Cause: "weekly:opus", Family: "opus"}, time.Hour)
	tests := []struct {
		name   string
		cs     []pick.Candidate
		want   string
		reason pick.Reason
		passed string
	}{
		{"the first", []pick.Candidate{candidate("a", fiveHour(0.7)), candidate("b")}, "a", pick.ByOrder, "b:behind"},
		{"1 % below the threshold", []pick.Candidate{candidate("a", fiveHour(0.79)), candidate("b")}, "a", pick.ByOrder, "b:behind"},
		{"exactly at the threshold", []pick.Candidate{candidate("a", fiveHour(0.80)), candidate("b")}, "b", pick.ByOrder, "a:over-threshold"},
		{"any window that binds", []pick.Candidate{candidate("a", fiveHour(0.1), week(0.9, 0.5)), candidate("b")}, "b", pick.ByOrder, "a:over-threshold"},
		{"not another family's", []pick.Candidate{candidate("a", window("weekly:haiku", 0.9, time.Hour)), candidate("b")}, "a", pick.ByOrder, "b:behind"},
		{"back by itself at the reset", []pick.Candidate{candidate("a", window(account.FiveHour, 0.9, -1)), candidate("b")}, "a", pick.ByOrder, "b:behind"},
		{"an unread account keeps its place", []pick.Candidate{candidate("a", fiveHour(0.9)), candidate("b", unread(9)), candidate("c")}, "b", pick.ByOrder, "a:over-threshold c:behind"},
		{"and takes no trial", []pick.Candidate{candidate("a"), candidate("b", unread(0))}, "a", pick.ByOrder, "b:behind"},
		{"load does not count", []pick.Candidate{candidate("a", unseen(500)), candidate("b")}, "a", pick.ByOrder, "b:behind"},
		{"cooling is passed over", []pick.Candidate{candidate("a", cooling(1)), candidate("b")}, "b", pick.ByOrder, "a:cooldown"},
		{"all over the threshold: the least full", []pick.Candidate{candidate("a", fiveHour(0.95)), candidate("b", fiveHour(0.85)), candidate("c", fiveHour(0.90))}, "b", pick.OverThreshold, "a:over-threshold b:over-threshold c:over-threshold"},
		{"equally full: the owner's order", []pick.Candidate{candidate("a", fiveHour(0.95)), candidate("b", fiveHour(0.95))}, "a", pick.OverThreshold, "a:over-threshold b:over-threshold"},
		{"all over the threshold: the serving one keeps to five points", []pick.Candidate{candidate("a", fiveHour(0.90)), candidate("b", fiveHour(0.9499), serves)}, "b", pick.OverThreshold, "a:over-threshold b:over-threshold"},
		{"at five points it gives way", []pick.Candidate{candidate("a", fiveHour(0.90)), candidate("b", fiveHour(0.95), serves)}, "a", pick.OverThreshold, "a:over-threshold b:over-threshold"},
		{"every one cools: the serving one keeps to five points", []pick.Candidate{candidate("a", fiveHour(0.95), cooling(time.Hour)), candidate("b", fiveHour(0.99), cooling(time.Hour), serves)}, "b", pick.LastResort, "a:cooldown b:cooldown"},
		{"what serves gives way to one with room", []pick.Candidate{candidate("a", fiveHour(0.79)), candidate("b", fiveHour(0.81), serves)}, "a", pick.ByOrder, "b:behind"},
		{"over the threshold before cooling, which served", []pick.Candidate{candidate("a", fiveHour(0.90)), candidate("b", fiveHour(0.90), cooling(time.Hour), serves)}, "a", pick.OverThreshold, "a:over-threshold b:cooldown"},
		{"over the threshold before cooling", []pick.Candidate{candidate("a", fiveHour(0.10), cooling(time.Second)), candidate("b", fiveHour(1.5))}, "b", pick.OverThreshold, "a:cooldown b:over-threshold"},
		{"every one cools: the least full", []pick.Candidate{candidate("a", fiveHour(1), cooling(time.Hour)), candidate("b", week(0.99, 0.5), cooling(2*time.Hour))}, "b", pick.LastResort, "a:cooldown b:cooldown"},
		{"pauses and model blocks are cooldowns", []pick.Candidate{candidate("a", fiveHour(0.4), throttled), candidate("b", fiveHour(0.3), opus), candidate("c", fiveHour(0.5), cooling(time.Hour))}, "b", pick.LastResort, "a:paused b:model-blocked c:cooldown"},
		{"a guard of overage holds", []pick.Candidate{candidate("a", overage), candidate("b", fiveHour(1), cooling(time.Hour))}, "b", pick.LastResort, "a:cooldown b:cooldown"},
		{"also behind a longer block", []pick.Candidate{candidate("a", overage, cooling(2*time.Hour)), candidate("b", fiveHour(1), cooling(time.Hour))}, "b", pick.LastResort, "a:cooldown b:cooldown"},
		{"also when it is all there is", []pick.Candidate{candidate("a", overage)}, "none", pick.Nobody, "a:cooldown"},
		{"no guard where overage is allowed", []pick.Candidate{candidate("a", overage, cooling(time.Hour), allowOverage)}, "a", pick.LastResort, "a:cooldown"},
		{"another family's guard does not", []pick.Candidate{candidate("a", cooling(time.Hour), block(account.Block{Cause: account.CauseOverage, Family: "haiku"}, time.Hour))}, "a", pick.LastResort, "a:cooldown"},
		{"never a parked one, nor what it cannot or must not use", []pick.Candidate{candidate("a", parked, cooling(1)), candidate("b", drain, cooling(1)), candidate("c", tried, cooling(1)), candidate("d", denied), candidate("e", foreign)}, "none", pick.Nobody, "a:parked b:draining c:tried d:not-allowed e:not-served"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := pick.Pick(now, order, settings(), ordinary, tt.cs)
			wantChosen(t, tt.cs, d, tt.want)
			if d.Reason != tt.reason || summary(d) != tt.passed {
				t.Errorf("got %q passing over %q, want %q passing over %q", d.Reason, summary(d), tt.reason, tt.passed)
			}
			if d.Trial {
				t.Error("got a trial, want none under order")
			}
		})
	}
}

func TestOrderThreshold(t *testing.T) {
	cs := []pick.Candidate{candidate("a", fiveHour(0.90)), candidate("b")}
	for _, tt := range []struct {
		threshold float64
		want      string
	}{
		{0.90, "b"},
		{0.91, "a"},
		{1, "a"},
	} {
		p := catalog.Policy{Name: catalog.Order, Threshold: tt.threshold}
		wantChosen(t, cs, pick.Pick(now, p, settings(), ordinary, cs), tt.want)
	}
	// None set is the default, 0.80.
	for u, want := range map[float64]string{0.79: "a", 0.80: "b"} {
		cs := []pick.Candidate{candidate("a", fiveHour(u)), candidate("b", fiveHour(0.5))}
		wantChosen(t, cs, pick.Pick(now, catalog.Policy{Name: catalog.Order}, settings(), ordinary, cs), want)
	}
}

// A utilization that was reckoned from what is left may lack a trifle of the threshold that
// it is at.
func TestOrderThresholdInDecimals(t *testing.T) {
	used := func(left float64) float64 { return 1 - left }
	for left, threshold := range map[float64]float64{0.9: 0.1, 0.7: 0.3, 0.2: 0.8, 0.1: 0.9} {
		cs := []pick.Candidate{candidate("a", fiveHour(used(left))), candidate("b")}
		p := catalog.Policy{Name: catalog.Order, Threshold: threshold}
		wantChosen(t, cs, pick.Pick(now, p, settings(), ordinary, cs), "b")
	}
}

// An account comes back by itself at its window's reset, or at the end of its cooldown:
// not a nanosecond before, and nothing has to be remembered for it.
func TestOrderComesBackAtTheInstant(t *testing.T) {
	ends := now.Add(time.Hour)
	rejected := func(c *pick.Candidate) {
		c.State.Windows[account.FiveHour] = account.Window{Status: account.Rejected, ResetAt: ends, ObservedAt: now}
	}
	for name, c := range map[string]pick.Candidate{
		"over the threshold":   candidate("a", window(account.FiveHour, 0.9, time.Hour)),
		"a window rejected":    candidate("a", rejected),
		"cooling":              candidate("a", fiveHour(0.1), cooling(time.Hour)),
		"cooling, read at cap": candidate("a", window(account.FiveHour, 1, time.Hour), cooling(time.Hour)),
		"guarding overage":     candidate("a", block(account.Block{Cause: account.CauseOverage, Window: account.FiveHour}, time.Hour)),
		"paused":               candidate("a", block(account.Block{Cause: account.CauseThrottle}, time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			cs := []pick.Candidate{c, candidate("b", fiveHour(0.5))}
			for at, want := range map[time.Time]string{
				ends.Add(-1): "b",
				ends:         "a",
				ends.Add(1):  "a",
			} {
				wantChosen(t, cs, pick.Pick(at, order, settings(), ordinary, cs), want)
			}
		})
	}
}

// TestOrderBySpecification reckons who serves from the rule's own words, in any number of
// accounts: the first that is usable and below the threshold; else the least full of those
// that are merely over it; else the least full of those that cool and guard nothing.
func TestOrderBySpecification(t *testing.T) {
	each(t, []catalog.Policy{order, {Name: catalog.Order, Threshold: 0.3}, {Name: catalog.Order, Threshold: 1}}, func(t *testing.T, _ *rand.Rand, p catalog.Policy, r pick.Request, cs []pick.Candidate) {
		want, over, cools := -1, -1, -1
		full := make([]float64, len(cs))
		for i, c := range cs {
			_, full[i], _ = pick.Fullest(now, r, c.State)
			st := pick.Stand(now, r, c, settings())
			switch {
			case st.Usable() && full[i] < p.Threshold && want < 0:
				want = i
			case st.Usable() && (over < 0 || full[i] < full[over]):
				over = i
			case st.Blocked() && !guarded(c, r) && (cools < 0 || full[i] < full[cools]):
				cools = i
			}
		}
		if want < 0 {
			want = over
		}
		if want < 0 {
			want = cools
		}
		if got := pick.Pick(now, p, settings(), r, cs).Chosen; got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	})
}
