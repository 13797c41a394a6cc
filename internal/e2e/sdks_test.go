package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/test/upstreamtest"
)

// The official SDKs for TypeScript and Python with nothing set but their base URL and key. The
// scripts that drive them are in testdata.

// languages are the SDKs' scripts, each with what runs it.
func languages(t *testing.T) map[string]func(b *bench, check string) result {
	t.Helper()
	tools := os.Getenv("HOLDFAST_TEST_TOOLS")
	if tools == "" {
		t.Skip("NOT TESTED: the SDKs are installed by `make test`, which sets HOLDFAST_TEST_TOOLS")
	}
	node, err := filepath.Abs(filepath.Join("testdata", "sdk.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	python, err := filepath.Abs(filepath.Join("testdata", "sdk.py"))
	if err != nil {
		t.Fatal(err)
	}
	run := func(b *bench, check string, more []string, path string, script string) result {
		env := append([]string{"PATH=" + basePath, "HOME=" + b.t.TempDir()}, more...)
		return command(b.t, b.t.TempDir(), env, path, script, check, b.front.url, b.key)
	}
	return map[string]func(*bench, string) result{
		"TypeScript": func(b *bench, check string) result {
			return run(b, check, []string{"NODE_PATH=" + filepath.Join(tools, "sdk", "node_modules")}, "node", node)
		},
		"Python": func(b *bench, check string) result {
			return run(b, check, nil, filepath.Join(tools, "sdk", "python", "bin", "python"), python)
		},
	}
}

// made is what a check printed.
func made(t *testing.T, r result) (values []string) {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("the SDK failed:\n%s", r.all())
	}
	if err := json.Unmarshal([]byte(r.stdout), &values); err != nil {
		t.Fatalf("got %q: %v", r.stdout, err)
	}
	return values
}

// TestFilesInOtherLanguages is field case pages-of-one-listing with the SDKs for TypeScript and
// Python: each lists the eight files of one account.
func TestFilesInOtherLanguages(t *testing.T) {
	for language, run := range languages(t) {
		t.Run(language, func(t *testing.T) {
			b, _ := openAIKeys(t)
			b.one.OnPath("/v1/files", filePages("one"))
			b.two.OnPath("/v1/files", filePages("two"))
			ids := made(t, run(b, "files"))
			if len(ids) != 8 || ids[0][:len("file-one")] != ids[7][:len("file-one")] {
				t.Errorf("got %v, want the eight files of one account", ids)
			}
		})
	}
}

// TestResultsInOtherLanguages is field case results-elsewhere with the SDKs for TypeScript and
// Python, which read a batch's results by the link in it: it leads to the gateway.
func TestResultsInOtherLanguages(t *testing.T) {
	for language, run := range languages(t) {
		t.Run(language, func(t *testing.T) {
			b := withAccounts(t)
			const batch = "/v1/messages/batches"
			media := http.Header{"Content-Type": {"application/json"}}
			for _, a := range []*upstreamtest.Account{b.one, b.two} {
				a.OnPath(batch, upstreamtest.Raw(http.StatusOK, media, []byte(`{"id":"msgbatch_1","type":"message_batch","processing_status":"in_progress","results_url":null}`)))
				a.OnPath(batch+"/msgbatch_1", upstreamtest.Raw(http.StatusOK, media,
					[]byte(`{"id":"msgbatch_1","type":"message_batch","processing_status":"ended","results_url":"https://api.anthropic.com`+batch+`/msgbatch_1/results"}`)))
				a.OnPath(batch+"/msgbatch_1/results", upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/x-jsonl"}}, []byte(`{"custom_id":"a","result":{"type":"canceled"}}`+"\n")))
			}
			b.serve()
			if ids := made(t, run(b, "results")); !slices.Equal(ids, []string{"a"}) {
				t.Errorf("got %v, want the result of a", ids)
			}
		})
	}
}

// storedResponse answers with a response of an account's own. A request that names one of
// another account's finds nothing.
func storedResponse(owner string) upstreamtest.Script {
	n := 0
	var mu sync.Mutex
	return func(r *upstreamtest.Request) upstreamtest.Answer {
		mu.Lock()
		defer mu.Unlock()
		n++
		body := string(r.Plain())
		for _, other := range []string{"one", "two"} {
			if other != owner && strings.Contains(body, "_"+other) {
				return upstreamtest.Raw(http.StatusNotFound, http.Header{"Content-Type": {"application/json"}}, []byte(`{"error":{"message":"not found","type":"invalid_request_error","code":null,"param":null}}`))(r)
			}
		}
		text := fmt.Sprintf(`{"id":"resp_%s%d","object":"response","created_at":1,"status":"completed","model":"gpt-5.5","output":[{"type":"message","id":"msg_%[1]s%[2]d","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello","annotations":[]}]}],"parallel_tool_calls":true,"tools":[],"tool_choice":"auto","usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}}`, owner, n)
		return upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(text))(r)
	}
}

// TestStoredItemsInOtherLanguages is field case stored-items-by-id with the SDKs for TypeScript
// and Python: a response is continued by its id, and by reference to its item, at the account
// that stored it.
func TestStoredItemsInOtherLanguages(t *testing.T) {
	for language, run := range languages(t) {
		t.Run(language, func(t *testing.T) {
			b, _ := openAIKeys(t)
			b.one.Always(storedResponse("one"))
			b.two.Always(storedResponse("two"))
			for range 3 { // whoever the first turn goes to
				made(t, run(b, "stored"))
			}
		})
	}
}

// TestSilenceInOtherLanguages is field case keep-alive-in-the-client's-dialect with the SDKs for
// TypeScript and Python: what keeps a silent stream alive is no event to them.
func TestSilenceInOtherLanguages(t *testing.T) {
	const silence = 2500 * time.Millisecond // two signs of life, a second apart
	checks := map[string]struct {
		bench func(*testing.T) *bench
		first string // event
	}{
		"messages":  {func(t *testing.T) *bench { return withAccounts(t) }, "message_start"},
		"responses": {func(t *testing.T) *bench { b, _ := openAIKeys(t); return b }, "response.created"},
		"chat":      {func(t *testing.T) *bench { b, _ := openAIKeys(t); return b }, "chat.completion.chunk"},
	}
	for language, run := range languages(t) {
		for check, c := range checks {
			t.Run(language+" "+check, func(t *testing.T) {
				t.Parallel()
				b := c.bench(t)
				if check == "messages" {
					b.serve()
				}
				b.run(nil, "settings", "set", "keep_alive", "1s")
				good := upstreamtest.Good(nil)
				if check != "messages" {
					good = upstreamtest.OpenAIGood(upstreamtest.OpenAIKey(480, 29_000))
				}
				for _, a := range []*upstreamtest.Account{b.one, b.two} {
					a.Always(good)
				}
				plain := made(t, run(b, check))
				for _, a := range []*upstreamtest.Account{b.one, b.two} {
					a.Always(good.With(upstreamtest.SilentAfter(3, silence)))
				}
				silent := made(t, run(b, check))
				if len(plain) < 3 || plain[0] != c.first || !slices.Equal(plain, silent) {
					t.Errorf("got the events %v with a silence, want %v", silent, plain)
				}
			})
		}
	}
}
