package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"holdfast/internal/test/awstest"
	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// TestSAMLocal has the functions answer every file of events/ in containers, as `sam local`
// runs them, and agents reach them there by `holdfast function-url --endpoint`. `make
// sam-local` runs it: it needs a container engine.
func TestSAMLocal(t *testing.T) {
	s := newSAMLocal(t)
	t.Run("events", s.events)
	t.Run("start-lambda", s.startLambda)
	t.Logf("\n\nWhat `sam local invoke` printed for each event, shortened; \\0 is a NUL byte:\n%s", strings.Join(s.transcripts, ""))
}

// samLocal is a bench whose functions run in containers.
type samLocal struct {
	*bench
	files  *upstreamtest.Account // at OpenAI, by key
	plan   *upstreamtest.Account // at OpenAI, by a login
	openai *upstreamtest.Upstream
	admin  string // client key
	aws    string // MiniStack's endpoint
	table  string

	program string   // the SAM CLI
	env     []string // its environment
	place   []string // its flags that say what to run, and with what
	// transcripts of the invocations, for whoever reads the test's output.
	transcripts []string
}

func newSAMLocal(t *testing.T) *samLocal {
	t.Helper()
	bridge := os.Getenv("HOLDFAST_TEST_BRIDGE")
	if bridge == "" {
		t.Skip("\n\n*** NOT TESTED: `sam local` needs a container engine. Run `make sam-local`, which finds or starts one and sets HOLDFAST_TEST_BRIDGE. ***\n\n")
	}
	f := functiontest.New(t)
	s := &samLocal{aws: awstest.StartMiniStack(t, false), table: f.Table}
	s.bench = newBenchAt(t, &bench{up: upstreamtest.Start(t), place: []string{"--table", f.Table}, aws: f.Owner()})
	s.up.URL = bridged(t, bridge, s.up.URL)
	s.withAccounts()
	s.addOpenAI(bridge)
	s.admin = strings.TrimSpace(s.run(nil, "key", "create", "admin", "--admin").stdout)
	s.secrets = append(s.secrets, s.admin)

	s.program = filepath.Join(os.Getenv("HOLDFAST_TEST_TOOLS"), "aws", "sam", "bin", "sam")
	root, err := functiontest.Root()
	if err != nil {
		t.Fatal(err)
	}
	home, build := t.TempDir(), t.TempDir()
	s.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "DOCKER_HOST=" + os.Getenv("DOCKER_HOST"),
		"SAM_CLI_TELEMETRY=0", "__SAM_CLI_APP_DIR=" + home,
	}, f.Owner()...)
	s.build(root, build)

	// Of these only variables reach a function that the template declares.
	endpoint := bridged(t, bridge, s.aws)
	variables, err := json.Marshal(map[string]map[string]string{"Parameters": {
		"HOLDFAST_TABLE": f.Table, "HOLDFAST_KMS_KEY_ID": f.KMSKey, "HOLDFAST_LOG_LEVEL": "debug",
		"HOLDFAST_ALARM_TOPIC":      "arn:aws:sns:us-east-1:123456789012:holdfast",
		"AWS_ENDPOINT_URL_DYNAMODB": endpoint, "AWS_ENDPOINT_URL_KMS": endpoint, "AWS_ENDPOINT_URL_CLOUDWATCH": endpoint,
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.place = []string{
		"--template", filepath.Join(build, "template.yaml"), "--parameter-overrides", "Architecture=" + functiontest.Architecture,
		"--env-vars", s.file("env.json", variables), "--skip-pull-image",
	}
	return s
}

// bridged makes a server on this machine's own address one that containers reach.
func bridged(t *testing.T, bridge, target string) string {
	t.Helper()
	at, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(bridge, "0"))
	if err != nil {
		t.Fatalf("%v: containers reach another machine by that address, so the engine is elsewhere, or in a network of its own", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go join(client, at.Host)
		}
	}()
	return "http://" + listener.Addr().String()
}

// join passes bytes both ways, as they are, until one side has had enough.
func join(client net.Conn, address string) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// addOpenAI adds a key, to which files go, and a login, at whose usage the poller looks.
func (s *samLocal) addOpenAI(bridge string) {
	s.t.Helper()
	s.openai = upstreamtest.StartOpenAI(s.t)
	base := bridged(s.t, bridge, s.openai.URL)
	const key, refresh = "sk-e2e-sam-local-SECRET", "rt-e2e-sam-local-SECRET"
	token := upstreamtest.JWT(map[string]any{
		"exp": time.Now().Add(200 * time.Hour).Unix(), "iat": time.Now().Add(-time.Hour).Unix(),
		"https://api.openai.com/auth": map[string]any{
			"chatgpt_plan_type": "plus", "chatgpt_user_id": "user-EXAMPLE01", "chatgpt_account_id": "00000000-0000-4000-8000-000000000001",
		},
	})
	s.secrets = append(s.secrets, key, refresh, token)
	login, err := json.Marshal(map[string]any{"auth_mode": "chatgpt", "OPENAI_API_KEY": nil, "tokens": map[string]any{
		"id_token": token, "access_token": token, "refresh_token": refresh, "account_id": "00000000-0000-4000-8000-000000000001",
	}, "last_refresh": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.files, s.plan = s.openai.Account("files", key), s.openai.Account("plan", token)
	s.files.OnPath("/v1/files", upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(`{"id":"file-EXAMPLE","object":"file"}`)))
	s.plan.OnPath(upstreamtest.CodexUsage, upstreamtest.CodexUsed(12, time.Now().Add(3*time.Hour), 34, time.Now().Add(80*time.Hour)))
	s.run([]string{"E2E_ACCOUNT_KEY=" + key}, "account", "add", "files", "--provider", "openai", "--key-env", "E2E_ACCOUNT_KEY", "--base-url", base)
	s.run(nil, "account", "add", "plan", "--provider", "openai", "--import", s.file("auth.json", login), "--no-check", "--base-url", base)
}

// file writes a file of the test's.
func (s *samLocal) file(name string, content []byte) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// build has the SAM CLI build the functions for this machine.
func (s *samLocal) build(root, dir string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute) // where nothing is built yet
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, "build", "--config-file", filepath.Join(root, "samconfig.toml"), "--config-env", "test",
		"--parameter-overrides", "Architecture="+functiontest.Architecture, "--build-dir", dir)
	cmd.Dir = root
	for _, variable := range os.Environ() { // Go's caches among them
		if !strings.HasPrefix(variable, "AWS_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(append(cmd.Env, s.env...), "HOME="+os.Getenv("HOME"), "ARCHITECTURE="+functiontest.Architecture)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("sam build: %v\n%s", err, out)
	}
}

// event is a file of events/ with the client's key put in, and what it says.
func (s *samLocal) event(t *testing.T, name string) (file string, said event) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "events", name))
	if err != nil {
		t.Fatal(err)
	}
	content = bytes.ReplaceAll(content, []byte("hf_replace-with-a-client-key"), []byte(s.key))
	content = bytes.ReplaceAll(content, []byte("hf_replace-with-an-admin-client-key"), []byte(s.admin))
	if err := json.Unmarshal(content, &said); err != nil {
		t.Fatal(err)
	}
	said.text = content
	return s.file(name, content), said
}

