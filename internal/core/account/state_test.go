package account_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
)

func encode(t *testing.T, s account.State) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// roundTrip stores and reads a state as a restart does.
func roundTrip(t *testing.T, s account.State) account.State {
	t.Helper()
	var back account.State
	if err := json.Unmarshal([]byte(encode(t, s)), &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestStateRoundTrip(t *testing.T) {
	r := answer(time.Nanosecond, said(window(account.FiveHour, 1.05, time.Hour), account.Rejected), window(account.WeeklyOf("opus"), 0.25, day))
	r.Organization, r.Overage.Available = "org", true
	s := account.State{}.Observe(r, 7, rules).
		Observe(poll(time.Minute, window(account.Weekly, 0.5, day)), 8, rules).
		Reject(spent(time.Minute+1, account.Weekly, "opus", 3*day), rules).
		Served(account.Ask{Family: "opus"}, at(2*time.Minute)).
		Reject(bare(time.Minute+2, "claude-opus-5"), rules).
		Reject(account.Rejection{Kind: account.Entitlement, At: at(time.Minute), Feature: "long-context"}, rules).
		LoggedIn(4).
		Reject(account.Rejection{Kind: account.Funds, At: at(time.Minute), Code: "billing_error", Generation: 4}, rules).
		Probed(at(3 * time.Minute))
	s.ClearedAt = at(-day)
	back := roundTrip(t, s)
	if diff := cmp.Diff(s, back); diff != "" {
		t.Errorf("stored and read (-want +got):\n%s", diff)
	}
	if account.WorthStoring(s, back, account.RedateEvery) || account.WorthStoring(back, s, account.RedateEvery) {
		t.Error("got a difference worth storing between a state and itself")
	}
	if got := encode(t, account.State{}); got != "{}" {
		t.Errorf("a state never seen: got %s, want {}", got)
	}
}

func TestClear(t *testing.T) {
	s := refuse(
		spent(0, account.Weekly, "", 3*day), spent(0, account.Weekly, "opus", 3*day), bare(0, "claude-opus"),
		account.Rejection{Kind: account.Entitlement, At: t0, Feature: "f"},
		account.Rejection{Kind: account.Funds, At: t0, Code: "c"},
	).Observe(answer(0, window(account.FiveHour, 0.5, 4*time.Hour)), 3, rules).Clear(at(time.Minute))
	wantUsable(t, s, time.Minute, "opus", "haiku")
	if s.Parked != nil || refusesFeature(s, time.Minute, "f") {
		t.Errorf("got %+v, want neither parked nor a refused feature", s)
	}
	if !s.Seen() || s.Windows[account.FiveHour].At(at(time.Minute)) != 0.5 {
		t.Error("got the readings lost, want them kept")
	}
	for _, d := range []time.Duration{0, time.Minute} {
		void := s.Reject(spent(d, account.Weekly, "", 3*day), rules).
			Reject(account.Rejection{Kind: account.Funds, At: at(d), Code: "c"}, rules).
			Observe(answer(d, window(account.FiveHour, 0.9, time.Hour)), 0, rules)
		wantUsable(t, void, time.Minute, "opus")
		if void.Parked != nil || void.Windows[account.FiveHour].Utilization != 0.5 {
			t.Errorf("evidence of %v: got it counted, want it void", d)
		}
	}
	wantUntil(t, s.Reject(spent(time.Minute+1, account.Weekly, "", 3*day), rules), "opus", 3*day)
	if late := s.Clear(t0); !late.ClearedAt.Equal(at(time.Minute)) {
		t.Errorf("an older clear folded late: got cleared at %v, want %v", late.ClearedAt, at(time.Minute))
	}
}

func TestLoggedIn(t *testing.T) {
	refused := func(generation int64) account.Rejection {
		return account.Rejection{Kind: account.BadCredential, At: at(time.Hour), Code: "c", Generation: generation}
	}
	s := refuse(refused(1), spent(0, account.Weekly, "", 3*day)).LoggedIn(2)
	if s.Parked != nil {
		t.Errorf("got parked for %q, want not parked", s.Parked.Reason)
	}
	wantUntil(t, s, "opus", 3*day) // a login moves no limit
	if late := s.Reject(refused(1), rules); late.Parked != nil {
		t.Error("a late refusal of the old login: got parked")
	}
	if again := s.Reject(refused(2), rules); again.Parked == nil {
		t.Error("a refusal of the new login: got not parked")
	}
	if older := s.LoggedIn(1); older.Generation != 2 {
		t.Errorf("an older login folded late: got generation %d, want 2", older.Generation)
	}
}

func TestProbed(t *testing.T) {
	s := account.State{}.Probed(at(1)).Probed(at(0))
	if !s.ProbedAt.Equal(at(1)) {
		t.Errorf("got %v, want the newest", s.ProbedAt)
	}
}

func TestWindowNames(t *testing.T) {
	for _, tt := range []struct {
		window, family string
		binds          bool
	}{
		{account.FiveHour, "opus", true},
		{account.Weekly, "", true},
		{"weekly:opus", "opus", true},
		{"weekly:opus", "haiku", false},
		{"weekly:opus", "", false},
		{"30d:opus", "opus", true},
	} {
		if got := account.Binds(tt.window, tt.family); got != tt.binds {
			t.Errorf("%s for %q: got %v, want %v", tt.window, tt.family, got, tt.binds)
		}
	}
	if got := account.FamilyOf(account.WeeklyOf("opus")); got != "opus" {
		t.Errorf("got %q, want opus", got)
	}
}

// An account whose spent windows the owner has cleared is as good as its other windows
// say: a reading at its cap would keep new conversations away as well as a block does.
func TestClearForgetsSpentWindows(t *testing.T) {
	r := answer(0, window(account.FiveHour, 1.01, 4*time.Hour), window(account.Weekly, 0.4, 3*day))
	rejected := window(account.WeeklyOf("opus"), 0.3, 3*day)
	rejected.Status = account.Rejected
	r.Windows = append(r.Windows, rejected)
	s := account.State{}.Observe(r, 1, rules).Clear(at(time.Minute))
	if len(s.Windows) != 1 || s.Windows[account.Weekly].Utilization != 0.4 || !s.Seen() {
		t.Errorf("got windows %v, want the weekly one alone", s.Windows)
	}
}

// TestServedEndsTheRefusalOfAThing: a good answer to a request that asked for it ends it.
func TestServedEndsTheRefusalOfAThing(t *testing.T) {
	lacks := refuse(account.Rejection{Kind: account.Entitlement, At: t0, Feature: "f"})
	tests := []struct {
		name     string
		features []string
		when     time.Duration
		want     bool
	}{
		{"a good answer that needed it", []string{"f"}, 1, false},
		{"one at the same instant proves nothing", []string{"f"}, 0, true},
		{"one that needed another", []string{"g"}, time.Minute, true},
		{"one that needed none", nil, time.Minute, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := refusesFeature(lacks.Served(account.Ask{Family: "opus", Features: tt.features}, at(tt.when)), tt.when, "f"); got != tt.want {
				t.Errorf("got lacking %v, want %v", got, tt.want)
			}
		})
	}
	if !refusesFeature(lacks, time.Minute, "f") {
		t.Error("the state it was folded into was changed")
	}
}

// TestReturned: a conversation that came to nothing is no load, and hides none.
func TestReturned(t *testing.T) {
	tests := []struct{ seen, placed, want int64 }{{5, 7, 6}, {6, 7, 7}, {7, 7, 7}, {7, 3, 7}}
	for _, tt := range tests {
		if got := (account.State{LoadSeen: tt.seen}).Returned(tt.placed).LoadSeen; got != tt.want {
			t.Errorf("%d seen of %d: got %d, want %d", tt.seen, tt.placed, got, tt.want)
		}
	}
}
