package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clientLimit ends a client that hangs. A turn takes one to five seconds.
const clientLimit = 60 * time.Second

// basePath is the PATH of everything that is started here.
const basePath = "/usr/local/bin:/usr/bin:/bin"

// tool finds a client among the test tools.
func tool(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("HOLDFAST_TEST_TOOLS")
	if dir == "" {
		t.Skip("\n\n*** NOT TESTED: the end-to-end tests need real clients. Run `make test`, which installs them and sets HOLDFAST_TEST_TOOLS. ***\n\n")
	}
	path := filepath.Join(dir, "npm", "node_modules", ".bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("HOLDFAST_TEST_TOOLS has no %s (%v): run `make test`, which installs it", name, err)
	}
	return path
}

// result is what a process left behind.
type result struct {
	stdout, stderr string
	code           int // exit status; -1 when a signal ended it
}

func (r result) all() string { return r.stdout + "\n" + r.stderr }

// command runs a program with nothing but the environment given, standard input closed,
// and returns when it and all that it started are gone.
func command(t *testing.T, dir string, env []string, path string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A group of its own: what a client leaves running must not outlive the test's folders.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	r := result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%s did not end within %v:\n%s", filepath.Base(path), clientLimit, r.all())
	case err != nil && !errors.As(err, &exit):
		t.Fatalf("run %s: %v", filepath.Base(path), err)
	}
	return r
}

// agent is a client with a home and a project folder of its own.
type agent struct {
	t             *testing.T
	path          string
	home, project string
	env           []string
}

func newAgent(t *testing.T, name string, env ...string) *agent {
	t.Helper()
	a := &agent{t: t, path: tool(t, name), home: t.TempDir(), project: t.TempDir()}
	a.env = append([]string{"PATH=" + basePath, "HOME=" + a.home}, env...)
	return a
}

// claudeCode is Claude Code with its base URL and key set, and nothing else that changes
// what it sends.
type claudeCode struct{ *agent }

func newClaudeCode(t *testing.T, base, key string) claudeCode {
	t.Helper()
	return claudeCode{newAgent(t, "claude",
		"ANTHROPIC_BASE_URL="+base, "ANTHROPIC_AUTH_TOKEN="+key,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")}
}

// start begins a new session with a first turn; turn goes on with it.
func (c claudeCode) start(prompt string) result {
	c.t.Helper()
	return command(c.t, c.project, c.env, c.path, "-p", prompt)
}

func (c claudeCode) turn(prompt string) result {
	c.t.Helper()
	return command(c.t, c.project, c.env, c.path, "-c", "-p", prompt)
}

// file writes a file of the client's own below its home.
func (a *agent) file(path, content string) {
	a.t.Helper()
	path = filepath.Join(a.home, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// codex is Codex with a provider of the owner's own.
type codex struct{ *agent }

func newCodex(t *testing.T, base, key string, more ...string) codex {
	t.Helper()
	c := codex{newAgent(t, "codex", "HOLDFAST_KEY="+key)}
	c.file(".codex/config.toml", `model = "gpt-5.5"
model_provider = "holdfast"

[model_providers.holdfast]
name = "holdfast"
base_url = "`+base+`/v1"
env_key = "HOLDFAST_KEY"
wire_api = "responses"
`+strings.Join(more, "\n"))
	return c
}

// start begins a new session with a first turn; turn goes on with it.
func (c codex) start(prompt string) result {
	c.t.Helper()
	return command(c.t, c.project, c.env, c.path, "exec", "--skip-git-repo-check", prompt)
}

func (c codex) turn(prompt string) result {
	c.t.Helper()
	return command(c.t, c.project, c.env, c.path, "exec", "--skip-git-repo-check", "resume", "--last", prompt)
}

// grok is the Grok CLI with a model of the owner's own. The model's table has the model's
// own name: once a session was resumed, the CLI remembers that name and no other, and
// under it would find its built-in model, at xAI's own host.
type grok struct{ *agent }

func newGrok(t *testing.T, base, key string) grok {
	t.Helper()
	g := grok{newAgent(t, "grok", "HOLDFAST_KEY="+key)}
	g.file(".grok/config.toml", `[models]
default = "grok-4.6"

[model."grok-4.6"]
model = "grok-4.6"
name = "Grok via holdfast"
base_url = "`+base+`/v1"
api_backend = "responses"
env_key = "HOLDFAST_KEY"
context_window = 500000
`)
	return g
}

// start begins a new session with a first turn; turn goes on with it.
func (g grok) start(prompt string) result {
	g.t.Helper()
	return command(g.t, g.project, g.env, g.path, "-p", prompt)
}

func (g grok) turn(prompt string) result {
	g.t.Helper()
	return command(g.t, g.project, g.env, g.path, "-c", "-p", prompt)
}

// openCode is opencode with Anthropic's and OpenAI's models behind the base URL.
type openCode struct{ *agent }

func newOpenCode(t *testing.T, base, key string) openCode {
	t.Helper()
	// It would install a plugin package of its own from the network, which nothing needs.
	o := openCode{newAgent(t, "opencode",
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "npm_config_offline=true")}
	behind := map[string]any{"options": map[string]string{"baseURL": base + "/v1", "apiKey": key}}
	config, err := json.Marshal(map[string]any{
		"$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled",
		"model": "anthropic/claude-sonnet-4-5", "small_model": "anthropic/claude-haiku-4-5",
		"provider": map[string]any{"anthropic": behind, "openai": behind},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.project, "opencode.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// start begins a new session with a first turn.
func (o openCode) start(prompt string) result {
	o.t.Helper()
	return command(o.t, o.project, o.env, o.path, "run", prompt)
}

// startWith begins a new session with another model than the default; turnWith goes on
// with the last session.
func (o openCode) startWith(model, prompt string) result {
	o.t.Helper()
	return command(o.t, o.project, o.env, o.path, "run", "-m", model, prompt)
}

func (o openCode) turnWith(model, prompt string) result {
	o.t.Helper()
	return command(o.t, o.project, o.env, o.path, "run", "-c", "-m", model, prompt)
}

// answered checks that a turn went well for its user: exit 0 and the text on the screen.
func answered(t *testing.T, turn string, r result, text string) {
	t.Helper()
	if r.code != 0 || !strings.Contains(r.stdout, text) {
		t.Fatalf("%s: got exit %d and %q (%q), want exit 0 and %q", turn, r.code, r.stdout, r.stderr, text)
	}
}
