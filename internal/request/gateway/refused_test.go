package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/status"
	"holdfast/internal/test/upstreamtest"
)

// openAIError answers as the OpenAI API refuses.
func openAIError(code int, kind, word, message string) upstreamtest.Script {
	return jsonAnswer(code, nil, fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, kind, word))
}

// refuses is what the status says that an account refuses.
func (b *bench) refuses(name string) []status.Refuses {
	b.t.Helper()
	snap, err := b.store.Snapshot(b.t.Context(), true)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range status.Of(status.Input{Now: b.clock.now(), Catalog: *snap.Catalog.Catalog, States: snap.States}).Accounts {
		if a.Name == name {
			return a.Refuses
		}
	}
	b.t.Fatalf("no account %s", name)
	return nil
}

// accessRefusals are refusals for what another account may well have.
var accessRefusals = []struct {
	name, why string
	script    upstreamtest.Script
}{
	{"the organization is not verified, by 404", "unverified", openAIError(404, "invalid_request_error", "model_not_found", "Your organization must be verified to use the model `gpt-5.5`. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.")},
	{"the organization is not verified, by 400", "unverified", openAIError(400, "invalid_request_error", "unsupported_value", "Your organization must be verified to stream this model.")},
	{"the organization is not verified, by 403", "unverified", openAIError(403, "invalid_request_error", "", "Your organization must be verified to use the model `gpt-5.5`.")},
	{"the project lacks the model", "model-access", openAIError(403, "invalid_request_error", "model_not_found", "Project `proj_example` does not have access to model `gpt-5.5`")},
	{"the model, by 404", "model-access", openAIError(404, "invalid_request_error", "model_not_found", "The model `gpt-5.5` does not exist or you do not have access to it.")},
	{"the tier", "tier", openAIError(400, "invalid_request_error", "", "Invalid service_tier argument: The requested service tier is not allowed for this project.")},
	{"the right", "scope", openAIError(401, "invalid_request_error", "", "You have insufficient permissions for this operation. Missing scopes: api.responses.write.")},
	{"the region", "region", openAIError(401, "invalid_request_error", "incorrect_hostname", "Attempted to access resource with incorrect regional hostname. Please make your request to us.api.openai.com")},
	{"the address", "address", openAIError(401, "invalid_request_error", "ip_not_authorized", "IP not authorized")},
	{"the organization that goes out", "organization", openAIError(401, "invalid_request_error", "mismatched_organization", "OpenAI-Organization header should match organization for API key")},
	{"forbidden without a known word", "forbidden", openAIError(403, "invalid_request_error", "news", "no")},
}

// TestRefusalsOfTheAccount is field case refusals-of-the-account-read-as-the-client's: the
// next account serves, new conversations pass the one over that refuses, and its owner is
// told.
func TestRefusalsOfTheAccount(t *testing.T) {
	for _, c := range accessRefusals {
		t.Run(c.name, func(t *testing.T) {
			b := keyBench(t, account.OpenAI, "tansy", "thistle")
			b.account("tansy").Always(c.script)
			b.account("thistle").Always(makes("resp_1"))
			for i := range 8 {
				if r := b.served(respond(fmt.Sprint("conversation ", i))); r.account() != "thistle" {
					t.Errorf("conversation %d: got %s", i, r.account())
				}
			}
			if n := len(b.account("tansy").Requests()); n != 1 {
				t.Errorf("got %d requests at the account that refuses, want 1", n)
			}
			if log := b.log.String(); !strings.Contains(log, `"kind":"access","rule":"`+c.why+`"`) || !strings.Contains(log, `"of":{`) {
				t.Errorf("the log does not report it: %s", log)
			}
			st := b.state("tansy")
			if len(st.Blocks) != 0 || st.Parked != nil {
				t.Errorf("got blocks %v, parked %v; want neither", st.Blocks, st.Parked)
			}
			if st.LoadSeen >= st.Placed {
				t.Errorf("got %d placed and %d of them seen: the refusal makes it attractive", st.Placed, st.LoadSeen)
			}
			got := b.refuses("tansy")
			if len(got) != 1 || got[0].Why != c.why || got[0].Cure == "" || got[0].Until.Sub(b.clock.now()) > time.Hour {
				t.Errorf("got told %+v, want one thing for %s", got, c.why)
			}
			if c.why == "region" && !strings.Contains(got[0].Cure, "account login tansy --base-url URL") {
				t.Errorf("got cure %q", got[0].Cure)
			}
			b.clock.advance(time.Hour)
			b.prefer("tansy", "thistle")
			b.account("tansy").Always(makes("resp_2"))
			if r := b.served(respond("an hour later")); r.account() != "tansy" {
				t.Errorf("an hour later: got %s, want tansy to be asked again", r.account())
			}
		})
	}
}

