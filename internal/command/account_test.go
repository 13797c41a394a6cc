package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/store"
)

type listedAccount struct {
	Name, Provider, Kind, Plan, Overage string
	Order                               int
	Draining                            bool
	BaseURL                             string `json:"base_url"`
	AddedAt                             string `json:"added_at"`
}

func (b *bench) accounts() []listedAccount {
	b.t.Helper()
	return decode[[]listedAccount](b.t, b.must("account", "list", "--json"))
}

func (b *bench) order() string {
	b.t.Helper()
	var names []string
	for _, a := range b.accounts() {
		names = append(names, a.Name)
	}
	return strings.Join(names, " ")
}

// keyOf is the API key of an account that add added.
func keyOf(name string) string { return apiKey + "-" + name }

// add adds API keys as accounts.
func (b *bench) add(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.env["KEY_OF"] = keyOf(name)
		b.must("account", "add", name, "--provider", "anthropic", "--key-env", "KEY_OF")
	}
}

// login is Claude Code's file with a login that lasts two hours from t0.
func (b *bench) login(name, more string) string {
	b.t.Helper()
	return b.file(name, `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-EXAMPLE","refreshToken":"sk-ant-ort01-EXAMPLE",`+
		`"expiresAt":1804161600000,"subscriptionType":"max","rateLimitTier":"default_claude_max_5x"`+more+`}}`)
}

