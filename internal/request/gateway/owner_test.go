package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/object"
	"holdfast/internal/core/pin"
	"holdfast/internal/store"
	"holdfast/internal/test/upstreamtest"
)

// tally counts what is asked of a store: calls, and keys of owners in them.
type tally struct {
	store.Backend
	mu     sync.Mutex
	gets   int
	keys   int // of owners
	puts   map[store.Kind]int
	forgot int
}

func (c *tally) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	c.mu.Lock()
	c.gets++
	for _, k := range keys {
		if k.Kind == store.KindOwner {
			c.keys++
		}
	}
	c.mu.Unlock()
	return c.Backend.Get(ctx, keys)
}

func (c *tally) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	c.mu.Lock()
	if c.puts == nil {
		c.puts = map[store.Kind]int{}
	}
	c.puts[r.Kind]++
	c.mu.Unlock()
	return c.Backend.Put(ctx, r, cond)
}

func (c *tally) Delete(ctx context.Context, key store.Key, revision int64) error {
	c.mu.Lock()
	c.forgot++
	c.mu.Unlock()
	return c.Backend.Delete(ctx, key, revision)
}

// take returns what was counted and begins anew.
func (c *tally) take() (gets, keys, owners int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gets, keys, owners = c.gets, c.keys, c.puts[store.KindOwner]
	c.gets, c.keys, c.puts = 0, 0, nil
	return gets, keys, owners
}

// keyBench is a bench of API keys at a provider, the first the most attractive.
func keyBench(t *testing.T, p account.Provider, names ...string) *bench {
	t.Helper()
	b := newBench(t)
	b.add(p, account.Key, names...)
	return b
}

// plainAsk is a request without anything that tells a conversation, except its body.
func plainAsk(method, path, body string) ask {
	return ask{method: method, path: path, body: body, header: http.Header{"Anthropic-Version": nil}}
}

func respond(input string) ask {
	return plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","stream":true,"input":"`+input+`"}`)
}

func continuing(id string) ask {
	return plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","input":"and then","previous_response_id":"`+id+`"}`)
}

func upload(text string) ask {
	a := plainAsk("POST", "/v1/files", "--x\r\n\r\n"+text+"\r\n--x--\r\n")
	a.header.Set("Content-Type", "multipart/form-data; boundary=x")
	return a
}

// makes answers with a whole Response of its own.
func makes(id string) upstreamtest.Script {
	return jsonAnswer(http.StatusOK, nil, `{"id":"`+id+`","object":"response","status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":1}}`)
}

// makesStream is the same as a stream.
func makesStream(id string) upstreamtest.Script {
	return streamed(
		`{"type":"response.created","response":{"id":"`+id+`","object":"response","status":"in_progress","store":true}}`,
		`{"type":"response.output_text.delta","delta":"Hello."}`,
		`{"type":"response.completed","response":{"id":"`+id+`","object":"response","status":"completed"}}`,
	)
}

// cool blocks an account's five-hour window for a while.
func (b *bench) cool(name string, d time.Duration) {
	b.t.Helper()
	now := b.clock.now()
	b.fold(name, func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.WindowSpent, At: now, Spent: []account.Spent{{Window: account.Weekly, ResetAt: now.Add(d)}}}, account.Rules{})
	})
}

// recordedAs is who the store says has an object.
func (b *bench) recordedAs(p account.Provider, id string) object.Record {
	b.t.Helper()
	key := object.Key(p, id)
	v, err := b.store.Read(b.t.Context(), store.Query{Owners: []string{key}})
	if err != nil {
		b.t.Fatal(err)
	}
	return v.Owners[key]
}

// account-owned-state-crosses-accounts: the second turn names the first one's response
// while its account cools, for a moment or for days.
func TestContinuationWaitsForItsOwner(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		for _, d := range []time.Duration{40 * time.Second, 6 * 24 * time.Hour} {
			t.Run(fmt.Sprint(streaming, d), func(t *testing.T) {
				b := keyBench(t, account.OpenAI, "tansy", "thistle")
				first := makes("resp_r1")
				if streaming {
					first = makesStream("resp_r1")
				}
				b.account("tansy").Queue(first)
				if r := b.served(respond("hello")); r.account() != "tansy" {
					t.Fatalf("got %s", r.account())
				}
				reset := b.clock.now().Add(d)
				b.cool("tansy", d)
				sent := b.sent()
				r := b.do(continuing("resp_r1"))
				if r.status != http.StatusTooManyRequests || r.errorKind() != "exhausted" || b.sent() != sent || !strings.Contains(r.body, "tansy") {
					t.Fatalf("got %d %s %s after %d sends", r.status, r.errorKind(), r.body, b.sent()-sent)
				}
				if !strings.Contains(r.body, reset.UTC().Format("2006-01-02T15:04")) && !strings.Contains(r.body, reset.Add(time.Second).UTC().Format("2006-01-02T15:04")) {
					t.Errorf("got %s, want the owner's reset at %v", r.body, reset)
				}
				b.clock.advance(d + time.Second)
				b.prefer("thistle", "tansy")
				b.account("tansy").Queue(makes("resp_r2"))
				if r := b.served(continuing("resp_r1")); r.account() != "tansy" {
					t.Errorf("after the reset: got %s, want tansy", r.account())
				}
			})
		}
	}
}

