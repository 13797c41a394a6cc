package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"holdfast/internal/test/awstest"
	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// changed deploys a new version over the old one: conversations stay where they are, and
// logins are there.
func changed(t *testing.T, s *stack) {
	code := func(function string) string {
		t.Helper()
		return rest[struct{ CodeSha256 string }](t, s, "lambda", "/2015-03-31/functions/"+s.Resource(function)+"/configuration").CodeSha256
	}
	session := newSession()
	first := s.do(t, ask{session: session})
	home := s.account(first.header.Get("X-Holdfast-Account"))
	// From here on the account looks fuller than the other.
	home.Always(upstreamtest.Good(upstreamtest.Plan(0.85, time.Now().Add(3*time.Hour), 0.60, time.Now().Add(80*time.Hour))))
	if got := s.do(t, ask{session: session}); got.header.Get("X-Holdfast-Account") != home.Name {
		t.Errorf("second turn: got account %s, want %s", got.header.Get("X-Holdfast-Account"), home.Name)
	}
	gateway, poller, url, table := code("Gateway"), code("Poller"), s.Outputs["GatewayUrl"], s.Table
	s.Build("second")
	s.DeployAgain()
	if code("Gateway") == gateway || code("Poller") == poller {
		t.Fatal("the functions are the old ones")
	}
	if s.Resource("Table") != table || s.Outputs["GatewayUrl"] != url {
		t.Errorf("got table %s and URL %s, want %s and %s: what agents and commands have must stay", s.Resource("Table"), s.Outputs["GatewayUrl"], table, url)
	}
	got := s.do(t, ask{session: session})
	if got.status != http.StatusOK || got.header.Get("X-Holdfast-Account") != home.Name || got.header.Get("X-Holdfast-Pin") != "kept" {
		t.Errorf("third turn, at the new version: got %d %v, want account %s, kept", got.status, got.header, home.Name)
	}
	answered(t, "Codex, by a login of before", newCodex(t, s.front.url, s.key).start("hello"), byAccount(s.tansy))
	s.round(t)
	s.equal()
}

// deleted removes the accounts, as the owner is to do first, and then the stack: nothing is
// left of it but the table and the key, with which the owner goes on.
func deleted(t *testing.T, s *stack) {
	for _, function := range []string{"Gateway", "Poller"} {
		s.quiet("the function "+function, s.Log(function))
	}
	key := s.Resource("Key")
	for _, name := range []string{"one", "two", "tansy", "bracken", "sedge"} {
		if said := s.run(nil, "account", "remove", name).stderr; strings.Contains(said, "alarm") {
			t.Errorf("account remove %s: got %s", name, said)
		}
	}
	gone := map[string]string{}
	for _, stack := range []string{functiontest.Stack, s.Resource("Alarms"), s.Resource("Dashboards")} {
		for _, r := range s.Resources(stack) {
			gone[r.ID] = r.Type
		}
	}
	s.Delete()

	if alarms := s.Alarms(); len(alarms) != 0 {
		t.Errorf("alarms that are left: %v", alarms)
	}
	if left := s.Dashboards(); len(left) != 0 {
		t.Errorf("dashboards that are left: %v", left)
	}
	left := func(what string, names ...string) {
		t.Helper()
		for _, name := range names {
			if kind := gone[name]; kind != "" {
				t.Errorf("%s that is left: %s, a %s", what, name, kind)
			}
		}
	}
	for _, f := range rest[struct {
		Functions []struct{ FunctionName string }
	}](t, s, "lambda", "/2015-03-31/functions/").Functions {
		left("function", f.FunctionName)
	}
	for _, schedule := range rest[struct{ Schedules []struct{ Name string } }](t, s, "scheduler", "/schedules").Schedules {
		left("schedule", schedule.Name)
	}
	var groups struct {
		LogGroups []struct{ LogGroupName string }
	}
	s.Logs("DescribeLogGroups", map[string]string{}, &groups)
	for _, g := range groups.LogGroups {
		left("log group", g.LogGroupName)
	}
	var roles struct {
		Names []string `xml:"ListRolesResult>Roles>member>RoleName"`
	}
	s.Query("iam", url.Values{"Action": {"ListRoles"}, "Version": {"2010-05-08"}}, &roles)
	left("role", roles.Names...)
	var topics struct {
		ARNs []string `xml:"ListTopicsResult>Topics>member>TopicArn"`
	}
	s.Query("sns", url.Values{"Action": {"ListTopics"}, "Version": {"2010-03-31"}}, &topics)
	left("topic", topics.ARNs...)
	var subscriptions struct {
		ARNs []string `xml:"ListSubscriptionsResult>Subscriptions>member>SubscriptionArn"`
	}
	s.Query("sns", url.Values{"Action": {"ListSubscriptions"}, "Version": {"2010-03-31"}}, &subscriptions)
	left("subscription", subscriptions.ARNs...)

	ctx, cfg := t.Context(), awstest.Config(s.Endpoint)
	if _, err := dynamodb.NewFromConfig(cfg).DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.Table}); err != nil {
		t.Errorf("the table is gone: %v", err)
	}
	if found, err := kms.NewFromConfig(cfg).DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &key}); err != nil || found.KeyMetadata.KeyState != "Enabled" {
		t.Errorf("the key is gone: %+v, %v", found, err)
	}
	var keys []struct{ Name string }
	if err := json.Unmarshal([]byte(s.run(nil, "key", "list", "--json").stdout), &keys); err != nil || len(keys) != 3 {
		t.Errorf("got client keys %v (%v), want the three that were made", keys, err)
	}
	s.run(nil, "key", "create", "afterwards") // with the data key that the KMS key opens
}
