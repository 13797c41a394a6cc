package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/test/upstreamtest"
)

// TestAReplayIsNoEvidence is field case a-replay-is-no-evidence: what is read again, as a
// stream or as a whole, tells how it went when it was made. Its failures, its limits and its
// usage change nothing; the status of the reading itself does.
func TestAReplayIsNoEvidence(t *testing.T) {
	failing := func(code string) string {
		return `{"type":"response.failed","response":{"id":"resp_1","object":"response","status":"failed","error":{"code":"` + code + `","message":"You exceeded your current quota."},"usage":{"input_tokens":1000,"output_tokens":9}}}`
	}
	limits := `{"type":"codex.rate_limits","plan_type":"plus","rate_limits":{"allowed":false,"limit_reached":true,"primary":{"used_percent":100,"window_minutes":300,"reset_after_seconds":9000}}}`
	created := `{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","store":true}}`
	delta := `{"type":"response.output_text.delta","delta":"Hello."}`
	replays := map[string]struct {
		path   string
		script upstreamtest.Script
	}{
		"no money":               {"/v1/responses/resp_1?stream=true&starting_after=0", streamed(created, failing("insufficient_quota"))},
		"no money after content": {"/v1/responses/resp_1?stream=true&starting_after=0", streamed(created, delta, failing("insufficient_quota"))},
		"a limit":                {"/v1/responses/resp_1?stream=true", streamed(created, delta, failing("rate_limit_exceeded"))},
		"a spent window":         {"/v1/responses/resp_1?stream=true", streamed(limits, created, delta, failing("usage_limit_reached"))},
		"a whole":                {"/v1/responses/resp_1", jsonAnswer(http.StatusOK, nil, `{"id":"resp_1","object":"response","status":"failed","error":{"code":"insufficient_quota","message":"You exceeded your current quota."},"output":[]}`)},
		"a stored chat":          {"/v1/chat/completions/chatcmpl-1", jsonAnswer(http.StatusOK, nil, `{"id":"chatcmpl-1","object":"chat.completion","error":{"code":"insufficient_quota","message":"You exceeded your current quota."}}`)},
		"an error event":         {"/v1/threads/thread_1/runs/run_1", streamed(`{"error":{"code":"insufficient_quota","message":"You exceeded your current quota.","type":"insufficient_quota"}}`)},
	}
	for _, p := range []account.Provider{account.OpenAI, account.XAI} {
		for name, r := range replays {
			t.Run(string(p)+" "+name, func(t *testing.T) {
				b := keyBench(t, p, "tansy")
				before := b.state("tansy").State
				for range 2 {
					path, _, _ := strings.Cut(r.path, "?")
					b.account("tansy").OnPath(path, r.script)
					got := b.do(plainAsk("GET", "/"+string(p)+r.path, ""))
					if got.status != http.StatusOK {
						t.Fatalf("got %d %s, want it passed on", got.status, got.body)
					}
				}
				b.await("the requests' lines", func() bool { return strings.Count(b.log.String(), `"outcome":`) == 2 })
				after := b.state("tansy").State
				if after.Parked != nil || len(after.Blocks) > len(before.Blocks) || after.Windows[account.FiveHour] != before.Windows[account.FiveHour] {
					t.Errorf("got parked %+v, blocks %+v, windows %+v, want nothing learnt", after.Parked, after.Blocks, after.Windows)
				}
				if strings.Contains(b.log.String(), `"input_tokens":1000`) {
					t.Error("usage was counted again")
				}
			})
		}
	}
}

// The status with which something is read again is of now.
func TestReadingAgainIsRefusedNow(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy")
	b.account("tansy").OnPath("/v1/responses/resp_1", jsonAnswer(http.StatusUnauthorized, nil, `{"error":{"message":"Incorrect API key provided.","code":"invalid_api_key","type":"invalid_request_error"}}`))
	b.do(plainAsk("GET", "/v1/responses/resp_1?stream=true", ""))
	if b.state("tansy").State.Parked == nil {
		t.Error("got no parked account after a 401")
	}
	b = keyBench(t, account.OpenAI, "tansy")
	b.account("tansy").OnPath("/v1/responses/resp_1", jsonAnswer(http.StatusTooManyRequests, http.Header{"Retry-After": {"30"}, "X-Ratelimit-Limit-Requests": {"10"}}, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`))
	b.do(plainAsk("GET", "/v1/responses/resp_1?stream=true", ""))
	if len(b.state("tansy").State.Blocks) == 0 {
		t.Error("got no pause after a 429")
	}
}
