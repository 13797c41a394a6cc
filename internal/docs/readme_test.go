package docs_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/command"
	"holdfast/internal/core/catalog"
	"holdfast/internal/provider/all"
)

// readme is what a user reads: the README and the documents that it leads to.
func readme(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{
		"README.md", "internal/docs/agents.md", "internal/docs/accounts.md", "internal/docs/deciding.md", "internal/docs/commands.md",
		"infra/README.md", "functions/README.md", "events/README.md",
	} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestReadmeSettings holds the README's table against the registry.
func TestReadmeSettings(t *testing.T) {
	want := "| setting | default | allowed | meaning |\n|---|---|---|---|\n"
	for _, s := range catalog.Registry() {
		want += fmt.Sprintf("| `%s` | `%s` | %s | %s |\n", s.Name, s.Default, s.Range, s.About)
	}
	_, rest, _ := strings.Cut(readme(t), "<!-- settings")
	_, rest, _ = strings.Cut(rest, "-->\n")
	got, _, found := strings.Cut(rest, "<!-- /settings -->")
	if !found {
		t.Fatal("the README has no table between its settings marks")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings in the README (-want +got):\n%s\nThe table is to read:\n%s", diff, want)
	}
}

// statusOf finds an HTTP status by its name in net/http.
func statusOf(t *testing.T, name string) int {
	t.Helper()
	for status := 400; status < 600; status++ {
		if strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(status)) == name {
			return status
		}
	}
	t.Fatalf("no status is named %s", name)
	return 0
}

// TestReadmeAnswers holds the README's table of answers against the gateway's own: each
// status with the kind that X-Holdfast-Error names, and what net/http's server answers
// before the gateway is asked.
func TestReadmeAnswers(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "internal/request/gateway/refusals.go"))
	if err != nil {
		t.Fatal(err)
	}
	local, err := os.ReadFile(filepath.Join(root, "internal/request/gateway/local.go"))
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := os.ReadFile(filepath.Join(root, "internal/provider/provider.go"))
	if err != nil {
		t.Fatal(err)
	}
	word := map[string]string{} // by the kind's name in the code
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) +RefusalKind = "(\w+)"$`).FindAllSubmatch(kinds, -1) {
		word[string(m[1])] = string(m[2])
	}
	want := []string{"431 -"}
	add := func(status int, kind string) {
		if row := fmt.Sprint(status, " ", word[kind]); !slices.Contains(want, row) {
			want = append(want, row)
		}
	}
	literal := regexp.MustCompile(`Kind: provider\.(\w+), Status: http\.Status(\w+)|out\.Kind, out\.Status = provider\.(\w+), http\.Status(\w+)`)
	for _, m := range literal.FindAllSubmatch(source, -1) {
		add(statusOf(t, string(m[2])+string(m[4])), string(m[1])+string(m[3]))
	}
	for _, m := range regexp.MustCompile(`out\.Kind = provider\.(\w+)`).FindAllSubmatch(source, -1) {
		add(http.StatusTooManyRequests, string(m[1]))
	}
	for _, m := range regexp.MustCompile(`r\.Status = http\.Status(\w+)`).FindAllSubmatch(local, -1) {
		add(statusOf(t, string(m[1])), "Unauthorized")
	}
	if n := strings.Count(string(source), "Status: http.Status"); n < 15 || len(word) != 12 {
		t.Fatalf("got %d refusals and %d kinds: the code is written otherwise than this test reads it", n, len(word))
	}
	_, rest, _ := strings.Cut(readme(t), "<!-- answers")
	table, _, found := strings.Cut(rest, "<!-- /answers -->")
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| (\\d+) \\| `?([a-z_-]+)`? \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || !found {
		t.Errorf("answers in the README (-the code, +the README):\n%s", diff)
	}
}

// invocation is a command line in the README: the program, and its words.
var invocation = regexp.MustCompile("(?m)(?:^|[`| ])(?:bin/)?holdfast ([a-z][^`\n|]*)")

// TestReadmeCommands asks for each command line in the README whether the program knows
// its command and flags.
func TestReadmeCommands(t *testing.T) {
	text := readme(t)
	// Alternatives, optional parts and comments, as the README writes them.
	plain := strings.NewReplacer("[", "", "]", "", "(", "", ")", "").Replace(text)
	plain = regexp.MustCompile(`(?m) +# .*$`).ReplaceAllString(plain, "")
	seen := 0
	for line := range strings.Lines(plain) {
		line = strings.ReplaceAll(line, " | --", " --") // every alternative's flags
		for _, match := range invocation.FindAllStringSubmatch(line, -1) {
			words := strings.Fields(match[1])
			if !isCommand(words[0]) {
				continue // a sentence about holdfast
			}
			seen++
			var stdout, stderr bytes.Buffer
			code := command.Run(t.Context(), append(words, "--help"), command.Options{
				Providers: all.Providers(),
				Stdin:     strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
				LookupEnv: func(string) (string, bool) { return "", false }, Environ: func() []string { return nil }, Now: time.Now, Random: rand.Reader,
			})
			group := strings.Contains(stdout.String(), "[command]")
			if code != 0 || (group && (words[0] != "settings" || len(words) > 1 && words[1] != "--json")) {
				t.Errorf("`holdfast %s` in the README: status %d %s, leads to a command: %t", match[1], code, stderr.String(), !group)
			}
		}
	}
	if seen < 25 {
		t.Errorf("found %d command lines only", seen)
	}
}

func isCommand(word string) bool {
	switch word {
	case "serve", "account", "policy", "key", "settings", "status", "switches", "poll", "pick", "function-url", "version", "help":
		return true
	}
	return false
}

// TestReadmeModel holds the README's examples against the model that the program names in
// its own.
func TestReadmeModel(t *testing.T) {
	for _, match := range regexp.MustCompile(`"model": ?"([^"]+)"`).FindAllStringSubmatch(readme(t), -1) {
		if !slices.Contains(slices.Collect(maps.Values(command.ExampleModels)), match[1]) {
			t.Errorf("the README asks for model %s, the program for one of %v", match[1], command.ExampleModels)
		}
	}
}

// TestReadmeTargets asks for each `make` target in the README.
func TestReadmeTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(readme(t), -1) {
		if !strings.Contains(string(makefile), "\n"+match[1]+":") {
			t.Errorf("`make %s` in the README: the Makefile has no such target", match[1])
		}
	}
}

