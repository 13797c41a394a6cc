package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/test/upstreamtest"
)

// zip returns the text compressed.
func zip(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// dialects are a request to each provider in each of its shapes.
var dialects = []struct {
	provider    account.Provider
	path, model string
}{
	{account.Anthropic, "/v1/messages", "claude-opus-5"},
	{account.OpenAI, "/v1/responses", "gpt-5.5"},
	{account.OpenAI, "/v1/chat/completions", "gpt-5.5"},
	{account.XAI, "/xai/v1/responses", "grok-4.6"},
}

// twoOf is a bench with two keys of a provider, which serve in this order.
func twoOf(t *testing.T, p account.Provider) *bench {
	t.Helper()
	b := newBench(t)
	b.addOf(p, "first", account.Key)
	b.addOf(p, "second", account.Key)
	b.change(func(c catalog.Catalog) catalog.Catalog {
		next, err := c.SetPolicy(p, catalog.Order, 0.8)
		if err != nil {
			t.Fatal(err)
		}
		return next
	})
	return b
}

// TestRefusalThatIsAWebPage is field case a-refusal-that-is-a-web-page: the status is the
// client's to act on. Only 401 and 403 would be taken for its own login failing.
func TestRefusalThatIsAWebPage(t *testing.T) {
	const page = "<!DOCTYPE html><title>Request Entity Too Large</title>"
	html := http.Header{"Content-Type": {"text/html; charset=UTF-8"}}
	json := http.Header{"Content-Type": {"application/json"}}
	tests := []struct {
		name   string
		header http.Header
		body   []byte
	}{
		{"by its type", html, []byte(page)},
		{"by its type, empty", html, nil},
		{"called JSON", json, []byte("\n " + page)},
		{"behind a byte order mark", json, []byte("\ufeff" + page)},
		{"compressed", http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, zip(t, page)},
	}
	for _, d := range dialects {
		for _, tt := range tests {
			for status, want := range map[int]int{400: 400, 402: 402, 404: 404, 413: 413, 414: 414, 431: 431, 401: 502, 403: 502} {
				t.Run(fmt.Sprintf("%s, %d %s", d.path, status, tt.name), func(t *testing.T) {
					b := twoOf(t, d.provider)
					b.account("first").Always(upstreamtest.Raw(status, tt.header, tt.body))
					b.account("second").Always(upstreamtest.Raw(status, tt.header, tt.body))
					r := b.do(ask{path: d.path, model: d.model, stream: true, session: session(1), header: http.Header{"Accept-Encoding": {"identity"}}})
					if r.status != want || b.sent() != 1 {
						t.Errorf("got %d %s after %d sends, want %d after one", r.status, r.errorKind(), b.sent(), want)
					}
					if want == status && r.body != string(tt.body) {
						t.Errorf("got %q, want the page as it came", r.body)
					}
					for _, name := range []string{"first", "second"} {
						if st := b.state(name); len(st.Blocks) != 0 || len(st.Refuses) != 0 || st.Parked != nil {
							t.Errorf("%s: got %+v, want nothing held against it", name, st.State)
						}
					}
				})
			}
		}
	}
}

// A page says nothing of the account, also where headers of the provider's come with it.
func TestPageTeachesNothing(t *testing.T) {
	b := newBench(t, "marlow")
	before := b.state("marlow").Windows
	h := upstreamtest.Plan(1, b.clock.now().Add(time.Hour), 1, b.clock.now().Add(time.Hour))
	h.Set("Content-Type", "text/html")
	b.account("marlow").Queue(upstreamtest.Raw(413, h, []byte("<html>")))
	if r := b.do(ask{session: session(1)}); r.status != 413 {
		t.Fatalf("got %d", r.status)
	}
	if after := b.state("marlow").Windows; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("got windows %v, want %v as before", after, before)
	}
}

// A page with status 429 is a bare refusal: the model pauses a moment, whatever wait the edge
// tells, and a new conversation goes elsewhere.
func TestPageThatSlowsDown(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.path, func(t *testing.T) {
			b := twoOf(t, d.provider)
			h := http.Header{"Content-Type": {"text/html"}, "Retry-After": {"3600"}, "X-Ratelimit-Remaining-Requests": {"0"}, "Anthropic-Ratelimit-Requests-Remaining": {"0"}}
			b.account("first").Queue(upstreamtest.Raw(429, h, []byte("<!doctype html>slow down, insufficient_quota")))
			first := b.served(ask{path: d.path, model: d.model, session: session(1)})
			if first.account() != "second" || b.sent() != 2 {
				t.Errorf("got %s after %d sends, want the other account's answer", first.account(), b.sent())
			}
			st := b.state("first")
			for _, block := range st.Blocks {
				if block.Cause != account.CauseBare || block.Until.After(b.clock.now().Add(6*time.Second)) {
					t.Errorf("got %+v, want a pause of seconds", block)
				}
			}
			if len(st.Blocks) != 1 || st.Parked != nil {
				t.Errorf("got %+v, want one pause and no more", st.State)
			}
		})
	}
}