// The owner's refusal is the client's: nobody else is asked.
func TestOwnersRefusalIsHandedBack(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.account("tansy").Queue(makes("resp_1"))
	b.served(respond("hello"))
	for name, script := range map[string]upstreamtest.Script{
		"rate limit":  jsonAnswer(http.StatusTooManyRequests, http.Header{"Retry-After": {"3"}}, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`),
		"not found":   jsonAnswer(http.StatusBadRequest, nil, `{"error":{"message":"Previous response with id 'resp_1' not found.","code":"previous_response_not_found","type":"invalid_request_error"}}`),
		"overload":    jsonAnswer(http.StatusServiceUnavailable, nil, `{"error":{"code":"server_is_overloaded","message":"x"}}`),
		"entitlement": jsonAnswer(http.StatusForbidden, nil, `{"error":{"message":"You have insufficient permissions for this operation.","code":"missing_scope"}}`),
	} {
		b.account("tansy").Queue(script)
		sent := b.sent()
		kind := ""
		if name == "entitlement" { // in the owner's words, and not as the client's own login failing
			kind = "no_account"
		}
		if r := b.do(continuing("resp_1")); r.status < 400 || r.account() != "tansy" || r.errorKind() != kind || b.sent() != sent+1 {
			t.Errorf("%s: got %d %s from %s after %d sends, want tansy's own", name, r.status, r.errorKind(), r.account(), b.sent()-sent)
		}
		b.clock.advance(time.Hour)
		b.prefer("tansy", "thistle")
	}
}

// account-owned-state-crosses-accounts: what was encrypted for another account walks no
// pool and is charged to nobody.
func TestForeignEncryptedContent(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.account("tansy").Queue(jsonAnswer(http.StatusBadRequest, nil, `{"error":{"message":"The encrypted content gAAA... could not be verified.","type":"invalid_request_error","code":"invalid_encrypted_content","param":null}}`))
	r := b.do(plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","store":false,"input":[{"type":"message","role":"user","content":"hi"},{"type":"reasoning","encrypted_content":"gAAAAB"}]}`))
	if r.status != http.StatusBadRequest || b.sent() != 1 || !strings.Contains(r.body, "invalid_encrypted_content") {
		t.Errorf("got %d %s after %d sends, want tansy's own words", r.status, r.body, b.sent())
	}
	if st := b.state("tansy"); len(st.Blocks) != 0 || st.Parked != nil {
		t.Errorf("got %+v, want nothing held against the account", st)
	}
}

func TestOwnerComesBeforeEveryKey(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.account("tansy").Queue(makes("resp_1"))
	b.served(respond("hello"))
	b.prefer("thistle", "tansy")
	b.clock.advance(2 * time.Second)
	named := http.Header{"Anthropic-Version": nil, "X-Holdfast-Conversation": {"mine"}}
	other := respond("elsewhere")
	other.header = named
	if r := b.served(other); r.account() != "thistle" || r.pin() != "new" {
		t.Fatalf("got %s, pin %s", r.account(), r.pin())
	}
	next := continuing("resp_1")
	next.header = named
	if r := b.served(next); r.account() != "tansy" || r.pin() != "none" {
		t.Errorf("got %s, pin %s, want the owner, and the conversation's pin left alone", r.account(), r.pin())
	}
	if r := b.served(other); r.account() != "thistle" || r.pin() != "kept" {
		t.Errorf("afterwards: got %s, pin %s, want thistle, kept", r.account(), r.pin())
	}
	fresh := continuing("resp_1")
	fresh.header = http.Header{"Anthropic-Version": nil, "X-Holdfast-Conversation": {"another"}}
	if r := b.served(fresh); r.account() != "tansy" || r.pin() != "new" {
		t.Errorf("without a pin: got %s, pin %s, want one that begins at the owner", r.account(), r.pin())
	}
	if !strings.Contains(b.log.String(), `"conversation_key":"object"`) {
		t.Error("the log does not say that an object decided")
	}
}

