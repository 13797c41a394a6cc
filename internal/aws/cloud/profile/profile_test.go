package profile_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"holdfast/internal/aws/cloud/profile"
	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/test/awstest"
)

// others are profiles without credentials.
const others = `
[sso-session own]
sso_region = us-east-1
sso_start_url = https://example.invalid/start
[profile sso]
region = us-east-1
sso_session = own
sso_account_id = 123456789012
sso_role_name = owner
[profile legacy]
region = us-east-1
sso_region = us-east-1
sso_start_url = https://example.invalid/start
sso_account_id = 123456789012
sso_role_name = owner
[profile role]
region = us-east-1
source_profile = sso
role_arn = arn:aws:iam::123456789012:role/r
[profile orphan]
region = us-east-1
source_profile = gone
role_arn = arn:aws:iam::123456789012:role/r
[profile mfa]
region = us-east-1
source_profile = mine
role_arn = arn:aws:iam::123456789012:role/r
mfa_serial = arn:aws:iam::123456789012:mfa/m
[profile program]
region = us-east-1
credential_process = false
`

// laptop is a person's machine: AWS is known from the two files that AWS's tools write.
func laptop(t *testing.T, endpoint string) {
	t.Helper()
	dir := t.TempDir()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") || name == "HOLDFAST_KMS_KEY_ID" {
			t.Setenv(name, "") // put back after the test
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	t.Setenv("AWS_PROFILE", "mine")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("HOME", dir)
	for name, content := range map[string]string{
		"config":      "[profile mine]\nregion = " + awstest.Region + "\nendpoint_url = " + endpoint + "\n[profile nowhere]\n[profile nobody]\nregion = " + awstest.Region + "\n" + others,
		"credentials": "[mine]\naws_access_key_id = test\naws_secret_access_key = test\n[nowhere]\naws_access_key_id = test\naws_secret_access_key = test\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func newKey(t *testing.T, cfg aws.Config) string {
	t.Helper()
	made, err := kms.NewFromConfig(cfg).CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	return *made.KeyMetadata.Arn
}

// deploy makes a table with the tags given.
func deploy(t *testing.T, cfg aws.Config, tags ...string) string {
	t.Helper()
	client, table := dynamodb.NewFromConfig(cfg), "holdfast-"+rand.Text()
	if err := dynamostore.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(tags); i += 2 {
		if _, err := client.TagResource(t.Context(), &dynamodb.TagResourceInput{
			ResourceArn: described.Table.TableArn, Tags: []types.Tag{{Key: &tags[i], Value: &tags[i+1]}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

func open(t *testing.T, table string) *profile.Table {
	t.Helper()
	opened, err := profile.Open(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// wrappedUnder tells which KMS key the table's data key was wrapped under.
func wrappedUnder(t *testing.T, table *profile.Table, key string) bool {
	t.Helper()
	if _, err := table.Box(t.Context()); err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	found, err := table.Get(t.Context(), []store.Key{{Kind: store.KindDataKey, ID: "datakey"}})
	if err != nil || len(found) != 1 {
		t.Fatalf("got %d records and error %v, want one", len(found), err)
	}
	return strings.Contains(string(found[0].Body), key)
}

func TestNamingTheTableIsEnough(t *testing.T) {
	endpoint := awstest.StartMiniStack(t, true)
	cfg := awstest.Config(endpoint)
	tagged, named := newKey(t, cfg), newKey(t, cfg)
	table := deploy(t, cfg, "other", "x", "holdfast:kms-key", tagged)
	laptop(t, endpoint)
	if !wrappedUnder(t, open(t, table), tagged) {
		t.Errorf("got another key, want that of the tag")
	}
	t.Setenv("HOLDFAST_KMS_KEY_ID", named)
	if !wrappedUnder(t, open(t, deploy(t, cfg, "holdfast:kms-key", tagged)), named) {
		t.Errorf("got another key, want that of the environment")
	}
}

func TestErrors(t *testing.T) {
	endpoint := awstest.StartMiniStack(t, true)
	cfg := awstest.Config(endpoint)
	laptop(t, endpoint)
	untagged := deploy(t, cfg)
	for _, c := range []struct{ name, profile, table, want string }{
		{"NoKeyKnown", "mine", untagged, "set HOLDFAST_KMS_KEY_ID, or tag the table with holdfast:kms-key"},
		{"EmptyTag", "mine", deploy(t, cfg, "holdfast:kms-key", ""), "set HOLDFAST_KMS_KEY_ID, or tag the table with holdfast:kms-key"},
		{"NoTable", "mine", "not-made", "there is no DynamoDB table not-made"},
		{"NoRegion", "nowhere", untagged, "no AWS region is configured"},
		{"NoCredentials", "nobody", untagged, "no AWS credentials were found"},
		{"NoProfile", "unknown", untagged, "there is no AWS profile unknown: set AWS_PROFILE"},
		{"NoSSOSession", "sso", untagged, "the AWS SSO session of profile sso has ended, or there was none: aws sso login --profile sso"},
		{"NoSSOToken", "legacy", untagged, "the AWS SSO session of profile legacy has ended, or there was none: aws sso login --profile legacy"},
		{"RoleOverSSO", "role", untagged, "aws sso login --profile role"},
		{"RoleOfNobody", "orphan", untagged, "assumes a role as profile gone, which does not exist"},
		{"AsksForCode", "mfa", untagged, "this AWS profile asks for an MFA code"},
		{"Program", "program", untagged, "the credential_process of AWS profile program gave no credentials"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("AWS_PROFILE", c.profile)
			table, err := profile.Open(context.Background(), c.table)
			if err == nil {
				_, err = table.Box(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
}