type event struct {
	RawQueryString, Body string
	IsBase64Encoded      bool
	text                 []byte
}

// body is the request's, as the client sent it.
func (e event) body(t *testing.T) string {
	t.Helper()
	if !e.IsBase64Encoded {
		return e.Body
	}
	b, err := base64.StdEncoding.DecodeString(e.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// framed is what a streaming function gives its platform.
type framed struct {
	StatusCode int
	Headers    map[string]string
	Cookies    []string
	body       string
}

// read takes an answer apart: a JSON prelude, eight NUL bytes, the body.
func read(t *testing.T, answer string) (f framed) {
	t.Helper()
	prelude, body, ok := strings.Cut(answer, "\x00\x00\x00\x00\x00\x00\x00\x00")
	if !ok {
		t.Fatalf("got %q, want a prelude, eight NUL bytes and a body", answer)
	}
	if err := json.Unmarshal([]byte(prelude), &f); err != nil {
		t.Fatalf("got prelude %q: %v", prelude, err)
	}
	f.body = body
	return f
}

// invoke runs `sam local invoke` and returns what it printed.
func (s *samLocal) invoke(t *testing.T, function, file string) result {
	t.Helper()
	r := command(t, t.TempDir(), s.env, s.program, append([]string{"local", "invoke", function, "--event", file}, s.place...)...)
	if r.code != 0 {
		t.Fatalf("sam local invoke %s: exit %d: %s", function, r.code, redacted(r.all(), s.secrets))
	}
	s.quiet("sam local invoke", r.all())
	s.transcripts = append(s.transcripts, fmt.Sprintf("\n$ sam local invoke %s --event events/%s\n%s\n",
		function, filepath.Base(file), shortened(strings.TrimRight(r.stdout, "\n"))))
	return r
}

// shortened is text fit for a terminal.
func shortened(text string) string {
	const beginning, end = 480, 160
	text = strings.ReplaceAll(text, "\x00", `\0`)
	if len(text) > beginning+end {
		text = strings.ToValidUTF8(text[:beginning], "") + "\n[…]\n" + strings.ToValidUTF8(text[len(text)-end:], "")
	}
	return text
}

// events runs each sample in a new container, and looks at the answer and at what went on.
func (s *samLocal) events(t *testing.T) {
	ownAnswer := func(t *testing.T, got framed, _ event) {
		if got.Headers["X-Holdfast-Account"] != "" || len(got.Cookies) != 0 {
			t.Errorf("got headers %v and cookies %v, want no account's and none", got.Headers, got.Cookies)
		}
		if n := len(s.up.Requests()); n != 0 {
			t.Errorf("got %d requests upstream, want none", n)
		}
	}
	gateway := map[string]func(t *testing.T, got framed, e event){
		"function-url-head.json": func(t *testing.T, got framed, e event) {
			ownAnswer(t, got, e)
			if strings.TrimSpace(got.body) != "" {
				t.Errorf("got body %q, want none", got.body)
			}
		},
		"function-url-cookies.json": func(t *testing.T, got framed, e event) {
			ownAnswer(t, got, e)
			for _, account := range []string{"one", "two", "files", "plan"} {
				if !strings.Contains(got.body, account) {
					t.Errorf("got %q, want the status, with account %s", got.body, account)
				}
			}
		},
		"function-url-models.json": func(t *testing.T, got framed, e event) {
			if !strings.HasPrefix(got.body, `{"data":[`) || got.Headers["Content-Type"] != "application/json" {
				t.Errorf("got %v %q, want a list of models as JSON", got.Headers, got.body)
			}
			if sent := only(t, s.up.Requests()); sent.Query != e.RawQueryString || sent.Account != got.Headers["X-Holdfast-Account"] {
				t.Errorf("got query %q by account %q upstream, want %q by %q", sent.Query, sent.Account, e.RawQueryString, got.Headers["X-Holdfast-Account"])
			}
		},
		"function-url-messages.json": func(t *testing.T, got framed, e event) {
			sent := only(t, s.up.Requests())
			if string(sent.Body) != e.body(t) || sent.Query != e.RawQueryString || sent.Account != got.Headers["X-Holdfast-Account"] {
				t.Errorf("got query %q and body %q by account %q upstream, want the client's, by %q", sent.Query, sent.Body, sent.Account, got.Headers["X-Holdfast-Account"])
			}
			if got.Headers["X-Holdfast-Pin"] != "new" || got.Headers["Content-Type"] != "text/event-stream; charset=utf-8" {
				t.Errorf("got headers %v, want a new pin and a stream", got.Headers)
			}
			if !strings.HasPrefix(got.body, "event: message_start\n") || !strings.Contains(got.body, "\nevent: message_stop\n") || streamed(got.body) != upstreamtest.Text(sent) {
				t.Errorf("got body %q, want the upstream's stream from beginning to end, with text %q", got.body, upstreamtest.Text(sent))
			}
		},
		"function-url-base64.json": func(t *testing.T, got framed, e event) {
			if got.body != `{"id":"file-EXAMPLE","object":"file"}` || got.Headers["X-Holdfast-Account"] != "files" {
				t.Errorf("got %q by %q, want the upstream's answer by account files", got.body, got.Headers["X-Holdfast-Account"])
			}
			if sent := only(t, s.openai.Requests()); string(sent.Body) != e.body(t) || sent.ContentLength != int64(len(e.body(t))) {
				t.Errorf("got %q upstream, with length %d; want the client's %d bytes", sent.Body, sent.ContentLength, len(e.body(t)))
			}
		},
		"schedule.json": nil,
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "events", "*.json"))
	if err != nil || len(files) != len(gateway) {
		t.Errorf("got %d files in events/ (%v), want the %d that this test knows", len(files), err, len(gateway))
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			s.up.Forget()
			s.openai.Forget()
			file, e := s.event(t, name)
			if name == "schedule.json" {
				s.round(t, s.invoke(t, "Poller", file))
				return
			}
			got := read(t, strings.TrimRight(s.invoke(t, "Gateway", file).stdout, "\n"))
			if got.StatusCode != http.StatusOK {
				t.Fatalf("got %d %v %q, want 200", got.StatusCode, got.Headers, got.body)
			}
			if check := gateway[name]; check != nil {
				check(t, got, e)
			}
		})
	}
}

