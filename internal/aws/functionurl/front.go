package functionurl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Options of a front. Exactly one of Binary and Endpoint is required.
type Options struct {
	// Binary is the function's program, and Args its arguments.
	Binary string
	Args   []string
	// Env are the variables of the function, as os.Environ has them, beside those that the
	// platform sets itself. On Lambda nothing is inherited; hand over what the template
	// declares, and what the SDK needs to find its endpoints.
	Env []string
	// Endpoint is an Invoke API, such as http://127.0.0.1:3001, or the whole address of a
	// function's invocations there.
	Endpoint string
	// Function is the function's name; empty stands for "function", as the runtime
	// interface emulator calls each.
	Function string

	// MaxEnvironments bounds the requests at once; 0 stands for 100. More are answered 429.
	MaxEnvironments int
	// Timeout is the function's; 0 stands for 15 minutes, the most that Lambda allows.
	Timeout time.Duration
	// MemoryMB is what the function is told it has; 0 stands for 128. It isn't enforced.
	MemoryMB int
	// Bodies says which bodies come as base64.
	Bodies Bodies
	// TellLeave makes the function's writes fail once its client has left. Lambda doesn't.
	TellLeave bool
	// Freeze is sent to the process of an environment that waits for its next request, and
	// Thaw before it gets one: syscall.SIGSTOP and SIGCONT do what Lambda does. Both nil:
	// nothing is sent.
	Freeze, Thaw os.Signal

	// Output takes what the function writes to its standard output and standard error; nil
	// stands for this process's standard error.
	Output io.Writer
	// Log takes what the platform's log would say; nil discards.
	Log *slog.Logger
}

// InitTimeout is how long a process may take to ask for its first event.
const InitTimeout = 10 * time.Second

// Front is a Function URL: an http.Handler. Make one with New.
type Front struct {
	o      Options
	log    *slog.Logger
	client *http.Client // of Endpoint

	mu       sync.Mutex
	alive    map[*environment]struct{}
	idle     []*environment // of alive; the last one waited least
	settling []*environment // of alive; answered, and about to ask for the next event
	closed   bool
}

// New returns a front. The function's processes are started by requests.
func New(o Options) (*Front, error) {
	if (o.Binary == "") == (o.Endpoint == "") {
		return nil, errors.New("name either the function's binary or an endpoint that invokes it")
	}
	if o.Binary != "" {
		path, err := exec.LookPath(o.Binary)
		if err != nil {
			return nil, fmt.Errorf("find the function's binary: %w", err)
		}
		if o.Binary, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("find the function's binary: %w", err)
		}
	}
	if o.Function == "" {
		o.Function = "function"
	}
	if o.Endpoint != "" {
		address, err := invokeAddress(o.Endpoint, o.Function)
		if err != nil {
			return nil, err
		}
		o.Endpoint = address
	}
	if o.MaxEnvironments == 0 {
		o.MaxEnvironments = 100
	}
	if o.Timeout == 0 {
		o.Timeout = 15 * time.Minute
	}
	if o.MemoryMB == 0 {
		o.MemoryMB = 128
	}
	switch o.Output.(type) {
	case nil:
		o.Output = os.Stderr
	case *os.File: // which a process can have as it is
	default:
		o.Output = &sharedWriter{w: o.Output}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Front{
		o: o, log: o.Log, alive: map[*environment]struct{}{},
		client: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: o.MaxEnvironments}},
	}, nil
}

// ServeHTTP has the function answer a request. It has to run under a net/http server, by
// which it breaks off the connections of answers that did not end well.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := newID()
	w.Header().Set("X-Amzn-Requestid", id)
	event, err := f.newEvent(r, id)
	var large *tooLargeError
	switch {
	case errors.As(err, &large):
		say(w, http.StatusRequestEntityTooLarge, `{"Message":"Request must be smaller than 6291456 bytes for the InvokeFunction operation"}`)
		return
	case err != nil: // the body broke off: there is nobody to tell
		panic(http.ErrAbortHandler)
	}
	if f.o.Endpoint != "" {
		f.invoke(w, r, event)
		return
	}
	// An environment can die before it took the event; then another one may have it.
	for range 3 {
		inv := newInvocation(id, event)
		e, err := f.acquire(inv)
		if err != nil {
			f.refuse(w, err)
			return
		}
		if f.await(w, r, e, inv) {
			return
		}
	}
	f.refuse(w, errInit)
}

// await has an environment serve an invocation. It is false when the environment was gone
// before it took the event.
func (f *Front) await(w http.ResponseWriter, r *http.Request, e *environment, inv *invocation) (served bool) {
	// The function runs on when its client leaves, so nothing here ends with the request.
	init := time.NewTimer(InitTimeout)
	defer init.Stop()
	late := false
	select {
	case <-inv.taken:
	case <-init.C:
		late = true
		e.kill("the initialization took too long")
	case <-e.dead:
	}
	if inv.withdraw() {
		if !late && e.began() { // it was up and waiting
			return false
		}
		f.refuse(w, errInit)
		return true
	}
	timeout := time.AfterFunc(f.o.Timeout, func() {
		inv.timedOut.Store(true)
		e.kill("the function timed out")
	})
	defer timeout.Stop()
	var a *answer
	select {
	case a = <-inv.answers:
	case <-e.dead:
		select {
		case a = <-inv.answers: // it answered before it died
		default:
			f.refuse(w, cause(inv))
			return true
		}
	}
	if f.o.TellLeave {
		left := context.AfterFunc(r.Context(), func() { a.end(false) })
		defer left()
	}
	defer func() {
		f.settle(e, inv) // before the function is let go
		a.end(true)
	}()
	f.deliver(w, a)
	return true
}