func readAll(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAccountAdd(t *testing.T) {
	b := newBench(t)
	b.must("account", "add", "work", "--provider", "anthropic", "--key-env", "KEY", "--plan", "build")
	if r := b.runWith(keyOf("home")+"\n", "account", "add", "--key-stdin", "home", "--provider=anthropic", "--base-url", "http://127.0.0.1:9000/"); r.code != 0 {
		t.Fatalf("from standard input: %s", r.stderr)
	}
	want := []listedAccount{
		{Name: "work", Provider: "anthropic", Kind: "key", Plan: "build", Order: 1, AddedAt: "2027-03-04T10:00:00Z"},
		{Name: "home", Provider: "anthropic", Kind: "key", Order: 2, BaseURL: "http://127.0.0.1:9000", AddedAt: "2027-03-04T10:00:00Z"},
	}
	if diff := cmp.Diff(want, b.accounts()); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}

	s, v := b.sealed()
	defer shut(t, s)
	snap, err := s.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range snap.Catalog.Accounts {
		c, _, err := v.Load(t.Context(), a.ID)
		want := map[string]string{"work": apiKey, "home": keyOf("home")}[a.Name]
		if err != nil || c.Key.Reveal() != want || c.Generation != 1 {
			t.Errorf("credential of %s: its key is right: %t, generation %d, %v", a.Name, c.Key.Reveal() == want, c.Generation, err)
		}
	}
	files, err := os.ReadDir(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(b.dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 || strings.Contains(string(text), "EXAMPLE") {
			t.Errorf("%s has mode %v, and holds the secret in the clear: %t", f.Name(), info.Mode(), strings.Contains(string(text), "EXAMPLE"))
		}
	}
}

func TestAccountAddRefuses(t *testing.T) {
	b := newBench(t)
	add := func(more ...string) []string {
		return append([]string{"account", "add", "x", "--provider", "anthropic"}, more...)
	}
	broken := b.file("broken.json", `{"claudeAiOauth":`)
	mcp := b.file("mcp.json", `{"mcpOAuth":{"server":{"accessToken":"EXAMPLE"}}}`)
	expired := b.file("expired.json", `{"claudeAiOauth":{"accessToken":"EXAMPLE","expiresAt":1804154400000}}`)
	codex := b.file("codex.json", `{"OPENAI_API_KEY":null,"tokens":{"access_token":"EXAMPLE"}}`)
	team := b.login("team.json", `,"subscriptionType":"team"`)
	pipe := filepath.Join(filepath.Dir(b.dir), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	b.env["EMPTY"] = " \n"
	b.env["TWO"] = "EXAMPLE EXAMPLE"
	tests := []struct {
		name string
		code int
		want string
		args []string
	}{
		{"no name", 2, "needs NAME", []string{"account", "add"}},
		{"no provider", 2, "with --provider anthropic, openai or xai", []string{"account", "add", "x", "--key-env", "KEY"}},
		{"unknown provider", 2, `no provider "acme"; it is one of anthropic, openai or xai`, []string{"account", "add", "x", "--provider", "acme", "--key-env", "KEY"}},
		{"no credential", 2, "--key-env VARIABLE, --key-stdin or --import FILE", add()},
		{"two credentials", 2, "not several", add("--key-env", "KEY", "--key-stdin")},
		{"secret as an argument", 2, "never given as an argument", add(apiKey)},
		{"secret as the name", 2, "looks like a secret", []string{"account", "add", apiKey, "--provider", "anthropic", "--key-env", "KEY"}},
		{"secret as a flag", 2, "never given as an argument", add("--key", apiKey)},
		{"secret as a flag's value", 2, "never given as an argument", add("--api-key=" + apiKey)},
		{"secret for a variable", 2, "the name of an environment variable", add("--key-env", apiKey)},
		{"secret as a shorthand", 2, "never given as an argument", add("-" + apiKey)},
		{"variable not set", 1, "NOT_SET is not set", add("--key-env", "NOT_SET")},
		{"variable empty", 1, "EMPTY is empty", add("--key-env", "EMPTY")},
		{"variable with two words", 1, "does not hold one key", add("--key-env", "TWO")},
		{"standard input empty", 1, "standard input is empty", add("--key-stdin")},
		{"bad name", 2, "1 to 64 characters", []string{"account", "add", "My Account", "--provider", "anthropic", "--key-env", "KEY"}},
		{"base URL that is public and plain", 2, "plain http", add("--key-env", "KEY", "--base-url", "http://example.com")},
		{"base URL with a password", 2, "no user name or password", add("--key-env", "KEY", "--base-url", "https://me:hunter2@example.com")},
		{"team without import", 2, "go with --import", add("--key-env", "KEY", "--team")},
		{"long plan", 2, "at most 64 characters", add("--key-env", "KEY", "--plan", strings.Repeat("x", 65))},
		{"unknown flag", 2, "unknown flag: --colour", add("--key-env", "KEY", "--colour", "red")},
		{"flag without its value", 2, "needs an argument: --key-env", add("--key-env")},
		{"import of no file", 1, "there is no file", add("--import", filepath.Join(b.dir, "nothing.json"))},
		{"base URL empty", 2, "--base-url is empty", add("--key-env", "KEY", "--base-url", "")},
		{"base URL of our own", 2, "where holdfast itself listens", add("--key-env", "KEY", "--base-url", "http://LOCALHOST:8787/")},
		{"import of a pipe", 1, "is a pipe or a device", add("--import", pipe)},
		{"import of a device", 1, "is a pipe or a device", add("--import", "/dev/null")},
		{"import of a directory", 1, "is a folder; name the credential file in it", add("--import", filepath.Dir(b.dir))},
		{"import of a broken file", 1, "no JSON object", add("--import", broken)},
		{"import without a login", 1, "MCP servers only", add("--import", mcp)},
		{"import of an expired login", 1, "expired at 2027-03-04T10:00:00Z and the file holds no refresh token", add("--import", expired)},
		{"import of another client's", 1, "Codex", add("--import", codex)},
		{"import of a team's seat", 1, "say --team", add("--import", team)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fresh := *b
			fresh.t = t
			fresh.refuses(tt.code, tt.want, tt.args...)
			if _, err := os.Stat(b.dir); err == nil {
				t.Error("a data directory was made for nothing")
			}
		})
	}
	t.Run("name taken", func(t *testing.T) {
		fresh := newBench(t)
		fresh.add("x")
		fresh.refuses(1, "holdfast account login x", add("--key-env", "KEY")...)
	})
}

func TestAccountAddLogin(t *testing.T) {
	b := newBench(t)
	file := b.login("credentials.json", "")
	r := b.must("account", "add", "max", "--provider", "anthropic", "--import", file, "--no-check")
	for _, want := range []string{"Log in to Claude Code again", "two refreshers", "renews this login by itself, as long as it is served", "your own risk"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("the first login's notices lack %q:\n%s", want, r.stderr)
		}
	}
	if strings.Index(r.stderr, "your own risk") > strings.Index(r.stderr, "Account max is added") {
		t.Errorf("the terms are told only after the login is kept:\n%s", r.stderr)
	}
	second := b.file("second.json", strings.ReplaceAll(readAll(t, file), "ort01-EXAMPLE", "ort01-EXAMPLE-second"))
	r = b.must("account", "add", "second", "--provider", "anthropic", "--import", second, "--no-check", "--plan", "family")
	if strings.Contains(r.stderr, "your own risk") || !strings.Contains(r.stderr, "two refreshers") {
		t.Errorf("the terms are shown once, the other notice always; got:\n%s", r.stderr)
	}
	got := b.accounts()
	if got[0].Kind != "subscription" || got[0].Plan != "max 5x" || got[1].Plan != "family" {
		t.Errorf("got %+v, want subscriptions of plan max 5x and family", got)
	}
	b.refuses(1, `account "max" holds this credential already`, "account", "add", "again", "--provider", "anthropic", "--import", file)
	team := b.login("team.json", `,"subscriptionType":"team","refreshToken":"sk-ant-ort01-EXAMPLE-team"`)
	b.must("account", "add", "seat", "--provider", "anthropic", "--import", team, "--team", "--no-check")
	shown := decode[struct {
		Credential struct {
			ExpiresAt  time.Time `json:"expires_at"`
			Renewable  bool
			Generation int64
		}
	}](t, b.must("account", "show", "max", "--json"))
	if !shown.Credential.ExpiresAt.Equal(t0.Add(2*time.Hour)) || !shown.Credential.Renewable || shown.Credential.Generation != 1 {
		t.Errorf("credential is shown as %+v", shown.Credential)
	}
}

