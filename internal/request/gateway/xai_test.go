package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/request/gateway"
	"holdfast/internal/test/upstreamtest"
)

// grokAsk is a request as the Grok CLI makes it, with an API key for its own or a login's.
func grokAsk(n int, header ...string) ask {
	id := session(n)
	a := ask{
		path: "/v1/responses",
		header: http.Header{
			"Anthropic-Version": nil, "X-Grok-Client-Version": {"1.0.13"}, "X-Grok-Client-Identifier": {"grok-shell"},
			"X-Grok-Session-Id": {id}, "X-Grok-Conv-Id": {id}, "X-Grok-Req-Id": {"req-" + id}, "X-Grok-Conv-Group-Id": {"the-folder"},
			"User-Agent": {"grok-shell/1.0.13 (linux; x86_64)"},
		},
		body: fmt.Sprintf(`{"model":"grok-4.6","stream":true,"input":[{"role":"user","content":"hello %d"}],"include":["reasoning.encrypted_content"]}`, n),
	}
	for i := 0; i < len(header); i += 2 {
		a.header[header[i]] = []string{header[i+1]}
	}
	return a
}

func grokBench(t *testing.T, names ...string) *bench {
	t.Helper()
	b := newBench(t)
	b.add(account.XAI, account.Subscription, names...)
	return b
}

// captured answers of xAI, by what they say.
var (
	spendingLimit = jsonAnswer(http.StatusForbidden, nil, `{"code":"personal-team-blocked:spending-limit","error":"You have run out of credits or need a Grok subscription. Add credits at https://grok.com/?_s=usage or upgrade at https://grok.com/supergrok."}`)
	creditsWKE    = jsonAnswer(http.StatusTooManyRequests, nil, `{"code":429,"error":"You ran out of credits. [WKE=personal-team-blocked:spending-limit]"}`)
	balance       = jsonAnswer(http.StatusPaymentRequired, nil, `{"error":"Grok Build usage balance exhausted"}`)
	badToken      = jsonAnswer(http.StatusForbidden, nil, `{"code":"unauthenticated:bad-credentials","error":"The OAuth2 access token could not be validated."}`)
	badKey        = jsonAnswer(http.StatusBadRequest, nil, `{"code":"invalid-argument","error":"Incorrect API key provided. You can obtain an API key from https://console.x.ai."}`)
)

