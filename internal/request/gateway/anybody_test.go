package gateway_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"holdfast/internal/core/account"
)

// typed is a request with a body of the content types given, of which each is a header line.
func typed(path, body string, types ...string) ask {
	a := plainAsk("POST", path, body)
	a.header["Content-Type"] = types
	return a
}

// form is a multipart form with fields, name and value by turns; a value that begins with "@"
// is a file. Its boundary is "edge".
func form(fields ...string) string {
	var b strings.Builder
	for i := 0; i < len(fields); i += 2 {
		name, value := fields[i], fields[i+1]
		b.WriteString("--edge\r\nContent-Disposition: form-data; name=\"" + name + `"`)
		if file, ok := strings.CutPrefix(value, "@"); ok {
			value = file
			b.WriteString("; filename=\"a.bin\"\r\nContent-Type: application/octet-stream")
		}
		b.WriteString("\r\n\r\n" + value + "\r\n")
	}
	return b.String() + "--edge--\r\n"
}

const formType = "multipart/form-data; boundary=edge"

// anyProvider has an account of each vendor that answers everything.
func anyProvider(t *testing.T) *bench {
	t.Helper()
	b := threeProviders(t)
	for _, name := range []string{"marlow", "tansy", "bracken"} {
		for _, path := range []string{"/v1/images/edits", "/v1/audio/transcriptions", "/v1/embeddings", "/v1/completions", "/v1/files"} {
			b.account(name).OnPath(path, jsonAnswer(http.StatusOK, nil, `{"id":"made-1"}`))
		}
		if name != "marlow" {
			b.account(name).Always(answerTo)
		}
	}
	return b
}

// took is the one account that the upstream saw, with the body that it was sent.
func (b *bench) took(a ask) (reply, string) {
	b.t.Helper()
	b.up.Forget()
	r := b.do(a)
	got := b.up.Requests()
	if len(got) > 1 {
		b.t.Errorf("%s: %d sends, want one at most", a.path, len(got))
	}
	if len(got) == 0 {
		return r, ""
	}
	return r, string(got[0].Body)
}

// field case a-prompt-to-another-vendor: a model is found in JSON of any content type and in a
// form, and its vendor gets the request, with the body as it came.
func TestModelOfAnyBody(t *testing.T) {
	b := anyProvider(t)
	chat := func(model string) string {
		return `{"model":"` + model + `","messages":[{"role":"user","content":"hello"}]}`
	}
	long := strings.Repeat(`{"role":"user","content":[{"type":"text","text":"hello \" there"}]},`, 16000)
	jsonTypes := map[string][]string{
		"JSON": {"application/json"}, "twice in a line": {"application/json, application/json"}, "in two lines": {"text/json", "application/json"},
		"text/json": {"text/json"}, "none": nil, "empty": {""}, "as a URL's form": {"application/x-www-form-urlencoded"}, "a text": {"text/plain"},
		"bytes": {"application/octet-stream"}, "a form's": {formType}, "another word": {"json"},
	}
	for _, vendor := range []struct{ account, model string }{{"bracken", "grok-4.6"}, {"tansy", "gpt-5.5"}} {
		for name, types := range jsonTypes {
			for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/chat/completions"} {
				if r, body := b.took(typed(path, chat(vendor.model), types...)); r.status != http.StatusOK || r.account() != vendor.account || body != chat(vendor.model) {
					t.Errorf("%s, %s at %s: got %d by %q, sent %q", name, vendor.model, path, r.status, r.account(), body)
				}
			}
		}
		for name, a := range map[string]ask{
			"a mark":                    typed("/v1/chat/completions", "\ufeff"+chat(vendor.model), "application/json"),
			"a mark and blanks":         typed("/v1/chat/completions", "\ufeff \r\n\t"+chat(vendor.model), "text/json"),
			"blanks":                    typed("/v1/chat/completions", "\n\n  "+chat(vendor.model), "text/json"),
			"a model with blanks":       typed("/v1/chat/completions", chat("  "+vendor.model+" "), "application/json"),
			"in capitals":               typed("/v1/chat/completions", chat(strings.ToUpper(vendor.model)), "application/json"),
			"a vendor in front":         typed("/v1/chat/completions", chat("x/"+vendor.model), "application/json"),
			"with an escape":            typed("/v1/chat/completions", chat(strings.Replace(vendor.model, "g", `\u0067`, 1)), "application/json"),
			"late, behind 1 MB":         typed("/v1/chat/completions", `{"messages":[`+strings.TrimSuffix(long, ",")+`],"model":"`+vendor.model+`"}`, "text/json"),
			"behind deep nesting":       typed("/v1/chat/completions", `{"x":`+strings.Repeat(`[{"model":"other","y":`, 4000)+"0"+strings.Repeat("}]", 4000)+`,"model":"`+vendor.model+`"}`, "text/json"),
			"the same twice":            typed("/v1/chat/completions", `{"model":"`+vendor.model+`","model":"`+vendor.model+`"}`, "application/json"),
			"a picture's form":          typed("/v1/images/edits", form("prompt", "a cat", "image", "@PNG", "model", vendor.model), formType),
			"a recording's form":        typed("/v1/audio/transcriptions", form("model", vendor.model, "file", "@"+strings.Repeat("RIFF\r\n--edg", 1000)), formType),
			"a form's type in capitals": typed("/v1/images/edits", form("model", vendor.model), `Multipart/Form-Data; Boundary="edge"`),
			"a URL's form":              typed("/v1/completions", "prompt=a+cat&model="+vendor.model, "application/x-www-form-urlencoded; charset=utf-8"),
			"in the query alone":        typed("/v1/images/edits?model="+vendor.model, form("prompt", "a cat"), formType),
			"the body before the query": typed("/v1/images/edits?model=grok-gpt", form("model", vendor.model), formType),
		} {
			if r, body := b.took(a); r.status != http.StatusOK || r.account() != vendor.account || body != a.body {
				t.Errorf("%s, %s: got %d by %q %.300s, sent %.50q", name, vendor.model, r.status, r.account(), r.body, body)
			}
		}
	}
}