// spent is a state with a reading, a block and a parking.
func spent(s account.State) account.State {
	s = s.Observe(account.Reading{At: t0.Add(-time.Minute), Source: account.FromAnswer, Windows: []account.WindowReading{
		{Name: account.FiveHour, Utilization: 1, HasUtilization: true, ResetAt: t0.Add(time.Hour), Status: account.Rejected},
	}}, 0, account.Rules{})
	s = s.Reject(account.Rejection{Kind: account.WindowSpent, At: t0.Add(-time.Minute), Spent: []account.Spent{{Window: account.FiveHour, ResetAt: t0.Add(time.Hour)}}}, account.Rules{})
	return s.Reject(account.Rejection{Kind: account.Funds, At: t0.Add(-time.Second), Code: "billing_error", Generation: 1}, account.Rules{})
}

func TestAccountLogin(t *testing.T) {
	b := newBench(t)
	b.add("work", "other")
	b.env["NEW"] = "sk-ant-api03-EXAMPLE-second"
	b.env["OTHER"] = keyOf("other")
	b.refuses(1, `account "other" holds this credential already`, "account", "login", "work", "--key-env", "OTHER")
	b.refuses(1, `account "other" holds this credential already`, "account", "add", "third", "--provider", "anthropic", "--key-env", "OTHER")

	b.fold("work", spent)
	b.must("account", "login", "work", "--key-env", "NEW", "--plan", "larger")
	s := b.state("work")
	if s.Parked != nil || s.Generation != 2 || len(pick.BlocksFor(t0, pick.Request{}, pick.Of(account.Account{}, s.State))) != 1 || !s.Seen() {
		t.Errorf("after a login: parked %v, generation %d, %d blocks, seen %t; want it unparked at 2, its cooldown and reading kept",
			s.Parked, s.Generation, len(pick.BlocksFor(t0, pick.Request{}, pick.Of(account.Account{}, s.State))), s.Seen())
	}
	if got := b.accounts()[0]; got.Plan != "larger" || got.Order != 1 {
		t.Errorf("got plan %q and place %d, want larger and 1", got.Plan, got.Order)
	}
	st, v := b.sealed()
	snap, err := st.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	work, _ := snap.Catalog.Account("work")
	if c, revision, err := v.Load(t.Context(), work.ID); err != nil || c.Key.Reveal() != b.env["NEW"] || c.Generation != 2 || revision != 2 {
		t.Errorf("stored: the new key: %t, generation %d, revision %d, %v", c.Key.Reveal() == b.env["NEW"], c.Generation, revision, err)
	}
	shut(t, st)

	t.Run("somebody else's", func(t *testing.T) {
		b.t = t
		b.must("account", "login", "work", "--key-env", "NEW", "--other-principal")
		s := b.state("work")
		if s.Generation != 3 || s.Seen() || len(s.Blocks) != 0 || s.Placed != 0 {
			t.Errorf("got %+v, want generation 3 and nothing else remembered", s)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		b.t = t
		file := b.login("credentials.json", "")
		b.refuses(1, "is an API key and this is a subscription login", "account", "login", "work", "--import", file)
		b.refuses(1, `no account "nobody"`, "account", "login", "nobody", "--key-env", "NEW")
		b.refuses(2, "say where the new credential is", "account", "login", "work")
		b.refuses(2, "never given as an argument", "account", "login", "work", apiKey)
		b.refuses(1, "NOT_SET is not set", "account", "login", "work", "--key-env", "NOT_SET")
	})
}

func TestAccountClear(t *testing.T) {
	b := newBench(t)
	b.add("work")
	b.fold("work", spent)
	if r := b.must("account", "show", "work"); !strings.Contains(r.stdout, "parked (billing_error)") {
		t.Errorf("before: got\n%s", r.stdout)
	}
	b.must("account", "clear", "work")
	s := b.state("work")
	if s.Parked != nil || len(pick.BlocksFor(t0, pick.Request{}, pick.Of(account.Account{}, s.State))) != 0 || !s.ClearedAt.Equal(t0) {
		t.Errorf("after: got %+v, want it free, cleared at %v", s.State, t0)
	}
	b.refuses(1, `no account "nobody"`, "account", "clear", "nobody")
}

// TestAccountShowsWhatItRefuses is field case refusals-of-the-account-read-as-the-client's: the
// owner sees what is refused, until when, why and the cure, and the cure ends it.
func TestAccountShowsWhatItRefuses(t *testing.T) {
	b := newBench(t)
	b.add("work")
	b.env["NEW"] = "sk-ant-api03-EXAMPLE-second"
	region := func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.Access, At: t0, Feature: account.FeatureRegion, Rule: "region"}, account.Rules{})
	}
	for _, cure := range [][]string{
		{"account", "login", "work", "--base-url", "http://127.0.0.1:9000"},
		{"account", "login", "work", "--key-env", "NEW"},
		{"account", "clear", "work"},
	} {
		b.fold("work", func(s account.State) account.State {
			s.ClearedAt = time.Time{}
			return region(s)
		})
		for _, command := range [][]string{{"account", "show", "work"}, {"status"}} {
			r := b.must(command...)
			if !strings.Contains(r.stdout, "refuses everything at this host (region), as far as is known until") || !strings.Contains(r.stdout, "account login work --base-url URL") {
				t.Errorf("%v: got\n%s", command, r.stdout)
			}
		}
		if got := decode[struct {
			Accounts []struct {
				Refuses []struct{ Feature, Until, Why, Cure string }
			}
		}](t, b.must("status", "--json")).Accounts[0].Refuses; len(got) != 1 || got[0].Feature != "region" || got[0].Why != "region" || got[0].Cure == "" || got[0].Until == "" {
			t.Errorf("status --json: got %+v", got)
		}
		b.must(cure...)
		if s := b.state("work"); len(s.Refuses) != 0 {
			t.Errorf("after %v: got %+v, want nothing refused", cure, s.Refuses)
		}
	}
}

