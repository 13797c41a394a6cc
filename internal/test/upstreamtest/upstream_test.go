package upstreamtest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/simulate"
	"holdfast/internal/test/upstreamtest"
)

const (
	whole    = `{"model":"claude-opus-5","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
	streamed = `{"model":"claude-opus-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hello"}]}`
)

// client takes answers as they come: nothing decompressed, nothing tried again.
var client = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// answer is an answer whose headers have come.
type answer struct {
	StatusCode    int
	Header        http.Header
	ContentLength int64
	Body          io.Reader
}

// send returns an answer that was read to its end, if only a bad one.
func send(t *testing.T, up *upstreamtest.Upstream, key, body string) (answer, string, error) {
	t.Helper()
	got := open(t, up, key, body)
	b, err := io.ReadAll(got.Body)
	return got, string(b), err
}

// open sends a request and returns once the answer's headers are there.
func open(t *testing.T, up *upstreamtest.Upstream, key, body string) answer {
	t.Helper()
	resp, err := client.Do(request(t.Context(), up, key, body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return answer{resp.StatusCode, resp.Header, resp.ContentLength, resp.Body}
}

func request(ctx context.Context, up *upstreamtest.Upstream, key, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, up.URL+"/v1/messages?beta=true", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("x-api-key", key)
	return req
}

func TestAccountsAreToldApartByCredential(t *testing.T) {
	up := upstreamtest.Start(t)
	one, two := up.Account("one", "key-one"), up.Account("two", "key-two", "token-two")
	for _, c := range []struct {
		name, header, value string
		status              int
		account             string
	}{
		{"key of the first", "x-api-key", "key-one", 200, "one"},
		{"key of the second", "x-api-key", "key-two", 200, "two"},
		{"bearer of the second", "Authorization", "bearer token-two", 200, "two"},
		{"unknown", "x-api-key", "key-three", 401, ""},
		{"another scheme", "Authorization", "Basic token-two", 401, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			up.Forget()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, up.URL+"/v1/messages?beta=true&x=%20", strings.NewReader(whole))
			req.Header.Set(c.header, c.value)
			req.Header.Add("anthropic-beta", "a")
			req.Header.Add("anthropic-beta", "b")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("status: got %d, want %d", resp.StatusCode, c.status)
			}
			got := up.Requests()[0]
			if got.Account != c.account || got.Method != "POST" || got.Path != "/v1/messages" || got.Query != "beta=true&x=%20" ||
				string(got.Body) != whole || got.Model != "claude-opus-5" || got.Stream || len(got.Header["Anthropic-Beta"]) != 2 {
				t.Errorf("recorded: got %+v", got)
			}
		})
	}
	if n := len(one.Requests()) + len(two.Requests()); n != 0 {
		t.Errorf("requests of the two after the last, unknown one: got %d, want 0", n)
	}
}

func TestQueueThenAlways(t *testing.T) {
	up := upstreamtest.Start(t)
	one, two := up.Account("one", "key-one"), up.Account("two", "key-two")
	one.Queue(upstreamtest.Overloaded(), upstreamtest.Bare())
	one.Always(upstreamtest.Refusal("credit-balance"))
	var got []int
	for _, key := range []string{"key-one", "key-two", "key-one", "key-one", "key-one"} {
		resp, _, err := send(t, up, key, whole)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, resp.StatusCode)
	}
	if want := []int{529, 200, 429, 400, 400}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("statuses: got %v, want %v", got, want)
	}
	if a, b := len(one.Requests()), len(two.Requests()); a != 4 || b != 1 {
		t.Errorf("requests: got %d and %d, want 4 and 1", a, b)
	}
}

func TestOtherPaths(t *testing.T) {
	up := upstreamtest.Start(t)
	one := up.Account("one", "key-one")
	one.Queue(upstreamtest.Overloaded()) // for /v1/messages alone
	up.OnPath("/api/oauth/usage", upstreamtest.Raw(http.StatusOK, nil, []byte(`{"five_hour":null}`)))
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"POST", "/v1/messages/count_tokens", 200, `"input_tokens"`},
		{"GET", "/v1/models", 200, `"claude-opus-5"`},
		{"HEAD", "/api/hello", 200, ""},
		{"GET", "/api/oauth/usage", 200, `{"five_hour":null}`},
		{"GET", "/v1/other", 404, `"not_found_error"`},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			req, _ := http.NewRequestWithContext(t.Context(), c.method, up.URL+c.path, nil)
			req.Header.Set("x-api-key", "key-one")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || !strings.Contains(string(b), c.body) {
				t.Errorf("got %d %s, want %d with %s", resp.StatusCode, b, c.status, c.body)
			}
		})
	}
}

// The headers a verdict is read from, as the provider was seen to send them.
func TestLimitHeaders(t *testing.T) {
	reset := time.Now().Add(2*time.Hour + 11*time.Minute)
	const u = "anthropic-ratelimit-unified-"
	unix := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	for _, c := range []struct {
		name   string
		script upstreamtest.Script
		status int
		want   map[string]string // "" means absent
	}{
		{"good plan", upstreamtest.Good(upstreamtest.Plan(0.14, reset, 0, reset.Add(time.Hour))), 200, map[string]string{
			u + "status": "allowed", u + "representative-claim": "five_hour", u + "reset": unix(reset),
			u + "5h-status": "allowed", u + "5h-utilization": "0.14", u + "5h-reset": unix(reset),
			u + "7d-status": "allowed", u + "7d-utilization": "0.0", u + "7d-reset": unix(reset.Add(time.Hour)), "retry-after": "",
		}},
		{"good key", upstreamtest.Good(upstreamtest.Key(999, 1992000, 399000, reset)), 200, map[string]string{
			"anthropic-ratelimit-requests-limit": "1000", "anthropic-ratelimit-requests-remaining": "999",
			"anthropic-ratelimit-input-tokens-remaining": "1992000", "anthropic-ratelimit-output-tokens-remaining": "399000",
			"anthropic-ratelimit-tokens-reset": reset.UTC().Format(time.RFC3339), u + "status": "",
		}},
		{"five hours spent", upstreamtest.FiveHourSpent(reset), 429, map[string]string{
			u + "status": "rejected", u + "representative-claim": "five_hour", u + "reset": unix(reset),
			u + "5h-status": "rejected", u + "5h-utilization": "1.01", u + "5h-surpassed-threshold": "1.0",
			u + "7d-status": "allowed", "x-should-retry": "true", u + "fallback-percentage": "0.5",
		}},
		{"five hours spent, tersely", upstreamtest.FiveHourSpentTersely(reset), 429, map[string]string{
			u + "5h-status": "rejected", u + "5h-reset": unix(reset), u + "status": "", u + "reset": "", "retry-after": "",
		}},
		{"week spent", upstreamtest.WeeklySpent(reset), 429, map[string]string{
			u + "status": "rejected", u + "representative-claim": "seven_day", u + "reset": unix(reset),
			u + "5h-status": "allowed", u + "7d-status": "rejected", u + "7d-reset": unix(reset),
		}},
		{"model spent", upstreamtest.ModelSpent(reset), 429, map[string]string{
			u + "status": "rejected", u + "representative-claim": "seven_day_overage_included", u + "reset": unix(reset),
			u + "5h-status": "allowed", u + "7d-status": "allowed_warning", u + "7d_oi-status": "rejected",
		}},
		{"burst", upstreamtest.Throttled(12 * time.Second), 429, map[string]string{
			u + "status": "allowed", u + "5h-status": "allowed", u + "7d-status": "allowed", "retry-after": "12",
		}},
		{"key over its tokens", upstreamtest.KeyThrottled(30 * time.Second), 429, map[string]string{
			"anthropic-ratelimit-input-tokens-remaining": "0", "retry-after": "30", u + "status": "",
		}},
		{"bare", upstreamtest.Bare(), 429, map[string]string{
			"x-should-retry": "true", "retry-after": "", u + "status": "", "anthropic-ratelimit-requests-limit": "",
		}},
		{"not entitled", upstreamtest.NotEntitled(reset), 429, map[string]string{
			"x-should-retry": "false", u + "reset": unix(reset), u + "overage-disabled-reason": "org_level_disabled", u + "status": "",
		}},
		{"overloaded", upstreamtest.Overloaded(), 529, map[string]string{"x-should-retry": "true", "retry-after": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := upstreamtest.Start(t)
			up.Account("one", "key-one").Always(c.script)
			resp, body, err := send(t, up, "key-one", whole)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status {
				t.Errorf("status: got %d, want %d", resp.StatusCode, c.status)
			}
			for name, want := range c.want {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if resp.Header.Get("request-id") == "" || resp.Header.Get("anthropic-organization-id") == "" {
				t.Errorf("ids: got %v, want request-id and anthropic-organization-id", resp.Header)
			}
			checkEnvelope(t, c.status, body)
		})
	}
}

func TestSpentTellsTheSecondsLeft(t *testing.T) {
	up := upstreamtest.Start(t)
	up.Account("one", "key-one").Always(upstreamtest.FiveHourSpent(time.Now().Add(time.Hour)))
	resp, _, err := send(t, up, "key-one", whole)
	if err != nil {
		t.Fatal(err)
	}
	left, err := strconv.Atoi(resp.Header.Get("retry-after"))
	if err != nil || left > 3600 || left < 3000 {
		t.Errorf("retry-after: got %q, want a little under 3600", resp.Header.Get("retry-after"))
	}
}

func TestRefusalsAreInTheEnvelope(t *testing.T) {
	for _, name := range upstreamtest.Refusals() {
		t.Run(name, func(t *testing.T) {
			up := upstreamtest.Start(t)
			up.Account("one", "key-one").Always(upstreamtest.Refusal(name))
			resp, body, err := send(t, up, "key-one", streamed)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode < 400 || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got %d %s, want an error in JSON", resp.StatusCode, resp.Header.Get("Content-Type"))
			}
			checkEnvelope(t, resp.StatusCode, body)
		})
	}
}

func checkEnvelope(t *testing.T, status int, body string) {
	t.Helper()
	var e struct {
		Type      string
		Error     struct{ Type, Message string }
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	if status >= 400 && (e.Type != "error" || e.Error.Type == "" || e.Error.Message == "" || e.RequestID == "") {
		t.Errorf("envelope: got %s, want type error with type, message and request_id", body)
	}
	if status < 400 && e.Type != "message" {
		t.Errorf("body: got %s, want a message", body)
	}
}

func TestStreamIsWhole(t *testing.T) {
	for _, c := range []struct {
		name string
		mods []upstreamtest.Mod
		undo func(string) string // what a legal reading makes of it
	}{
		{"plain", nil, nil},
		{"byte by byte", []upstreamtest.Mod{upstreamtest.ByteWise()}, nil},
		{"CRLF", []upstreamtest.Mod{upstreamtest.LineEnds("\r\n")}, func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }},
		{"CR", []upstreamtest.Mod{upstreamtest.LineEnds("\r")}, func(s string) string { return strings.ReplaceAll(s, "\r", "\n") }},
		{"unspaced", []upstreamtest.Mod{upstreamtest.Unspaced()}, func(s string) string {
			return strings.ReplaceAll(strings.ReplaceAll(s, "event:", "event: "), "data:", "data: ")
		}},
		{"gzip", []upstreamtest.Mod{upstreamtest.Gzip()}, gunzip},
		{"gzip, byte by byte", []upstreamtest.Mod{upstreamtest.Gzip(), upstreamtest.ByteWise()}, gunzip},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := upstreamtest.Start(t)
			message := upstreamtest.ToolCall()
			up.Account("one", "key-one").Always(upstreamtest.Message(message, nil).With(c.mods...))
			resp, got, err := send(t, up, "key-one", streamed)
			if err != nil {
				t.Fatal(err)
			}
			if resp.ContentLength != -1 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
				t.Errorf("got length %d, type %s, want an unmeasured event stream", resp.ContentLength, resp.Header.Get("Content-Type"))
			}
			if c.undo != nil {
				if plain := c.undo(got); plain == got {
					t.Error("the mod changed nothing")
				} else {
					got = plain
				}
			}
			message.Model = "claude-opus-5"
			var want strings.Builder
			for _, e := range message.Events() {
				want.Write(e.Bytes())
			}
			if got != want.String() {
				t.Errorf("got\n%s\nwant\n%s", got, want.String())
			}
		})
	}
}

func gunzip(s string) string {
	z, err := gzip.NewReader(strings.NewReader(s))
	if err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestGzipOfAnError(t *testing.T) {
	up := upstreamtest.Start(t)
	up.Account("one", "key-one").Always(upstreamtest.Bare().With(upstreamtest.Gzip()))
	resp, body, err := send(t, up, "key-one", whole)
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("got %v, %v, want a gzip-encoded body", resp.Header, err)
	}
	checkEnvelope(t, 429, gunzip(body))
}

func TestBrokenStreams(t *testing.T) {
	good := upstreamtest.Message(upstreamtest.ToolCall(), nil)
	for _, c := range []struct {
		name      string
		mod       upstreamtest.Mod
		is        error  // of reading the body
		has, hasn string // what the body holds and does not
		ends      string
	}{
		{"reset in the middle of an event", upstreamtest.ResetAfter(4, 20), syscall.ECONNRESET, "text_delta", "message_stop", "event: content_block"},
		{"reset before the first event", upstreamtest.ResetAfter(0, 0), syscall.ECONNRESET, "", "event", ""},
		{"truncated in the middle of an event", upstreamtest.TruncatedAfter(4, 20), io.ErrUnexpectedEOF, "text_delta", "message_stop", "event: content_block"},
		{"ended without message_stop", upstreamtest.EndedAfter(4), nil, "text_delta", "message_stop", "\n\n"},
		{"error before content", upstreamtest.FailedAfter(3, simulate.Failure{Type: "overloaded_error", Message: "Overloaded"}), nil,
			"event: ping", "content_block_delta", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"},
		{"error alone", upstreamtest.FailedAfter(0, simulate.Failure{Type: "rate_limit_error", Message: "x"}), nil,
			"event: error", "message_start", "\n\n"},
		{"error after content", upstreamtest.FailedAfter(4, simulate.Failure{Type: "api_error", Message: "x"}), nil,
			"text_delta", "message_stop", `"api_error","message":"x"}}` + "\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := upstreamtest.Start(t)
			up.Account("one", "key-one").Always(good.With(c.mod))
			resp, body, err := send(t, up, "key-one", streamed)
			if resp.StatusCode != 200 || !errors.Is(err, c.is) {
				t.Errorf("got %d, %v, want 200, %v", resp.StatusCode, err, c.is)
			}
			if !strings.Contains(body, c.has) || strings.Contains(body, c.hasn) || !strings.HasSuffix(body, c.ends) {
				t.Errorf("body: got\n%s\nwant %q in it, %q not, and %q at its end", body, c.has, c.hasn, c.ends)
			}
			if up.Requests()[0].ClientLeft() {
				t.Error("recorded as left by the client, who stayed")
			}
		})
	}
}

func TestGateHoldsTheHeaders(t *testing.T) {
	up := upstreamtest.Start(t)
	gate := upstreamtest.NewGate()
	up.Account("one", "key-one").Always(upstreamtest.Good(nil).With(upstreamtest.Held(gate)))
	answered := make(chan int)
	go func() {
		defer close(answered)
		if resp, err := client.Do(request(t.Context(), up, "key-one", streamed)); err == nil {
			answered <- resp.StatusCode
			_ = resp.Body.Close()
		}
	}()
	<-gate.Reached()
	select {
	case <-answered:
		t.Fatal("answered while held")
	default:
	}
	gate.Release()
	if got := <-answered; got != 200 {
		t.Errorf("status: got %d, want 200", got)
	}
}

func TestGateHoldsAStream(t *testing.T) {
	up := upstreamtest.Start(t)
	gate := upstreamtest.NewGate()
	up.Account("one", "key-one").Always(upstreamtest.Good(nil).With(upstreamtest.HeldAfter(1, gate)))
	resp := open(t, up, "key-one", streamed)
	first := make([]byte, len("event: message_start\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "event: message_start\n" {
		t.Fatalf("first event: got %q, %v", first, err)
	}
	<-gate.Reached()
	gate.Release()
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(rest, []byte("message_stop")) {
		t.Errorf("after the gate: got %q, %v, want the rest of the stream", rest, err)
	}
}

func TestSilenceEndsByItself(t *testing.T) {
	up := upstreamtest.Start(t)
	up.Account("one", "key-one").Always(upstreamtest.Good(nil).With(upstreamtest.SilentAfter(2, time.Millisecond)))
	_, body, err := send(t, up, "key-one", streamed)
	if err != nil || !strings.Contains(body, "message_stop") {
		t.Errorf("got %q, %v, want the whole stream", body, err)
	}
}

func TestClientThatLeavesIsSeen(t *testing.T) {
	for _, c := range []struct {
		name string
		mod  func(*upstreamtest.Gate) upstreamtest.Mod
	}{
		{"before the headers", upstreamtest.Held},
		{"in the middle", func(g *upstreamtest.Gate) upstreamtest.Mod { return upstreamtest.HeldAfter(4, g) }},
		{"in a silence", func(g *upstreamtest.Gate) upstreamtest.Mod {
			silent, held := upstreamtest.SilentAfter(1, time.Hour), upstreamtest.HeldAfter(0, g)
			return func(a *upstreamtest.Answer) { silent(a); held(a); g.Release() }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := upstreamtest.Start(t)
			gate := upstreamtest.NewGate()
			up.Account("one", "key-one").Always(upstreamtest.Good(nil).With(c.mod(gate)))
			ctx, leave := context.WithCancel(t.Context())
			req := request(ctx, up, "key-one", streamed)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if resp, err := client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}()
			<-gate.Reached()
			leave()
			<-done
			got := up.Requests()[0]
			<-got.Left()
			<-got.Ended()
			if !got.ClientLeft() {
				t.Error("ClientLeft: got false, want true")
			}
		})
	}
}

func TestAwait(t *testing.T) {
	up := upstreamtest.Start(t)
	up.Account("one", "key-one")
	got := make(chan int)
	go func() {
		requests, _ := up.Await(t.Context(), 2)
		got <- len(requests)
	}()
	for range 2 {
		if _, _, err := send(t, up, "key-one", whole); err != nil {
			t.Fatal(err)
		}
	}
	if n := <-got; n != 2 {
		t.Errorf("requests: got %d, want 2", n)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := up.Await(ended, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("a third that never comes: got %v, want context.Canceled", err)
	}
}

func TestCloseGivesUpHeldAnswers(t *testing.T) {
	up := upstreamtest.Start(t)
	gate := upstreamtest.NewGate()
	up.Account("one", "key-one").Always(upstreamtest.Good(nil).With(upstreamtest.HeldAfter(1, gate)))
	open(t, up, "key-one", streamed)
	<-gate.Reached()
	// The test ends here: Start's cleanup must not wait for the gate.
}