func TestGrokGoesUpstreamAsItCame(t *testing.T) {
	b := grokBench(t, "bracken")
	a := grokAsk(1)
	if r := b.served(a); r.account() != "bracken" || r.pin() != "new" || r.body != string(frame(responsesStream...)) {
		t.Errorf("got %s, pin %s", r.account(), r.pin())
	}
	sent := b.up.Requests()[0]
	for name, want := range map[string]string{
		"Authorization": "Bearer " + secret("bracken"), "X-Xai-Token-Auth": "xai-grok-cli", "X-Grok-Client-Version": "1.0.13",
		"X-Grok-Session-Id": session(1), "User-Agent": "grok-shell/1.0.13 (linux; x86_64)",
	} {
		if got := sent.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if sent.Path != "/v1/responses" || string(sent.Body) != a.body {
		t.Errorf("got %s %s", sent.Path, sent.Body)
	}
}

// What goes beside a session has conversation ids of its own and follows the session, whose
// pin it leaves alone (side-calls-move-nobody); an
// empty header names nothing, and a folder's id is no conversation's.
func TestGrokSessions(t *testing.T) {
	b := grokBench(t, "bracken", "sorrel")
	b.served(grokAsk(1))
	b.prefer("sorrel", "bracken")
	for conv, pin := range map[string]string{"perm-classifier-1234": "none", "recap-99": "none", session(1): "kept"} {
		if r := b.served(grokAsk(1, "X-Grok-Conv-Id", conv)); r.account() != "bracken" || r.pin() != pin {
			t.Errorf("%s: got %s, pin %s, want bracken, %s", conv, r.account(), r.pin(), pin)
		}
	}
	if r := b.served(grokAsk(1, "X-Grok-Session-Id", "")); r.account() != "bracken" || r.pin() != "kept" {
		t.Errorf("without a session, by its conversation's id: got %s, pin %s", r.account(), r.pin())
	}
	if r := b.served(grokAsk(2)); r.account() != "sorrel" || r.pin() != "new" {
		t.Errorf("another session of the folder: got %s, pin %s, want sorrel, new", r.account(), r.pin())
	}
	first := b.served(grokAsk(3, "X-Grok-Session-Id", "", "X-Grok-Conv-Id", ""))
	second := b.served(grokAsk(4, "X-Grok-Session-Id", "", "X-Grok-Conv-Id", ""))
	if first.pin() != "new" || second.pin() != "new" {
		t.Errorf("two conversations that name nothing: got pins %s and %s, want each its own", first.pin(), second.pin())
	}
}

// A subscription serves the client that tells its version, and other clients are told that.
func TestGrokSubscriptionServesItsOwnClient(t *testing.T) {
	b := grokBench(t, "bracken")
	for name, a := range map[string]ask{
		"no version": grokAsk(1, "X-Grok-Client-Version", ""), "no such version": grokAsk(1, "X-Grok-Client-Version", "latest"),
	} {
		r := b.do(a)
		if r.status != http.StatusServiceUnavailable || r.errorKind() != "no_account" || !containsAny(r.body, "x-grok-client-version") || !containsAny(r.body, "XAI_API_KEY") {
			t.Errorf("%s: got %d %s", name, r.status, r.body)
		}
	}
	if b.sent() != 0 {
		t.Errorf("got %d sends", b.sent())
	}
	b.add(account.XAI, account.Key, "sedge")
	if r := b.served(grokAsk(1, "X-Grok-Client-Version", "")); r.account() != "sedge" {
		t.Errorf("with a key: got %s", r.account())
	}
	if got := b.up.Requests()[0].Header.Get("X-Xai-Token-Auth"); got != "" {
		t.Errorf("a key went out with a login's mark %q", got)
	}
}

// An outdated client is told so by the provider, and no account is to blame.
func TestGrokVersionRefusalIsHandedBack(t *testing.T) {
	b := grokBench(t, "bracken", "sorrel")
	b.account("bracken").Queue(jsonAnswer(http.StatusUpgradeRequired, nil, `{"error":"Your Grok CLI version (none) is outdated. Please update to version 0.1.202 or later"}`))
	if r := b.do(grokAsk(1)); r.status != http.StatusUpgradeRequired || b.sent() != 1 {
		t.Errorf("got %d after %d sends", r.status, b.sent())
	}
}

// money-or-access-lost-under-an-odd-status: the words for a spent allowance and for a lost
// subscription are the same, so the reset that is known decides.
func TestGrokAllowanceSpent(t *testing.T) {
	for name, script := range map[string]upstreamtest.Script{"403": spendingLimit, "429 with a mark": creditsWKE, "402": balance} {
		t.Run(name+", the reset is known", func(t *testing.T) {
			b := grokBench(t, "bracken", "sorrel")
			reset := b.state("bracken").Windows[account.Weekly].ResetAt
			b.account("bracken").Queue(script)
			if r := b.served(grokAsk(1)); r.account() != "sorrel" || r.pin() != "new" {
				t.Errorf("got %s, pin %s", r.account(), r.pin())
			}
			st := b.state("bracken")
			if blk, ok := pick.Blocked(b.clock.now(), pick.Request{}, pick.Of(account.Account{}, st.State)); st.Parked != nil || !ok || !blk.Until.Equal(reset) || blk.Window != account.Weekly {
				t.Errorf("got parked %v, block %+v, want the week's block until %s", st.Parked, blk, reset)
			}
			if !strings.Contains(b.log.String(), `"kind":"window"`) {
				t.Error("the log does not tell the kind that was chosen")
			}
		})
		t.Run(name+", no reset is known", func(t *testing.T) {
			b := grokBench(t, "bracken", "sorrel")
			b.fold("bracken", func(account.State) account.State { return account.State{} })
			b.account("bracken").Always(script)
			for i := range 2 {
				if r := b.served(grokAsk(i)); r.account() != "sorrel" {
					t.Errorf("got %s", r.account())
				}
			}
			if p := b.state("bracken").Parked; p == nil || p.Kind != account.Funds || len(b.account("bracken").Requests()) != 1 {
				t.Errorf("got parked %+v after %d requests", p, len(b.account("bracken").Requests()))
			}
		})
	}
	t.Run("alone, the client hears a reset", func(t *testing.T) {
		b := grokBench(t, "bracken", "sorrel")
		b.account("bracken").Queue(spendingLimit)
		b.account("sorrel").Queue(balance)
		r := b.do(grokAsk(1))
		if r.status != http.StatusTooManyRequests || r.errorKind() != "exhausted" || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, `"code":"resource-exhausted"`) {
			t.Errorf("got %d %s %s", r.status, r.errorKind(), r.body)
		}
	})
}

