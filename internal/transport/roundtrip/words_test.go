package roundtrip_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/transport/roundtrip"
)

// Part of field case secrets-by-value: what came is not repeated, and what happened is said.
func TestInOurWords(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.Canceled, "the request was cancelled"},
		{context.DeadlineExceeded, "it took too long"},
		{&net.DNSError{Name: "api.example", IsNotFound: true}, "no host has its name"},
		{&net.DNSError{Name: "api.example", IsTemporary: true}, "its host name could not be looked up"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, "dial: connection refused"},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), "connection reset by peer"},
		{io.EOF, "the connection was closed before the answer was whole"},
		{fmt.Errorf("x: %w", io.ErrUnexpectedEOF), "the connection was closed before the answer was whole"},
		{errors.New("malformed HTTP response \"EXAMPLE\""), "what it sent is not an HTTP answer (*errors.errorString)"},
	} {
		got := roundtrip.InOurWords(c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v: got %q, want %q that wraps it", c.err, got, c.want)
		}
	}
	if roundtrip.InOurWords(nil) != nil {
		t.Error("no error became one")
	}
}

// What an upstream sends in place of an answer is in no error's text.
func TestMalformedHeadIsNotRepeated(t *testing.T) {
	for _, head := range []string{
		"EXAMPLE\r\n\r\n", "HTTP/1.1 EXAMPLE\r\n\r\n", "HTTP/1.1 200 OK\r\nEXAMPLE\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: EXAMPLE\r\n\r\n",
		"HTTP/EXAMPLE 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: EXAMPLE\r\n\r\n",
	} {
		s := listen(t, func(s *server, c net.Conn) {
			if _, err := c.Read(make([]byte, 4096)); err == nil {
				_, _ = io.WriteString(c, head)
			}
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&roundtrip.Transport{Transport: &http.Transport{DisableKeepAlives: true}}).RoundTrip(req)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%q: got an answer", head)
			continue
		}
		if got := roundtrip.InOurWords(err).Error(); strings.Contains(got, "EXAMPLE") || !strings.HasPrefix(got, "what it sent is not an HTTP answer") {
			t.Errorf("%q: got %q", head, got)
		}
	}
}
