package lambdahttp_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/aws/lambdahttp"
)

// received is a request as a handler sees it.
type received struct {
	Method, RequestURI, Path, EscapedPath, RawQuery, Host, RemoteAddr string
	Header                                                            http.Header
	ContentLength                                                     int64
	Body                                                              string
}

// echo answers with what it received.
func echo(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(received{
		r.Method, r.RequestURI, r.URL.Path, r.URL.EscapedPath(), r.URL.RawQuery, r.Host, r.RemoteAddr,
		r.Header, r.ContentLength, base64.StdEncoding.EncodeToString(content),
	})
}

func receive(t *testing.T, p *platform, event string) received {
	t.Helper()
	got := p.do(event)
	if got.status != 200 || got.header["Content-Type"] != "application/json" || got.errorType != "" {
		t.Fatalf("got status %d, headers %v, error %q, want 200 and JSON", got.status, got.header, got.errorType)
	}
	var r received
	if err := json.Unmarshal([]byte(got.body), &r); err != nil {
		t.Fatalf("read the body %q: %v", got.body, err)
	}
	content, err := base64.StdEncoding.DecodeString(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Body = string(content)
	return r
}

const samples = "../../../events"

// sample reads one of the sample events.
func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(samples, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSamples: what a handler sees of each sample event, by what the event says.
func TestSamples(t *testing.T) {
	const host = "abcdefghijklmnopqrstuvwxyz012345.lambda-url.us-east-1.on.aws"
	wants := map[string]struct {
		request received
		header  map[string]string
		body    func(t *testing.T, body string)
	}{
		"function-url-messages.json": {
			request: received{Method: "POST", RequestURI: "/v1/messages?beta=true", Path: "/v1/messages", EscapedPath: "/v1/messages", RawQuery: "beta=true", RemoteAddr: "203.0.113.7:0", ContentLength: 438},
			header: map[string]string{
				"Authorization": "Bearer hf_replace-with-a-client-key", "Content-Type": "application/json",
				"Anthropic-Beta":  "claude-code-20250219,interleaved-thinking-2025-05-14",
				"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https", "Host": "",
			},
			body: func(t *testing.T, body string) {
				var m struct {
					Stream   bool
					Messages []struct{ Content []struct{ Text string } }
				}
				if err := json.Unmarshal([]byte(body), &m); err != nil {
					t.Fatalf("the body is no JSON: %v", err)
				}
				want := "What does `fmt.Printf(\"%q\\n\", s)` print for s = \"naïve 🙂\"?\tAnswer in <b>one</b> line."
				if got := m.Messages[0].Content[0].Text; !m.Stream || got != want {
					t.Errorf("got stream %v and text %q, want true and %q", m.Stream, got, want)
				}
			},
		},
		"function-url-base64.json": {
			request: received{Method: "POST", RequestURI: "/openai/v1/files", Path: "/openai/v1/files", EscapedPath: "/openai/v1/files", RemoteAddr: "203.0.113.7:0"},
			header:  map[string]string{"Content-Type": "multipart/form-data; boundary=holdfast-boundary"},
			body: func(t *testing.T, body string) {
				r, err := http.NewRequest("POST", "/", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "multipart/form-data; boundary=holdfast-boundary")
				if err := r.ParseMultipartForm(1 << 20); err != nil {
					t.Fatalf("the body is no form: %v", err)
				}
				if got := r.FormValue("purpose"); got != "assistants" {
					t.Errorf("got purpose %q, want assistants", got)
				}
				if got := r.MultipartForm.File["file"]; len(got) != 1 || got[0].Filename != "pixel.png" {
					t.Errorf("got files %v, want pixel.png", got)
				}
			},
		},
		"function-url-cookies.json": {
			request: received{Method: "GET", RequestURI: "/_holdfast/status", Path: "/_holdfast/status", EscapedPath: "/_holdfast/status", RemoteAddr: "[2001:db8::17]:0"},
			header:  map[string]string{"Cookie": "theme=dark; session=a=b=="},
		},
		"function-url-models.json": {
			request: received{
				Method: "GET", RequestURI: "/v1/models?limit=1000&after_id=claude%2Fsonnet+4&beta=", Path: "/v1/models", EscapedPath: "/v1/models",
				RawQuery: "limit=1000&after_id=claude%2Fsonnet+4&beta=", RemoteAddr: "203.0.113.7:0",
			},
			header: map[string]string{"X-Api-Key": "hf_replace-with-a-client-key", "Cookie": ""},
		},
		"function-url-head.json": {
			request: received{Method: "HEAD", RequestURI: "/", Path: "/", EscapedPath: "/", RemoteAddr: "203.0.113.7:0"},
		},
	}
	files, err := filepath.Glob(filepath.Join(samples, "function-url-*.json"))
	if err != nil || len(files) != len(wants) {
		t.Errorf("got %d sample events (%v), want the %d that this test knows", len(files), err, len(wants))
	}
	for name, want := range wants {
		t.Run(name, func(t *testing.T) {
			event := sample(t, name)
			if want.request.Method == "HEAD" {
				event = strings.Replace(event, `"HEAD"`, `"GET"`, 1) // to see what arrives; the answer is TestHeadSendsNoBody's
			}
			got := receive(t, start(t, echo, lambdahttp.Options{}), event)
			if want.request.Method == "HEAD" {
				got.Method = "HEAD"
			}
			for name, value := range want.header {
				if got := got.Header.Get(name); got != value {
					t.Errorf("got %s %q, want %q", name, got, value)
				}
			}
			if want.body != nil {
				want.body(t, got.Body)
			} else if got.Body != "" {
				t.Errorf("got body %q, want none", got.Body)
			}
			if got.ContentLength != int64(len(got.Body)) {
				t.Errorf("got content length %d of a body of %d bytes", got.ContentLength, len(got.Body))
			}
			if want.request.ContentLength == 0 {
				got.ContentLength = 0
			}
			got.Header, got.Body = nil, ""
			want.request.Host = host
			if diff := cmp.Diff(want.request, got); diff != "" {
				t.Errorf("request differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestTargets(t *testing.T) {
	p := start(t, echo, lambdahttp.Options{})
	for _, c := range []struct{ name, path, query, uri, decoded, escaped string }{
		{"plain", "/v1/messages", "", "/v1/messages", "/v1/messages", "/v1/messages"},
		{"empty", "", "", "/", "/", "/"},
		{"encoded slash", "/v1/files/a%2Fb", "", "/v1/files/a%2Fb", "/v1/files/a/b", "/v1/files/a%2Fb"},
		{"lower case hexadecimals", "/a%c3%a9", "", "/a%c3%a9", "/aé", "/a%c3%a9"},
		{"dot segments stay", "/v1/../x/./y", "", "/v1/../x/./y", "/v1/../x/./y", "/v1/../x/./y"},
		{"no host in a path", "//evil.example/v1", "", "//evil.example/v1", "//evil.example/v1", "//evil.example/v1"},
		{"query stays", "/a", "x=%20+%2B&&y;z=1&q=a?b", "/a?x=%20+%2B&&y;z=1&q=a?b", "/a", "/a"},
		{"decoded on the way", "/a b/é", "", "/a b/é", "/a b/é", "/a%20b/%C3%A9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			event := strings.Replace(post, `"rawPath":"/v1/messages"`, `"rawPath":`+quote(c.path)+`,"rawQueryString":`+quote(c.query), 1)
			got := receive(t, p, event)
			if got.RequestURI != c.uri || got.Path != c.decoded || got.EscapedPath != c.escaped || got.RawQuery != c.query {
				t.Errorf("got URI %q, path %q, escaped %q, query %q, want %q, %q, %q, %q",
					got.RequestURI, got.Path, got.EscapedPath, got.RawQuery, c.uri, c.decoded, c.escaped, c.query)
			}
		})
	}
}

func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSpace(b.String())
}

func TestRequestHeaders(t *testing.T) {
	p := start(t, echo, lambdahttp.Options{})
	got := receive(t, p, `{"rawPath":"/","cookies":["a=1","b=2"],
		"headers":{"host":"me.example","accept":"a, b","x-forwarded-for":"198.51.100.1, 203.0.113.7","x-odd":"\u00e9\u0009\ud83d\ude00"},
		"requestContext":{"domainName":"id.lambda-url.us-east-1.on.aws","http":{"method":"GET","sourceIp":"203.0.113.7"}}}`)
	want := http.Header{
		"Cookie": {"a=1; b=2"}, "Accept": {"a, b"}, "X-Forwarded-For": {"198.51.100.1, 203.0.113.7"}, "X-Odd": {"é\t😀"},
	}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("headers differ (-want +got):\n%s", diff)
	}
	if got.Host != "me.example" {
		t.Errorf("got host %q, want the header's", got.Host)
	}
	if host, port, err := net.SplitHostPort(got.RemoteAddr); host != "203.0.113.7" || port != "0" || err != nil {
		t.Errorf("got remote address %q, want one that splits into 203.0.113.7 and 0", got.RemoteAddr)
	}
}

func TestBodies(t *testing.T) {
	p := start(t, echo, lambdahttp.Options{})
	binary := make([]byte, 4<<20)
	for i := range binary {
		binary[i] = byte(i * i >> 3)
	}
	code := strings.Repeat("{\"type\":\"text\",\"text\":\"if a < b && c > d {\\n\\treturn \\\"x\\\\ny\\\"\\n}\"},é🙂\n", 75_000)[:5<<20]
	for _, c := range []struct{ name, member, want string }{
		{"none", ``, ""},
		{"null", `"body":null`, ""},
		{"empty", `"body":""`, ""},
		{"every escape", `"body":"\"\\\/\b\f\n\r\t\u0000\u00e9\u20AC\ud83D\uDe00"`, "\"\\/\b\f\n\r\t\x00é€😀"},
		{"half pairs", `"body":"\ud83d \ude00\ud83d\u0041\ud83dx"`, "\ufffd \ufffd\ufffdA\ufffdx"},
		{"not UTF-8", `"body":"a` + "\xff\xfe" + `b"`, "a\xff\xfeb"},
		{"another spelling of the name", `"\u0062ody":"x\n"`, "x\n"},
		{"a value called body", `"pathParameters":{"body":"no"},"stageVariables":["body","no"],"routeKey":"body","body":"yes"`, "yes"},
		{"a value that looks like one", `"routeKey":"\\\",\"body\":\"no","body":"yes"`, "yes"},
		{"space about it", "\"body\" \t:\n  \"x\"", "x"},
		{"base64", `"body":"aGVsbG8=","isBase64Encoded":true`, "hello"},
		{"base64, flagged first", `"isBase64Encoded":true,"body":"aGVsbG8="`, "hello"},
		{"base64 with escapes", `"isBase64Encoded":true,"body":"\/\/\/+"`, "\xff\xff\xfe"},
		{"5 MB of JSON", `"body":` + quote(code), code},
		{"4 MB of base64", `"isBase64Encoded":true,"body":"` + base64.StdEncoding.EncodeToString(binary) + `"`, string(binary)},
		{"short after long", `"body":"short"`, "short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			event := `{"requestContext":{"http":{"method":"POST"}},"rawPath":"/"`
			if c.member != "" {
				event += "," + c.member
			}
			for _, event := range []string{event + "}", strings.Replace(`{"last":[{"body":"}"}],`+event[1:]+"}", "\n", " ", -1)} {
				got := receive(t, p, event)
				if got.Body != c.want {
					t.Errorf("got %d bytes %.60q, want %d bytes %.60q", len(got.Body), got.Body, len(c.want), c.want)
				}
				if got.ContentLength != int64(len(c.want)) {
					t.Errorf("got content length %d, want %d", got.ContentLength, len(c.want))
				}
			}
		})
	}
}

// TestMalformedEvents are reported and survived.
func TestMalformedEvents(t *testing.T) {
	p := start(t, echo, lambdahttp.Options{})
	for _, c := range []struct{ name, event string }{
		{"empty", ""},
		{"no JSON", "{"},
		{"an array", "[]"},
		{"nothing in it", "{}"},
		{"a schedule's", sample(t, "schedule.json")},
		{"cut in the body", `{"requestContext":{"http":{"method":"POST"}},"body":"abc`},
		{"cut in an escape", `{"requestContext":{"http":{"method":"POST"}},"body":"abc\`},
		{"cut in a code point", `{"requestContext":{"http":{"method":"POST"}},"body":"abc\u12`},
		{"cut after the body", `{"requestContext":{"http":{"method":"POST"}},"body":"abcdefghij"`},
		{"an unknown escape", `{"requestContext":{"http":{"method":"POST"}},"body":"\x"}`},
		{"a wrong code point", `{"requestContext":{"http":{"method":"POST"}},"body":"\u12g4"}`},
		{"a bare line break", `{"requestContext":{"http":{"method":"POST"}},"body":"` + "a\nb" + `"}`},
		{"a body that is a number", `{"requestContext":{"http":{"method":"POST"}},"body":7}`},
		{"two bodies", `{"requestContext":{"http":{"method":"POST"}},"body":"a","body":"b"}`},
		{"two bodies, one empty", `{"requestContext":{"http":{"method":"POST"}},"body":"a","Body":""}`},
		{"wrong base64", `{"requestContext":{"http":{"method":"POST"}},"body":"a!","isBase64Encoded":true}`},
		{"headers that are not an object", `{"requestContext":{"http":{"method":"POST"}},"headers":["a"]}`},
		{"a path without a slash", `{"requestContext":{"http":{"method":"POST"}},"rawPath":"http://x.example/"}`},
		{"a path with a wrong escape", `{"requestContext":{"http":{"method":"POST"}},"rawPath":"/%zz"}`},
		{"a path with a control character", `{"requestContext":{"http":{"method":"POST"}},"rawPath":"/\n"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			errorType, message := p.begin(event{body: c.event}).failure(t)
			if errorType != "Function.MalformedEvent" || message == "" {
				t.Errorf("got %q: %q, want Function.MalformedEvent and a reason", errorType, message)
			}
		})
	}
	if got := receive(t, p, post); got.Body != `{"stream":true}` {
		t.Errorf("got %q after malformed events, want the next one served", got.Body)
	}
	if strings.Contains(p.log.String(), "abcdefghij") {
		t.Error("the log holds a part of a body")
	}
}