// TestRefusalOfAPinnedConversation is field case refusals-of-the-account-read-as-the-client's:
// a conversation whose account lost what it needs moves; a bound one is told in the provider's
// words, and not as its own login failing.
func TestRefusalOfAPinnedConversation(t *testing.T) {
	for _, c := range accessRefusals {
		t.Run(c.name, func(t *testing.T) {
			b := keyBench(t, account.OpenAI, "tansy", "thistle")
			chat := func() ask {
				a := plainAsk("POST", "/v1/chat/completions", `{"model":"gpt-5.5","messages":[{"role":"user","content":"hi"}]}`)
				a.header.Set("X-Holdfast-Conversation", "one")
				return a
			}
			bound := plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","store":false,"input":[{"type":"message","role":"user","content":"hi"},{"type":"reasoning","encrypted_content":"gAAAAB"}]}`)
			bound.header.Set("X-Holdfast-Conversation", "two")
			done := jsonAnswer(200, nil, `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"finish_reason":"stop"}]}`)
			b.account("tansy").Queue(done, makes("resp_1"))
			b.served(chat())
			b.served(bound)
			b.account("tansy").Always(c.script)
			b.account("thistle").Always(done)
			r := b.do(bound)
			if r.status == 401 || r.status == 403 || r.status < 400 || r.account() != "tansy" || r.header.Get("X-Should-Retry") == "true" || !strings.Contains(r.body, `"error"`) {
				t.Errorf("bound: got %d from %s: %s", r.status, r.account(), r.body)
			}
			if r.status == 503 && (r.errorKind() != "no_account" || r.header.Get("X-Should-Retry") != "false") {
				t.Errorf("bound: got %s, X-Should-Retry %q", r.errorKind(), r.header.Get("X-Should-Retry"))
			}
			if r := b.served(chat()); r.account() != "thistle" || r.pin() != "moved" {
				t.Errorf("got %s, pin %s, want thistle, moved", r.account(), r.pin())
			}
		})
	}
}

// TestRefusalsOfTheAccountInAStream is field case
// refusals-of-the-account-read-as-the-client's: before any content it is the same.
func TestRefusalsOfTheAccountInAStream(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.account("tansy").Always(streamed(
		`{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress"}}`,
		`{"type":"response.failed","response":{"id":"resp_1","object":"response","status":"failed","error":{"code":"model_not_found","message":"Your organization must be verified to use the model gpt-5.5."}}}`,
	))
	b.account("thistle").Always(makesStream("resp_2"))
	for i := range 4 {
		if r := b.served(respond(fmt.Sprint("conversation ", i))); r.account() != "thistle" || strings.Contains(r.body, "verified") {
			t.Errorf("conversation %d: got %s: %s", i, r.account(), r.body)
		}
	}
	if n := len(b.account("tansy").Requests()); n != 1 {
		t.Errorf("got %d requests at the account that refuses, want 1", n)
	}
}

// TestModelThatNobodyHas is field case refusals-of-the-account-read-as-the-client's: what every
// account refuses is the client's mistake, and is held against none.
func TestModelThatNobodyHas(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	for _, name := range []string{"tansy", "thistle"} {
		b.account(name).Always(openAIError(404, "invalid_request_error", "model_not_found", "The model `gpt-0` does not exist or you do not have access to it."))
	}
	for range 2 {
		sent := b.sent()
		r := b.do(plainAsk("POST", "/v1/responses", `{"model":"gpt-0","input":"hi"}`))
		if r.status != 404 || !strings.Contains(r.body, "does not exist") || r.errorKind() != "" || b.sent()-sent != 2 {
			t.Errorf("got %d %s after %d sends, want the provider's 404 after 2", r.status, r.body, b.sent()-sent)
		}
		for _, name := range []string{"tansy", "thistle"} {
			if got := b.refuses(name); len(got) != 0 {
				t.Errorf("%s: got %+v remembered, want nothing", name, got)
			}
		}
	}
}

