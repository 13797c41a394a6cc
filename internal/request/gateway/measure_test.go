package gateway_test

import (
	"net/http"
	"testing"

	"holdfast/internal/core/metric"
	"holdfast/internal/request/gateway"
	"holdfast/internal/store"
)

// Every request to a provider is measured once, at its end, whatever became of it.
func TestMeasure(t *testing.T) {
	b := newBench(t, "marlow")
	told := make(chan metric.Request, 9)
	f := &failing{Backend: b.backend()}
	_, url := b.process(store.New(f), func(o *gateway.Options) { o.Measure = func(r metric.Request) { told <- r } })
	heard := func(name string, want metric.Request) {
		t.Helper()
		if got := <-told; got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	b.served(ask{url: url, session: session(1), stream: true})
	heard("a turn", metric.Request{})
	b.do(ask{url: url, key: "hf_unknown"})
	heard("a stranger", metric.Request{})
	f.down.Store(true)
	b.do(ask{url: url, session: session(1)})
	heard("the store is away", metric.Request{StoreUnavailable: true})
	f.down.Store(false)
	b.do(ask{url: url, method: http.MethodGet, path: "/_holdfast/health"})
	select {
	case got := <-told:
		t.Errorf("a health check: got %+v, want it not measured", got)
	default:
	}
}
