package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"holdfast/internal/test/awstest"
	"holdfast/internal/test/deploytest"
	"holdfast/internal/test/functiontest"
)

// resources checks every resource of the stack and of those nested in it, as AWS reports
// it.
func resources(t *testing.T, s *stack) {
	want := map[string]string{
		"Table": "AWS::DynamoDB::Table", "Key": "AWS::KMS::Key",
		"Gateway": "AWS::Lambda::Function", "GatewayRole": "AWS::IAM::Role", "GatewayLog": "AWS::Logs::LogGroup", "GatewayUrl": "AWS::Lambda::Url",
		"GatewayUrlPublicPermissions": "AWS::Lambda::Permission", "GatewayURLInvokeAllowPublicAccess": "AWS::Lambda::Permission",
		"Poller": "AWS::Lambda::Function", "PollerRole": "AWS::IAM::Role", "PollerLog": "AWS::Logs::LogGroup", "PollerEventInvokeConfig": "AWS::Lambda::EventInvokeConfig",
		"PollerEachMinute": "AWS::Scheduler::Schedule", "PollerEachMinuteRole": "AWS::IAM::Role",
		"Topic": "AWS::SNS::Topic", "TopicToEmail": "AWS::SNS::Subscription",
		"Alarms": "AWS::CloudFormation::Stack", "Dashboards": "AWS::CloudFormation::Stack",
	}
	got := map[string]string{}
	for _, r := range s.Resources(functiontest.Stack) {
		got[r.Logical] = r.Type
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the stack's resources (-want +got)\n%s", diff)
	}
	if strings.HasSuffix(s.GatewayURL, "/") {
		t.Errorf("GatewayUrl: got %s, want it without a slash at its end: agents add one", s.GatewayURL)
	}
	if s.Outputs["AlarmTopicArn"] != s.Resource("Topic") {
		t.Errorf("AlarmTopicArn: got %s, want the topic", s.Outputs["AlarmTopicArn"])
	}
	for _, name := range []string{"ClientKey", "ClaudeCode", "Codex", "GrokCLI"} {
		const elsewhere = "http://127.0.0.1:1/elsewhere"
		line := strings.ReplaceAll(s.Outputs[name], s.GatewayURL, elsewhere)
		if line == "" || strings.Contains(line, "\n") || !strings.Contains(s.Lines(elsewhere), "\n  "+line+"\n") {
			t.Errorf("output %s: got %q, want a line, and it among those to paste:\n%s", name, line, s.Lines(elsewhere))
		}
	}
	t.Run("table", func(t *testing.T) { checkTable(t, s) })
	t.Run("functions", func(t *testing.T) { checkFunctions(t, s) })
	t.Run("schedule", func(t *testing.T) { checkSchedule(t, s) })
	t.Run("topic", func(t *testing.T) { checkTopic(t, s) })
	t.Run("alarms", func(t *testing.T) { checkAlarms(t, s) })
	t.Run("dashboard", func(t *testing.T) { checkDashboard(t, s) })
	if said := s.DeployAgain(); !strings.Contains(said, "No changes to deploy") {
		t.Errorf("second deployment: got %s, want no changes", said)
	}
}