func TestAccountRemove(t *testing.T) {
	b := newBench(t)
	b.add("work", "home")
	b.fold("home", spent)
	s := b.open()
	snap, err := s.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	home, _ := snap.Catalog.Account("home")
	shut(t, s)

	b.must("key", "create", "only", "--accounts", "home")
	b.must("key", "create", "both", "--accounts", "home,work")
	b.refuses(1, `client key "only" may use account "home" only, and with nothing left could use all; revoke it first: `+"`holdfast key revoke only`", "account", "remove", "home")
	b.must("key", "revoke", "only")
	if r := b.must("account", "remove", "home"); !strings.Contains(r.stderr, "Client key both may no longer use account home") {
		t.Errorf("got %q, want it to name the key that lost an account", r.stderr)
	}
	if got := b.order(); got != "work" {
		t.Errorf("left: %q, want work", got)
	}
	s = b.open()
	defer shut(t, s)
	view, err := s.Read(t.Context(), store.Query{States: []account.ID{home.ID}, Credentials: []account.ID{home.ID}})
	if err != nil || view.States[home.ID].Revision != 0 || len(view.Credentials) != 0 {
		t.Errorf("of the removed account there is still state %v, credentials %v, %v", view.States, len(view.Credentials), err)
	}
	b.refuses(1, `no account "home"`, "account", "remove", "home")
}

