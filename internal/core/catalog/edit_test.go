package catalog_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// sample has anthropic accounts marlow, juniper and sorrel with xai's bracken between
// them, and keys restricted to one, two and no account.
func sample(t *testing.T) catalog.Catalog {
	t.Helper()
	var c catalog.Catalog
	var err error
	for _, a := range []account.Account{
		{ID: "1", Name: "marlow", Provider: account.Anthropic},
		{ID: "2", Name: "bracken", Provider: account.XAI},
		{ID: "3", Name: "juniper", Provider: account.Anthropic},
		{ID: "4", Name: "sorrel", Provider: account.Anthropic},
	} {
		if c, err = c.AddAccount(a); err != nil {
			t.Fatal(err)
		}
	}
	for name, accounts := range map[string][]string{"narrow": {"juniper"}, "two": {"marlow", "juniper"}, "all": nil} {
		if c, err = c.AddKey(catalog.ClientKey{ID: name, Name: name, Hash: "h" + name}, accounts); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func names(c catalog.Catalog, p account.Provider) string {
	var list []string
	for _, a := range c.Of(p) {
		list = append(list, a.Name)
	}
	return strings.Join(list, " ")
}

func key(t *testing.T, c catalog.Catalog, name string) catalog.ClientKey {
	t.Helper()
	k, ok := c.Key(name)
	if !ok {
		t.Fatalf("there is no key %q", name)
	}
	return k
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "7", "marlow", "team-2", "a.b_c", "xai-team", "hf_home", "task-force", strings.Repeat("a", 64)} {
		if err := catalog.CheckName(name); err != nil {
			t.Errorf("CheckName(%q): %v", name, err)
		}
	}
	for _, name := range []string{
		"", "Marlow", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", "a\x00", "a=b", strings.Repeat("a", 65),
	} {
		if err := catalog.CheckName(name); err == nil || !strings.Contains(err.Error(), "1 to 64 characters") {
			t.Errorf("CheckName(%q): got %v, want a refusal that gives the rule", name, err)
		}
	}
	for _, name := range []string{"sk-ant-api03-abc", "SK-ANT-x1", "hf_abcdefghijklmnopqrstuvwx", "xai-" + strings.Repeat("a", 30)} {
		err := catalog.CheckName(name)
		if err == nil || !strings.Contains(err.Error(), "--key-env") {
			t.Errorf("CheckName of a secret: got %v, want advice", err)
		}
		if err != nil && strings.Contains(err.Error(), name) {
			t.Error("the refusal repeats the secret")
		}
	}
}

func TestCheckBaseURL(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"https://api.example.com":        "https://api.example.com",
		"https://API.example.com/":       "https://api.example.com",
		"HTTPS://api.example.com:8443":   "https://api.example.com:8443",
		"https://192.0.2.7":              "https://192.0.2.7",
		"http://127.0.0.1:9000":          "http://127.0.0.1:9000",
		"http://127.9.9.9":               "http://127.9.9.9",
		"http://localhost:9000":          "http://localhost:9000",
		"http://[::1]:9000":              "http://[::1]:9000",
		"http://10.1.2.3":                "http://10.1.2.3",
		"http://172.16.0.1":              "http://172.16.0.1",
		"http://192.168.1.1":             "http://192.168.1.1",
		"http://[fd00::1]":               "http://[fd00::1]",
		"http://[::ffff:192.168.1.1]:80": "http://[::ffff:192.168.1.1]",
		"https://api.example.com:443":    "https://api.example.com",
		"https://api.example.com:0443/":  "https://api.example.com",
		"https://api.example.com:80":     "https://api.example.com:80",
		"https://api.example.com.":       "https://api.example.com",
		"https://api.example.com.:8443":  "https://api.example.com:8443",
		"http://127.0.0.1:443":           "http://127.0.0.1:443",
	} {
		got, err := catalog.CheckBaseURL(text)
		if err != nil || got != want {
			t.Errorf("CheckBaseURL(%q): got %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"api.example.com":                "scheme and a host",
		"//api.example.com":              "scheme and a host",
		"ftp://127.0.0.1":                "scheme and a host",
		"https://":                       "scheme and a host",
		"https:api.example.com":          "scheme and a host",
		"https://exa mple.com":           "scheme and a host",
		"http://8.8.8.8":                 "plain http",
		"http://api.example.com":         "plain http",
		"http://localhost.example.com":   "plain http",
		"http://172.32.0.1":              "plain http",
		"http://169.254.169.254":         "plain http",
		"http://0.0.0.0":                 "plain http",
		"http://2130706433":              "plain http",
		"http://127.1":                   "plain http",
		"https://api.example.com/v1":     "ends after the host",
		"https://api.example.com?x=1":    "ends after the host",
		"https://api.example.com?":       "ends after the host",
		"https://api.example.com#":       "ends after the host",
		"https://api.example.com:0":      "port",
		"https://api.example.com:":       "port",
		"https://api.example.com:65536":  "port",
		"https://me:hunter2@example.com": "no user name or password",
		"http://127.0.0.1@evil.example":  "no user name or password",
	} {
		got, err := catalog.CheckBaseURL(text)
		if err == nil || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckBaseURL(%q): got %q, %v, want a refusal with %q", text, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the refusal repeats a password")
		}
	}
}

