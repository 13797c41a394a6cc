package pick_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
)

// now is the instant of every pick here unless a test says otherwise.
var now = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

// settings are the documented defaults.
func settings() catalog.Settings {
	return catalog.Settings{
		Reserve: 0.15, ShortWindowLine: 0.80, ExcludeLine: 0.97, TrialRequests: 3,
		BackgroundHeadroom: 0.15, FreshFor: 10 * time.Minute, PollInterval: 5 * time.Minute,
		WeightExpiring: 1, WeightPace: 1, WeightShort: 1, WeightModel: 1,
		ExpensiveModels: []string{"*fable*"}, DefaultModels: []string{"*sonnet*"},
	}
}

var (
	score = catalog.Policy{Name: catalog.Score}
	reset = catalog.Policy{Name: catalog.SoonestReset}
	order = catalog.Policy{Name: catalog.Order, Threshold: 0.80}
)

// ordinary is a request for a model that no setting singles out.
var ordinary = pick.Request{Key: "k1", Family: "opus", Model: "claude-opus-5"}

type change func(*pick.Candidate)

// candidate is a usable account, read just now, with nothing known of its windows.
func candidate(name string, changes ...change) pick.Candidate {
	c := pick.Candidate{
		Account: account.Account{ID: account.ID("id-" + name), Name: name, Provider: account.Anthropic, Kind: account.Subscription},
		State: account.State{
			ReadAt: now, Windows: map[string]account.Window{}, Blocks: map[string]account.Block{}, Refuses: map[string]account.Refused{},
		},
		Serves: true, Allowed: true,
	}
	for _, f := range changes {
		f(&c)
	}
	return c
}

// window sets a window's utilization; a resetIn of 0 tells no reset.
func window(name string, u float64, resetIn time.Duration) change {
	return func(c *pick.Candidate) {
		w := account.Window{Utilization: u, HasUtilization: true, ObservedAt: now}
		if resetIn != 0 {
			w.ResetAt = now.Add(resetIn)
		}
		c.State.Windows[name] = w
	}
}

// resetNow sets a window that resets at this very instant.
func resetNow(name string, u float64) change {
	return func(c *pick.Candidate) {
		c.State.Windows[name] = account.Window{Utilization: u, HasUtilization: true, ResetAt: now, ObservedAt: now.Add(-time.Hour)}
	}
}

func fiveHour(u float64) change { return window(account.FiveHour, u, 2*time.Hour) }

// week sets the weekly window, elapsed being the share of it that has passed.
func week(u, elapsed float64) change {
	return window(account.Weekly, u, time.Duration((1-elapsed)*float64(account.Week)))
}

func rejected(name string, resetIn time.Duration) change {
	return func(c *pick.Candidate) {
		c.State.Windows[name] = account.Window{Status: account.Rejected, ResetAt: now.Add(resetIn), ObservedAt: now}
	}
}

func block(b account.Block, ends time.Duration) change {
	return func(c *pick.Candidate) {
		b.Since, b.Until = now.Add(-time.Minute), now.Add(ends)
		c.State.Blocks[b.Cause+"|"+b.Family+"|"+b.Model] = b
	}
}

func cooling(ends time.Duration) change {
	return block(account.Block{Cause: account.FiveHour, Window: account.FiveHour}, ends)
}

func readAgo(age time.Duration) change {
	return func(c *pick.Candidate) { c.State.ReadAt = now.Add(-age) }
}

// unread is an account never seen on which conversations were placed.
func unread(placed int64) change {
	return func(c *pick.Candidate) {
		clear(c.State.Windows)
		c.State.ReadAt, c.State.LoadSeen, c.Placed = time.Time{}, 0, placed
	}
}

// unseen is load that no reading shows yet, on top of some that one does.
func unseen(n int64) change {
	return func(c *pick.Candidate) { c.State.LoadSeen, c.Placed = 100, 100+n }
}

func allowOverage(c *pick.Candidate) { c.Account.Overage = true }

func drain(c *pick.Candidate)   { c.Account.Draining = true }
func tried(c *pick.Candidate)   { c.Tried = true }
func foreign(c *pick.Candidate) { c.Serves = false }
func denied(c *pick.Candidate)  { c.Allowed = false }
func parked(c *pick.Candidate) {
	c.State.Parked = &account.Parked{Since: now.Add(-time.Hour), Reason: "credit"}
}

// keyed runs a check with several conversation keys, so that no tie is won by luck.
func keyed(t *testing.T, check func(t *testing.T, r pick.Request)) {
	t.Helper()
	for _, key := range []string{"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"} {
		r := ordinary
		r.Key = key
		check(t, r)
	}
}

// nameOf is the chosen account's name, "none" without one.
func nameOf(cs []pick.Candidate, d pick.Decision) string {
	if d.Chosen < 0 {
		return "none"
	}
	return cs[d.Chosen].Account.Name
}

func wantChosen(t *testing.T, cs []pick.Candidate, d pick.Decision, want string) {
	t.Helper()
	if got := nameOf(cs, d); got != want {
		t.Errorf("chosen: got %s, want %s; parts %+v", got, want, d.Parts)
	}
	if len(d.Parts) != len(cs) {
		t.Fatalf("parts: got %d, want %d", len(d.Parts), len(cs))
	}
	for i, c := range cs {
		if d.Parts[i].Account != c.Account.Name {
			t.Errorf("part %d: got account %s, want %s", i, d.Parts[i].Account, c.Account.Name)
		}
	}
}

// summary shows who was passed over and why.
func summary(d pick.Decision) string {
	var b strings.Builder
	for _, p := range d.Parts {
		if p.Passed != "" {
			b.WriteString(p.Account + ":" + string(p.Passed) + " ")
		}
	}
	return strings.TrimSpace(b.String())
}
