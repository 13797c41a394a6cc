package simulate

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Start serves a new Provider on a free port of the loopback address until ctx ends, and
// returns the base URL an account needs, such as http://127.0.0.1:40123. When ctx ends,
// running answers are cut: a simulation has nothing worth waiting for.
func Start(ctx context.Context) (baseURL string, err error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the simulated provider: %w", err)
	}
	server := &http.Server{Handler: New(nil), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }() // ends with the Close above, which is its only error
	return "http://" + l.Addr().String(), nil
}
