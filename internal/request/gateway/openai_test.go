package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/test/upstreamtest"
)

// codexBench is a bench of ChatGPT logins, the first of them the most attractive.
func codexBench(t *testing.T, names ...string) *bench {
	t.Helper()
	b := newBench(t)
	b.add(account.OpenAI, account.Subscription, names...)
	return b
}

// add adds accounts of a provider and makes the first the most attractive.
func (b *bench) add(p account.Provider, kind account.Kind, names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.addOf(p, name, kind).Always(answerTo)
	}
	_, err := b.store.ChangeCatalog(b.t.Context(), func(c catalog.Catalog) (catalog.Catalog, error) { return c.SetPolicy(p, catalog.Score, 0) })
	if err != nil {
		b.t.Fatal(err)
	}
	b.prefer(names[0], names[1:]...)
	b.clock.advance(2 * time.Second)
}

// codexAsk is a request as Codex makes it.
func codexAsk(n int, model string) ask {
	id := session(n)
	return ask{
		path: "/v1/responses", stream: true,
		header: http.Header{
			"Anthropic-Version": nil, "Accept": {"text/event-stream"}, "Session-Id": {id}, "Thread-Id": {id}, "X-Client-Request-Id": {id},
			"Originator": {"codex_cli_rs"}, "User-Agent": {"codex_cli_rs/0.160.0 (Linux; x86_64) xterm"},
		},
		body: fmt.Sprintf(`{"model":%q,"instructions":"help","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}],`+
			`"store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":%q}`, model, id),
	}
}

// chatAsk is a request of an ordinary client of Chat Completions.
func chatAsk(n int, model string) ask {
	return ask{
		path:   "/v1/chat/completions",
		header: http.Header{"Anthropic-Version": nil, "X-Session-Id": {session(n)}},
		body:   fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"hello"}]}`, model),
	}
}

var eventStream = http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}

// responsesStream are the events of a good answer of Responses; content begins with the
// third.
var responsesStream = []string{
	`{"type":"response.created","response":{"id":"resp_1","status":"in_progress"}}`,
	`{"type":"response.in_progress","response":{"id":"resp_1"}}`,
	`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}`,
	`{"type":"response.output_text.delta","item_id":"msg_1","delta":"Hello."}`,
	`{"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":1200,"input_tokens_details":{"cached_tokens":1024},"output_tokens":4,"total_tokens":1204}}}`,
}

// chatStream is the same in the dialect of Chat Completions.
var chatStream = []string{
	`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant"}}]}`,
	`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello."}}]}`,
	`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
	`[DONE]`,
}

// frame writes events as the provider does: those of Responses have names.
func frame(events ...string) []byte {
	var out bytes.Buffer
	for _, e := range events {
		var named struct {
			Type string `json:"type"`
		}
		if json.Unmarshal([]byte(e), &named) == nil && named.Type != "" {
			fmt.Fprintf(&out, "event: %s\n", named.Type)
		}
		fmt.Fprintf(&out, "data: %s\n\n", e)
	}
	return out.Bytes()
}

func streamed(events ...string) upstreamtest.Script {
	return upstreamtest.Raw(http.StatusOK, eventStream, frame(events...))
}

// answerTo is a good answer in the dialect of the path asked.
func answerTo(r *upstreamtest.Request) upstreamtest.Answer {
	if strings.HasSuffix(r.Path, "/chat/completions") {
		return streamed(chatStream...)(r)
	}
	return streamed(responsesStream...)(r)
}

func with(events []string, at int, event string) []string {
	return append(append(append([]string(nil), events[:at]...), event), events[at:]...)
}

func jsonAnswer(status int, h http.Header, body string) upstreamtest.Script {
	header := h.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	return upstreamtest.Raw(status, header, []byte(body))
}

// codexLimits are the headers of a plan; a window is a share in percent, its length in
// minutes, and its reset.
func codexLimits(primary float64, minutes int, reset time.Time, secondary float64, minutes2 int, reset2 time.Time) http.Header {
	h := http.Header{}
	set := func(slot string, used float64, minutes int, reset time.Time) {
		h.Set("X-Codex-"+slot+"-Used-Percent", strconv.FormatFloat(used, 'f', -1, 64))
		h.Set("X-Codex-"+slot+"-Window-Minutes", strconv.Itoa(minutes))
		h.Set("X-Codex-"+slot+"-Reset-At", strconv.FormatInt(reset.Unix(), 10))
	}
	set("Primary", primary, minutes, reset)
	set("Secondary", secondary, minutes2, reset2)
	return h
}

func usageLimit(reset time.Time) upstreamtest.Script {
	return jsonAnswer(http.StatusTooManyRequests, nil, fmt.Sprintf(
		`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"pro","resets_at":%d}}`, reset.Unix()))
}

// resetsAt is error.resets_at of a body.
func (r reply) resetsAt() int64 {
	var e struct {
		Error struct {
			ResetsAt int64 `json:"resets_at"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(r.body), &e)
	return e.Error.ResetsAt
}

