package command_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/command"
	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/core/pin"
	"holdfast/internal/provider"
	"holdfast/internal/request/conversation"
	"holdfast/internal/store/seal"
	"holdfast/internal/wire/body"
)

func TestUsage(t *testing.T) {
	b := newBench(t)
	tests := []struct {
		want string
		args []string
	}{
		{"no command `holdfast acount`; did you mean account?", []string{"acount"}},
		{"no command `holdfast frobnicate`; see `holdfast --help`", []string{"frobnicate"}},
		{"no command `holdfast account ad`; did you mean add?", []string{"account", "ad"}},
		{"`holdfast account` is followed by one of add,", []string{"account"}},
		{"`holdfast key` is followed by one of create,", []string{"key"}},
		{"no command `holdfast nosuch`; `holdfast help` lists them", []string{"help", "nosuch"}},
		{"unknown flag: --frob; see `holdfast --help`", []string{"--frob"}},
		{"give --data or --table, not both", []string{"status", "--table", "holdfast"}},
		{"`holdfast version` takes no argument", []string{"version", "now"}},
		{"no command `holdfast settings frob`", []string{"settings", "frob"}},
		{"needs KEY and VALUE", []string{"settings", "set"}},
		{"say for which provider and model", []string{"pick", "--provider", "anthropic"}},
		{"give --demo or --try", []string{"serve", "--demo", "--try"}},
		{"`holdfast explain` is not there yet:", []string{"explain", "req_1"}},
		{"no command `holdfast check`", []string{"check"}},
		{"no command `holdfast account forecast`", []string{"account", "forecast"}},
	}
	for _, tt := range tests {
		b.refuses(2, tt.want, tt.args...)
	}
	// run looks for the secret in what these print.
	b.refuses(2, "no command `holdfast [secret]`", apiKey)
	b.refuses(2, "no command `holdfast account [secret]`", "account", apiKey)
	b.refuses(1, "there is no file [secret]", "account", "add", "x", "--provider", "anthropic", "--import", apiKey)
	if _, err := os.Stat(b.dir); err == nil {
		t.Error("a data directory was made for nothing")
	}
}

func TestHelp(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"help", "account"}, {"account", "add", "--help"}} {
		if r := b.must(args...); !strings.Contains(r.stdout, "Usage:") || r.stderr != "" {
			t.Errorf("%v: got %q and %q, want help on standard output", args, r.stdout, r.stderr)
		}
	}
	// What does not exist yet is not offered.
	top := b.must("help").stdout
	for _, absent := range []string{"explain"} {
		if strings.Contains(top, "  "+absent) {
			t.Errorf("help lists %s", absent)
		}
	}
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if r := b.must(args...); r.stdout != "holdfast 1.2.3\n" {
			t.Errorf("%v: got %q", args, r.stdout)
		}
	}
	if got := decode[command.Build](t, b.must("version", "--json")); got != (command.Build{Version: "1.2.3"}) {
		t.Errorf("version --json: got %v", got)
	}
}

// Data directories that cannot be used are told of in one sentence.
func TestDataDirectory(t *testing.T) {
	b := newBench(t)
	file := b.file("file", "")
	for dir, want := range map[string]string{
		file:                         "is a file",
		filepath.Join(file, "below"): "cannot be used: name another one with --data",
		"/proc/nowhere":              "cannot be used: name another one with --data",
		b.file("holdfast.db", "no"):  "is a file",
	} {
		b.dir = dir
		for _, args := range [][]string{{"key", "create", "laptop"}, {"settings", "reset", "reserve"}, {"serve", "--addr", "127.0.0.1:0"}} {
			if r := b.run(args...); r.code != 1 || !strings.Contains(r.stderr, want) {
				t.Errorf("%s, %v: got status %d, %s want %q", dir, args, r.code, r.stderr, want)
			}
		}
	}
}

