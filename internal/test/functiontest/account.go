package functiontest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"holdfast/internal/test/awstest"
)

// Resource is something of a stack.
type Resource struct {
	Logical string `xml:"LogicalResourceId"`
	Type    string `xml:"ResourceType"`
	// ID is what AWS calls it.
	ID string `xml:"PhysicalResourceId"`
}

// Resources are those of a stack.
func (d *Deployment) Resources(stack string) []Resource {
	d.t.Helper()
	var listed struct {
		All []Resource `xml:"ListStackResourcesResult>StackResourceSummaries>member"`
	}
	d.Query("cloudformation", url.Values{"Action": {"ListStackResources"}, "Version": {"2010-05-15"}, "StackName": {stack}}, &listed)
	return listed.All
}

// Resource is what AWS calls a resource of the template.
func (d *Deployment) Resource(logical string) string {
	d.t.Helper()
	for _, r := range d.Resources(Stack) {
		if r.Logical == logical {
			return r.ID
		}
	}
	d.t.Fatalf("the stack has no resource %s", logical)
	return ""
}

func (d *Deployment) outputs() map[string]string {
	d.t.Helper()
	var described struct {
		Outputs []struct {
			OutputKey   string
			OutputValue string
		} `xml:"DescribeStacksResult>Stacks>member>Outputs>member"`
	}
	d.Query("cloudformation", url.Values{"Action": {"DescribeStacks"}, "Version": {"2010-05-15"}, "StackName": {Stack}}, &described)
	outputs := map[string]string{}
	for _, o := range described.Outputs {
		outputs[o.OutputKey] = o.OutputValue
	}
	return outputs
}

// Log is what a function of the template logged so far, Gateway or Poller.
func (d *Deployment) Log(function string) string {
	d.t.Helper()
	var found struct {
		Events []struct{ Message string }
	}
	d.Logs("FilterLogEvents", map[string]string{"logGroupName": d.Resource(function + "Log")}, &found)
	var log strings.Builder
	for _, e := range found.Events {
		log.WriteString(strings.TrimSuffix(e.Message, "\n") + "\n")
	}
	return log.String()
}

// Invoke invokes a function of the template with an empty event and returns its error, nil
// for none.
func (d *Deployment) Invoke(function string) error {
	d.t.Helper()
	d.invoked[function]++
	header, answer := d.REST("lambda", http.MethodPost, "/2015-03-31/functions/"+d.Resource(function)+"/invocations", "{}")
	if header.Get("X-Amz-Function-Error") == "" {
		return nil
	}
	var failed struct {
		Message string `json:"errorMessage"`
	}
	if err := json.Unmarshal(answer, &failed); err != nil || failed.Message == "" {
		failed.Message = string(answer)
	}
	return fmt.Errorf("%s fails: %s", function, failed.Message)
}

// Invoked is how often a function was invoked by Invoke.
func (d *Deployment) Invoked(function string) int { return d.invoked[function] }

// Restart lets a function of the template begin with new processes: what they are given is
// written anew, if with the same value.
func (d *Deployment) Restart(function string) {
	d.t.Helper()
	path := "/2015-03-31/functions/" + d.Resource(function) + "/configuration"
	_, answer := d.REST("lambda", http.MethodGet, path, "")
	var same struct{ MemorySize int }
	if err := json.Unmarshal(answer, &same); err != nil {
		d.t.Fatal(err)
	}
	d.REST("lambda", http.MethodPut, path, fmt.Sprintf(`{"MemorySize":%d}`, same.MemorySize))
}

// Template is a resource of the template as it was deployed, by its logical name.
func (d *Deployment) Template(logical string) (properties map[string]any) {
	d.t.Helper()
	var got struct {
		Body string `xml:"GetTemplateResult>TemplateBody"`
	}
	d.Query("cloudformation", url.Values{
		"Action": {"GetTemplate"}, "Version": {"2010-05-15"}, "StackName": {Stack}, "TemplateStage": {"Processed"},
	}, &got)
	var template struct {
		Resources map[string]struct{ Properties map[string]any }
	}
	if err := json.Unmarshal([]byte(got.Body), &template); err != nil {
		d.t.Fatalf("read the template: %v in %.200s", err, got.Body)
	}
	return template.Resources[logical].Properties
}

// Query calls a service that speaks in forms and XML, as the owner.
func (d *Deployment) Query(service string, form url.Values, into any) {
	d.t.Helper()
	_, answer := d.call(service, http.MethodPost, "/", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(form.Encode()))
	if err := xml.NewDecoder(bytes.NewReader(answer)).Decode(into); err != nil {
		d.t.Fatalf("%s: %v in %s", form.Get("Action"), err, answer)
	}
}

// Logs calls an operation of CloudWatch Logs, as the owner.
func (d *Deployment) Logs(operation string, asked, into any) {
	d.t.Helper()
	if _, err := logs(d.t.Context(), awstest.Config(d.Endpoint), operation, asked, into); err != nil {
		d.t.Fatal(err)
	}
}

// LogsAs calls an operation of CloudWatch Logs as somebody and returns the status.
func LogsAs(ctx context.Context, who aws.Config, operation string, asked any) (int, error) {
	return logs(ctx, who, operation, asked, nil)
}

func logs(ctx context.Context, who aws.Config, operation string, asked, into any) (int, error) {
	body, err := json.Marshal(asked)
	if err != nil {
		return 0, err
	}
	header := http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {"Logs_20140328." + operation}}
	status, _, answer, err := signed(ctx, who, "logs", http.MethodPost, "/", header, body)
	if err != nil || into == nil {
		return status, err
	}
	if status != http.StatusOK {
		return status, fmt.Errorf("%s: got %d %s", operation, status, answer)
	}
	return status, json.Unmarshal(answer, into)
}

// REST calls a service by method and path, as the owner.
func (d *Deployment) REST(service, method, path, body string) (http.Header, []byte) {
	d.t.Helper()
	return d.call(service, method, path, http.Header{"Content-Type": {"application/json"}}, []byte(body))
}

// call makes a signed request of the owner's to a service whose client the program does
// not need.
func (d *Deployment) call(service, method, path string, header http.Header, body []byte) (http.Header, []byte) {
	d.t.Helper()
	status, got, answer, err := signed(d.t.Context(), awstest.Config(d.Endpoint), service, method, path, header, body)
	if err != nil || status >= http.StatusMultipleChoices {
		d.t.Fatalf("%s %s %s: got %d %s (%v), want 2xx", service, method, path, status, answer, err)
	}
	return got, answer
}

func signed(ctx context.Context, who aws.Config, service, method, path string, header http.Header, body []byte) (int, http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, *who.BaseEndpoint+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header = header
	hash := sha256.Sum256(body)
	credentials, err := who.Credentials.Retrieve(ctx)
	if err != nil {
		return 0, nil, nil, err
	}
	if err := v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(hash[:]), service, who.Region, time.Now()); err != nil {
		return 0, nil, nil, err
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, answer, err
}