func TestCodexGoesUpstreamAsItCame(t *testing.T) {
	b := codexBench(t, "tansy")
	a := codexAsk(1, "gpt-5.5")
	a.header["Chatgpt-Account-Id"] = []string{"the-clients-own"}
	a.header["X-Codex-Turn-State"] = []string{"opaque"}
	r := b.served(a)
	if r.account() != "tansy" || r.pin() != "new" || r.body != string(frame(responsesStream...)) {
		t.Errorf("got %s, pin %s, %q", r.account(), r.pin(), r.body)
	}
	sent := b.up.Requests()[0]
	if sent.Path != "/backend-api/codex/responses" || string(sent.Body) != a.body {
		t.Errorf("got %s %s", sent.Path, sent.Body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer " + secret("tansy"), "Chatgpt-Account-Id": "workspace-tansy", "X-Codex-Turn-State": "opaque",
		"Originator": "codex_cli_rs", "User-Agent": a.header.Get("User-Agent"), "Session-Id": session(1),
	} {
		if got := sent.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// account-owned-state-crosses-accounts: what Codex carries is encrypted for its account, so
// its conversations stay, and hear the account's own word or ours about it.
func TestCodexNeverMoves(t *testing.T) {
	b := codexBench(t, "tansy", "thistle")
	ask := codexAsk(1, "gpt-5.5")
	if r := b.served(ask); r.account() != "tansy" {
		t.Fatalf("got %s", r.account())
	}
	b.clock.advance(29 * 24 * time.Hour)
	b.prefer("thistle", "tansy")
	if r := b.served(ask); r.account() != "tansy" || r.pin() != "kept" {
		t.Errorf("after 29 days: got %s, pin %s, want tansy, kept", r.account(), r.pin())
	}
	reset := b.clock.now().Add(3 * time.Hour).Truncate(time.Second)
	b.account("tansy").Queue(usageLimit(reset))
	sent := b.sent()
	if r := b.do(ask); r.status != http.StatusTooManyRequests || r.account() != "tansy" || r.resetsAt() != reset.Unix() || r.errorKind() != "" || b.sent() != sent+1 {
		t.Errorf("got %d %s after %d sends, want the account's own 429", r.status, r.body, b.sent()-sent)
	}
	sent = b.sent()
	r := b.do(ask)
	if r.status != http.StatusTooManyRequests || r.errorKind() != "exhausted" || r.errorType() != "usage_limit_reached" || r.resetsAt() != reset.Unix() || b.sent() != sent {
		t.Errorf("got %d %s %s after %d sends, want usage_limit_reached until %d", r.status, r.errorKind(), r.body, b.sent()-sent, reset.Unix())
	}
	if r := b.served(codexAsk(2, "gpt-5.5")); r.account() != "thistle" {
		t.Errorf("a new conversation: got %s, want thistle", r.account())
	}
	b.clock.advance(3*time.Hour + time.Second)
	if r := b.served(ask); r.account() != "tansy" || r.pin() != "kept" {
		t.Errorf("after the reset: got %s, pin %s", r.account(), r.pin())
	}
	b.fold("tansy", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.BadCredential, At: b.clock.now(), Generation: 1, Rule: "login-ended"}, account.Rules{})
	})
	if r := b.do(ask); r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account" || !containsAny(r.body, "tansy (login-ended)") {
		t.Errorf("parked: got %d %s", r.status, r.body)
	}
}

