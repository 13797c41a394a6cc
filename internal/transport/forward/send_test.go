package forward_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/transport/forward"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // net/http reads it once
	os.Exit(m.Run())
}

// TestAttemptsGoThroughNoPlainProxy is field case proxies: a key never goes to a proxy in
// clear, whatever the environment says.
func TestAttemptsGoThroughNoPlainProxy(t *testing.T) {
	var dialled string
	tr := forward.NewTransport(forward.DefaultLimits)
	tr.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = address
		return nil, errors.New("not from a test")
	}
	_, err := send(t.Context(), tr, http.MethodPost, parse(t, "http://10.9.8.7:8080/v1/messages"), http.Header{}, hold("x"))
	if !errors.Is(err, forward.ErrUnreachable) || dialled != "10.9.8.7:8080" {
		t.Errorf("dialled %q, %v, want the account's host", dialled, err)
	}
}

func hold(text string) *forward.Body {
	var b forward.Body
	b.Hold([]byte(text))
	return &b
}

func parse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// send makes an attempt without a limit.
func send(ctx context.Context, rt http.RoundTripper, method string, target *url.URL, header http.Header, body *forward.Body) (*http.Response, error) {
	ctx, end := context.WithCancelCause(ctx)
	return forward.Send(ctx, end, rt, method, target, header, body, 0)
}

func TestSendCarriesTheBodyWithItsLength(t *testing.T) {
	var lengths []int64
	var bodies []string
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		lengths, bodies = append(lengths, r.ContentLength), append(bodies, string(b))
	}))
	defer up.Close()
	tr := forward.NewTransport(forward.DefaultLimits)
	defer tr.CloseIdleConnections()
	var empty forward.Body
	for _, body := range []*forward.Body{hold("hello"), &empty} {
		resp, err := send(t.Context(), tr, http.MethodPost, parse(t, up.URL), http.Header{}, body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if lengths[0] != 5 || bodies[0] != "hello" || lengths[1] != 0 || bodies[1] != "" {
		t.Errorf("got lengths %v, bodies %q", lengths, bodies)
	}
}

// writes counts the writes to a connection.
type writes struct {
	net.Conn
	n *atomic.Int64
}

func (w writes) Write(p []byte) (int, error) {
	w.n.Add(1)
	return w.Conn.Write(p)
}

// A small request leaves in one write, its body with its headers.
func TestSmallRequestIsOneWrite(t *testing.T) {
	got := make(chan string, 1)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- string(b)
	}))
	defer up.Close()
	tr := forward.NewTransport(forward.DefaultLimits)
	defer tr.CloseIdleConnections()
	var n atomic.Int64
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return writes{conn, &n}, err
	}
	text := strings.Repeat("x", 2<<10)
	resp, err := send(t.Context(), tr, http.MethodPost, parse(t, up.URL), http.Header{}, hold(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b := <-got; b != text || n.Load() != 1 {
		t.Errorf("got %d bytes in %d writes, want %d in 1", len(b), n.Load(), len(text))
	}
}

// A body that is released while it is being sent still arrives whole.
func TestReleaseWhileSending(t *testing.T) {
	got := make(chan string, 1)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_ = rc.Flush() // answers before it has read the body
		b, _ := io.ReadAll(r.Body)
		got <- string(b)
	}))
	defer up.Close()
	tr := forward.NewTransport(forward.DefaultLimits)
	defer tr.CloseIdleConnections()
	text := strings.Repeat("x", 8<<20)
	body := hold(text)
	resp, err := send(t.Context(), tr, http.MethodPost, parse(t, up.URL), http.Header{}, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body.Release()
	if b := <-got; b != text {
		t.Errorf("got %d bytes, want %d", len(b), len(text))
	}
}

func TestSendErrors(t *testing.T) {
	tr := forward.NewTransport(forward.DefaultLimits)
	defer tr.CloseIdleConnections()
	t.Run("nobody listens", func(t *testing.T) {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		_, err = send(t.Context(), tr, http.MethodPost, parse(t, "http://"+l.Addr().String()+"/v1/files/file_SECRET"), http.Header{}, hold("x"))
		if !errors.Is(err, forward.ErrUnreachable) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the caller has given up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := send(ctx, tr, http.MethodPost, parse(t, "http://127.0.0.1:1"), http.Header{}, hold("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// late is a transport that answers after a time; the body of its answer goes on, then.
type late struct{ after, then time.Duration }

func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := pass(r.Context(), l.after); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(lateBody{r.Context(), l.then})}, nil
}

type lateBody struct {
	ctx  context.Context
	then time.Duration
}

func (b lateBody) Read([]byte) (int, error) {
	if err := pass(b.ctx, b.then); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// pass waits, on the bubble's clock.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The time up to the headers is bounded, that of the body is not, and the time of the whole
// is told apart from both.
func TestSendWithin(t *testing.T) {
	const within = 16 * time.Minute
	tests := []struct {
		name  string
		up    late
		whole time.Duration
		want  error
	}{
		{"just in time", late{within - 1, 24 * time.Hour}, 0, nil},
		{"too late", late{within + 1, 0}, 0, forward.ErrNoHeaders},
		{"the whole is over before", late{within + 1, 0}, within - 1, context.DeadlineExceeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.whole > 0 {
					var done context.CancelFunc
					ctx, done = context.WithTimeout(ctx, tt.whole)
					defer done()
				}
				ctx, end := context.WithCancelCause(ctx)
				defer end(nil)
				resp, err := forward.Send(ctx, end, tt.up, http.MethodPost, parse(t, "http://127.0.0.1:1"), http.Header{}, hold("x"), within)
				if !errors.Is(err, tt.want) || errors.Is(err, forward.ErrUnreachable) != errors.Is(tt.want, forward.ErrNoHeaders) {
					t.Fatalf("got %v, want %v", err, tt.want)
				}
				if err == nil {
					if _, err := io.ReadAll(resp.Body); err != nil {
						t.Errorf("read the body: got %v", err)
					}
					_ = resp.Body.Close()
				}
			})
		})
	}
}

// TestReusedConnectionThatBreaks is field case reused-connection-faults: a reused connection that breaks after the server took the
// request proves nothing, so the request is not sent again.
func TestReusedConnectionThatBreaks(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 4)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	answer := func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			t.Errorf("read the request: %v", err)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
	tr := forward.NewTransport(forward.DefaultLimits)
	defer tr.CloseIdleConnections()
	post := func() error {
		resp, err := send(t.Context(), tr, http.MethodPost, parse(t, "http://"+l.Addr().String()), http.Header{}, hold("x"))
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	done := make(chan error, 1)
	go func() { done <- post() }()
	conn := <-accepted
	answer(conn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	go func() { done <- post() }()
	r, err := http.ReadRequest(bufio.NewReader(conn)) // the server has taken it
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	conn.Close()
	if err := <-done; !errors.Is(err, forward.ErrUnreachable) {
		t.Errorf("after the request was taken: got %v, want ErrUnreachable", err)
	}
	select {
	case <-accepted:
		t.Error("the request was sent a second time")
	default:
	}
}
