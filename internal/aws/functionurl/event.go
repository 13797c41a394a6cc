package functionurl

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// Bodies says which bodies of requests come as base64.
type Bodies int

const (
	// ByType is what is known of the platform: text/*, application/json, application/xml
	// and application/javascript come as text if they are, all others as base64, those
	// without a type among them.
	ByType Bodies = iota
	// AllBase64 and AllText force one way, to see that a function heeds the flag. A body
	// that is no text comes as base64 even so, because JSON cannot hold it.
	AllBase64
	AllText
)

// MaxEvent is how many bytes an event may have: 6 MiB and what is around the body.
const MaxEvent = 6<<20 + 100

// drainAtMost is what is read and dropped of a body that is too large, so that the client
// hears the answer instead of a broken connection.
const drainAtMost = 64 << 20

type tooLargeError struct{}

func (*tooLargeError) Error() string { return "the request is larger than an event may be" }

// newEvent makes a request an event of payload format 2.0.
// https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
func (f *Front) newEvent(r *http.Request, id string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r.Body, MaxEvent+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxEvent {
		_, _ = io.CopyN(io.Discard, r.Body, drainAtMost)
		return nil, &tooLargeError{}
	}
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		ip = r.RemoteAddr
	}
	now := time.Now().UTC()
	prefix, _, _ := strings.Cut(r.Host, ".")
	e := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery,
		Headers: eventHeaders(r, ip),
		RequestContext: events.LambdaFunctionURLRequestContext{
			AccountID: "anonymous", RequestID: id, APIID: prefix, DomainName: r.Host, DomainPrefix: prefix,
			Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
			HTTP: events.LambdaFunctionURLRequestContextHTTPDescription{
				Method: r.Method, Path: r.URL.EscapedPath(), Protocol: "HTTP/1.1", SourceIP: ip, UserAgent: r.UserAgent(),
			},
		},
	}
	for _, line := range r.Header["Cookie"] {
		for cookie := range strings.SplitSeq(line, ";") {
			if cookie = strings.TrimSpace(cookie); cookie != "" {
				e.Cookies = append(e.Cookies, cookie)
			}
		}
	}
	if query, _ := url.ParseQuery(r.URL.RawQuery); len(query) > 0 { // what cannot be read is left out
		e.QueryStringParameters = make(map[string]string, len(query))
		for name, values := range query {
			e.QueryStringParameters[name] = strings.Join(values, ",")
		}
	}
	if f.asBase64(r.Header.Get("Content-Type"), content) {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(content), true
	} else {
		e.Body = string(content)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // or source code would be a good deal larger than it is on the platform
	if err := encoder.Encode(e); err != nil {
		return nil, fmt.Errorf("write the event: %w", err)
	}
	event := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(event) > MaxEvent {
		return nil, &tooLargeError{}
	}
	return event, nil
}

func eventHeaders(r *http.Request, ip string) map[string]string {
	headers := make(map[string]string, len(r.Header)+6)
	for name, values := range r.Header {
		if name != "Connection" {
			headers[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	headers["host"] = r.Host
	if r.ContentLength > 0 {
		headers["content-length"] = fmt.Sprint(r.ContentLength)
	}
	if before := headers["x-forwarded-for"]; before != "" {
		ip = before + "," + ip
	}
	headers["x-forwarded-for"], headers["x-forwarded-port"], headers["x-forwarded-proto"] = ip, "443", "https"
	if headers["x-amzn-trace-id"] == "" {
		headers["x-amzn-trace-id"] = "Root=" + newTraceID()
	}
	return headers
}

// asBase64 reports whether a body of this type goes into the event as base64.
func (f *Front) asBase64(contentType string, content []byte) bool {
	if len(content) == 0 {
		return false
	}
	if f.o.Bodies == AllBase64 || !utf8.Valid(content) {
		return true
	}
	if f.o.Bodies == AllText {
		return false
	}
	media, _, _ := strings.Cut(contentType, ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); media {
	case "application/json", "application/xml", "application/javascript":
		return false
	}
	return !strings.HasPrefix(media, "text/")
}

// newID makes an id like those of the platform: a random UUID.
func newID() string {
	b := random(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func newTraceID() string {
	return fmt.Sprintf("1-%08x-%s", time.Now().Unix(), hex.EncodeToString(random(12)))
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
