package e2e_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestDemonstration is part of field case setup-text-causes-refusals: a newcomer serves the
// demonstration and pastes the line that it prints.
func TestDemonstration(t *testing.T) {
	b := newBench(t)
	p := b.serve("--demo")
	// It listens before it has said everything.
	line := regexp.MustCompile(`ANTHROPIC_AUTH_TOKEN=(\S+) claude\n`)
	var key []string
	for begun := time.Now(); key == nil; key = line.FindStringSubmatch(p.output()) {
		if time.Since(begun) > clientLimit {
			t.Fatalf("no ANTHROPIC_AUTH_TOKEN to paste in %q", p.output())
		}
		<-time.After(time.Millisecond)
	}
	c := newClaudeCode(t, b.front.url, key[1])
	first := c.start("hello")
	answered(t, "first turn", first, "simulation: no model was asked")
	second := c.turn("and again")
	answered(t, "second turn", second, "simulation: no model was asked")
	account := regexp.MustCompile(`Account "[^"]+"`)
	if a, b := account.FindString(first.stdout), account.FindString(second.stdout); a == "" || a != b {
		t.Errorf("account: got %q and then %q, want one", a, b)
	}
	if !strings.Contains(p.output(), "SIMULATION") {
		t.Error("the program does not say that this is a simulation")
	}
}
