package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"holdfast/internal/core/alarm"
	"holdfast/internal/core/metric"
	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// roles tries, as each function, what its role must not be able to do, and beside it what
// it must, so that a policy which refuses everything fails.
func roles(t *testing.T, s *stack) {
	wrapped, key := s.dataKey(t)
	for role, may := range map[string]map[string]bool{
		"GatewayRole": {
			"read": true, "scan": true, "write a pin": true, "write whose an object is": true, "forget whose an object is": true,
			"write the data key": true, "make a data key": true,
		},
		"PollerRole": {
			"read": true, "write the poller's clocks": true, "write history": true,
			"see the alarms": true, "write an account's alarm": true, "remove an account's alarm": true, "turn on the alarm about its silence": true,
		},
	} {
		for _, both := range []string{"write a state", "write who serves", "write a credential", "take a lease", "write how a renewal goes", "open the data key"} {
			may[both] = true
		}
		who := s.As("as-"+role, s.Policy(role))
		for _, c := range s.attempts(t.Context(), who, role, wrapped, key) {
			var api smithy.APIError
			denied := errors.As(c.err, &api) && strings.HasPrefix(api.ErrorCode(), "AccessDenied")
			if may[c.what] && c.err != nil || !may[c.what] && !denied {
				t.Errorf("as %s, %s: got %v, want it allowed %v", role, c.what, c.err, may[c.what])
			}
			delete(may, c.what)
		}
		for what := range may {
			t.Errorf("%s: nobody tried to %s", role, what)
		}
		for _, statement := range s.Policy(role) {
			for _, action := range statement.Action {
				resource, _ := statement.Rest["Resource"].(string)
				// AWS lets nobody list some alarms only.
				excused := action == "cloudwatch:DescribeAlarms"
				if strings.Contains(action, "*") || resource == "" || (resource == "*" || strings.HasSuffix(resource, ":alarm:*")) != excused {
					t.Errorf("%s, %s: %s on %v", role, statement.Sid, action, statement.Rest["Resource"])
				}
			}
		}
	}
}

type attempt struct {
	what string
	err  error
}

