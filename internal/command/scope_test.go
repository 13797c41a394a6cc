package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
)

// scopeOf is what `account list --json` and `account show --json` say of an account's scope
// and host; both have to say the same.
func (b *bench) scopeOf(name string) (credential.Scope, string) {
	b.t.Helper()
	type scoped struct {
		Name    string
		BaseURL string `json:"base_url"`
		credential.Scope
	}
	shown := decode[scoped](b.t, b.must("account", "show", name, "--json"))
	for _, listed := range decode[[]scoped](b.t, b.must("account", "list", "--json")) {
		if listed.Name == name {
			if listed != shown {
				b.t.Errorf("the list says %+v, and show %+v", listed, shown)
			}
		}
	}
	return shown.Scope, shown.BaseURL
}

// held is the account's credential.
func (b *bench) held(name string) credential.Credential {
	b.t.Helper()
	s, v := b.sealed()
	defer shut(b.t, s)
	snap, err := s.Snapshot(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	a, _ := snap.Catalog.Account(name)
	c, _, err := v.Load(b.t.Context(), a.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// TestScopeOfAnAccount is field case whose-organization: organization, project and workspace
// are given with the credential, are sealed with it, and are listed.
func TestScopeOfAnAccount(t *testing.T) {
	b := newBench(t)
	b.env["NEW"] = "sk-EXAMPLE-second"
	b.must("account", "add", "lab", "--provider", "openai", "--key-env", "KEY", "--organization", "org-1", "--project", "proj_1")
	b.must("account", "add", "work", "--provider", "anthropic", "--key-env", "KEY", "--workspace", "wrkspc_1")

	check := func(name string, want credential.Scope, base string) {
		t.Helper()
		got, gotBase := b.scopeOf(name)
		if got != want || gotBase != base || b.held(name).Scope != want {
			t.Errorf("%s: got %+v at %q, sealed %+v; want %+v at %q", name, got, gotBase, b.held(name).Scope, want, base)
		}
	}
	check("lab", credential.Scope{Organization: "org-1", Project: "proj_1"}, "")
	check("work", credential.Scope{Workspace: "wrkspc_1"}, "")
	if text := b.must("account", "list").stdout; !strings.Contains(text, "organization org-1, project proj_1") || !strings.Contains(text, "workspace wrkspc_1") {
		t.Errorf("the list does not report them:\n%s", text)
	}
	if text := b.must("account", "show", "lab").stdout; !strings.Contains(text, "org-1") || !strings.Contains(text, "proj_1") {
		t.Errorf("show does not report them:\n%s", text)
	}

	b.must("account", "login", "lab", "--key-env", "NEW")
	check("lab", credential.Scope{Organization: "org-1", Project: "proj_1"}, "") // what is not given stays
	b.must("account", "login", "lab", "--key-env", "NEW", "--project", "proj_2")
	check("lab", credential.Scope{Organization: "org-1", Project: "proj_2"}, "")
	b.must("account", "login", "lab", "--key-env", "NEW", "--other-principal", "--organization", "org-2")
	check("lab", credential.Scope{Organization: "org-2"}, "")

	b.fold("work", spent)
	b.fold("work", func(s account.State) account.State { s.Organization = "org-before"; return s })
	b.must("account", "login", "work", "--workspace", "wrkspc_2")
	check("work", credential.Scope{Workspace: "wrkspc_2"}, "")
	s, c := b.state("work"), b.held("work")
	if s.Parked != nil || len(s.Blocks) != 0 || s.Organization != "" || s.Generation != 2 || c.Generation != 2 || c.Key.Reveal() != apiKey {
		t.Errorf("got %+v and a credential of generation %d; want the same key at generation 2, and nothing against the account", s, c.Generation)
	}
	b.must("account", "login", "work", "--workspace=")
	check("work", credential.Scope{}, "")

	b.fold("work", spent)
	b.must("account", "login", "work", "--base-url", "http://127.0.0.1:9000")
	check("work", credential.Scope{}, "http://127.0.0.1:9000")
	if s := b.state("work"); s.Parked != nil || len(s.Blocks) != 0 || s.Generation != 4 {
		t.Errorf("at another host: got %+v, want generation 4 and nothing against the account", s)
	}
	b.must("account", "login", "work", "--key-env", "NEW", "--base-url", "http://127.0.0.1:9001", "--workspace", "wrkspc_3")
	check("work", credential.Scope{Workspace: "wrkspc_3"}, "http://127.0.0.1:9001")
}

// One key may be good for several organizations, projects or workspaces: each is an account.
func TestOneKeyOfTwoScopes(t *testing.T) {
	b := newBench(t)
	add := func(name string, more ...string) []string {
		return append([]string{"account", "add", name, "--provider", "anthropic", "--key-env", "KEY"}, more...)
	}
	b.must(add("one", "--workspace", "wrkspc_1")...)
	b.must(add("two", "--workspace", "wrkspc_2")...)
	b.refuses(1, `account "two" holds this credential already`, add("three", "--workspace", "wrkspc_2")...)
	b.refuses(1, `account "two" holds this credential already`, "account", "login", "one", "--workspace", "wrkspc_2")
}

func TestScopeRefuses(t *testing.T) {
	b := newBench(t)
	b.must("account", "add", "work", "--provider", "anthropic", "--key-env", "KEY")
	b.must("account", "add", "max", "--provider", "anthropic", "--no-check", "--import", b.login("credentials.json", ""))
	add := func(provider string, more ...string) []string {
		return append([]string{"account", "add", "x", "--provider", provider, "--key-env", "KEY"}, more...)
	}
	b.refuses(2, "--organization is not for an account of anthropic: it takes --workspace", add("anthropic", "--organization", "org-1")...)
	b.refuses(2, "--workspace is not for an account of openai: it takes --organization and --project", add("openai", "--workspace", "wrkspc_1")...)
	b.refuses(2, "--project is not for an account of xai", add("xai", "--project", "proj_1")...)
	b.refuses(2, "--organization takes the provider's id", add("openai", "--organization", "org 1\r\nX: y")...)
	b.refuses(2, "--project is not for an account of anthropic", "account", "login", "work", "--project", "proj_1")
	b.refuses(2, "go with a new credential", "account", "login", "work", "--workspace", "wrkspc_1", "--other-principal")
	b.refuses(2, "--organization goes with an API key", "account", "add", "x", "--provider", "openai", "--import", "auth.json", "--organization", "org-1")
}

// The login that an account has goes on under another scope or host; its refresh token is
// not sent for that.
func TestScopeOfALogin(t *testing.T) {
	b := newBench(t)
	b.must("account", "add", "max", "--provider", "anthropic", "--no-check", "--import", b.login("credentials.json", ""))
	before := b.held("max")
	b.must("account", "login", "max", "--workspace", "wrkspc_1", "--base-url", "http://127.0.0.1:9000")
	after := b.held("max")
	if after.Scope != (credential.Scope{Workspace: "wrkspc_1"}) || after.Generation != before.Generation+1 {
		t.Errorf("got %+v at generation %d", after.Scope, after.Generation)
	}
	if !after.MeantFor("http://127.0.0.1:9000") || after.MeantFor("") || !before.MeantFor("") || before.MeantFor("http://127.0.0.1:9000") {
		t.Error("the login is not for the account's host alone")
	}
	after.Scope, after.BaseURL, after.Generation = before.Scope, before.BaseURL, before.Generation
	if diff := cmp.Diff(before, after, cmp.Comparer(func(a, b credential.Secret) bool { return a == b })); diff != "" {
		t.Errorf("the rest of the login (-before +after):\n%s", diff)
	}
}

// TestOwnHostIsNoBaseURL is field case own-host: a provider's own hosts, however they are
// spelled, are no base URL, so that accounts at them share and one key is taken once.
func TestOwnHostIsNoBaseURL(t *testing.T) {
	for provider, hosts := range map[string][]string{
		"anthropic": {"https://api.anthropic.com", "https://api.anthropic.com:443", "HTTPS://API.Anthropic.com/", "https://api.anthropic.com.", "https://platform.claude.com"},
		"openai":    {"https://api.openai.com/", "https://chatgpt.com", "https://auth.openai.com:443/"},
		"xai":       {"https://api.x.ai", "https://cli-chat-proxy.grok.com", "https://grok.com", "https://auth.x.ai"},
	} {
		for _, host := range hosts {
			b := newBench(t)
			b.env["NEW"] = "sk-EXAMPLE-second"
			b.must("account", "add", "one", "--provider", provider, "--key-env", "KEY")
			add := []string{"account", "add", "two", "--provider", provider, "--base-url", host}
			b.refuses(1, `account "one" holds this credential already`, append(add, "--key-env", "KEY")...)
			if r := b.must(append(add, "--key-env", "NEW")...); !strings.Contains(r.stderr, provider+"'s own host") {
				t.Errorf("%s: it is not said that this host is %s's own: %s", host, provider, r.stderr)
			}
			if _, base := b.scopeOf("two"); base != "" || !b.held("two").MeantFor("") {
				t.Errorf("%s: got base URL %q, want none", host, base)
			}
			b.must("account", "login", "two", "--base-url", "http://127.0.0.1:9000")
			b.must("account", "login", "two", "--base-url", host)
			if _, base := b.scopeOf("two"); base != "" || !b.held("two").MeantFor("") {
				t.Errorf("login at %s: got base URL %q, want none", host, base)
			}
			b.must("account", "login", "two", "--key-env", "NEW", "--base-url", host)
			if _, base := b.scopeOf("two"); base != "" {
				t.Errorf("login with a key at %s: got base URL %q, want none", host, base)
			}
		}
	}
	b := newBench(t)
	b.must("account", "add", "eu", "--provider", "openai", "--key-env", "KEY", "--base-url", "https://eu.api.openai.com:443")
	if _, base := b.scopeOf("eu"); base != "https://eu.api.openai.com" {
		t.Errorf("a region's host: got %q", base)
	}
	b.must("account", "add", "other", "--provider", "anthropic", "--key-env", "KEY", "--base-url", "https://api.openai.com")
	if _, base := b.scopeOf("other"); base != "https://api.openai.com" {
		t.Errorf("another provider's host: got %q", base)
	}
}

// TestTakenAway is field case taken-away: an empty word takes away what an account has, and
// what is changed, kept and taken away is said.
func TestTakenAway(t *testing.T) {
	b := newBench(t)
	b.env["NEW"] = "sk-EXAMPLE-second"
	says := func(r result, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(r.stderr, w) {
				t.Errorf("got %s want %q", r.stderr, w)
			}
		}
	}
	b.must("account", "add", "lab", "--provider", "openai", "--key-env", "KEY", "--organization", "org-1", "--project", "proj_1", "--base-url", "https://eu.api.openai.com")
	says(b.must("account", "login", "lab", "--key-env", "NEW"),
		"Its requests are for organization org-1, as before.", "Its requests are for project proj_1, as before.", "Its requests go to https://eu.api.openai.com, as before.")
	says(b.must("account", "login", "lab", "--project", "proj_2"),
		"Its requests are for organization org-1, as before.", "Its requests are for project proj_2 and no longer for proj_1.")
	says(b.must("account", "login", "lab", "--project", ""), "Its requests name no project any more; it was proj_2.")
	says(b.must("account", "login", "lab", "--base-url", ""), "Its requests go to openai's own host and no longer to https://eu.api.openai.com.")
	if scope, base := b.scopeOf("lab"); base != "" || scope != (credential.Scope{Organization: "org-1"}) || !b.held("lab").MeantFor("") {
		t.Errorf("got %+v at %q", scope, base)
	}
	says(b.must("account", "login", "lab", "--base-url", "http://127.0.0.1:9000"), "Its requests go to http://127.0.0.1:9000 and no longer to openai's own host.")
	says(b.must("account", "login", "lab", "--base-url", "https://api.openai.com"),
		"https://api.openai.com is openai's own host", "Its requests go to openai's own host and no longer to http://127.0.0.1:9000.")
	says(b.must("account", "login", "lab", "--key-env", "KEY", "--other-principal"), "Its requests name no organization any more; it was org-1.")
	says(b.must("account", "login", "lab", "--organization", "org-3"), "Its requests are for organization org-3.")

	b.must("account", "add", "work", "--provider", "anthropic", "--key-env", "KEY", "--workspace", "wrkspc_1")
	says(b.must("account", "login", "work", "--workspace", ""), "Its requests name no workspace any more; it was wrkspc_1.")
	if r := b.must("account", "login", "work", "--workspace", ""); strings.Contains(r.stderr, "any more") {
		t.Errorf("what was not there is said to be taken away: %s", r.stderr)
	}

	// A new account has nothing that could be taken away: a variable was not set.
	for _, flag := range []string{"organization", "project", "workspace", "base-url"} {
		b.refuses(2, "--"+flag+" is empty", "account", "add", "new", "--provider", "openai", "--key-env", "KEY", "--"+flag, "")
	}
	b.refuses(2, "--organization, --project, --workspace or --base-url", "account", "login", "lab")
}

// What goes with a credential that no longer opens is kept too.
func TestScopeOutlivesTheDataKey(t *testing.T) {
	b := newBench(t)
	b.must("account", "add", "lab", "--provider", "openai", "--key-env", "KEY", "--organization", "org-1")
	b.damage("lab")
	b.refuses(1, "give it with this", "account", "login", "lab", "--project", "proj_1")
	b.must("account", "login", "lab", "--key-env", "KEY")
	if scope, _ := b.scopeOf("lab"); scope.Organization != "org-1" {
		t.Errorf("got %+v, want the organization as it was", scope)
	}
}

// damage makes the credential of an account one that does not open.
func (b *bench) damage(name string) {
	b.t.Helper()
	s := b.open()
	defer shut(b.t, s)
	snap, err := s.Snapshot(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	a, _ := snap.Catalog.Account(name)
	record, err := s.Credential(b.t.Context(), a.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	var envelope map[string]any
	if err := json.Unmarshal(record.Sealed, &envelope); err != nil {
		b.t.Fatal(err)
	}
	envelope["sealed"] = []byte("no seal at all, and of some length")
	damaged, err := json.Marshal(envelope)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, ours, err := s.PutCredential(b.t.Context(), a.ID, damaged, record.Revision); err != nil || !ours {
		b.t.Fatal(ours, err)
	}
}
