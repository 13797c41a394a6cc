package serving_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/serving"
)

var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

type change func(*pick.Candidate)

// candidate is an account with nothing known of it.
func candidate(name string, changes ...change) pick.Candidate {
	c := pick.Candidate{
		Account: account.Account{ID: account.ID("id-" + name), Name: name, Provider: account.XAI},
		State:   account.State{Windows: map[string]account.Window{}, Blocks: map[string]account.Block{}},
	}
	for _, f := range changes {
		f(&c)
	}
	return c
}

func full(u float64) change { return window(account.Weekly, u) }

func window(name string, u float64) change {
	return func(c *pick.Candidate) {
		c.State.ReadAt = t0
		c.State.Windows[name] = account.Window{Utilization: u, HasUtilization: true, ObservedAt: t0, ResetAt: t0.Add(time.Hour)}
	}
}

func block(b account.Block) change {
	return func(c *pick.Candidate) {
		b.Since, b.Until = t0.Add(-time.Minute), t0.Add(time.Hour)
		c.State.Blocks[b.Cause+b.Family] = b
	}
}

var (
	cooling = block(account.Block{Cause: account.Weekly, Window: account.Weekly})
	paused  = block(account.Block{Cause: account.CauseThrottle})
	guarded = block(account.Block{Cause: account.CauseOverage, Window: account.Weekly})
)

func parked(c *pick.Candidate)  { c.State.Parked = &account.Parked{Since: t0} }
func drained(c *pick.Candidate) { c.Account.Draining = true }

// elsewhereHeld is an account whose data the provider keeps at another host.
func elsewhereHeld(c *pick.Candidate) {
	c.State = c.State.Reject(account.Rejection{Kind: account.Access, At: t0, Feature: account.FeatureRegion}, account.Rules{})
}

func elsewhere(c *pick.Candidate) { c.Serves, c.Allowed, c.Tried = false, false, true }
func withoutOpus(c *pick.Candidate) {
	block(account.Block{Cause: "weekly:opus", Family: "opus"})(c)
	window("weekly:opus", 1)(c)
}

// view is what is known at t0, by the first revision of the catalog.
func view(cs ...pick.Candidate) serving.View {
	return serving.View{
		Now: t0, ReadAt: t0, Catalog: 1, Policy: catalog.Policy{Name: catalog.Order, Threshold: 0.80}, Settings: catalog.Catalog{}.Settings(), Candidates: cs,
	}
}

// record is what the first look at a view leaves, an hour before t0.
func record(t *testing.T, cs ...pick.Candidate) serving.Record {
	t.Helper()
	v := view(cs...)
	v.Now = t0.Add(-time.Hour)
	v.ReadAt = v.Now
	r, worth := serving.Record{}.Next(v)
	if !worth {
		t.Fatal("the first look wrote nothing")
	}
	return r
}

