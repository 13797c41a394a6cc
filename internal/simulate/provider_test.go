package simulate_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/simulate"
)

var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

// clock is a clock a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) utilization(t *testing.T, window string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(a.header.Get("anthropic-ratelimit-unified-"+window+"-utilization"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (a answer) reset(t *testing.T, window string) time.Time {
	t.Helper()
	n, err := strconv.ParseInt(a.header.Get("anthropic-ratelimit-unified-"+window+"-reset"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(n, 0)
}

func (a answer) usage(t *testing.T) (u struct {
	Input int64 `json:"input_tokens"`
	Write int64 `json:"cache_creation_input_tokens"`
	Read  int64 `json:"cache_read_input_tokens"`
	Out   int64 `json:"output_tokens"`
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &struct{ Usage any }{&u}); err != nil {
		t.Fatal(err)
	}
	return u
}

func ask(p http.Handler, method, path, body string, headers ...string) answer {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func turn(messages int, more string) string {
	return fmt.Sprintf(`{"model":"claude-opus-5","max_tokens":64%s,"messages":[%s]}`, more,
		strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"hello there, how are you"},`, messages), ","))
}

func TestAccountsAreToldApart(t *testing.T) {
	p := simulate.New(nil)
	accounts := simulate.Accounts()
	organizations := map[string]bool{}
	for _, a := range accounts {
		for _, header := range [][2]string{{"x-api-key", a.Credential}, {"Authorization", "Bearer " + a.Credential}, {"Authorization", "bearer " + a.Credential}} {
			got := ask(p, "POST", "/v1/messages?beta=true", turn(3, ""), header[0], header[1])
			if got.status != 200 || !strings.Contains(got.body, a.Name) {
				t.Errorf("%s with %s: got %d %s, want 200 naming the account", a.Name, header[0], got.status, got.body)
			}
			for _, want := range []string{"simulation", "no model was asked", "3 messages"} {
				if !strings.Contains(got.body, want) {
					t.Errorf("text: got %s, want %q in it", got.body, want)
				}
			}
			organizations[got.header.Get("anthropic-organization-id")] = true
		}
	}
	if len(organizations) != len(accounts) {
		t.Errorf("organizations: got %v, want one for each account", organizations)
	}
	for _, header := range [][2]string{{"x-api-key", "other"}, {"Authorization", "Basic " + accounts[0].Credential}, {"x-other", "none"}} {
		got := ask(p, "POST", "/v1/messages", turn(1, ""), header[0], header[1])
		if got.status != 401 || !strings.Contains(got.body, "authentication_error") {
			t.Errorf("%v: got %d %s, want 401 authentication_error", header, got.status, got.body)
		}
	}
}

func TestAnswers(t *testing.T) {
	p := simulate.New(nil)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		contentType              string
		has                      string
	}{
		{"message", "POST", "/v1/messages", turn(1, ""), 200, "application/json", `1 message.`},
		{"stream", "POST", "/v1/messages", turn(1, `,"stream":true`), 200, "text/event-stream; charset=utf-8", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
		{"title", "POST", "/v1/messages", turn(1, `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"title":{"type":"string"}}}}}`),
			200, "application/json", `{\"title\":\"Simulated conversation\"}`},
		{"probe", "POST", "/v1/messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"quota"}]}`, 200, "application/json", `"stop_reason":"max_tokens"`},
		{"no model", "POST", "/v1/messages", `{"messages":[{}]}`, 400, "application/json", `model: Field required`},
		{"no messages", "POST", "/v1/messages", `{"model":"m"}`, 400, "application/json", `messages: Field required`},
		{"not JSON", "POST", "/v1/messages", `hello`, 400, "application/json", `invalid_request_error`},
		{"count", "POST", "/v1/messages/count_tokens", turn(1, ""), 200, "application/json", `{"input_tokens":`},
		{"models", "GET", "/v1/models?limit=1000", "", 200, "application/json", `"id":"claude-opus-5"`},
		{"one model", "GET", "/v1/models/claude-opus-5", "", 200, "application/json", `"id":"claude-opus-5"`},
		{"unknown model", "GET", "/v1/models/other", "", 404, "application/json", `not_found_error`},
		{"warm-up", "HEAD", "/api/hello", "", 200, "", ""},
		{"warm-up of older clients", "HEAD", "/", "", 200, "", ""},
		{"unknown path", "GET", "/v1/other", "", 404, "application/json", `not_found_error`},
		{"wrong method", "GET", "/v1/messages", "", 404, "application/json", `not_found_error`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(p, c.method, c.path, c.body, "x-api-key", simulate.Accounts()[0].Credential)
			if got.status != c.status || got.header.Get("Content-Type") != c.contentType || !strings.Contains(got.body, c.has) {
				t.Errorf("got %d %s %s, want %d %s with %s", got.status, got.header.Get("Content-Type"), got.body, c.status, c.contentType, c.has)
			}
			if c.contentType != "" && got.header.Get("request-id") == "" {
				t.Error("request-id: got none")
			}
		})
	}
}