// streamed is the text of a stream of Anthropic's.
func streamed(events string) (text string) {
	for line := range strings.Lines(events) {
		var said struct{ Delta struct{ Text string } }
		if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &said) == nil {
			text += said.Delta.Text
		}
	}
	return text
}

// only is the one request there was.
func only(t *testing.T, requests []*upstreamtest.Request) *upstreamtest.Request {
	t.Helper()
	if len(requests) != 1 {
		t.Fatalf("got %d requests upstream, want 1", len(requests))
	}
	return requests[0]
}

// round checks what a round of the poller leaves behind.
func (s *samLocal) round(t *testing.T, r result) {
	t.Helper()
	if got := strings.TrimSpace(r.stdout); got != "null" {
		t.Errorf("got %q, want null: a round returns nothing", got)
	}
	if !strings.Contains(r.stderr, `"msg":"round"`) {
		t.Errorf("got log %s, want a round in it", redacted(r.stderr, s.secrets))
	}
	if got := s.show("plan"); got.utilization("five-hour") != 0.12 || got.utilization("weekly") != 0.34 {
		t.Errorf("got %+v, want the account read at what the usage endpoint says", got)
	}
	if got := only(t, s.plan.Requests()); got.Path != upstreamtest.CodexUsage {
		t.Errorf("got a request to %s, want a look at usage", got.Path)
	}
	// Figures are a line of the log; a metric is written only while it has something to say.
	var figures string
	for line := range strings.Lines(r.stderr) {
		if strings.Contains(line, `"msg":"fleet"`) {
			figures = line
		}
	}
	for _, want := range []string{`"utilization":0.12`, `"utilization":0.34`, `"hours_to_reset"`} {
		if !strings.Contains(figures, want) {
			t.Errorf("got figures %q, want %s in them", figures, want)
		}
	}
	client, prefix := cloudwatch.NewFromConfig(awstest.Config(s.aws)), s.table+"-"
	alarms, err := client.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: &prefix})
	if err != nil || len(alarms.MetricAlarms) == 0 {
		t.Errorf("got %d alarms (%v), want the accounts'", len(alarms.MetricAlarms), err)
	}
}

