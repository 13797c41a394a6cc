package pin_test

import (
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pin"
)

var (
	t0     = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)
	marlow = account.Account{ID: "acc-marlow", Provider: account.Anthropic}
)

func TestTouchEvery(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		time.Hour: time.Minute, 4 * time.Minute: time.Minute, 2 * time.Minute: 30 * time.Second, time.Second: 250 * time.Millisecond,
	} {
		if got := pin.TouchEvery(ttl); got != want {
			t.Errorf("life %v: got %v, want %v", ttl, got, want)
		}
	}
}

// No pin ends early: activity that was not written, because the last touch is younger than
// the interval, is within the stored expiry.
func TestLife(t *testing.T) {
	r := pin.New(marlow, false, t0, time.Hour)
	end := t0.Add(time.Hour + time.Minute)
	for at, want := range map[time.Time]bool{t0: true, t0.Add(time.Hour): true, end.Add(-1): true, end: false, end.Add(1): false} {
		if got := r.Live(at); got != want {
			t.Errorf("%v after it was made: got live %v, want %v", at.Sub(t0), got, want)
		}
	}
	if (pin.Record{ExpiresAt: end}).Live(t0) {
		t.Error("a pin to nobody is live")
	}
	lastUnwritten := t0.Add(time.Minute - 1)
	if r.TouchDue(false, lastUnwritten, time.Hour) || !r.Live(lastUnwritten.Add(time.Hour)) {
		t.Error("activity that costs no write does not keep the pin for its whole life")
	}
}

func TestTouchDue(t *testing.T) {
	r := pin.New(marlow, false, t0, time.Hour)
	tests := []struct {
		name  string
		bound bool
		after time.Duration
		want  bool
	}{
		{"within the interval", false, time.Minute - 1, false},
		{"at its end", false, time.Minute, true},
		{"at once when it becomes bound", true, 0, true},
	}
	for _, tt := range tests {
		if got := r.TouchDue(tt.bound, t0.Add(tt.after), time.Hour); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	if bound := r.Touch(true, 0, t0, 720*time.Hour); bound.TouchDue(true, t0.Add(time.Second), 720*time.Hour) || bound.TouchDue(false, t0, 720*time.Hour) {
		t.Error("a pin that is bound already is touched again at once")
	}
}

func TestTouchAndMove(t *testing.T) {
	r := pin.New(marlow, false, t0, time.Hour)
	r.Revision = 7
	later := t0.Add(10 * time.Minute)
	touched := r.Touch(false, 3, later, time.Hour)
	if touched.Account != r.Account || touched.Revision != 7 || !touched.ExpiresAt.Equal(later.Add(time.Hour+time.Minute)) || !touched.CreatedAt.Equal(t0) {
		t.Errorf("got %+v", touched)
	}
	if touched.Kept[pin.Hour(later)] != 3 || r.Kept != nil {
		t.Errorf("got counts %v, and %v in the pin it was made from", touched.Kept, r.Kept)
	}
	bound := r.Touch(true, 0, later, time.Hour).Touch(false, 0, later, time.Hour)
	if !bound.Bound {
		t.Error("a bound conversation became free again")
	}
	moved := touched.Move("acc-juniper", later, time.Hour)
	if moved.Account != "acc-juniper" || !moved.MovedAt.Equal(later) || moved.Revision != 7 {
		t.Errorf("got %+v", moved)
	}
	rehomed := touched.Rehome("acc-juniper", later, time.Hour)
	if rehomed.Account != "acc-juniper" || !rehomed.MovedAt.IsZero() {
		t.Errorf("a better beginning: got %+v, want it not to count as a move", rehomed)
	}
	if r.End(later).Live(later) {
		t.Error("an ended pin is live")
	}
}

func TestCountsAreKeptForADay(t *testing.T) {
	r := pin.New(marlow, false, t0, time.Hour).Counted(1, t0).Counted(2, t0.Add(time.Minute)).Counted(4, t0.Add(23*time.Hour))
	if r.Kept[pin.Hour(t0)] != 3 || r.Kept[pin.Hour(t0)+23] != 4 {
		t.Errorf("got %v", r.Kept)
	}
	if r = r.Counted(8, t0.Add(24*time.Hour)); r.Kept[pin.Hour(t0)] != 0 || r.Kept[pin.Hour(t0)+24] != 8 || len(r.Kept) != 2 {
		t.Errorf("a day later: got %v", r.Kept)
	}
	if !r.ExpiresAt.Equal(t0.Add(time.Hour + time.Minute)) {
		t.Error("counting changed the pin's life")
	}
}
