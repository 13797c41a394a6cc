package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/aws/cloud/profile"
	"holdfast/internal/core/account"
	"holdfast/internal/store"
	"holdfast/internal/test/deploytest"
	"holdfast/internal/test/upstreamtest"
)

// agents drives each agent by the line that the stack's outputs say to paste, and goes on
// as its user does.
func agents(t *testing.T, s *stack) {
	made := s.pasted(newAgent(t, "claude", s.aws...), s.Outputs["ClientKey"], filepath.Dir(s.path))
	key := strings.TrimSpace(made.stdout)
	if made.code != 0 || !strings.HasPrefix(key, "hf_") {
		t.Fatalf("%s: got exit %d and %q, want a key", s.Outputs["ClientKey"], made.code, made.stderr)
	}
	s.secrets = append(s.secrets, key)
	line := func(a *agent, output string, arguments ...string) result {
		t.Helper()
		text := strings.ReplaceAll(s.Outputs[output], s.GatewayURL, s.front.url)
		if text == "" || text == s.Outputs[output] {
			t.Fatalf("output %s: got %q, want a line with the gateway's URL", output, s.Outputs[output])
		}
		text = strings.ReplaceAll(text, "=KEY ", "="+key+" ")
		return s.pasted(a, text+" "+strings.Join(arguments, " "), filepath.Dir(a.path))
	}

	claude := newAgent(t, "claude", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	answered(t, "Claude Code, first turn", line(claude, "ClaudeCode", "-p", "hello"), "by account")
	home := firstAccount(s.bench)
	other := s.other(home.Name)
	answered(t, "second turn", line(claude, "ClaudeCode", "-c", "-p", "on"), byAccount(home))
	// What is learnt and kept, each of it a write of its own.
	home.Queue(upstreamtest.Good(upstreamtest.Plan(0.40, time.Now().Add(3*time.Hour), 0.35, time.Now().Add(80*time.Hour))))
	s.agePins(t, 2*time.Minute)
	answered(t, "third turn, with a new reading and a touch due", line(claude, "ClaudeCode", "-c", "-p", "on"), byAccount(home))
	s.until(home.Name, "the new reading", func(shown shown) bool { return shown.utilization("five-hour") == 0.40 })
	home.Queue(upstreamtest.FiveHourSpent(time.Now().Add(3 * time.Hour)))
	answered(t, "fourth turn, which the account rejects", line(claude, "ClaudeCode", "-c", "-p", "there?"), byAccount(other))
	s.until(home.Name, "a cooldown", func(shown shown) bool { return shown.State == "cooldown" })
	checkPins(t, s.front, "new", "kept", "kept", "moved")
	s.run(nil, "account", "clear", home.Name)

	codex := newAgent(t, "codex")
	answered(t, "Codex, first turn", line(codex, "Codex", "exec", "--skip-git-repo-check", "hello"), byAccount(s.tansy))
	answered(t, "second turn", line(codex, "Codex", "exec", "--skip-git-repo-check", "resume", "--last", "on"), byAccount(s.tansy))

	grok := newAgent(t, "grok")
	answered(t, "Grok CLI, first turn", line(grok, "GrokCLI", "-p", "hello"), byAccount(s.bracken))
	if again := line(grok, "GrokCLI", "-p", "hello"); again.code == 0 {
		t.Error("the Grok CLI's line overwrites a configuration that is there")
	}
	grok.env = append(grok.env, "HOLDFAST_KEY="+key)
	answered(t, "second turn", command(t, grok.project, grok.env, grok.path, "-c", "-p", "on"), byAccount(s.bracken))
	t.Run("at once", s.atOnce)
	for _, e := range s.front.exchanges() {
		if e.status != http.StatusOK && e.path != "/v1/responses" { // where Codex tries a WebSocket first
			t.Errorf("%s %s: got %d, want 200", e.method, e.path, e.status)
		}
	}
}

// atOnce lets an agent of each kind begin at the same time. None is answered before all
// have asked, so each has an execution environment of its own.
func (s *stack) atOnce(t *testing.T) {
	gates := []*upstreamtest.Gate{upstreamtest.NewGate(), upstreamtest.NewGate(), upstreamtest.NewGate()}
	for _, a := range []*upstreamtest.Account{s.one, s.two} {
		a.Always(upstreamtest.Good(nil).With(upstreamtest.Held(gates[0])))
	}
	s.tansy.Always(upstreamtest.OpenAIGood(codexRoom()).With(upstreamtest.Held(gates[1])))
	s.bracken.Always(upstreamtest.GrokGood().With(upstreamtest.Held(gates[2])))
	defer func() {
		s.equal()
		s.tansy.Always(upstreamtest.OpenAIGood(codexRoom()))
		s.bracken.Always(upstreamtest.GrokGood())
	}()
	go func() {
		for _, g := range gates {
			select {
			case <-g.Reached():
			case <-t.Context().Done():
			}
		}
		for _, g := range gates {
			g.Release()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	defer cancel()
	begun := map[string]func() (string, error){}
	begin := func(name string, a *agent, arguments ...string) {
		cmd := exec.CommandContext(ctx, a.path, arguments...)
		cmd.Dir, cmd.Env = a.project, a.env
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun[name] = func() (string, error) {
			err := cmd.Wait()
			return said.String(), err
		}
	}
	begin("Claude Code", newClaudeCode(t, s.front.url, s.key).agent, "-p", "hello")
	begin("Codex", newCodex(t, s.front.url, s.key).agent, "exec", "--skip-git-repo-check", "hello")
	begin("Grok CLI", newGrok(t, s.front.url, s.key).agent, "-p", "hello")
	for name, wait := range begun {
		if said, err := wait(); err != nil || !strings.Contains(said, "by account") {
			t.Errorf("%s: got %v and %q, want an answer", name, err, said)
		}
	}
}

// pasted runs a line of a shell as an agent's user, who finds programs in a folder.
func (s *stack) pasted(a *agent, line, programs string) result {
	s.t.Helper()
	return command(s.t, a.project, append(slices.Clone(a.env), "PATH="+programs+":"+basePath), "/bin/sh", "-c", line)
}

// agePins makes every conversation look as if it had last been active so long ago.
func (s *stack) agePins(t *testing.T, by time.Duration) {
	t.Helper()
	known := store.New(s.owner(t))
	pins, err := known.Pins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for key, p := range pins {
		p.TouchedAt = p.TouchedAt.Add(-by)
		if _, ours, err := known.ReplacePin(t.Context(), key, p); err != nil || !ours {
			t.Fatalf("age a pin: ours %v, error %v", ours, err)
		}
	}
}

// owner opens the deployed table as the command does.
func (s *stack) owner(t *testing.T) *profile.Table {
	t.Helper()
	t.Setenv("AWS_PROFILE", "")
	for _, variable := range s.Deployment.Owner() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	table, err := profile.Open(t.Context(), s.Table)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// ask is a request of an agent's.
type ask struct {
	method, path, key, session, body string
	header                           http.Header
}

// reply is the whole answer to it.
type reply struct {
	status int
	header http.Header
	body   string
}

const hello = `{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`

// send sends a request through the front; the zero ask is a hello to Anthropic's.
func (s *stack) send(ctx context.Context, a ask) (reply, error) {
	if a.method == "" {
		a.method = http.MethodPost
	}
	if a.path == "" {
		a.path, a.body = "/v1/messages", hello
	}
	if a.key == "" {
		a.key = s.key
	}
	req, err := http.NewRequestWithContext(ctx, a.method, s.front.url+a.path, strings.NewReader(a.body))
	if err != nil {
		return reply{}, err
	}
	for name, values := range a.header {
		req.Header[name] = values
	}
	if !strings.HasPrefix(a.path, "/openai/") {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	if a.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.session != "" {
		req.Header.Set("X-Claude-Code-Session-Id", a.session)
	}
	if a.key != "none" {
		req.Header.Set("X-Api-Key", a.key)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

func (s *stack) do(t *testing.T, a ask) reply {
	t.Helper()
	got, err := s.send(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// deployed makes a request as an agent would.
func deployed(t *testing.T, url, method, path, key, body string) (got struct {
	status int
	body   string
}) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	got.status, got.body = resp.StatusCode, string(content)
	return got
}

// environments lets requests come at once, each of which has an execution environment of
// its own: an environment serves one at a time. Two of them begin one conversation.
func environments(t *testing.T, s *stack) {
	gate := upstreamtest.NewGate()
	for _, a := range []*upstreamtest.Account{s.one, s.two} {
		a.Always(upstreamtest.Good(nil).With(upstreamtest.Held(gate)))
	}
	defer s.equal()
	before := len(s.up.Requests())
	const race = "00000000-0000-4000-8000-00000000ace0"
	sessions := []string{race, race, "00000000-0000-4000-8000-00000000ace1", "00000000-0000-4000-8000-00000000ace2"}
	type end struct {
		reply
		err error
	}
	ends := make([]chan end, len(sessions))
	for i, session := range sessions {
		ends[i] = make(chan end, 1)
		go func() {
			got, err := s.send(t.Context(), ask{session: session})
			ends[i] <- end{got, err}
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	defer cancel()
	if _, err := s.up.Await(ctx, before+len(sessions)); err != nil {
		t.Errorf("not all are being served at once: %v", err)
	}
	gate.Release()
	var pins []string
	accounts := map[string]bool{}
	for i, c := range ends {
		got := <-c
		if got.err != nil || got.status != http.StatusOK {
			t.Fatalf("request %d: got %d %s (%v), want 200", i, got.status, got.body, got.err)
		}
		if sessions[i] == race {
			pins = append(pins, got.header.Get("X-Holdfast-Pin"))
			accounts[got.header.Get("X-Holdfast-Account")] = true
		}
	}
	slices.Sort(pins)
	if diff := cmp.Diff([]string{"kept", "new"}, pins); diff != "" || len(accounts) != 1 {
		t.Errorf("the two that began one conversation went to %v: (-want +got)\n%s", accounts, diff)
	}
}

// requests makes the calls that agents make beside their turns.
func requests(t *testing.T, s *stack) {
	for _, c := range []struct {
		name   string
		ask    ask
		begins string
	}{
		{"stream", ask{path: "/v1/messages", body: `{"stream":true,` + hello[1:]}, "event: message_start\ndata: {"},
		{"JSON", ask{}, `{"id":"msg_`},
		{"count_tokens", ask{path: "/v1/messages/count_tokens", body: hello}, `{"input_tokens":`},
		{"models", ask{method: http.MethodGet, path: "/v1/models"}, `{"data":[`},
		{"status", ask{method: http.MethodGet, path: "/_holdfast/status.json", key: s.admin}, "{\n  \"at\": "},
		{"health", ask{method: http.MethodGet, path: "/_holdfast/health", key: "none"}, "ok\n"},
		{"hello", ask{method: http.MethodGet, path: "/", key: "none"}, "holdfast\n"},
	} {
		if got := s.do(t, c.ask); got.status != http.StatusOK || !strings.HasPrefix(got.body, c.begins) {
			t.Errorf("%s: got %d %q, want 200 %q…", c.name, got.status, got.body, c.begins)
		}
	}
	if got := s.do(t, ask{key: s.passing}); got.status != http.StatusOK {
		t.Errorf("another key: got %d %q, want 200", got.status, got.body)
	}
	s.run(nil, "key", "revoke", "passing")
	// The promise is about time: two seconds after a key was revoked nobody is served with it.
	<-time.After(2 * time.Second)
	if got := s.do(t, ask{key: s.passing}); got.status != http.StatusUnauthorized || !strings.HasPrefix(got.body, `{"type":"error"`) {
		t.Errorf("revoked key: got %d %q, want 401 and an error", got.status, got.body)
	}
}

// measured is what the gateway has logged of a metric so far, added up by its dimensions'
// values.
func (s *stack) measured(t *testing.T) map[string]float64 {
	t.Helper()
	sums := map[string]float64{}
	for line := range strings.Lines(s.Log("Gateway")) {
		data, at, _, err := deploytest.Extract(bytes.TrimSpace([]byte(line)))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, d := range data {
			if age := time.Since(at); age < 0 || age > time.Hour {
				t.Fatalf("%s: is %v old", line, age)
			}
			var of []string
			for _, each := range d.Dimensions {
				of = append(of, each.Value)
			}
			sums[fmt.Sprintf("%s%q", d.Name, of)] += d.Value
		}
	}
	return sums
}

// logged is what the gateway's lines of requests say, added up by the words of a field.
func (s *stack) logged(t *testing.T, field func(line map[string]any) string) map[string]int {
	t.Helper()
	sums := map[string]int{}
	for line := range strings.Lines(s.Log("Gateway")) {
		var members map[string]any
		if json.Unmarshal([]byte(strings.TrimSpace(line)), &members) != nil || members["msg"] != "request" || members["provider"] == nil {
			continue
		}
		sums[field(members)]++
	}
	return sums
}

// requestLines compares the lines that the gateway logged, which the dashboard shows, with
// the answers that agents got. Nothing was wrong, so nothing was measured.
func requestLines(t *testing.T, s *stack) {
	want := map[string]int{}
	for _, e := range s.front.exchanges() {
		if !strings.HasPrefix(e.path, "/v1/") {
			continue
		}
		provider := account.Anthropic
		if e.asked.Get("Anthropic-Version") == "" {
			provider = account.OpenAI
			if slices.Contains([]string{s.bracken.Name, s.sedge.Name}, e.account()) {
				provider = account.XAI
			}
		}
		outcome := "served"
		if e.status != http.StatusOK {
			outcome = "refused"
		}
		want[fmt.Sprintf("%s %s %s %s", provider, e.account(), outcome, e.pin())]++
	}
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	defer cancel()
	for again := time.NewTicker(200 * time.Millisecond); ; { // a log comes by another way than an answer
		got := s.logged(t, func(line map[string]any) string {
			return fmt.Sprintf("%s %s %s %s", line["provider"], line["account"], line["outcome"], line["pin"])
		})
		// The Grok CLI gives up what it asks for beside its turns when it ends; the function
		// answers that all the same.
		for key := range got {
			if strings.HasPrefix(key, "xai "+s.bracken.Name+" served") && got[key] > want[key] {
				got[key] = want[key]
				if want[key] == 0 {
					delete(got, key)
				}
			}
		}
		diff := cmp.Diff(want, got)
		if diff == "" {
			break
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
	if measured := s.measured(t); len(measured) != 0 {
		t.Errorf("measured: got %v, want nothing while nothing is wrong", measured)
	}
}