// TestReadmeChangesAddressAndKeyOnly is field case setup-text-causes-refusals: what the README
// tells a client's user to set is the base URL and the key, and how the client speaks to a
// provider of one's own. Each other default of a client stays as its maker set it.
func TestReadmeChangesAddressAndKeyOnly(t *testing.T) {
	_, rest, _ := strings.Cut(readme(t), "\n## Point your agents at it\n")
	section, _, found := strings.Cut(rest, "\n## ")
	if !found {
		t.Fatal("the README has no section that says how to point agents at holdfast")
	}
	allowed := []string{
		"ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "HOLDFAST_KEY", // environment
		"model_provider", "name", "base_url", "env_key", "wire_api", // Codex
		"default", "model", "api_backend", "context_window", // the Grok CLI, which has no defaults for a model of one's own
		"env", "provider", "anthropic", "openai", "xai", "options", "baseURL", "apiKey", // opencode and settings.json
		"client", "api_key", // the SDKs
		"max_tokens", "messages", "role", "content", "input", // a request of curl's
	}
	set := regexp.MustCompile("(?m)^```[a-z]*\n((?s:.*?))^```")
	name := regexp.MustCompile(`(?m)\b([A-Z][A-Z0-9_]+)=|(\w+) ?= ?["(a-z0-9]|(\w+)="|"(\w+)":`)
	seen := 0
	for _, block := range set.FindAllStringSubmatch(section, -1) {
		for _, match := range name.FindAllStringSubmatch(block[1], -1) {
			seen++
			if got := strings.Join(match[1:], ""); !slices.Contains(allowed, got) {
				t.Errorf("the README tells a client's user to set %q in\n%s", got, block[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("found %d names that are set, want the clients' whole settings", seen)
	}
}