func checkTable(t *testing.T, s *stack) {
	ctx, cfg := t.Context(), awstest.Config(s.Endpoint)
	client := dynamodb.NewFromConfig(cfg)
	described, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.Table})
	if err != nil {
		t.Fatal(err)
	}
	table := described.Table
	if table.BillingModeSummary == nil || table.BillingModeSummary.BillingMode != "PAY_PER_REQUEST" || len(table.KeySchema) != 1 || *table.KeySchema[0].AttributeName != "pk" || table.KeySchema[0].KeyType != "HASH" {
		t.Errorf("got billing %+v and key %+v, want pay per request, by pk", table.BillingModeSummary, table.KeySchema)
	}
	// Where the stack runs, neither is done to a table that a stack makes.
	properties := s.Template("Table")
	for name, want := range map[string]map[string]any{
		"TimeToLiveSpecification":          {"AttributeName": "ttl", "Enabled": true},
		"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true},
	} {
		if diff := cmp.Diff(any(want), properties[name]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	keys, id := kms.NewFromConfig(cfg), s.Resource("Key")
	key, err := keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &id})
	if err != nil || key.KeyMetadata.KeyState != "Enabled" {
		t.Fatalf("got key %+v (%v), want it enabled", key, err)
	}
	if rotation, err := keys.GetKeyRotationStatus(ctx, &kms.GetKeyRotationStatusInput{KeyId: &id}); err != nil || rotation.KeyRotationEnabled {
		t.Errorf("got rotation %+v (%v), want none: it costs, and helps no data key that is wrapped already", rotation, err)
	}
	tags, err := client.ListTagsOfResource(ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: table.TableArn})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, tag := range tags.Tags {
		told[*tag.Key] = *tag.Value
	}
	if told["holdfast:kms-key"] != *key.KeyMetadata.Arn || told["holdfast:poller-alarm"] != functiontest.Stack+"-poller-silent" {
		t.Errorf("the table's tags are %v, want the key %s and the alarm about a silent poller", told, *key.KeyMetadata.Arn)
	}
}

// rest asks a service and reads its answer.
func rest[T any](t *testing.T, s *stack, service, path string) (got T) {
	t.Helper()
	_, answer := s.REST(service, http.MethodGet, path, "")
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatalf("%s: %v in %s", path, err, answer)
	}
	return got
}

func checkFunctions(t *testing.T, s *stack) {
	type configuration struct {
		Handler, Runtime, Role string
		Architectures          []string
		MemorySize, Timeout    int
		LoggingConfig          struct{ LogGroup string }
		Environment            struct{ Variables map[string]string }
	}
	shared := map[string]string{
		"HOLDFAST_TABLE": s.Table, "HOLDFAST_LOG_LEVEL": "debug",
		"AWS_ENDPOINT_URL_DYNAMODB": "", "AWS_ENDPOINT_URL_KMS": "", "AWS_ENDPOINT_URL_CLOUDWATCH": "",
	}
	for name, timeout := range map[string]int{"Gateway": 900, "Poller": 120} {
		got := rest[configuration](t, s, "lambda", "/2015-03-31/functions/"+s.Resource(name)+"/configuration")
		if got.Handler != "bootstrap" || got.Runtime != "provided.al2023" || got.MemorySize != 128 || got.Timeout != timeout ||
			!cmp.Equal(got.Architectures, []string{functiontest.Architecture}) || got.LoggingConfig.LogGroup != s.Resource(name+"Log") ||
			!strings.HasSuffix(got.Role, "/"+s.Resource(name+"Role")) {
			t.Errorf("%s: got %+v", name, got)
		}
		if !strings.HasSuffix(got.Environment.Variables["HOLDFAST_KMS_KEY_ID"], s.Resource("Key")) {
			t.Errorf("%s: got KMS key %s, want the stack's", name, got.Environment.Variables["HOLDFAST_KMS_KEY_ID"])
		}
		want := map[string]string{"HOLDFAST_KMS_KEY_ID": got.Environment.Variables["HOLDFAST_KMS_KEY_ID"]}
		for variable, value := range shared {
			want[variable] = value
		}
		if name == "Poller" {
			want["HOLDFAST_ALARM_TOPIC"], want["HOLDFAST_POLLER_ALARM"] = s.Resource("Topic"), functiontest.Stack+"-poller-silent"
		}
		if diff := cmp.Diff(want, got.Environment.Variables); diff != "" {
			t.Errorf("%s: environment (-want +got)\n%s", name, diff)
		}
		var found struct {
			LogGroups []struct {
				LogGroupName    string
				RetentionInDays int
			}
		}
		s.Logs("DescribeLogGroups", map[string]string{"logGroupNamePrefix": s.Resource(name + "Log")}, &found)
		if len(found.LogGroups) != 1 || found.LogGroups[0].RetentionInDays != 30 {
			t.Errorf("%s: got log groups %+v, want one that keeps 30 days", name, found.LogGroups)
		}
	}

	at := rest[struct{ AuthType, InvokeMode string }](t, s, "lambda", "/2021-10-31/functions/"+s.Resource("Gateway")+"/url")
	if at.AuthType != "NONE" || at.InvokeMode != "RESPONSE_STREAM" {
		t.Errorf("Function URL: got %+v, want one that streams, with the gateway's own authentication", at)
	}
	policy := rest[struct{ Policy string }](t, s, "lambda", "/2015-03-31/functions/"+s.Resource("Gateway")+"/policy")
	var document struct {
		Statement []struct {
			Effect, Action string
			Principal      any
			Condition      map[string]map[string]any
		}
	}
	if err := json.Unmarshal([]byte(policy.Policy), &document); err != nil {
		t.Fatal(err)
	}
	conditions := map[string]string{}
	for _, statement := range document.Statement {
		for _, condition := range statement.Condition {
			for key, value := range condition {
				text, err := json.Marshal(value)
				if err != nil || statement.Effect != "Allow" {
					t.Errorf("got %+v (%v), want it allowed", statement, err)
				}
				conditions[statement.Action+" if "+key] = strings.ToLower(strings.Trim(string(text), `"`))
			}
		}
	}
	// A call through the URL needs both, and nobody may invoke the function otherwise.
	if diff := cmp.Diff(map[string]string{
		"lambda:InvokeFunctionUrl if lambda:FunctionUrlAuthType": "none", "lambda:InvokeFunction if lambda:InvokedViaFunctionUrl": "true",
	}, conditions); diff != "" || len(document.Statement) != 2 {
		t.Errorf("who may call the gateway: got %s (-want +got)\n%s", policy.Policy, diff)
	}
}

