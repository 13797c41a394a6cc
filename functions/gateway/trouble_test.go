package main_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/aws/functionurl"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/test/awstest"
	"holdfast/internal/test/functiontest"
)

// checkUnavailable checks that a request was refused because of the store, in the
// provider's shape, and with nothing sent on.
func checkUnavailable(t *testing.T, b *functiontest.Bench, got functiontest.Reply) {
	t.Helper()
	var said struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(got.Body), &said); err != nil {
		t.Errorf("got %q, want JSON: %v", got.Body, err)
	}
	if got.Status != http.StatusServiceUnavailable || got.Refusal() != "store_unavailable" || got.Header.Get("Retry-After") != "2" {
		t.Errorf("got %d %q, Retry-After %q; want 503 store_unavailable, 2", got.Status, got.Refusal(), got.Header.Get("Retry-After"))
	}
	if said.Type != "error" || said.Error.Type == "" || !strings.HasPrefix(said.Error.Message, "holdfast: ") {
		t.Errorf("got %q, want an error in Anthropic's envelope", got.Body)
	}
	if n := len(b.Upstream.Requests()); n != 0 {
		t.Errorf("got %d requests upstream, want none", n)
	}
}

// TestTroubleAtStart: whatever is wrong with AWS when a process starts, its requests are
// refused, and once it is right the same process serves.
func TestTroubleAtStart(t *testing.T) {
	for _, c := range []struct {
		name, operation string
		trouble         awstest.Trouble
		log             string // what tells the owner
	}{
		{"KMS fails", "Decrypt", awstest.Refuse(500, "KMSInternalException"), "open the data key"},
		{"KMS throttles", "Decrypt", awstest.Refuse(400, "ThrottlingException"), "open the data key"},
		{"KMS denies", "Decrypt", awstest.Refuse(400, "AccessDeniedException"), "needs kms:Decrypt on the KMS key"},
		{"KMS key disabled", "Decrypt", awstest.Refuse(400, "DisabledException"), "is disabled: enable it"},
		{"KMS cut off", "Decrypt", awstest.Lose, "open the data key"},
		{"KMS deaf", "Decrypt", awstest.Ignore, "open the data key"},
		{"table throttles", "BatchGetItem", awstest.Refuse(400, "ProvisionedThroughputExceededException"), "ProvisionedThroughputExceededException"},
		{"table fails", "BatchGetItem", awstest.Refuse(500, "InternalServerError"), "the store is unavailable"},
		{"table denies", "BatchGetItem", awstest.Refuse(400, "AccessDeniedException"), "AccessDeniedException"},
		{"table cut off", "BatchGetItem", awstest.Lose, "the store is unavailable"},
		{"table deaf", "BatchGetItem", awstest.Ignore, "the store is unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := functiontest.New(t)
			b.Account("one", 0.20)
			f := b.Serve()
			b.AWS.Always(c.operation, c.trouble)
			for range 2 {
				checkUnavailable(t, b, f.Do(t, functiontest.Request{Session: "trouble"}))
			}
			if !f.Says(c.log) {
				t.Errorf("got log %q, want %q in it", f.Output(), c.log)
			}
			b.AWS.Always(c.operation, nil)
			recovers(t, f, "new")
		})
	}
}

// recovers checks that the one process there was from the beginning serves soon. A client
// key that was made while it ran it looks for after a moment, not at once.
func recovers(t *testing.T, f *functiontest.Function, pin string) {
	t.Helper()
	got := f.Do(t, functiontest.Request{Session: "trouble"})
	for again := 0; again < 1000 && got.Status != http.StatusOK; again++ {
		got = f.Do(t, functiontest.Request{Session: "trouble"})
	}
	if got.Status != http.StatusOK || got.Pin() != pin {
		t.Errorf("afterwards: got %d %s, pin %q; want 200, %s", got.Status, got.Body, got.Pin(), pin)
	}
	if f.Started() != 1 {
		t.Errorf("got %d processes, want 1", f.Started())
	}
}

