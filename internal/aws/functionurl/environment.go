package functionurl

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// invocation is one event on its way through a function.
type invocation struct {
	id       string
	event    []byte
	fate     atomic.Int32  // once: waiting, then taken or withdrawn
	taken    chan struct{} // closed when the function has the event
	answers  chan *answer  // has room for the one
	timedOut atomic.Bool
}

const (
	waiting = iota
	taken
	withdrawn
)

func newInvocation(id string, event []byte) *invocation {
	return &invocation{id: id, event: event, answers: make(chan *answer, 1), taken: make(chan struct{})}
}

// take marks an event as the function's; withdraw as never to be handed out. The first
// one to come decides.
func (inv *invocation) take() bool     { return inv.fate.CompareAndSwap(waiting, taken) }
func (inv *invocation) withdraw() bool { return inv.fate.CompareAndSwap(waiting, withdrawn) }

// environment is one process of the function with a Runtime API of its own.
type environment struct {
	front  *Front
	cmd    *exec.Cmd
	server *http.Server
	dead   chan struct{} // closed when the process is gone
	events chan *invocation
	// Guarded by front.mu.
	given   *invocation   // last
	retired bool          // not to have another event
	settled chan struct{} // while it is settling: closed when it is not any more

	mu      sync.Mutex
	asked   bool        // for its first event
	current *invocation // handed out and not answered
}

// start starts a process. front.mu is held.
func (f *Front) start() (*environment, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // no name to look up, so nothing to wait for
	if err != nil {
		return nil, fmt.Errorf("listen for the function: %w", err)
	}
	e := &environment{front: f, dead: make(chan struct{}), events: make(chan *invocation, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", e.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", e.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", e.failure)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", e.initFailure)
	e.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}

	e.cmd = exec.Command(f.o.Binary, f.o.Args...) //nolint:noctx // ended by kill, not with a request
	e.cmd.Dir = filepath.Dir(f.o.Binary)
	e.cmd.Stdout, e.cmd.Stderr = f.o.Output, f.o.Output
	e.cmd.WaitDelay = time.Second                      // for a child of the function that holds its output open
	e.cmd.Env = append(append([]string{}, f.o.Env...), // the last one of a name counts
		"AWS_LAMBDA_RUNTIME_API="+listener.Addr().String(),
		"AWS_LAMBDA_FUNCTION_NAME="+f.o.Function,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE="+strconv.Itoa(f.o.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"LAMBDA_TASK_ROOT="+e.cmd.Dir,
		"_HANDLER="+filepath.Base(f.o.Binary),
		"TZ=:UTC",
	)
	if err := e.cmd.Start(); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("start the function: %w", err)
	}
	f.log.Info("environment started", "pid", e.cmd.Process.Pid)
	go func() { _ = e.server.Serve(listener) }()
	go func() {
		err := e.cmd.Wait()
		f.log.Info("environment ended", "pid", e.cmd.Process.Pid, "status", e.cmd.ProcessState.String(), "error", err)
		f.forget(e)
		close(e.dead)
		_ = e.server.Close()
	}()
	return e, nil
}

// kill ends the process. Its place is free at once.
func (e *environment) kill(why string) {
	e.front.log.Info("environment killed", "pid", e.cmd.Process.Pid, "why", why)
	e.front.forget(e)
	_ = e.cmd.Process.Kill() // fails if it has ended already
}

// give hands an event to an environment that is idle or new. front.mu is held.
func (e *environment) give(inv *invocation) {
	if thaw := e.front.o.Thaw; thaw != nil && e.began() {
		_ = e.cmd.Process.Signal(thaw)
	}
	e.given = inv
	e.events <- inv
}

// began reports whether the function has asked for its first event.
func (e *environment) began() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// next is the function asking for an event.
func (e *environment) next(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	first := !e.asked
	e.asked, e.current = true, nil
	e.mu.Unlock()
	if !first && !e.front.park(e) { // the first event was given with the environment
		e.kill("it is replaced")
		panic(http.ErrAbortHandler)
	}
	var inv *invocation
	select {
	case inv = <-e.events:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	if !inv.take() {
		panic(http.ErrAbortHandler)
	}
	e.mu.Lock()
	e.current = inv
	e.mu.Unlock()
	h := w.Header()
	h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(e.front.o.Timeout).UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:"+e.front.o.Function)
	h.Set("Lambda-Runtime-Trace-Id", "Root="+newTraceID())
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(inv.event)))
	close(inv.taken)
	_, _ = w.Write(inv.event) // a process that is gone is seen by its end
	inv.event = nil           // the function has it: up to 6 MB less to hold
}

// response is the function's answer, which is read by whoever waits for it while it comes.
func (e *environment) response(w http.ResponseWriter, r *http.Request) {
	inv := e.spokenOf(w, r)
	if inv == nil {
		return
	}
	a := &answer{
		framed: r.Header.Get("Content-Type") == "application/vnd.awslambda.http-integration-response",
		body:   r.Body, trailer: func() http.Header { return r.Trailer }, ended: make(chan bool, 1),
	}
	inv.answers <- a
	if whole := <-a.ended; !whole {
		panic(http.ErrAbortHandler) // the function's writes fail
	}
	w.WriteHeader(http.StatusAccepted)
}

// failure is an invocation that failed as a whole.
func (e *environment) failure(w http.ResponseWriter, r *http.Request) {
	inv := e.spokenOf(w, r)
	if inv == nil {
		return
	}
	e.front.log.Error("invocation failed", "pid", e.cmd.Process.Pid, "fault", readFault(r))
	inv.answers <- &answer{failed: true, ended: make(chan bool, 1)}
	w.WriteHeader(http.StatusAccepted)
}

func (e *environment) initFailure(w http.ResponseWriter, r *http.Request) {
	e.front.log.Error("initialization failed", "pid", e.cmd.Process.Pid, "fault", readFault(r))
	w.WriteHeader(http.StatusAccepted)
}

// readFault reads what a function says of its failure.
func readFault(r *http.Request) string {
	text, _ := io.ReadAll(io.LimitReader(r.Body, 10_000))
	return string(text)
}

// spokenOf returns the invocation that a request of the function answers, which it can
// once.
func (e *environment) spokenOf(w http.ResponseWriter, r *http.Request) *invocation {
	e.mu.Lock()
	inv := e.current
	if inv != nil && inv.id == r.PathValue("id") {
		e.current = nil
	} else {
		inv = nil
	}
	e.mu.Unlock()
	if inv == nil {
		say(w, http.StatusBadRequest, `{"errorType":"InvalidRequestID","errorMessage":"Invalid request ID"}`)
	}
	return inv
}