// TestModelBeyondTheSends is part of field case one-hop-and-a-ready-account.
// With more accounts than sends, the fourth is asked by the next try; what it refuses too is
// then nobody's.
func TestModelBeyondTheSends(t *testing.T) {
	names := []string{"tansy", "thistle", "yarrow", "sorrel"}
	lacking := openAIError(404, "invalid_request_error", "model_not_found", "The model `gpt-5.5` does not exist or you do not have access to it.")
	b := keyBench(t, account.OpenAI, names...)
	for _, name := range names {
		b.account(name).Always(lacking)
	}
	if r := b.do(respond("one")); r.status != 503 || r.errorKind() != "busy" || b.sent() != 3 {
		t.Fatalf("got %d %s after %d sends, want busy after 3", r.status, r.errorKind(), b.sent())
	}
	if r := b.do(respond("one")); r.status != 404 || r.errorKind() != "" {
		t.Errorf("got %d %s, want the provider's 404", r.status, r.errorKind())
	}
	for _, name := range names {
		if got := b.refuses(name); len(got) != 0 {
			t.Errorf("%s: got %+v remembered, want nothing", name, got)
		}
	}
}

// TestGrownBeyondAKey is field case grown-beyond-a-key: a request larger than a limit moves at
// once, and larger ones are not sent there again; a small one is.
func TestGrownBeyondAKey(t *testing.T) {
	tooLarge := func(h http.Header) upstreamtest.Script {
		return jsonAnswer(429, h, `{"error":{"message":"Request too large for gpt-5.5 in organization org-example on tokens per min (TPM): Limit 30000, Requested 60000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`)
	}
	done := jsonAnswer(200, nil, `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"finish_reason":"stop"}]}`)
	chat := func(conversation string, size int) ask {
		a := plainAsk("POST", "/v1/chat/completions", `{"model":"gpt-5.5","messages":[{"role":"user","content":"`+strings.Repeat("word ", size/5)+`"}]}`)
		a.header.Set("X-Holdfast-Conversation", conversation)
		return a
	}
	t.Run("moves and is remembered", func(t *testing.T) {
		b := keyBench(t, account.OpenAI, "tansy", "thistle")
		b.account("tansy").Always(done)
		b.account("thistle").Always(done)
		b.served(chat("grows", 1000))
		b.account("tansy").Queue(tooLarge(http.Header{"X-Ratelimit-Limit-Tokens": {"30000"}}))
		if r := b.served(chat("grows", 240_000)); r.account() != "thistle" || r.pin() != "moved" {
			t.Fatalf("got %s, pin %s, want thistle, moved", r.account(), r.pin())
		}
		if st := b.state("tansy"); len(st.Blocks) != 0 {
			t.Errorf("got blocks %v, want none", st.Blocks)
		}
		if got := b.refuses("tansy"); len(got) != 1 || got[0].Limit != "tokens" || got[0].Model != "gpt-5.5" {
			t.Errorf("got told %+v", got)
		}
		asked := len(b.account("tansy").Requests())
		b.prefer("tansy", "thistle")
		if r := b.served(chat("as large", 240_000)); r.account() != "thistle" {
			t.Errorf("another as large: got %s", r.account())
		}
		if n := len(b.account("tansy").Requests()); n != asked {
			t.Error("it was sent to the key that it is too large for")
		}
		if r := b.served(chat("small", 1000)); r.account() != "tansy" {
			t.Errorf("a small one: got %s, want tansy", r.account())
		}
		if r := b.served(chat("small", 240_000)); r.account() != "thistle" || r.pin() != "moved" {
			t.Errorf("the small one grown: got %s, pin %s, want thistle, moved", r.account(), r.pin())
		}
		if n := len(b.account("tansy").Requests()); n != asked+1 {
			t.Error("it was sent to the key that it is too large for")
		}
	})
	t.Run("nowhere to go", func(t *testing.T) {
		b := keyBench(t, account.OpenAI, "tansy")
		b.account("tansy").Always(tooLarge(nil))
		for range 2 {
			if r := b.do(chat("grows", 240_000)); r.status != 429 || !strings.Contains(r.body, "must be reduced") || r.errorKind() != "" {
				t.Errorf("got %d %s %s, want the provider's own text", r.status, r.errorKind(), r.body)
			}
		}
		b.account("tansy").Always(done)
		b.served(chat("small", 1000))
	})
	t.Run("bound", func(t *testing.T) {
		b := keyBench(t, account.OpenAI, "tansy", "thistle")
		b.account("tansy").Queue(makes("resp_1"))
		b.served(respond("hello"))
		b.account("tansy").Queue(tooLarge(nil))
		if r := b.do(continuing("resp_1")); r.status != 429 || r.account() != "tansy" || !strings.Contains(r.body, "must be reduced") {
			t.Errorf("got %d from %s: %s", r.status, r.account(), r.body)
		}
	})
}

