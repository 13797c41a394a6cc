package functionurl_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/aws/functionurl"
	"holdfast/internal/test/logtest"
)

// TestRequest: what the function sees is what the client sent.
func TestRequest(t *testing.T) {
	u := open(t, "serves", functionurl.Options{MemoryMB: 256, Timeout: time.Minute})
	got := u.echo(u.send("POST", "/echo?x=%20+%2B&&y;z=1", "application/json", []byte(`{"a":"b"}`),
		"Cookie", "theme=dark; session=a=b==", "Cookie", "third=3",
		"X-Forwarded-For", "198.51.100.1", "X-Many", "a", "X-Many", "b, c", "X-Odd", "é \"<&>\\",
		"Authorization", "Bearer hf_replace-with-a-client-key", "Upgrade", "websocket", "Connection", "Upgrade"))
	if got.Method != "POST" || got.RequestURI != "/echo?x=%20+%2B&&y;z=1" || string(got.Body) != `{"a":"b"}` || got.ContentLength != 9 {
		t.Errorf("got %s %s with %q (%d), want the request as sent", got.Method, got.RequestURI, got.Body, got.ContentLength)
	}
	for name, want := range map[string]string{
		"Cookie": "theme=dark; session=a=b==; third=3", "X-Forwarded-For": "198.51.100.1,127.0.0.1", "X-Forwarded-Proto": "https",
		"X-Many": "a,b, c", "X-Odd": "é \"<&>\\", "Authorization": "Bearer hf_replace-with-a-client-key", "Content-Type": "application/json",
		"Content-Length": "9", "Upgrade": "websocket", "Connection": "",
	} {
		if got := got.Header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	if want := strings.TrimPrefix(u.at, "http://"); got.Host != want {
		t.Errorf("got host %q, want %q", got.Host, want)
	}
	if host, _, err := net.SplitHostPort(got.RemoteAddr); err != nil || host != "127.0.0.1" {
		t.Errorf("got remote address %q, want 127.0.0.1 and a port", got.RemoteAddr)
	}
	if left := time.Until(got.Deadline); left > time.Minute || left < 30*time.Second {
		t.Errorf("got %v left, want about a minute", left)
	}
	if got.Memory != "256" || len(got.Invocation) != 36 {
		t.Errorf("got memory %q and invocation %q, want 256 and a UUID", got.Memory, got.Invocation)
	}
	resp := u.send("GET", "/echo", "", nil)
	if id := resp.Header.Get("X-Amzn-Requestid"); id != u.echo(resp).Invocation {
		t.Errorf("got request id %q, want the invocation's", id)
	}
}

func TestEncodedPath(t *testing.T) {
	u := open(t, "serves", functionurl.Options{})
	resp := u.get("/%65cho")
	if got := u.echo(resp); got.RequestURI != "/%65cho" || got.EscapedPath != "/%65cho" {
		t.Errorf("got %q and %q, want the path byte for byte", got.RequestURI, got.EscapedPath)
	}
}

// TestBodies: a body arrives whole, however the event carries it. (function-url-body-limits)
func TestBodies(t *testing.T) {
	code := []byte(strings.Repeat("{\"text\":\"if a < b && c > d {\\n\\treturn \\\"x\\\\ny\\\"\\n}\"},é🙂\n", 80_000)[:4_700_000])
	code = append(code, bytes.Repeat([]byte("x"), 300_000)...)
	binary := make([]byte, 4_000_000)
	for i := range binary {
		binary[i] = byte(i * i >> 3)
	}
	for _, c := range []struct {
		name, contentType string
		bodies            functionurl.Bodies
		body              []byte
	}{
		{"JSON", "application/json", functionurl.ByType, []byte(`{"a":1}`)},
		{"JSON forced to base64", "application/json; charset=utf-8", functionurl.AllBase64, []byte(`{"a":1}`)},
		{"no type", "", functionurl.ByType, []byte(`{"a":1}`)},
		{"no type as text", "", functionurl.AllText, []byte(`{"a":1}`)},
		{"a form", "application/x-www-form-urlencoded", functionurl.ByType, []byte("a=1&b=%20")},
		{"JSON that is no UTF-8", "application/json", functionurl.ByType, []byte("{\"a\":\"\xff\x00\"}")},
		{"none", "application/json", functionurl.ByType, nil},
		{"5 MB of JSON", "application/json", functionurl.ByType, code},
		{"4 MB of anything", "application/octet-stream", functionurl.ByType, binary},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := open(t, "serves", functionurl.Options{Bodies: c.bodies})
			got := u.echo(u.send("POST", "/echo", c.contentType, c.body))
			if !bytes.Equal(got.Body, c.body) || got.ContentLength != int64(len(c.body)) {
				t.Errorf("got %d bytes of told length %d, want the %d sent", len(got.Body), got.ContentLength, len(c.body))
			}
		})
	}
}

