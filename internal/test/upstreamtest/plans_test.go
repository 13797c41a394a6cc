package upstreamtest_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"holdfast/internal/test/upstreamtest"
)

// ask sends a request and returns the whole answer.
func ask(t *testing.T, method, url, token, body string, header ...string) (answer, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{StatusCode: resp.StatusCode, Header: resp.Header}, string(b)
}

const codexBody = `{"model":"gpt-5.5","stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":[]}`

func TestOpenAI(t *testing.T) {
	up := upstreamtest.StartOpenAI(t)
	one := up.Account("one", "token-one")
	up.Account("two", "token-two")
	reset := time.Now().Add(time.Hour)
	one.Queue(upstreamtest.OpenAIGood(nil), upstreamtest.UsageLimitReached(reset), upstreamtest.OpenAIKeyThrottled(2*time.Second))
	one.OnPath(upstreamtest.CodexUsage, upstreamtest.CodexUsed(12, reset, 34, reset.Add(time.Hour)))
	backend := up.URL + upstreamtest.CodexResponses
	for _, c := range []struct {
		name, url, token, body string
		status                 int
		says                   string
	}{
		{"a turn", backend, "token-one", codexBody, 200, `"encrypted_content":"enc-made-by-one-000000"`},
		{"a spent plan", backend, "token-one", codexBody, 429, `"usage_limit_reached"`},
		{"a throttled key", up.URL + "/v1/responses", "token-one", codexBody, 429, `"rate_limit_exceeded"`},
		{"stored", backend, "token-one", `{"stream":true}`, 400, "Store must be set to false"},
		{"no stream", backend, "token-one", `{"store":false}`, 400, "Stream must be set to true"},
		{"another's reasoning", backend, "token-two", `{"store":false,"stream":true,"input":"enc-made-by-one-000000"}`, 400, "invalid_encrypted_content"},
		{"its own reasoning", backend, "token-one", `{"store":false,"stream":true,"input":"enc-made-by-one-000000"}`, 200, "response.completed"},
		{"whole", up.URL + "/v1/responses", "token-two", `{"model":"gpt-5.5"}`, 200, `"status":"completed"`},
		{"chat", up.URL + "/v1/chat/completions", "token-two", `{"model":"gpt-5.5","stream":true}`, 200, "[DONE]"},
		{"a strange token", backend, "token-three", codexBody, 401, "token_expired"},
		{"a strange key", up.URL + "/v1/responses", "token-three", codexBody, 401, "invalid_api_key"},
		{"usage", up.URL + upstreamtest.CodexUsage, "token-one", "", 200, `"used_percent":34`},
		{"no usage", up.URL + upstreamtest.CodexUsage, "token-two", "", 404, "Invalid URL"},
		{"models", up.URL + "/v1/models", "token-two", "", 200, `"gpt-5.5"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, body := ask(t, http.MethodPost, c.url, c.token, c.body)
			if got.StatusCode != c.status || !strings.Contains(body, c.says) {
				t.Errorf("got %d and %s, want %d and %s in it", got.StatusCode, body, c.status, c.says)
			}
		})
	}
}

func TestXAI(t *testing.T) {
	up := upstreamtest.StartXAI(t)
	one := up.Account("one", "token-one")
	up.Account("key", "xai-key")
	one.OnPath(upstreamtest.GrokUsage, upstreamtest.GrokUsed(0, time.Now()))
	login := []string{"x-xai-token-auth", "xai-grok-cli", "x-grok-client-version", "1.0.41"}
	for _, c := range []struct {
		name, path, token, body string
		header                  []string
		status                  int
		says                    string
	}{
		{"a turn", "/v1/responses", "token-one", codexBody, login, 200, "response.completed"},
		{"no marker", "/v1/responses", "token-one", codexBody, nil, 403, "Access to the chat endpoint"},
		{"no version", "/v1/responses", "token-one", codexBody, login[:2], 426, "outdated"},
		{"a key", "/v1/chat/completions", "xai-key", `{"model":"grok-4.6"}`, nil, 200, "chat.completion"},
		{"another's reasoning", "/v1/responses", "xai-key", "enc-made-by-one-000000", nil, 400, "Could not decrypt"},
		{"a strange token", "/v1/responses", "token-three", codexBody, login, 403, "unauthenticated:bad-credentials"},
		{"usage", upstreamtest.GrokUsage + "?format=credits", "token-one", "", nil, 200, "USAGE_PERIOD_TYPE_WEEKLY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, body := ask(t, http.MethodPost, up.URL+c.path, c.token, c.body, c.header...)
			if got.StatusCode != c.status || !strings.Contains(body, c.says) || strings.Contains(body, "creditUsagePercent") {
				t.Errorf("got %d and %s, want %d and %s in it", got.StatusCode, body, c.status, c.says)
			}
		})
	}
}

// A refresh token does once; the account is then known by what it was exchanged for.
func TestExchange(t *testing.T) {
	for _, c := range []struct {
		name  string
		up    *upstreamtest.Upstream
		path  string
		body  string
		again int
	}{
		{"Anthropic", upstreamtest.Start(t), "/v1/oauth/token", `{"grant_type":"refresh_token","refresh_token":"refresh-one"}`, 400},
		{"OpenAI", upstreamtest.StartOpenAI(t), upstreamtest.OpenAIToken, `{"grant_type":"refresh_token","refresh_token":"refresh-one"}`, 401},
		{"xAI", upstreamtest.StartXAI(t), upstreamtest.XAIToken, "grant_type=refresh_token&refresh_token=refresh-one", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := c.up.Account("one", "old")
			one.Renewable("refresh-one", upstreamtest.Grant{Access: "new", Refresh: "refresh-two", Ends: time.Now().Add(time.Hour)})
			if got, _ := ask(t, http.MethodGet, c.up.URL+"/v1/models", "old", ""); got.StatusCode != 200 {
				t.Errorf("before: got %d, want 200", got.StatusCode)
			}
			got, body := ask(t, http.MethodPost, c.up.URL+c.path, "", c.body)
			if got.StatusCode != 200 || !strings.Contains(body, `"access_token":"new"`) || !strings.Contains(body, `"refresh_token":"refresh-two"`) {
				t.Errorf("exchange: got %d and %s", got.StatusCode, body)
			}
			if got, _ := ask(t, http.MethodPost, c.up.URL+c.path, "", c.body); got.StatusCode != c.again {
				t.Errorf("a second exchange: got %d, want %d", got.StatusCode, c.again)
			}
			if got, _ := ask(t, http.MethodGet, c.up.URL+"/v1/models", "old", ""); got.StatusCode < 400 {
				t.Errorf("the old token: got %d, want a refusal", got.StatusCode)
			}
			if got, _ := ask(t, http.MethodGet, c.up.URL+"/v1/models", "new", ""); got.StatusCode != 200 {
				t.Errorf("the new token: got %d, want 200", got.StatusCode)
			}
			one.Known("newer")
			if got, _ := ask(t, http.MethodGet, c.up.URL+"/v1/models", "newer", ""); got.StatusCode != 200 {
				t.Errorf("a newer token: got %d, want 200", got.StatusCode)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	up := upstreamtest.StartOpenAI(t)
	one := up.Account("one", "token-one")
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	ask(t, http.MethodPost, up.URL+upstreamtest.CodexResponses, "token-one", string(encoder.EncodeAll([]byte(codexBody), nil)), "Content-Encoding", "zstd")
	got := one.Requests()
	if len(got) != 1 || string(got[0].Plain()) != codexBody || got[0].Model != "gpt-5.5" || !got[0].Stream {
		t.Errorf("got %+v, want it read without its coding", got)
	}
}

func TestJWT(t *testing.T) {
	token := upstreamtest.JWT(map[string]any{"sub": "somebody"})
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("got %q, want three parts", token)
	}
	if claims, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || string(claims) != `{"sub":"somebody"}` {
		t.Errorf("claims: got %s, %v", claims, err)
	}
}