// account-owned-state-crosses-accounts: a file of the account that the conversation was
// moved away from.
func TestFileFromBeforeAMove(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.clock.advance(2 * time.Second)
	b.account("marlow").OnPath("/v1/files", jsonAnswer(http.StatusOK, nil, `{"id":"file_011A","type":"file"}`))
	// The upload tells its session, and so the file is where the conversation is.
	b.served(ask{session: session(1)})
	b.prefer("juniper", "marlow")
	upload := ask{path: "/v1/files", session: session(1), body: "--x\r\n", header: http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}}
	if r := b.served(upload); r.account() != "marlow" || r.pin() != "none" {
		t.Fatalf("upload: got %s, pin %s, want marlow, none", r.account(), r.pin())
	}
	b.cool("marlow", time.Hour)
	if r := b.served(ask{session: session(1)}); r.account() != "juniper" || r.pin() != "moved" {
		t.Fatalf("got %s, pin %s, want a move", r.account(), r.pin())
	}
	withFile := ask{session: session(1), body: `{"model":"claude-opus-5","max_tokens":10,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_011A"}}]}]}`}
	if r := b.do(withFile); r.status != http.StatusTooManyRequests || r.errorKind() != "exhausted" {
		t.Errorf("while the owner cools: got %d %s", r.status, r.errorKind())
	}
	b.clock.advance(time.Hour + time.Second)
	b.served(ask{session: session(1)}) // the pin would have ended
	if r := b.served(withFile); r.account() != "marlow" || r.pin() != "none" {
		t.Errorf("got %s, pin %s, want marlow, and the pin left alone", r.account(), r.pin())
	}
	if r := b.served(ask{session: session(1)}); r.account() != "juniper" || r.pin() != "kept" {
		t.Errorf("without the file: got %s, pin %s, want juniper, kept", r.account(), r.pin())
	}
}

// A batch is made by one process and followed by another.
func TestBatchAcrossProcesses(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.clock.advance(2 * time.Second)
	const batch = "/v1/messages/batches"
	b.account("marlow").OnPath(batch, jsonAnswer(http.StatusOK, nil, `{"id":"msgbatch_1","type":"message_batch","processing_status":"in_progress"}`))
	for _, p := range []string{"", "/results", "/cancel"} {
		b.account("marlow").OnPath(batch+"/msgbatch_1"+p, jsonAnswer(http.StatusOK, nil, `{"id":"msgbatch_1","type":"message_batch","processing_status":"ended"}`))
	}
	if r := b.served(ask{path: batch, body: `{"requests":[]}`}); r.account() != "marlow" || r.pin() != "none" {
		t.Fatalf("got %s, pin %s", r.account(), r.pin())
	}
	b.prefer("juniper", "marlow")
	counted := &tally{Backend: b.backend()}
	_, url := b.process(store.New(counted), nil)
	b.served(ask{session: session(1), url: url}) // it has the catalog now
	counted.take()
	for _, method := range []string{"GET", "GET", "POST"} {
		path := batch + "/msgbatch_1"
		if method == "POST" {
			path += "/cancel"
		}
		if r := b.served(ask{method: method, path: path, url: url}); r.account() != "marlow" {
			t.Errorf("%s %s: got %s, want marlow", method, path, r.account())
		}
		if gets, keys, owners := counted.take(); gets != 1 || keys != 1 || owners != 0 {
			t.Errorf("got %d reads with %d owners and %d writes, want one of each read and no write", gets, keys, owners)
		}
	}
	if r := b.served(ask{method: "GET", path: batch + "/msgbatch_1/results", url: url}); r.account() != "marlow" {
		t.Errorf("results: got %s", r.account())
	}
}

// A finished batch names the files with its results.
func TestResultsOfABatch(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.account("tansy").OnPath("/v1/files", jsonAnswer(http.StatusOK, nil, `{"id":"file-in","object":"file"}`))
	b.account("tansy").OnPath("/v1/batches", jsonAnswer(http.StatusOK, nil, `{"id":"batch_1","object":"batch"}`))
	b.account("tansy").OnPath("/v1/batches/batch_1", jsonAnswer(http.StatusOK, nil, `{"id":"batch_1","object":"batch","output_file_id":"file-out"}`))
	b.account("tansy").OnPath("/v1/files/file-out/content", jsonAnswer(http.StatusOK, nil, `{"custom_id":"a"}`))
	b.served(upload("file-in"))
	b.prefer("thistle", "tansy")
	b.clock.advance(2 * time.Second)
	for _, a := range []ask{
		plainAsk("POST", "/openai/v1/batches", `{"input_file_id":"file-in","endpoint":"/v1/responses","completion_window":"24h"}`),
		plainAsk("GET", "/openai/v1/batches/batch_1", ""),
		plainAsk("GET", "/v1/files/file-out/content", ""),
	} {
		if r := b.served(a); r.account() != "tansy" {
			t.Errorf("%s: got %s, want tansy", a.path, r.account())
		}
	}
}

