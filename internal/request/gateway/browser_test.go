package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/simulate"
	"holdfast/internal/test/upstreamtest"
)

const page = "https://app.example.com"

func preflight(path string, h http.Header) ask {
	all := http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}, "Authorization": nil, "Anthropic-Version": nil, "Content-Type": nil}
	for k, v := range h {
		all[k] = v
	}
	return ask{method: http.MethodOptions, path: path, header: all}
}

// cors are the headers of an answer that speak to a browser.
func cors(h http.Header) (names []string) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			names = append(names, name)
		}
	}
	return names
}

// TestBrowsersAreOff is field case browsers: unless the owner allows a page, a preflight is
// refused in words that say what would allow it, and no answer is marked.
func TestBrowsersAreOff(t *testing.T) {
	b := newBench(t, "marlow")
	for _, path := range []string{"/v1/messages", "/openai/v1/responses", "/v1/files", "/nowhere", "/_holdfast/health"} {
		r := b.do(preflight(path, http.Header{"Access-Control-Request-Private-Network": {"true"}}))
		if r.status != http.StatusForbidden || !strings.Contains(r.body, "settings set allowed_origins") || !strings.Contains(r.body, page) || len(cors(r.header)) != 0 {
			t.Errorf("%s: got %d %s, marked by %v", path, r.status, r.body, cors(r.header))
		}
		if strings.Contains(r.body, "marlow") {
			t.Errorf("%s: the answer names an account: %s", path, r.body)
		}
	}
	upstream := http.Header{"Content-Type": {"application/json"}, "Access-Control-Allow-Origin": {"*"}, "Access-Control-Expose-Headers": {"x"}}
	b.account("marlow").Queue(upstreamtest.Raw(200, upstream, []byte(`{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)))
	r := b.served(ask{session: session(1), header: http.Header{"Origin": {page}}})
	if len(cors(r.header)) != 0 {
		t.Errorf("an answer is marked by %v", cors(r.header))
	}
	if got := b.up.Requests()[0].Header.Get("Origin"); got != page {
		t.Errorf("upstream got origin %q: what is not decided here goes as it came", got)
	}
}

// TestBrowsersThatAreAllowed is field case browsers: an allowed page may ask, and may read
// every answer, also those made here, and another page may not.
func TestBrowsersThatAreAllowed(t *testing.T) {
	b := newBench(t, "marlow")
	b.set("allowed_origins", "HTTPS://App.example.com:443/, http://localhost:5173")
	b.clock.advance(2 * time.Second)
	r := b.do(preflight("/v1/messages", http.Header{
		"Access-Control-Request-Headers": {"x-api-key, anthropic-version", "content-type"}, "Access-Control-Request-Private-Network": {"true"},
	}))
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": page, "Access-Control-Allow-Methods": "POST", "Access-Control-Allow-Headers": "x-api-key, anthropic-version, content-type",
		"Access-Control-Allow-Private-Network": "true", "Access-Control-Max-Age": "600", "Access-Control-Allow-Credentials": "",
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if r.status != http.StatusNoContent || !strings.Contains(r.header.Get("Vary"), "Origin") || b.sent() != 0 {
		t.Errorf("got %d %v after %d sends", r.status, r.header, b.sent())
	}

	from := func(h http.Header) http.Header {
		all := http.Header{"Origin": {page}, "Sec-Fetch-Mode": {"cors"}}
		for k, v := range h {
			all[k] = v
		}
		return all
	}
	upstream := http.Header{
		"Content-Type": {"application/json"}, "Access-Control-Allow-Origin": {"*"}, "Vary": {"Accept-Encoding"},
		"Anthropic-Ratelimit-Unified-Status": {"allowed"}, "Request-Id": {"req_1"},
	}
	b.account("marlow").Queue(
		upstreamtest.Raw(200, upstream, []byte(`{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)),
		upstreamtest.Failed(400, simulate.Failure{Type: "invalid_request_error", Message: "no"}),
		upstreamtest.Good(nil),
	)
	for name, a := range map[string]ask{
		"a wrong key":    {header: from(http.Header{"Authorization": {"Bearer hf_wrong"}})},
		"no key":         {header: from(http.Header{"Authorization": nil})},
		"a bad body":     {header: from(nil), body: "{"},
		"no such path":   {path: "/nowhere", header: from(nil)},
		"a bad path":     {path: "/v1//messages", header: from(nil)},
		"no such method": {method: "TRACE", header: from(nil)},
		"a WebSocket":    {method: "GET", path: "/v1/responses", header: from(http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}})},
		"no account":     {path: "/openai/v1/responses", header: from(nil), body: `{"model":"gpt-5.5","input":"x"}`},
		"the health":     {method: "GET", path: "/_holdfast/health", header: from(http.Header{"Authorization": nil})},
		"the front":      {method: "GET", path: "/", header: from(http.Header{"Authorization": nil})},
		"an answer":      {header: from(nil), session: session(1)},
		"the upstream's": {header: from(nil), session: session(1)},
		"a stream":       {header: from(nil), session: session(1), stream: true},
	} {
		r := b.do(a)
		if r.header.Get("Access-Control-Allow-Origin") != page || len(r.header.Values("Access-Control-Allow-Origin")) != 1 || !strings.Contains(strings.Join(r.header.Values("Vary"), ","), "Origin") {
			t.Errorf("%s: got %d, marked by %v, Vary %v", name, r.status, r.header.Values("Access-Control-Allow-Origin"), r.header.Values("Vary"))
		}
		if !strings.Contains(r.header.Get("Access-Control-Expose-Headers"), "X-Holdfast-Request") && r.header.Get("X-Holdfast-Request") != "" {
			t.Errorf("%s: a page cannot read %q", name, r.header.Get("Access-Control-Expose-Headers"))
		}
	}
	for _, sent := range b.up.Requests() {
		if sent.Header.Get("Origin") != "" || sent.Header.Get("Sec-Fetch-Mode") != "" {
			t.Errorf("upstream heard of the page: %v", sent.Header)
		}
	}
	// Another page, and the origin that any page can have, read nothing.
	for _, origin := range []string{"https://evil.example", "null", "http://app.example.com", page + ".evil.example"} {
		r := b.served(ask{session: session(1), header: http.Header{"Origin": {origin}}})
		if len(cors(r.header)) != 0 {
			t.Errorf("%s: marked by %v", origin, cors(r.header))
		}
	}
	// What the gateway says of accounts is for no page but its own.
	for _, a := range []ask{
		{method: "GET", path: "/_holdfast/status.json", header: from(nil)}, preflight("/_holdfast/status.json", nil),
	} {
		if r := b.do(a); len(cors(r.header)) != 0 || r.status == http.StatusNoContent {
			t.Errorf("%s: got %d, marked by %v", a.method, r.status, cors(r.header))
		}
	}
	// A change is followed within two seconds.
	b.set("allowed_origins", "")
	b.clock.advance(2 * time.Second)
	if r := b.do(preflight("/v1/messages", nil)); r.status != http.StatusForbidden {
		t.Errorf("after the change: got %d", r.status)
	}
}
