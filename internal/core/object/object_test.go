package object_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/object"
)

var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func TestLife(t *testing.T) {
	r := object.New(account.Account{ID: "a", Provider: account.OpenAI}, 30*day, t0)
	if r.Account != "a" || r.Provider != account.OpenAI {
		t.Errorf("got %+v, want account a of openai", r)
	}
	// Thirty days, and the day that a use may go unwritten.
	for at, want := range map[time.Duration]bool{0: true, 31*day - 1: true, 31 * day: false, 32 * day: false} {
		if got := r.Live(t0.Add(at)); got != want {
			t.Errorf("live after %v: got %v, want %v", at, got, want)
		}
	}
	for at, want := range map[time.Duration]bool{0: false, day - 1: false, day: true} {
		if got := r.TouchDue(t0.Add(at)); got != want {
			t.Errorf("touch due after %v: got %v, want %v", at, got, want)
		}
	}
	if r = r.Touch(t0.Add(20 * day)); !r.Live(t0.Add(51*day-1)) || r.Live(t0.Add(51*day)) {
		t.Errorf("touched: got an end at %v, want 51 days after the beginning", r.ExpiresAt)
	}
	if (object.Record{}).Live(t0) {
		t.Error("the zero record: got live, want not")
	}
}

func TestShortLife(t *testing.T) {
	r := object.New(account.Account{ID: "a"}, time.Hour, t0)
	if r.TouchDue(t0.Add(2*time.Minute-1)) || !r.TouchDue(t0.Add(2*time.Minute)) {
		t.Error("want a touch due a thirtieth of an hour later")
	}
}

func TestKey(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		p  account.Provider
		id string
	}{{account.OpenAI, "resp_1"}, {account.XAI, "resp_1"}, {account.OpenAI, "resp_2"}, {account.OpenAI, ""}, {"open", "airesp_1"}} {
		key := object.Key(c.p, c.id)
		if len(key) != 43 || seen[key] {
			t.Errorf("%v: got %q, want 43 characters of its own", c, key)
		}
		seen[key] = true
		if object.Key(c.p, c.id) != key {
			t.Errorf("%v: got another key the second time", c)
		}
	}
}
