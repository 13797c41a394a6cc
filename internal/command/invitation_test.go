package command

import (
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// What --try prints for clients' files is what the README says.
func TestInvitationIsTheReadmes(t *testing.T) {
	text, err := os.ReadFile("../docs/agents.md")
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

// TestWhoReachesAListener is field case listening-everywhere: what other machines can reach is
// said in words that a person can act on, for an address and for all of them.
func TestWhoReachesAListener(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8787": "", "[::1]:8787": "",
		"[::]:8787":          "Other machines can reach port 8787 at every address of this one,",
		"0.0.0.0:8787":       "Other machines can reach port 8787 at every address of this one,",
		"192.168.1.7:8787":   "Other machines can reach 192.168.1.7:8787,",
		"[fd00::1%en0]:8787": "Other machines can reach [fd00::1%en0]:8787,",
	} {
		at := netip.MustParseAddrPort(address)
		if got := reachable(at); !strings.HasPrefix(got, want) || (got == "") != (want == "") || want != "" && !strings.Contains(got, "--addr 127.0.0.1:8787") {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
