package profile_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/aws/cloud/profile"
	"holdfast/internal/store"
	"holdfast/internal/test/awstest"
)

// TestTrouble: what AWS or the network does to a call is told in a sentence, and stays the
// kind of error it was.
func TestTrouble(t *testing.T) {
	endpoint := awstest.StartMiniStack(t, true)
	cfg := awstest.Config(endpoint)
	tagged := deploy(t, cfg, "holdfast:kms-key", newKey(t, cfg))
	read := func(table *profile.Table) error {
		_, err := store.New(table).Read(t.Context(), store.Query{Catalog: true})
		return err
	}
	box := func(table *profile.Table) error {
		_, err := table.Box(t.Context())
		return err
	}
	alarms := func(table *profile.Table) error { return table.RemoveAlarm(t.Context(), "juniper") }
	denied := awstest.Refuse(http.StatusBadRequest, "AccessDeniedException")
	for _, c := range []struct {
		name        string
		operation   string
		trouble     awstest.Trouble
		do          func(*profile.Table) error
		want        string
		unavailable bool
	}{
		{"Denied", "BatchGetItem", denied, read, "this identity needs dynamodb:BatchGetItem on it", true},
		{"DeniedTags", "ListTagsOfResource", denied, box, "set HOLDFAST_KMS_KEY_ID, or let this identity do dynamodb:DescribeTable and dynamodb:ListTagsOfResource", false},
		{"DeniedDescription", "DescribeTable", denied, box, "set HOLDFAST_KMS_KEY_ID, or let this identity do dynamodb:DescribeTable and dynamodb:ListTagsOfResource", false},
		{"DeniedKMS", "GenerateDataKey", denied, box, "it needs kms:GenerateDataKey on the KMS key", false},
		{"DeniedAlarms", "DeleteAlarms", denied, alarms, "AWS does not let you remove the alarms of account juniper: this identity needs cloudwatch:DeleteAlarms on " + tagged + "-login-*", false},
		{"NoCloudWatch", "DeleteAlarms", awstest.Lose, alarms, "CloudWatch cannot be reached at http://127.0.0.1:", false},
		{"Expired", "BatchGetItem", awstest.Refuse(http.StatusBadRequest, "ExpiredTokenException"), read, "the AWS credentials have expired: log in again (aws sso login)", true},
		{"NotAccepted", "BatchGetItem", awstest.Refuse(http.StatusBadRequest, "UnrecognizedClientException"), read, "AWS does not accept these credentials in region us-east-1", true},
		{"Throttled", "BatchGetItem", awstest.Refuse(http.StatusBadRequest, "ThrottlingException"), read, "DynamoDB is throttling requests for table " + tagged, true},
		{"AnotherTable", "BatchGetItem", awstest.Refuse(http.StatusBadRequest, "ValidationException"), read, "the DynamoDB table " + tagged + " is not one of holdfast's", true},
		{"Gone", "BatchGetItem", awstest.Refuse(http.StatusBadRequest, "ResourceNotFoundException"), read, "there is no DynamoDB table " + tagged + " in region us-east-1", true},
		{"Failing", "BatchGetItem", awstest.Refuse(http.StatusInternalServerError, "InternalServerError"), read, "DynamoDB could not do BatchGetItem for table " + tagged, true},
		{"NoAWS", "BatchGetItem", func(x *awstest.Exchange) { x.Answer(http.StatusNotFound, nil, []byte("<html>")) }, read, "what answers for DynamoDB does not speak as DynamoDB does: check AWS_ENDPOINT_URL", true},
		{"Silent", "BatchGetItem", awstest.Ignore, read, "no answer in time", true},
		{"SilentKMS", "GenerateDataKey", awstest.Ignore, box, "KMS cannot be reached", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			front := awstest.NewFront(t, endpoint)
			laptop(t, front.URL)
			table := open(t, tagged)
			front.Always(c.operation, c.trouble)
			err := c.do(table)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "RequestID") {
				t.Errorf("got %v, want one line with %q and without the SDK's words", err, c.want)
			}
			if errors.Is(err, store.ErrUnavailable) != c.unavailable {
				t.Errorf("got %v, want unavailable: %v", err, c.unavailable)
			}
		})
	}
	t.Run("Nobody", func(t *testing.T) {
		laptop(t, awstest.Refused(t))
		for _, do := range []func(*profile.Table) error{read, box} {
			if err := do(open(t, tagged)); err == nil || !strings.Contains(err.Error(), "DynamoDB cannot be reached at http://127.0.0.1:") || !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("got %v, want that nobody answers", err)
			}
		}
	})
}

// TestLoginEnds: a login that ends while the table is open is told as one that was never
// there.
func TestLoginEnds(t *testing.T) {
	endpoint := awstest.StartMiniStack(t, false)
	table := deploy(t, awstest.Config(endpoint))
	laptop(t, endpoint)
	dir := t.TempDir()
	// Credentials that have ended by the time of their next use.
	program := filepath.Join(dir, "login")
	script := `[ -e "` + dir + `/once" ] && exit 3; touch "` + dir + `/once"
echo '{"Version":1,"AccessKeyId":"test","SecretAccessKey":"test","SessionToken":"test","Expiration":"2020-01-01T00:00:00Z"}'`
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("[profile mine]\nregion = us-east-1\nendpoint_url = %s\ncredential_process = %s\n", endpoint, program)
	if err := os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.New(open(t, table)).Read(t.Context(), store.Query{Catalog: true})
	const want = "read the store: the credential_process of AWS profile mine gave no credentials: error in credential_process: exit status 3"
	if err == nil || err.Error() != want || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestEnvironment: it is all that a function needs.
func TestEnvironment(t *testing.T) {
	endpoint := awstest.StartMiniStack(t, true)
	cfg := awstest.Config(endpoint)
	key := newKey(t, cfg)
	table := deploy(t, cfg, "holdfast:kms-key", key)
	laptop(t, endpoint)
	got, err := open(t, table).Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{
		"AWS_ACCESS_KEY_ID=test", "AWS_ENDPOINT_URL_DYNAMODB=" + endpoint, "AWS_ENDPOINT_URL_KMS=" + endpoint, "AWS_REGION=us-east-1",
		"AWS_SECRET_ACCESS_KEY=test", "AWS_SESSION_TOKEN=", "HOLDFAST_KMS_KEY_ID=" + key, "HOLDFAST_TABLE=" + table,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := open(t, deploy(t, cfg)).Environment(t.Context()); err == nil || !strings.Contains(err.Error(), "tag the table with holdfast:kms-key") {
		t.Errorf("of a table without a tag: got %v", err)
	}
}
