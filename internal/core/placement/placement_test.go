package placement_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/pin"
	"holdfast/internal/core/placement"
)

var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

var rules = account.Rules{BarePause: 5 * time.Second}

// read is a state with a reading: five-hour and weekly utilization, resets far away.
func read(fiveHour, weekly float64) account.State {
	return readAt(t0.Add(-time.Minute), fiveHour, weekly)
}

func readAt(at time.Time, fiveHour, weekly float64) account.State {
	return account.State{}.Observe(account.Reading{At: at, Source: account.FromAnswer, Windows: []account.WindowReading{
		{Name: account.FiveHour, Utilization: fiveHour, HasUtilization: true, ResetAt: t0.Add(4 * time.Hour)},
		{Name: account.Weekly, Utilization: weekly, HasUtilization: true, ResetAt: t0.Add(5 * 24 * time.Hour)},
	}}, 0, rules)
}

// spent is a state whose five-hour window was rejected at an instant.
func spent(at, reset time.Time) account.State {
	return readAt(at.Add(-time.Second), 0.9, 0.2).Reject(account.Rejection{Kind: account.WindowSpent, At: at, Spent: []account.Spent{{Window: account.FiveHour, ResetAt: reset}}}, rules)
}

// charged is of an answer that was served from paid overage, beyond the weekly window.
var charged = account.Reading{
	At: t0.Add(-5 * time.Minute), Source: account.FromAnswer, Claim: account.Weekly, Overage: account.Overage{Charged: true},
	Windows: []account.WindowReading{{Name: account.Weekly, Utilization: 0.9, HasUtilization: true, ResetAt: t0.Add(5 * 24 * time.Hour)}},
}

func paused(at time.Time, wait time.Duration) account.State {
	return read(0.2, 0.2).Reject(account.Rejection{Kind: account.Throttle, At: at, Until: at.Add(wait)}, rules)
}

func parked() account.State {
	return read(0.2, 0.2).Reject(account.Rejection{Kind: account.Funds, At: t0.Add(-time.Minute), Code: "billing_error"}, rules)
}

// lacking is a state that is known to lack the long context.
func lacking(s account.State) account.State {
	return s.Reject(account.Rejection{Kind: account.Entitlement, At: t0, Feature: "long-context"}, rules)
}

// narrow refuses bodies of 1000 bytes and more.
var (
	tooLarge = account.Rejection{Kind: account.TooLarge, At: t0, Model: "claude-opus-5", Limit: account.InputTokens, Size: 1000}
	narrow   = read(0.1, 0.1).Reject(tooLarge, rules)
)

func large(s *placement.Situation) { s.Request.Size = 1000 }

func longContext(s *placement.Situation) { s.Request.Features = []string{"long-context"} }

func overage() account.State {
	return readAt(t0.Add(-time.Hour), 0.2, 0.2).Observe(account.Reading{At: t0.Add(-30 * time.Minute), Overage: account.Overage{Charged: true}, Claim: account.FiveHour, Windows: []account.WindowReading{
		{Name: account.FiveHour, Utilization: 1.01, HasUtilization: true, ResetAt: t0.Add(3 * time.Hour), Status: account.Rejected},
	}}, 0, rules)
}

func candidates(states ...account.State) []pick.Candidate {
	names := []string{"marlow", "juniper", "rowan", "linden"}
	var cs []pick.Candidate
	for i, st := range states {
		cs = append(cs, pick.Candidate{
			Account: account.Account{ID: account.ID(names[i]), Name: names[i], Provider: account.Anthropic, Kind: account.Subscription},
			State:   st, Serves: true, Allowed: true,
		})
	}
	return cs
}

func situation(states ...account.State) placement.Situation {
	return placement.Situation{
		Now: t0, Policy: catalog.Policy{Name: catalog.Score, Threshold: 0.8}, Settings: catalog.Catalog{}.Settings(),
		Request: pick.Request{Key: "k", Family: "opus", Model: "claude-opus-5"}, Candidates: candidates(states...), Pins: true,
	}
}

func pinnedTo(s placement.Situation, name string) placement.Situation {
	p := pin.New(account.Account{ID: account.ID(name), Provider: account.Anthropic}, false, t0.Add(-10*time.Minute), time.Hour)
	p.Revision = 1
	s.Pin = &p
	return s
}

