package poll_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/upkeep/poll"
)

// TestTrouble: what is kept of a failure says each cause once and is not cut where it says
// what to do.
func TestTrouble(t *testing.T) {
	const told = "the answer has status 404 and holds JSON"
	const toDo = "; log in anew with the provider's own client and import its file"
	look := fmt.Errorf("look at usage: %w", errors.New(told))
	long := strings.Repeat("the renewal was refused for a reason ", 10)
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"one", look, told},
		{"two alike", errors.Join(look, look), told},
		{"two of a kind", errors.Join(look, errors.New("no route")), told + "; no route"},
		{"long", errors.New(long + toDo), long + toDo},
	} {
		if got := poll.Trouble(tt.err); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := poll.Trouble(errors.New(strings.Repeat("x", 1<<20))); len(got) > 1100 {
		t.Errorf("got %d bytes of somebody else's text, want it bounded", len(got))
	}
}

// TestBothWaysFailAlike: two ways to one figure that fail alike are one trouble.
func TestBothWaysFailAlike(t *testing.T) {
	b := newBench(t)
	e := b.login(account.XAI, "bracken")
	e.answer(says(http.StatusNotFound, `{}`))
	f := b.round(b.poller(), "bracken")
	if want := "the answer has status 404 and holds JSON"; f.Trouble != want || len(e.calls()) != 2 {
		t.Errorf("got %q of %d calls, want %q of 2", f.Trouble, len(e.calls()), want)
	}
}