// account-owned-state-crosses-accounts: a refusal of what another account encrypted is the
// client's to hear, and no account's fault.
func TestForeignEncryptedContentIsHandedBack(t *testing.T) {
	b := codexBench(t, "tansy", "thistle")
	b.account("tansy").Queue(jsonAnswer(http.StatusBadRequest, nil,
		`{"error":{"message":"The encrypted content gAAA could not be verified. Reason: Encrypted content organization_id did not match the target organization.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`))
	if r := b.do(codexAsk(1, "gpt-5.5")); r.status != http.StatusBadRequest || r.account() != "tansy" || b.sent() != 1 {
		t.Errorf("got %d from %s after %d sends", r.status, r.account(), b.sent())
	}
	if st := b.state("tansy"); st.Parked != nil || len(st.Blocks) > 0 {
		t.Errorf("got %+v", st.State)
	}
}

// burst-429-read-as-exhaustion, Codex's: windows at 22 and 31 % are no spent allowance.
func TestCodexBurstIsNoExhaustion(t *testing.T) {
	b := codexBench(t, "tansy", "thistle")
	b.served(codexAsk(1, "gpt-5.5"))
	now := b.clock.now()
	h := codexLimits(22, 300, now.Add(5*time.Hour), 31, 10080, now.Add(6*24*time.Hour))
	h.Set("Retry-After", "12")
	b.account("tansy").Queue(jsonAnswer(http.StatusTooManyRequests, h, `{"error":{"message":"Too many requests","type":"rate_limit_error","code":"rate_limit_exceeded"}}`))
	if r := b.do(codexAsk(1, "gpt-5.5")); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "12" || b.sent() != 2 {
		t.Errorf("got %d after %d sends", r.status, b.sent())
	}
	for name, blk := range b.state("tansy").Blocks {
		if !blk.Pause() || blk.Until.Sub(now) > 15*time.Second {
			t.Errorf("got block %s until %s", name, blk.Until)
		}
	}
	b.clock.advance(15 * time.Second)
	if r := b.served(codexAsk(1, "gpt-5.5")); r.account() != "tansy" {
		t.Errorf("got %s", r.account())
	}
}

// bare-429-amplified: Codex does not try a 429 again, so a new conversation is tried on one
// other account; the pause is the model's and five seconds long.
func TestCodexBareRefusalHopsOnce(t *testing.T) {
	b := codexBench(t, "tansy", "thistle")
	b.account("tansy").Queue(jsonAnswer(http.StatusTooManyRequests, nil, `{"error":{"message":"Error"}}`))
	if r := b.served(codexAsk(1, "gpt-5.5")); r.account() != "thistle" || b.sent() != 2 {
		t.Errorf("got %s after %d sends", r.account(), b.sent())
	}
	st := b.state("tansy")
	if blocks := pick.BlocksFor(b.clock.now(), pick.Request{Family: "gpt-5.4", Model: "gpt-5.4"}, pick.Of(account.Account{}, st.State)); len(blocks) != 0 {
		t.Errorf("another model is blocked: %v", blocks)
	}
	b.clock.advance(5 * time.Second)
	b.prefer("tansy", "thistle")
	if r := b.served(codexAsk(2, "gpt-5.5")); r.account() != "tansy" {
		t.Errorf("after the pause: got %s", r.account())
	}
}