// The same in the midst of a stream, before and after content.
func TestGrokAllowanceSpentLate(t *testing.T) {
	event := `{"type":"error","code":"personal-team-blocked:spending-limit","message":"You have run out of credits or need a Grok subscription."}`
	for at, want := range map[int]string{2: "sorrel", 4: "bracken"} {
		b := grokBench(t, "bracken", "sorrel")
		b.account("bracken").Queue(streamed(append(append([]string(nil), responsesStream[:at]...), event)...))
		if r := b.do(grokAsk(1)); r.status != http.StatusOK || r.account() != want {
			t.Errorf("after %d events: got %d from %s, want %s", at, r.status, r.account(), want)
		}
		st := b.state("bracken")
		if _, ok := pick.Blocked(b.clock.now(), pick.Request{}, pick.Of(account.Account{}, st.State)); !ok || st.Parked != nil {
			t.Errorf("after %d events: got parked %v, blocks %v", at, st.Parked, st.Blocks)
		}
	}
}

// A bad key is a 400 here, and an expired token a 403: both are about the credential.
func TestGrokCredentials(t *testing.T) {
	t.Run("a bad key", func(t *testing.T) {
		b := newBench(t)
		b.add(account.XAI, account.Key, "sedge", "teasel")
		b.account("sedge").Always(badKey)
		if r := b.served(grokAsk(1)); r.account() != "teasel" || b.state("sedge").Parked == nil {
			t.Errorf("got %s, parked %v", r.account(), b.state("sedge").Parked)
		}
	})
	t.Run("an ended token", func(t *testing.T) {
		b := grokBench(t, "bracken", "sorrel")
		r := &renewals{b: b}
		_, url := b.process(b.store, func(o *gateway.Options) { o.Renew = r.renew })
		b.up.Account("bracken renewed", secret("bracken")+"-renewed-1").Always(answerTo)
		b.account("bracken").Always(badToken)
		a := grokAsk(1)
		a.url = url
		if got := b.served(a); got.account() != "bracken" || r.n.Load() != 1 || b.state("bracken").Parked != nil {
			t.Errorf("got %s after %d renewals, parked %v", got.account(), r.n.Load(), b.state("bracken").Parked)
		}
	})
	t.Run("a forbidden request", func(t *testing.T) {
		b := grokBench(t, "bracken", "sorrel")
		b.account("bracken").Queue(jsonAnswer(http.StatusForbidden, nil, `{"code":"permission-denied","error":"The model grok-9 is not for you."}`))
		if r := b.do(grokAsk(1)); r.status != http.StatusForbidden || b.sent() != 1 || b.state("bracken").Parked != nil {
			t.Errorf("got %d after %d sends", r.status, b.sent())
		}
	})
}

// A free plan's day is one model's.
func TestGrokFreeUsageIsOneModels(t *testing.T) {
	b := grokBench(t, "bracken")
	b.account("bracken").Queue(jsonAnswer(http.StatusTooManyRequests, nil, `{"code":"subscription:free-usage-exhausted","error":"You've used all the included free usage for model grok-4.6 for now. Usage resets over a rolling 24-hour window."}`))
	if r := b.do(grokAsk(1)); r.status != http.StatusTooManyRequests {
		t.Errorf("got %d", r.status)
	}
	other := grokAsk(2)
	other.body = strings.ReplaceAll(other.body, "grok-4.6", "grok-code-fast")
	b.served(other)
	if blk, ok := pick.Blocked(b.clock.now(), pick.Request{Family: "grok-4.6", Model: "grok-4.6"}, pick.Of(account.Account{}, b.state("bracken").State)); !ok || blk.Until.Sub(b.clock.now()) > 24*time.Hour {
		t.Errorf("got %+v", blk)
	}
}