// attempts does one of everything that a function of this program could want from AWS.
func (s *stack) attempts(ctx context.Context, who aws.Config, role string, wrapped []byte, key string) []attempt {
	client := dynamostore.Client(who)
	table, keys := dynamostore.New(client, s.Table), kms.NewFromConfig(who)
	body := []byte("{}")
	put := func(kind store.Kind, id string) error {
		_, err := table.Put(ctx, store.Record{Key: store.Key{Kind: kind, ID: id}, Body: body}, store.Condition{})
		return err
	}
	open := func(context map[string]string) error {
		_, err := keys.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: wrapped, KeyId: &key, EncryptionContext: context})
		return err
	}
	data := func(context map[string]string) error {
		_, err := keys.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{KeyId: &key, KeySpec: types.DataKeySpecAes256, EncryptionContext: context})
		return err
	}
	remove := func(kind store.Kind) error {
		err := table.Delete(ctx, store.Key{Kind: kind, ID: role}, 1)
		if errors.Is(err, store.ErrConflict) { // no such record exists, or another revision does
			err = nil
		}
		return err
	}
	_, reading := table.Get(ctx, []store.Key{{Kind: store.KindPin, ID: "x"}})
	var scanning error
	for _, scanning = range table.List(ctx, store.KindPin) {
		break
	}
	_, elsewhere := dynamostore.New(client, s.Table+"-2").Put(ctx, store.Record{Key: store.Key{Kind: store.KindPin, ID: "x"}, Body: body}, store.Condition{})
	dataKey := put(store.KindDataKey, "datakey")
	if errors.Is(dataKey, store.ErrConflict) { // there is one
		dataKey = nil
	}
	ours, others := map[string]string{"holdfast:table": s.Table}, map[string]string{"holdfast:table": "another"}
	_, encrypting := keys.Encrypt(ctx, &kms.EncryptInput{KeyId: &key, Plaintext: body, EncryptionContext: ours})
	watch := sdk.NewFromConfig(who)
	_, seeing := watch.DescribeAlarms(ctx, &sdk.DescribeAlarmsInput{AlarmNamePrefix: aws.String(alarm.Prefix(s.Table))})
	write := func(name string) error {
		_, err := watch.PutMetricAlarm(ctx, &sdk.PutMetricAlarmInput{
			AlarmName: &name, Namespace: aws.String(metric.Namespace), MetricName: aws.String(string(metric.NeedsOwner)), Statistic: "Maximum",
			Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1), ComparisonOperator: "GreaterThanOrEqualToThreshold",
		})
		return err
	}
	unalarm := func(name string) error {
		_, err := watch.DeleteAlarms(ctx, &sdk.DeleteAlarmsInput{AlarmNames: []string{name}})
		return err
	}
	measure := func() error {
		_, err := watch.PutMetricData(ctx, &sdk.PutMetricDataInput{
			Namespace: aws.String(metric.Namespace), MetricData: []cloudwatchtypes.MetricDatum{{MetricName: &role, Value: aws.Float64(1)}},
		})
		return err
	}
	turn := func(name string) error {
		_, err := watch.EnableAlarmActions(ctx, &sdk.EnableAlarmActionsInput{AlarmNames: []string{name}})
		return err
	}
	silence := functiontest.Stack + "-poller-silent"
	mine, theirs := alarm.Name(s.Table, role), functiontest.Stack+"-store"
	return []attempt{
		{"read", reading}, {"scan", scanning},
		{"write a pin", put(store.KindPin, role)}, {"write a state", put(store.KindState, role)}, {"write who serves", put(store.KindServing, role)},
		{"write the data key", dataKey}, {"write beside the data key", put(store.KindDataKey, "other")},
		{"write the catalog", put(store.KindCatalog, role)}, {"write a credential", put(store.KindCredential, role)},
		{"take a lease", put(store.KindLease, role)}, {"write how a renewal goes", put(store.KindRenewal, role)},
		{"write whose an object is", put(store.KindOwner, role)}, {"forget whose an object is", remove(store.KindOwner)},
		{"write the poller's clocks", put(store.KindPoll, role)}, {"write history", put(store.KindHistory, role)},
		{"delete a pin", remove(store.KindPin)}, {"delete a credential", remove(store.KindCredential)},
		{"write another table", elsewhere}, {"make a table", dynamostore.CreateTable(ctx, client, "another-of-"+role)},
		{"open the data key", open(ours)}, {"open another table's data key", open(others)}, {"open what has no context", open(nil)},
		{"make a data key", data(ours)}, {"make another table's data key", data(others)}, {"encrypt", encrypting},
		{"measure by a call", measure()}, {"see the alarms", seeing},
		{"turn on the alarm about its silence", turn(silence)}, {"turn on another alarm", turn(theirs)},
		{"write an account's alarm", write(mine)}, {"remove an account's alarm", unalarm(mine)},
		{"write another alarm", write(theirs)}, {"remove another alarm", unalarm(theirs)},
	}
}

// dataKey is the table's data key as it is stored, with the KMS key that wraps it.
func (s *stack) dataKey(t *testing.T) (wrapped []byte, key string) {
	t.Helper()
	found, err := s.owner(t).Get(t.Context(), []store.Key{{Kind: store.KindDataKey, ID: "datakey"}})
	if err != nil || len(found) != 1 {
		t.Fatalf("got %d data keys and error %v, want one", len(found), err)
	}
	var stored struct {
		Wrapped []byte
		KMSKey  string `json:"kms_key"`
	}
	if err := json.NewDecoder(bytes.NewReader(found[0].Body)).Decode(&stored); err != nil {
		t.Fatal(err)
	}
	return stored.Wrapped, stored.KMSKey
}

