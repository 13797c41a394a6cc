package functiontest

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/awstest"
)

// Deployment is the stack that template.yaml describes, built and deployed by the SAM CLI
// in a stand-in account that demands a permission for everything. Its function runs on this
// machine, under its own role.
type Deployment struct {
	// Endpoint is the account's.
	Endpoint string
	// GatewayURL and Table are the stack's outputs.
	GatewayURL, Table string
	// URL leads to GatewayURL, whose name nobody here can resolve.
	URL string

	t     testing.TB
	sam   string
	build string
	root  string
}

const stack = "holdfast" // as samconfig.toml names it

// Deploy builds and deploys the stack.
func Deploy(t testing.TB) *Deployment {
	t.Helper()
	d := &Deployment{t: t, Endpoint: awstest.StartMiniStack(t, true), build: t.TempDir()}
	d.sam = filepath.Join(os.Getenv("HOLDFAST_TEST_TOOLS"), "aws", "sam", "bin", "sam")
	if _, err := os.Stat(d.sam); err != nil {
		t.Fatalf("%v: run `make tools`, which installs it", err)
	}
	var err error
	if d.root, err = Root(); err != nil {
		t.Fatal(err)
	}
	d.run("build", "--build-dir", d.build)
	d.DeployAgain()
	outputs := d.outputs()
	d.GatewayURL, d.Table = outputs["GatewayUrl"], outputs["TableName"]
	at, err := url.Parse(d.GatewayURL)
	if err != nil || at.Host == "" || d.Table == "" {
		t.Fatalf("got outputs %v, want GatewayUrl and TableName", outputs)
	}
	d.URL = d.lead(at.Host)
	return d
}

// DeployAgain deploys what was built and returns what the SAM CLI said.
func (d *Deployment) DeployAgain() string {
	d.t.Helper()
	return d.run("deploy", "--template-file", filepath.Join(d.build, "template.yaml"))
}

// run runs the SAM CLI as samconfig.toml says for tests.
func (d *Deployment) run(command string, more ...string) string {
	d.t.Helper()
	arguments := append([]string{
		command, "--config-file", filepath.Join(d.root, "samconfig.toml"), "--config-env", "test",
		"--parameter-overrides", "Architecture=" + Architecture, "LogLevel=debug",
	}, more...)
	cmd := exec.CommandContext(d.t.Context(), d.sam, arguments...)
	cmd.Dir = d.root
	cmd.Env = append(d.Owner(), "ARCHITECTURE="+Architecture, "SAM_CLI_TELEMETRY=0", "__SAM_CLI_APP_DIR="+d.build)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "AWS_") { // none that leads to a real account
			cmd.Env = append(cmd.Env, variable)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("sam %s: %v\n%s", strings.Join(arguments, " "), err, out)
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

func (d *Deployment) outputs() map[string]string {
	d.t.Helper()
	var described struct {
		Outputs []struct {
			OutputKey   string
			OutputValue string
		} `xml:"DescribeStacksResult>Stacks>member>Outputs>member"`
	}
	d.query("cloudformation", url.Values{"Action": {"DescribeStacks"}, "Version": {"2010-05-15"}, "StackName": {stack}}, &described)
	outputs := map[string]string{}
	for _, o := range described.Outputs {
		outputs[o.OutputKey] = o.OutputValue
	}
	return outputs
}

// resource is the name that AWS gave to a resource of the template.
func (d *Deployment) resource(logical string) string {
	d.t.Helper()
	var described struct {
		ID string `xml:"DescribeStackResourceResult>StackResourceDetail>PhysicalResourceId"`
	}
	d.query("cloudformation", url.Values{
		"Action": {"DescribeStackResource"}, "Version": {"2010-05-15"}, "StackName": {stack}, "LogicalResourceId": {logical},
	}, &described)
	if described.ID == "" {
		d.t.Fatalf("the stack has no resource %s", logical)
	}
	return described.ID
}

// Log is what the function logged so far.
func (d *Deployment) Log() string {
	d.t.Helper()
	asked, err := json.Marshal(map[string]string{"logGroupName": d.resource("GatewayLog")})
	if err != nil {
		d.t.Fatal(err)
	}
	var found struct {
		Events []struct{ Message string }
	}
	answer := d.call("logs", http.Header{
		"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {"Logs_20140328.FilterLogEvents"},
	}, asked)
	if err := json.Unmarshal(answer, &found); err != nil {
		d.t.Fatalf("read the log: %v in %s", err, answer)
	}
	var log strings.Builder
	for _, e := range found.Events {
		log.WriteString(strings.TrimSuffix(e.Message, "\n") + "\n")
	}
	return log.String()
}

func (d *Deployment) query(service string, form url.Values, into any) {
	d.t.Helper()
	answer := d.call(service, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(form.Encode()))
	if err := xml.NewDecoder(bytes.NewReader(answer)).Decode(into); err != nil {
		d.t.Fatalf("%s: %v in %s", form.Get("Action"), err, answer)
	}
}
