package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/account"
	"holdfast/internal/gateway"
	"holdfast/internal/metric"
	"holdfast/internal/upstreamtest"
)

// Every request to a provider is measured once, at its end, whatever became of it.
func TestMeasure(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	told := make(chan metric.Request, 9)
	_, url := b.process(b.store, func(o *gateway.Options) { o.Measure = func(r metric.Request) { told <- r } })
	heard := func(name string, want metric.Request) {
		t.Helper()
		got := <-told
		if got.Account != "" && got.Added <= 0 {
			t.Errorf("%s: got no time before the first send", name)
		}
		got.Added, got.Prompt, got.CacheRead = 0, 0, 0
		want.Provider = account.Anthropic
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	const source = "x-claude-code-session-id"

	b.served(ask{url: url, session: session(1), stream: true})
	heard("the first turn", metric.Request{Account: "marlow", Outcome: "served", Pin: "new", Source: source})
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(3 * time.Hour)))
	b.served(ask{url: url, session: session(1)})
	heard("a turn that moves", metric.Request{Account: "juniper", Outcome: "served", Pin: "moved", Source: source, Rejections: []account.RejectionKind{account.WindowSpent}})
	b.do(ask{url: url, key: "hf_unknown"})
	heard("a stranger", metric.Request{Outcome: "refused"})
	b.set("background_headroom", "0.99")
	b.clock.advance(2 * time.Second)
	b.do(ask{url: url, session: session(2), header: http.Header{"X-Holdfast-Priority": {"background"}}})
	heard("a background request", metric.Request{Outcome: "refused", Source: source, Yielded: true})
	b.do(ask{url: url, method: http.MethodGet, path: "/_holdfast/health"})
	select {
	case got := <-told:
		t.Errorf("a health check: got %+v, want it not measured", got)
	default:
	}
}
