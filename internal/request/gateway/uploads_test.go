package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/object"
	"holdfast/internal/store"
	"holdfast/internal/test/upstreamtest"
)

// uploads makes every account answer uploads, each with a file of its own.
func (b *bench) uploads(names ...string) {
	for _, name := range names {
		n := 0
		var mu sync.Mutex
		b.account(name).OnPath("/v1/files", func(r *upstreamtest.Request) upstreamtest.Answer {
			mu.Lock()
			n++
			body := fmt.Sprintf(`{"id":"file-%s%d","object":"file"}`, name, n)
			mu.Unlock()
			return jsonAnswer(http.StatusOK, nil, body)(r)
		})
		b.account(name).OnPath("/v1/fine_tuning/jobs", jsonAnswer(http.StatusOK, nil, `{"id":"ftjob-`+name+`","object":"fine_tuning.job"}`))
	}
}

// TestFilesOfOneRequest is field case files-of-one-request: what one client key uploads is
// named by one request later, so it goes to one account, whatever conversations begin between.
func TestFilesOfOneRequest(t *testing.T) {
	for _, p := range []account.Provider{account.OpenAI, account.XAI, account.Anthropic} {
		t.Run(string(p), func(t *testing.T) {
			b := keyBench(t, p, "tansy", "thistle")
			b.prefer("tansy", "thistle")
			b.uploads("tansy", "thistle")
			key := b.newKey(catalog.ClientKey{Name: "other"})
			up := func() ask {
				a := upload("x")
				a.path = "/" + string(p) + a.path
				return a
			}
			if r := b.served(up()); r.account() != "tansy" || r.pin() != "none" {
				t.Fatalf("got %s, pin %s", r.account(), r.pin())
			}
			b.prefer("thistle", "tansy")
			b.clock.advance(2 * time.Hour)
			if r := b.served(up()); r.account() != "tansy" {
				t.Errorf("the second upload: got %s, want tansy", r.account())
			}
			other := up()
			other.key = key
			if r := b.served(other); r.account() != "thistle" {
				t.Errorf("another client key's: got %s, want the most attractive account", r.account())
			}
			// A pause is waited for; an account that takes nothing for longer is left.
			b.throttle("tansy", 20*time.Second)
			if r := b.do(up()); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" {
				t.Errorf("in a pause: got %d from %s, want its wait", r.status, r.account())
			}
			b.throttle("tansy", 4*time.Minute)
			if r := b.served(up()); r.account() != "thistle" {
				t.Errorf("in a long pause: got %s, want thistle", r.account())
			}
			b.clock.advance(5 * time.Minute)
			b.prefer("tansy", "thistle")
			if r := b.served(up()); r.account() != "thistle" {
				t.Errorf("afterwards: got %s, want thistle, where the last ones went", r.account())
			}
		})
	}
}

