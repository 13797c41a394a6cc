package gateway_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/catalog"
	"holdfast/internal/request/gateway"
	"holdfast/internal/transport/forward"
)

// TestProxyThatRefuses is field case proxy-refuses: the client and the log hear which proxy
// refused, without its credentials, and nothing is held against the account.
func TestProxyThatRefuses(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(proxy.Close)
	for _, d := range dialects {
		b := twoOf(t, d.provider)
		b.change(func(c catalog.Catalog) catalog.Catalog {
			for i := range c.Accounts {
				c.Accounts[i].BaseURL = "https://api.example"
			}
			return c
		})
		u, err := url.Parse(strings.Replace(proxy.URL, "://", "://someone:hunter2@", 1))
		if err != nil {
			t.Fatal(err)
		}
		_, at := b.process(b.store, func(o *gateway.Options) {
			tr := forward.NewTransport(forward.DefaultLimits)
			tr.Proxy = http.ProxyURL(u)
			o.Transport = tr
		})
		r := b.do(ask{path: d.path, model: d.model, session: session(1), url: at})
		said := "the proxy " + u.Host + " (HTTPS_PROXY) refused to connect (status 403)"
		if r.status != http.StatusBadGateway || r.errorKind() != "upstream_unreachable" || !strings.Contains(r.body, said) || !strings.Contains(r.body, "NO_PROXY") {
			t.Errorf("%s: got %d %s", d.path, r.status, r.body)
		}
		if text := b.log.String(); !strings.Contains(text, said) || strings.Contains(text+r.body, "hunter2") || strings.Contains(text+r.body, "someone") {
			t.Errorf("%s: the log says %s", d.path, text)
		}
	}
}

// What kept an upstream from answering is told, in words of ours.
func TestWhyNothingAnswered(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for base, want := range map[string]string{
		secure.URL: "its certificate is not trusted",
		gone.URL:   "connection refused",
	} {
		for _, d := range dialects {
			b := twoOf(t, d.provider)
			b.change(func(c catalog.Catalog) catalog.Catalog {
				for i := range c.Accounts {
					c.Accounts[i].BaseURL = base
				}
				return c
			})
			b.clock.advance(2 * time.Second)
			r := b.do(ask{path: d.path, model: d.model, session: session(1)})
			if r.status != http.StatusBadGateway || !strings.Contains(r.body, want) || !strings.Contains(r.body, strings.TrimPrefix(strings.TrimPrefix(base, "https://"), "http://")) {
				t.Errorf("%s: got %d %s, want a word on %q", d.path, r.status, r.body, want)
			}
		}
	}
}
