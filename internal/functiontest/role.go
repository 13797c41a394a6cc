package functiontest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"holdfast/internal/awstest"
)

// AsFunction is the identity of a user who may do what the deployed function may, and no
// more: the policy of its role is that user's.
func (d *Deployment) AsFunction() aws.Config {
	d.t.Helper()
	iam := func(action string, into any, parameters ...string) {
		d.t.Helper()
		form := url.Values{"Action": {action}, "Version": {"2010-05-08"}}
		for i := 0; i < len(parameters); i += 2 {
			form.Set(parameters[i], parameters[i+1])
		}
		d.query("iam", form, into)
	}
	const user = "as-the-function"
	var policy struct {
		Document string `xml:"GetRolePolicyResult>PolicyDocument"`
	}
	iam("GetRolePolicy", &policy, "RoleName", d.resource("GatewayRole"), "PolicyName", "gateway")
	document, err := url.QueryUnescape(policy.Document)
	if err != nil || document == "" {
		d.t.Fatalf("got policy %q (%v), want a document", policy.Document, err)
	}
	var nothing struct{}
	iam("CreateUser", &nothing, "UserName", user)
	iam("PutUserPolicy", &nothing, "UserName", user, "PolicyName", "gateway", "PolicyDocument", document)
	var made struct {
		ID     string `xml:"CreateAccessKeyResult>AccessKey>AccessKeyId"`
		Secret string `xml:"CreateAccessKeyResult>AccessKey>SecretAccessKey"`
	}
	iam("CreateAccessKey", &made, "UserName", user)
	cfg := awstest.Config(d.Endpoint)
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: made.ID, SecretAccessKey: made.Secret}, nil
	})
	return cfg
}

// call makes a signed request of the owner's to a service whose client the program does
// not need.
func (d *Deployment) call(service string, header http.Header, body []byte) []byte {
	d.t.Helper()
	ctx := d.t.Context()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Endpoint+"/", bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header = header
	hash := sha256.Sum256(body)
	owner := aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}
	if err := v4.NewSigner().SignHTTP(ctx, owner, req, hex.EncodeToString(hash[:]), service, awstest.Region, time.Now()); err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: got %d %s (%v), want 200", service, resp.StatusCode, answer, err)
	}
	return answer
}