// field case a-prompt-to-another-vendor: compressed bodies are read as others are.
func TestModelOfCompressedBodies(t *testing.T) {
	b := anyProvider(t)
	pack := map[string]func(string) string{
		"gzip": func(s string) string {
			var out bytes.Buffer
			w := gzip.NewWriter(&out)
			_, _ = w.Write([]byte(s))
			_ = w.Close()
			return out.String()
		},
		"zstd": func(s string) string {
			w, _ := zstd.NewWriter(nil)
			return string(w.EncodeAll([]byte(s), nil))
		},
	}
	for coding, packed := range pack {
		for _, tt := range []struct {
			a       ask
			account string // empty: refused
		}{
			{typed("/v1/chat/completions", `{"model":"grok-4.6"}`, "text/json"), "bracken"},
			{typed("/v1/chat/completions", "\ufeff"+`{"model":"grok-4.6"}`, "application/json"), "bracken"},
			{typed("/v1/images/edits", form("model", "grok-imagine", "image", "@PNG"), formType), "bracken"},
			{typed("/v1/images/edits", form("model", "gpt-image-1", "image", "@PNG"), formType), "tansy"},
			{typed("/v1/images/edits", form("model", "gpt-image-1", "model", "grok-imagine"), formType), ""},
			{typed("/v1/chat/completions", `["grok-4.6"]`, "text/json"), ""},
		} {
			plain := tt.a.body
			tt.a.body = packed(plain)
			tt.a.header["Content-Encoding"] = []string{coding}
			r, body := b.took(tt.a)
			if tt.account == "" && (r.status != http.StatusBadRequest || r.errorKind() != "bad_request" || body != "") ||
				tt.account != "" && (r.status != http.StatusOK || r.account() != tt.account || body != tt.a.body) {
				t.Errorf("%s of %q: got %d by %q, want %q", coding, plain, r.status, r.account(), tt.account)
			}
		}
	}
}

