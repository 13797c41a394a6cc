package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Tap reads along with a body on its way to the client. It is told every chunk before
// the client is, and answers what to do with it.
type Tap interface {
	// Chunk is given the bytes of one read. The verdict Hold keeps them (and what was held
	// before) back, Pass lets them go, Abandon ends the relay with nothing sent.
	Chunk(p []byte) Verdict
	// End is asked once, when the body has ended in order. The verdict Abandon ends the relay
	// where nothing was sent; any other lets go what was held.
	End() Verdict
	// Boundary reports whether the bytes so far end between two events, where another event or
	// a comment may stand.
	Boundary() bool
}

// Verdict is a Tap's word on a chunk.
type Verdict int

const (
	Pass Verdict = iota
	Hold
	Abandon
	// Last lets a chunk go that has the answer's end: the body is waited for no longer than
	// Linger, and however it ends then, the answer was whole.
	Last
)

const (
	// MaxHeld and MaxHeldFor bound what may be held back.
	MaxHeld    = 2 << 20
	MaxHeldFor = 2 * time.Second
	// Linger is how long the end of a body may come behind the answer's own. It comes along
	// with it as a rule, and a connection whose body was read to its end is used again.
	Linger = 250 * time.Millisecond
)

var (
	// ErrAbandoned reports that the tap ended the relay before anything was sent.
	ErrAbandoned = errors.New("the answer was given up before anything was sent")
	// ErrClient reports that the client left, or stopped reading.
	ErrClient = errors.New("the client left")
	// ErrTimeUp reports that the time the platform gives a request was up.
	ErrTimeUp = errors.New("the time for this request is up")
	// ErrCut reports that the upstream's answer broke off.
	ErrCut = errors.New("the upstream's answer broke off")
	// ErrIdle reports that the upstream was silent for longer than the limit.
	ErrIdle = errors.New("the upstream fell silent")
	// ErrEmpty reports a body without a byte where Relay was told to expect one.
	ErrEmpty = errors.New("the upstream's answer is empty")
)

// Relay carries one answer's body to the client.
type Relay struct {
	W http.ResponseWriter
	// Client ends when the client has left, or by its deadline when time is up.
	Client context.Context
	// Cancel ends the upstream's answer. Closing its body is Run's caller's.
	Cancel context.CancelFunc
	Limits Limits
	// Begin writes status and headers; it is called once, before the first byte.
	Begin func()
	// Tap reads along; nil passes everything.
	Tap Tap
	// KeepAlive is what is sent where the body is silent for Limits.KeepAlive, between two of
	// its events; nil for a body that nothing may be put into.
	KeepAlive []byte
	// MayHold: the tap may hold chunks back. Since is when the headers arrived.
	MayHold bool
	Since   time.Time
	// NeedBody: a body without a byte is ErrEmpty, as far as nothing was sent yet.
	NeedBody bool
	// Length is the told length of the body, negative when it was not told.
	Length int64

	mu        sync.Mutex // guards all writes to W, and what follows
	rc        *http.ResponseController
	begun     bool
	ended     bool
	held      []byte
	passed    int64     // bytes that went to the client, comments aside
	over      time.Time // when the chunk came that has the answer's end
	lastRead  time.Time
	lastWrite time.Time
	deadline  time.Time // of writes, as set last
	failed    error     // why the relay must end: ErrClient or ErrIdle
	watch     *time.Timer
}

const chunkSize = 32 << 10

var buffers = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// Begun reports whether anything went to the client. Call it after Run.
func (r *Relay) Begun() bool { return r.begun }

// Held returns the body as far as it was read, where the relay was given up. Call it after
// Run.
func (r *Relay) Held() []byte { return r.held }

