package main_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"holdfast/internal/aws/functionurl"
	"holdfast/internal/core/catalog"
	"holdfast/internal/test/awstest"
	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// TestTimeUp is the case stream-timeouts where the platform has a limit: before it kills
// the process, the client hears the end in its own protocol, and the process lives on.
func TestTimeUp(t *testing.T) {
	b := functiontest.New(t)
	one := b.Account("one", 0.20)
	// As short as it may be for a request on a busy machine; a part of it is the margin.
	f := b.Serve(func(o *functionurl.Options) { o.Timeout = 4 * time.Second })
	forever := upstreamtest.NewGate()
	stream := functiontest.Request{Session: "long", Stream: true}

	one.Queue(upstreamtest.Good(b.Limits(0.20)).With(upstreamtest.HeldAfter(4, forever)))
	got := f.Do(t, stream)
	events := strings.Split(strings.TrimRight(got.Body, "\n"), "\n\n")
	last := events[len(events)-1]
	if got.Status != http.StatusOK || got.Err != nil || !strings.HasPrefix(events[0], "event: message_start\n") || !strings.HasPrefix(last, "event: error\n") {
		t.Errorf("in mid-stream: got %d %q (%v), want 200, the events there were, an error event, and the end", got.Status, got.Body, got.Err)
	}
	if _, data, _ := strings.Cut(last, "data: "); !strings.Contains(data, "time") || !json.Valid([]byte(data)) {
		t.Errorf("in mid-stream: got last event %q, want one that says the time is up", last)
	}

	one.Queue(upstreamtest.Good(nil).With(upstreamtest.Held(forever)))
	if got := f.Do(t, stream); got.Status != http.StatusGatewayTimeout || got.Refusal() != "upstream_unreachable" || !json.Valid([]byte(got.Body)) {
		t.Errorf("before the answer: got %d %q %s, want 504 upstream_unreachable, as JSON", got.Status, got.Refusal(), got.Body)
	}

	if got := f.Served(t, stream); got.Pin() != "kept" || f.Started() != 1 {
		t.Errorf("afterwards: got pin %q by process %d, want kept, by the first", got.Pin(), f.Started())
	}
	for _, r := range one.Requests()[:2] {
		<-r.Ended()
		if !r.ClientLeft() {
			t.Errorf("upstream request %d: got it left running, want it cancelled", r.Number)
		}
	}
}

// TestCut: an answer that breaks off in the middle of an event never looks whole.
func TestCut(t *testing.T) {
	b := functiontest.New(t)
	one := b.Account("one", 0.20)
	f := b.Serve()
	one.Queue(upstreamtest.Good(nil).With(upstreamtest.ResetAfter(5, 20)))
	got := f.Do(t, functiontest.Request{Session: "cut", Stream: true})
	if got.Status != http.StatusOK || got.Err == nil || !strings.Contains(got.Body, "message_start") {
		t.Errorf("got %d %q (%v), want what came, and then a broken answer", got.Status, got.Body, got.Err)
	}
	if got := f.Served(t, functiontest.Request{Session: "cut", Stream: true}); got.Pin() != "kept" || f.Started() != 1 {
		t.Errorf("afterwards: got pin %q by process %d, want kept, by the first", got.Pin(), f.Started())
	}
}

// TestStreamIsOver is field case a-stream-that-is-over where the platform bills the time: the
// invocation ends with the stream, whatever the provider's connection does.
func TestStreamIsOver(t *testing.T) {
	b := functiontest.New(t)
	one := b.Account("one", 0.20)
	f := b.Serve()
	const all = 1000                                                                            // more than there are events
	one.Queue(upstreamtest.Good(nil).With(upstreamtest.HeldAfter(all, upstreamtest.NewGate()))) // never opened
	if got := f.Served(t, functiontest.Request{Session: "over", Stream: true}); !strings.Contains(got.Body, "message_stop") || strings.Contains(got.Body, "event: error") {
		t.Errorf("got %q", got.Body)
	}
	<-one.Requests()[0].Left()
	if got := f.Served(t, functiontest.Request{Session: "over", Stream: true}); got.Pin() != "kept" || f.Started() != 1 {
		t.Errorf("afterwards: got pin %q by process %d, want kept, by the first", got.Pin(), f.Started())
	}
}