// field case a-prompt-to-another-vendor: where two vendors share a path and the model cannot
// be told, the client hears what to do and nobody else hears of the request.
func TestUnreadableModel(t *testing.T) {
	b := anyProvider(t)
	const url = "application/x-www-form-urlencoded"
	before := map[string]any{"tansy": b.state("tansy"), "bracken": b.state("bracken")}
	for name, a := range map[string]ask{
		"two models in a form":         typed("/v1/images/edits", form("model", "gpt-image-1", "model", "grok-imagine"), formType),
		"two models in a URL's form":   typed("/v1/completions", "model=gpt-5.5&model=grok-4.6", url),
		"two models in JSON":           typed("/v1/chat/completions", `{"model":"gpt-5.5","messages":[],"model":"grok-4.6"}`, "application/json"),
		"two models, the other way":    typed("/v1/responses", `{"model":"grok-4.6","model":"gpt-5.5"}`, "text/json"),
		"a model and none":             typed("/v1/responses", `{"model":"grok-4.6","model":null}`, "application/json"),
		"a name in capitals":           typed("/v1/chat/completions", `{"Model":"grok-4.6","Messages":[]}`, "application/json"),
		"a model that is no text":      typed("/v1/chat/completions", `{"model":["grok-4.6"]}`, "application/json"),
		"a model that is an object":    typed("/v1/chat/completions", `{"model":{"id":"grok-4.6"}}`, "application/json"),
		"a model longer than any":      typed("/v1/chat/completions", `{"model":"grok-`+strings.Repeat("4", 3000)+`"}`, "application/json"),
		"a file by the name":           typed("/v1/images/edits", form("model", "@grok-imagine"), formType),
		"another boundary":             typed("/v1/images/edits", form("model", "grok-imagine"), "multipart/form-data; boundary=other"),
		"no boundary":                  typed("/v1/images/edits", form("model", "grok-imagine"), "multipart/form-data"),
		"a form that is cut":           typed("/v1/images/edits", strings.TrimSuffix(form("model", "grok-imagine", "image", "@PNG"), "--edge--\r\n"), formType),
		"a form in two types":          typed("/v1/images/edits", form("model", "grok-imagine"), formType, "multipart/form-data; boundary=x"),
		"another multipart":            typed("/v1/images/edits", form("model", "grok-imagine"), "multipart/mixed; boundary=edge"),
		"a URL's form of another kind": typed("/v1/chat/completions", `'{model:grok-4.6,messages:[]}'`, url),
		"an array":                     typed("/v1/chat/completions", `[{"model":"grok-4.6"}]`, "text/json"),
		"an array in a URL's form":     typed("/v1/chat/completions", `[{"model":"grok-4.6"}]`, url),
		"JSON with a fault":            typed("/v1/chat/completions", `{"model":"grok-4.6",}`, "text/json"),
		"UTF-16":                       typed("/v1/chat/completions", "\xff\xfe{\x00\"\x00m\x00", "text/json"),
		"YAML":                         typed("/v1/responses", "model: grok-4.6\ninput: hello\n", "application/yaml"),
		"a recording":                  typed("/v1/audio/transcriptions", "RIFF\x00\x00", "audio/wav"),
		"below responses":              typed("/v1/responses/compact", "x", "text/json"),
		"without /v1":                  typed("/images/edits", "x", "text/json"),
		"in the query too":             typed("/v1/images/edits?model=gpt-image-1", "x", "text/json"),
		"a known one in a header":      typed("/v1/chat/completions", "x", "text/json").with("X-Grok-Model-Override", "grok-4.6"),
		"of a conversation":            typed("/v1/chat/completions", "x", "text/json").with("X-Holdfast-Conversation", "mine"),
	} {
		r, body := b.took(a)
		if r.status != http.StatusBadRequest || r.errorKind() != "bad_request" || r.account() != "" || r.errorType() == "" || body != "" || r.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: got %d %s by %q %s", name, r.status, r.errorKind(), r.account(), r.body)
		}
		if !strings.Contains(r.body, "JSON object") || !strings.Contains(r.body, "/openai/v1/") || !strings.Contains(r.body, "/xai/v1/") {
			t.Errorf("%s: got %s, want what to do", name, r.body)
		}
	}
	for name, state := range before {
		if fmt.Sprint(b.state(name)) != fmt.Sprint(state) {
			t.Errorf("%s: got its state changed", name)
		}
	}
	// A readable body without a model is as it always was.
	b.account("tansy").OnPath("/v1/responses/resp_1", jsonAnswer(http.StatusOK, nil, `{"id":"resp_1"}`))
	none := typed("/v1/responses/resp_1", "", formType)
	none.method = http.MethodGet
	for name, a := range map[string]ask{
		"JSON":     typed("/v1/responses", `{"prompt":{"id":"pmpt_1"}}`, "text/json"),
		"null":     typed("/v1/responses", `{"model":null,"input":"hello"}`, "application/json"),
		"a form":   typed("/v1/images/edits", form("prompt", "a cat", "image", "@PNG"), formType),
		"no body":  none,
		"no field": typed("/v1/images/edits", "--edge--\r\n", formType),
	} {
		if r, _ := b.took(a); r.status != http.StatusOK || r.account() != "tansy" {
			t.Errorf("%s without a model: got %d by %q %s", name, r.status, r.account(), r.body)
		}
	}
}

