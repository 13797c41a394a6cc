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

// ownedBy is a situation whose request names an object of an account.
func ownedBy(s placement.Situation, name account.ID) placement.Situation {
	s.Owner = name
	return s
}

func TestOwner(t *testing.T) {
	healthy := func() placement.Situation { return situation(read(0.9, 0.9), read(0, 0)) }
	cooling := func() placement.Situation { return situation(spent(t0, t0.Add(40*time.Second)), read(0, 0)) }
	at := func(change placement.PinChange) want {
		return want{step: placement.Serve, who: "marlow", pin: change}
	}
	refused := func(cause placement.Cause, retry time.Time, owners int) want {
		return want{step: placement.Refuse, cause: cause, retry: retry, bound: true, owners: owners}
	}
	tests := []struct {
		name string
		s    placement.Situation
		edit func(*placement.Situation)
		want want
	}{
		{"decides against the policy", healthy(), nil, at(placement.New)},
		{"keeps a pin that is there", pinnedTo(healthy(), "marlow"), nil, at(placement.Keep)},
		{"leaves a pin elsewhere alone", pinnedTo(healthy(), "juniper"), nil, at(placement.NoPin)},
		{"leaves a bound pin elsewhere alone", pinnedTo(healthy(), "juniper"), func(s *placement.Situation) { s.Pin.Bound, s.Bound = true, true }, at(placement.NoPin)},
		{"takes over where the pin's account is gone", pinnedTo(healthy(), "gone"), nil, at(placement.NoPin)},
		{"begins anew where the pin has ended", pinnedTo(healthy(), "juniper"), func(s *placement.Situation) { s.Pin.ExpiresAt = t0 }, at(placement.New)},
		{"comes before the parent's account", healthy(), func(s *placement.Situation) {
			p := pin.New(account.Account{ID: "juniper"}, false, t0, time.Hour)
			s.Parent = &p
		}, at(placement.New)},
		{"without a conversation", healthy(), func(s *placement.Situation) { s.Pins = false }, at(placement.NoPin)},
		{"serves while it drains", healthy(), func(s *placement.Situation) { s.Candidates[0].Account.Draining = true }, at(placement.New)},
		{"cools for less than move_after", cooling(), nil, refused(placement.Exhausted, t0.Add(40*time.Second), 0)},
		{"cools for days", situation(spent(t0, t0.Add(5*time.Hour-1)), read(0, 0)), nil, refused(placement.Exhausted, t0.Add(5*time.Hour-1), 0)},
		{"cools while the pin's account is well", pinnedTo(cooling(), "juniper"), nil, refused(placement.Exhausted, t0.Add(40*time.Second), 0)},
		{"pauses", situation(paused(t0, 12*time.Second), read(0, 0)), nil, refused(placement.Paused, t0.Add(12*time.Second), 0)},
		{"needs the person who owns it", situation(parked(), read(0, 0)), nil, refused(placement.NoAccount, time.Time{}, 1)},
		{"was removed", ownedBy(situation(read(0, 0), read(0, 0)), "gone"), nil, refused(placement.NoAccount, time.Time{}, 0)},
		{"may not be used by this client key", healthy(), func(s *placement.Situation) { s.Candidates[0].Allowed = false }, refused(placement.NoAccount, time.Time{}, 1)},
		{"does not serve the path", healthy(), func(s *placement.Situation) { s.Candidates[0].Serves = false }, refused(placement.NoAccount, time.Time{}, 1)},
		{"is due to be tried", situation(spent(t0.Add(-10*time.Minute), t0.Add(time.Hour)), read(0, 0)), nil, want{step: placement.Serve, who: "marlow", pin: placement.New, probe: true}},
		{"is asked anyway under order", cooling(), func(s *placement.Situation) { s.Policy.Name = catalog.Order }, at(placement.New)},
		{"is not asked at paid overage, order or not", situation(overage(), read(0, 0)), func(s *placement.Situation) { s.Policy.Name = catalog.Order }, refused(placement.Exhausted, t0.Add(3*time.Hour), 0)},
		{"has too little left for background", situation(read(0.86, 0.2), read(0, 0)), func(s *placement.Situation) { s.Request.Background = true }, want{step: placement.Refuse, cause: placement.Yielded, retry: t0.Add(4 * time.Hour)}},
		{"is asked for a feature that it lacked", situation(lacking(read(0, 0)), read(0, 0)), longContext, at(placement.New)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.s.Owner == "" {
				tt.s.Owner = "marlow"
			}
			if tt.edit != nil {
				tt.edit(&tt.s)
			}
			p := placement.Begin(tt.s)
			check(t, tt.s, p, tt.want)
			if want := tt.want.step == placement.Refuse && tt.want.cause != placement.Yielded; p.Refusal.Object != want {
				t.Errorf("refused for an object: got %v, want %v", p.Refusal.Object, want)
			}
		})
	}
}

