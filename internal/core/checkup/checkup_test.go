package checkup_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"holdfast/internal/core/account"
	"holdfast/internal/core/checkup"
)

// t0 is the instant of every report here.
var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// login is a subscription with windows that reset when said.
func login(name, plan string, resets map[string]time.Time) (account.Account, account.State) {
	s := account.State{Windows: map[string]account.Window{}}
	for window, at := range resets {
		s.Windows[window] = account.Window{Utilization: 0.5, HasUtilization: true, ResetAt: at, ObservedAt: t0}
	}
	return account.Account{ID: account.ID(name), Name: name, Provider: account.Anthropic, Kind: account.Subscription, Plan: plan}, s
}

func TestCycles(t *testing.T) {
	seconds := func(d time.Duration) *int64 { n := int64(d / time.Second); return &n }
	tests := []struct {
		name, window string
		own, sibling time.Duration // until the reset
		want         checkup.Verdict
		after        *int64
	}{
		{"together", "weekly", 3 * day, 3 * day, checkup.Aligned, seconds(0)},
		{"an hour apart", "weekly", 3*day + time.Hour, 3 * day, checkup.Aligned, seconds(time.Hour)},
		{"an hour and a second", "weekly", 3 * day, 3*day + time.Hour + time.Second, checkup.Offset, seconds(-time.Hour - time.Second)},
		{"across the turn of the week", "weekly", 30 * time.Minute, 7*day - 10*time.Minute, checkup.Aligned, seconds(40 * time.Minute)},
		{"half a week", "weekly", 5 * day, 2 * day, checkup.Offset, seconds(3 * day)},
		{"a month's window", "30d", day, 29 * day, checkup.Offset, seconds(2 * day)},
		{"own reset not known", "weekly", 0, day, checkup.Unknown, nil},
		{"sibling's reset past", "weekly", day, -time.Second, checkup.Unknown, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, s := login("marlow", "max", map[string]time.Time{tt.window: t0.Add(tt.own), "five-hour": t0.Add(time.Hour), "weekly:opus": t0.Add(day), "tokens": t0.Add(time.Minute)})
			b, other := login("juniper", "max", map[string]time.Time{tt.window: t0.Add(tt.sibling), "five-hour": t0.Add(2 * time.Hour)})
			got := checkup.Of(checkup.Input{Now: t0, Account: a, State: s, Siblings: []checkup.Sibling{{Account: b, State: other}}}).Cycles
			if diff := cmp.Diff([]checkup.Cycle{{Window: tt.window, Sibling: "juniper", Verdict: tt.want, After: tt.after}}, got); diff != "" {
				t.Errorf("cycles (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a key beside it has no cycle", func(t *testing.T) {
		a, s := login("marlow", "max", map[string]time.Time{"weekly": t0.Add(day)})
		b, other := login("juniper", "max", map[string]time.Time{"weekly": t0.Add(day)})
		b.Kind = account.Key
		if got := checkup.Of(checkup.Input{Now: t0, Account: a, State: s, Siblings: []checkup.Sibling{{Account: b, State: other}}}).Cycles; len(got) != 0 {
			t.Errorf("got %+v, want none", got)
		}
	})
}

func TestPlans(t *testing.T) {
	tests := []struct {
		name, own string
		siblings  []string
		want      checkup.Plans
	}{
		{"alone", "max 5x", nil, checkup.Plans{Verdict: checkup.Unknown}},
		{"the same", "max 5x", []string{"Max 5x", "max 5x"}, checkup.Plans{Verdict: checkup.Same}},
		{"another size", "max 5x", []string{"max 5x", "max 20x"}, checkup.Plans{Verdict: checkup.Different, Different: []string{"b"}}},
		{"one not known", "max 5x", []string{"max 5x", ""}, checkup.Plans{Verdict: checkup.Unknown, Unknown: []string{"b"}}},
		{"own not known", "", []string{"max 5x"}, checkup.Plans{Verdict: checkup.Unknown, Unknown: []string{"a"}}},
		{"one not known, one different", "pro", []string{"", "max 5x"}, checkup.Plans{Verdict: checkup.Different, Different: []string{"b"}, Unknown: []string{"a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := checkup.Input{Now: t0}
			in.Account, in.State = login("own", tt.own, nil)
			for i, plan := range tt.siblings {
				a, s := login(string(rune('a'+i)), plan, nil)
				in.Siblings = append(in.Siblings, checkup.Sibling{Account: a, State: s})
			}
			if diff := cmp.Diff(tt.want, checkup.Of(in).Plans, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("plans (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	in := checkup.Input{Now: t0, Owner: checkup.Personal, Principal: "user-1"}
	in.Account, in.State = login("own", "", nil)
	in.State.Organization, in.State.Principal = "org-1", "user-1"
	for _, s := range []struct{ name, principal, organization string }{
		{"same-person", "user-1", ""}, {"same-organization", "", "org-1"}, {"another", "user-2", "org-2"}, {"untold", "", ""},
	} {
		a, state := login(s.name, "", nil)
		state.Organization, state.Principal = s.organization, s.principal
		in.Siblings = append(in.Siblings, checkup.Sibling{Account: a, State: state})
	}
	want := checkup.Owner{Verdict: checkup.Personal, Principal: "user-1", SharedWith: []string{"same-person", "same-organization"}}
	if diff := cmp.Diff(want, checkup.Of(in).Owner); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	in.Owner, in.Principal, in.State.Organization, in.State.Principal = "", "", "", ""
	want = checkup.Owner{Verdict: checkup.Unknown, SharedWith: []string{}}
	if diff := cmp.Diff(want, checkup.Of(in).Owner); diff != "" {
		t.Errorf("of nobody known (-want +got):\n%s", diff)
	}
}

func TestOthers(t *testing.T) {
	at := func(before time.Duration, window string, utilization float64, reset time.Time) checkup.Point {
		return checkup.Point{At: t0.Add(-before), Windows: map[string]checkup.Figure{window: {utilization, reset}}}
	}
	span := func(from, to time.Duration) []checkup.Span {
		return []checkup.Span{{From: t0.Add(-from), To: t0.Add(-to)}}
	}
	week := t0.Add(3 * day)
	rise := []checkup.Rise{{Window: "weekly", From: t0.Add(-2 * time.Hour), To: t0, Before: 0.30, Afterwards: 0.35}}
	tests := []struct {
		name   string
		points []checkup.Point
		ours   []checkup.Span
		want   checkup.Others
	}{
		{"nothing read", nil, nil, checkup.Others{Verdict: checkup.Unknown}},
		{"read once", []checkup.Point{at(time.Hour, "weekly", 0.3, week)}, nil, checkup.Others{Verdict: checkup.Unknown}},
		{
			"rose without us",
			[]checkup.Point{at(2*time.Hour, "weekly", 0.30, week), at(0, "weekly", 0.35, week)},
			nil, checkup.Others{Verdict: checkup.Seen, Quiet: 7200, Rises: rise},
		},
		{
			"rose while ours ran",
			[]checkup.Point{at(2*time.Hour, "weekly", 0.30, week), at(0, "weekly", 0.35, week)},
			span(time.Hour, 50*time.Minute), checkup.Others{Verdict: checkup.Unknown},
		},
		{
			"rose right after ours ended",
			[]checkup.Point{at(2*time.Hour, "weekly", 0.30, week), at(0, "weekly", 0.35, week)},
			span(3*time.Hour, 2*time.Hour+checkup.Settles), checkup.Others{Verdict: checkup.Unknown},
		},
		{
			"rose well after ours ended",
			[]checkup.Point{at(2*time.Hour, "weekly", 0.30, week), at(0, "weekly", 0.35, week)},
			span(3*time.Hour, 2*time.Hour+checkup.Settles+time.Second), checkup.Others{Verdict: checkup.Seen, Quiet: 7200, Rises: rise},
		},
		{
			"stood still for an hour",
			[]checkup.Point{at(time.Hour, "weekly", 0.30, week), at(0, "weekly", 0.30, week)},
			nil, checkup.Others{Verdict: checkup.NotSeen, Quiet: 3600},
		},
		{
			"stood still for less",
			[]checkup.Point{at(time.Hour-time.Second, "weekly", 0.30, week), at(0, "weekly", 0.30, week)},
			nil, checkup.Others{Verdict: checkup.Unknown, Quiet: 3599},
		},
		{
			"one percent may be rounding",
			[]checkup.Point{at(time.Hour, "weekly", 0.30, week), at(0, "weekly", 0.31, week)},
			nil, checkup.Others{Verdict: checkup.NotSeen, Quiet: 3600},
		},
		{
			"began anew in between",
			[]checkup.Point{at(2*time.Hour, "weekly", 0.30, t0.Add(-time.Hour)), at(0, "weekly", 0.35, week)},
			nil, checkup.Others{Verdict: checkup.Unknown},
		},
		{
			"per-minute limits say nothing",
			[]checkup.Point{at(2*time.Hour, "tokens", 0.30, time.Time{}), at(0, "tokens", 0.90, time.Time{})},
			nil, checkup.Others{Verdict: checkup.Unknown},
		},
		{
			"a point that leaves the window out",
			[]checkup.Point{at(2*time.Hour, "weekly", 0.30, week), at(time.Hour, "five-hour", 0, time.Time{}), at(0, "weekly", 0.35, week)},
			nil, checkup.Others{Verdict: checkup.Seen, Quiet: 7200, Rises: rise},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := checkup.Input{Now: t0, Points: tt.points, Ours: tt.ours}
			in.Account, in.State = login("own", "", nil)
			if diff := cmp.Diff(tt.want, checkup.Of(in).Others, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("others (-want +got):\n%s", diff)
			}
		})
	}
}
