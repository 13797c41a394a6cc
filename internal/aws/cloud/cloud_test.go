package cloud_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"holdfast/internal/aws/cloud"
	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/store/seal"
	"holdfast/internal/test/awstest"
)

// deployed is an account with a table and a KMS key.
type deployed struct{ endpoint, table, key string }

func deploy(t *testing.T) deployed {
	t.Helper()
	d := deployed{endpoint: awstest.StartMiniStack(t, true), table: "holdfast-" + rand.Text()}
	cfg := awstest.Config(d.endpoint)
	if err := dynamostore.CreateTable(t.Context(), dynamodb.NewFromConfig(cfg), d.table); err != nil {
		t.Fatal(err)
	}
	made, err := kms.NewFromConfig(cfg).CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	d.key = *made.KeyMetadata.Arn
	return d
}

// environ is a function's environment.
func (d deployed) environ() map[string]string {
	return map[string]string{
		"AWS_REGION": awstest.Region, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_ENDPOINT_URL": d.endpoint, "AWS_ENDPOINT_URL_DYNAMODB": "", "HOLDFAST_KMS_KEY_ID": d.key,
	}
}

func setenv(t *testing.T, environ map[string]string) {
	t.Helper()
	for name, value := range environ {
		t.Setenv(name, value)
	}
}

// open opens the table as a function does.
func open(t *testing.T, d deployed) *cloud.Table {
	t.Helper()
	cfg, err := cloud.Environment()
	if err != nil {
		t.Fatal(err)
	}
	return cloud.Open(cfg, d.table, cloud.Key(os.Getenv("HOLDFAST_KMS_KEY_ID")))
}

// mark recognizes a box without telling its key.
func mark(b *seal.Box) string { return b.KeyedHash("test", []byte("mark")) }

func TestTableAndBox(t *testing.T) {
	d := deploy(t)
	setenv(t, d.environ())
	key := store.Key{Kind: store.KindState, ID: "a"}
	first, second := open(t, d), open(t, d)
	if _, err := first.Put(t.Context(), store.Record{Key: key, Body: []byte("x")}, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	if found, err := second.Get(t.Context(), []store.Key{key}); err != nil || len(found) != 1 || string(found[0].Body) != "x" {
		t.Errorf("got %d records and error %v, want the one written", len(found), err)
	}
	ours, err := first.Box(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := second.Box(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := ours.Seal([]byte("secret"), "a")
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := theirs.Open(sealed, "a"); err != nil || string(opened) != "secret" {
		t.Errorf("got %d bytes and error %v, want what was sealed", len(opened), err)
	}
}

// TestBoxIsOpenedOnce: however many ask for it, before and after it is open.
func TestBoxIsOpenedOnce(t *testing.T) {
	d := deploy(t)
	front := awstest.NewFront(t, d.endpoint)
	setenv(t, d.environ())
	t.Setenv("AWS_ENDPOINT_URL", front.URL)
	table := open(t, d)
	if calls := front.Calls(); len(calls) != 0 {
		t.Errorf("opened: got calls %v, want none", calls)
	}
	boxes := make([]*seal.Box, 8)
	var all sync.WaitGroup
	for i := range boxes {
		all.Go(func() {
			var err error
			if boxes[i], err = table.Box(t.Context()); err != nil {
				t.Errorf("got %v, want no error", err)
			}
		})
	}
	all.Wait()
	again, err := table.Box(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range boxes {
		if b != again {
			t.Errorf("caller %d got another box", i)
		}
	}
	want := map[string]int{"BatchGetItem": 1, "GenerateDataKey": 1, "UpdateItem": 1}
	if calls := front.Calls(); fmt.Sprint(calls) != fmt.Sprint(want) {
		t.Errorf("got calls %v, want %v", calls, want)
	}
}

// TestBoxAfterTrouble: an error is not kept, and who does not wait does not stop it.
func TestBoxAfterTrouble(t *testing.T) {
	d := deploy(t)
	front := awstest.NewFront(t, d.endpoint)
	setenv(t, d.environ())
	t.Setenv("AWS_ENDPOINT_URL", front.URL)
	table := open(t, d)
	refuse := awstest.Refuse(400, "ThrottlingException")
	front.Next("BatchGetItem", refuse, refuse)
	if _, err := table.Box(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("throttled: got %v, want ErrUnavailable", err)
	}
	arrived, leave := make(chan struct{}), make(chan struct{})
	front.Next("GenerateDataKey", func(x *awstest.Exchange) {
		close(arrived)
		<-leave
		x.Pass()
	})
	ctx, cancel := context.WithCancel(t.Context())
	var impatient sync.WaitGroup
	impatient.Go(func() {
		if _, err := table.Box(ctx); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("left: got %v, want ErrUnavailable and context.Canceled", err)
		}
	})
	<-arrived
	cancel()
	impatient.Wait()
	close(leave)
	if _, err := table.Box(t.Context()); err != nil {
		t.Errorf("stayed: got %v, want no error", err)
	}
	if calls := front.Calls(); calls["GenerateDataKey"] != 1 {
		t.Errorf("got calls %v, want one of GenerateDataKey", calls)
	}
}

// TestBoxAfterAStaleAttempt: an attempt that had begun before a call, as in a process that
// was frozen meanwhile, fails without the call.
func TestBoxAfterAStaleAttempt(t *testing.T) {
	d := deploy(t)
	front := awstest.NewFront(t, d.endpoint)
	setenv(t, d.environ())
	t.Setenv("AWS_ENDPOINT_URL", front.URL)
	table := open(t, d)
	arrived, leave := make(chan struct{}), make(chan struct{})
	front.Next("GenerateDataKey", func(x *awstest.Exchange) {
		close(arrived)
		<-leave
		awstest.Refuse(400, "AccessDeniedException")(x)
	})
	var callers sync.WaitGroup
	callers.Go(func() {
		if _, err := table.Box(t.Context()); err == nil {
			t.Error("the caller whose attempt it is: got no error")
		}
	})
	<-arrived
	joined := &joins{Context: t.Context(), joined: make(chan struct{})}
	callers.Go(func() {
		if _, err := table.Box(joined); err != nil {
			t.Errorf("the caller who came later: got %v, want no error", err)
		}
	})
	<-joined.joined
	close(leave)
	callers.Wait()
}

// joins is a context that tells when somebody waits for its end.
type joins struct {
	context.Context
	once   sync.Once
	joined chan struct{}
}

func (j *joins) Done() <-chan struct{} {
	j.once.Do(func() { close(j.joined) })
	return j.Context.Done()
}

// TestRacingProcesses: several processes that start on a new table agree on one data key.
func TestRacingProcesses(t *testing.T) {
	const marker = "HOLDFAST_TEST_OPENS"
	if table := os.Getenv(marker); table != "" {
		opened := open(t, deployed{table: table})
		box, err := opened.Box(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("mark", mark(box))
		return
	}
	d := deploy(t)
	const processes = 6
	marks := make([]string, processes)
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRacingProcesses$")
			cmd.Env = append(os.Environ(), marker+"="+d.table)
			for name, value := range d.environ() {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
			for line := range strings.Lines(string(out)) {
				if m, ok := strings.CutPrefix(line, "mark "); ok {
					marks[i] = m
				}
			}
		})
	}
	all.Wait()
	for i, m := range marks {
		if m == "" || m != marks[0] {
			t.Errorf("process %d got another key than process 0, or none", i)
		}
	}
}

func TestEnvironmentSaysWhatIsMissing(t *testing.T) {
	whole := deployed{endpoint: "http://127.0.0.1:1", key: "key"}.environ()
	for name, want := range map[string]string{
		"AWS_REGION": "AWS_REGION", "AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, whole)
			t.Setenv("AWS_DEFAULT_REGION", "")
			t.Setenv(name, "")
			if _, err := cloud.Environment(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q named", err, want)
			}
		})
	}
	if _, err := cloud.Key("")(t.Context()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_KMS_KEY_ID") {
		t.Errorf("got %v, want HOLDFAST_KMS_KEY_ID named", err)
	}
}

