package apicall_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"holdfast/internal/transport/apicall"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // net/http reads it once
	os.Exit(m.Run())
}

// TestTokenIsSentOnce is field case transport-sends-again: a token endpoint, or what stands
// before it, that breaks the exchange off with an error of HTTP/2 has heard the token once.
func TestTokenIsSentOnce(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var heard atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go breakOff(c, &heard)
		}
	}()
	tr := apicall.NewTransport()
	tr.Protocols = new(http.Protocols)
	tr.Protocols.SetUnencryptedHTTP2(true)
	_, err = apicall.Caller{Transport: tr}.Do(t.Context(), post("https://provider.example/token"), "http://"+l.Addr().String())
	if !errors.Is(err, apicall.ErrNoAnswer) || heard.Load() != 1 {
		t.Errorf("got %v, heard %d times, want ErrNoAnswer and once", err, heard.Load())
	}
}

// breakOff answers each request of an HTTP/2 connection with RST_STREAM and PROTOCOL_ERROR.
func breakOff(c net.Conn, heard *atomic.Int64) {
	defer c.Close()
	in := bufio.NewReader(c)
	_, _ = io.CopyN(io.Discard, in, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	_, _ = c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS
	for {
		var head [9]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(append([]byte{0}, head[:3]...))
		if _, err := io.CopyN(io.Discard, in, int64(size)); err != nil {
			return
		}
		if head[3] == 0 && head[4]&1 != 0 { // the last DATA
			heard.Add(1)
			reset := append([]byte{0, 0, 4, 3, 0}, head[5:]...)
			_, _ = c.Write(append(reset, 0, 0, 0, 1))
		}
	}
}

// TestCallsGoThroughNoPlainProxy is field case proxies: a token never goes to a proxy in
// clear.
func TestCallsGoThroughNoPlainProxy(t *testing.T) {
	var dialled string
	tr := apicall.NewTransport()
	tr.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = address
		return nil, errors.New("not from a test")
	}
	_, err := apicall.Caller{Transport: tr}.Do(t.Context(), post("https://provider.example/token"), "http://10.9.8.7:8080")
	if !errors.Is(err, apicall.ErrNotSent) || dialled != "10.9.8.7:8080" {
		t.Errorf("dialled %q, %v, want the account's host", dialled, err)
	}
}