// TestBulkRefusals is field case bulk-refusals-stop-interactive-work: a tier that has no room
// stops nothing beside it.
func TestBulkRefusals(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy")
	b.account("tansy").Always(func(r *upstreamtest.Request) upstreamtest.Answer {
		if strings.Contains(string(r.Body), `"flex"`) {
			return openAIError(429, "rate_limit_error", "resource_unavailable", "Resource unavailable. Try again later.")(r)
		}
		return makes("resp_1")(r)
	})
	flex := plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","service_tier":"flex","input":"bulk"}`)
	if r := b.do(flex); r.status != 429 || r.errorKind() != "" {
		t.Fatalf("flex: got %d %s, want the provider's 429", r.status, r.errorKind())
	}
	for i := range 20 {
		sent := b.sent()
		if r := b.do(flex); r.status != 429 || r.errorKind() != "paused" || b.sent() != sent {
			t.Errorf("flex %d: got %d %s after %d sends, want paused", i, r.status, r.errorKind(), b.sent()-sent)
		}
		b.served(respond("interactive"))
	}
	if got := b.refuses("tansy"); len(got) != 1 || got[0].Tier != "flex" || got[0].Model != "gpt-5.5" {
		t.Errorf("got told %+v, want the tier", got)
	}
	if st := b.state("tansy"); len(pick.BlocksFor(b.clock.now(), pick.Request{Family: "gpt-5.5", Model: "gpt-5.5"}, pick.Of(account.Account{}, st.State))) != 0 {
		t.Errorf("got blocks %v", st.Blocks)
	}
	b.clock.advance(5 * time.Second)
	if r := b.do(flex); r.errorKind() != "" {
		t.Errorf("after the pause: got %s, want the provider asked", r.errorKind())
	}
}

// TestWhatBackgroundHears is field case bulk-refusals-stop-interactive-work: a pause that a
// background request hears is one of background requests, at every provider; a spent window
// is a spent window.
func TestWhatBackgroundHears(t *testing.T) {
	background := func(a ask) ask {
		a.header = a.header.Clone()
		if a.header == nil {
			a.header = http.Header{}
		}
		a.header.Set("X-Holdfast-Priority", "background")
		return a
	}
	grok := plainAsk("POST", "/xai/v1/chat/completions", `{"model":"grok-4.6","messages":[{"role":"user","content":"hi"}]}`)
	bare := jsonAnswer(429, nil, `{"error":{"message":"no"}}`)
	throttled := jsonAnswer(429, http.Header{"Retry-After": {"12"}}, `{"error":{"message":"no","code":"rate_limit_exceeded"}}`)
	for _, c := range []struct {
		p    account.Provider
		ask  ask
		good upstreamtest.Script
	}{
		{account.Anthropic, ask{}, upstreamtest.Good(nil)},
		{account.OpenAI, respond("hello"), makes("resp_1")},
		{account.XAI, grok, jsonAnswer(200, nil, `{"id":"c","object":"chat.completion","choices":[{"finish_reason":"stop"}]}`)},
	} {
		for name, refusal := range map[string]upstreamtest.Script{"bare": bare, "throttle": throttled} {
			t.Run(string(c.p)+" "+name, func(t *testing.T) {
				b := newBench(t)
				b.add(c.p, account.Key, "only")
				b.account("only").Always(c.good)
				b.account("only").Queue(refusal)
				if r := b.do(background(c.ask)); r.status != 429 {
					t.Fatalf("got %d", r.status)
				}
				b.served(c.ask)
				if r := b.do(background(c.ask)); r.status != 429 || r.errorKind() != "paused" {
					t.Errorf("another background request: got %d %s, want paused", r.status, r.errorKind())
				}
				b.account("only").Queue(refusal)
				if r := b.do(c.ask); r.status != 429 {
					t.Fatalf("interactive: got %d", r.status)
				}
				if r := b.do(c.ask); r.errorKind() != "paused" {
					t.Errorf("what an interactive request hears holds for all: got %q, want paused", r.errorKind())
				}
			})
		}
	}
	b := newBench(t, "marlow")
	marked := ask{key: b.newKey(catalog.ClientKey{Name: "jobs", Background: true})}
	b.account("marlow").Queue(upstreamtest.Bare())
	b.do(marked)
	if r := b.do(marked); r.errorKind() != "paused" {
		t.Errorf("a background key: got %q, want paused", r.errorKind())
	}
	b.served(ask{})
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(time.Hour)))
	b.clock.advance(5 * time.Second)
	b.do(background(ask{}))
	if r := b.do(ask{}); r.errorKind() != "exhausted" {
		t.Errorf("a spent window: got %q, want exhausted", r.errorKind())
	}
}

