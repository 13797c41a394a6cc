package docs_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
	"holdfast/internal/command"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/provider/openai"
	"holdfast/internal/provider/xai"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
				Providers: map[account.Provider]provider.Provider{account.Anthropic: anthropic.Provider{}, account.OpenAI: openai.Provider{}, account.XAI: xai.Provider{}},
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