func checkSchedule(t *testing.T, s *stack) {
	type retries struct{ MaximumRetryAttempts, MaximumEventAgeInSeconds int }
	got := rest[struct {
		ScheduleExpression, State string
		FlexibleTimeWindow        struct{ Mode string }
		Target                    struct {
			Arn, RoleArn string
			RetryPolicy  retries
		}
	}](t, s, "scheduler", "/schedules/"+s.Resource("PollerEachMinute"))
	if got.ScheduleExpression != "rate(1 minute)" || got.State == "DISABLED" || got.FlexibleTimeWindow.Mode != "OFF" || got.Target.RetryPolicy != (retries{0, 60}) ||
		!strings.HasSuffix(got.Target.Arn, ":"+s.Resource("Poller")) || !strings.HasSuffix(got.Target.RoleArn, "/"+s.Resource("PollerEachMinuteRole")) {
		t.Errorf("got schedule %+v, want the poller each minute, never later and never again", got)
	}
	invoked := rest[retries](t, s, "lambda", "/2019-09-25/functions/"+s.Resource("Poller")+"/event-invoke-config?Qualifier=%24LATEST")
	if invoked != (retries{0, 60}) {
		t.Errorf("got %+v, want no invocation repeated, none after a minute", invoked)
	}
}

func checkTopic(t *testing.T, s *stack) {
	var found struct {
		All []struct{ Protocol, Endpoint string } `xml:"ListSubscriptionsByTopicResult>Subscriptions>member"`
	}
	s.Query("sns", url.Values{"Action": {"ListSubscriptionsByTopic"}, "Version": {"2010-03-31"}, "TopicArn": {s.Resource("Topic")}}, &found)
	if len(found.All) != 1 || found.All[0].Protocol != "email" || found.All[0].Endpoint != functiontest.AlarmEmail {
		t.Errorf("got subscriptions %+v, want %s by e-mail", found.All, functiontest.AlarmEmail)
	}
}