// Without a model in it, the owner says which provider a request is for.
func TestOwnerTellsTheProvider(t *testing.T) {
	b := keyBench(t, account.XAI, "bracken", "sorrel")
	b.add(account.OpenAI, account.Key, "tansy")
	b.account("bracken").Queue(makesStream("0b1f"))
	b.served(plainAsk("POST", "/v1/responses", `{"model":"grok-4.6","stream":true,"input":"hello"}`))
	b.prefer("sorrel", "bracken")
	counted := &tally{Backend: b.backend()}
	_, url := b.process(store.New(counted), nil)
	warm := plainAsk("GET", "/v1/models", "")
	warm.url = url
	b.do(warm)
	counted.take()
	b.account("bracken").OnPath("/v1/responses/0b1f", makes("0b1f"))
	b.account("tansy").OnPath("/v1/responses/0b1f", jsonAnswer(http.StatusNotFound, nil, `{"error":{"message":"no such response"}}`))
	for _, name := range []string{"bracken", "sorrel", "tansy"} {
		b.account(name).OnPath("/v1/responses/unknown", jsonAnswer(http.StatusNotFound, nil, `{"error":{"message":"no such response"}}`))
	}
	for _, tt := range []struct {
		method, path, want string
		status             int
	}{
		{"GET", "/v1/responses/0b1f", "bracken", 200},
		{"GET", "/xai/v1/responses/0b1f", "bracken", 200},
		{"GET", "/v1/responses/unknown", "tansy", 404}, // nobody's: openai, by its rules
		{"GET", "/openai/v1/responses/0b1f", "tansy", 404},
		{"DELETE", "/v1/responses/0b1f", "bracken", 200},
	} {
		a := plainAsk(tt.method, tt.path, "{}")
		a.url = url
		r := b.do(a)
		if r.account() != tt.want || r.status != tt.status {
			t.Errorf("%s %s: got %d from %s, want %d from %s: %s", tt.method, tt.path, r.status, r.account(), tt.status, tt.want, r.body)
		}
		if gets, _, _ := counted.take(); gets != 1 {
			t.Errorf("%s %s: got %d reads, want 1", tt.method, tt.path, gets)
		}
	}
	if r := b.recordedAs(account.XAI, "0b1f"); r.Account != "" {
		t.Errorf("deleted: got %+v, want it forgotten", r)
	}
	// An id of one provider names nothing at another that a model tells.
	b.account("tansy").Queue(makes("resp_9"))
	if r := b.served(continuing("0b1f")); r.account() != "tansy" {
		t.Errorf("got %s, want tansy", r.account())
	}
}

func TestOwnerIsGone(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.account("tansy").Queue(makes("resp_1"))
	b.served(respond("hello"))
	refused := func(what string, words ...string) {
		t.Helper()
		sent := b.sent()
		r := b.do(continuing("resp_1"))
		if r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account" || b.sent() != sent {
			t.Errorf("%s: got %d %s after %d sends", what, r.status, r.errorKind(), b.sent()-sent)
		}
		for _, w := range words {
			if !strings.Contains(r.body, w) {
				t.Errorf("%s: got %s, want a word on %q", what, r.body, w)
			}
		}
	}
	limited := b.newKey(catalog.ClientKey{Name: "guest", Accounts: []account.ID{"acc-thistle"}})
	b.clock.advance(2 * time.Second)
	guest := continuing("resp_1")
	guest.key = limited
	if r := b.do(guest); r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account" || !strings.Contains(r.body, "may not use") {
		t.Errorf("a key that may not use the owner: got %d %s", r.status, r.body)
	}
	other := continuing("resp_1")
	other.key = b.newKey(catalog.ClientKey{Name: "sibling"})
	b.clock.advance(2 * time.Second)
	if r := b.served(other); r.account() != "tansy" {
		t.Errorf("another client key: got %s, want tansy: one person's agents share what they make", r.account())
	}
	b.fold("tansy", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.Funds, At: b.clock.now(), Code: "insufficient_quota"}, account.Rules{})
	})
	refused("parked", "tansy", "needs its owner")
	b.change(func(c catalog.Catalog) catalog.Catalog {
		c.Accounts = slices.DeleteFunc(slices.Clone(c.Accounts), func(a account.Account) bool { return a.Name == "tansy" })
		return c
	})
	b.clock.advance(2 * time.Second)
	refused("removed", "was removed")
}