// nobodys is a client key of the right form that was never made.
var nobodys = clientkey.FromSeed([]byte("nobody's")).Reveal()

// TestNoTable: a function whose table is still to be made, or is gone, waits for it.
func TestNoTable(t *testing.T) {
	b := functiontest.WithoutTable(t)
	b.Key = nobodys
	f := b.Serve()
	checkUnavailable(t, b, f.Do(t, functiontest.Request{Session: "trouble"}))
	b.CreateTable()
	b.Key = ""
	b.Account("one", 0.20)
	recovers(t, f, "new")
}

// TestEmptyTable: on a table that nobody has used yet, a client hears that its key is
// unknown, and the data key that the function made for that is the owner's from then on.
func TestEmptyTable(t *testing.T) {
	b := functiontest.New(t)
	b.Key = nobodys
	f := b.Serve()
	if got := f.Do(t, functiontest.Request{}); got.Status != http.StatusUnauthorized || got.Refusal() != "unauthorized" {
		t.Errorf("got %d %s, want 401 unauthorized", got.Status, got.Body)
	}
	b.Key = ""
	b.Account("one", 0.20)
	recovers(t, f, "new")
}

// TestTroubleOnTheWay: a conversation that has a pin is refused as well while the table
// does not answer, and goes on afterwards where it was.
func TestTroubleOnTheWay(t *testing.T) {
	for _, c := range []struct {
		name    string
		trouble awstest.Trouble
	}{
		{"throttled", awstest.Refuse(400, "ProvisionedThroughputExceededException")},
		{"fails", awstest.Refuse(500, "InternalServerError")},
		{"cut off", awstest.Lose},
		{"deaf", awstest.Ignore},
		{"unprocessed", awstest.LeaveUnprocessed(0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := functiontest.New(t)
			b.Account("one", 0.20)
			f := b.Serve()
			f.Served(t, functiontest.Request{Session: "trouble"})
			b.Upstream.Forget()
			b.AWS.Always("BatchGetItem", c.trouble)
			checkUnavailable(t, b, f.Do(t, functiontest.Request{Session: "trouble"}))
			b.AWS.Always("BatchGetItem", nil)
			recovers(t, f, "kept")
		})
	}
}

// TestPinCannotBeClaimed: a new conversation is sent on only when its pin is written.
func TestPinCannotBeClaimed(t *testing.T) {
	b := functiontest.New(t)
	b.Account("one", 0.20)
	f := b.Serve()
	b.AWS.Always("UpdateItem", awstest.Refuse(400, "ProvisionedThroughputExceededException"))
	checkUnavailable(t, b, f.Do(t, functiontest.Request{Session: "trouble"}))
	b.AWS.Always("UpdateItem", nil)
	recovers(t, f, "new")
}

// TestMisconfigured: what no waiting mends is told at the start, in the log.
func TestMisconfigured(t *testing.T) {
	for _, c := range []struct {
		name, variable string
		status         int
	}{
		{"no table named", "HOLDFAST_TABLE", http.StatusBadGateway},
		{"no region", "AWS_REGION", http.StatusBadGateway},
		{"no credentials", "AWS_SECRET_ACCESS_KEY", http.StatusBadGateway},
		{"no KMS key named", "HOLDFAST_KMS_KEY_ID", http.StatusServiceUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := functiontest.New(t)
			b.Account("one", 0.20)
			f := b.Serve(func(o *functionurl.Options) { o.Env = append(o.Env, c.variable+"=") })
			if got := f.Do(t, functiontest.Request{}); got.Status != c.status {
				t.Errorf("got %d %s, want %d", got.Status, got.Body, c.status)
			}
			if !f.Says(c.variable) {
				t.Errorf("got log %q, want %s named in it", f.Output(), c.variable)
			}
		})
	}
}