// want is the part of a plan that a case is about.
type want struct {
	step   placement.Step
	who    string // account served by
	pin    placement.PinChange
	probe  bool
	trial  bool
	cause  placement.Cause
	retry  time.Time
	bound  bool
	owners int
}

func check(t *testing.T, s placement.Situation, p placement.Plan, w want) {
	t.Helper()
	if p.Step != w.step {
		t.Fatalf("got step %d (%s, %+v), want %d", p.Step, p.Why, p.Refusal, w.step)
	}
	switch p.Step {
	case placement.Serve:
		if got := s.Candidates[p.Chosen].Account.Name; got != w.who || p.Pin != w.pin || p.Probe != w.probe || p.Trial != w.trial {
			t.Errorf("got %s, pin %d, probe %v, trial %v (%s), want %s, %d, %v, %v", got, p.Pin, p.Probe, p.Trial, p.Why, w.who, w.pin, w.probe, w.trial)
		}
	case placement.Refuse:
		r := p.Refusal
		if r.Cause != w.cause || !r.RetryAt.Equal(w.retry) || r.Bound != w.bound || len(r.Owner) != w.owners {
			t.Errorf("got %+v, want %+v", r, w)
		}
	case placement.HandBack:
	}
}

func TestBegin(t *testing.T) {
	serve := func(who string, change placement.PinChange) want {
		return want{step: placement.Serve, who: who, pin: change}
	}
	order := func(s placement.Situation) placement.Situation {
		s.Policy.Name = catalog.Order
		return s
	}
	tests := []struct {
		name string
		s    placement.Situation
		edit func(*placement.Situation)
		want want
	}{
		{"a new conversation is picked for", situation(read(0.5, 0.9), read(0.1, 0.1)), nil, serve("juniper", placement.New)},
		{"a request without a conversation leaves pins alone", situation(read(0.1, 0.1)), func(s *placement.Situation) { s.Pins = false }, serve("marlow", placement.NoPin)},
		{"an account never seen takes a trial", situation(account.State{}), nil, want{step: placement.Serve, who: "marlow", pin: placement.New, trial: true}},
		{"an aside takes no trial", situation(account.State{}), func(s *placement.Situation) { s.Pins = false }, serve("marlow", placement.NoPin)},

		{"a pinned conversation stays on a full account", pinnedTo(situation(read(1.0, 1.0), read(0, 0)), "marlow"), nil, serve("marlow", placement.Keep)},
		{"an aside follows the pin and does not keep it", pinnedTo(situation(read(1.0, 1.0), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Pins = false }, serve("marlow", placement.NoPin)},
		{"an expired pin does not count", pinnedTo(situation(read(0.9, 0.9), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Pin.ExpiresAt = t0 }, serve("juniper", placement.New)},
		{"a pin that ends a nanosecond later holds", pinnedTo(situation(read(0.9, 0.9), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Pin.ExpiresAt = t0.Add(1) }, serve("marlow", placement.Keep)},
		{"draining moves nobody", pinnedTo(situation(read(0.2, 0.2), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Candidates[0].Account.Draining = true }, serve("marlow", placement.Keep)},
		{"draining takes nobody new", situation(read(0.2, 0.2), read(0.9, 0.9)), func(s *placement.Situation) { s.Candidates[0].Account.Draining = true }, serve("juniper", placement.New)},

		{"a cooldown longer than move_after moves", pinnedTo(situation(spent(t0, t0.Add(time.Minute+1)), read(0, 0)), "marlow"), nil, serve("juniper", placement.Move)},
		{"one of exactly move_after waits", pinnedTo(situation(spent(t0, t0.Add(time.Minute)), read(0, 0)), "marlow"), nil, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(time.Minute)}},
		{"a pause of seconds waits", pinnedTo(situation(paused(t0, 12*time.Second), read(0, 0)), "marlow"), nil, want{step: placement.Refuse, cause: placement.Paused, retry: t0.Add(12 * time.Second)}},
		{"a long pause moves", pinnedTo(situation(paused(t0, 61*time.Second), read(0, 0)), "marlow"), nil, serve("juniper", placement.Move)},
		{"an aside does not move the pin", pinnedTo(situation(spent(t0, t0.Add(time.Hour)), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Pins = false }, serve("juniper", placement.NoPin)},
		{"parked moves", pinnedTo(situation(parked(), read(0, 0)), "marlow"), nil, serve("juniper", placement.Move)},
		{"removed moves", pinnedTo(situation(read(0, 0)), "gone"), nil, serve("marlow", placement.Move)},
		{"a bound conversation does not move", pinnedTo(situation(spent(t0, t0.Add(time.Hour)), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Bound = true }, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(time.Hour), bound: true}},
		{"nor when only its pin is bound", pinnedTo(situation(spent(t0, t0.Add(time.Hour)), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Pin.Bound = true }, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(time.Hour), bound: true}},
		{"bound and parked needs the owner", pinnedTo(situation(parked(), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Bound = true }, want{step: placement.Refuse, cause: placement.NoAccount, bound: true, owners: 1}},
		{"bound and removed is over", pinnedTo(situation(read(0, 0)), "gone"), func(s *placement.Situation) { s.Bound = true }, want{step: placement.Refuse, cause: placement.NoAccount, bound: true}},
		{"a request that must stay is asked anyway", pinnedTo(situation(spent(t0, t0.Add(time.Hour)), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Stay = true }, serve("marlow", placement.Keep)},

		{"all spent: the soonest reset", situation(spent(t0, t0.Add(3*time.Hour)), spent(t0, t0.Add(72*time.Minute))), nil, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(72 * time.Minute)}},
		{"a pause is sooner than a reset", situation(spent(t0, t0.Add(3*time.Hour)), paused(t0, 7*time.Second)), nil, want{step: placement.Refuse, cause: placement.Paused, retry: t0.Add(7 * time.Second)}},
		{"all parked needs the owner", situation(parked(), parked()), nil, want{step: placement.Refuse, cause: placement.NoAccount, owners: 2}},
		{"parked ones do not hide a reset", situation(parked(), spent(t0, t0.Add(time.Hour))), nil, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(time.Hour), owners: 1}},
		{"a feature that the account once refused moves nobody by itself", pinnedTo(situation(lacking(read(0.5, 0.5)), read(0.1, 0.1)), "marlow"), longContext, serve("marlow", placement.Keep)},
		{"a new conversation goes where it was not refused", situation(lacking(read(0.1, 0.1)), read(0.5, 0.5)), longContext, serve("juniper", placement.New)},
		{"and does not lead to a spent account", pinnedTo(situation(lacking(spent(t0, t0.Add(time.Hour))), lacking(read(0.1, 0.1))), "marlow"), longContext, serve("juniper", placement.Move)},
		{"a new conversation whose feature nobody has is picked for all the same", situation(lacking(read(0.5, 0.5)), lacking(read(0.1, 0.1))), longContext, serve("juniper", placement.New)},
		{"where one lacks it and another pauses, the wait", situation(lacking(read(0.5, 0.5)), paused(t0, 12*time.Second)), longContext, want{step: placement.Refuse, cause: placement.Paused, retry: t0.Add(12 * time.Second)}},
		{"where one lacks it and another is spent, the provider is asked", situation(lacking(read(0.5, 0.5)), spent(t0, t0.Add(time.Hour))), longContext, serve("marlow", placement.New)},
		{"a pinned request too large for its account moves", pinnedTo(situation(narrow, read(0.1, 0.1)), "marlow"), large, serve("juniper", placement.Move)},
		{"one that is not too large stays", pinnedTo(situation(narrow, read(0.1, 0.1)), "marlow"), func(s *placement.Situation) { large(s); s.Request.Size-- }, serve("marlow", placement.Keep)},
		{"a bound one too large stays, and hears the provider", pinnedTo(situation(narrow, read(0.1, 0.1)), "marlow"), func(s *placement.Situation) { large(s); s.Bound = true }, serve("marlow", placement.Keep)},
		{"too large everywhere stays", pinnedTo(situation(narrow, narrow), "marlow"), large, serve("marlow", placement.Keep)},
		{"too large for another is no wait for a new one", situation(narrow, read(0.9, 0.9)), large, serve("juniper", placement.New)},
		{"none configured", situation(), nil, want{step: placement.Refuse, cause: placement.NoAccount}},

		{"order asks a spent account when all are spent", order(situation(spent(t0, t0.Add(time.Hour)), spent(t0, t0.Add(2*time.Hour)))), nil, serve("marlow", placement.New)},
		{"but never at paid overage", order(situation(overage())), nil, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(3 * time.Hour)}},
		{"order keeps a pinned conversation when all are spent", order(pinnedTo(situation(spent(t0, t0.Add(time.Hour)), spent(t0, t0.Add(2*time.Hour))), "juniper")), nil, serve("juniper", placement.Keep)},
		{"order moves a pinned one when another has room", order(pinnedTo(situation(read(0, 0), spent(t0, t0.Add(2*time.Hour))), "juniper")), nil, serve("marlow", placement.Move)},

		{"order leaves a pinned conversation on an account over the threshold", order(pinnedTo(situation(read(0.95, 0.9), read(0, 0)), "marlow")), nil, serve("marlow", placement.Keep)},
		{"and starts the next one on another", order(situation(read(0.95, 0.9), read(0, 0))), nil, serve("juniper", placement.New)},
		{"order goes back for new conversations alone", order(pinnedTo(situation(read(0, 0), read(0.1, 0.1)), "juniper")), nil, serve("juniper", placement.Keep)},
		{"order takes the least full over the threshold before one that cools", order(situation(spent(t0, t0.Add(time.Hour)), read(0.95, 0.9), read(0.85, 0.2))), nil, serve("rowan", placement.New)},
		{"order moves a pinned one from where it cools to one over the threshold", order(pinnedTo(situation(spent(t0, t0.Add(time.Hour)), read(0.95, 0.9)), "marlow")), nil, serve("juniper", placement.Move)},
		{"order does not leave a spent account for paid overage", order(pinnedTo(situation(spent(t0, t0.Add(time.Hour)), overage()), "marlow")), nil, serve("marlow", placement.Keep)},
		{"order asks no parked account", order(situation(parked(), parked())), nil, want{step: placement.Refuse, cause: placement.NoAccount, owners: 2}},

		{"a blocked account is tried after probe_interval, beside healthy ones", situation(read(0, 0), spent(t0.Add(-10*time.Minute), t0.Add(time.Hour))), nil, want{step: placement.Serve, who: "juniper", pin: placement.New, probe: true}},
		{"a nanosecond earlier it is not", situation(read(0, 0), spent(t0.Add(-10*time.Minute+1), t0.Add(time.Hour))), nil, serve("marlow", placement.New)},
		{"nor within probe_interval of the last try", situation(read(0, 0), spent(t0.Add(-30*time.Minute), t0.Add(time.Hour)).Probed(t0.Add(-9*time.Minute))), nil, serve("marlow", placement.New)},
		{"a conversation pinned to the only, blocked account tries it", pinnedTo(situation(spent(t0.Add(-10*time.Minute), t0.Add(time.Hour))), "marlow"), nil, want{step: placement.Serve, who: "marlow", pin: placement.Keep, probe: true}},
		{"paid overage is never tried", pinnedTo(situation(overage()), "marlow"), nil, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(3 * time.Hour)}},
		{"a guard of overage that is allowed by now keeps no try back", pinnedTo(situation(spent(t0.Add(-10*time.Minute), t0.Add(time.Hour)).Observe(charged, 0, rules)), "marlow"), func(s *placement.Situation) { s.Candidates[0].Account.Overage = true }, want{step: placement.Serve, who: "marlow", pin: placement.Keep, probe: true}},
		{"order tries no account further down the list", order(situation(read(0, 0), spent(t0.Add(-10*time.Minute), t0.Add(time.Hour)))), nil, serve("marlow", placement.New)},
		{"order tries one further up", order(situation(spent(t0.Add(-10*time.Minute), t0.Add(time.Hour)), read(0, 0))), nil, want{step: placement.Serve, who: "marlow", pin: placement.New, probe: true}},

		{"background yields below 15 % headroom", situation(read(0.86, 0.2)), func(s *placement.Situation) { s.Request.Background = true }, want{step: placement.Refuse, cause: placement.Yielded, retry: t0.Add(4 * time.Hour)}},
		{"at exactly 15 % it does not", situation(read(0.85, 0.2)), func(s *placement.Situation) { s.Request.Background = true }, serve("marlow", placement.New)},
		{"for a pinned conversation its own account counts", pinnedTo(situation(read(0.86, 0.2), read(0, 0)), "marlow"), func(s *placement.Situation) { s.Request.Background = true }, want{step: placement.Refuse, cause: placement.Yielded, retry: t0.Add(4 * time.Hour)}},
		{"interactive requests never yield", situation(read(0.96, 0.2)), nil, serve("marlow", placement.New)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.edit != nil {
				tt.edit(&tt.s)
			}
			check(t, tt.s, placement.Begin(tt.s), tt.want)
		})
	}
}

func TestSubAgent(t *testing.T) {
	parent := pin.New(account.Account{ID: "marlow"}, false, t0, time.Hour)
	tests := []struct {
		name   string
		marlow account.State
		edit   func(*placement.Situation)
		who    string
	}{
		{"starts on its session's account", read(0.79, 0.9), nil, "marlow"},
		{"not at 80 % of the short window", read(0.80, 0.9), nil, "juniper"},
		{"not while that account cools", spent(t0, t0.Add(time.Hour)), nil, "juniper"},
		{"not when the session's pin has ended", read(0.1, 0.9), func(s *placement.Situation) { s.Parent.ExpiresAt = t0 }, "juniper"},
		{"has a pin of its own from then on", read(0.1, 0.9), func(s *placement.Situation) { *s = pinnedTo(*s, "juniper") }, "juniper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := situation(tt.marlow, read(0, 0))
			p := parent
			s.Parent = &p
			if tt.edit != nil {
				tt.edit(&s)
			}
			plan := placement.Begin(s)
			if plan.Step != placement.Serve || s.Candidates[plan.Chosen].Account.Name != tt.who {
				t.Errorf("got %+v, want %s", plan, tt.who)
			}
		})
	}
}