// What cannot be named costs nothing: Codex stores no response, and most requests name no
// object.
func TestCallsForObjects(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy")
	b.addAccount("marlow", account.Key)
	counted := &tally{Backend: b.backend()}
	_, url := b.process(store.New(counted), nil)
	do := func(a ask) (gets, keys, owners int) {
		t.Helper()
		a.url = url
		b.served(a)
		return counted.take()
	}
	do(codexAsk(1, "gpt-5.5"))
	do(ask{session: session(1)})
	for name, a := range map[string]ask{
		"Codex": codexAsk(1, "gpt-5.5"), "a chat": chatAsk(2, "gpt-5.5"), "a message": {session: session(1)},
		"stored on request only": plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","store":false,"input":"x"}`),
	} {
		if gets, keys, owners := do(a); gets != 1 || keys != 0 || owners != 0 {
			t.Errorf("%s: got %d reads with %d owners, and %d writes of owners, want 1, 0, 0", name, gets, keys, owners)
		}
	}
	b.account("tansy").Queue(makes("resp_a"))
	if _, _, owners := do(respond("x")); owners != 1 {
		t.Errorf("a stored response: got %d writes of owners, want 1", owners)
	}
	b.account("tansy").Queue(makes("resp_b"))
	if gets, keys, owners := do(continuing("resp_a")); gets != 1 || keys != 1 || owners != 1 {
		t.Errorf("a continuation: got %d reads with %d owners and %d writes, want 1, 1 and the new response's", gets, keys, owners)
	}
	b.account("tansy").OnPath("/v1/batches/batch_1", jsonAnswer(http.StatusOK, nil, `{"id":"batch_1","output_file_id":"file-out"}`))
	for _, want := range []int{2, 0, 0} {
		if gets, keys, owners := do(plainAsk("GET", "/openai/v1/batches/batch_1", "")); gets != 1 || keys != 1 || owners != want {
			t.Errorf("a poll: got %d reads with %d owners and %d writes, want 1, 1, %d", gets, keys, owners, want)
		}
	}
	b.clock.advance(25 * time.Hour)
	b.prefer("tansy")
	do(codexAsk(3, "gpt-5.5")) // it reads the catalog again
	b.account("tansy").Queue(makes("resp_c"))
	if gets, _, owners := do(continuing("resp_a")); gets != 1 || owners != 2 {
		t.Errorf("a day later: got %d reads and %d writes, want 1, the new response's and a touch", gets, owners)
	}
	if r := b.recordedAs(account.OpenAI, "resp_a"); r.Revision != 2 {
		t.Errorf("got revision %d, want it touched", r.Revision)
	}
}

// order keeps a write of an owner until the client was told the end of the answer, or for
// a moment if it waits for the write, and says which came first.
type order struct {
	store.Backend
	told  chan struct{} // closed when the end is passed on
	once  sync.Once
	noted atomic.Bool
	late  atomic.Bool // the end was passed on before the write was done
}

func (o *order) Put(ctx context.Context, r store.Record, c store.Condition) (store.Record, error) {
	if r.Kind != store.KindOwner {
		return o.Backend.Put(ctx, r, c)
	}
	select {
	case <-o.told:
	case <-time.After(50 * time.Millisecond):
	}
	stored, err := o.Backend.Put(ctx, r, c)
	o.noted.Store(true)
	return stored, err
}

// watched sees what is written to a client.
type watched struct {
	http.ResponseWriter
	o *order
}

func (w watched) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"completed"`)) {
		if !w.o.noted.Load() {
			w.o.late.Store(true)
		}
		w.o.once.Do(func() { close(w.o.told) })
	}
	return w.ResponseWriter.Write(p)
}

func (w watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A response is known by the time that its end is told, even to another process.
func TestNotedBeforeTheEnd(t *testing.T) {
	for name, script := range map[string]upstreamtest.Script{"whole": makes("resp_1"), "stream": makesStream("resp_1")} {
		t.Run(name, func(t *testing.T) {
			b := keyBench(t, account.OpenAI, "tansy", "thistle")
			o := &order{Backend: b.backend(), told: make(chan struct{})}
			g, _ := b.process(store.New(o), nil)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.ServeHTTP(watched{w, o}, r) }))
			t.Cleanup(server.Close)
			b.account("tansy").Queue(script)
			a := respond("x")
			a.url = server.URL
			if r := b.served(a); !strings.Contains(r.body, `"completed"`) {
				t.Errorf("got %s", r.body)
			}
			if o.late.Load() || !o.noted.Load() {
				t.Errorf("got the end told before the owner was noted: %v; noted at all: %v", o.late.Load(), o.noted.Load())
			}
			if r := b.recordedAs(account.OpenAI, "resp_1"); r.Account != "acc-tansy" {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// hung keeps writes of owners until they are let go or their time is up.
type hung struct {
	store.Backend
	began, let chan struct{}
	once       sync.Once
	ended      atomic.Bool // a write of an owner is over
}

func (h *hung) Put(ctx context.Context, r store.Record, c store.Condition) (store.Record, error) {
	if r.Kind != store.KindOwner {
		return h.Backend.Put(ctx, r, c)
	}
	h.once.Do(func() { close(h.began) })
	select {
	case <-h.let:
	case <-ctx.Done():
	}
	defer h.ended.Store(true)
	if err := ctx.Err(); err != nil {
		return store.Record{}, err
	}
	return h.Backend.Put(ctx, r, c)
}

// heard sees what a client hears of the end of an answer.
type heard struct {
	http.ResponseWriter
	end func()
}

func (w heard) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"completed"`)) {
		w.end()
	}
	return w.ResponseWriter.Write(p)
}