// infra is a template of infra/.
func infra(t *testing.T, name string) []byte {
	t.Helper()
	root, err := functiontest.Root()
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(filepath.Join(root, "infra", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// checkAlarms compares the alarms that there are with the table of the alarms' design, and
// with what the template declares.
func checkAlarms(t *testing.T, s *stack) {
	declared, err := deploytest.Alarms(infra(t, "alarms.yaml"), map[string]string{
		"Prefix": functiontest.Stack, "TopicArn": s.Resource("Topic"), "TableName": s.Table,
		"GatewayFunction": s.Resource("Gateway"), "PollerFunction": s.Resource("Poller"),
	})
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for _, r := range s.Resources(s.Resource("Alarms")) {
		types[r.Logical] = r.Type
	}
	there := s.Alarms()
	for logical, want := range declared {
		if diff := cmp.Diff(want, there[want.Name], cmpopts.EquateEmpty()); diff != "" || types[logical] != "AWS::CloudWatch::Alarm" {
			t.Errorf("%s, a %s: (-want +got)\n%s", logical, types[logical], diff)
		}
	}
	if len(there) != len(declared) || len(types) != len(declared) {
		t.Errorf("got alarms %v and resources %v, want those declared", there, types)
	}
	gateway, poller := map[string]string{"FunctionName": s.Resource("Gateway")}, map[string]string{"FunctionName": s.Resource("Poller")}
	of := func(provider string) map[string]string {
		return map[string]string{"Table": s.Table, "Provider": provider}
	}
	for name, want := range map[string]struct {
		metric, missing string
		dimensions      map[string]string
	}{
		"exhausted-anthropic": {"Exhausted", "notBreaching", of("anthropic")}, "exhausted-openai": {"Exhausted", "notBreaching", of("openai")}, "exhausted-xai": {"Exhausted", "notBreaching", of("xai")},
		"blind-anthropic": {"ReadingAge", "notBreaching", of("anthropic")}, "blind-openai": {"ReadingAge", "notBreaching", of("openai")}, "blind-xai": {"ReadingAge", "notBreaching", of("xai")},
		"poller-silent": {"Invocations", "breaching", poller}, "poller-errors": {"Errors", "notBreaching", poller},
		"gateway-errors": {"Errors", "notBreaching", gateway}, "gateway-throttles": {"Throttles", "notBreaching", gateway},
		"store": {"StoreUnavailable", "notBreaching", map[string]string{"Table": s.Table}},
	} {
		got := there[functiontest.Stack+"-"+name]
		if got.Metric != want.metric || got.Missing != want.missing || !cmp.Equal(got.Dimensions, want.dimensions) || !cmp.Equal(got.Actions, []string{s.Resource("Topic")}) || len(got.OKActions) != 0 {
			t.Errorf("%s: got %+v, want %+v, to the topic when it is raised", name, got, want)
		}
	}
}

// dashboardName bears the region, since dashboards of all regions have their names in common.
const dashboardName = functiontest.Stack + "-" + awstest.Region

func checkDashboard(t *testing.T, s *stack) {
	declared, err := deploytest.Dashboard(infra(t, "dashboard.yaml"), map[string]string{
		"Name": dashboardName, "AWS::Region": awstest.Region, "GatewayLog": s.Resource("GatewayLog"), "PollerLog": s.Resource("PollerLog"),
		"GatewayFunction": s.Resource("Gateway"), "PollerFunction": s.Resource("Poller"), "TableName": s.Table,
	})
	if err != nil {
		t.Fatal(err)
	}
	panels := func(body string) []deploytest.Panel {
		t.Helper()
		all, err := deploytest.Panels(body)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if diff := cmp.Diff(panels(declared), panels(s.Dashboard(dashboardName))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, r := range s.Resources(s.Resource("Dashboards")) {
		if r.Type != "AWS::CloudWatch::Dashboard" || r.Logical != "Dashboard" {
			t.Errorf("got %+v, want the dashboard alone", r)
		}
	}
}