// rejected is the situation after candidate 0 was sent to and said r.
func rejected(s placement.Situation, r account.Rejection) placement.Situation {
	s.Sent = 1
	s.Candidates[0].Tried = true
	s.Candidates[0].State = s.Candidates[0].State.Reject(r, rules)
	return s
}

func TestAfter(t *testing.T) {
	windowSpent := account.Rejection{Kind: account.WindowSpent, At: t0, Family: "opus", Spent: []account.Spent{{Window: account.FiveHour, ResetAt: t0.Add(3 * time.Hour)}}}
	familySpent := account.Rejection{Kind: account.ModelWindow, At: t0, Family: "opus", Spent: []account.Spent{{Window: account.WeeklyOf("opus"), Family: "opus", ResetAt: t0.Add(72 * time.Hour)}}}
	throttled := account.Rejection{Kind: account.Throttle, At: t0, Until: t0.Add(12 * time.Second)}
	longThrottle := account.Rejection{Kind: account.Throttle, At: t0, Until: t0.Add(90 * time.Second)}
	bare := account.Rejection{Kind: account.Bare, At: t0, Model: "claude-opus-5"}
	feature := account.Rejection{Kind: account.Entitlement, At: t0, Feature: "long-context"}
	access := account.Rejection{Kind: account.Access, At: t0, Model: "claude-opus-5"}
	noFunds := account.Rejection{Kind: account.Funds, At: t0, Code: "billing_error"}
	badKey := account.Rejection{Kind: account.BadCredential, At: t0, Code: "authentication_error"}
	unrenewed := func(wait time.Duration) account.Rejection {
		return account.Rejection{Kind: account.Unrenewed, At: t0, Until: t0.Add(wait)}
	}
	healthy := []account.State{read(0.1, 0.1), read(0.1, 0.1)}
	alone := healthy[:1]
	serve := func(change placement.PinChange) want {
		return want{step: placement.Serve, who: "juniper", pin: change}
	}
	back := want{step: placement.HandBack}
	fresh := func(s *placement.Situation) { *s = pinnedTo(*s, "marlow"); s.Fresh = true }
	kept := func(s *placement.Situation) { *s = pinnedTo(*s, "marlow") }
	aside := func(s *placement.Situation) { kept(s); s.Aside = true }
	bound := func(s *placement.Situation) { *s = pinnedTo(*s, "marlow"); s.Bound = true }
	twice := func(s *placement.Situation) { fresh(s); s.Sent = 2 }
	keptLong := func(s *placement.Situation) { kept(s); longContext(s) }

	tests := []struct {
		name   string
		states []account.State
		edit   func(*placement.Situation)
		r      account.Rejection
		want   want
	}{
		{"window: a new conversation goes on at the next account", healthy, fresh, windowSpent, serve(placement.Move)},
		{"window: a kept one moves", healthy, kept, windowSpent, serve(placement.Move)},
		{"window: a bound one is told", healthy, bound, windowSpent, back},
		{"window: with one account its own words", alone, kept, windowSpent, back},
		{"window: with all spent the soonest reset", []account.State{read(0.1, 0.1), spent(t0, t0.Add(72*time.Minute))}, kept, windowSpent, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(72 * time.Minute)}},
		{"window: also when the answer at hand names it", []account.State{read(0.1, 0.1), spent(t0, t0.Add(4*time.Hour))}, kept, windowSpent, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(3 * time.Hour)}},
		{"window: a parked account beside it is named", []account.State{read(0.1, 0.1), parked()}, kept, windowSpent, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(3 * time.Hour), owners: 1}},
		{"window: a second account may follow the first", []account.State{read(0.1, 0.1), read(0.1, 0.1)}, twice, windowSpent, serve(placement.Move)},
		{"window: never a fourth send", healthy, func(s *placement.Situation) { fresh(s); s.Sent = 3 }, windowSpent, want{step: placement.Refuse, cause: placement.Busy}},
		{"window: after the third with nobody left the soonest reset", []account.State{read(0.1, 0.1), spent(t0, t0.Add(2*time.Hour))}, func(s *placement.Situation) { fresh(s); s.Sent = 3 }, windowSpent, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(2 * time.Hour)}},
		{"credential: goes on after the hop", healthy, twice, badKey, serve(placement.Move)},
		{"funds: goes on after the hop", healthy, twice, noFunds, serve(placement.Move)},
		{"credential: after the third send another is ready", healthy, func(s *placement.Situation) { fresh(s); s.Sent = 3 }, badKey, want{step: placement.Refuse, cause: placement.Busy}},
		{"family: a call beside the conversation hops", healthy, aside, familySpent, serve(placement.NoPin)},
		{"window: a call beside the conversation shows that the account is spent", healthy, aside, windowSpent, serve(placement.Move)},
		{"family: moves to an account that has it", healthy, kept, familySpent, serve(placement.Move)},
		{"throttle: a new conversation hops", healthy, fresh, throttled, serve(placement.Move)},
		{"throttle: one hop only", healthy, twice, throttled, back},
		{"throttle: a kept one waits", healthy, kept, throttled, back},
		{"throttle: longer than move_after moves", healthy, kept, longThrottle, serve(placement.Move)},
		{"bare: a new conversation hops", healthy, fresh, bare, serve(placement.Move)},
		{"bare: a kept one is told", healthy, kept, bare, back},
		{"bare: one hop only", healthy, twice, bare, back},
		{"entitlement: a kept conversation goes where the feature may be", healthy, keptLong, feature, serve(placement.Move)},
		{"entitlement: with nowhere to go the provider's words", alone, keptLong, feature, back},
		{"access: the next account", healthy, kept, access, serve(placement.Move)},
		{"access: alone the provider's words", alone, kept, access, back},
		{"access: goes on after a hop", healthy, twice, access, serve(placement.Move)},
		{"access: bound, the provider's words", healthy, bound, access, back},
		{"access: another that pauses is worth its wait", []account.State{read(0.1, 0.1), paused(t0, 12*time.Second)}, fresh, access, want{step: placement.Refuse, cause: placement.Paused, retry: t0.Add(12 * time.Second)}},
		{"too large: a kept one moves", healthy, func(s *placement.Situation) { kept(s); large(s) }, tooLarge, serve(placement.Move)},
		{"too large: nowhere to go", []account.State{read(0.1, 0.1), narrow}, func(s *placement.Situation) { kept(s); large(s) }, tooLarge, back},
		{"funds: hops", healthy, kept, noFunds, serve(placement.Move)},
		{"funds: alone needs the owner", alone, kept, noFunds, want{step: placement.Refuse, cause: placement.NoAccount, owners: 1}},
		{"entitlement: not where the feature is known to lack", []account.State{read(0.1, 0.1), lacking(read(0.1, 0.1))}, keptLong, feature, back},
		{"funds: hops to an account that may lack a feature", []account.State{lacking(read(0.1, 0.1)), lacking(read(0.1, 0.1))}, keptLong, noFunds, serve(placement.Move)},
		{"window: so does a spent one", []account.State{lacking(read(0.1, 0.1)), lacking(read(0.1, 0.1))}, keptLong, windowSpent, serve(placement.Move)},
		{"funds: with the others spent, their reset", []account.State{read(0.1, 0.1), spent(t0, t0.Add(time.Hour))}, kept, noFunds, want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(time.Hour), owners: 1}},
		{"credential: hops", healthy, kept, badKey, serve(placement.Move)},
		{"credential: never the client's 401", alone, kept, badKey, want{step: placement.Refuse, cause: placement.NoAccount, owners: 1}},
		{"credential: bound, never the client's 401", healthy, bound, badKey, want{step: placement.Refuse, cause: placement.NoAccount, owners: 1, bound: true}},
		{"unrenewed: a new conversation hops", healthy, fresh, unrenewed(time.Second), serve(placement.Move)},
		{"unrenewed: a kept one waits for up to move_after", healthy, kept, unrenewed(time.Minute), back},
		{"unrenewed: beyond it, it moves", healthy, kept, unrenewed(time.Minute + 1), serve(placement.Move)},
		{"unrenewed: a bound one waits", healthy, bound, unrenewed(time.Hour), back},
		{"unrenewed: nobody knows for how long", healthy, kept, account.Rejection{Kind: account.Unrenewed, At: t0}, back},
		{"overload is handed back", healthy, fresh, account.Rejection{Kind: account.Overload, At: t0}, back},
		{"the client's fault is handed back", healthy, fresh, account.Rejection{Kind: account.ClientFault, At: t0}, back},
		{"without a conversation it hops and leaves pins alone", healthy, func(s *placement.Situation) { s.Pins = false }, windowSpent, serve(placement.NoPin)},
		{"a request that must stay is told", healthy, func(s *placement.Situation) { kept(s); s.Stay = true }, windowSpent, back},
		{"order hops to one that is merely over the threshold", []account.State{read(0.1, 0.1), read(0.9, 0.9)}, func(s *placement.Situation) { fresh(s); s.Policy.Name = catalog.Order }, windowSpent, serve(placement.Move)},
		{"order hands the answer back rather than pay for overage", []account.State{read(0.1, 0.1), overage()}, func(s *placement.Situation) { fresh(s); s.Policy.Name = catalog.Order }, windowSpent, back},
		{"order hands the answer back when all are spent", []account.State{read(0.1, 0.1), spent(t0, t0.Add(time.Hour))}, func(s *placement.Situation) { kept(s); s.Policy.Name = catalog.Order }, windowSpent, back},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := situation(tt.states...)
			s.Sent = 1
			if tt.edit != nil {
				tt.edit(&s)
			}
			sent := s.Sent
			s = rejected(s, tt.r)
			s.Sent = sent
			check(t, s, placement.After(s, 0, tt.r), tt.want)
		})
	}
}

