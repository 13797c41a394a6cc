package e2e_test

import (
	"testing"
	"time"

	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// The Lambda behind a streaming Function URL, on a table that the owner's commands filled.
func TestClaudeCodeThroughTheFunction(t *testing.T) {
	tool(t, "claude")
	f := functiontest.New(t)
	b := onTable(t, f.Table, f.Owner())
	function := f.Serve()
	b.front.to(t, function.URL)
	c := newClaudeCode(t, b.front.url, b.key)
	answered(t, "first turn", c.start("hello"), "by account")
	home := firstAccount(b)
	other := b.other(home.Name)
	// From here on the account looks fuller than the other, which is no reason to move.
	home.Always(upstreamtest.Good(upstreamtest.Plan(0.85, time.Now().Add(3*time.Hour), 0.60, time.Now().Add(80*time.Hour))))
	answered(t, "second turn", c.turn("go on"), byAccount(home))
	function.Replace()
	answered(t, "third turn, at a new process", c.turn("and on"), byAccount(home))
	function.Replace()
	home.Queue(upstreamtest.FiveHourSpent(time.Now().Add(3 * time.Hour)))
	answered(t, "fourth turn, which the account rejects", c.turn("still there?"), byAccount(other))
	function.Replace()
	answered(t, "fifth turn, at a new process", c.turn("good"), byAccount(other))

	checkPins(t, b.front, "new", "kept", "kept", "moved", "kept")
	if got := function.Started(); got != 4 {
		t.Errorf("got %d processes, want one for each replacement", got)
	}
	b.until(home.Name, "a cooldown", func(s shown) bool { return s.State == "cooldown" })
	if !function.Says(`"msg":"request"`) {
		t.Error("the function logged no request")
	}
	b.quiet("the function", function.Output())
}