func TestAddAccount(t *testing.T) {
	c := sample(t)
	if got, want := names(c, account.Anthropic), "marlow juniper sorrel"; got != want {
		t.Errorf("accounts in order of adding: got %q, want %q", got, want)
	}
	for name, tt := range map[string]struct {
		account account.Account
		want    string
	}{
		"taken, by another provider's": {account.Account{Name: "bracken", Provider: account.Anthropic}, `an account "bracken" already`},
		"bad name":                     {account.Account{Name: "No Good", Provider: account.Anthropic}, "1 to 64 characters"},
		"bad base URL":                 {account.Account{Name: "new", Provider: account.Anthropic, BaseURL: "http://example.com"}, "plain http"},
	} {
		if _, err := c.AddAccount(tt.account); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	c, err := c.AddAccount(account.Account{Name: "new", Provider: account.XAI, BaseURL: "https://Example.com/"})
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := c.Account("new"); a.BaseURL != "https://example.com" {
		t.Errorf("base URL kept as %q, want https://example.com", a.BaseURL)
	}
}

func TestRemoveAccount(t *testing.T) {
	c := sample(t)

	t.Run("the only account of a key", func(t *testing.T) {
		_, err := c.RemoveAccount("juniper")
		if err == nil || !strings.Contains(err.Error(), "holdfast key revoke narrow") {
			t.Errorf("got %v, want a refusal that names the key", err)
		}
	})
	t.Run("one of two of a key", func(t *testing.T) {
		after, err := c.RemoveAccount("marlow")
		if err != nil {
			t.Fatal(err)
		}
		if got := names(after, account.Anthropic); got != "juniper sorrel" {
			t.Errorf("left: %q, want juniper sorrel", got)
		}
		if diff := cmp.Diff([]account.ID{"3"}, key(t, after, "two").Accounts); diff != "" {
			t.Errorf("accounts of the key (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]account.ID{"1", "3"}, key(t, c, "two").Accounts); diff != "" {
			t.Errorf("the catalog that was changed (-want +got):\n%s", diff)
		}
	})
	t.Run("no key ever widens", func(t *testing.T) {
		after, err := c.RevokeKey("narrow")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"marlow", "juniper"} {
			next, err := after.RemoveAccount(name)
			if err != nil {
				if name != "juniper" {
					t.Fatal(err)
				}
				break
			}
			after = next
		}
		if k := key(t, after, "two"); k.Allows("4") {
			t.Errorf("the key may now use an account that it was never given")
		}
	})
	t.Run("unknown", func(t *testing.T) {
		if _, err := c.RemoveAccount("nobody"); err == nil || !strings.Contains(err.Error(), `no account "nobody"`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a secret in place of a name", func(t *testing.T) {
		if _, err := c.RemoveAccount("sk-ant-secret"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want a refusal that does not repeat it", err)
		}
	})
}

func TestReorder(t *testing.T) {
	c := sample(t)
	tests := []struct {
		name  string
		names []string
		want  string
		err   string
	}{
		{"one first", []string{"sorrel"}, "sorrel marlow juniper", ""},
		{"all", []string{"juniper", "sorrel", "marlow"}, "juniper sorrel marlow", ""},
		{"none", nil, "", "name the accounts"},
		{"unknown", []string{"nobody"}, "", `no account "nobody"`},
		{"foreign", []string{"bracken"}, "", "belongs to xai"},
		{"twice", []string{"marlow", "marlow"}, "", "named twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after, err := c.Reorder(account.Anthropic, tt.names)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := names(after, account.Anthropic); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got := names(after, account.XAI); got != "bracken" {
				t.Errorf("the other provider's: got %q, want bracken", got)
			}
			if got := names(c, account.Anthropic); got != "marlow juniper sorrel" {
				t.Errorf("the catalog that was changed now has %q", got)
			}
		})
	}
}

