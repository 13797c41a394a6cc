package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"holdfast/internal/test/upstreamtest"
)

// The official SDKs with nothing set but their base URL and key.

// They are for the tests alone.
func TestProgramsLinkNoSDK(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./functions/...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "holdfast/internal/request/gateway") {
		t.Fatalf("go list: %v: %s", err, out)
	}
	for _, sdk := range []string{"github.com/openai/", "github.com/anthropics/"} {
		if strings.Contains(string(out), sdk) {
			t.Errorf("the programs link a package of %s", sdk)
		}
	}
}

// openAIKeys makes a bench with two keys of OpenAI's, and the SDK.
func openAIKeys(t *testing.T) (*bench, openai.Client) {
	t.Helper()
	b := newBenchOn(t, upstreamtest.StartOpenAI(t))
	b.one, b.two = b.addKeyOf("openai", "one", "sk-proj-e2e-one-SECRET"), b.addKeyOf("openai", "two", "sk-proj-e2e-two-SECRET")
	for _, a := range []*upstreamtest.Account{b.one, b.two} {
		a.Always(upstreamtest.OpenAIGood(upstreamtest.OpenAIKey(480, 29_000)))
	}
	b.serve()
	return b, openai.NewClient(openaioption.WithBaseURL(b.front.url+"/v1"), openaioption.WithAPIKey(b.key))
}

func input(text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "gpt-5.5", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

func chat(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "gpt-5.5", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
}

// said checks what an SDK made of the answer to the nth request upstream.
func (b *bench) said(what string, n int, text string, input, output int64) {
	b.t.Helper()
	requests := b.up.Requests()
	if len(requests) <= n {
		b.t.Fatalf("%s: got %d requests upstream, want more than %d", what, len(requests), n)
	}
	if want := upstreamtest.Text(requests[n]); text != want || input != 1200 || output != 17 {
		b.t.Errorf("%s: got %q for %d and %d tokens, want %q for 1200 and 17", what, text, input, output, want)
	}
}

func TestOpenAISDK(t *testing.T) {
	b, client := openAIKeys(t)
	ctx := t.Context()

	whole, err := client.Responses.New(ctx, input("hello"))
	if err != nil {
		t.Fatal(err)
	}
	b.said("a response", 0, whole.OutputText(), whole.Usage.InputTokens, whole.Usage.OutputTokens)

	stream := client.Responses.NewStreaming(ctx, input("hello, streamed"))
	text := ""
	var completed responses.Response
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "response.output_text.delta":
			text += event.Delta
		case "response.completed":
			completed = event.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	b.said("a streamed response", 1, text, completed.Usage.InputTokens, completed.Usage.OutputTokens)

	completion, err := client.Chat.Completions.New(ctx, chat("hello"))
	if err != nil {
		t.Fatal(err)
	}
	b.said("a completion", 2, completion.Choices[0].Message.Content, completion.Usage.PromptTokens, completion.Usage.CompletionTokens)

	chunks := client.Chat.Completions.NewStreaming(ctx, chat("hello, streamed"))
	var all openai.ChatCompletionAccumulator
	for chunks.Next() {
		if !all.AddChunk(chunks.Current()) {
			t.Error("a chunk does not belong to the completion")
		}
	}
	if err := chunks.Err(); err != nil {
		t.Fatal(err)
	}
	b.said("a streamed completion", 3, all.Choices[0].Message.Content, all.Usage.PromptTokens, all.Usage.CompletionTokens)

	list, err := client.Models.List(ctx)
	if err != nil || len(list.Data) != 1 || list.Data[0].ID != "gpt-5.5" {
		t.Errorf("models: got %+v, %v", list, err)
	}
}

func TestOpenAISDKErrors(t *testing.T) {
	for _, c := range []struct {
		name     string
		script   upstreamtest.Script
		status   int
		code     string // the error's, as the SDK has it
		word     string // X-Holdfast-Error
		requests int    // of the SDK
	}{
		// Longer than the SDK waits, so it does not ask again.
		{"all throttled", upstreamtest.OpenAIKeyThrottled(4 * time.Minute), 429, "rate_limit_exceeded", "", 1},
		{"all out of credits", upstreamtest.OpenAIRefusal("quota"), 503, "no_account", "no_account", 1},
		{"an unknown model", upstreamtest.OpenAIRefusal("unknown-model"), 404, "model_not_found", "", 1},
		// The provider's own trouble: asked again, three times in all, as the SDK always does.
		{"overloaded", upstreamtest.OpenAIRefusal("overloaded"), 503, "server_is_overloaded", "", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, client := openAIKeys(t)
			b.one.Always(c.script)
			b.two.Always(c.script)
			_, err := client.Responses.New(t.Context(), input("hello"))
			var failure *openai.Error
			if !errors.As(err, &failure) {
				t.Fatalf("got %v, want the SDK's error", err)
			}
			seen := b.front.exchanges()
			if failure.StatusCode != c.status || failure.Code != c.code || failure.Message == "" || seen[0].answered.Get("X-Holdfast-Error") != c.word {
				t.Errorf("got status %d, code %q, message %q and X-Holdfast-Error %q, want %d, %q and %q",
					failure.StatusCode, failure.Code, failure.Message, seen[0].answered.Get("X-Holdfast-Error"), c.status, c.code, c.word)
			}
			if len(seen) != c.requests {
				t.Errorf("requests of the SDK: got %d, want %d", len(seen), c.requests)
			}
		})
	}
	t.Run("overloaded once", func(t *testing.T) {
		b, client := openAIKeys(t)
		b.one.Queue(upstreamtest.OpenAIRefusal("overloaded"))
		b.two.Queue(upstreamtest.OpenAIRefusal("overloaded"))
		got, err := client.Responses.New(t.Context(), input("hello"))
		if err != nil {
			t.Fatal(err)
		}
		seen := b.front.exchanges()
		if len(seen) != 2 || seen[0].status != http.StatusServiceUnavailable || seen[0].account() != seen[1].account() {
			t.Errorf("got %d requests of the SDK, want a second one to the same account", len(seen))
		}
		b.said("a response", 1, got.OutputText(), got.Usage.InputTokens, got.Usage.OutputTokens)
	})
	t.Run("a wrong key", func(t *testing.T) {
		b, _ := openAIKeys(t)
		client := openai.NewClient(openaioption.WithBaseURL(b.front.url+"/v1"), openaioption.WithAPIKey("hf_wrong"))
		_, err := client.Responses.New(t.Context(), input("hello"))
		if failure := (*openai.Error)(nil); !errors.As(err, &failure) || failure.StatusCode != http.StatusUnauthorized {
			t.Errorf("got %v, want the SDK's error with status 401", err)
		}
	})
}

