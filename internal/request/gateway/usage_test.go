package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/usage"
	"holdfast/internal/request/gateway"
	"holdfast/internal/simulate"
	"holdfast/internal/store"
	"holdfast/internal/test/upstreamtest"
)

// used sums what is stored by who, over the last day.
func (b *bench) used() usage.Rows {
	b.t.Helper()
	spans, err := b.store.Usage(b.t.Context(), b.clock.now().Add(-24*time.Hour), b.clock.now())
	if err != nil {
		b.t.Fatal(err)
	}
	rows := usage.Rows{}
	for _, span := range spans {
		rows.AddAll(span.Rows)
	}
	return rows
}

func total(rows usage.Rows) (sum usage.Counts) {
	for _, c := range rows {
		sum.Add(c)
	}
	return sum
}

// What is stored is what the upstream told, by account, model, client key and agent, over two
// processes and a restart.
func TestUsageIsCounted(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	other := b.newKey(catalog.ClientKey{Name: "batch"})
	b.clock.advance(2 * time.Second)
	second, url := b.process(b.store, nil)
	told := func(n string) upstreamtest.Script {
		return jsonAnswer(200, nil, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-20260901","content":[],"stop_reason":"end_turn","usage":{"input_tokens":`+n+`,"cache_read_input_tokens":1000,"cache_creation_input_tokens":20,"output_tokens":7}}`)
	}
	for _, name := range []string{"marlow", "juniper"} {
		b.account(name).Always(told("3"))
	}
	agent := http.Header{"User-Agent": {"claude-cli/2.1.332 (external, cli)"}}
	for i := range 5 {
		b.served(ask{session: session(i), header: agent})
		b.served(ask{session: session(i), header: agent, key: other, url: url})
	}
	// Neither a list of models nor a refused key is use.
	b.do(ask{method: "GET", path: "/v1/models"})
	b.do(ask{key: "hf_wrong"})
	for _, g := range []*gateway.Gateway{b.gw, second, b.gw} {
		if err := g.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	rows := b.used()
	if got, want := total(rows), (usage.Counts{Requests: 10, Input: 30, CacheRead: 10_000, CacheWrite: 200, Output: 70}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	keys := map[string]int64{}
	for who, c := range rows {
		if who.Model != "claude-opus-5-20260901" || who.Agent != "claude-cli" || who.Account == "" {
			t.Errorf("got a row of %+v", who)
		}
		keys[who.Key] += c.Requests
	}
	if keys["agents"] != 5 || keys["batch"] != 5 {
		t.Errorf("got %v by key, want five each", keys)
	}
}

// A process that is frozen between requests has no other time: a minute after the last
// write, the end of a request writes what was counted, its own part too.
func TestUsageIsWrittenByARequest(t *testing.T) {
	b := newBench(t, "marlow")
	b.served(ask{session: session(1)})
	if got := total(b.used()).Requests; got != 1 {
		t.Errorf("after the first request: got %d written, want 1", got)
	}
	b.served(ask{session: session(1)})
	b.clock.advance(time.Minute - time.Second)
	b.served(ask{session: session(1)})
	if got := total(b.used()).Requests; got != 1 {
		t.Errorf("within a minute: got %d written, want 1", got)
	}
	b.clock.advance(2 * time.Second)
	b.served(ask{session: session(1)})
	if got := total(b.used()).Requests; got != 4 {
		t.Errorf("a minute later: got %d written, want all 4", got)
	}
}

// What was refused, and what a move had read again, is told apart.
func TestUsageOfMovesAndRefusals(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(4 * time.Hour)))
	b.account("juniper").Queue(jsonAnswer(200, nil, `{"type":"message","role":"assistant","model":"claude-opus-5","content":[],"usage":{"input_tokens":5,"cache_creation_input_tokens":60000,"cache_read_input_tokens":2,"output_tokens":1}}`))
	if r := b.served(ask{session: session(1)}); r.pin() != "moved" {
		t.Fatalf("got pin %s", r.pin())
	}
	b.account("juniper").Queue(upstreamtest.Failed(400, simulate.Failure{Type: "invalid_request_error", Message: "no"}))
	b.do(ask{session: session(1)})
	if err := b.gw.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var moved, refused usage.Counts
	for who, c := range b.used() {
		if c.Moved > 0 {
			moved.Add(c)
			if who.Account != "juniper" {
				t.Errorf("the move counts for %s", who.Account)
			}
		}
		refused.Refused += c.Refused
	}
	if moved.Moved != 1 || moved.Reread != 60005 || refused.Refused != 1 {
		t.Errorf("got %+v and %d refused, want one move of 60,005 tokens and one refusal", moved, refused.Refused)
	}
}

// A store that is away for a while loses no count.
func TestUsageWhileTheStoreIsAway(t *testing.T) {
	b := newBench(t, "marlow")
	f := &failing{Backend: b.backend()}
	_, url := b.process(store.New(f), nil)
	b.served(ask{session: session(1), url: url})
	f.puts.Store(true)
	for range 3 {
		b.clock.advance(2 * time.Minute)
		b.served(ask{session: session(1), url: url})
	}
	f.puts.Store(false)
	b.clock.advance(2 * time.Minute)
	b.served(ask{session: session(1), url: url})
	if got := total(b.used()).Requests; got != 5 {
		t.Errorf("got %d requests, want 5; log:\n%s", got, b.log.String())
	}
}

// Each provider's own words for tokens are understood.
func TestUsageAtOtherProviders(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy")
	b.account("tansy").Always(jsonAnswer(200, nil, `{"id":"resp_1","object":"response","status":"completed","model":"gpt-5.5","output":[],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30}}}`))
	a := respond("one")
	a.header = http.Header{"User-Agent": {"codex_cli_rs/0.171.0"}}
	if r := b.do(a); r.status != 200 {
		t.Fatalf("got %d %s", r.status, r.body)
	}
	for who, c := range b.used() {
		if want := (usage.Counts{Requests: 1, Input: 40, CacheRead: 60, Output: 50, Reasoning: 30}); c != want || !strings.HasPrefix(who.Agent, "codex") {
			t.Errorf("got %+v for %+v, want %+v", c, who, want)
		}
	}
}