// A pause of moments that an upload meets is its client's to wait for: to hop would leave the
// files on two accounts.
func TestUploadsDoNotHop(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.prefer("tansy", "thistle")
	b.uploads("tansy", "thistle")
	b.served(upload("x"))
	b.account("tansy").OnPath("/v1/files", jsonAnswer(http.StatusTooManyRequests, http.Header{"Retry-After": {"3"}}, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`))
	if r := b.do(upload("x")); r.status != http.StatusTooManyRequests || r.account() != "tansy" {
		t.Errorf("got %d from %s, want tansy's own", r.status, r.account())
	}
}

// firstOwner is a store in which the first write of an owner waits to be let go.
type firstOwner struct {
	store.Backend
	once            sync.Once
	arrived, goesOn chan struct{}
}

func (f *firstOwner) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	if r.Kind == store.KindOwner {
		first := false
		f.once.Do(func() { first = true })
		if first {
			close(f.arrived)
			<-f.goesOn
		}
	}
	return f.Backend.Put(ctx, r, cond)
}

// Two uploads begin at once and would go to two accounts: the one whose word is written second
// follows the first.
func TestUploadsAtOnce(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.prefer("tansy", "thistle")
	b.uploads("tansy", "thistle")
	slow := &firstOwner{Backend: b.backend(), arrived: make(chan struct{}), goesOn: make(chan struct{})}
	_, other := b.process(store.New(slow), nil)
	late := make(chan reply)
	go func() {
		up := upload("x")
		up.url = other
		late <- b.do(up)
	}()
	<-slow.arrived // it has chosen tansy
	b.prefer("thistle", "tansy")
	first := b.do(upload("x"))
	close(slow.goesOn)
	if second := <-late; first.account() != "thistle" || second.status != http.StatusOK || second.account() != "thistle" {
		t.Errorf("got %s and %d from %s, want thistle's twice", first.account(), second.status, second.account())
	}
}

// The next upload follows one that has no answer yet.
func TestUploadBesideAnother(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.prefer("tansy", "thistle")
	b.uploads("tansy", "thistle")
	arrived, goesOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.account("tansy").OnPath("/v1/files", func(r *upstreamtest.Request) upstreamtest.Answer {
		once.Do(func() {
			close(arrived)
			<-goesOn
		})
		return jsonAnswer(http.StatusOK, nil, `{"id":"file-1","object":"file"}`)(r)
	})
	first := make(chan reply)
	go func() { first <- b.do(upload("x")) }()
	<-arrived
	b.prefer("thistle", "tansy")
	b.account("tansy").OnPath("/v1/files", jsonAnswer(http.StatusOK, nil, `{"id":"file-2","object":"file"}`))
	second := b.do(upload("x"))
	close(goesOn)
	if r := <-first; r.account() != "tansy" || second.status != http.StatusOK || second.account() != "tansy" {
		t.Errorf("got %s and %d from %s, want tansy's twice", r.account(), second.status, second.account())
	}
}

// What trains a model is on the account of its files, and a tuned model on the one that made
// it, told by its job or by the first good answer.
func TestTunedModels(t *testing.T) {
	const model = "ft:gpt-4o-mini-2024-07-18:owner::abc1"
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.prefer("tansy", "thistle")
	b.uploads("tansy", "thistle")
	b.served(upload("x"))
	b.served(upload("x"))
	b.prefer("thistle", "tansy")
	if r := b.served(plainAsk("POST", "/openai/v1/fine_tuning/jobs", `{"model":"gpt-4o-mini-2024-07-18","training_file":"file-tansy1","validation_file":"file-tansy2"}`)); r.account() != "tansy" {
		t.Errorf("tuning: got %s, want tansy", r.account())
	}
	missing := jsonAnswer(http.StatusNotFound, nil, `{"error":{"message":"The model does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`)
	chat := `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}`
	for path, good := range map[string]string{
		"/v1/responses":        `{"id":"resp_1","object":"response","status":"completed","output":[]}`,
		"/v1/chat/completions": chat,
	} {
		t.Run(path, func(t *testing.T) {
			b := keyBench(t, account.OpenAI, "tansy", "thistle")
			b.prefer("thistle", "tansy")
			b.account("thistle").Always(missing)
			b.account("tansy").Always(jsonAnswer(http.StatusOK, nil, good))
			body := `{"model":"` + model + `","input":"hello %d","messages":[{"role":"user","content":"hello %d"}]}`
			for i := range 2 {
				if r := b.served(plainAsk("POST", path, strings.ReplaceAll(body, "%d", fmt.Sprint(i)))); r.account() != "tansy" {
					t.Fatalf("got %s, want the account that has it", r.account())
				}
			}
			if got := b.recordedAs(account.OpenAI, model).Account; got != "acc-tansy" {
				t.Errorf("got %q, want tansy's", got)
			}
			sent := b.sent()
			b.throttle("tansy", 4*time.Minute)
			if r := b.do(plainAsk("POST", path, body)); r.status != http.StatusTooManyRequests || b.sent() != sent {
				t.Errorf("got %d after %d sends, want the wait of the account that has it", r.status, b.sent()-sent)
			}
		})
	}
}

// What a session, a run or a search is made of decides where it goes, and two owners are told.
func TestPartsOfOneRequest(t *testing.T) {
	for name, c := range map[string]struct {
		provider   account.Provider
		path, body string
		owned      string // on thistle, which is not the most attractive account
	}{
		"a session's agent":       {account.Anthropic, "/v1/sessions", `{"agent":"agent_1","environment_id":"env_2"}`, "agent_1"},
		"a session's environment": {account.Anthropic, "/v1/sessions", `{"agent":{"type":"agent","id":"agent_2"},"environment_id":"env_1"}`, "env_1"},
		"a session's vault":       {account.Anthropic, "/v1/sessions", `{"vault_ids":["vlt_1"]}`, "vlt_1"},
		"a session's memory":      {account.Anthropic, "/v1/sessions", `{"resources":[{"type":"memory_store","memory_store_id":"memstore_1"}]}`, "memstore_1"},
		"a run's assistant":       {account.OpenAI, "/v1/threads/runs", `{"assistant_id":"asst_1"}`, "asst_1"},
		"a search's collection":   {account.XAI, "/v1/documents/search", `{"query":"x","source":{"collection_ids":["collection_1"]}}`, "collection_1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := keyBench(t, c.provider, "tansy", "thistle")
			b.prefer("tansy", "thistle")
			now := b.clock.now()
			r := object.New(account.Account{ID: "acc-thistle", Provider: c.provider}, time.Hour, now)
			if _, _, err := b.store.ClaimOwner(t.Context(), object.Key(c.provider, c.owned), r, now); err != nil {
				t.Fatal(err)
			}
			b.account("thistle").OnPath(c.path, jsonAnswer(http.StatusOK, nil, `{"id":"made_1"}`))
			if r := b.served(plainAsk("POST", "/"+string(c.provider)+c.path, c.body)); r.account() != "thistle" {
				t.Errorf("got %s, want thistle", r.account())
			}
		})
	}
}