// Whatever the owner answers, nobody else is asked.
func TestAfterOwner(t *testing.T) {
	for _, r := range []account.Rejection{
		{Kind: account.WindowSpent, At: t0, Spent: []account.Spent{{Window: account.FiveHour, ResetAt: t0.Add(time.Hour)}}},
		{Kind: account.ModelWindow, At: t0, Family: "opus", Spent: []account.Spent{{Window: account.Weekly, Family: "opus", ResetAt: t0.Add(time.Hour)}}},
		{Kind: account.Throttle, At: t0, Until: t0.Add(90 * time.Second)},
		{Kind: account.Bare, At: t0, Model: "claude-opus-5"},
		{Kind: account.Entitlement, At: t0, Feature: "long-context"},
		{Kind: account.Overload, At: t0},
		{Kind: account.ClientFault, At: t0},
	} {
		for _, fresh := range []bool{false, true} {
			s := ownedBy(pinnedTo(situation(read(0, 0), read(0, 0)), "marlow"), "marlow")
			s.Fresh = fresh
			if placement.CanMove(s, 0) {
				t.Errorf("%s: got an answer held back, want none", r.Kind)
			}
			s = rejected(s, r)
			check(t, s, placement.After(s, 0, r), want{step: placement.HandBack})
		}
	}
	for _, kind := range []account.RejectionKind{account.Funds, account.BadCredential} {
		s := ownedBy(situation(read(0, 0), read(0, 0)), "marlow")
		r := account.Rejection{Kind: kind, At: t0, Code: "x"}
		s = rejected(s, r)
		check(t, s, placement.After(s, 0, r), want{step: placement.Refuse, cause: placement.NoAccount, bound: true, owners: 1})
	}
}

// A pin that another process was faster to make does not take the request along.
func TestOwnerAfterALostRace(t *testing.T) {
	s := ownedBy(pinnedTo(situation(read(0, 0), read(0, 0)), "juniper"), "marlow")
	check(t, s, placement.Lost(s), want{step: placement.Serve, who: "marlow", pin: placement.NoPin})
}

// What only comes along with a conversation goes elsewhere where its account cannot.
func TestBesideAConversation(t *testing.T) {
	s := pinnedTo(situation(read(0, 0), read(0.5, 0.5)), "marlow")
	s.Pins, s.Pin.Bound = false, true
	check(t, s, placement.Begin(s), want{step: placement.Serve, who: "marlow", pin: placement.NoPin})
	s.Candidates = append([]pick.Candidate(nil), s.Candidates...)
	s.Candidates[0].Serves = false
	check(t, s, placement.Begin(s), want{step: placement.Serve, who: "juniper", pin: placement.NoPin})
}

// What nobody is known to have goes where its conversation is, else to the one account that
// could serve it; of several none is picked.
func TestUnowned(t *testing.T) {
	fine := func() placement.Situation { return situation(read(0, 0), read(0.9, 0.9)) }
	refused := want{step: placement.Refuse, cause: placement.Unowned}
	atJuniper := func(change placement.PinChange) want {
		return want{step: placement.Serve, who: "juniper", pin: change}
	}
	for _, tt := range []struct {
		name string
		s    placement.Situation
		edit func(*placement.Situation)
		want want
	}{
		{"of several", fine(), nil, refused},
		{"of several, one of them parked", situation(parked(), read(0, 0)), nil, refused},
		{"of several, in a sub-agent", fine(), func(s *placement.Situation) {
			p := pin.New(account.Account{ID: "juniper"}, false, t0, time.Hour)
			s.Parent = &p
		}, refused},
		{"where its conversation is", pinnedTo(fine(), "juniper"), nil, atJuniper(placement.Keep)},
		{"beside its conversation", pinnedTo(fine(), "juniper"), func(s *placement.Situation) { s.Pins = false }, atJuniper(placement.NoPin)},
		{"where its conversation was", pinnedTo(fine(), "juniper"), func(s *placement.Situation) { s.Pin.ExpiresAt = t0 }, refused},
		{"only one serves the path", fine(), func(s *placement.Situation) { s.Candidates[0].Serves = false }, atJuniper(placement.New)},
		{"only one is allowed", fine(), func(s *placement.Situation) { s.Candidates[0].Allowed = false }, atJuniper(placement.New)},
		{"none serves the path", fine(), func(s *placement.Situation) { s.Candidates[0].Serves, s.Candidates[1].Serves = false, false }, want{step: placement.Refuse, cause: placement.NoAccount}},
		{
			"its conversation's account is spent", pinnedTo(situation(read(0, 0), spent(t0, t0.Add(time.Hour))), "juniper"), nil,
			want{step: placement.Refuse, cause: placement.Exhausted, retry: t0.Add(time.Hour), bound: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.Unowned = true
			if tt.edit != nil {
				tt.edit(&tt.s)
			}
			check(t, tt.s, placement.Begin(tt.s), tt.want)
		})
	}
	s := pinnedTo(fine(), "juniper")
	s.Unowned = true
	if placement.CanMove(s, 1) {
		t.Error("got an answer held back, though nobody else is asked")
	}
	s = rejected(s, account.Rejection{Kind: account.Throttle, At: t0, Until: t0.Add(3 * time.Minute)})
	check(t, s, placement.After(s, 1, account.Rejection{Kind: account.Throttle, At: t0, Until: t0.Add(3 * time.Minute)}), want{step: placement.HandBack})
}