// startLambda has one container, kept for the next request, answer by the Invoke API.
func (s *samLocal) startLambda(t *testing.T) {
	s.up.Forget()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	lambda := s.background(s.env, s.program, append([]string{
		"local", "start-lambda", "--host", "127.0.0.1", "--port", port, "--warm-containers", "LAZY",
	}, s.place...)...)
	t.Cleanup(func() { // it removes its containers then
		_ = lambda.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-lambda.gone:
		case <-time.After(clientLimit):
			t.Errorf("sam local start-lambda does not end when interrupted")
		}
	})

	_, e := s.event(t, "function-url-messages.json")
	invoked, err := http.Post(lambda.url+"/2015-03-31/functions/Gateway/invocations", "application/json", bytes.NewReader(e.text))
	if err != nil {
		t.Fatal(err)
	}
	defer invoked.Body.Close()
	answer, err := io.ReadAll(invoked.Body)
	if err != nil {
		t.Fatal(err)
	}
	// The conversation of the sample that another container has answered.
	if got := read(t, string(answer)); got.StatusCode != http.StatusOK || got.Headers["X-Holdfast-Pin"] != "kept" || !strings.Contains(got.body, "event: message_stop\n") {
		t.Errorf("invoked: got %d %v %q, want 200, the pin kept, and the stream to its end", got.StatusCode, got.Headers, got.body)
	}

	gate := s.background(s.environment(nil), s.path, "function-url", "--addr", "127.0.0.1:0", "--endpoint", lambda.url, "--function", "Gateway")
	s.front.to(t, gate.url)
	const message = `{"model":"claude-opus-5","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello"}]}`
	if got := deployed(t, s.front.url, http.MethodPost, "/v1/messages", s.key, message); got.status != http.StatusOK || !strings.HasPrefix(got.body, "event: message_start\n") {
		t.Errorf("message by the Function URL: got %d %q, want 200 and a stream", got.status, got.body)
	}
	c := newClaudeCode(t, s.front.url, s.key)
	answered(t, "Claude Code's first turn", c.start("hello"), "by account")
	home := firstOf(s.front.exchanges())
	answered(t, "Claude Code's second turn", c.turn("go on"), "by account "+home)
}

// firstOf is the account that began the last conversation.
func firstOf(seen []exchange) (account string) {
	for _, x := range seen {
		if x.pin() == "new" {
			account = x.account()
		}
	}
	return account
}
