package deploytest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// answers runs infra/deploy.py in a folder that has the two files.
func answers(t *testing.T, shared, own string, words ...string) (string, string) {
	t.Helper()
	script, err := filepath.Abs("../../../infra/deploy.py")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"samconfig.toml": shared, "samconfig.local.toml": own} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{script}, words...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", words, err)
	}
	merged, _ := os.ReadFile(filepath.Join(dir, ".aws-sam", "samconfig.yaml"))
	return strings.TrimSpace(string(out)), string(merged)
}

// A deployment keeps the answers that were saved, in either file; the owner's own file wins, and
// what is said this time wins over both.
func TestDeploymentsKeepAnswers(t *testing.T) {
	const shared = `
[default.global.parameters]
stack_name = "holdfast"
[default.deploy.parameters]
resolve_s3 = true
parameter_overrides = "LogLevel=\"warn\" MemorySize=\"256\""
`
	const own = `
[default.deploy.parameters]
stack_name = "mine"
parameter_overrides = "Architecture=\"x86_64\" AlarmEmail=\"me@example.com\" LogLevel=\"debug\""
`
	for _, c := range []struct {
		own   string
		words []string
		want  string
	}{
		{own, []string{"stack"}, "mine"},
		{"", []string{"stack"}, "holdfast"},
		{own, []string{"architecture"}, "x86_64"},
		{"", []string{"architecture"}, ""},
		{own, []string{"parameters"}, "LogLevel=debug\nMemorySize=256\nArchitecture=x86_64\nAlarmEmail=me@example.com"},
		{own, []string{"parameters", "LogLevel=info", "AlarmEmail="}, "LogLevel=info\nMemorySize=256\nArchitecture=x86_64\nAlarmEmail="},
		{`[default.deploy.parameters]` + "\nparameter_overrides = [\"AlarmEmail=me@example.com\"]", []string{"parameters"}, "LogLevel=warn\nMemorySize=256\nAlarmEmail=me@example.com"},
	} {
		if got, _ := answers(t, shared, c.own, c.words...); got != c.want {
			t.Errorf("%v: got %q, want %q", c.words, got, c.want)
		}
	}
	if _, merged := answers(t, shared, own, "config"); !strings.Contains(merged, `"resolve_s3": true`) || !strings.Contains(merged, `"stack_name": "mine"`) {
		t.Errorf("got\n%s", merged)
	}
}

// What is said of the processor once is kept, beside what the file holds already.
func TestDeploymentsSaveTheProcessor(t *testing.T) {
	for name, own := range map[string]string{
		"no file":        "",
		"another answer": "[default.deploy.parameters]\nparameter_overrides = \"AlarmEmail=\\\"me@example.com\\\"\"\n",
		"another value":  "[default.deploy.parameters]\nparameter_overrides = \"Architecture=\\\"arm64\\\" AlarmEmail=\\\"me@example.com\\\"\"\n",
		"no parameters":  "[default.deploy.parameters]\nregion = \"eu-west-1\"\n",
		"no section":     "[default.global.parameters]\nstack_name = \"mine\"\n",
	} {
		script, err := filepath.Abs("../../../infra/deploy.py")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if own != "" {
			if err := os.WriteFile(filepath.Join(dir, "samconfig.local.toml"), []byte(own), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run := func(words ...string) string {
			cmd := exec.CommandContext(t.Context(), "python3", append([]string{script}, words...)...)
			cmd.Dir = dir
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v: %v", name, words, err)
			}
			return string(out)
		}
		run("save", "Architecture=x86_64")
		got := run("parameters")
		if !strings.Contains(got, "Architecture=x86_64\n") || strings.Contains(own, "me@") && !strings.Contains(got, "AlarmEmail=me@example.com") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
