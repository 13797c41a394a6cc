package functiontest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/test/awstest"
)

// Deployment is the stack that template.yaml describes, built and deployed by the SAM CLI
// in a stand-in account that demands a permission for everything. Its functions run on this
// machine, each under its own role.
type Deployment struct {
	// Endpoint is the account's.
	Endpoint string
	// Outputs are the stack's.
	Outputs map[string]string
	// GatewayURL and Table are among them.
	GatewayURL, Table string
	// URL leads to GatewayURL, whose name nobody here can resolve.
	URL string

	t      testing.TB
	sam    string
	build  string
	config string
	root   string
	// invoked counts the invocations that were asked for here, by function.
	invoked map[string]int
}

// Stack is the stack's name, as samconfig.toml has it.
const Stack = "holdfast"

// AlarmEmail is whom the deployment's alarms are sent to.
const AlarmEmail = "owner@example.com"

// Deploy builds and deploys the stack as somebody does who does it for the first time: with
// `sam deploy --guided`, taking every default but what is asked for here.
func Deploy(t testing.TB) *Deployment {
	t.Helper()
	d := &Deployment{t: t, Endpoint: awstest.StartMiniStack(t, true), build: t.TempDir(), invoked: map[string]int{}}
	d.sam = filepath.Join(os.Getenv("HOLDFAST_TEST_TOOLS"), "aws", "sam", "bin", "python")
	if _, err := os.Stat(d.sam); err != nil {
		t.Fatalf("%v: run `make tools`, which installs it", err)
	}
	var err error
	if d.root, err = Root(); err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile(filepath.Join(d.root, "samconfig.toml"))
	if err != nil {
		t.Fatal(err)
	}
	d.config = filepath.Join(t.TempDir(), "samconfig.toml") // the answers are saved there
	if err := os.WriteFile(d.config, shipped, 0o600); err != nil {
		t.Fatal(err)
	}
	d.Build("first")
	const enter = "\n"
	d.run(strings.Join([]string{
		"", awstest.Region, Architecture, "", "debug", "", AlarmEmail, "true", "", "", "", "", // name, region, parameters
		"n",    // confirm changes
		"", "", // roles; no keeping of what failed
		"y",        // the Function URL has no authentication of AWS's
		"", "", "", // save the answers
	}, enter)+enter, "deploy", "--guided", "--template-file", filepath.Join(d.build, "template.yaml"))
	d.Outputs = d.outputs()
	d.GatewayURL, d.Table = d.Outputs["GatewayUrl"], d.Outputs["TableName"]
	at, err := url.Parse(d.GatewayURL)
	if err != nil || at.Host == "" || d.Table == "" {
		t.Fatalf("got outputs %v, want GatewayUrl and TableName", d.Outputs)
	}
	d.URL = d.lead(at.Host)
	return d
}

// In is the deployment as a test of its own sees it.
func (d *Deployment) In(t testing.TB) *Deployment {
	in := *d
	in.t = t
	return &in
}

// Build builds the functions with a version, which they name in what they send.
func (d *Deployment) Build(version string) {
	d.t.Helper()
	d.run("", "build", "--build-dir", d.build, "VERSION="+version)
}

// DeployAgain deploys what was built, by the answers of the first time, and returns what the
// SAM CLI said.
func (d *Deployment) DeployAgain() string {
	d.t.Helper()
	return d.run("", "deploy", "--no-confirm-changeset", "--template-file", filepath.Join(d.build, "template.yaml"))
}

// DeployElsewhere deploys what was built into another region, by the same answers, and deletes
// that stack again. It returns what the SAM CLI said.
func (d *Deployment) DeployElsewhere(region string) (deployed, deleted string) {
	d.t.Helper()
	deployed = d.run("", "deploy", "--no-confirm-changeset", "--region", region, "--template-file", filepath.Join(d.build, "template.yaml"))
	return deployed, d.run("", "delete", "--no-prompts", "--region", region)
}

// Lines is what `make deploy` tells its owner to paste, with another URL than the Function
// URL's own.
func (d *Deployment) Lines(gateway string) string {
	d.t.Helper()
	var listed []map[string]string
	for name, value := range d.Outputs {
		listed = append(listed, map[string]string{"OutputKey": name, "OutputValue": value})
	}
	outputs, err := json.Marshal(listed)
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.CommandContext(d.t.Context(), d.sam, filepath.Join(d.root, "internal", "test", "awstest", "lines.py"), gateway)
	cmd.Stdin = bytes.NewReader(outputs)
	said, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("lines.py: %v\n%s", err, said)
	}
	return string(said)
}

// Delete deletes the stack and returns what the SAM CLI said.
func (d *Deployment) Delete() string {
	d.t.Helper()
	return d.run("", "delete", "--no-prompts", "--region", awstest.Region)
}

// run runs the SAM CLI by the deployment's samconfig.toml. What has the form NAME=VALUE
// goes into its environment.
func (d *Deployment) run(answers, command string, more ...string) string {
	d.t.Helper()
	arguments := []string{filepath.Join(d.root, "internal", "test", "awstest", "sam.py"), command, "--config-file", d.config}
	environment := append(d.Owner(), "ARCHITECTURE="+Architecture, "SAM_CLI_TELEMETRY=0", "__SAM_CLI_APP_DIR="+d.build)
	for _, each := range more {
		if name, _, is := strings.Cut(each, "="); is && name == strings.ToUpper(name) {
			environment = append(environment, each)
			continue
		}
		arguments = append(arguments, each)
	}
	cmd := exec.CommandContext(d.t.Context(), d.sam, arguments...)
	cmd.Dir, cmd.Env, cmd.Stdin = d.root, environment, strings.NewReader(answers)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "AWS_") { // none that leads to a real account
			cmd.Env = append(cmd.Env, variable)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("sam %s: %v\n%s", strings.Join(arguments[1:], " "), err, out)
	}
	return string(out)
}

// Owner is the environment of a program that the owner runs.
func (d *Deployment) Owner() []string { return ownersEnviron(d.Endpoint) }

func ownersEnviron(endpoint string) []string {
	return []string{
		"AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=" + awstest.Region, "AWS_DEFAULT_REGION=" + awstest.Region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_SESSION_TOKEN=",
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
	}
}

// lead starts a way to a Function URL by its host.
func (d *Deployment) lead(host string) string {
	account, err := url.Parse(d.Endpoint)
	if err != nil {
		d.t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true} // pass on as it is
	server := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(account)
			r.Out.Host = host
		},
	})
	d.t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return server.URL
}