// Run copies body to the client until it ends. It returns nil when it ended well, and
// otherwise one of this package's errors; the body is then incomplete and the client must
// not take it for whole.
func (r *Relay) Run(body io.Reader) error {
	now := time.Now()
	r.rc, r.lastRead, r.lastWrite = http.NewResponseController(r.W), now, now
	if r.MayHold || r.NeedBody {
		release := time.AfterFunc(max(0, MaxHeldFor-now.Sub(r.Since)), r.release)
		defer release.Stop()
	} else {
		r.release()
	}
	r.mu.Lock()
	r.watch = time.AfterFunc(r.patience(now), r.watchOver)
	r.mu.Unlock()
	defer r.end()

	buf := buffers.Get().(*[chunkSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			if err := r.chunk(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return r.close(err)
		}
	}
}

// chunk tells the tap of one read and lets it go to the client, or holds it back.
func (r *Relay) chunk(p []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastRead = time.Now()
	verdict := Pass
	if r.Tap != nil {
		verdict = r.Tap.Chunk(p)
	}
	if r.failed != nil {
		return r.failed
	}
	if verdict == Last && r.over.IsZero() {
		r.over = r.lastRead
		r.watch.Reset(Linger)
	}
	if !r.begun {
		switch {
		case verdict == Abandon:
			r.held = append(r.held, p...)
			return ErrAbandoned
		case verdict == Hold && r.MayHold && len(r.held)+len(p) <= MaxHeld:
			r.held = append(r.held, p...)
			return nil
		}
		r.begin()
	}
	return r.write(p)
}

// begin sends what comes before the next chunk. r.mu is held.
func (r *Relay) begin() {
	r.begun = true
	r.Begin()
	if len(r.held) > 0 {
		_ = r.write(r.held) // a failure stays in r.failed
		r.held = nil
	}
}

// release ends the holding back: its time is up.
func (r *Relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun || r.ended {
		return
	}
	r.begin()
	r.flush()
}

// write sends p at once. r.mu is held.
func (r *Relay) write(p []byte) error {
	if r.failed != nil {
		return r.failed
	}
	r.extendDeadline()
	if _, err := r.W.Write(p); err != nil {
		return r.fail(ErrClient)
	}
	r.passed += int64(len(p))
	if r.passed != r.Length { // the last bytes of a body of told length leave by themselves
		r.flush()
	}
	r.lastWrite = time.Now()
	return r.failed
}

// flush has no error to heed where the writer sends at once (http.ErrNotSupported); a
// broken connection shows at the next write.
func (r *Relay) flush() { _ = r.rc.Flush() }

// extendDeadline gives the client Limits.Write from now to take what is written. Not
// every writer knows deadlines; those that do not have a platform that ends them.
func (r *Relay) extendDeadline() {
	now := time.Now()
	if r.deadline.Sub(now) < r.Limits.Write*3/4 {
		r.deadline = now.Add(r.Limits.Write)
		_ = r.rc.SetWriteDeadline(r.deadline)
	}
}

// fail notes why the relay must end and ends the upstream's answer. r.mu is held.
func (r *Relay) fail(err error) error {
	if r.failed == nil {
		r.failed = err
	}
	r.Cancel()
	return r.failed
}

// keepsAlive reports whether silence is filled.
func (r *Relay) keepsAlive() bool { return r.KeepAlive != nil && r.Limits.KeepAlive > 0 }

// patience is the time until watchOver has something to do. r.mu is held.
func (r *Relay) patience(now time.Time) time.Duration {
	wait := r.Limits.Idle - now.Sub(r.lastRead)
	if r.keepsAlive() {
		wait = min(wait, r.Limits.KeepAlive-now.Sub(r.lastWrite))
	}
	return max(wait, time.Millisecond)
}

// watchOver lets an upstream go whose answer is over, ends one that fell silent, and keeps a
// silent stream alive.
func (r *Relay) watchOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.failed != nil {
		return
	}
	now := time.Now()
	if !r.over.IsZero() {
		if left := Linger - now.Sub(r.over); left > 0 {
			r.watch.Reset(left)
			return
		}
		r.Cancel()
		return
	}
	if now.Sub(r.lastRead) >= r.Limits.Idle {
		_ = r.fail(ErrIdle)
		return
	}
	if r.keepsAlive() && now.Sub(r.lastWrite) >= r.Limits.KeepAlive {
		r.lastWrite = now // looked at, also where no comment may stand
		if r.begun && r.Tap != nil && r.Tap.Boundary() {
			r.extendDeadline()
			if _, err := r.W.Write(r.KeepAlive); err != nil {
				_ = r.fail(ErrClient)
				return
			}
			r.flush()
		}
	}
	r.watch.Reset(r.patience(now))
}

// close ends the relay after the upstream's last byte.
func (r *Relay) close(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failed != nil:
		return r.failed
	case !r.over.IsZero():
		return nil
	case errors.Is(r.Client.Err(), context.DeadlineExceeded):
		return ErrTimeUp
	case r.Client.Err() != nil:
		return ErrClient
	case !errors.Is(err, io.EOF):
		return ErrCut
	case !r.begun && r.NeedBody && len(r.held) == 0:
		return ErrEmpty
	}
	verdict := Pass
	if r.Tap != nil {
		verdict = r.Tap.End()
	}
	switch {
	case r.begun:
		return nil
	case verdict == Abandon:
		return ErrAbandoned
	}
	r.begin()
	return r.failed
}

func (r *Relay) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.watch.Stop()
}