// TestBodies is the cases function-url-body-limits and compressed-request-bodies: what the
// platform lets through goes upstream byte for byte and with its length, however it came.
func TestBodies(t *testing.T) {
	b := functiontest.New(t)
	one := b.Account("one", 0.20)
	f := b.Serve()
	for _, c := range []struct {
		name   string
		size   int // of the JSON
		zstd   bool
		header http.Header
		status int
	}{
		{"3.9 MB", 3_900_000, false, nil, http.StatusOK},
		{"5.9 MB", 5_900_000, false, nil, http.StatusOK},
		{"6.1 MB", 6_100_000, false, nil, http.StatusOK},
		{"6.4 MB", 6_400_000, false, nil, http.StatusRequestEntityTooLarge}, // by the platform
		{"zstd, small", 2_000, true, nil, http.StatusOK},
		{"zstd, 3 MB", 4_000_000, true, nil, http.StatusOK},
		{"without a type, so as base64", 2_000, false, http.Header{"Content-Type": nil}, http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.Upstream.Forget()
			body, header := withImage(c.size), http.Header{}
			for name, values := range c.header {
				header[name] = values
			}
			if c.zstd {
				header.Set("Content-Encoding", "zstd")
				encoder, err := zstd.NewWriter(nil)
				if err != nil {
					t.Fatal(err)
				}
				body = encoder.EncodeAll(body, nil)
			}
			got := f.Do(t, functiontest.Request{Session: "a conversation", Body: body, Header: header})
			if got.Status != c.status {
				t.Fatalf("got %d %s, want %d", got.Status, got.Body, c.status)
			}
			if c.status != http.StatusOK {
				if n := len(one.Requests()); n != 0 {
					t.Errorf("got %d requests upstream, want none", n)
				}
				return
			}
			sent := one.Requests()[0]
			if !bytes.Equal(sent.Body, body) {
				t.Errorf("got %d bytes upstream, want the %d of the client", len(sent.Body), len(body))
			}
			if sent.ContentLength != int64(len(body)) || sent.Header.Get("Content-Encoding") != header.Get("Content-Encoding") {
				t.Errorf("got Content-Length %d and Content-Encoding %q upstream, want %d and %q",
					sent.ContentLength, sent.Header.Get("Content-Encoding"), len(body), header.Get("Content-Encoding"))
			}
		})
	}
	if n := f.Started(); n != 1 {
		t.Errorf("got %d processes, want 1", n)
	}
}

// withImage is a message of about so many bytes, most of them a picture that does not
// compress.
func withImage(size int) []byte {
	picture := make([]byte, size*3/4)
	rand.Read(picture) // never fails, as its documentation says
	return fmt.Appendf(nil, `{"model":"claude-opus-5","max_tokens":100,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}},{"type":"text","text":"What is \"this\"?\n"}]}]}`,
		base64.StdEncoding.EncodeToString(picture))
}

// TestEveryAnswerIsOne is the case silent-success-from-our-own-adapter: on every way out
// there is a status and, where a body may be, a body that says what happened.
func TestEveryAnswerIsOne(t *testing.T) {
	b := functiontest.New(t)
	b.Account("one", 0.20)
	away := functiontest.New(t) // another holdfast, whose only account is at a host that is away
	away.Account("one", 0.20)
	away.Change(func(c catalog.Catalog) (catalog.Catalog, error) { return c.SetBaseURL("one", awstest.Refused(t)) })
	none := functiontest.New(t)
	none.Key = none.ClientKey("agents")
	for _, c := range []struct {
		name    string
		f       *functiontest.Function
		request functiontest.Request
		status  int
		refusal string
	}{
		{"no key", b.Serve(), functiontest.Request{Key: "none"}, http.StatusUnauthorized, "unauthorized"},
		{"no JSON", b.Serve(), functiontest.Request{Body: []byte(`{"model":`)}, http.StatusBadRequest, "bad_request"},
		{"no such path", b.Serve(), functiontest.Request{Path: "/v2"}, http.StatusNotFound, "not_found"},
		{"dot segments", b.Serve(), functiontest.Request{Path: "/v1/%2e%2e/messages"}, http.StatusBadRequest, "bad_request"},
		{"unknown coding", b.Serve(), functiontest.Request{Header: http.Header{"Content-Encoding": {"lzw"}}}, http.StatusUnsupportedMediaType, "bad_request"},
		{"host away", away.Serve(), functiontest.Request{}, http.StatusBadGateway, "upstream_unreachable"},
		{"no accounts", none.Serve(), functiontest.Request{}, http.StatusServiceUnavailable, "no_account"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.f.Do(t, c.request)
			if got.Status != c.status || got.Refusal() != c.refusal || !json.Valid([]byte(got.Body)) || got.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got %d %q %q, want %d %s, as JSON", got.Status, got.Refusal(), got.Body, c.status, c.refusal)
			}
			if got.Header.Get("X-Holdfast-Request") == "" {
				t.Error("got no X-Holdfast-Request")
			}
			// Field case advice-for-other-data: what is advised is about the function's table, whose
			// name is not for those without a client key.
			if named := strings.Contains(got.Body, "--table "+none.Table+" account add"); named != (c.refusal == "no_account") {
				t.Errorf("got %s, want the table in the advice: %t", got.Body, !named)
			}
		})
	}
	for _, c := range []struct{ method, path, body string }{
		{http.MethodHead, "/", ""}, {http.MethodHead, "/api/hello", ""}, {http.MethodGet, "/", "holdfast\n"}, {http.MethodGet, "/_holdfast/health", "ok\n"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, b.Serve().URL+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var body bytes.Buffer
			if _, err := body.ReadFrom(resp.Body); err != nil || resp.StatusCode != http.StatusOK || body.String() != c.body {
				t.Errorf("got %d %q (%v), want 200 %q", resp.StatusCode, body.String(), err, c.body)
			}
		})
	}
}

