package command_test

import (
	"strings"
	"testing"
)

// TestKeyLooks: a key that looks like another's is taken, with a remark on how to take it
// back; a look that tells nothing is not remarked on.
func TestKeyLooks(t *testing.T) {
	for _, tt := range []struct {
		key, provider string
		want          string // empty: no remark
	}{
		{"sk-ant-api03-EXAMPLE", "anthropic", ""},
		{"sk-ant-api03-EXAMPLE", "openai", "looks like an API key of Anthropic"},
		{"sk-ant-api03-EXAMPLE", "xai", "looks like an API key of Anthropic"},
		{"xai-EXAMPLE", "xai", ""},
		{"xai-EXAMPLE", "anthropic", "looks like an API key of xAI"},
		{"xai-EXAMPLE", "openai", "looks like an API key of xAI"},
		{"sk-proj-EXAMPLE", "openai", ""},
		{"sk-proj-EXAMPLE", "anthropic", "looks like an API key of OpenAI"},
		{"sk-proj-EXAMPLE", "xai", "looks like an API key of OpenAI"},
		{"sk-EXAMPLE", "anthropic", ""},
		{"sk-EXAMPLE", "openai", ""},
		{"sk-EXAMPLE", "xai", ""},
		{"sk-ant-oat01-EXAMPLE", "anthropic", "access token of a Claude login"},
		{"sk-ant-oat01-EXAMPLE", "openai", "access token of a Claude login"},
		{"hf_EXAMPLE", "anthropic", "client key of holdfast"},
		{"hf_EXAMPLE", "xai", "client key of holdfast"},
		{"EXAMPLE", "openai", ""},
	} {
		b := newBench(t)
		b.env["KEY"] = tt.key
		r := b.must("account", "add", "work", "--provider", tt.provider, "--key-env", "KEY")
		if tt.want == "" && strings.Contains(r.stderr, "looks like") {
			t.Errorf("%s at %s: got %q, want no remark", tt.key, tt.provider, r.stderr)
		}
		if tt.want != "" && (!strings.Contains(r.stderr, tt.want) || !strings.Contains(r.stderr, "to take it back: holdfast account remove work\n")) {
			t.Errorf("%s at %s: got %q, want a remark with %q and how to take it back", tt.key, tt.provider, r.stderr, tt.want)
		}
		b.env["KEY"] = "EXAMPLE-plain"
		b.must("account", "login", "work", "--key-env", "KEY")
		b.env["KEY"] = tt.key
		r = b.must("account", "login", "work", "--key-env", "KEY")
		if tt.want != "" && (!strings.Contains(r.stderr, tt.want) || !strings.Contains(r.stderr, "to take it back: holdfast account login work --key-env VARIABLE\n")) {
			t.Errorf("login with %s at %s: got %q, want a remark with %q and how to take it back", tt.key, tt.provider, r.stderr, tt.want)
		}
	}
}

// TestOneKeyAtTwoProviders is taken, with a remark that names the other account.
func TestOneKeyAtTwoProviders(t *testing.T) {
	b := newBench(t)
	b.env["KEY"] = "sk-EXAMPLE"
	b.must("account", "add", "lab", "--provider", "openai", "--key-env", "KEY")
	r := b.must("account", "add", "bracken", "--provider", "xai", "--key-env", "KEY")
	if !strings.Contains(r.stderr, "Account lab of openai has this same key") || !strings.Contains(r.stderr, "holdfast account remove bracken\n") {
		t.Errorf("add: got %q, want a remark on lab", r.stderr)
	}
	b.env["OTHER"] = "sk-EXAMPLE-other"
	b.must("account", "login", "bracken", "--key-env", "OTHER")
	if r := b.must("account", "login", "bracken", "--key-env", "KEY"); !strings.Contains(r.stderr, "Account lab of openai has this same key") {
		t.Errorf("login: got %q, want a remark on lab", r.stderr)
	}
}

// TestOverageOfKeys: a key is paid by use, so there is nothing to allow.
func TestOverageOfKeys(t *testing.T) {
	b := newBench(t)
	b.add("work")
	b.must("account", "add", "max", "--provider", "anthropic", "--import", b.login("max.json", ""), "--no-check")
	for _, word := range []string{"allow", "deny"} {
		b.refuses(1, "account work is an API key, which is paid by use; there is no plan to go beyond", "account", "overage", "work", word)
	}
	b.must("account", "overage", "max", "allow")
	got := b.accounts()
	if got[0].Overage != "" || got[1].Overage != "allow" {
		t.Errorf("got %+v, want nothing of the key and allow of the login", got)
	}
	if r := b.must("account", "show", "work"); !strings.Contains(r.stdout, "\noverage              -\n") {
		t.Errorf("got\n%swant - for overage", r.stdout)
	}
}

// TestDrainOfTheLast says what becomes of new conversations.
func TestDrainOfTheLast(t *testing.T) {
	b := newBench(t)
	b.add("a", "b")
	const remark = "new conversations will be refused"
	if r := b.must("account", "drain", "a"); strings.Contains(r.stderr, remark) {
		t.Errorf("with another account: got %q", r.stderr)
	}
	if r := b.must("account", "drain", "b"); !strings.Contains(r.stderr, remark) || !strings.Contains(r.stderr, "holdfast account resume b") {
		t.Errorf("of the last: got %q, want a remark", r.stderr)
	}
	b.must("account", "resume", "a")
	b.fold("a", spent) // and out of funds
	if r := b.must("account", "drain", "b"); !strings.Contains(r.stderr, remark) {
		t.Errorf("beside a parked one: got %q, want a remark", r.stderr)
	}
}
