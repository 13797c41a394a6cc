package poll_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
	"holdfast/internal/store"
)

// TestHistory: a point for each account whose reading changed or was confirmed, at most one
// in five minutes, and none older than fifteen days.
func TestHistory(t *testing.T) {
	b := newBench(t)
	e := b.login(account.OpenAI, "tansy")
	b.add(account.Account{ID: "acc-answers", Name: "answers", Provider: account.Anthropic, Kind: account.Key},
		credential.Credential{Generation: 1, Key: credential.NewSecret("EXAMPLE")})
	e.answer(codex(10, 20, false))
	for i := range 31 {
		b.learn("answers", func(s account.State) account.State {
			r := account.Reading{At: b.clock(), Source: account.FromAnswer, Windows: []account.WindowReading{
				{Name: account.Weekly, Utilization: float64(i) / 100, HasUtilization: true},
				{Name: account.Requests, Utilization: 0.9, HasUtilization: true},
			}}
			return s.Observe(r, 0, account.Rules{})
		})
		b.round(b.poller(), "tansy")
		b.advance(time.Minute)
	}
	points := func(id account.ID) []store.Point {
		got, err := b.store.History(t.Context(), id, time.Time{}, b.clock())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for id, want := range map[account.ID]int{"acc-tansy": 7, "acc-answers": 7} {
		got := points(id)
		if len(got) != want {
			t.Errorf("%s: got %d points in half an hour (%v), want %d", id, len(got), got, want)
		}
		for i, p := range got {
			if want := t0.Add(time.Duration(5*i) * time.Minute); !p.At.Equal(want) {
				t.Errorf("%s: got point %d at %v, want %v", id, i, p.At, want)
			}
			if _, ok := p.Windows[account.Requests]; ok {
				t.Errorf("%s: got a per-minute window", id)
			}
		}
	}
	if got := points("acc-tansy")[0].Windows; got[account.Weekly].Utilization != 0.2 || !got[account.Weekly].ResetAt.Equal(t0.Add(6*24*time.Hour)) {
		t.Errorf("got %v, want weekly at 0.2 and its reset", got)
	}
	b.advance(store.HistoryFor)
	if got := points("acc-tansy"); len(got) != 0 {
		t.Errorf("after fifteen days: got %v, want none", got)
	}
}

// TestRemovedAccountsLeaveNoClock.
func TestRemovedAccountsLeaveNoClock(t *testing.T) {
	b := newBench(t)
	b.login(account.OpenAI, "tansy").answer(codex(10, 20, false))
	b.login(account.OpenAI, "thistle").answer(codex(10, 20, false))
	b.round(b.poller(), "tansy")
	b.change(func(c catalog.Catalog) (catalog.Catalog, error) {
		c.Accounts = c.Accounts[:1]
		return c, nil
	})
	b.advance(time.Minute)
	b.round(b.poller(), "tansy")
	p, err := b.store.Poll(t.Context())
	if _, there := p.Clocks["acc-thistle"]; err != nil || there || len(p.Clocks) != 1 {
		t.Errorf("got clocks %v (%v), want tansy's alone", p.Clocks, err)
	}
}
