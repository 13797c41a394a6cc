package command_test

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"

	"holdfast/internal/aws/cloud/profile"
	"holdfast/internal/aws/cloudwatch"
	"holdfast/internal/command"
	"holdfast/internal/core/account"
	"holdfast/internal/core/alarm"
	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/store/vault"
	"holdfast/internal/test/awstest"
	"holdfast/internal/test/upstreamtest"
)

// newTableBench is a table as a deployment makes it, with its KMS key in a tag, and AWS
// known from the environment. Calls pass the front.
func newTableBench(t *testing.T) (*bench, *awstest.Front) {
	t.Helper()
	front := awstest.NewFront(t, awstest.StartMiniStack(t, true))
	cfg := awstest.Config(front.URL)
	client := dynamodb.NewFromConfig(cfg)
	b := newBench(t)
	b.table = "holdfast-" + rand.Text()
	if err := dynamostore.CreateTable(t.Context(), client, b.table); err != nil {
		t.Fatal(err)
	}
	key, err := kms.NewFromConfig(cfg).CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &b.table})
	if err != nil {
		t.Fatal(err)
	}
	tag := profile.Tag
	if _, err := client.TagResource(t.Context(), &dynamodb.TagResourceInput{
		ResourceArn: described.Table.TableArn, Tags: []types.Tag{{Key: &tag, Value: key.KeyMetadata.Arn}},
	}); err != nil {
		t.Fatal(err)
	}
	front.Calls()
	setAWS(t, front.URL)
	return b, front
}

