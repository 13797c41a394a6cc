package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"holdfast/internal/core/account"
)

// itemsStream is a stored response of a stream that has a reasoning item and a message.
func itemsStream(id string) []string {
	return []string{
		`{"type":"response.created","response":{"id":"` + id + `","object":"response","status":"in_progress","store":true}}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_` + id + `","summary":[]}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_` + id + `","summary":[]}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_` + id + `","content":[]}}`,
		`{"type":"response.output_text.delta","delta":"Hello."}`,
		`{"type":"response.completed","response":{"id":"` + id + `","object":"response","status":"completed"}}`,
	}
}

// itemsAnswer is the same as a whole.
func itemsAnswer(id string) string {
	return `{"id":"` + id + `","object":"response","status":"completed","output":[{"type":"reasoning","id":"rs_` + id + `","summary":[]},{"type":"message","id":"msg_` + id + `","content":[]}]}`
}

// throttle makes an account pause for a while.
func (b *bench) throttle(name string, d time.Duration) {
	b.t.Helper()
	now := b.clock.now()
	b.fold(name, func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.Throttle, At: now, Until: now.Add(d)}, account.Rules{})
	})
}

// TestStoredItemsByID is field case stored-items-by-id: an input names items of an earlier
// answer without their content. Only the account that stored them can read them, so its pause
// is waited for, with a session and without one.
func TestStoredItemsByID(t *testing.T) {
	wire := map[account.Provider]struct{ path, model string }{
		account.OpenAI: {"/v1/responses", "gpt-5.5"}, account.XAI: {"/v1/responses", "grok-4.6"},
	}
	items := map[string]string{
		"a reference":                `{"type":"item_reference","id":"rs_r1"}`,
		"a reference without a type": `{"id":"msg_r1"}`,
		"reasoning":                  `{"type":"reasoning","id":"rs_r1","summary":[]}`,
		"a message":                  `{"type":"message","role":"assistant","id":"msg_r1"}`,
	}
	for p, w := range wire {
		for _, streaming := range []bool{true, false} {
			for _, session := range []bool{true, false} {
				for name, item := range items {
					t.Run(string(p)+name, func(t *testing.T) {
						b := keyBench(t, p, "tansy", "thistle")
						b.prefer("tansy", "thistle")
						turn := func(input string) ask {
							a := plainAsk("POST", w.path, `{"model":"`+w.model+`","input":`+input+`}`)
							if session {
								a.header.Set("X-Holdfast-Conversation", "c1")
							}
							return a
						}
						script := jsonAnswer(http.StatusOK, nil, itemsAnswer("r1"))
						if streaming {
							script = streamed(itemsStream("r1")...)
						}
						b.account("tansy").Queue(script)
						if r := b.served(turn(`"hello"`)); r.account() != "tansy" {
							t.Fatalf("got %s", r.account())
						}
						b.throttle("tansy", 4*time.Minute)
						sent := b.sent()
						second := turn(`[{"role":"user","content":"and"},` + item + `,{"role":"user","content":"more"}]`)
						if r := b.do(second); r.status != http.StatusTooManyRequests || b.sent() != sent || r.header.Get("Retry-After") == "" {
							t.Fatalf("got %d %s from %s after %d sends, want the wait of the account that has them", r.status, r.body, r.account(), b.sent()-sent)
						}
						b.clock.advance(4*time.Minute + time.Second)
						b.prefer("thistle", "tansy")
						b.account("tansy").Queue(jsonAnswer(http.StatusOK, nil, itemsAnswer("r2")))
						if r := b.served(second); r.account() != "tansy" {
							t.Errorf("afterwards: got %s, want tansy", r.account())
						}
					})
				}
			}
		}
	}
}

// An item that carries its whole content lives nowhere, and its conversation moves.
func TestWholeItemsMove(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.prefer("tansy", "thistle")
	turn := func(input string) ask {
		a := plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","input":`+input+`}`)
		a.header.Set("X-Holdfast-Conversation", "c1")
		return a
	}
	b.account("tansy").Queue(jsonAnswer(http.StatusOK, nil, itemsAnswer("r1")))
	b.served(turn(`"hello"`))
	b.throttle("tansy", 4*time.Minute)
	b.account("thistle").Queue(jsonAnswer(http.StatusOK, nil, itemsAnswer("r2")))
	r := b.served(turn(`[{"role":"user","content":"hello"},{"type":"message","role":"assistant","id":"msg_r1","content":[{"type":"output_text","text":"Hello."}]},{"role":"user","content":"more"}]`))
	if r.account() != "thistle" || r.pin() != "moved" {
		t.Errorf("got %s, pin %s, want it moved to thistle", r.account(), r.pin())
	}
}

// Nobody knows whose an item is: it is served by no account that happens to be picked, unless
// the client says that it lets nothing be stored; then the provider says what it makes of it.
func TestItemsThatNobodyKnows(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	input := `"input":[{"role":"user","content":"hello"},{"type":"item_reference","id":"rs_unknown"}]}`
	if r := b.do(plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5",`+input)); r.status != http.StatusBadRequest && r.status != http.StatusNotFound || b.sent() != 0 {
		t.Errorf("got %d %s after %d sends, want it refused here", r.status, r.body, b.sent())
	}
	b.account("tansy").Queue(jsonAnswer(http.StatusOK, nil, itemsAnswer("r1")))
	b.account("thistle").Queue(jsonAnswer(http.StatusOK, nil, itemsAnswer("r1")))
	b.served(plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","store":false,`+input))
}

// An answer that is not stored has no items that can be named, and costs no write.
func TestItemsOfWhatIsNotStored(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy")
	b.account("tansy").Queue(streamed(itemsStream("r1")...))
	b.served(plainAsk("POST", "/v1/responses", `{"model":"gpt-5.5","stream":true,"store":false,"input":"hello"}`))
	for _, id := range []string{"r1", "rs_r1", "msg_r1"} {
		if r := b.recordedAs(account.OpenAI, id); r.Account != "" {
			t.Errorf("%s: got %s, want no record", id, r.Account)
		}
	}
}
