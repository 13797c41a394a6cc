package gateway_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/test/upstreamtest"
)

const batchPath = "/v1/messages/batches"

func batchOf(id string) string {
	return `{"id":"` + id + `","type":"message_batch","processing_status":"ended","results_url":"https://api.anthropic.com` + batchPath + `/` + id + `/results"}`
}

// resultsURL is where an answer says that a batch's results are.
func resultsURL(t *testing.T, body string) string {
	t.Helper()
	var b struct {
		URL string `json:"results_url"`
	}
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return b.URL
}

// TestResultsElsewhere is field case results-elsewhere: a client that follows the link to a
// batch's results, with its key, asks the gateway, and gets them from the batch's account.
func TestResultsElsewhere(t *testing.T) {
	const id = "msgbatch_1"
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(batchOf(id)))
	_ = w.Close()
	for name, answer := range map[string]upstreamtest.Script{
		"in chunks":        jsonAnswer(http.StatusOK, nil, batchOf(id)),
		"of a told length": jsonAnswer(http.StatusOK, http.Header{"Content-Length": {fmt.Sprint(len(batchOf(id)))}}, batchOf(id)),
		"byte by byte":     jsonAnswer(http.StatusOK, nil, batchOf(id)).With(upstreamtest.ByteWise()),
		"compressed all the same": upstreamtest.Raw(http.StatusOK, http.Header{
			"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"},
		}, zipped.Bytes()),
	} {
		for _, prefix := range []string{"", "/anthropic"} {
			t.Run(name+prefix, func(t *testing.T) {
				b := newBench(t, "marlow", "juniper")
				b.prefer("marlow", "juniper")
				marlow := b.account("marlow")
				marlow.OnPath(batchPath, jsonAnswer(http.StatusOK, nil, `{"id":"`+id+`","type":"message_batch","results_url":null}`))
				marlow.OnPath(batchPath+"/"+id, answer)
				results := `{"custom_id":"a","result":{"type":"succeeded","message":{"content":[{"type":"text","text":"\"results_url\":\"https://api.anthropic.com/v1/messages/batches/x\""}]}}}` + "\n"
				marlow.OnPath(batchPath+"/"+id+"/results", upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/x-jsonl"}}, []byte(results)))
				if r := b.served(ask{path: prefix + batchPath, body: `{"requests":[]}`}); !strings.Contains(r.body, `"results_url":null`) {
					t.Fatalf("made: got %s", r.body)
				}
				b.prefer("juniper", "marlow")
				link := resultsURL(t, b.served(ask{method: "GET", path: prefix + batchPath + "/" + id}).body)
				if want := b.url + prefix + batchPath + "/" + id + "/results"; link != want {
					t.Fatalf("got %s, want %s", link, want)
				}
				if r := b.served(ask{method: "GET", path: strings.TrimPrefix(link, b.url)}); r.account() != "marlow" || r.body != results {
					t.Errorf("got %q from %s, want the results as they are, from marlow", r.body, r.account())
				}
			})
		}
	}
}

// The link leads to where the client found the gateway: a Function URL, or a proxy.
func TestLinksLeadToWhereTheClientAsked(t *testing.T) {
	b := newBench(t, "marlow")
	b.account("marlow").OnPath(batchPath+"/b1", jsonAnswer(http.StatusOK, nil, batchOf("b1")))
	for name, tt := range map[string]struct {
		host   string
		header http.Header
		want   string
	}{
		"a Function URL": {"abc123.lambda-url.eu-west-1.on.aws", http.Header{"X-Forwarded-Proto": {"https"}}, "https://abc123.lambda-url.eu-west-1.on.aws"},
		"a proxy":        {"127.0.0.1:8787", http.Header{"X-Forwarded-Proto": {"https, http"}, "X-Forwarded-Host": {"llm.example, inner"}}, "https://llm.example"},
		"by name":        {"localhost:8787", nil, "http://localhost:8787"},
		"no such host":   {"localhost:8787", http.Header{"X-Forwarded-Proto": {"javascript"}, "X-Forwarded-Host": {"a@b/c"}}, "http://localhost:8787"},
	} {
		req := b.request(ask{method: "GET", path: batchPath + "/b1", header: tt.header})
		req.Host = tt.host
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		if got := resultsURL(t, body.String()); got != tt.want+batchPath+"/b1/results" {
			t.Errorf("%s: got %s, want it at %s", name, got, tt.want)
		}
	}
}

// Every link of a list leads back, however many there are; what is signed and elsewhere stays.
func TestLinksOfAList(t *testing.T) {
	b := newBench(t, "marlow")
	var all []string
	for i := range 1000 {
		all = append(all, batchOf(fmt.Sprintf("msgbatch_%d", i)))
	}
	all = append(all, `{"id":"msgbatch_s","results_url":"https://storage.example/b?signature=s"}`)
	b.account("marlow").OnPath(batchPath, jsonAnswer(http.StatusOK, nil, `{"data":[`+strings.Join(all, ",")+`],"has_more":false}`))
	r := b.served(ask{method: "GET", path: batchPath})
	if strings.Contains(r.body, "api.anthropic.com") || strings.Count(r.body, b.url+batchPath) != 1000 || !strings.Contains(r.body, "https://storage.example/b?signature=s") {
		t.Errorf("got %d links that lead back: %.300s", strings.Count(r.body, b.url+batchPath), r.body)
	}
	if !json.Valid([]byte(r.body)) {
		t.Error("got no JSON")
	}
	// Nothing else is touched.
	b.account("marlow").OnPath("/v1/files/file_1/content", upstreamtest.Raw(http.StatusOK, nil, []byte(batchOf("x"))))
	if r := b.served(ask{method: "GET", path: "/v1/files/file_1/content"}); r.body != batchOf("x") {
		t.Errorf("a file: got %s", r.body)
	}
	tansy := b.addOf(account.OpenAI, "tansy", account.Key)
	picture := `{"data":[{"url":"https://blob.example/v1/p?sig=s"}],"results_url":"https://api.openai.com/v1/messages/batches/b"}`
	tansy.OnPath("/v1/images/generations", jsonAnswer(http.StatusOK, nil, picture))
	b.clock.advance(2 * time.Second)
	if r := b.served(plainAsk("POST", "/v1/images/generations", `{"model":"gpt-image-2","prompt":"x"}`)); r.body != picture {
		t.Errorf("a picture: got %s", r.body)
	}
}