// TestLinksLeadToTheFunctionURL is field case results-elsewhere behind the Function URL: a link
// to a batch's results leads to the host that the client asked, over https.
func TestLinksLeadToTheFunctionURL(t *testing.T) {
	b := functiontest.New(t)
	one := b.Account("one", 0.20)
	b.Account("two", 0.50)
	f := b.Serve()
	const batches = "/v1/messages/batches"
	answer := upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/json"}},
		[]byte(`{"id":"msgbatch_1","results_url":"https://api.anthropic.com`+batches+`/msgbatch_1/results"}`))
	one.OnPath(batches, answer)
	one.OnPath(batches+"/msgbatch_1/cancel", answer)
	for _, path := range []string{batches, batches + "/msgbatch_1/cancel"} {
		for prefix := range map[string]bool{"": true, "/anthropic": true} {
			got := f.Served(t, functiontest.Request{Path: prefix + path, Body: []byte(`{"requests":[]}`), Header: http.Header{"X-Forwarded-Host": {"id.lambda-url.example"}}})
			if want := `{"id":"msgbatch_1","results_url":"https://id.lambda-url.example` + prefix + batches + `/msgbatch_1/results"}`; got.Body != want || got.Account() != "one" {
				t.Errorf("%s%s: got %s from %s, want %s from one", prefix, path, got.Body, got.Account(), want)
			}
		}
	}
}

// TestModelOfAnyBody is field case a-prompt-to-another-vendor behind the Function URL, which
// hands some bodies on as base64: the answer tells which provider each would have gone to.
func TestModelOfAnyBody(t *testing.T) {
	b := functiontest.New(t)
	b.Account("one", 0.20)
	f := b.Serve()
	form := func(models ...string) []byte {
		var out bytes.Buffer
		w := multipart.NewWriter(&out)
		_ = w.SetBoundary("edge") // a good one
		for _, m := range models {
			_ = w.WriteField("model", m) // a buffer takes all
		}
		_ = w.Close()
		return out.Bytes()
	}
	for _, c := range []struct {
		name, path, contentType string
		body                    []byte
		status                  int
		says                    string
	}{
		{"JSON of another type", "/v1/chat/completions", "text/json", []byte(`{"model":"grok-4.6"}`), http.StatusServiceUnavailable, "no account of xai"},
		{"JSON as bytes, behind a mark", "/v1/chat/completions", "application/octet-stream", []byte("\ufeff" + `{"model":"grok-4.6"}`), http.StatusServiceUnavailable, "no account of xai"},
		{"a form", "/v1/images/edits", "multipart/form-data; boundary=edge", form("grok-imagine"), http.StatusServiceUnavailable, "no account of xai"},
		{"a form for another", "/v1/images/edits", "multipart/form-data; boundary=edge", form("gpt-image-1"), http.StatusServiceUnavailable, "no account of openai"},
		{"a form with two models", "/v1/images/edits", "multipart/form-data; boundary=edge", form("gpt-image-1", "grok-imagine"), http.StatusBadRequest, "/xai/v1/images/edits"},
		{"bytes", "/v1/responses", "application/octet-stream", []byte{0xff, 0xfe, '{', 0}, http.StatusBadRequest, "/openai/v1/responses"},
	} {
		got := f.Do(t, functiontest.Request{Path: c.path, Body: c.body, Header: http.Header{"Content-Type": {c.contentType}}})
		if got.Status != c.status || !strings.Contains(got.Body, c.says) {
			t.Errorf("%s: got %d %s, want %d and %q", c.name, got.Status, got.Body, c.status, c.says)
		}
	}
}