func TestMarks(t *testing.T) {
	c := sample(t)
	for name, tt := range map[string]struct {
		change func(catalog.Catalog, string) (catalog.Catalog, error)
		get    func(account.Account) any
		want   any
	}{
		"drain":   {catalog.Catalog.Drain, func(a account.Account) any { return a.Draining }, true},
		"resume":  {catalog.Catalog.Resume, func(a account.Account) any { return a.Draining }, false},
		"overage": {func(c catalog.Catalog, n string) (catalog.Catalog, error) { return c.SetOverage(n, true) }, func(a account.Account) any { return a.Overage }, true},
		"plan":    {func(c catalog.Catalog, n string) (catalog.Catalog, error) { return c.LogIn(n, "", "max") }, func(a account.Account) any { return a.Plan }, "max"},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := tt.change(c, "juniper")
			if err != nil {
				t.Fatal(err)
			}
			if a, _ := after.Account("juniper"); tt.get(a) != tt.want {
				t.Errorf("got %v, want %v", tt.get(a), tt.want)
			}
			if diff := cmp.Diff(sample(t).Accounts, c.Accounts); diff != "" {
				t.Errorf("the catalog that was changed (-want +got):\n%s", diff)
			}
			if _, err := tt.change(c, "nobody"); err == nil {
				t.Error("an unknown account was accepted")
			}
		})
	}
}

