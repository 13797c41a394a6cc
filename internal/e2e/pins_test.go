package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/upstreamtest"
)

// byAccount is the end of what the scripted upstream answers.
func byAccount(a *upstreamtest.Account) string { return fmt.Sprintf("by account %s.", a.Name) }

// checkPins checks what the program answered so far: the fate of each request's pin.
func checkPins(t *testing.T, f *front, want ...string) {
	t.Helper()
	var got []string
	for _, e := range f.exchanges() {
		got = append(got, e.pin())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("X-Holdfast-Pin: got %q, want %q", got, want)
	}
}

// firstAccount is the account that served the first exchange.
func firstAccount(b *bench) *upstreamtest.Account {
	b.t.Helper()
	seen := b.front.exchanges()
	if len(seen) == 0 {
		b.t.Fatal("nothing went through the program")
	}
	return b.account(seen[0].account())
}

func TestClaudeCodeKeepsItsAccount(t *testing.T) {
	b := withAccounts(t)
	b.serve()
	c := newClaudeCode(t, b.front.url, b.key)
	answered(t, "first turn", c.start("hello"), "by account")
	home := firstAccount(b)
	// From here on the account looks fuller than the other: full enough that a new
	// conversation would go there, which is no reason for one that has a pin.
	home.Always(upstreamtest.Good(upstreamtest.Plan(0.85, time.Now().Add(3*time.Hour), 0.60, time.Now().Add(80*time.Hour))))
	answered(t, "second turn", c.turn("go on"), byAccount(home))
	answered(t, "third turn", c.turn("and on"), byAccount(home))

	checkPins(t, b.front, "new", "kept", "kept")
	requests := b.up.Requests()
	if len(requests) != 3 {
		t.Fatalf("upstream requests: got %d, want one for each turn", len(requests))
	}
	for i, r := range requests {
		if r.Account != home.Name {
			t.Errorf("turn %d: got account %s, want %s", i+1, r.Account, home.Name)
		}
		if e := b.front.exchanges()[i]; e.account() != home.Name || e.answered.Get("X-Holdfast-Request") == "" {
			t.Errorf("turn %d: got headers %v, want X-Holdfast-Account %s and an X-Holdfast-Request", i+1, e.answered, home.Name)
		}
	}
	if !strings.Contains(string(requests[2].Body), upstreamtest.Text(requests[1])) {
		t.Error("the third turn does not carry the second answer")
	}
}

// A client that asks for a title beside its turn makes two requests of one new
// conversation at once; both must adopt one pin.
func TestOpenCodeTitleAndTurnShareAnAccount(t *testing.T) {
	b := withAccounts(t)
	b.serve()
	o := newOpenCode(t, b.front.url, b.key)
	limits := upstreamtest.Plan(0.20, time.Now().Add(3*time.Hour), 0.30, time.Now().Add(80*time.Hour))
	const rounds = 3
	for round := range rounds {
		before := len(b.front.exchanges())
		b.up.Forget()
		// No answer begins before both requests have been sent on: neither can profit from
		// what the other's answer would have left behind.
		both := upstreamtest.NewGate()
		held := upstreamtest.Good(limits).With(upstreamtest.Held(both))
		b.one.Always(held)
		b.two.Always(held)
		ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
		arrived := make(chan error, 1)
		go func() {
			_, err := b.up.Await(ctx, 2)
			both.Release()
			arrived <- err
		}()
		answered(t, fmt.Sprintf("round %d", round), o.start(fmt.Sprintf("hello, round %d", round)), "by account")
		cancel()
		if err := <-arrived; err != nil {
			t.Fatalf("round %d: the two requests were not under way at once: %v", round, err)
		}
		requests := b.up.Requests()
		if len(requests) != 2 {
			t.Fatalf("round %d: got %d requests, want the title and the turn", round, len(requests))
		}
		title, turn := requests[0], requests[1]
		if a, b := title.Header.Get("x-session-id"), turn.Header.Get("x-session-id"); a == "" || a != b {
			t.Fatalf("round %d: got sessions %q and %q, want one", round, a, b)
		}
		if title.Account != turn.Account {
			t.Errorf("round %d: got accounts %s and %s, want one", round, title.Account, turn.Account)
		}
		pins := map[string]int{}
		for _, e := range b.front.exchanges()[before:] {
			pins[e.pin()]++
		}
		if pins["new"] != 1 || pins["kept"] != 1 {
			t.Errorf("round %d: X-Holdfast-Pin: got %v, want one new and one kept", round, pins)
		}
	}
}

func TestPinSurvivesAKill(t *testing.T) {
	b := withAccounts(t)
	p := b.serve()
	c := newClaudeCode(t, b.front.url, b.key)
	answered(t, "first turn", c.start("hello"), "by account")
	home := firstAccount(b)
	p.kill()

	p = b.serve()
	answered(t, "turn after a kill", c.turn("go on"), byAccount(home))
	p.kill()

	b.serve()
	answered(t, "turn after another kill", c.turn("and on"), byAccount(home))
	checkPins(t, b.front, "new", "kept", "kept")

	// That was no accident: whoever is new here goes to the account nothing is known of.
	other := b.other(home.Name)
	answered(t, "another session", newClaudeCode(t, b.front.url, b.key).start("hello"), byAccount(other))
}

func TestTwoProgramsShareWhatTheyKnow(t *testing.T) {
	b := withAccounts(t)
	first, second := b.serve(), b.serve()
	c := newClaudeCode(t, b.front.url, b.key)

	b.front.to(t, first.url)
	answered(t, "first turn, at the first program", c.start("hello"), "by account")
	home := firstAccount(b)
	other := b.other(home.Name)
	// The other account looks much fuller, so that only a rejection leads anybody there.
	other.Always(upstreamtest.Good(upstreamtest.Plan(0.78, time.Now().Add(3*time.Hour), 0.75, time.Now().Add(80*time.Hour))))
	b.until(home.Name, "the reading of its answer", func(s shown) bool { return s.utilization("five-hour") == 0.20 })

	b.front.to(t, second.url)
	answered(t, "second turn, at the second program", c.turn("go on"), byAccount(home))

	home.Always(upstreamtest.FiveHourSpent(time.Now().Add(3 * time.Hour)))
	answered(t, "third turn, which the account rejects", c.turn("and on"), byAccount(other))
	b.until(home.Name, "the rejection", func(s shown) bool { return s.State == "cooldown" })

	b.front.to(t, first.url)
	answered(t, "fourth turn, at the first program", c.turn("still there?"), byAccount(other))
	checkPins(t, b.front, "new", "kept", "moved", "kept")

	if got := len(home.Requests()); got != 3 {
		t.Fatalf("requests to the account that rejects: got %d, want 3, the last of them rejected", got)
	}
	// The first program heard of the rejection from the second: whoever is new here is
	// not sent to the account, though its last answer there was a good one.
	answered(t, "another session, at the first program", newClaudeCode(t, b.front.url, b.key).start("hello"), byAccount(other))
	if got := len(home.Requests()); got != 3 {
		t.Errorf("requests to the account that rejects: got %d, want still 3", got)
	}
}