func TestAccountDrainOrderOverage(t *testing.T) {
	b := newBench(t)
	b.add("a", "b", "c")
	b.must("account", "order", "anthropic", "c", "a")
	if got := b.order(); got != "c a b" {
		t.Errorf("order: got %q, want c a b", got)
	}
	b.must("account", "drain", "a")
	b.must("account", "add", "max", "--provider", "anthropic", "--import", b.login("max.json", ""), "--no-check")
	b.must("account", "overage", "max", "allow")
	got := b.accounts()
	if !got[1].Draining || got[0].Draining || got[3].Overage != "allow" {
		t.Errorf("got %+v, want a draining and overage allowed on max", got)
	}
	b.must("account", "resume", "a")
	b.must("account", "overage", "max", "deny")
	if got := b.accounts(); got[1].Draining || got[3].Overage != "deny" {
		t.Errorf("got %+v, want all undone", got)
	}
	b.refuses(1, `no account "nobody"`, "account", "order", "anthropic", "nobody")
	b.refuses(2, "named twice", "account", "order", "anthropic", "a", "a")
	b.refuses(2, "needs PROVIDER", "account", "order")
	b.refuses(1, `account "a" belongs to anthropic, not to xai`, "account", "order", "xai", "a")
	b.refuses(2, "say allow or deny", "account", "overage", "b", "perhaps")
	b.refuses(1, `no account "nobody"`, "account", "drain", "nobody")
	b.refuses(1, `no account "nobody"`, "account", "show", "nobody")
	b.refuses(2, "takes NAME and nothing more", "account", "drain", "a", "b")
}

// Once overage is allowed the status and a pick agree that the account can be used at once, and
// the command says that the guard is gone.
func TestOverageAllowedEndsTheGuard(t *testing.T) {
	b := newBench(t)
	b.must("account", "add", "max", "--provider", "anthropic", "--import", b.login("max.json", ""), "--no-check")
	b.fold("max", func(s account.State) account.State {
		return s.Observe(account.Reading{
			At: t0.Add(-time.Minute), Source: account.FromAnswer, Claim: account.FiveHour, Overage: account.Overage{Charged: true},
			Windows: []account.WindowReading{{Name: account.FiveHour, Utilization: 0.4, HasUtilization: true, ResetAt: t0.Add(2 * time.Hour)}},
		}, 0, account.Rules{})
	})
	says := func(state, headroom, pick string) {
		t.Helper()
		if out := b.must("status").stdout; !strings.Contains(out, state) || !strings.Contains(out, headroom) {
			t.Errorf("the status: got\n%s\nwant %q and %q", out, state, headroom)
		}
		if out := b.must("pick", "--provider", "anthropic", "--model", "claude-opus-5").stdout; !strings.Contains(out, pick) {
			t.Errorf("the pick: got\n%s\nwant %q", out, pick)
		}
	}
	says("cooldown (overage)", "best headroom 0%", "cooldown")
	if r := b.must("account", "overage", "max", "allow"); strings.Contains(r.stderr, "clear") || !strings.Contains(r.stderr, "no longer") {
		t.Errorf("got %q, want that the cooldown is no longer in force", r.stderr)
	}
	says("ready", "best headroom 60%", "max (policy score")
}