func TestDataDirectoryByDefault(t *testing.T) {
	home := t.TempDir()
	for name, tt := range map[string]struct {
		env  map[string]string
		want string
	}{
		"the desktop's own":   {map[string]string{"XDG_DATA_HOME": filepath.Join(home, "xdg"), "HOME": home}, "xdg/holdfast/holdfast.key"},
		"relative is ignored": {map[string]string{"XDG_DATA_HOME": "xdg", "HOME": filepath.Join(home, "one")}, "one/.local/share/holdfast/holdfast.key"},
		"below home":          {map[string]string{"HOME": filepath.Join(home, "two")}, "two/.local/share/holdfast/holdfast.key"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.env = tt.env
			var stdout, stderr bytes.Buffer
			if code := command.Run(t.Context(), []string{"settings", "reset", "reserve"}, b.options(strings.NewReader(""), &stdout, &stderr)); code != 0 {
				t.Fatalf("status %d: %s", code, &stderr)
			}
			if _, err := os.Stat(filepath.Join(home, tt.want)); err != nil {
				t.Errorf("the data key is not at %s: %v", tt.want, err)
			}
		})
	}
	b := newBench(t)
	b.env = nil
	var stdout, stderr bytes.Buffer
	if code := command.Run(t.Context(), []string{"account", "list"}, b.options(strings.NewReader(""), &stdout, &stderr)); code != 1 || !strings.Contains(stderr.String(), "HOME is not set") {
		t.Errorf("without HOME: got status %d, %s", code, &stderr)
	}
}

// A data key that was lost must not be replaced: what it sealed would be lost with it.
func TestDataKeyLost(t *testing.T) {
	b := newBench(t)
	b.add("work")
	path := filepath.Join(b.dir, "holdfast.key")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.refuses(1, "put "+path+" back", "account", "list")
	if _, err := os.Stat(path); err == nil {
		t.Error("another key was made in its place")
	}
}

func TestKey(t *testing.T) {
	b := newBench(t)
	b.add("work", "home")
	r := b.must("key", "create", "laptop", "--admin")
	text := strings.TrimSuffix(r.stdout, "\n")
	if !clientkey.WellFormed(text) || strings.Contains(r.stderr, text) {
		t.Fatalf("standard output holds a key alone: %t; standard error holds it too: %t", clientkey.WellFormed(text), strings.Contains(r.stderr, text))
	}
	b.must("key", "create", "ci", "--background", "--accounts", "home, work")

	s := b.open()
	snap, err := s.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	dataKey, err := seal.LoadOrCreate(filepath.Join(b.dir, "holdfast.key"))
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(dataKey)
	if err != nil {
		t.Fatal(err)
	}
	if k, ok := clientkey.Find(snap.Catalog.Keys, clientkey.Hash(box, text)); !ok || k.Name != "laptop" || !k.Admin {
		t.Errorf("the printed key finds %+v, %t", k, ok)
	}

	want := "NAME    BACKGROUND  ADMIN  ACCOUNTS   CREATED\n" +
		"laptop  -           yes    all        2027-03-04\n" +
		"ci      yes         -      home,work  2027-03-04\n"
	list := b.must("key", "list")
	if diff := cmp.Diff(want, list.stdout); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	listed := decode[[]map[string]any](t, b.must("key", "list", "--json"))
	wantJSON := []map[string]any{
		{"name": "laptop", "background": false, "admin": true, "accounts": nil, "created_at": "2027-03-04T10:00:00Z"},
		{"name": "ci", "background": true, "admin": false, "accounts": []any{"home", "work"}, "created_at": "2027-03-04T10:00:00Z"},
	}
	if diff := cmp.Diff(wantJSON, listed); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}

	created := decode[map[string]any](t, b.must("key", "create", "json", "--background", "--accounts", "work", "--json"))
	if text, ok := created["key"].(string); !ok || !clientkey.WellFormed(text) {
		t.Error("key create --json holds no key")
	}
	delete(created, "key")
	if diff := cmp.Diff(map[string]any{"name": "json", "background": true, "admin": false, "accounts": []any{"work"}, "created_at": "2027-03-04T10:00:00Z"}, created); diff != "" {
		t.Errorf("key create --json (-want +got):\n%s", diff)
	}
	b.must("key", "revoke", "json")

	b.refuses(1, "`holdfast key revoke laptop` first", "key", "create", "laptop")
	b.refuses(1, `no account "nobody"`, "key", "create", "x", "--accounts", "nobody")
	b.refuses(2, "without --accounts a key may use all", "key", "create", "x", "--accounts", "")
	b.refuses(2, "1 to 64 characters", "key", "create", "My Key")
	b.refuses(1, `no client key "nobody"`, "key", "revoke", "nobody")
	b.must("key", "revoke", "laptop")
	if got := b.must("key", "list").stdout; strings.Contains(got, "laptop") {
		t.Errorf("after revoking: got\n%s", got)
	}
	b.must("key", "revoke", "ci")
	if r := b.must("key", "list"); !strings.Contains(r.stderr, "holdfast key create") {
		t.Errorf("of nothing: got %q, want advice", r.stderr)
	}
}

