package lambdahttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Causes with which a request's context ends before its handler returned.
var (
	// ErrDeadline says that the function's time is almost up. What is left is for ending
	// the answer in a way the client understands.
	ErrDeadline = errors.New("the function's time is almost up")
	// ErrStopped says that the platform takes no more of the answer. Writes return it too.
	ErrStopped = errors.New("the platform stopped reading the answer")
)

// DefaultMargin is long enough for a last event to the client and for the writes to a
// store that an answer may have left under way.
const DefaultMargin = 2 * time.Second

// Options of Start. The zero value works.
type Options struct {
	// Margin is how long before the platform's deadline a request's context ends; zero
	// stands for DefaultMargin. At most a quarter of the time that an invocation has is
	// used for it.
	Margin time.Duration
	// Log takes panics, malformed events and answers that could not be delivered; nil
	// stands for slog.Default.
	Log *slog.Logger
	// RuntimeAPI is host and port of the Runtime API; empty stands for the variable
	// AWS_LAMBDA_RUNTIME_API, which the platform sets.
	RuntimeAPI string
}

// Start serves events, one at a time, until the Runtime API cannot be reached; it returns
// that error, never nil. The platform then expects the process to exit with a status other
// than 0.
func Start(handler http.Handler, o Options) error {
	api, err := newRuntimeAPI(o.RuntimeAPI)
	if err != nil {
		return err
	}
	l := &loop{api: api, handler: handler, margin: o.Margin, log: o.Log}
	if l.margin == 0 {
		l.margin = DefaultMargin
	}
	if l.log == nil {
		l.log = slog.Default()
	}
	return l.run()
}

// ReportInit tells the platform why the function could not be set up; its caller exits
// with a status other than 0. The error's text goes to the function's log and to whoever
// invokes the function directly, so it must not hold secrets.
func ReportInit(cause error) error {
	api, err := newRuntimeAPI("")
	if err != nil {
		return err
	}
	if err := api.failInit(fault{Type: "Function.Init", Message: cause.Error()}); err != nil {
		return fmt.Errorf("report the initialization error: %w", err)
	}
	return nil
}

type loop struct {
	api     *runtimeAPI
	handler http.Handler
	margin  time.Duration
	log     *slog.Logger
}

func (l *loop) run() error {
	// Held between events: the largest is some 6 MB, and a fresh one each time would cost
	// more in page faults than it saves. Bodies are read from within it.
	var event bytes.Buffer
	for {
		inv, err := l.api.next(&event)
		if err != nil {
			return fmt.Errorf("ask for the next event: %w", err)
		}
		l.serve(inv, event.Bytes())
	}
}

// serve answers one event. Whatever fails is reported and logged; the next one is served.
func (l *loop) serve(inv invocation, event []byte) {
	log := l.log.With("invocation", inv.id)
	r, body, err := newRequest(event)
	if err == nil && inv.deadline.IsZero() {
		err = errors.New("the event came without a deadline")
	}
	if err != nil {
		log.Error("malformed event", "error", err)
		l.fail(log, inv, fault{Type: "Function.MalformedEvent", Message: err.Error()})
		return
	}
	defer body.release() // the next event overwrites its bytes

	ctx, stop := context.WithCancelCause(l.context(inv))
	defer stop(nil)
	ctx, cancel := context.WithDeadlineCause(ctx, inv.deadline.Add(-l.marginOf(inv)), ErrDeadline)
	defer cancel()

	a := newAnswer(r.Method, func(s *stream) { l.post(log, inv, s, stop) })
	end := l.call(log, a, r.WithContext(ctx))
	if end == nil {
		a.finish()
		return
	}
	if !a.abort(*end) { // nothing was sent: fail the invocation as a whole
		l.fail(log, inv, *end)
	}
}

// context carries what the platform says of an invocation.
func (l *loop) context(inv invocation) context.Context {
	_ = os.Setenv("_X_AMZN_TRACE_ID", inv.traceID) // where a runtime has to put it
	ctx := lambdacontext.NewContext(context.Background(), &lambdacontext.LambdaContext{
		AwsRequestID: inv.id, InvokedFunctionArn: inv.functionARN, TenantID: inv.tenantID,
	})
	//nolint:staticcheck // SA1029: the key under which AWS's own libraries look for it
	ctx = context.WithValue(ctx, "x-amzn-trace-id", inv.traceID)
	// httputil.ReverseProxy breaks an answer off only where it finds a server to do it.
	return context.WithValue(ctx, http.ServerContextKey, &http.Server{})
}

func (l *loop) marginOf(inv invocation) time.Duration {
	return max(0, min(l.margin, time.Until(inv.deadline)/4))
}

// call runs the handler. It returns the fault with which the answer has to end, nil if it
// can end well.
func (l *loop) call(log *slog.Logger, a *answer, r *http.Request) (end *fault) {
	// A goroutine of its own: runtime.Goexit in the handler must not end the loop.
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			p := recover()
			err, _ := p.(error)
			switch {
			case returned:
			case errors.Is(err, http.ErrAbortHandler):
				end = &fault{Type: "Function.Aborted", Message: "the answer was broken off"}
			default:
				log.Error("panic", "panic", p, "stack", string(debug.Stack()))
				if !a.refuse("The gateway met an internal fault; its log has the details.") {
					end = &fault{Type: "Function.Panic", Message: "the handler panicked"}
				}
			}
		}()
		l.handler.ServeHTTP(a, r)
		returned = true
		if a.refuse("The gateway gave no answer; its log has the details.") {
			log.Error("handler returned without an answer")
		}
	}()
	<-done
	return end
}

// post sends an answer while it is written.
func (l *loop) post(log *slog.Logger, inv invocation, s *stream, stop context.CancelCauseFunc) {
	err := l.api.respond(inv.id, s)
	if err != nil {
		log.Error("deliver the answer", "error", err)
	}
	s.close(ErrStopped)
	stop(ErrStopped)
}

func (l *loop) fail(log *slog.Logger, inv invocation, f fault) {
	if err := l.api.fail(inv.id, f); err != nil {
		log.Error("report the failed invocation", "error", err)
	}
}