// TestEndpoints: which host a client would speak to, by the rules of AWS's SDKs.
func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		name           string
		environ        map[string]string
		dynamo, forKMS string
	}{
		{"None", nil, "", ""},
		{"Global", map[string]string{"AWS_ENDPOINT_URL": "http://global"}, "http://global", "http://global"},
		{"OfService", map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "http://own"}, "http://own", ""},
		{"OfServiceBeatsGlobal", map[string]string{"AWS_ENDPOINT_URL": "http://global", "AWS_ENDPOINT_URL_KMS": "http://own"}, "http://global", "http://own"},
		{"EmptyIsUnset", map[string]string{"AWS_ENDPOINT_URL": "http://global", "AWS_ENDPOINT_URL_DYNAMODB": ""}, "http://global", "http://global"},
		{"AllEmpty", map[string]string{"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_DYNAMODB": ""}, "", ""},
		{"Ignored", map[string]string{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true", "AWS_ENDPOINT_URL": "http://global", "AWS_ENDPOINT_URL_DYNAMODB": "http://own"}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_KMS", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"} {
				t.Setenv(name, "") // put back after the test
				if _, ok := c.environ[name]; !ok {
					if err := os.Unsetenv(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			setenv(t, map[string]string{"AWS_REGION": awstest.Region, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"})
			setenv(t, c.environ)
			cfg, err := cloud.Environment()
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range []struct {
				service string
				got     *string
				want    string
			}{
				{"DynamoDB", dynamostore.Client(cfg).Options().BaseEndpoint, c.dynamo},
				{"KMS", kms.NewFromConfig(cfg).Options().BaseEndpoint, c.forKMS},
			} {
				got := ""
				if of.got != nil {
					got = *of.got
				}
				if got != of.want {
					t.Errorf("%s: got %q, want %q", of.service, got, of.want)
				}
			}
		})
	}
}

// TestFunctionsStaySmall: what only a person's machine needs would cost every function two
// megabytes and a third of its start.
func TestFunctionsStaySmall(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "holdfast/internal/aws/cloud").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		for _, heavy := range []string{"config", "credentials", "feature/ec2/imds", "service/sts", "service/sso"} {
			if strings.TrimSpace(dep) == "github.com/aws/aws-sdk-go-v2/"+heavy {
				t.Errorf("cloud depends on the SDK's %s", heavy)
			}
		}
	}
}
