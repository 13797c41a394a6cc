package roundtrip_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/internal/transport/roundtrip"
)

func TestMain(m *testing.M) {
	// net/http reads these once.
	_ = os.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	_ = os.Setenv("HTTPS_PROXY", "http://127.0.0.1:2")
	_ = os.Setenv("NO_PROXY", "inside.example")
	os.Exit(m.Run())
}

// TestProxy is field case proxies: only what TLS protects goes through a proxy.
func TestProxy(t *testing.T) {
	for target, want := range map[string]string{
		"http://10.9.8.7:8080/v1/messages":  "",
		"http://api.example/v1/messages":    "",
		"https://api.example/v1/messages":   "http://127.0.0.1:2",
		"https://inside.example/v1/message": "",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		u, err := roundtrip.Proxy(r)
		got := ""
		if u != nil {
			got = u.String()
		}
		if got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", target, got, err, want)
		}
	}
}

// server is an upstream that speaks a protocol by hand, and counts what it took.
type server struct {
	url  string
	took atomic.Int64
}

// listen serves each connection with handle until the test ends.
func listen(t *testing.T, handle func(s *server, c net.Conn)) *server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{url: "http://" + l.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { defer c.Close(); handle(s, c) })
		}
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	return s
}

// take reads a whole HTTP/1 request.
func (s *server) take(r *bufio.Reader) (*http.Request, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, req.Body)
	s.took.Add(1)
	return req, err
}

