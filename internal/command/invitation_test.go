package command

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
)

// What --try prints for clients' files is what the README says.
func TestInvitationIsTheReadmes(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var all catalog.Catalog
	for _, p := range account.Providers {
		all.Accounts = append(all.Accounts, account.Account{ID: account.ID(p), Name: string(p), Provider: p, Kind: account.Key})
	}
	setting := regexp.MustCompile(`^(\[[a-z_.-]+\]|[a-z_]+ = .*)$`)
	seen := 0
	for line := range strings.Lines(invitation(all, "http://127.0.0.1:8787", "hf_…")) {
		line = strings.TrimSuffix(line, "\n")
		if !setting.MatchString(line) && !strings.HasPrefix(line, "  HOLDFAST_KEY=") && !strings.HasPrefix(line, "  ANTHROPIC_BASE_URL=") {
			continue
		}
		seen++
		if !strings.Contains(string(text), "\n"+strings.TrimSpace(line)+"\n") {
			t.Errorf("the README lacks the line %q", line)
		}
	}
	if seen < 17 {
		t.Errorf("found %d lines only", seen)
	}
}