func (w heard) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A store that hangs keeps no client from the end of its answer for as long as a write may
// take: the owner is noted beside it.
func TestEndDoesNotWaitForAStoreThatHangs(t *testing.T) {
	for name, script := range map[string]upstreamtest.Script{"whole": makes("resp_1"), "stream": makesStream("resp_1")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := keyBench(t, account.OpenAI, "tansy", "thistle")
			h := &hung{Backend: b.backend(), began: make(chan struct{}), let: make(chan struct{})}
			g, _ := b.process(store.New(h), nil)
			var late atomic.Bool
			var once sync.Once
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				g.ServeHTTP(heard{w, func() { once.Do(func() { late.Store(h.ended.Load()); close(h.let) }) }}, r)
			}))
			t.Cleanup(server.Close)
			b.account("tansy").Queue(script)
			a := respond("x")
			a.url = server.URL
			b.served(a)
			if late.Load() {
				t.Error("got the end once the write had used up its time, want it before")
			}
			if r := b.recordedAs(account.OpenAI, "resp_1"); r.Account != "acc-tansy" {
				t.Errorf("got %+v, want the owner that was noted after all", r)
			}
		})
	}
}

// Two answers that come at once and name the same new object both keep their end back until
// its owner is noted, though only one of them writes it.
func TestBothAnswersAreNotedBeforeTheirEnd(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy")
	h := &hung{Backend: b.backend(), began: make(chan struct{}), let: make(chan struct{})}
	g, _ := b.process(store.New(h), nil)
	var late atomic.Int64
	second := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(heard{w, func() {
			if !h.ended.Load() {
				late.Add(1)
			}
		}}, r)
	}))
	t.Cleanup(server.Close)
	b.account("tansy").OnPath("/v1/batches/batch_1", func(r *upstreamtest.Request) upstreamtest.Answer {
		select {
		case <-h.began: // the first answer's write is under way
			close(second)
		default:
		}
		return jsonAnswer(http.StatusOK, nil, `{"id":"batch_1","status":"completed","output_file_id":"file-out"}`)(r)
	})
	ask := plainAsk("GET", "/openai/v1/batches/batch_1", "")
	ask.url = server.URL
	var all sync.WaitGroup
	all.Go(func() { b.served(ask) })
	<-h.began
	all.Go(func() { b.served(ask) })
	<-second
	<-time.After(50 * time.Millisecond) // the second answer is on its way: were it not kept back, it would be heard by now
	close(h.let)
	all.Wait()
	if n := late.Load(); n != 0 {
		t.Errorf("got %d of 2 ends told before the owner was noted", n)
	}
}

// No id of an object is written anywhere as it is.
func TestIDsOfObjectsAreNotStored(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy")
	b.account("tansy").Queue(makes("resp_secretive"))
	b.served(respond("hello"))
	found := 0
	for r, err := range b.backend().List(t.Context(), store.KindOwner) {
		if err != nil {
			t.Fatal(err)
		}
		found++
		if strings.Contains(r.ID+string(r.Body), "secretive") || r.ExpiresAt.IsZero() {
			t.Errorf("got %s %s, want a hash and an end", r.ID, r.Body)
		}
	}
	if found != 1 || strings.Contains(b.log.String(), "secretive") {
		t.Errorf("got %d records, and in the log %v", found, strings.Contains(b.log.String(), "secretive"))
	}
}

// An upload that comes with a session whose account takes no uploads goes where it can.
func TestUploadBesideAPlan(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy")
	b.addOf(account.OpenAI, "plan", account.Subscription).Always(answerTo)
	b.prefer("plan", "tansy")
	b.clock.advance(2 * time.Second)
	if r := b.served(codexAsk(1, "gpt-5.5")); r.account() != "plan" {
		t.Fatalf("got %s", r.account())
	}
	b.account("tansy").OnPath("/v1/files", jsonAnswer(http.StatusOK, nil, `{"id":"file-a","object":"file"}`))
	up := upload("file-a")
	up.header = codexAsk(1, "").header.Clone()
	up.header.Set("Content-Type", "multipart/form-data; boundary=x")
	if r := b.served(up); r.account() != "tansy" {
		t.Errorf("got %s, want the key", r.account())
	}
	pins, err := b.store.Pins(t.Context())
	if err != nil || len(pins) != 1 {
		t.Fatalf("got %d pins, %v", len(pins), err)
	}
	for _, p := range pins {
		if p.Account != "acc-plan" || p.Kept[pin.Hour(b.clock.now())] != 0 {
			t.Errorf("got %+v, want it untouched", p)
		}
	}
}

