package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"holdfast/internal/cloud/profile"
	"holdfast/internal/functiontest"
	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/upstreamtest"
)

// The stack as an owner deploys it, with the function under its own role, in an account
// that refuses what the role's policy does not name.
func TestDeployed(t *testing.T) {
	tool(t, "claude")
	d := functiontest.Deploy(t)
	if said := d.DeployAgain(); !strings.Contains(said, "No changes to deploy") {
		t.Errorf("second deployment: got %s, want no changes", said)
	}
	if strings.HasSuffix(d.GatewayURL, "/") {
		t.Errorf("GatewayUrl: got %s, want it without a slash at its end: agents add one", d.GatewayURL)
	}
	b := onTable(t, d.Table, d.Owner())
	b.front.to(t, d.URL)

	c := newClaudeCode(t, b.front.url, b.key)
	answered(t, "first turn", c.start("hello"), "by account")
	home := firstAccount(b)
	other := b.other(home.Name)
	answered(t, "second turn", c.turn("go on"), byAccount(home))
	// What is learnt and kept, each of it a write of its own.
	home.Queue(upstreamtest.Good(upstreamtest.Plan(0.40, time.Now().Add(3*time.Hour), 0.35, time.Now().Add(80*time.Hour))))
	agePins(t, d, 2*time.Minute)
	answered(t, "third turn, with a new reading and a touch due", c.turn("and on"), byAccount(home))
	b.until(home.Name, "the new reading", func(s shown) bool { return s.utilization("five-hour") == 0.40 })
	home.Queue(upstreamtest.FiveHourSpent(time.Now().Add(3 * time.Hour)))
	answered(t, "fourth turn, which the account rejects", c.turn("still there?"), byAccount(other))
	b.until(home.Name, "a cooldown", func(s shown) bool { return s.State == "cooldown" })
	checkPins(t, b.front, "new", "kept", "kept", "moved")

	admin := strings.TrimSpace(b.run(nil, "key", "create", "admin", "--admin").stdout)
	b.secrets = append(b.secrets, admin)
	const message = `{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`
	for _, ask := range []struct {
		name, method, path, key, body, begins string
	}{
		{"stream", http.MethodPost, "/v1/messages", b.key, `{"stream":true,` + message[1:], "event: message_start\ndata: {"},
		{"JSON", http.MethodPost, "/v1/messages", b.key, message, `{"id":"msg_`},
		{"count_tokens", http.MethodPost, "/v1/messages/count_tokens", b.key, message, `{"input_tokens":`},
		{"models", http.MethodGet, "/v1/models", b.key, "", `{"data":[`},
		{"status", http.MethodGet, "/_holdfast/status.json", admin, "", "{\n  \"at\": "},
		{"health", http.MethodGet, "/_holdfast/health", "", "", "ok\n"},
		{"hello", http.MethodGet, "/", "", "", "holdfast\n"},
	} {
		if got := deployed(t, d.URL, ask.method, ask.path, ask.key, ask.body); got.status != http.StatusOK || !strings.HasPrefix(got.body, ask.begins) {
			t.Errorf("%s: got %d %q, want 200 %q…", ask.name, got.status, got.body, ask.begins)
		}
	}

	b.run(nil, "key", "revoke", "agents")
	// The promise is about time: two seconds after a key was revoked nobody is served with it.
	<-time.After(2 * time.Second)
	if got := deployed(t, d.URL, http.MethodPost, "/v1/messages", b.key, message); got.status != http.StatusUnauthorized || !strings.HasPrefix(got.body, `{"type":"error"`) {
		t.Errorf("revoked key: got %d %q, want 401 and an error", got.status, got.body)
	}

	log := d.Log()
	b.quiet("the function", log)
	if !strings.Contains(log, `"msg":"request"`) || strings.Contains(log, "AccessDenied") || strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("the function's log: got %s, want its requests, nothing denied, no errors", log)
	}
	onlyWhatItNeeds(t, d)
}

// deployed makes a request as an agent would.
func deployed(t *testing.T, url, method, path, key, body string) (got struct {
	status int
	body   string
}) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("X-Api-Key", key)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	got.status, got.body = resp.StatusCode, string(content)
	return got
}

