package roundtrip_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast/internal/transport/roundtrip"
)

// TestProxyIsNamed is field case proxy-refuses: where a proxy stands on the way, an error
// names it and what it did, and never its user or password.
func TestProxyIsNamed(t *testing.T) {
	answers := func(text string) string {
		return listen(t, func(_ *server, c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, text)
			}
		}).url
	}
	socks := "socks5" + strings.TrimPrefix(listen(t, func(_ *server, c net.Conn) {
		for _, answer := range []string{"\x05\x00", "\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"} { // connecting is not allowed (RFC 1928)
			if _, err := c.Read(make([]byte, 512)); err == nil {
				_, _ = io.WriteString(c, answer)
			}
		}
	}).url, "http")
	nobody, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	for name, c := range map[string]struct{ proxy, want string }{
		"not there":        {"http://" + nobody.Addr().String(), "could not be reached: dial: connection refused"},
		"refuses as SOCKS": {socks, "refused to connect"},
		"refuses":          {answers("HTTP/1.1 403 EXAMPLE\r\nContent-Length: 0\r\n\r\n"), "refused to connect (status 403)"},
		"wants a password": {answers("HTTP/1.1 407 EXAMPLE\r\nContent-Length: 0\r\n\r\n"), "another user name and password (status 407)"},
		"closes":           {answers(""), "the connection was closed before the answer was whole"},
		"is not HTTP":      {answers("EXAMPLE\r\n\r\n"), "what it sent is not an HTTP answer"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := url.Parse(strings.Replace(c.proxy, "://", "://EXAMPLE:hunter2@", 1))
			if err != nil {
				t.Fatal(err)
			}
			tr := newTransport(t)
			tr.Proxy, tr.OnProxyConnectResponse = http.ProxyURL(u), roundtrip.ProxyAnswered
			got := fmt.Sprint(roundtrip.InOurWords(send(t, tr, "POST", "https://api.example/v1/messages", "hello", nil)))
			if !strings.Contains(got, "the proxy "+u.Host+" (HTTPS_PROXY)") || !strings.Contains(got, c.want) || strings.Contains(got, "EXAMPLE") || strings.Contains(got, "hunter2") {
				t.Errorf("got %q, want a word on %q", got, c.want)
			}
		})
	}
}
