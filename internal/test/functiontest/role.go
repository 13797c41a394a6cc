package functiontest

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"holdfast/internal/test/awstest"
)

// Statement is a statement of a policy.
type Statement struct {
	Sid    string
	Action []string
	// Rest is all else of it.
	Rest map[string]any
}

// policyOf is the name of the one policy of a role of the template.
var policyOf = map[string]string{"GatewayRole": "gateway", "PollerRole": "poller"}

// Policy is the policy of a role of the template, GatewayRole or PollerRole.
func (d *Deployment) Policy(role string) (statements []Statement) {
	d.t.Helper()
	var policy struct {
		Document string `xml:"GetRolePolicyResult>PolicyDocument"`
	}
	d.iam("GetRolePolicy", &policy, "RoleName", d.Resource(role), "PolicyName", policyOf[role])
	document, err := url.QueryUnescape(policy.Document)
	if err != nil {
		d.t.Fatal(err)
	}
	var read struct{ Statement []map[string]any }
	if err := json.Unmarshal([]byte(document), &read); err != nil || len(read.Statement) == 0 {
		d.t.Fatalf("got policy %q (%v), want a document", document, err)
	}
	for _, rest := range read.Statement {
		s := Statement{Rest: rest}
		s.Sid, _ = rest["Sid"].(string)
		switch actions := rest["Action"].(type) {
		case string:
			s.Action = []string{actions}
		case []any:
			for _, a := range actions {
				action, _ := a.(string)
				s.Action = append(s.Action, action)
			}
		}
		delete(rest, "Sid")
		delete(rest, "Action")
		statements = append(statements, s)
	}
	return statements
}

// Document is a policy of statements.
func Document(statements []Statement) string {
	var all []map[string]any
	for _, s := range statements {
		one := map[string]any{"Sid": s.Sid, "Action": s.Action}
		for name, value := range s.Rest {
			one[name] = value
		}
		all = append(all, one)
	}
	document, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": all})
	if err != nil {
		panic(err) // of what was decoded from JSON
	}
	return string(document)
}

// SetPolicy gives a role of the template another policy, at once.
func (d *Deployment) SetPolicy(role string, statements []Statement) {
	d.t.Helper()
	var nothing struct{}
	d.iam("PutRolePolicy", &nothing, "RoleName", d.Resource(role), "PolicyName", policyOf[role], "PolicyDocument", Document(statements))
}

// Without are the statements without one action of one of them, or without the statement
// where that was its last.
func Without(statements []Statement, sid, action string) (rest []Statement) {
	for _, s := range statements {
		if s.Sid == sid {
			s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(a string) bool { return a == action })
		}
		if len(s.Action) > 0 {
			rest = append(rest, s)
		}
	}
	return rest
}

// As is the identity of a user who may do what the statements allow, and no more.
func (d *Deployment) As(user string, statements []Statement) aws.Config {
	d.t.Helper()
	var nothing struct{}
	d.iam("CreateUser", &nothing, "UserName", user)
	d.iam("PutUserPolicy", &nothing, "UserName", user, "PolicyName", "all", "PolicyDocument", Document(statements))
	var made struct {
		ID     string `xml:"CreateAccessKeyResult>AccessKey>AccessKeyId"`
		Secret string `xml:"CreateAccessKeyResult>AccessKey>SecretAccessKey"`
	}
	d.iam("CreateAccessKey", &made, "UserName", user)
	cfg := awstest.Config(d.Endpoint)
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: made.ID, SecretAccessKey: made.Secret}, nil
	})
	return cfg
}

func (d *Deployment) iam(action string, into any, parameters ...string) {
	d.t.Helper()
	form := url.Values{"Action": {action}, "Version": {"2010-05-08"}}
	for i := 0; i < len(parameters); i += 2 {
		form.Set(parameters[i], parameters[i+1])
	}
	d.Query("iam", form, into)
}