// breaksOff answers requests that ask for an answer, and takes others and closes without an answer.
func breaksOff(s *server, c net.Conn) {
	in := bufio.NewReader(c)
	for {
		r, err := s.take(in)
		if err != nil || r.Header.Get("X-Answer") == "" {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
		_, _ = c.Write([]byte("x"))
	}
}

func newTransport(t *testing.T) *roundtrip.Transport {
	tr := &roundtrip.Transport{Transport: &http.Transport{Proxy: roundtrip.Proxy, MaxIdleConnsPerHost: 32}}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// send sends a request whose body can be had again, and closes its answer.
func send(t *testing.T, rt http.RoundTripper, method, url, body string, header http.Header) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	resp, err := rt.RoundTrip(r)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return err
}

// warm leaves n idle connections behind.
func warm(t *testing.T, rt http.RoundTripper, url string, n int) {
	t.Helper()
	var open []*http.Response
	for range n {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Answer", "yes")
		resp, err := rt.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp)
	}
	for _, resp := range open {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// TestTakenIsNotSentAgain is field case transport-sends-again: over a warm connection, a
// request that the server took is not sent again, whatever method and header it has, and
// however many connections are left.
func TestTakenIsNotSentAgain(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET"} {
		for _, body := range []string{"x", strings.Repeat("x", 100_000), ""} {
			if method == "GET" && body == "" {
				continue // it only reads
			}
			for _, name := range []string{"", "Idempotency-Key", "X-Idempotency-Key"} {
				for _, idle := range []int{1, 9} {
					s := listen(t, breaksOff)
					tr := newTransport(t)
					warm(t, tr, s.url, idle)
					header := http.Header{}
					if name != "" {
						header.Set(name, "k1")
					}
					err := send(t, tr, method, s.url, body, header)
					if took := s.took.Load() - int64(idle); err == nil || took != 1 {
						t.Errorf("%s with %d bytes and header %q, %d idle connections: taken %d times, %v, want once and an error", method, len(body), name, idle, took, err)
					}
				}
			}
		}
	}
}

// The names of the headers arrive, in letters of either size, and the caller's are as before.
func TestHeadersArrive(t *testing.T) {
	got := make(chan http.Header, 1)
	s := listen(t, func(s *server, c net.Conn) {
		if r, err := s.take(bufio.NewReader(c)); err == nil {
			got <- r.Header
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	header := http.Header{"Idempotency-Key": {"k1"}, "X-Idempotency-Key": {"k2", "k3"}, "X-Other": {"o"}}
	if err := send(t, newTransport(t), "POST", s.url, "x", header); err != nil {
		t.Fatal(err)
	}
	h := <-got
	if h.Get("Idempotency-Key") != "k1" || strings.Join(h.Values("X-Idempotency-Key"), ",") != "k2,k3" || h.Get("X-Other") != "o" {
		t.Errorf("got %v", h)
	}
	if len(header) != 3 || header.Get("Idempotency-Key") != "k1" {
		t.Errorf("the caller's headers are %v now", header)
	}
}

// refusing is a connection that takes no more writes after the first, as one that the server
// has closed.
type refusing struct {
	net.Conn
	writes atomic.Int64
}

var errClosed = errors.New("closed by the server")

func (c *refusing) Write(p []byte) (int, error) {
	if c.writes.Add(1) > 1 {
		return 0, errClosed
	}
	return c.Conn.Write(p)
}

// Of what could not be written to a reused connection, the server took nothing: it is sent
// over another.
func TestUnwrittenIsSentAgain(t *testing.T) {
	s := listen(t, func(s *server, c net.Conn) {
		for in := bufio.NewReader(c); ; {
			if _, err := s.take(in); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	tr := newTransport(t)
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return &refusing{Conn: c}, err
	}
	for n := range 3 {
		if err := send(t, tr, "POST", s.url, "x", nil); err != nil || s.took.Load() != int64(n)+1 {
			t.Errorf("request %d: got %v, %d taken", n+1, err, s.took.Load())
		}
	}
	if err := send(t, tr, "POST", s.url, strings.Repeat("x", 100_000), nil); err == nil {
		t.Error("a body of several writes: got no error, want one: a part of it was written")
	}
}

// What an HTTP/2 server does with a request that it has read.
const (
	answer      = 0
	refuse      = 1 // RST_STREAM, REFUSED_STREAM
	protocol    = 2 // RST_STREAM, PROTOCOL_ERROR
	internal    = 3 // RST_STREAM, INTERNAL_ERROR
	goneWithout = 4 // GOAWAY that leaves the stream out
	goneWith    = 5 // GOAWAY that covers the stream, then the end
	hangUp      = 6
)

// http2 reads requests frame by frame and does with the nth what acts says.
func http2(acts []int) func(*server, net.Conn) {
	return func(s *server, c net.Conn) {
		in := bufio.NewReader(c)
		if _, err := io.ReadFull(in, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		frame := func(kind, flags byte, stream uint32, payload ...byte) {
			head := []byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, 0}
			binary.BigEndian.PutUint32(head[5:], stream)
			_, _ = c.Write(append(head, payload...))
		}
		frame(4, 0, 0) // SETTINGS
		for {
			var head [9]byte
			if _, err := io.ReadFull(in, head[:]); err != nil {
				return
			}
			size := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
			stream := binary.BigEndian.Uint32(head[5:])
			if _, err := io.CopyN(io.Discard, in, int64(size)); err != nil {
				return
			}
			if ends := head[3] <= 1 && head[4]&1 != 0; !ends { // DATA or HEADERS with END_STREAM
				continue
			}
			act := answer
			if n := s.took.Add(1); n <= int64(len(acts)) {
				act = acts[n-1]
			}
			switch act {
			case answer:
				frame(1, 5, stream, 0x88) // HEADERS, whole and last: ":status: 200"
			case refuse:
				frame(3, 0, stream, 0, 0, 0, 7)
			case protocol:
				frame(3, 0, stream, 0, 0, 0, 1)
			case internal:
				frame(3, 0, stream, 0, 0, 0, 2)
			case goneWithout:
				frame(7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
			case goneWith:
				frame(7, 0, 0, 0, 0, 0, byte(stream), 0, 0, 0, 0)
				return
			case hangUp:
				return
			}
		}
	}
}

// TestOverHTTP2 is field case transport-sends-again, and reused-connection-faults: only what
// the server says it did not take is sent again, and once.
func TestOverHTTP2(t *testing.T) {
	tests := []struct {
		name string
		acts []int
		took int64
		ok   bool
	}{
		{"answered", nil, 1, true},
		{"refused", []int{refuse}, 2, true},
		{"refused again", []int{refuse, refuse}, 2, false},
		{"left out by GOAWAY", []int{goneWithout}, 2, true},
		{"covered by GOAWAY", []int{goneWith}, 1, false},
		{"broken off for the protocol's sake", []int{protocol}, 1, false},
		{"broken off for another reason", []int{internal}, 1, false},
		{"refused, then broken off", []int{refuse, protocol}, 2, false},
		{"the connection ends", []int{hangUp}, 1, false},
	}
	for _, tt := range tests {
		for _, warmed := range []bool{false, true} {
			for _, body := range []string{"x", strings.Repeat("x", 20_000)} {
				acts := tt.acts
				if warmed {
					acts = append([]int{answer}, acts...)
				}
				s := listen(t, http2(acts))
				tr := newTransport(t)
				tr.Protocols = new(http.Protocols)
				tr.Protocols.SetUnencryptedHTTP2(true)
				before := int64(0)
				if warmed {
					warm(t, tr, s.url, 1)
					before = 1
				}
				err := send(t, tr, "POST", s.url, body, http.Header{"Idempotency-Key": {"k1"}})
				if took := s.took.Load() - before; took != tt.took || (err == nil) != tt.ok {
					t.Errorf("%s (warm %v, %d bytes): taken %d times, %v, want %d and success %v", tt.name, warmed, len(body), took, err, tt.took, tt.ok)
				}
				tr.CloseIdleConnections()
			}
		}
	}
}

// A host that spoke HTTP/1 before and speaks HTTP/2 now is known for it after one answer.
func TestHostThatLearns(t *testing.T) {
	s := listen(t, http2([]int{answer, protocol}))
	tr := newTransport(t)
	tr.Protocols = new(http.Protocols)
	tr.Protocols.SetUnencryptedHTTP2(true)
	roundtrip.Older(tr, strings.TrimPrefix(s.url, "http://"))
	if err := send(t, tr, "POST", s.url, "x", nil); err != nil {
		t.Fatal(err)
	}
	if err := send(t, tr, "POST", s.url, "x", nil); err == nil || s.took.Load() != 2 {
		t.Errorf("got %v, %d taken, want an error and 2", err, s.took.Load())
	}
}