func TestLimitsMove(t *testing.T) {
	c := &clock{t0}
	p := simulate.New(c.Now)
	key := simulate.Accounts()[0].Credential
	big := turn(15000, "") // about two hundred thousand tokens: ten percent of five hours
	first := ask(p, "POST", "/v1/messages", big, "x-api-key", key)
	second := ask(p, "POST", "/v1/messages", big, "x-api-key", key)
	for _, name := range []string{"status", "5h-status", "7d-status"} {
		if got := second.header.Get("anthropic-ratelimit-unified-" + name); got != "allowed" {
			t.Errorf("%s: got %q, want allowed", name, got)
		}
	}
	if a, b := first.utilization(t, "5h"), second.utilization(t, "5h"); b <= a {
		t.Errorf("5h: got %v and then %v, want it to rise", a, b)
	}
	// A prompt read from the cache costs a tenth of one that is written, and not nothing.
	third := ask(p, "POST", "/v1/messages", big, "x-api-key", key)
	if a, b := second.utilization(t, "5h")-first.utilization(t, "5h"), third.utilization(t, "5h")-second.utilization(t, "5h"); b <= 0 || b > a/2 {
		t.Errorf("5h: rose by %v with a write and then by %v with a read, want less but something", a, b)
	}
	for _, window := range []string{"5h", "7d"} {
		if reset := second.reset(t, window); !reset.After(t0) || !reset.Equal(first.reset(t, window)) {
			t.Errorf("%s reset: got %v and %v, want one instant after %v", window, first.reset(t, window), reset, t0)
		}
	}

	// The other account's windows are its own.
	other := simulate.Accounts()[1].Credential
	if a, b := ask(p, "POST", "/v1/messages", "{", "x-api-key", other), ask(p, "POST", "/v1/messages", turn(1, ""), "x-api-key", other); a.status != 400 ||
		b.utilization(t, "5h") != 0.04 {
		t.Errorf("5h of the other account: got %v, want its start, 0.04", b.utilization(t, "5h"))
	}

	// However much is asked, nobody is refused.
	for range 12 {
		second = ask(p, "POST", "/v1/messages", big, "x-api-key", key, "x-claude-code-session-id", fmt.Sprint(second.header.Get("request-id")))
	}
	if got := second.utilization(t, "5h"); second.status != 200 || got != 0.95 {
		t.Errorf("after many requests: got %d at %v, want 200 at 0.95", second.status, got)
	}

	// A window starts again at its reset, and not an instant sooner.
	reset := second.reset(t, "5h")
	c.now = reset.Add(-1)
	if got := ask(p, "POST", "/v1/messages", big, "x-api-key", key).utilization(t, "5h"); got != 0.95 {
		t.Errorf("just before the reset: got %v, want 0.95", got)
	}
	c.now = reset
	fresh := ask(p, "POST", "/v1/messages", big, "x-api-key", key)
	if got := fresh.utilization(t, "5h"); got != 0 {
		t.Errorf("at the reset: got %v, want 0", got)
	}
	if got, want := fresh.reset(t, "5h"), reset.Add(5*time.Hour); !got.Equal(want) {
		t.Errorf("next reset: got %v, want %v", got, want)
	}
	c.now = reset.Add(11 * time.Hour) // two windows have gone by unused
	if got, want := ask(p, "POST", "/v1/messages", big, "x-api-key", key).reset(t, "5h"), reset.Add(15*time.Hour); !got.Equal(want) {
		t.Errorf("reset after a pause: got %v, want %v", got, want)
	}
}

func TestUsageFollowsTheCache(t *testing.T) {
	c := &clock{t0}
	p := simulate.New(c.Now)
	accounts := simulate.Accounts()
	send := func(messages, account int, session string) answer {
		return ask(p, "POST", "/v1/messages", turn(messages, ""), "x-api-key", accounts[account].Credential, "x-claude-code-session-id", session)
	}
	first := send(100, 0, "a").usage(t)
	if first.Read != 0 || first.Write == 0 || first.Out == 0 {
		t.Errorf("first turn: got %+v, want a write and no read", first)
	}
	prompt := first.Input + first.Write
	second := send(102, 0, "a").usage(t)
	if second.Read != first.Write || second.Input+second.Read+second.Write <= prompt {
		t.Errorf("second turn: got %+v, want a read of %d and a longer prompt", second, first.Write)
	}
	if u := send(102, 0, "b").usage(t); u.Read != 0 {
		t.Errorf("another conversation: got %+v, want no read", u)
	}
	if u := send(102, 1, "a").usage(t); u.Read != 0 {
		t.Errorf("another account: got %+v, want no read", u)
	}
	c.now = t0.Add(5*time.Minute - 1)
	if u := send(102, 0, "a").usage(t); u.Read == 0 {
		t.Errorf("within the cache's life: got %+v, want a read", u)
	}
	c.now = c.now.Add(5 * time.Minute)
	if u := send(102, 0, "a").usage(t); u.Read != 0 {
		t.Errorf("after the cache's life: got %+v, want no read", u)
	}
	if u := send(1, 1, "a").usage(t); u.Input <= 0 || u.Write < 0 || u.Read < 0 {
		t.Errorf("a shorter prompt than the cached one: got %+v, want nothing negative", u)
	}
}

func TestBodyOverTheLimit(t *testing.T) {
	r := httptest.NewRequest("POST", "/v1/messages", io.LimitReader(zeros{}, 33<<20))
	r.Header.Set("x-api-key", simulate.Accounts()[0].Credential)
	w := httptest.NewRecorder()
	simulate.New(nil).ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "request_too_large") {
		t.Errorf("got %d %s, want 413 request_too_large", w.Code, w.Body)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