func message(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "claude-opus-5", MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

func TestAnthropicSDK(t *testing.T) {
	b := withAccounts(t)
	b.serve()
	client := anthropic.NewClient(anthropicoption.WithBaseURL(b.front.url), anthropicoption.WithAPIKey(b.key))
	ctx := t.Context()
	check := func(what string, n int, m anthropic.Message) {
		t.Helper()
		if want := upstreamtest.Text(b.up.Requests()[n]); len(m.Content) != 1 || m.Content[0].Text != want || m.Usage.OutputTokens != 17 || m.StopReason != "end_turn" {
			t.Errorf("%s: got %+v, want %q", what, m, want)
		}
	}

	whole, err := client.Messages.New(ctx, message("hello"))
	if err != nil {
		t.Fatal(err)
	}
	check("a message", 0, *whole)

	stream := client.Messages.NewStreaming(ctx, message("hello, streamed"))
	var all anthropic.Message
	for stream.Next() {
		if err := all.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	check("a streamed message", 1, all)

	count, err := client.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{Model: "claude-opus-5", Messages: message("hello").Messages})
	if err != nil || count.InputTokens != 12000 {
		t.Errorf("tokens: got %+v, %v", count, err)
	}
}

func TestAnthropicSDKErrors(t *testing.T) {
	for _, c := range []struct {
		name     string
		script   upstreamtest.Script
		status   int
		kind     string
		word     string
		requests int
	}{
		{"all spent", upstreamtest.FiveHourSpent(time.Now().Add(2 * time.Hour)), 429, "rate_limit_error", "exhausted", 1},
		{"all without credit", upstreamtest.Refusal("credit-balance"), 503, "api_error", "no_account", 1},
		{"overloaded", upstreamtest.Overloaded(), 529, "overloaded_error", "", 3},
		{"a fault of the request's", upstreamtest.Refusal("unknown-field"), 400, "invalid_request_error", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := withAccounts(t)
			b.one.Always(c.script)
			b.two.Always(c.script)
			b.serve()
			client := anthropic.NewClient(anthropicoption.WithBaseURL(b.front.url), anthropicoption.WithAuthToken(b.key))
			_, err := client.Messages.New(t.Context(), message("hello"))
			var failure *anthropic.Error
			if !errors.As(err, &failure) {
				t.Fatalf("got %v, want the SDK's error", err)
			}
			seen := b.front.exchanges()
			if failure.StatusCode != c.status || string(failure.Type()) != c.kind || seen[0].answered.Get("X-Holdfast-Error") != c.word {
				t.Errorf("got status %d, type %q and X-Holdfast-Error %q, want %d, %q and %q",
					failure.StatusCode, failure.Type(), seen[0].answered.Get("X-Holdfast-Error"), c.status, c.kind, c.word)
			}
			if len(seen) != c.requests {
				t.Errorf("requests of the SDK: got %d, want %d", len(seen), c.requests)
			}
		})
	}
}