// TestFilesOfTwoOwners is field case files-of-one-request: no account can serve a request that
// names what is on two. It is told so here, by name. What nobody knows counts for nothing, nor
// does what may be a model's own word.
func TestFilesOfTwoOwners(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle", "yarrow")
	now := b.clock.now()
	for id, name := range map[string]account.ID{"file-a": "acc-yarrow", "file-b": "acc-tansy", "resp_1": "acc-thistle", "ft:gpt-4o:x::1": "acc-tansy"} {
		r := object.New(account.Account{ID: name, Provider: account.OpenAI}, time.Hour, now)
		if _, _, err := b.store.ClaimOwner(t.Context(), object.Key(account.OpenAI, id), r, now); err != nil {
			t.Fatal(err)
		}
	}
	file := func(id string) string { return `{"type":"input_file","file_id":"` + id + `"}` }
	input := func(more string, files ...string) string {
		return `"input":[{"role":"user","content":[` + strings.Join(files, ",") + `]}` + more + `]}`
	}
	known := input("", file("file-unknown"), file("file-a"))
	if r := b.served(plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5",`+known)); r.account() != "yarrow" {
		t.Errorf("one owner: got %s, want the known file's", r.account())
	}
	history := input(`,{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`, file("file-a"), file("file-b"))
	if r := b.served(plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5",`+history)); r.account() != "yarrow" {
		t.Errorf("with a history: got %s, want the first one's owner", r.account())
	}
	if r := b.served(plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","previous_response_id":"resp_1",`+history)); r.account() != "thistle" {
		t.Errorf("a continuation with a history: got %s, want the response's owner", r.account())
	}
	sent := b.sent()
	for name, c := range map[string]struct {
		path, body string
		owners     [2]string
	}{
		"two files":          {"/v1/responses", `{"model":"gpt-5.5",` + input("", file("file-a"), file("file-b")), [2]string{"yarrow", "tansy"}},
		"a response, a file": {"/v1/responses", `{"model":"gpt-5.5","previous_response_id":"resp_1",` + known, [2]string{"thistle", "yarrow"}},
		"a tuned model":      {"/v1/responses", `{"model":"ft:gpt-4o:x::1",` + known, [2]string{"tansy", "yarrow"}},
		"tuning":             {"/openai/v1/fine_tuning/jobs", `{"model":"gpt-5.5","training_file":"file-a","validation_file":"file-b"}`, [2]string{"yarrow", "tansy"}},
	} {
		r := b.do(plainAsk("POST", c.path, c.body))
		if r.status != http.StatusBadRequest || r.errorKind() != "bad_request" || !strings.Contains(r.body, c.owners[0]) || !strings.Contains(r.body, c.owners[1]) || b.sent() != sent {
			t.Errorf("%s: got %d %s %s after %d sends, want it refused here, by the names of %v", name, r.status, r.errorKind(), r.body, b.sent()-sent, c.owners)
		}
	}
	// Records end by our clock, whatever is still stored.
	b.clock.advance(time.Hour + 2*time.Minute + time.Second)
	b.prefer("tansy", "thistle", "yarrow")
	if r := b.do(plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","previous_response_id":"resp_1","input":"x"}`)); r.status != http.StatusNotFound || r.errorKind() != "not_found" {
		t.Errorf("expired: got %d %s, want it refused", r.status, r.errorKind())
	}
}

// A container in which code ran, and what the code wrote, are on the account that served.
func TestContainerOfAMessage(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.clock.advance(2 * time.Second)
	events := []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5","content":[],"container":{"id":"container_011C","expires_at":"2027-04-03T10:00:00Z"},"usage":{"input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"bash_code_execution_result","content":[{"type":"bash_code_execution_output","file_id":"file_011M"}]}}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}`,
		`{"type":"message_stop"}`,
	}
	b.account("marlow").Queue(streamed(events...))
	if r := b.served(ask{session: session(1), stream: true}); r.account() != "marlow" {
		t.Fatalf("got %s", r.account())
	}
	b.prefer("juniper", "marlow")
	b.account("marlow").OnPath("/v1/files/file_011M/content", upstreamtest.Raw(http.StatusOK, nil, []byte("chart")))
	for _, a := range []ask{
		{session: session(2), body: `{"model":"claude-opus-5","max_tokens":10,"container":"container_011C","messages":[{"role":"user","content":"go on"}]}`},
		{method: "GET", path: "/v1/files/file_011M/content"},
	} {
		if r := b.served(a); r.account() != "marlow" {
			t.Errorf("%s: got %s, want marlow", a.path, r.account())
		}
	}
}

// TestObjectOfAnotherKeysAccount is field case restricted-key-and-object: a client key that may
// not use the account of what it names hears that, and no name of an account that is not its
// own.
func TestObjectOfAnotherKeysAccount(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	now := b.clock.now()
	for id, who := range map[string]account.ID{"resp_1": "acc-tansy", "file-a": "acc-tansy", "file-b": "acc-thistle"} {
		record := object.New(account.Account{ID: who, Provider: account.OpenAI}, 24*time.Hour, now)
		if _, _, err := b.store.ClaimOwner(t.Context(), object.Key(account.OpenAI, id), record, now); err != nil {
			t.Fatal(err)
		}
	}
	guest := b.newKey(catalog.ClientKey{Name: "guest", Accounts: []account.ID{"acc-thistle"}})
	both := `{"model":"gpt-5.5","input":[{"role":"user","content":[{"type":"input_file","file_id":"file-%s"},{"type":"input_file","file_id":"file-%s"}]}]}`
	for name, a := range map[string]ask{
		"a response":               continuing("resp_1"),
		"a file":                   plainAsk("GET", "/v1/files/file-a", ""),
		"two files":                plainAsk("POST", "/v1/responses", fmt.Sprintf(both, "a", "b")),
		"two, the other way round": plainAsk("POST", "/v1/responses", fmt.Sprintf(both, "b", "a")),
	} {
		a.key = guest
		r := b.do(a)
		if r.status < 400 || b.sent() != 0 || strings.Contains(r.body, "tansy") || r.account() != "" ||
			!strings.Contains(r.body, `client key \"guest\" may not use`) || !strings.Contains(r.body, "holdfast key list") {
			t.Errorf("%s: got %d by %q after %d sends: %s", name, r.status, r.account(), b.sent(), r.body)
		}
	}
}