// with is the request with one header more.
func (a ask) with(name, value string) ask {
	a.header = a.header.Clone()
	a.header.Set(name, value)
	return a
}

// field case a-prompt-to-another-vendor: a path with its vendor in front takes a body as it
// comes, and so do uploads, which name no model.
func TestUnreadableBodyOfOneVendor(t *testing.T) {
	b := anyProvider(t)
	for name, tt := range map[string]struct {
		a       ask
		account string
	}{
		"OpenAI's":                {typed("/openai/v1/images/edits", "x", formType), "tansy"},
		"xAI's":                   {typed("/xai/v1/images/edits", "x", formType), "bracken"},
		"xAI's, of another model": {typed("/xai/v1/images/edits", form("model", "gpt-image-1"), formType), "bracken"},
		"two models to OpenAI":    {typed("/openai/v1/chat/completions", `{"model":"grok-4.6","model":"gpt-5.5"}`, "application/json"), "tansy"},
		"OpenAI's of a type":      {typed("/openai/v1/chat/completions", `{"model":`, "text/json"), "tansy"},
		"an upload":               {typed("/v1/files", "--x\r\nnothing", "multipart/form-data; boundary=x"), "tansy"},
		"an upload of JSON lines": {typed("/v1/files", "{\"model\":\"a\"}\n{}", "application/jsonl"), "tansy"},
		"a whole upload":          {typed("/v1/files", form("purpose", "batch", "file", "@{}"), formType), "tansy"},
		"Anthropic's upload":      {typed("/v1/files", form("file", "@{}"), formType).with("Anthropic-Version", "2023-06-01"), "marlow"},
		"xAI's upload":            {typed("/xai/v1/files", form("file", "@{}"), formType), "bracken"},
	} {
		if r, body := b.took(tt.a); r.status != http.StatusOK || r.account() != tt.account || body != tt.a.body {
			t.Errorf("%s: got %d by %q %s", name, r.status, r.account(), r.body)
		}
	}
}

// field case a-prompt-to-another-vendor: a conversation keeps its pin, whatever the content
// type that its next turn comes with, and whatever it is known by.
func TestPinOfAnyContentType(t *testing.T) {
	for name, head := range map[string]string{
		"a fingerprint": ``,
		"a user":        `"metadata":{"user_id":"{\"session_id\":\"` + session(3) + `\"}"},`,
		"a cache key":   `"prompt_cache_key":"mine",`,
	} {
		for _, p := range []account.Provider{account.Anthropic, account.OpenAI} {
			if name == "a user" && p == account.OpenAI {
				continue // not a word of its clients
			}
			t.Run(name+" at "+string(p), func(t *testing.T) {
				b, path, model := newBench(t, "marlow", "juniper"), "/v1/messages", "claude-opus-5"
				if p == account.OpenAI {
					b, path, model = keyBench(t, p, "marlow", "juniper"), "/v1/chat/completions", "gpt-5.5"
				}
				b.prefer("marlow", "juniper")
				turn := `{"model":"` + model + `","max_tokens":9,` + head + `"messages":[{"role":"user","content":"hello there"}]}`
				b.served(typed(path, turn, "application/json"))
				b.prefer("juniper", "marlow")
				for _, types := range [][]string{{"text/json"}, {"application/json, application/json"}, nil, {"application/x-www-form-urlencoded"}, {formType}} {
					if r := b.served(typed(path, turn, types...)); r.account() != "marlow" || r.pin() != "kept" {
						t.Errorf("%q: got %s, pin %s, want marlow, kept", types, r.account(), r.pin())
					}
					if r := b.served(typed(path, "\ufeff"+turn, types...)); r.account() != "marlow" || r.pin() != "kept" {
						t.Errorf("%q behind a mark: got %s, pin %s, want marlow, kept", types, r.account(), r.pin())
					}
				}
			})
		}
	}
}