// statements takes each action of each statement out of the roles' policies in turn and
// looks for the symptom, then puts it back and looks that the symptom is gone. An action
// without a symptom here would be one that nobody needs.
//
// Two things cannot be seen this way where the stack runs: a function's log, which the
// platform there writes without the role's rights, is tried as a user with those rights;
// and the schedule's own role, which SAM makes, is not asked for there.
func statements(t *testing.T, s *stack) {
	symptoms := map[string]func(*testing.T) string{
		"GatewayRole Read dynamodb:BatchGetItem":                       s.unserved,
		"GatewayRole Read dynamodb:Scan":                               s.noStatus,
		"GatewayRole WriteWhatRequestsTeach dynamodb:UpdateItem":       s.unserved,
		"GatewayRole ForgetWhoseADeletedObjectWas dynamodb:DeleteItem": s.deletedFile,
		"GatewayRole OpenTheDataKey kms:Decrypt":                       s.restarted("Gateway", s.unserved),
		"GatewayRole OpenTheDataKey kms:GenerateDataKey":               s.withoutDataKey,
		"GatewayRole Log logs:CreateLogStream":                         s.unlogged("GatewayRole", "CreateLogStream"),
		"GatewayRole Log logs:PutLogEvents":                            s.unlogged("GatewayRole", "PutLogEvents"),
		"PollerRole Read dynamodb:BatchGetItem":                        s.failing("begin a round"),
		"PollerRole WriteWhatRoundsLearn dynamodb:UpdateItem":          s.failing("begin a round"),
		"PollerRole OpenTheDataKey kms:Decrypt":                        s.restarted("Poller", s.failing("data key")),
		// A process looks at the alarms when it starts.
		"PollerRole SeeWhichAlarmsThereAre cloudwatch:DescribeAlarms":    s.restarted("Poller", s.failing("look at the alarms")),
		"PollerRole KeepAnAlarmForEachAccount cloudwatch:PutMetricAlarm": s.restarted("Poller", s.missingAlarm),
		"PollerRole KeepAnAlarmForEachAccount cloudwatch:DeleteAlarms":   s.restarted("Poller", s.leftAlarm),
		"PollerRole HearItsOwnSilence cloudwatch:EnableAlarmActions":     s.restarted("Poller", s.failing("turn on alarm")),
		"PollerRole Log logs:CreateLogStream":                            s.unlogged("PollerRole", "CreateLogStream"),
		"PollerRole Log logs:PutLogEvents":                               s.unlogged("PollerRole", "PutLogEvents"),
	}
	for _, role := range []string{"GatewayRole", "PollerRole"} {
		whole := s.Policy(role)
		for _, statement := range whole {
			for _, action := range statement.Action {
				name := role + " " + statement.Sid + " " + action
				symptom := symptoms[name]
				if symptom == nil {
					t.Errorf("%s: what stops working without it?", name)
					continue
				}
				delete(symptoms, name)
				t.Run(name, func(t *testing.T) {
					s.SetPolicy(role, functiontest.Without(whole, statement.Sid, action))
					without := symptom(t)
					s.SetPolicy(role, whole)
					if without == "" {
						t.Errorf("without %s everything works", action)
					}
					if with := symptom(t); with != "" {
						t.Errorf("with %s back: got %s", action, with)
					}
					t.Logf("without %s: %s", action, without)
				})
			}
		}
	}
	for name := range symptoms {
		t.Errorf("%s: the policy has no such action", name)
	}
	if err := s.Invoke("Poller"); err != nil {
		t.Errorf("in the end: %v", err)
	}
	// Whoever was refused for want of the store is measured, for the alarm.
	refused := 0.0
	for _, e := range s.front.exchanges() {
		if strings.HasPrefix(e.path, "/v1/") && e.answered.Get("X-Holdfast-Error") == "store_unavailable" {
			refused++
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	defer cancel()
	for again := time.NewTicker(200 * time.Millisecond); ; {
		got := s.measured(t)[fmt.Sprintf("StoreUnavailable%q", []string{s.Table})]
		if got == refused && refused > 0 {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("StoreUnavailable: got %v, want %v, and some", got, refused)
		}
	}
}

// unserved begins a conversation and tells how it was refused for want of the store.
func (s *stack) unserved(t *testing.T) string {
	t.Helper()
	got := s.do(t, ask{session: newSession()})
	switch {
	case got.status == http.StatusOK:
		return ""
	case got.status == http.StatusServiceUnavailable && got.header.Get("X-Holdfast-Error") == "store_unavailable":
		return "503 store_unavailable"
	}
	t.Errorf("got %d %s, want 200, or 503 for want of the store", got.status, got.body)
	return "trouble"
}

var sessions int

// newSession is the id of a session that nobody has had.
func newSession() string {
	sessions++
	return "00000000-0000-4000-8000-0000000e" + string([]byte{'0' + byte(sessions/1000%10), '0' + byte(sessions/100%10), '0' + byte(sessions/10%10), '0' + byte(sessions%10)})
}

// noStatus asks for the status and tells how it was refused.
func (s *stack) noStatus(t *testing.T) string {
	t.Helper()
	got := s.do(t, ask{method: http.MethodGet, path: "/_holdfast/status.json", key: s.admin})
	if got.status == http.StatusOK {
		return ""
	}
	return "no status: " + got.header.Get("X-Holdfast-Error")
}

// deletedFile makes a file and deletes it again, and tells that the gateway goes on
// believing that it knows whose it is.
func (s *stack) deletedFile(t *testing.T) string {
	t.Helper()
	id, header := "file_"+newSession(), http.Header{"Content-Type": {"application/json"}}
	for _, a := range []*upstreamtest.Account{s.one, s.two} {
		a.OnPath("/v1/files", upstreamtest.Raw(http.StatusOK, header,
			[]byte(`{"id":"`+id+`","type":"file","filename":"a.txt","mime_type":"text/plain","size_bytes":1,"created_at":"2026-11-30T00:00:00Z"}`)))
		a.OnPath("/v1/files/"+id, upstreamtest.Raw(http.StatusOK, header, []byte(`{"id":"`+id+`","type":"file_deleted"}`)))
	}
	known := func() (n int) {
		for _, err := range s.owner(t).List(t.Context(), store.KindOwner) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	do := func(a ask) {
		if got := s.do(t, a); got.status != http.StatusOK {
			t.Fatalf("%s: got %d %s, want 200", a.path, got.status, got.body)
		}
	}
	// The first upload of a client key has a record too of where the key's uploads go.
	do(ask{path: "/v1/files", body: "{}"})
	do(ask{method: http.MethodDelete, path: "/v1/files/" + id})
	before := known()
	do(ask{path: "/v1/files", body: "{}"})
	switch known() - before {
	case 0: // the first record of the file was never deleted
		return "the record of a deleted file is kept"
	case 1:
	default:
		t.Fatalf("a file was made: got %d records of it, want 1", known()-before)
	}
	do(ask{method: http.MethodDelete, path: "/v1/files/" + id})
	if known() == before {
		return ""
	}
	return "the record of a deleted file is kept"
}

// restarted looks for a symptom of new processes.
func (s *stack) restarted(function string, symptom func(*testing.T) string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		s.Restart(function)
		return symptom(t)
	}
}

// withoutDataKey lets new processes of the gateway meet a table without a data key, as
// before the owner's first command, and puts the data key back.
func (s *stack) withoutDataKey(t *testing.T) string {
	t.Helper()
	table, key := s.owner(t), store.Key{Kind: store.KindDataKey, ID: "datakey"}
	drop := func() store.Record {
		found, err := table.Get(t.Context(), []store.Key{key})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			return store.Record{}
		}
		if err := table.Delete(t.Context(), key, found[0].Revision); err != nil {
			t.Fatal(err)
		}
		return found[0]
	}
	kept := drop()
	s.Restart("Gateway")
	got := s.do(t, ask{session: newSession()})
	drop()
	if _, err := table.Put(t.Context(), store.Record{Key: key, Body: kept.Body}, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	s.Restart("Gateway")
	if got.status == http.StatusUnauthorized { // with another data key no client key is known
		return ""
	}
	return got.header.Get("X-Holdfast-Error")
}

// unlogged writes a log as a user with the role's policy, and tells how that was refused.
func (s *stack) unlogged(role, operation string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		group := s.Resource(strings.TrimSuffix(role, "Role") + "Log")
		asked := map[string]any{"logGroupName": group, "logStreamName": newSession()}
		if operation == "PutLogEvents" {
			s.Logs("CreateLogStream", asked, &struct{}{})
			asked["logEvents"] = []map[string]any{{"timestamp": time.Now().UnixMilli(), "message": "a line"}}
		}
		status, err := functiontest.LogsAs(t.Context(), s.As("logs-"+newSession(), s.Policy(role)), operation, asked)
		if err != nil {
			t.Fatal(err)
		}
		if status == http.StatusOK {
			return ""
		}
		return "no log"
	}
}

// failing invokes the poller and tells how it fails, which has to be in what is named.
func (s *stack) failing(in string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		err := s.Invoke("Poller")
		if err == nil {
			return ""
		}
		if !strings.Contains(err.Error(), in) || !strings.Contains(err.Error(), "AccessDenied") && !strings.Contains(err.Error(), "identity may not") {
			t.Errorf("got %v, want it denied in %q", err, in)
		}
		return err.Error()
	}
}

// missingAlarm removes an account's alarm behind the poller's back, which the poller writes
// again.
func (s *stack) missingAlarm(t *testing.T) string {
	t.Helper()
	name := alarm.Name(s.Table, s.tansy.Name)
	s.RemoveAlarm(name)
	symptom := s.failing("put alarm " + name)(t)
	if _, there := s.Alarms()[name]; there != (symptom == "") {
		t.Errorf("alarm %s there: %v, after %q", name, there, symptom)
	}
	return symptom
}

// leftAlarm makes an alarm of an account that there is not, which the poller removes.
func (s *stack) leftAlarm(t *testing.T) string {
	t.Helper()
	name := alarm.Name(s.Table, "gone")
	s.PutAlarm(name)
	symptom := s.failing("remove alarms")(t)
	if _, there := s.Alarms()[name]; there == (symptom == "") {
		t.Errorf("alarm %s there: %v, after %q", name, there, symptom)
	}
	return symptom
}