// TestRefusalsAtOtherProviders is field case refusals-of-the-account-read-as-the-client's, at
// Anthropic and xAI.
func TestRefusalsAtOtherProviders(t *testing.T) {
	said := func(code int, kind, message string) upstreamtest.Script {
		return jsonAnswer(code, nil, fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message))
	}
	grok := plainAsk("POST", "/xai/v1/chat/completions", `{"model":"grok-4.6","messages":[{"role":"user","content":"hi"}]}`)
	for _, c := range []struct {
		name   string
		p      account.Provider
		ask    ask
		script upstreamtest.Script
		good   upstreamtest.Script
	}{
		{"a model by 404", account.Anthropic, ask{}, said(404, "not_found_error", "model: claude-opus-5"), upstreamtest.Good(nil)},
		{"a permission", account.Anthropic, ask{}, said(403, "permission_error", "Your API key does not have permission to use the specified resource."), upstreamtest.Good(nil)},
		{"a workspace", account.Anthropic, ask{}, said(400, "invalid_request_error", "The anthropic-workspace-id header is required for this credential."), upstreamtest.Good(nil)},
		{"a login's scope", account.Anthropic, ask{}, said(403, "permission_error", "OAuth token does not meet scope requirement any_of(user:inference)"), upstreamtest.Good(nil)},
		{"a model by 404", account.XAI, grok, jsonAnswer(404, nil, `{"code":"Some requested entity was not found","error":"The model grok-4.6 does not exist or your team 00000000-0000-4000-8000-000000000002 does not have access to it."}`),
			jsonAnswer(200, nil, `{"id":"c","object":"chat.completion","choices":[{"finish_reason":"stop"}]}`)},
	} {
		t.Run(string(c.p)+" "+c.name, func(t *testing.T) {
			b := newBench(t)
			b.add(c.p, account.Key, "first", "second")
			b.prefer("first", "second")
			b.account("first").Always(c.script)
			b.account("second").Always(c.good)
			for i := range 8 {
				a := c.ask
				a.header = a.header.Clone()
				if a.header == nil {
					a.header = http.Header{}
				}
				a.header.Set("X-Holdfast-Conversation", fmt.Sprint(i))
				if r := b.served(a); r.account() != "second" {
					t.Errorf("conversation %d: got %s", i, r.account())
				}
			}
			if n := len(b.account("first").Requests()); n != 1 {
				t.Errorf("got %d requests at the account that refuses, want 1", n)
			}
			if got := b.refuses("first"); len(got) != 1 || got[0].Cure == "" {
				t.Errorf("got told %+v, want one thing", got)
			}
		})
	}
	t.Run("xai content is the client's", func(t *testing.T) {
		b := newBench(t)
		b.add(account.XAI, account.Key, "first", "second")
		b.account("first").Always(jsonAnswer(403, nil, `{"code":"permission-denied","error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}`))
		b.account("second").Always(jsonAnswer(403, nil, `{"code":"permission-denied","error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}`))
		if r := b.do(grok); r.status != 403 || b.sent() != 1 {
			t.Errorf("got %d after %d sends, want the provider's 403 after one", r.status, b.sent())
		}
	})
}