func TestLost(t *testing.T) {
	t.Run("before the first send the winner's account serves", func(t *testing.T) {
		s := pinnedTo(situation(read(0, 0), read(0.5, 0.5)), "juniper")
		check(t, s, placement.Lost(s), want{step: placement.Serve, who: "juniper", pin: placement.Keep})
	})
	t.Run("after a send too, if it was not tried", func(t *testing.T) {
		s := pinnedTo(situation(read(0, 0), read(0.5, 0.5)), "juniper")
		s.Sent, s.Candidates[0].Tried = 1, true
		check(t, s, placement.Lost(s), want{step: placement.Serve, who: "juniper", pin: placement.Keep})
	})
	t.Run("nobody is sent to twice", func(t *testing.T) {
		s := pinnedTo(situation(read(0, 0), read(0.5, 0.5)), "marlow")
		s.Sent, s.Candidates[0].Tried = 1, true
		check(t, s, placement.Lost(s), want{step: placement.HandBack})
	})
}

func TestCanMove(t *testing.T) {
	tests := []struct {
		name string
		s    placement.Situation
		want bool
	}{
		{"another account is there", situation(read(0, 0), read(0.5, 0.5)), true},
		{"no window was read", situation(read(0, 0)), false},
		{"the other cools", situation(read(0, 0), spent(t0, t0.Add(time.Hour))), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.Sent = 1
			if got := placement.CanMove(tt.s, 0); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	t.Run("a bound conversation stays once it is pinned", func(t *testing.T) {
		s := pinnedTo(situation(read(0, 0), read(0, 0)), "marlow")
		s.Bound, s.Sent = true, 1
		if placement.CanMove(s, 0) {
			t.Error("got true, want false")
		}
		s.Fresh = true // this request made the pin
		if !placement.CanMove(s, 0) {
			t.Error("fresh: got false, want true")
		}
		s.Stay = true
		if placement.CanMove(s, 0) {
			t.Error("a request that must stay: got true, want false")
		}
	})
}