func TestSettings(t *testing.T) {
	b := newBench(t)
	type setting struct {
		Name, Value, Default, Range, About string
		Set                                bool
	}
	b.must("settings", "set", "pin_ttl", "90m")
	b.must("settings", "set", "default_models", "")
	for _, args := range [][]string{{"settings", "--json"}, {"settings", "list", "--json"}} {
		list := decode[[]setting](t, b.must(args...))
		if len(list) != len(catalog.Registry()) {
			t.Fatalf("%v lists %d settings, want %d", args, len(list), len(catalog.Registry()))
		}
		for _, s := range list {
			if want := s.Name == "pin_ttl" || s.Name == "default_models"; s.Set != want || s.Range == "" || s.About == "" {
				t.Errorf("%v: %+v", args, s)
			}
		}
		if list[0].Value != "1h30m" || list[0].Default != "1h" {
			t.Errorf("pin_ttl: got %+v, want 1h30m of default 1h", list[0])
		}
	}
	if got := b.must("settings").stdout; !regexp.MustCompile(`(?m)^pin_ttl +1h30m +1h +how long`).MatchString(got) ||
		!regexp.MustCompile(`(?m)^default_models +"" +\*sonnet\*`).MatchString(got) ||
		!regexp.MustCompile(`(?m)^move_after +60s +60s .* a duration from 1s`).MatchString(got) {
		t.Errorf("table:\n%s", got)
	}
	if r := b.must("settings", "set", "move_after", "1m"); r.stderr != "move_after is 60s.\n" {
		t.Errorf("set says %q, want the value in force", r.stderr)
	}
	for _, s := range decode[[]setting](t, b.must("settings", "--json")) {
		if s.Name == "move_after" && (s.Value != "60s" || s.Default != "60s" || !s.Set) {
			t.Errorf("a value that equals the default, typed otherwise: got %+v", s)
		}
	}
	if r := b.must("settings", "reset", "move_after"); r.stderr != "move_after is at its default, 60s.\n" {
		t.Errorf("reset says %q", r.stderr)
	}
	b.must("settings", "reset", "pin_ttl")
	b.must("settings", "reset", "reserve")
	if list := decode[[]setting](t, b.must("settings", "--json")); list[0].Set || list[0].Value != "1h" {
		t.Errorf("after reset: got %+v", list[0])
	}
	b.refuses(2, "pin_ttl must be a duration from 1s to 87600h", "settings", "set", "pin_ttl", "5")
	b.refuses(2, "did you mean pin_ttl?", "settings", "set", "pin_tll", "5m")
	b.refuses(2, "did you mean pin_ttl?", "settings", "reset", "pin_tll")
	b.refuses(2, "reserve must be a fraction from 0 to 1", "settings", "set", "reserve", "NaN")
	b.refuses(2, "reserve must be a fraction from 0 to 1", "settings", "set", "reserve", "-1")
	b.refuses(2, "weight_pace must be a number from 0 to 1000", "settings", "set", "weight_pace", "-.5")
	b.refuses(2, "unknown shorthand flag", "settings", "set", "reserve", "-x")
	if r := b.runAt(nil, "", "settings", "set", "reserve", "-1", "--data", b.dir); r.code != 2 || !strings.Contains(r.stderr, "reserve must be") {
		t.Errorf("a flag behind a negative value: got status %d, %s", r.code, r.stderr)
	}
}