// TestEvent: which bodies come as base64, and what else the platform says of a request.
func TestEvent(t *testing.T) {
	got := make(chan []byte, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, _ := io.ReadAll(r.Body)
		got <- event
		_, _ = w.Write([]byte("{}\x00\x00\x00\x00\x00\x00\x00\x00"))
	}))
	defer api.Close()
	for _, c := range []struct {
		contentType string
		bodies      functionurl.Bodies
		body        string
		encoded     bool
	}{
		{"application/json", functionurl.ByType, "{}", false},
		{"Application/JSON ; charset=utf-8", functionurl.ByType, "{\"a\":\"é<>&\"}", false},
		{"text/event-stream", functionurl.ByType, "data", false},
		{"application/xml", functionurl.ByType, "<a/>", false},
		{"application/javascript", functionurl.ByType, "a<b", false},
		{"application/x-www-form-urlencoded", functionurl.ByType, "a=b", true},
		{"application/problem+json", functionurl.ByType, "{}", true},
		{"", functionurl.ByType, "{}", true},
		{"application/json", functionurl.ByType, "\xff", true},
		{"application/json", functionurl.ByType, "", false},
		{"application/octet-stream", functionurl.ByType, "", false},
		{"application/json", functionurl.AllBase64, "{}", true},
		{"", functionurl.AllText, "{}", false},
		{"", functionurl.AllText, "\xff", true},
	} {
		front, err := functionurl.New(functionurl.Options{Endpoint: api.URL, Bodies: c.bodies})
		if err != nil {
			t.Fatal(err)
		}
		u := (&url{t: t, front: front, gate: newGate(t), log: &logtest.Log{}}).listen()
		whole(t, u.send("POST", "/a%2Fb?x=1&x=%20", c.contentType, []byte(c.body), "Cookie", "a=1; b=2"))
		text := <-got
		var e struct {
			Version, RawPath, RawQueryString string
			Cookies                          []string
			QueryStringParameters            map[string]string
			RequestContext                   struct {
				DomainName, Time string
				TimeEpoch        int64
				HTTP             struct{ Method, Path, SourceIP string }
			}
			Body            string
			IsBase64Encoded bool
		}
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		want := c.body
		if c.encoded {
			want = base64.StdEncoding.EncodeToString([]byte(c.body))
		}
		if e.IsBase64Encoded != c.encoded || e.Body != want {
			t.Errorf("%q %q: got base64 %v and body %q, want %v and %q", c.contentType, c.body, e.IsBase64Encoded, e.Body, c.encoded, want)
		}
		if bytes.Contains(text, []byte(`\u003c`)) {
			t.Errorf("got %s, want no more escapes than JSON needs", text)
		}
		about := e.RequestContext
		if e.Version != "2.0" || e.RawPath != "/a%2Fb" || e.RawQueryString != "x=1&x=%20" || e.QueryStringParameters["x"] != "1, " ||
			len(e.Cookies) != 2 || e.Cookies[1] != "b=2" || about.HTTP.Method != "POST" || about.HTTP.SourceIP != "127.0.0.1" {
			t.Errorf("got %s, want the request in payload format 2.0", text)
		}
		if at, err := time.Parse("02/Jan/2006:15:04:05 -0700", about.Time); err != nil || at.Unix() != about.TimeEpoch/1000 {
			t.Errorf("got time %q (%v) and epoch %d, want the same instant", about.Time, err, about.TimeEpoch)
		}
	}
}

// TestEventLimit: the platform answers above it, not the function. The limit is on the
// event, so that escapes and base64 count. (function-url-body-limits)
func TestEventLimit(t *testing.T) {
	u := open(t, "serves", functionurl.Options{})
	const mb = 1 << 20
	for _, c := range []struct {
		name, contentType, unit string
		size                    int
		status                  int
	}{
		{"text just below", "text/plain", "x", 6*mb - 2000, 200},
		{"text just above", "text/plain", "x", 6*mb + 100, 413},
		{"escapes", "text/plain", `"`, 3 * mb, 413},
		{"base64 that fits", "application/octet-stream", "x", 44 * mb / 10, 200},
		{"base64 that does not", "application/octet-stream", "x", 46 * mb / 10, 413},
		{"far above", "application/json", "x", 40 * mb, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := u.send("POST", "/bytes?1", c.contentType, bytes.Repeat([]byte(c.unit), c.size))
			body := whole(t, resp)
			if resp.StatusCode != c.status {
				t.Errorf("got %d, want %d", resp.StatusCode, c.status)
			}
			if c.status == 413 && !strings.Contains(body, "6291456") {
				t.Errorf("got %q, want the limit named", body)
			}
		})
	}
}

