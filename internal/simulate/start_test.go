package simulate_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"holdfast/internal/simulate"
)

func TestStart(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	base, err := simulate.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || u.Path != "" || u.Port() == "" {
		t.Fatalf("base URL: got %q, want http, a port and no path", base)
	}
	if ip := net.ParseIP(u.Hostname()); !ip.IsLoopback() {
		t.Errorf("host: got %s, want a loopback address", u.Hostname())
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodHead, base+"/api/hello", nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status: got %d, want 200", resp.StatusCode)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// Sooner than the server's own limit on a connection that sends nothing.
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	stop()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an open connection after the end: got %d bytes, %v, want it closed", n, err)
	}
}