// Errors that stand in the place of an answer.
var (
	errInit      = errors.New("the function could not be started")
	errCrashed   = errors.New("the function ended without an answer")
	errTimedOut  = errors.New("the function timed out")
	errFailed    = errors.New("the function failed")
	errUnframed  = errors.New("the answer has no prelude that can be read")
	errThrottled = errors.New("all environments are busy")
)

func cause(inv *invocation) error {
	if inv.timedOut.Load() {
		return errTimedOut
	}
	return errCrashed
}

// refuse answers in the function's place.
func (f *Front) refuse(w http.ResponseWriter, err error) {
	f.log.Error("no answer", "request", w.Header().Get("X-Amzn-Requestid"), "error", err)
	switch {
	case errors.Is(err, errThrottled):
		say(w, http.StatusTooManyRequests, `{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded","Type":"User","message":"Rate Exceeded."}`)
	case errors.Is(err, errTimedOut):
		say(w, http.StatusGatewayTimeout, `{"Message":"Task timed out"}`)
	default:
		say(w, http.StatusBadGateway, "Internal Server Error")
	}
}

func say(w http.ResponseWriter, status int, text string) {
	kind := "text/plain"
	if text[0] == '{' {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // whoever left does not need it
}

// settleFor is how long a request waits for an environment that has just answered, rather
// than to start another one: whoever sends one request after the other meets one process.
const settleFor = time.Second

// acquire gives an invocation to an idle environment, or to a new one.
func (f *Front) acquire(inv *invocation) (*environment, error) {
	for waited := false; ; waited = true {
		e, soon, err := f.tryAcquire(inv, !waited)
		if soon == nil {
			return e, err
		}
		select {
		case <-soon.settled:
		case <-soon.dead:
		case <-time.After(settleFor):
		}
	}
}

// tryAcquire returns either the environment that has the invocation, or one to wait for.
func (f *Front) tryAcquire(inv *invocation, patient bool) (e, soon *environment, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, nil, errors.New("the front is closed")
	}
	if n := len(f.idle); n > 0 {
		e := f.idle[n-1]
		f.idle = f.idle[:n-1]
		e.give(inv)
		return e, nil, nil
	}
	if patient && len(f.settling) > 0 {
		return nil, f.settling[0], nil
	}
	if len(f.alive) >= f.o.MaxEnvironments {
		return nil, nil, errThrottled
	}
	if e, err = f.start(); err != nil {
		return nil, nil, err
	}
	f.alive[e] = struct{}{}
	e.give(inv)
	return e, nil, nil
}

// settle notes that an environment has answered, unless it is further already.
func (f *Front) settle(e *environment, inv *invocation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, alive := f.alive[e]; alive && e.given == inv && !slices.Contains(f.idle, e) {
		e.settled = make(chan struct{})
		f.settling = append(f.settling, e)
	}
}

// park takes an environment back that waits for its next event. It is false when there is
// none to come.
func (f *Front) park(e *environment) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, alive := f.alive[e]; !alive || e.retired {
		return false
	}
	f.unsettle(e)
	if f.o.Freeze != nil { // here, so that it can't come after the thawing of give
		_ = e.cmd.Process.Signal(f.o.Freeze)
	}
	f.idle = append(f.idle, e)
	return true
}

// unsettle lets those go on who wait for an environment. f.mu is held.
func (f *Front) unsettle(e *environment) {
	if i := slices.Index(f.settling, e); i >= 0 {
		f.settling = slices.Delete(f.settling, i, i+1)
		close(e.settled)
	}
}

// forget drops an environment that is dead or dying.
func (f *Front) forget(e *environment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.alive, e)
	f.unsettle(e)
	if i := slices.Index(f.idle, e); i >= 0 {
		f.idle = slices.Delete(f.idle, i, i+1)
	}
}

// Replace makes requests from now on go to new environments, as a deployment does. Idle
// ones are ended before it returns, busy ones when they have answered.
func (f *Front) Replace() {
	f.mu.Lock()
	idle, settling := slices.Clone(f.idle), slices.Clone(f.settling)
	for e := range f.alive {
		e.retired = true
	}
	f.idle = nil
	f.mu.Unlock()
	for _, e := range idle {
		e.kill("it is replaced")
		<-e.dead
	}
	for _, e := range settling { // ended when it asks for an event
		select {
		case <-e.dead:
		case <-time.After(settleFor):
		}
	}
}

// Close ends all environments; answers under way break off. It returns when the processes
// are gone.
func (f *Front) Close() error {
	f.mu.Lock()
	f.closed = true
	var all []*environment
	for e := range f.alive {
		all = append(all, e)
	}
	f.mu.Unlock()
	for _, e := range all {
		e.kill("the front is closed")
	}
	for _, e := range all {
		<-e.dead
	}
	f.client.CloseIdleConnections()
	return nil
}

// sharedWriter lets several processes write to one place.
type sharedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sharedWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