func TestSetPolicy(t *testing.T) {
	tests := []struct {
		name      string
		policy    catalog.PolicyName
		threshold float64
		want      catalog.Policy
		err       string
	}{
		{"order, default threshold", catalog.Order, 0, catalog.Policy{Name: catalog.Order, Threshold: 0.80}, ""},
		{"order at 1", catalog.Order, 1, catalog.Policy{Name: catalog.Order, Threshold: 1}, ""},
		{"score", catalog.Score, 0, catalog.Policy{Name: catalog.Score, Threshold: 0.80}, ""},
		{"soonest-reset", catalog.SoonestReset, 0, catalog.Policy{Name: catalog.SoonestReset, Threshold: 0.80}, ""},
		{"above 1", catalog.Order, 1.01, catalog.Policy{}, "above 0, at most 1"},
		{"negative", catalog.Order, -0.5, catalog.Policy{}, "above 0, at most 1"},
		{"not a number", catalog.Order, math.NaN(), catalog.Policy{}, "above 0, at most 1"},
		{"endless", catalog.Order, math.Inf(1), catalog.Policy{}, "above 0, at most 1"},
		{"threshold of another policy", catalog.Score, 0.5, catalog.Policy{}, "policy order only"},
		{"unknown", "random", 0, catalog.Policy{}, "score, order or soonest-reset"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := catalog.Catalog{}.SetPolicy(account.Anthropic, tt.policy, tt.threshold)
			if tt.err != "" {
				var invalid catalog.Invalid
				if err == nil || !strings.Contains(err.Error(), tt.err) || !errors.As(err, &invalid) {
					t.Errorf("got %v, want %q, as Invalid", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.PolicyOf(account.Anthropic); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestAddKey(t *testing.T) {
	c := sample(t)
	tests := []struct {
		name     string
		key      string
		accounts []string
		want     []account.ID
		err      string
	}{
		{"all accounts", "new", nil, nil, ""},
		{"two", "new", []string{"marlow", " bracken"}, []account.ID{"1", "2"}, ""},
		{"one twice", "new", []string{"marlow", "marlow"}, []account.ID{"1"}, ""},
		{"empty among them", "new", []string{"marlow", ""}, nil, "without an empty one"},
		{"only an empty one", "new", []string{""}, nil, "without an empty one"},
		{"unknown account", "new", []string{"nobody"}, nil, `no account "nobody"`},
		{"taken", "all", nil, nil, `a client key "all" already`},
		{"bad name", "No", nil, nil, "1 to 64 characters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after, err := c.AddKey(catalog.ClientKey{Name: tt.key}, tt.accounts)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, key(t, after, tt.key).Accounts); diff != "" {
				t.Errorf("accounts (-want +got):\n%s", diff)
			}
			if len(c.Keys) != 3 {
				t.Errorf("the catalog that was changed now has %d keys, want 3", len(c.Keys))
			}
		})
	}
}

func TestRevokeKey(t *testing.T) {
	c := sample(t)
	after, err := c.RevokeKey("narrow")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := after.Key("narrow"); ok || len(after.Keys) != 2 {
		t.Errorf("the key is still there, among %d", len(after.Keys))
	}
	if _, err := after.RevokeKey("narrow"); err == nil || !strings.Contains(err.Error(), `no client key "narrow"`) {
		t.Errorf("revoking again: got %v", err)
	}
}

func FuzzCheckBaseURL(f *testing.F) {
	for _, text := range []string{"https://api.example.com", "http://127.0.0.1:1", "http://[::1]", "http://a@b", "https://x/%2f", "http://localhost:80#"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := catalog.CheckBaseURL(text)
		if err != nil {
			if got != "" {
				t.Errorf("CheckBaseURL(%q) returned %q beside its refusal", text, got)
			}
			return
		}
		again, err := catalog.CheckBaseURL(got)
		if err != nil || again != got {
			t.Errorf("CheckBaseURL(%q) gave %q, which gives %q, %v", text, got, again, err)
		}
	})
}

// A credential that two accounts have would count twice, and has its limits once.
func TestCredentialHeldElsewhere(t *testing.T) {
	with := func(name, hash, base string) account.Account {
		return account.Account{ID: account.ID("id-" + name), Name: name, Provider: account.Anthropic, SecretHash: hash, BaseURL: base}
	}
	c, err := catalog.Catalog{}.AddAccount(with("one", "h1", ""))
	if err != nil {
		t.Fatal(err)
	}
	const want = `account "one" holds this credential already`
	if _, err := c.AddAccount(with("two", "h1", "")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	for name, a := range map[string]account.Account{
		"another credential": with("two", "h2", ""), "another host": with("two", "h1", "http://127.0.0.1:9000"), "nobody knows": with("two", "", ""),
	} {
		if _, err := c.AddAccount(a); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if c, err = c.AddAccount(with("two", "h2", "")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.LogIn("two", "h1", ""); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("log in: got %v, want %q", err, want)
	}
	if c, err = c.LogIn("one", "h1", "max"); err != nil {
		t.Fatalf("log in with the same again: %v", err)
	}
	if a, _ := c.Account("one"); a.Plan != "max" || a.SecretHash != "h1" {
		t.Errorf("got %+v", a)
	}
	if c, err = c.LogIn("one", "h3", ""); err != nil {
		t.Fatal(err)
	}
	if a, _ := c.Account("one"); a.Plan != "max" || a.SecretHash != "h3" {
		t.Errorf("without a plan: got %+v, want the plan kept", a)
	}
}

// A derived key that was revoked must not come back.
func TestSeedsAreSpent(t *testing.T) {
	var c catalog.Catalog
	for _, k := range []catalog.ClientKey{{Name: "drawn"}, {Name: "second", Seed: 2}, {Name: "first", Seed: 1}} {
		var err error
		if c, err = c.AddKey(k, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		name string
		want int
	}{{"drawn", 0}, {"second", 2}, {"first", 2}} {
		var err error
		if c, err = c.RevokeKey(step.name); err != nil || c.SpentSeed != step.want {
			t.Errorf("step %d: got %d and %v, want %d", i, c.SpentSeed, err, step.want)
		}
	}
}