// window-identified-by-slot
func TestCodexWindowsAreNamedByLength(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	day := 24 * time.Hour
	for _, tt := range []struct {
		name   string
		header http.Header
		want   map[string]float64
	}{
		{"a week in the first slot", codexLimits(40, 10080, now.Add(3*day), 0, 0, time.Unix(0, 0)), map[string]float64{account.Weekly: 0.4}},
		{"swapped", codexLimits(12, 10080, now.Add(3*day), 3, 300, now.Add(time.Hour)), map[string]float64{account.Weekly: 0.12, account.FiveHour: 0.03}},
		{"a month", codexLimits(90, 43200, now.Add(20*day), 20, 10080, now.Add(3*day)), map[string]float64{"30d": 0.9, account.Weekly: 0.2}},
		{"a length never seen", codexLimits(7, 720, now.Add(time.Hour), 0, 0, time.Unix(0, 0)), map[string]float64{"12h": 0.07}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.add(account.OpenAI, account.Subscription, "tansy")
			b.fold("tansy", func(account.State) account.State { return account.State{} })
			if tt.header.Get("X-Codex-Secondary-Window-Minutes") == "0" {
				tt.header.Set("X-Codex-Secondary-Reset-At", "")
			}
			for k, v := range eventStream {
				tt.header[k] = v
			}
			b.account("tansy").Queue(upstreamtest.Raw(http.StatusOK, tt.header, frame(responsesStream...)))
			b.served(codexAsk(1, "gpt-5.5"))
			got := b.state("tansy").Windows
			if len(got) != len(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			for name, u := range tt.want {
				if got[name].Utilization != u {
					t.Errorf("%s: got %v, want %v", name, got[name].Utilization, u)
				}
			}
		})
	}
	t.Run("a month at its cap blocks whatever its name", func(t *testing.T) {
		b := codexBench(t, "tansy", "thistle")
		h := codexLimits(100, 43200, b.clock.now().Add(20*day), 20, 10080, b.clock.now().Add(3*day))
		b.account("tansy").Queue(jsonAnswer(http.StatusTooManyRequests, h, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached"}}`))
		if r := b.served(codexAsk(1, "gpt-5.5")); r.account() != "thistle" {
			t.Errorf("got %s", r.account())
		}
		blk, ok := pick.Blocked(b.clock.now(), pick.Request{Family: "gpt-5.4", Model: "gpt-5.4"}, pick.Of(account.Account{}, b.state("tansy").State))
		if !ok || blk.Window != "30d" {
			t.Errorf("got %+v, want the month's block of every model", blk)
		}
	})
}

// model-cap-scope: a spent plan is spent for every model, at no further request.
func TestCodexLimitBlocksEveryModel(t *testing.T) {
	b := codexBench(t, "tansy", "thistle")
	b.account("tansy").Queue(usageLimit(b.clock.now().Add(2 * time.Hour)))
	b.served(codexAsk(1, "gpt-5.5"))
	sent := b.sent()
	if r := b.served(codexAsk(2, "gpt-5.4-mini")); r.account() != "thistle" || b.sent() != sent+1 {
		t.Errorf("got %s after %d sends", r.account(), b.sent()-sent)
	}
}

// what-the-client-is-told-when-all-is-spent: Codex knows one way to be told.
func TestAllCodexSpent(t *testing.T) {
	b := codexBench(t, "tansy", "thistle")
	soon, late := b.clock.now().Add(72*time.Minute).Truncate(time.Second), b.clock.now().Add(4*time.Hour).Truncate(time.Second)
	b.account("tansy").Queue(usageLimit(late))
	b.account("thistle").Queue(usageLimit(soon))
	for i := range 2 {
		r := b.do(codexAsk(1, "gpt-5.5"))
		if r.status != http.StatusTooManyRequests || r.errorType() != "usage_limit_reached" || r.resetsAt() != soon.Unix() || b.sent() != 2 {
			t.Errorf("request %d: got %d %s after %d sends, want usage_limit_reached until %d after 2", i, r.status, r.body, b.sent(), soon.Unix())
		}
	}
	t.Run("without a told reset none is invented", func(t *testing.T) {
		b := codexBench(t, "tansy", "thistle")
		b.fold("tansy", func(account.State) account.State { return account.State{} })
		b.fold("thistle", func(account.State) account.State { return account.State{} })
		for _, name := range []string{"tansy", "thistle"} {
			b.account(name).Queue(jsonAnswer(http.StatusTooManyRequests, nil, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached"}}`))
		}
		r := b.do(codexAsk(1, "gpt-5.5"))
		if r.status != http.StatusTooManyRequests || r.errorType() != "usage_limit_reached" || r.resetsAt() != 0 {
			t.Errorf("got %d %s", r.status, r.body)
		}
	})
}

// informational-event-read-as-terminal
func TestLimitsEventInforms(t *testing.T) {
	b := codexBench(t, "tansy", "thistle")
	reset := b.clock.now().Add(3 * time.Hour).Truncate(time.Second)
	week := reset.Add(4 * 24 * time.Hour)
	event := fmt.Sprintf(`{"type":"codex.rate_limits","plan_type":"pro","rate_limits":{"allowed":false,"limit_reached":true,`+
		`"primary":{"used_percent":100,"window_minutes":300,"reset_at":%d},"secondary":{"used_percent":64,"window_minutes":10080,"reset_at":%d}}}`, reset.Unix(), week.Unix())
	events := with(responsesStream, 0, event)
	b.account("tansy").Queue(streamed(events...))
	r := b.served(codexAsk(1, "gpt-5.5"))
	if r.account() != "tansy" || r.body != string(frame(events...)) || b.sent() != 1 {
		t.Errorf("got %s after %d sends:\n%s", r.account(), b.sent(), r.body)
	}
	st := b.state("tansy")
	if five, w := st.Windows[account.FiveHour], st.Windows[account.Weekly]; five.Utilization != 1 || !five.ResetAt.Equal(reset) || w.Utilization != 0.64 || !w.ResetAt.Equal(week) {
		t.Errorf("got %+v and %+v", five, w)
	}
	if len(st.Blocks) > 0 || st.Parked != nil {
		t.Errorf("an event that informs blocked: %v", st.Blocks)
	}
	if r := b.served(codexAsk(2, "gpt-5.5")); r.account() != "thistle" {
		t.Errorf("a new conversation: got %s, want thistle, which has room", r.account())
	}
	t.Run("the last of several counts", func(t *testing.T) {
		b := codexBench(t, "tansy")
		at := func(used int) string {
			return fmt.Sprintf(`{"type":"codex.rate_limits","rate_limits":{"primary":{"used_percent":%d,"window_minutes":300,"reset_at":%d}}}`, used, reset.Unix())
		}
		events := responsesStream
		for used := 30; used < 60; used++ {
			events = with(events, 2, at(89-used)) // each before the last, so that they rise
		}
		b.account("tansy").Queue(streamed(events...))
		before := b.state("tansy").Revision
		b.served(codexAsk(1, "gpt-5.5"))
		st := b.state("tansy")
		if got := st.Windows[account.FiveHour].Utilization; got != 0.59 {
			t.Errorf("got %v, want the last, 0.59", got)
		}
		if n := st.Revision - before; n > 3 {
			t.Errorf("got %d writes for one stream, want few", n)
		}
	})
}

// The same refusals come late, in three dialects, before any content and after it.
func TestLateFailures(t *testing.T) {
	reset := time.Now().Add(3 * time.Hour).Truncate(time.Second)
	spent := fmt.Sprintf(`{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":%d}`, reset.Unix())
	limited := `{"code":"rate_limit_exceeded","message":"Rate limit reached for gpt-5.5 in organization org-EXAMPLE on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528. Please try again in 11.054s."}`
	failed := func(e string) string {
		return `{"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","status":"failed","error":` + e + `}}`
	}
	for _, tt := range []struct {
		name    string
		event   string
		stream  []string
		content int // index of the first event of content
		ask     func(int, string) ask
		pause   bool
	}{
		{"spent, response.failed", failed(spent), responsesStream, 2, codexAsk, false},
		{"throttled, response.failed", failed(limited), responsesStream, 2, codexAsk, true},
		{"spent, a bare error", `{"type":"error","error":` + spent + `,"status_code":429}`, responsesStream, 2, codexAsk, false},
		{"throttled, a chunk", `{"error":` + limited + `}`, chatStream, 1, chatAsk, true},
	} {
		kind := account.Subscription
		if strings.HasPrefix(tt.ask(1, "m").path, "/v1/chat") {
			kind = account.Key
		}
		t.Run(tt.name+" before content", func(t *testing.T) {
			b := newBench(t)
			b.add(account.OpenAI, kind, "tansy", "thistle")
			b.account("tansy").Queue(streamed(append(append([]string(nil), tt.stream[:tt.content]...), tt.event)...))
			r := b.served(tt.ask(1, "gpt-5.5"))
			if r.account() != "thistle" || r.body != string(frame(tt.stream...)) || b.sent() != 2 {
				t.Errorf("got %s after %d sends:\n%s", r.account(), b.sent(), r.body)
			}
			b.blocked("tansy", tt.pause)
		})
		t.Run(tt.name+" after content", func(t *testing.T) {
			b := newBench(t)
			b.add(account.OpenAI, kind, "tansy", "thistle")
			events := append(append([]string(nil), tt.stream[:tt.content+1]...), tt.event)
			b.account("tansy").Queue(streamed(events...))
			r := b.do(tt.ask(1, "gpt-5.5"))
			if r.status != http.StatusOK || r.account() != "tansy" || r.body != string(frame(events...)) || b.sent() != 1 {
				t.Errorf("got %d from %s after %d sends:\n%s", r.status, r.account(), b.sent(), r.body)
			}
			b.blocked("tansy", tt.pause)
		})
	}
}

// blocked requires an account to be blocked, by a pause or by a spent window.
func (b *bench) blocked(name string, pause bool) {
	b.t.Helper()
	blk, ok := pick.Blocked(b.clock.now(), pick.Request{Family: "gpt-5.5", Model: "gpt-5.5"}, pick.Of(account.Account{}, b.state(name).State))
	if !ok || blk.Pause() != pause {
		b.t.Errorf("got block %+v, want one that is a pause: %v", blk, pause)
	}
}

// compressed-request-bodies: Codex may send zstd, which its backend takes.
func TestCodexCompressedBody(t *testing.T) {
	b := codexBench(t, "tansy", "thistle")
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := codexAsk(1, "gpt-5.5")
	b.served(a)
	b.prefer("thistle", "tansy")
	a.body = string(enc.EncodeAll([]byte(a.body), nil))
	a.header.Del("Session-Id") // found within, as the prompt_cache_key
	a.header["Content-Encoding"] = []string{"zstd"}
	r := b.served(a)
	sent := b.up.Requests()[1]
	if r.account() != "tansy" || r.pin() != "kept" || string(sent.Body) != a.body || sent.Header.Get("Content-Encoding") != "zstd" {
		t.Errorf("got %s, pin %s, Content-Encoding %q, %d bytes of %d", r.account(), r.pin(), sent.Header.Get("Content-Encoding"), len(sent.Body), len(a.body))
	}
}

// side-routes-and-probes: Codex asks for models in a shape of its own, from the backend.
func TestCodexSideRoutes(t *testing.T) {
	b := codexBench(t, "tansy")
	b.up.OnPath("/backend-api/codex/models", jsonAnswer(http.StatusOK, http.Header{"Etag": {`W/"1"`}}, `{"models":[{"slug":"gpt-5.5"}]}`))
	models := codexAsk(1, "")
	models.method, models.path, models.body = http.MethodGet, "/v1/models?client_version=0.160.0", ""
	r := b.served(models)
	if r.body != `{"models":[{"slug":"gpt-5.5"}]}` || r.header.Get("Etag") == "" || r.pin() != "none" {
		t.Errorf("got %s, pin %s", r.body, r.pin())
	}
	if got := b.up.Requests()[0].Query; got != "client_version=0.160.0" {
		t.Errorf("got query %q", got)
	}
	upgrade := codexAsk(1, "")
	upgrade.method, upgrade.body = http.MethodGet, ""
	upgrade.header["Upgrade"], upgrade.header["Connection"] = []string{"websocket"}, []string{"Upgrade"}
	upgrade.header["Openai-Beta"] = []string{"responses_websockets=2026-02-06"}
	sent := b.sent()
	if r := b.do(upgrade); r.status != http.StatusUpgradeRequired || b.sent() != sent {
		t.Errorf("got %d", r.status)
	}
	// A list of models for any other client is a key's to give.
	models.header = http.Header{"Anthropic-Version": nil}
	models.path = "/v1/models"
	if r := b.do(models); r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account" || !containsAny(r.body, "API key") {
		t.Errorf("got %d %s", r.status, r.body)
	}
}

// A page of the edge is no word on the account.
func TestPagesOfTheEdge(t *testing.T) {
	for _, status := range []int{403, 503} {
		b := codexBench(t, "tansy", "thistle")
		b.account("tansy").Queue(upstreamtest.Raw(status, http.Header{"Content-Type": {"text/html; charset=UTF-8"}}, []byte("<!DOCTYPE html><title>Just a moment...</title>")))
		r := b.do(codexAsk(1, "gpt-5.5"))
		if r.status < 500 || b.sent() != 1 {
			t.Errorf("%d: got %d after %d sends", status, r.status, b.sent())
		}
		if st := b.state("tansy"); st.Parked != nil || len(st.Blocks) > 0 {
			t.Errorf("%d: got %+v %v", status, st.Parked, st.Blocks)
		}
	}
}

// money-or-access-lost-under-an-odd-status, by error.code; and a throttle under the same
// status, which costs nobody more than its pause.
func TestOpenAIMoney(t *testing.T) {
	for code, body := range map[string]string{
		"project_spend_limit_exceeded": `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"project_spend_limit_exceeded"}}`,
		"credit_balance_exhausted":     `{"error":{"message":"Your credit balance is exhausted.","type":"insufficient_quota","code":"credit_balance_exhausted"}}`,
		"insufficient_quota":           `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
	} {
		t.Run(code, func(t *testing.T) {
			b := newBench(t)
			b.add(account.OpenAI, account.Key, "hazel", "rowan")
			b.account("hazel").Always(jsonAnswer(http.StatusTooManyRequests, nil, body))
			for i := range 2 {
				if r := b.served(chatAsk(i, "gpt-5.5")); r.account() != "rowan" {
					t.Errorf("got %s", r.account())
				}
			}
			if n := len(b.account("hazel").Requests()); n != 1 {
				t.Errorf("got %d requests to the account without money, want 1", n)
			}
			if p := b.state("hazel").Parked; p == nil || p.Kind != account.Funds {
				t.Errorf("got parked %+v", p)
			}
		})
	}
	t.Run("rate_limit_exceeded", func(t *testing.T) {
		b := newBench(t)
		b.add(account.OpenAI, account.Key, "hazel", "rowan")
		h := http.Header{}
		h.Set("X-Ratelimit-Limit-Tokens", "30000")
		h.Set("X-Ratelimit-Remaining-Tokens", "0")
		h.Set("X-Ratelimit-Reset-Tokens", "20s")
		b.account("hazel").Queue(jsonAnswer(http.StatusTooManyRequests, h, `{"error":{"message":"Rate limit reached","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`))
		if r := b.served(chatAsk(1, "gpt-5.5")); r.account() != "rowan" {
			t.Errorf("got %s", r.account())
		}
		b.clock.advance(21 * time.Second)
		b.prefer("hazel", "rowan")
		if r := b.served(chatAsk(2, "gpt-5.5")); r.account() != "hazel" {
			t.Errorf("after its reset: got %s", r.account())
		}
	})
}