func TestOf(t *testing.T) {
	score := view(candidate("a"))
	score.Policy.Name = catalog.Score
	for _, tt := range []struct {
		name string
		view serving.View
		want int
	}{
		{"the first", view(candidate("a", full(0.79)), candidate("b")), 0},
		{"whatever one client's request needs", view(candidate("a", elsewhere), candidate("b")), 0},
		{"whatever a model family has left", view(candidate("a", withoutOpus), candidate("b")), 0},
		{"not one at the threshold", view(candidate("a", full(0.80)), candidate("b")), 1},
		{"not a drained one", view(candidate("a", drained), candidate("b")), 1},
		{"not a parked one", view(candidate("a", parked), candidate("b")), 1},
		{"the least full over the threshold", view(candidate("a", full(0.95)), candidate("b", full(0.9)), candidate("c", cooling)), 1},
		{"the least full that cools", view(candidate("a", full(0.95), cooling), candidate("b", full(0.9), cooling)), 1},
		{"nobody when overage is guarded", view(candidate("a", guarded)), -1},
		{"nobody without accounts", view(), -1},
		{"nobody under another policy", score, -1},
	} {
		if got := tt.view.Of(""); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func share(u float64) *float64 { return &u }

func TestSwitch(t *testing.T) {
	list := func(cs ...pick.Candidate) []pick.Candidate { return cs }
	for _, tt := range []struct {
		name          string
		before, after []pick.Candidate
		want          string // from, to, mode, reason
	}{
		{"at the threshold", list(candidate("a"), candidate("b")), list(candidate("a", full(0.80)), candidate("b")), "a b reorder quota"},
		{"cools", list(candidate("a"), candidate("b")), list(candidate("a", cooling), candidate("b")), "a b reorder cooldown"},
		{"refuses everything", list(candidate("a"), candidate("b")), list(candidate("a", elsewhereHeld), candidate("b")), "a b reorder cooldown"},
		{"cools and is full", list(candidate("a"), candidate("b")), list(candidate("a", full(1), cooling), candidate("b")), "a b reorder cooldown"},
		{"pauses", list(candidate("a"), candidate("b")), list(candidate("a", paused), candidate("b")), "a b reorder cooldown"},
		{"guards overage", list(candidate("a"), candidate("b")), list(candidate("a", guarded), candidate("b")), "a b reorder cooldown"},
		{"parked", list(candidate("a"), candidate("b")), list(candidate("a", parked), candidate("b")), "a b reorder parked"},
		{"parked, cools and is full", list(candidate("a"), candidate("b")), list(candidate("a", parked, cooling, full(1)), candidate("b")), "a b reorder parked"},
		{"has room again", list(candidate("a", full(0.9)), candidate("b")), list(candidate("a", full(0.1)), candidate("b")), "b a reorder returned"},
		{"has room again as the other cools", list(candidate("a", full(0.9)), candidate("b")), list(candidate("a"), candidate("b", cooling)), "b a reorder returned"},
		{"has room again after the last resort", list(candidate("a", full(1), cooling), candidate("b", cooling)), list(candidate("a"), candidate("b", cooling)), "b a reorder returned"},
		{"not parked any more", list(candidate("a", parked), candidate("b")), list(candidate("a"), candidate("b")), "b a reorder returned"},
		{"the middle one has room again", list(candidate("a", full(0.9)), candidate("b", cooling), candidate("c")), list(candidate("a", full(0.9)), candidate("b"), candidate("c")), "c b reorder returned"},
		{"all over the threshold, and this one is fuller now", list(candidate("a", full(0.85)), candidate("b", full(0.9))), list(candidate("a", full(0.95)), candidate("b", full(0.9))), "a b reorder quota"},
		{"and the one before it again", list(candidate("a", full(0.95)), candidate("b", full(0.9))), list(candidate("a", full(0.95)), candidate("b", full(1.0))), "b a reorder quota"},
		{"put first by hand", list(candidate("a"), candidate("b")), list(candidate("b"), candidate("a")), "a b manual order"},
		{"put first by hand as the other cools", list(candidate("a"), candidate("b")), list(candidate("b"), candidate("a", cooling)), "a b manual order"},
		{"put before one that was passed over", list(candidate("a", full(0.9)), candidate("b"), candidate("c")), list(candidate("a", full(0.9)), candidate("c"), candidate("b")), "b c manual order"},
		{"drained", list(candidate("a"), candidate("b")), list(candidate("a", drained), candidate("b")), "a b manual order"},
		{"resumed", list(candidate("a", drained), candidate("b")), list(candidate("a"), candidate("b")), "b a manual order"},
		{"removed", list(candidate("a"), candidate("b")), list(candidate("b")), "a b manual order"},
		{"removed, and an earlier one has room again", list(candidate("a", full(0.9)), candidate("b")), list(candidate("a")), "b a reorder returned"},
		{"removed, and an earlier one is all there is", list(candidate("a", full(0.9)), candidate("b")), list(candidate("a", full(0.9))), "b a manual order"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := record(t, tt.before...)
			next, worth := old.Next(view(tt.after...))
			if !worth || len(next.Switches) != 1 {
				t.Fatalf("got %v with %d switches, want one", worth, len(next.Switches))
			}
			s := next.Switches[0]
			if got := fmt.Sprintf("%s %s %s %s", s.From.Name, s.To.Name, s.Mode, s.Reason); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if s.N != 1 || !s.At.Equal(t0) || s.From.ID != old.Account || s.To.ID != next.Account || next.Name != s.To.Name {
				t.Errorf("got %+v in %+v, want the first, at %v, between the two", s, next, t0)
			}
			if _, again := next.Next(view(tt.after...)); again {
				t.Error("the same look again is worth a write, want none")
			}
		})
	}
}

func TestSwitchTellsUtilization(t *testing.T) {
	for _, tt := range []struct {
		name     string
		after    []pick.Candidate
		from, to *float64
	}{
		{"both known", []pick.Candidate{candidate("a", full(1-0.19)), candidate("b", window("30d", 0.1), full(0.41))}, share(0.81), share(0.41)},
		{"above full", []pick.Candidate{candidate("a", full(1.08)), candidate("b", full(0))}, share(1.08), share(0)},
		{"never read", []pick.Candidate{candidate("a", cooling), candidate("b")}, nil, nil},
		{"of a family alone", []pick.Candidate{candidate("a", parked), candidate("b", withoutOpus)}, nil, nil},
		{"gone", []pick.Candidate{candidate("b", full(0.5))}, nil, share(0.5)},
	} {
		next, _ := record(t, candidate("a"), candidate("b")).Next(view(tt.after...))
		if len(next.Switches) != 1 {
			t.Fatalf("%s: got %d switches, want 1", tt.name, len(next.Switches))
		}
		if d := cmp.Diff([]*float64{tt.from, tt.to}, []*float64{next.Switches[0].From.Utilization, next.Switches[0].To.Utilization}); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// The threshold alone turns it there and back, and what it was before does not matter.
func TestThresholdAlone(t *testing.T) {
	v := view(candidate("a", full(0.5)), candidate("b", full(0.1)))
	r, _ := serving.Record{}.Next(v)
	if r.Account != "id-a" || len(r.Switches) != 0 {
		t.Fatalf("the first: got %s with %d switches, want a with none", r.Account, len(r.Switches))
	}
	for i, threshold := range []float64{0.30, 0.80} {
		v.Policy.Threshold = threshold
		v.Catalog++
		var worth bool
		if r, worth = r.Next(v); !worth || r.Count() != int64(i)+1 {
			t.Fatalf("threshold %g: got %v and %d switches, want one more", threshold, worth, r.Count())
		}
	}
	want := []serving.Switch{
		{N: 2, At: t0, From: serving.Account{ID: "id-b", Name: "b", Utilization: share(0.1)}, To: serving.Account{ID: "id-a", Name: "a", Utilization: share(0.5)}, Mode: serving.Reorder, Reason: serving.Returned},
		{N: 1, At: t0, From: serving.Account{ID: "id-a", Name: "a", Utilization: share(0.5)}, To: serving.Account{ID: "id-b", Name: "b", Utilization: share(0.1)}, Mode: serving.Reorder, Reason: serving.Quota},
	}
	if d := cmp.Diff(want, r.Switches); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// While nobody serves nothing is written; the switch comes with the next that can.
func TestNobody(t *testing.T) {
	r := record(t, candidate("a"), candidate("b", parked))
	if _, worth := r.Next(view(candidate("a", parked), candidate("b", parked))); worth {
		t.Error("nobody serves: got a write, want none")
	}
	if _, worth := r.Next(view(candidate("a"), candidate("b", parked))); worth {
		t.Error("the same one again: got a write, want none")
	}
	next, _ := r.Next(view(candidate("a", parked), candidate("b")))
	if len(next.Switches) != 1 || next.Switches[0].Reason != serving.Parked {
		t.Errorf("got %+v, want one switch, since a is parked", next.Switches)
	}
}

// Who stands before the serving account is kept up to date without a switch, or the next
// return would be taken for the owner's hand.
func TestAheadFollowsTheList(t *testing.T) {
	r := record(t, candidate("a", full(0.9)), candidate("b"), candidate("c", full(0.9)))
	next, worth := r.Next(view(candidate("c", full(0.9)), candidate("a", full(0.9)), candidate("b")))
	if !worth || len(next.Switches) != 0 || !slices.Equal(next.Ahead, []account.ID{"id-c", "id-a"}) {
		t.Fatalf("got %v, %d switches and %v ahead, want c and a ahead without a switch", worth, len(next.Switches), next.Ahead)
	}
	next, _ = next.Next(view(candidate("c"), candidate("a", full(0.9)), candidate("b")))
	if len(next.Switches) != 1 || next.Switches[0].Reason != serving.Returned {
		t.Errorf("got %+v, want c returned", next.Switches)
	}
}

// What is known less well than what the record was made from writes nothing.
func TestOvertaken(t *testing.T) {
	r := record(t, candidate("a"), candidate("b")) // at t0 less an hour
	made := r.At
	for _, tt := range []struct {
		name    string
		catalog int64
		readAt  time.Time
		want    bool
	}{
		{"an older catalog", 0, t0, false},
		{"the same catalog", 1, t0, true},
		{"a newer catalog", 2, t0, true},
		{"read just before the record was made", 1, made.Add(-1), false},
		{"read as it was made", 1, made, true},
		{"read ten seconds before", 1, made.Add(-10 * time.Second), false},
		{"made by a clock that is wrong", 1, made.Add(-10*time.Second - 1), true},
	} {
		v := view(candidate("a", cooling), candidate("b"))
		v.Catalog, v.ReadAt = tt.catalog, tt.readAt
		if _, worth := r.Next(v); worth != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, worth, tt.want)
		}
	}
}

// A full record leaves its switches to the past, and counts on.
func TestRecordIsBounded(t *testing.T) {
	var past serving.Past
	r := record(t, candidate("a"), candidate("b"))
	const switches = 3*serving.Recent + 2
	for i := range switches {
		if r.Full() {
			past = past.Join(r.Switches)
			past = past.Join(r.Switches) // and another process, too
		}
		v := view(candidate("a", full(0.9)), candidate("b"))
		if i%2 == 1 {
			v = view(candidate("a"), candidate("b"))
		}
		r, _ = r.Next(v)
		if len(r.Switches) > serving.Recent || r.Count() != int64(i)+1 {
			t.Fatalf("got %d switches and a count of %d, want at most %d and %d", len(r.Switches), r.Count(), serving.Recent, i+1)
		}
	}
	history := serving.History(r, past)
	if len(history) != switches {
		t.Fatalf("got %d switches, want %d", len(history), switches)
	}
	for i, s := range history {
		if s.N != int64(switches-i) {
			t.Fatalf("got switch %d at %d, want %d", s.N, i, switches-i)
		}
	}
}

func TestPastIsBounded(t *testing.T) {
	var past serving.Past
	for n := range int64(serving.Kept + 20) {
		past = past.Join([]serving.Switch{{N: n + 1}})
	}
	if len(past.Switches) != serving.Kept || past.Switches[0].N != serving.Kept+20 {
		t.Errorf("got %d from %d on, want %d from %d on", len(past.Switches), past.Switches[0].N, serving.Kept, serving.Kept+20)
	}
}

// However accounts change, the history is a chain: each switch begins where the last one
// ended, the last one ends at who serves, and a manual one is never the rule's.
func TestHistoryIsAChain(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var r serving.Record
		var past serving.Past
		first := ""
		order := []string{"a", "b", "c", "d"}
		for range 40 {
			if rnd.IntN(8) == 0 {
				rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			}
			var cs []pick.Candidate
			for _, name := range order[:1+rnd.IntN(len(order))] {
				var changes []change
				for _, f := range []change{full(rnd.Float64() * 1.1), full(0.8), cooling, paused, parked, drained, guarded} {
					if rnd.IntN(5) == 0 {
						changes = append(changes, f)
					}
				}
				cs = append(cs, candidate(name, changes...))
			}
			if r.Full() {
				past = past.Join(r.Switches)
			}
			v := view(cs...)
			next, worth := r.Next(v)
			if i := v.Of(r.Account); i >= 0 && next.Account != cs[i].Account.ID {
				t.Fatalf("seed %d: got %s, want %s", seed, next.Account, cs[i].Account.ID)
			}
			if !worth && next.Account != r.Account {
				t.Fatalf("seed %d: serving changed and is not worth a write", seed)
			}
			if r = next; first == "" {
				first = r.Name
			}
		}
		at := first
		history := serving.History(r, past)
		slices.Reverse(history)
		for _, s := range history {
			if s.From.Name != at || s.To.Name == at || (s.Mode == serving.Manual) != (s.Reason == serving.Ordered) {
				t.Fatalf("seed %d: got %+v after %s", seed, s, at)
			}
			at = s.To.Name
		}
		if at != r.Name {
			t.Fatalf("seed %d: the history ends at %s, and %s serves", seed, at, r.Name)
		}
	}
}