// filePages answers a listing of files with pages of three of an account's own eight; a cursor
// of another account's is refused.
func filePages(owner string) upstreamtest.Script {
	return func(r *upstreamtest.Request) upstreamtest.Answer {
		query, _ := url.ParseQuery(r.Query)
		from := 0
		if after := query.Get("after"); after != "" {
			if _, err := fmt.Sscanf(after, "file-"+owner+"%d", &from); err != nil {
				return upstreamtest.Raw(http.StatusBadRequest, nil, []byte(`{"error":{"message":"no such file"}}`))(r)
			}
			from++
		}
		var data []string
		for i := from; i < min(8, from+3); i++ {
			data = append(data, fmt.Sprintf(`{"id":"file-%s%d","object":"file"}`, owner, i))
		}
		body := fmt.Sprintf(`{"object":"list","data":[%s],"has_more":%v}`, strings.Join(data, ","), from+3 < 8)
		return upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(body))(r)
	}
}

// TestFilesOverSeveralPages is field case pages-of-one-listing with the SDK.
func TestFilesOverSeveralPages(t *testing.T) {
	b, client := openAIKeys(t)
	b.one.OnPath("/v1/files", filePages("one"))
	b.two.OnPath("/v1/files", filePages("two"))
	var ids []string
	pages := client.Files.ListAutoPaging(t.Context(), openai.FileListParams{Limit: openai.Int(3)})
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
		// Other work shifts the choice between two pages.
		if len(ids)%3 == 0 {
			if _, err := client.Responses.New(t.Context(), input(fmt.Sprint("hello ", len(ids)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := pages.Err(); err != nil || len(ids) != 8 || ids[0][:len("file-one")] != ids[7][:len("file-one")] {
		t.Errorf("got %v, %v, want the eight files of one account", ids, err)
	}
}

// TestResultsOfABatch is field case results-elsewhere with the SDK, which asks by path, and by
// the link, as those for other languages do.
func TestResultsOfABatch(t *testing.T) {
	b := withAccounts(t)
	const batch = "/v1/messages/batches"
	for _, a := range []*upstreamtest.Account{b.one, b.two} {
		a.OnPath(batch, upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(`{"id":"msgbatch_1","type":"message_batch","processing_status":"in_progress","results_url":null}`)))
		a.OnPath(batch+"/msgbatch_1", upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/json"}},
			[]byte(`{"id":"msgbatch_1","type":"message_batch","processing_status":"ended","results_url":"https://api.anthropic.com`+batch+`/msgbatch_1/results"}`)))
		a.OnPath(batch+"/msgbatch_1/results", upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/x-jsonl"}}, []byte(`{"custom_id":"a","result":{"type":"canceled"}}`+"\n")))
	}
	b.serve()
	client := anthropic.NewClient(anthropicoption.WithBaseURL(b.front.url), anthropicoption.WithAPIKey(b.key))
	if _, err := client.Messages.Batches.New(t.Context(), anthropic.MessageBatchNewParams{}); err != nil {
		t.Fatal(err)
	}
	told, err := client.Messages.Batches.Get(t.Context(), "msgbatch_1", anthropic.MessageBatchGetParams{})
	// The proxy in front of the program hides what was asked, so the link leads past it.
	if err != nil || !strings.HasPrefix(told.ResultsURL, "http://127.0.0.1:") {
		t.Fatalf("got results at %q, %v, want them at the gateway", told.ResultsURL, err)
	}
	results := client.Messages.Batches.ResultsStreaming(t.Context(), "msgbatch_1", anthropic.MessageBatchResultsParams{})
	if !results.Next() || results.Current().CustomID != "a" {
		t.Errorf("got no results: %v", results.Err())
	}
	var raw *http.Response
	if err := client.Get(t.Context(), told.ResultsURL, nil, &raw); err != nil || raw.StatusCode != http.StatusOK {
		t.Errorf("at the link: got %v", err)
	}
}
