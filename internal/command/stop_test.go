package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// notes is a writer that tells when a text has been written.
type notes struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wants map[string]chan struct{}
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text.Write(p)
	for want, seen := range n.wants {
		if strings.Contains(n.text.String(), want) {
			close(seen)
			delete(n.wants, want)
		}
	}
	return len(p), nil
}

func (n *notes) seen(text string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := make(chan struct{})
	if strings.Contains(n.text.String(), text) {
		close(seen)
		return seen
	}
	if n.wants == nil {
		n.wants = map[string]chan struct{}{}
	}
	n.wants[text] = seen
	return seen
}

// stopping is a server with one stream that has begun and waits to be let go.
type stopping struct {
	said    *notes
	release chan struct{}
	signals chan os.Signal
	body    chan error // what became of the stream, at the client
	ended   chan error // how its context ended, at the server
	served  chan error // what serving returned
	text    *bytes.Buffer
}

func startStream(ctx context.Context, t *testing.T, within time.Duration) stopping {
	t.Helper()
	s := stopping{said: &notes{}, release: make(chan struct{}), signals: make(chan os.Signal, 2), body: make(chan error, 1), ended: make(chan error, 1), served: make(chan error, 1), text: &bytes.Buffer{}}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.release:
			_, _ = io.WriteString(w, "ended")
		case <-r.Context().Done():
			s.ended <- r.Context().Err()
			panic(http.ErrAbortHandler)
		}
	})}
	c := &cli{Options: Options{Stderr: s.said}}
	go func() { s.served <- c.serveUntilStopped(ctx, server, listener, s.signals, within) }()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan error, 1)
	go func() {
		answer, err := http.DefaultClient.Do(request)
		begun <- err
		if err != nil {
			return
		}
		defer answer.Body.Close()
		_, err = io.Copy(s.text, answer.Body)
		s.body <- err
	}()
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	return s
}

// A stop lets a running stream end, whether a signal or the context asked for it.
func TestStopLetsStreamsEnd(t *testing.T) {
	for name, stop := range map[string]func(stopping, context.CancelFunc){
		"signal":  func(s stopping, _ context.CancelFunc) { s.signals <- syscall.SIGTERM },
		"context": func(_ stopping, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := startStream(ctx, t, time.Hour)
			stop(s, cancel)
			<-s.said.seen("holdfast is stopping")
			close(s.release)
			if err := <-s.body; err != nil || s.text.String() != "begun ended" {
				t.Errorf("the client got %q, %v, want the whole stream", s.text, err)
			}
			if err := <-s.served; err != nil {
				t.Errorf("serving ended with %v", err)
			}
		})
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	s := startStream(t.Context(), t, time.Hour)
	s.signals <- syscall.SIGTERM
	<-s.said.seen("holdfast is stopping")
	s.signals <- os.Interrupt
	if err := <-s.body; err == nil {
		t.Errorf("the client got %q as if it were whole", s.text)
	}
	if err := <-s.served; err != nil {
		t.Errorf("serving ended with %v", err)
	}
	<-s.said.seen("has ended requests that were still running")
	s.timeWasUp(t)
}

// timeWasUp checks that the request was not taken for one whose client has left.
func (s stopping) timeWasUp(t *testing.T) {
	t.Helper()
	if err := <-s.ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the request's context ended with %v, want that its time was up", err)
	}
}

func TestStopHasALimit(t *testing.T) {
	s := startStream(t.Context(), t, time.Millisecond)
	s.signals <- syscall.SIGTERM
	if err := <-s.body; err == nil {
		t.Errorf("the client got %q as if it were whole", s.text)
	}
	if err := <-s.served; err != nil {
		t.Errorf("serving ended with %v", err)
	}
	s.timeWasUp(t)
}

// A client that leaves is still known as one.
func TestClientLeaves(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- r.Context().Err()
	})}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	c := &cli{Options: Options{Stderr: io.Discard}}
	go func() { served <- c.serveUntilStopped(ctx, server, listener, nil, time.Hour) }()
	asking, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(asking, http.MethodGet, "http://"+listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	answer.Body.Close()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