// TestUnknownObjectIsTold is field case what-kind-of-id: an id that nobody is known to have is
// refused by its kind and never repeated, with what may be the reason.
func TestUnknownObjectIsTold(t *testing.T) {
	for _, tt := range []struct {
		provider account.Provider
		ask      ask
		says     string
	}{
		{account.OpenAI, plainAsk("GET", "/v1/files/file-SECRET1", ""), "a file (file-…)"},
		{account.OpenAI, continuing("resp_SECRET1"), "a response (resp_…)"},
		{account.OpenAI, plainAsk("GET", "/openai/v1/things_of_tomorrow/thing_SECRET1/parts", ""), "an object (thing_…)"},
		{account.OpenAI, plainAsk("GET", "/openai/v1/things_of_tomorrow/SECRET1", ""), "an object of /v1/things_of_tomorrow"},
		{account.OpenAI, plainAsk("GET", "/v1/models/ft:gpt-5.5:SECRET::1", ""), "a tuned model (ft:…)"},
		{account.OpenAI, plainAsk("GET", "/v1/files?after=SECRET1", ""), "where a listing goes on"},
		{account.Anthropic, plainAsk("GET", "/anthropic/v1/messages/batches/msgbatch_SECRET1", ""), "a batch (msgbatch_…)"},
		{account.XAI, plainAsk("GET", "/xai/v1/videos/SECRET1", ""), "an object of /v1/videos"},
	} {
		b := keyBench(t, tt.provider, "tansy", "thistle")
		r := b.do(tt.ask)
		if r.status != http.StatusNotFound || strings.Contains(r.body, "SECRET") || !strings.Contains(r.body, "mistyped") || !strings.Contains(r.body, "deleted") || !strings.Contains(r.body, "made elsewhere") || !strings.Contains(r.body, tt.says) {
			t.Errorf("%s: got %d %s, want a word on %q", tt.ask.path, r.status, r.body, tt.says)
		}
	}
	// What is known to be gone with its account is told by its kind, too.
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	now := b.clock.now()
	record := object.New(account.Account{ID: "acc-gone", Provider: account.OpenAI}, 24*time.Hour, now)
	if _, _, err := b.store.ClaimOwner(t.Context(), object.Key(account.OpenAI, "file-SECRET1"), record, now); err != nil {
		t.Fatal(err)
	}
	if r := b.do(plainAsk("GET", "/v1/files/file-SECRET1", "")); !strings.Contains(r.body, "a file (file-…)") || !strings.Contains(r.body, "was removed") || strings.Contains(r.body, "SECRET") {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

// A conversation that only one account can continue is asked for on a path that this account
// does not serve: its owner can do nothing about that, and the client can.
func TestBoundConversationOnAPathOfAnother(t *testing.T) {
	b := newBench(t)
	b.addOf(account.OpenAI, "plan", account.Subscription)
	mine := http.Header{"Anthropic-Version": nil, "X-Holdfast-Conversation": {"mine"}, "Session-Id": {session(1)}, "Originator": {"codex_cli_rs"}}
	codex := ask{path: "/v1/responses", header: mine, body: `{"model":"gpt-5.5","stream":true,"store":false,"input":[{"type":"reasoning","encrypted_content":"abc"},{"role":"user","content":"x"}]}`}
	if r := b.served(codex); r.account() != "plan" {
		t.Fatalf("got %s", r.account())
	}
	b.addOf(account.OpenAI, "tansy", account.Key)
	b.clock.advance(2 * time.Second)
	r := b.do(ask{path: "/v1/chat/completions", header: mine, body: `{"model":"gpt-5.5","messages":[{"role":"user","content":"x"}]}`})
	if r.status != http.StatusServiceUnavailable || strings.Contains(r.body, "needs its owner") || !strings.Contains(r.body, "only account plan can continue this conversation, and it does not serve POST /v1/chat/completions") {
		t.Errorf("got %d %s", r.status, r.body)
	}
}