func TestAccountList(t *testing.T) {
	b := newBench(t)
	b.must("settings", "reset", "reserve") // makes the data directory
	if r := b.must("account", "list"); r.stdout != "" || !strings.Contains(r.stderr, "holdfast account add") {
		t.Errorf("of nothing: got %q and %q, want advice", r.stdout, r.stderr)
	}
	if r := b.must("account", "list", "--json"); strings.TrimSpace(r.stdout) != "[]" {
		t.Errorf("of nothing: got %q, want an empty list", r.stdout)
	}
	b.add("work")
	want := "NAME  PROVIDER   KIND  PLAN  ORDER  DRAINING  OVERAGE  SENT-FOR  BASE-URL  ADDED\n" +
		"work  anthropic  key   -     1      -         -        -         -         2027-03-04\n"
	if diff := cmp.Diff(want, b.must("account", "list").stdout); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// A login of another seat is somebody else's, whoever holds it.
func TestAccountLoginOtherSeat(t *testing.T) {
	b := newBench(t)
	b.must("account", "add", "max", "--provider", "anthropic", "--import", b.login("max.json", ""), "--no-check")
	team := b.login("team.json", `,"subscriptionType":"team","refreshToken":"sk-ant-ort01-EXAMPLE-team"`)
	b.refuses(1, "has a max 5x plan and this login a team", "account", "login", "max", "--import", team, "--team")
	larger := b.login("larger.json", `,"subscriptionType":"pro","refreshToken":"sk-ant-ort01-EXAMPLE-pro"`)
	b.must("account", "login", "max", "--import", larger, "--no-check")
	b.must("account", "login", "max", "--import", team, "--team", "--other-principal", "--no-check")
	if got := b.accounts()[0].Plan; !strings.HasPrefix(got, "team") {
		t.Errorf("got plan %q, want the team's", got)
	}
}

// An account that was cleared and is nearly full is not used as its owner may expect.
func TestAccountClearNearlyFull(t *testing.T) {
	b := newBench(t)
	b.add("work")
	b.fold("work", func(s account.State) account.State {
		return s.Observe(account.Reading{At: t0.Add(-time.Minute), Source: account.FromAnswer, Windows: []account.WindowReading{
			{Name: account.FiveHour, Utilization: 0.98, HasUtilization: true, ResetAt: t0.Add(time.Hour), Status: account.Warning},
		}}, 0, account.Rules{})
	})
	if r := b.must("account", "clear", "work"); !strings.Contains(r.stderr, "Its last reading still says five-hour 98%") {
		t.Errorf("got %q", r.stderr)
	}
	b.add("home")
	b.fold("home", spent)
	if r := b.must("account", "clear", "home"); strings.Contains(r.stderr, "last reading") || !strings.Contains(r.stderr, "is forgotten, and counts as unknown until it is read again: five-hour.") {
		t.Errorf("of a reading that clearing forgets: got %q, want it said", r.stderr)
	}
}

// A parked account says what its owner is to do.
func TestAccountShowParked(t *testing.T) {
	b := newBench(t)
	b.add("work", "home")
	for name, kind := range map[string]account.RejectionKind{"work": account.BadCredential, "home": account.Funds} {
		b.fold(name, func(s account.State) account.State {
			return s.Reject(account.Rejection{Kind: kind, At: t0.Add(-time.Hour), Rule: "unauthorized", Generation: 1}, account.Rules{})
		})
	}
	for name, want := range map[string]string{"work": "holdfast account login work", "home": "holdfast account clear home"} {
		if r := b.must("account", "show", name); !strings.Contains(r.stdout, want) || !strings.Contains(r.stdout, "parked (unauthorized) since 2027-03-04 09:00Z") {
			t.Errorf("%s: got\n%s", name, r.stdout)
		}
	}
}
