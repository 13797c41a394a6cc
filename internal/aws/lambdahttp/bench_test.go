package lambdahttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdaurl"

	"holdfast/internal/aws/lambdahttp"
)

// BenchmarkServe is one invocation from the event to the answer, through a Runtime API on
// the loopback address, which counts in all of them: by this package, by lambdaurl, and by
// a loop that only moves the bytes. The handler holds the body once, as the gateway does.
// cpu-ms/op is processor time of the whole process.
func BenchmarkServe(b *testing.B) {
	ways := []struct {
		name  string
		start func(api string, h http.Handler)
	}{
		{"holdfast", func(api string, h http.Handler) { _ = lambdahttp.Start(h, lambdahttp.Options{RuntimeAPI: api}) }},
		{"lambdaurl", func(_ string, h http.Handler) { lambdaurl.Start(h) }},
		{"bytes-only", func(api string, _ http.Handler) { moveBytes(api) }},
	}
	for _, kind := range []string{"json", "base64"} {
		for _, size := range []int{20_000, 500_000, 5_000_000} {
			if kind == "base64" && size == 5_000_000 {
				size = 4_000_000 // what fits into an event
			}
			event := benchEvent(kind, size)
			for _, way := range ways {
				b.Run(fmt.Sprintf("%s/%dKB/%s", kind, size/1000, way.name), func(b *testing.B) {
					api := newFastPlatform(b, event)
					b.Setenv("AWS_LAMBDA_RUNTIME_API", api.address)
					go way.start(api.address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if n := r.ContentLength; n > 0 {
							_, _ = io.ReadFull(r.Body, make([]byte, n))
						} else {
							_, _ = io.ReadAll(r.Body)
						}
						w.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(w, `{"type":"message"}`)
					}))
					api.serve(3) // warm
					b.ReportAllocs()
					b.ResetTimer()
					before := cpu(b)
					api.serve(b.N)
					b.ReportMetric(float64(cpu(b)-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
					b.SetBytes(int64(size))
				})
			}
		}
	}
}

// benchEvent holds a body of about size bytes whose JSON has quotes, line breaks and
// backslashes as often as a conversation about source code.
func benchEvent(kind string, size int) []byte {
	content := strings.Repeat(`{"role":"user","content":[{"type":"text","text":"func (r *Relay) Run(body io.Reader) error {\n\tnow := time.Now()\n\tlog.Printf(\"at %v\", now) // about one escape in twelve bytes\n}"}]},`, size/100+1)[:size]
	member := quote(content)
	if kind == "base64" {
		member = quote(strings.Repeat("aGVs", (size+2)/3)) + `,"isBase64Encoded":true`
	}
	return []byte(`{"version":"2.0","rawPath":"/v1/messages","rawQueryString":"beta=true","headers":{"accept":"application/json","accept-encoding":"gzip, deflate, br, zstd",` +
		`"authorization":"Bearer hf_replace-with-a-client-key","content-type":"application/json","host":"id.lambda-url.us-east-1.on.aws","anthropic-version":"2023-06-01",` +
		`"x-claude-code-session-id":"6f1d2c3b-0a9e-4d5c-8b7a-112233445566","x-forwarded-for":"203.0.113.7"},"requestContext":{"accountId":"anonymous",` +
		`"domainName":"id.lambda-url.us-east-1.on.aws","http":{"method":"POST","path":"/v1/messages","protocol":"HTTP/1.1","sourceIp":"203.0.113.7"}},"body":` + member + `}`)
}

// cpu is the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fastPlatform hands the same event out as often as it is told.
type fastPlatform struct {
	address string
	start   chan struct{}
	done    chan struct{}
}

func newFastPlatform(b *testing.B, event []byte) *fastPlatform {
	p := &fastPlatform{start: make(chan struct{}), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-p.start:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "one")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
		w.Header().Set("Content-Length", strconv.Itoa(len(event)))
		_, _ = w.Write(event)
	})
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/one/response", func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		if !bytes.HasSuffix(got, []byte(`{"type":"message"}`)) {
			b.Errorf("got answer %q", got)
		}
		w.WriteHeader(http.StatusAccepted)
		p.done <- struct{}{}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	p.address = listener.Addr().String()
	// It outlives the benchmark: lambdaurl would end the process when its Runtime API goes.
	go func() { _ = http.Serve(listener, mux) }()
	return p
}

func (p *fastPlatform) serve(n int) {
	for range n {
		p.start <- struct{}{}
		<-p.done
	}
}

// moveBytes takes events and answers each with the same words.
func moveBytes(api string) {
	var event bytes.Buffer
	for {
		resp, err := http.Get("http://" + api + "/2018-06-01/runtime/invocation/next")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		event.Reset()
		event.Grow(int(resp.ContentLength) + bytes.MinRead)
		_, _ = event.ReadFrom(resp.Body)
		resp.Body.Close()
		if resp, err = http.Post("http://"+api+"/2018-06-01/runtime/invocation/one/response", "", strings.NewReader(`{"type":"message"}`)); err != nil {
			return
		}
		resp.Body.Close()
	}
}