// owner opens the deployed table as the command does.
func owner(t *testing.T, d *functiontest.Deployment) *profile.Table {
	t.Helper()
	t.Setenv("AWS_PROFILE", "")
	for _, variable := range d.Owner() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	table, err := profile.Open(t.Context(), d.Table)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// agePins makes every conversation look as if it had last been active so long ago.
func agePins(t *testing.T, d *functiontest.Deployment, by time.Duration) {
	t.Helper()
	s := store.New(owner(t, d))
	pins, err := s.Pins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for key, p := range pins {
		p.TouchedAt = p.TouchedAt.Add(-by)
		if _, ours, err := s.ReplacePin(t.Context(), key, p); err != nil || !ours {
			t.Fatalf("age a pin: ours %v, error %v", ours, err)
		}
	}
}

// onlyWhatItNeeds tries what the function's role must not be able to do, and beside it what
// it must, so that a policy which refuses everything is none.
func onlyWhatItNeeds(t *testing.T, d *functiontest.Deployment) {
	t.Helper()
	cfg := d.AsFunction()
	client := dynamostore.Client(cfg)
	table, keys := dynamostore.New(client, d.Table), kms.NewFromConfig(cfg)
	wrapped, key := dataKey(t, d)
	body := []byte("{}")
	ctx := t.Context()
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
	ours, others := map[string]string{"holdfast:table": d.Table}, map[string]string{"holdfast:table": "another"}
	for _, c := range []struct {
		name string
		may  bool
		err  error
	}{
		{"read a pin", true, func() error {
			_, err := table.Get(ctx, []store.Key{{Kind: store.KindPin, ID: "x"}})
			return err
		}()},
		{"write a pin", true, put(store.KindPin, "as-the-function")},
		{"write a state", true, put(store.KindState, "as-the-function")},
		{"write who serves", true, put(store.KindServing, "as-the-function")},
		{"write the data key", true, func() error {
			if err := put(store.KindDataKey, "datakey"); !errors.Is(err, store.ErrConflict) { // there is one
				return errors.Join(errors.New("got no conflict"), err)
			}
			return nil
		}()},
		{"write beside the data key", false, put(store.KindDataKey, "check")},
		{"write the catalog", false, put(store.KindCatalog, "as-the-function")},
		{"write a credential", true, put(store.KindCredential, "as-the-function")},
		{"take a lease", true, put(store.KindLease, "as-the-function")},
		{"write how a renewal goes", true, put(store.KindRenewal, "as-the-function")},
		{"write whose an object is", true, put(store.KindOwner, "as-the-function")},
		{"write the poller's clocks", false, put(store.KindPoll, "as-the-function")},
		{"write history", false, put(store.KindHistory, "as-the-function")},
		{"delete a pin", false, table.Delete(ctx, store.Key{Kind: store.KindPin, ID: "as-the-function"}, 1)},
		{"write another table", false, func() error {
			_, err := dynamostore.New(client, d.Table+"-2").Put(ctx, store.Record{Key: store.Key{Kind: store.KindPin, ID: "x"}, Body: body}, store.Condition{})
			return err
		}()},
		{"make a table", false, dynamostore.CreateTable(ctx, client, "another")},
		{"open the data key", true, open(ours)},
		{"open another table's data key", false, open(others)},
		{"open what has no context", false, open(nil)},
		{"make a data key", true, data(ours)},
		{"make another table's data key", false, data(others)},
		{"encrypt", false, func() error {
			_, err := keys.Encrypt(ctx, &kms.EncryptInput{KeyId: &key, Plaintext: body, EncryptionContext: ours})
			return err
		}()},
	} {
		var api smithy.APIError
		denied := errors.As(c.err, &api) && strings.HasPrefix(api.ErrorCode(), "AccessDenied")
		if c.may && c.err != nil || !c.may && !denied {
			t.Errorf("as the function, %s: got %v, want it allowed %v", c.name, c.err, c.may)
		}
	}
}

// dataKey is the table's data key as it is stored, with the KMS key that wraps it.
func dataKey(t *testing.T, d *functiontest.Deployment) (wrapped []byte, key string) {
	t.Helper()
	found, err := owner(t, d).Get(t.Context(), []store.Key{{Kind: store.KindDataKey, ID: "datakey"}})
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