// largeErrors are refusals for want of money, larger than what is kept of an error.
func largeErrors(p account.Provider, filler string) map[string]string {
	if p == account.Anthropic {
		return map[string]string{
			"told first": `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."},"echo":"` + filler + `"}`,
			"told last":  `{"echo":["` + filler + `"],"type":"error","error":{"x":"` + filler + `","type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`,
			"told in a long message": `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. ` +
				filler + `"}}`,
		}
	}
	if p == account.XAI {
		const code, message = `"code":"personal-team-blocked:spending-limit"`, `Your team has either used all available credits or reached its monthly spending limit.`
		return map[string]string{
			"told first":             `{` + code + `,"error":"` + message + `","echo":"` + filler + `"}`,
			"told last":              `{"echo":[["` + filler + `"]],"error":"` + message + `",` + code + `}`,
			"told in a long message": `{` + code + `,"error":"` + message + filler + `"}`,
		}
	}
	return map[string]string{
		"told first":             `{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota.","param":"` + filler + `"}}`,
		"told last":              `{"echo":[["` + filler + `"]],"error":{"param":"` + filler + `","message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`,
		"told in a long message": `{"error":{"message":"You exceeded your current quota. ` + filler + `","type":"insufficient_quota","code":"insufficient_quota"}}`,
	}
}

// TestErrorLargerThanWeRead is field case an-error-larger-than-we-read: type, code and
// message are found wherever they stand, in an error of any size that holdfast reads, and in
// the beginning of a larger one.
func TestErrorLargerThanWeRead(t *testing.T) {
	for _, d := range dialects {
		for _, size := range []int{10, 300_000, 3 << 20} {
			for name, body := range largeErrors(d.provider, strings.Repeat("x", size)) {
				if size > 1<<20 && name == "told last" {
					continue // beyond what is read
				}
				for _, zipped := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %d bytes, %s, zipped %v", d.path, size, name, zipped), func(t *testing.T) {
						b := twoOf(t, d.provider)
						status, h, raw := 429, http.Header{"Content-Type": {"application/json"}}, []byte(body)
						if d.provider == account.Anthropic {
							status = 400
						}
						if zipped {
							raw = zip(t, body)
							h.Set("Content-Encoding", "gzip")
						}
						b.account("first").Always(upstreamtest.Raw(status, h, raw))
						if r := b.served(ask{path: d.path, model: d.model, session: session(1)}); r.account() != "second" {
							t.Errorf("got %s, want the other account's answer", r.account())
						}
						if b.state("first").Parked == nil {
							t.Error("the account is not parked")
						}
					})
				}
			}
		}
	}
}

// An error of any size that is the client's comes whole.
func TestLargeErrorIsHandedBackWhole(t *testing.T) {
	for _, size := range []int{300_000, 3 << 20} {
		b := newBench(t, "marlow")
		body := `{"type":"error","error":{"type":"invalid_request_error","message":"` + strings.Repeat("x", size) + `"}}`
		b.account("marlow").Always(upstreamtest.Raw(400, http.Header{"Content-Type": {"application/json"}}, []byte(body)))
		if r := b.do(ask{session: session(1)}); r.status != 400 || r.body != body || r.err != nil {
			t.Errorf("got %d with %d bytes, %v, want 400 with %d", r.status, len(r.body), r.err, len(body))
		}
	}
}

// An error whose body does not end is judged by what came of it.
func TestErrorThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			body := &unending{text: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API.","x":"`, ctx: r.Context()}
			return &http.Response{StatusCode: 400, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1}, nil
		}), nil)
		if w := q.ask(t.Context(), false); w.Code != http.StatusServiceUnavailable || w.Header().Get("X-Holdfast-Error") != "no_account" {
			t.Errorf("got %d %s, want 503 no_account", w.Code, w.Body)
		}
	})
}

// unending is a body that stops in the middle, and is silent then.
type unending struct {
	text string
	ctx  context.Context
}

func (u *unending) Read(p []byte) (int, error) {
	if u.text != "" {
		n := copy(p, u.text)
		u.text = u.text[n:]
		return n, nil
	}
	<-u.ctx.Done()
	return 0, http.ErrAbortHandler
}

func (u *unending) Close() error { return nil }