// TestEndpoint: an Invoke API buffers, and says 200 to nearly everything.
func TestEndpoint(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter){
		"/good": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"statusCode":201,"headers":{"content-type":"text/plain"},"cookies":["a=1"]}` + "\x00\x00\x00\x00\x00\x00\x00\x00" + "body\x00\x00"))
		},
		"/quoted": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`"{\"statusCode\":201,\"headers\":{\"content-type\":\"text/plain\"},\"cookies\":[\"a=1\"]}` + strings.Repeat(`\u0000`, 8) + `body\u0000\u0000"`))
		},
		"/failed":  func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"errorMessage":"no","errorType":"E"}`)) },
		"/timeout": func(w http.ResponseWriter) { _, _ = w.Write([]byte("Task timed out after 3.00 seconds")) },
		"/marked": func(w http.ResponseWriter) {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			_, _ = w.Write([]byte(`{"statusCode":200}` + "\x00\x00\x00\x00\x00\x00\x00\x00"))
		},
		"/status": func(w http.ResponseWriter) {
			w.WriteHeader(500)
			_, _ = w.Write([]byte(`{"statusCode":200}` + "\x00\x00\x00\x00\x00\x00\x00\x00"))
		},
		"/prelude": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"statusCode":"x"}` + "\x00\x00\x00\x00\x00\x00\x00\x00"))
		},
		"/informational": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"statusCode":103}` + "\x00\x00\x00\x00\x00\x00\x00\x00"))
		},
		"/remapped": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"headers":{"x-amzn-Remapped-Date":"x"}}` + "\x00\x00\x00\x00\x00\x00\x00\x00"))
		},
		"/own": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"headers":{"content-length":"700","connection":"close"}}` + "\x00\x00\x00\x00\x00\x00\x00\x00" + "x"))
		},
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		if r.Method != "POST" || r.URL.Path != "/2015-03-31/functions/gateway/invocations" {
			t.Errorf("got %s %s, want the function invoked", r.Method, r.URL.Path)
		}
		for path, answer := range answers {
			if strings.Contains(b.String(), `"rawPath":"`+path+`"`) {
				answer(w)
			}
		}
	}))
	defer api.Close()
	for _, endpoint := range []string{api.URL, api.URL + "/", api.URL + "/2015-03-31/functions/gateway/invocations"} {
		front, err := functionurl.New(functionurl.Options{Endpoint: endpoint, Function: "gateway"})
		if err != nil {
			t.Fatal(err)
		}
		u := (&url{t: t, front: front, gate: newGate(t), log: &logtest.Log{}}).listen()
		for _, path := range []string{"/good", "/quoted"} {
			resp := u.get(path)
			if got := whole(t, resp); resp.StatusCode != 201 || got != "body\x00\x00" || resp.Header.Get("Content-Type") != "text/plain" || resp.Header.Get("Set-Cookie") != "a=1" {
				t.Errorf("%s: got %d %v %q, want what the prelude says", path, resp.StatusCode, resp.Header, got)
			}
		}
		resp := u.get("/own")
		if got := whole(t, resp); got != "x" || resp.Header.Get("X-Amzn-Remapped-Content-Length") != "700" || resp.Header.Get("X-Amzn-Remapped-Connection") != "close" {
			t.Errorf("got %v %q, want the platform's own headers remapped", resp.Header, got)
		}
		for path := range answers {
			if path == "/good" || path == "/quoted" || path == "/own" {
				continue
			}
			if resp := u.get(path); resp.StatusCode != 502 {
				t.Errorf("%s: got %s, want 502", path, strconv.Itoa(resp.StatusCode))
			}
		}
	}
}

// TestEndpointGone: nobody listens there.
func TestEndpointGone(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	api.Close()
	front, err := functionurl.New(functionurl.Options{Endpoint: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	u := (&url{t: t, front: front, gate: newGate(t), log: &logtest.Log{}}).listen()
	if resp := u.get("/"); resp.StatusCode != 502 {
		t.Errorf("got %d, want 502", resp.StatusCode)
	}
}