func TestPolicy(t *testing.T) {
	b := newBench(t)
	policy := func() catalog.Policy {
		s := b.open()
		defer shut(t, s)
		snap, err := s.Snapshot(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return snap.Catalog.PolicyOf(account.Anthropic)
	}
	b.must("policy", "anthropic", "order", "--threshold", "0.7")
	if got, want := policy(), (catalog.Policy{Name: catalog.Order, Threshold: 0.7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	b.must("policy", "anthropic", "order")
	if got, want := policy(), (catalog.Policy{Name: catalog.Order, Threshold: 0.8}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"0", "-0.5", "1.01", "NaN", "x", ""} {
		b.refuses(2, "a fraction above 0, at most 1", "policy", "anthropic", "order", "--threshold", bad)
	}
	b.refuses(2, "policy order only", "policy", "anthropic", "score", "--threshold", "0.5")
	b.refuses(2, "score, order or soonest-reset", "policy", "anthropic", "random")
	b.refuses(2, "needs PROVIDER", "policy")
	b.refuses(2, "--threshold goes with a rule", "policy", "anthropic", "--threshold", "0.5")
	b.refuses(2, "a fraction above 0, at most 1", "policy", "anthropic", "order", "--threshold", "0x1p-1")
	if r := b.must("policy", "anthropic"); r.stdout != "anthropic: policy order, threshold 0.8\n" {
		t.Errorf("policy shows %q", r.stdout)
	}
	if got := decode[map[string]any](t, b.must("policy", "anthropic", "--json")); !cmp.Equal(got, map[string]any{"provider": "anthropic", "policy": "order", "threshold": 0.8}) {
		t.Errorf("policy --json shows %v", got)
	}
	b.must("policy", "anthropic", "score")
	if r := b.must("policy", "anthropic"); r.stdout != "anthropic: policy score\n" {
		t.Errorf("policy shows %q", r.stdout)
	}
	if got := decode[map[string]any](t, b.must("policy", "anthropic", "--json")); got["threshold"] != nil {
		t.Errorf("policy --json shows %v", got)
	}
	b.refuses(2, `no provider "acme"; it is one of anthropic, openai or xai`, "policy", "acme", "order")
}

func TestStatus(t *testing.T) {
	b := newBench(t)
	b.add("work")
	b.fold("work", spent)
	got := decode[struct {
		Accounts []struct {
			Name, State, Reason string
			Windows             []struct {
				Name        string
				Utilization float64
			}
		}
		Providers []map[string]any
	}](t, b.must("status", "--json"))
	if len(got.Accounts) != 1 || got.Accounts[0].State != "parked" || got.Accounts[0].Windows[0].Utilization != 1 || len(got.Providers) != 1 {
		t.Errorf("got %+v", got)
	}
	if text := b.must("status").stdout; !strings.Contains(text, "parked (billing_error)") || !strings.Contains(text, "100% for 1h00m") {
		t.Errorf("text:\n%s", text)
	}
	b.refuses(2, "takes no argument", "status", "work")
}

// TestPickOfAPinnedConversation is field case pick-says-nothing-of-the-pin: of a conversation
// that has an account, pick says what the gateway would do with its next request.
func TestPickOfAPinnedConversation(t *testing.T) {
	b := newBench(t)
	b.add("work", "home")
	b.must("key", "create", "laptop")
	b.must("key", "create", "guest", "--accounts", "home")
	s := b.open()
	snap, err := s.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	work, _ := snap.Catalog.Account("work")
	laptop, _ := snap.Catalog.Key("laptop")
	for name, bound := range map[string]bool{"free": false, "bound": true} {
		key := conversation.Identify(laptop.ID, account.Anthropic, name, provider.Request{}, body.Facts{}).Key
		if _, _, err := s.ClaimPin(t.Context(), key, pin.New(work, bound, t0, time.Hour), t0); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, s)
	type report struct {
		Account *string
		Pins    []struct {
			Key     string `json:"client_key"`
			Account string
			Next    string
			To      string
		}
	}
	says := func(conversation, next, to, words string, more ...string) {
		t.Helper()
		ask := append([]string{"pick", "--provider", "anthropic", "--model", "claude-fable-5", "--conversation", conversation}, more...)
		got := decode[report](t, b.must(append(ask, "--json")...))
		if len(got.Pins) != 1 || got.Pins[0].Account != "work" || got.Pins[0].Key != "laptop" || got.Pins[0].Next != next || got.Pins[0].To != to {
			t.Errorf("%s: got %+v, want it on work, %s to %q", conversation, got, next, to)
		}
		if text := b.must(ask...).stdout; !strings.HasPrefix(text, "The conversation of client key laptop is pinned to work;") || !strings.Contains(text, words) || !strings.Contains(text, "\nA new conversation: ") {
			t.Errorf("%s:\n%s", conversation, text)
		}
	}
	says("free", "kept", "work", "It stays there.")
	says("free", "kept", "work", "It stays there.", "--key", "laptop")
	b.fold("work", spent)
	says("free", "moved", "home", "its next request moves it to home")
	says("bound", "refused", "", "Its next request is refused")
	ask := []string{"pick", "--provider", "anthropic", "--model", "claude-fable-5", "--conversation", "free", "--key", "guest", "--json"}
	got := decode[report](t, b.must(ask...))
	if got.Pins != nil || got.Account == nil || *got.Account != "home" {
		t.Errorf("another client key: got %+v", got)
	}
	b.must("account", "clear", "work")
	b.must("account", "drain", "home")
	if got := decode[report](t, b.must(ask...)); got.Account != nil {
		t.Errorf("a client key for home alone: got %s", *got.Account)
	}
	b.now = func() time.Time { return t0.Add(2 * time.Hour) }
	if text := b.must("pick", "--provider", "anthropic", "--model", "claude-fable-5", "--conversation", "free").stdout; strings.Contains(text, "pinned") {
		t.Errorf("the pin has ended:\n%s", text)
	}
}

func TestPick(t *testing.T) {
	b := newBench(t)
	b.must("settings", "reset", "reserve") // makes the data directory
	b.refuses(1, "no account of anthropic", "pick", "--provider", "anthropic", "--model", "claude-sonnet-5")
	b.add("work", "home")
	b.fold("work", spent)
	type explanation struct {
		Account    *string
		Family     string
		Policy     string
		Candidates []struct{ Account, Passed string }
	}
	got := decode[explanation](t, b.must("pick", "--provider", "anthropic", "--model", "claude-fable-5", "--conversation", "c", "--json"))
	home := "home"
	want := explanation{&home, "fable", "score", []struct{ Account, Passed string }{{"work", "parked"}, {"home", ""}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	if text := b.must("pick", "--provider", "anthropic", "--model", "claude-fable-5").stdout; !strings.HasPrefix(text, "home (policy score") ||
		!strings.Contains(text, "\nSCORE is the sum of TERMS, and compares accounts with the same NOTE. Decided by trial: an account of which nothing was read yet") {
		t.Errorf("text:\n%s", text)
	}
	pick := []string{"pick", "--provider", "anthropic", "--model", "claude-fable-5", "--conversation", "c"}
	if text := b.must(pick...).stdout; !strings.Contains(text, "name that with --key NAME") {
		t.Errorf("without a client key:\n%s", text)
	}
	b.must("key", "create", "laptop")
	b.must("key", "create", "server")
	if text := b.must(append(pick, "--key", "laptop")...).stdout; !strings.HasPrefix(text, "home") || strings.Contains(text, "--key NAME") {
		t.Errorf("with a client key:\n%s", text)
	}
	b.refuses(1, `no client key "nobody"`, append(pick, "--key", "nobody")...)
	b.refuses(2, "add --conversation NAME", "pick", "--provider", "anthropic", "--model", "m", "--key", "laptop")
	b.must("account", "drain", "home")
	if text := b.must("pick", "--provider", "anthropic", "--model", "claude-fable-5").stdout; !strings.HasPrefix(text, "No account can take") {
		t.Errorf("text:\n%s", text)
	}
}

// A watched status is written over, with its time; as JSON it is one line each.
func TestStatusWatch(t *testing.T) {
	b := newBench(t)
	b.add("work")
	watch := func(args ...string) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		said := &lines{want: regexp.MustCompile(`(?s)(work.*)\n`), got: make(chan string, 1)}
		var stderr bytes.Buffer
		o := b.options(strings.NewReader(""), nil, &stderr)
		o.Stdout = said
		ended := make(chan int, 1)
		go func() { ended <- command.Run(ctx, append([]string{"status", "--watch", "--data", b.dir}, args...), o) }()
		<-said.got
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("%v: status %d: %s", args, code, &stderr)
		}
		return said.String()
	}
	text := watch()
	if !strings.HasPrefix(text, "\x1b[H2027-03-04 10:00:00Z\x1b[K\n\x1b[K\nACCOUNT") || !strings.HasSuffix(text, "\x1b[K\n\x1b[J") || strings.Contains(text, "[2J") {
		t.Errorf("got %q", text)
	}
	if line := watch("--json"); strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, `{"at":"2027-03-04T10:00:00Z"`) {
		t.Errorf("got %q", line)
	}
}