// setAWS makes AWS known from the environment, and from nowhere else.
func setAWS(t *testing.T, endpoint string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "HOLDFAST_KMS") {
			t.Setenv(name, "") // put back after the test
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_REGION": awstest.Region, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": endpoint,
		"AWS_CONFIG_FILE": nowhere, "AWS_SHARED_CREDENTIALS_FILE": nowhere, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

// credential opens what a table holds for an account.
func (b *bench) credential(name string) string {
	b.t.Helper()
	opened, err := profile.Open(b.t.Context(), b.table)
	if err != nil {
		b.t.Fatal(err)
	}
	box, err := opened.Box(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	s := store.New(opened)
	snap, err := s.Snapshot(b.t.Context(), false)
	if err != nil {
		b.t.Fatal(err)
	}
	a, ok := snap.Catalog.Account(name)
	if !ok {
		b.t.Fatalf("there is no account %q", name)
	}
	c, _, err := vault.Vault{Store: s, Box: box}.Load(b.t.Context(), a.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return c.Key.Reveal() + c.Access.Reveal()
}

// TestTable runs every command on a table.
func TestTable(t *testing.T) {
	b, _ := newTableBench(t)
	wants := func(r result, want string) {
		t.Helper()
		if !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("got %q and %q, want %q", r.stdout, r.stderr, want)
		}
	}
	wants(b.must("account", "list"), "There are no accounts yet")
	wants(b.must("key", "list"), "holdfast key create NAME")
	b.refuses(1, "no account of anthropic", "pick", "--provider", "anthropic", "--model", "claude-sonnet-5")

	b.add("work")
	if r := b.runWith("sk-ant-api03-EXAMPLE-piped\n", "account", "add", "home", "--provider", "anthropic", "--key-stdin"); r.code != 0 {
		t.Fatalf("from standard input: %s", r.stderr)
	}
	wants(b.must("account", "add", "max", "--provider", "anthropic", "--import", b.login("max.json", ""), "--no-check"), "as number 3 of 3")
	if got := b.credential("work"); got != keyOf("work") {
		t.Error("the credential of account work is not what was added")
	}
	b.refuses(1, `there is an account "work" already`, "account", "add", "work", "--provider", "anthropic", "--key-env", "KEY")
	b.env["KEY"] = "sk-ant-api03-EXAMPLE-second"
	wants(b.must("account", "login", "work", "--key-env", "KEY"), "has a new credential")
	if got := b.credential("work"); got != b.env["KEY"] {
		t.Error("the credential of account work is not what it logged in with")
	}
	wants(b.must("account", "order", "anthropic", "home"), "home, work, max")
	if got := b.order(); got != "home work max" {
		t.Errorf("got order %q", got)
	}
	wants(b.must("account", "show", "work"), "present")
	wants(b.must("account", "show", "max"), "good until 2027-03-04T12:00:00Z")
	b.must("account", "drain", "home")
	if !b.accounts()[0].Draining {
		t.Error("drain did not")
	}
	b.must("account", "resume", "home")
	b.must("account", "overage", "max", "allow")
	if got := b.accounts(); got[0].Draining || got[2].Overage != "allow" {
		t.Errorf("got %+v, want home not draining, and overage allowed on max", got)
	}
	b.fold("work", spent)
	wants(b.must("status"), "cooldown (five-hour)")
	wants(b.must("pick", "--provider", "anthropic", "--model", "claude-sonnet-5"), "cooldown")
	b.must("account", "clear", "work")
	if r := b.must("status"); strings.Contains(r.stdout, "cooldown") {
		t.Errorf("after clear:\n%s", r.stdout)
	}
	b.must("status", "--json")

	b.must("policy", "anthropic", "order", "--threshold", "0.7")
	b.must("settings", "set", "pin_ttl", "90m")
	wants(b.must("settings"), "1h30m")
	b.must("settings", "reset", "pin_ttl")
	if r := b.must("settings", "list"); strings.Contains(r.stdout, "1h30m") {
		t.Errorf("after reset:\n%s", r.stdout)
	}
	if r := b.must("key", "create", "laptop"); !strings.HasPrefix(r.stdout, "hf_") || strings.Count(r.stdout, "\n") != 1 {
		t.Error("key create does not print a key alone")
	}
	wants(b.must("key", "list"), "laptop")
	b.must("key", "revoke", "laptop")
	b.refuses(1, `no client key "laptop"`, "key", "revoke", "laptop")

	wants(b.must("account", "remove", "max"), "is removed")
	b.refuses(1, `no account "max"`, "account", "show", "max")
	if got := b.order(); got != "home work" {
		t.Errorf("after remove: got %q", got)
	}
	b.must("version")
	if _, err := os.Stat(b.dir); err == nil {
		t.Error("a data directory was made as well")
	}
}

// TestTableWithoutKMS: who opens nothing needs no rights at KMS, and causes no call there.
func TestTableWithoutKMS(t *testing.T) {
	b, front := newTableBench(t)
	b.add("work", "home")
	b.must("account", "add", "max", "--provider", "anthropic", "--import", b.login("max.json", ""), "--no-check")
	b.must("key", "create", "laptop")
	b.must("poll") // before the first round a command looks for an alarm about that
	denied := awstest.Refuse(http.StatusBadRequest, "AccessDeniedException")
	front.Always("Decrypt", denied)
	front.Always("GenerateDataKey", denied)
	front.Calls()
	for _, args := range [][]string{
		{"account", "list"}, {"account", "drain", "work"}, {"account", "resume", "work"}, {"account", "clear", "work"},
		{"account", "order", "anthropic", "home"}, {"account", "overage", "max", "deny"}, {"policy", "anthropic", "score"},
		{"key", "list"}, {"settings"}, {"settings", "set", "pin_ttl", "2h"}, {"settings", "reset", "pin_ttl"}, {"status"},
		{"pick", "--provider", "anthropic", "--model", "claude-sonnet-5"}, {"key", "revoke", "laptop"}, {"account", "remove", "home"},
	} {
		b.must(args...)
	}
	if calls := front.Calls(); calls["Decrypt"]+calls["GenerateDataKey"]+calls["ListTagsOfResource"] != 0 {
		t.Errorf("got calls %v, want none for a data key", calls)
	}
	b.refuses(1, "it needs kms:Decrypt on the KMS key", "key", "create", "ci")
	b.refuses(1, "it needs kms:Decrypt on the KMS key", "account", "add", "new", "--provider", "anthropic", "--key-env", "KEY")
	b.refuses(1, "it needs kms:Decrypt on the KMS key", "account", "login", "work", "--key-env", "KEY")
	b.refuses(1, "it needs kms:Decrypt on the KMS key", "serve", "--addr", "127.0.0.1:0")
	if r := b.must("account", "show", "work"); !strings.Contains(r.stdout, "not to be looked at from here: this AWS identity may not open the data key") || !strings.Contains(r.stdout, "state") {
		t.Errorf("account show: got\n%s", r.stdout)
	}
}

// TestConcurrentKeyCreate: many at once, the first of a table that has no data key yet.
func TestConcurrentKeyCreate(t *testing.T) {
	b, _ := newTableBench(t)
	names := []string{"a", "b", "c", "d", "e", "f"}
	keys := make([]string, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { keys[i] = strings.TrimSpace(b.run("key", "create", name, "--admin").stdout) })
	}
	all.Wait()
	s := b.serve()
	for i, key := range keys {
		if status, _, text := call(t, http.MethodGet, s.url+"/_holdfast/status.json", key, ""); status != http.StatusOK {
			t.Errorf("key %s: got status %d: %s", names[i], status, text)
		}
	}
}

// TestServeTable: a server on a table serves, and follows what commands do to it.
func TestServeTable(t *testing.T) {
	b, _ := newTableBench(t)
	b.now = time.Now
	up := upstreamtest.Start(t)
	up.Account("work", apiKey)
	s := b.serve()
	if said := s.stderr.String(); !strings.Contains(said, "holdfast --table "+b.table+" account add NAME --provider anthropic|openai|xai --key-env VARIABLE") {
		t.Errorf("it said:\n%s", said)
	}
	b.must("account", "add", "work", "--provider", "anthropic", "--key-env", "KEY", "--base-url", up.URL)
	key := strings.TrimSpace(b.must("key", "create", "laptop").stdout)
	follows(t, s, key, http.StatusOK)
	b.must("account", "drain", "work")
	follows(t, s, key, http.StatusServiceUnavailable)
	b.must("account", "resume", "work")
	follows(t, s, key, http.StatusOK)
	b.must("key", "revoke", "laptop")
	follows(t, s, key, http.StatusUnauthorized)
	if code := s.stop(); code != 0 {
		t.Errorf("stopped with status %d: %s", code, s.stderr)
	}
}

// follows waits until a request for a new conversation is answered with a status.
func follows(t *testing.T, s server, key string, want int) {
	t.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	var status int
	var text string
	for range 300 { // far more than two seconds: this machine may be busy
		body := strings.Replace(hello, "Hello", rand.Text(), 1)
		if status, _, text = call(t, http.MethodPost, s.url+"/v1/messages", key, body); status == want {
			return
		}
		<-look.C
	}
	t.Fatalf("got status %d, want %d: %s", status, want, text)
}

// TestAddAnswerLost: an account that was added although nobody said so has its credential.
func TestAddAnswerLost(t *testing.T) {
	b, front := newTableBench(t)
	b.add("work")
	// The credential, then the catalog: applied, cut off, and refused when tried again.
	front.Next("UpdateItem", nil, awstest.ApplyAndCut, awstest.Lose)
	r := b.run("account", "add", "home", "--provider", "anthropic", "--key-env", "KEY")
	if want := "whether the change was made is not known; look with `holdfast account list`, `holdfast key list` or `holdfast settings` before you try again"; r.code != 1 || !strings.Contains(r.stderr, want) {
		t.Errorf("got status %d, %s want %q", r.code, r.stderr, want)
	}
	if got := b.order(); got != "work home" {
		t.Fatalf("got accounts %q, want work and home", got)
	}
	if b.credential("home") != apiKey {
		t.Error("account home has another credential")
	}
}

// TestRemoveTriesAgain: nothing would ever find what a removed account left behind.
func TestRemoveTriesAgain(t *testing.T) {
	b, front := newTableBench(t)
	b.add("work")
	front.Next("DeleteItem", awstest.ApplyAndCut)
	b.must("account", "remove", "work")
	out, err := dynamodb.NewFromConfig(awstest.Config(front.URL)).Scan(t.Context(), &dynamodb.ScanInput{TableName: &b.table})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range out.Items {
		if pk := it["pk"].(*types.AttributeValueMemberS).Value; !strings.HasPrefix(pk, "catalog#") && !strings.HasPrefix(pk, "datakey#") && !strings.HasPrefix(pk, "event#") {
			t.Errorf("%s is still there", pk)
		}
	}
}

// TestRemoveRemovesTheAlarm: a stack that is deleted afterwards leaves no alarm behind. Where
// it cannot be removed the account is all the same.
func TestRemoveRemovesTheAlarm(t *testing.T) {
	b, front := newTableBench(t)
	b.add("work", "home")
	cfg := awstest.Config(front.URL)
	login := account.Account{Name: "work", Provider: account.Anthropic, Kind: account.Subscription}
	key := account.Account{Name: "home", Provider: account.Anthropic, Kind: account.Key}
	if err := cloudwatch.New(cfg, b.table, "", "").Keep(t.Context(), time.Now(), []account.Account{login, key}); err != nil {
		t.Fatal(err)
	}
	left := func() (names []string) {
		t.Helper()
		prefix := alarm.Prefix(b.table)
		out, err := sdk.NewFromConfig(cfg).DescribeAlarms(t.Context(), &sdk.DescribeAlarmsInput{AlarmNamePrefix: &prefix})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range out.MetricAlarms {
			names = append(names, strings.TrimPrefix(*a.AlarmName, prefix))
		}
		return names
	}
	if diff := cmp.Diff([]string{"home", "work"}, left()); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	b.must("account", "remove", "work")
	if diff := cmp.Diff([]string{"home"}, left()); diff != "" {
		t.Errorf("account work is removed (-want +got)\n%s", diff)
	}
	front.Always("DeleteAlarms", awstest.Refuse(http.StatusForbidden, "AccessDenied"))
	const want = "Its alarm, if it had one, is still there: AWS does not let you remove the alarms of account home: this identity needs cloudwatch:DeleteAlarms on "
	if got := b.must("account", "remove", "home").stderr; !strings.Contains(got, want) || !strings.Contains(got, "The poller removes it with its next round") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPollerThatNeverRan: a stack's alarm about a silent poller begins without actions. A
// command that finds no round ten minutes after the deployment turns it on and prints that it did; once
// there was a round, nobody looks.
func TestPollerThatNeverRan(t *testing.T) {
	b, front := newTableBench(t)
	cfg := awstest.Config(front.URL)
	const name = "holdfast-poller-silent"
	client, tables := sdk.NewFromConfig(cfg), dynamodb.NewFromConfig(cfg)
	if _, err := client.PutMetricAlarm(t.Context(), &sdk.PutMetricAlarmInput{
		AlarmName: aws.String(name), Namespace: aws.String("AWS/Lambda"), MetricName: aws.String("Invocations"), Statistic: cwtypes.StatisticSum,
		Period: aws.Int32(60), EvaluationPeriods: aws.Int32(15), Threshold: aws.Float64(1), ActionsEnabled: aws.Bool(false),
		ComparisonOperator: cwtypes.ComparisonOperatorLessThanThreshold, TreatMissingData: aws.String("breaching"),
	}); err != nil {
		t.Fatal(err)
	}
	on := func() bool {
		t.Helper()
		out, err := client.DescribeAlarms(t.Context(), &sdk.DescribeAlarmsInput{AlarmNames: []string{name}})
		if err != nil || len(out.MetricAlarms) != 1 {
			t.Fatalf("got %+v, %v, want the alarm", out, err)
		}
		return aws.ToBool(out.MetricAlarms[0].ActionsEnabled)
	}
	b.now = time.Now
	check := func(when string, said, turnedOn bool) {
		t.Helper()
		got := b.must("account", "list").stderr
		if strings.Contains(got, "the poller has made no round since the stack was deployed") != said || on() != turnedOn {
			t.Errorf("%s: got %q and an alarm that is on: %t; want it said: %t, and on: %t", when, got, on(), said, turnedOn)
		}
	}
	check("a table by hand", false, false)
	described, err := tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &b.table})
	if err == nil {
		_, err = tables.TagResource(t.Context(), &dynamodb.TagResourceInput{
			ResourceArn: described.Table.TableArn, Tags: []types.Tag{{Key: aws.String("holdfast:poller-alarm"), Value: aws.String(name)}},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	check("just deployed", false, false)
	b.now = func() time.Time { return time.Now().Add(11 * time.Minute) }
	check("eleven minutes later", true, true)
	check("it is on already", false, true)
	if _, err := client.DisableAlarmActions(t.Context(), &sdk.DisableAlarmActionsInput{AlarmNames: []string{name}}); err != nil {
		t.Fatal(err)
	}
	b.must("poll")
	check("after a round nobody looks", false, false)
}

func TestTableUsage(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		want  string
		place []string
		args  []string
	}{
		{"give --data or --table, not both", []string{"--data", b.dir, "--table", "holdfast"}, []string{"account", "list"}},
		{"--table is empty; name a DynamoDB table", []string{"--table", ""}, []string{"account", "list"}},
		{"--data is empty; name a directory", []string{"--data", ""}, []string{"account", "list"}},
		{"takes the name of a DynamoDB table, not an ARN", []string{"--table", "arn:aws:dynamodb:us-east-1:1:table/x"}, []string{"status"}},
		{"3 to 255 letters", []string{"--table", "x"}, []string{"status"}},
		{"they do not go with --table", []string{"--table", "holdfast"}, []string{"serve", "--demo"}},
		{"they do not go with --table", []string{"--table", "holdfast"}, []string{"serve", "--try"}},
	} {
		if r := b.runAt(tt.place, "", tt.args...); r.code != 2 || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%q %q: got status %d, %s want status 2 and %q", tt.place, tt.args, r.code, r.stderr, tt.want)
		}
	}
	// A program that was built without AWS refuses a table with that reason.
	var stdout, stderr bytes.Buffer
	o := b.options(strings.NewReader(""), &stdout, &stderr)
	o.OpenTable = nil
	if code := command.Run(t.Context(), []string{"status", "--table", "holdfast"}, o); code != 1 || !strings.Contains(stderr.String(), "use --data") {
		t.Errorf("without AWS: got status %d, %s", code, &stderr)
	}
}

// TestBadTables: each is told in one sentence, by every kind of command.
func TestBadTables(t *testing.T) {
	b, front := newTableBench(t)
	good := b.table
	gone := "arn:aws:kms:us-east-1:000000000000:key/" + rand.Text()
	for _, tt := range []struct {
		name  string
		set   map[string]string
		table string
		args  []string // if only these
		want  string
	}{
		{name: "NoTable", table: "not-made", want: "there is no DynamoDB table not-made in region us-east-1 of this AWS account: check --table, AWS_REGION and AWS_PROFILE"},
		{name: "NoRegion", set: map[string]string{"AWS_REGION": ""}, want: "no AWS region is configured: set AWS_REGION"},
		{name: "NoCredentials", set: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, want: "no AWS credentials were found: set AWS_PROFILE"},
		{name: "NoProfile", set: map[string]string{"AWS_PROFILE": "nobody"}, want: "there is no AWS profile nobody"},
		{name: "Unreachable", set: map[string]string{"AWS_ENDPOINT_URL": awstest.Refused(t)}, want: "DynamoDB cannot be reached at http://127.0.0.1:"},
		{name: "Silent", set: map[string]string{"AWS_ENDPOINT_URL": awstest.Deaf(t)}, want: "DynamoDB cannot be reached at http://127.0.0.1:"},
		{name: "NoKMSKey", set: map[string]string{"HOLDFAST_KMS_KEY_ID": gone}, args: []string{"key", "create", "x"}, want: "there is no KMS key " + gone},
		{name: "NoKMS", set: map[string]string{"AWS_ENDPOINT_URL_KMS": awstest.Refused(t)}, args: []string{"key", "create", "x"}, want: "KMS cannot be reached at http://127.0.0.1:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.t, b.table = t, good
			setAWS(t, front.URL)
			for name, value := range tt.set {
				t.Setenv(name, value)
			}
			if tt.table != "" {
				b.table = tt.table
			}
			kinds := [][]string{{"account", "list"}, {"settings", "set", "pin_ttl", "1m"}, {"serve", "--addr", "127.0.0.1:0"}}
			if tt.args != nil {
				kinds = [][]string{tt.args, {"serve", "--addr", "127.0.0.1:0"}}
			}
			for _, args := range kinds {
				if r := b.run(args...); r.code != 1 || !strings.Contains(r.stderr, tt.want) || strings.Contains(r.stderr, "RequestID") {
					t.Errorf("%q: got status %d, %s want status 1 and %q", args, r.code, r.stderr, tt.want)
				}
			}
		})
	}
}

// TestPlacesAgree: what a command shows is the same on a table and in a directory.
func TestPlacesAgree(t *testing.T) {
	onTable, _ := newTableBench(t)
	inDir := newBench(t)
	show := func(b *bench) (all []result) {
		b.add("work", "home")
		b.fold("work", spent)
		b.fold("home", func(s account.State) account.State { return s })
		for _, args := range [][]string{
			{"account", "list"}, {"account", "list", "--json"}, {"account", "show", "work"}, {"status"}, {"status", "--json"},
			{"pick", "--provider", "anthropic", "--model", "claude-sonnet-5", "--conversation", "c"}, {"settings", "--json"},
		} {
			all = append(all, b.must(args...))
		}
		return all
	}
	if diff := cmp.Diff(show(inDir), show(onTable), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("a table (+) differs from a directory (-):\n%s", diff)
	}
}
