package upstreamtest

import (
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Script makes the answer to a request. It may be called for several requests at once.
type Script func(*Request) Answer

// Answer is what goes back.
type Answer struct {
	// Status is the HTTP status; 0 means 200.
	Status int
	// Header is sent as it is, beside what the server must add (Date, lengths).
	Header http.Header
	// Held keeps the status line and headers back; nil sends them at once.
	Held *Gate
	// Parts are written in order. Without an End the answer ends well.
	Parts []Part
}

// Part is one step of an answer's body: exactly one field is set.
type Part struct {
	// Data is written in one write and flushed.
	Data []byte
	// Gate stops the answer until it is released.
	Gate *Gate
	// Silence sends nothing for as long.
	Silence time.Duration
	// End stops the answer here, badly.
	End End
}

// End is a bad end of an answer.
type End int

const (
	// Reset closes the connection with a TCP reset, as when the host at the other end, or
	// something between, falls over.
	Reset End = iota + 1
	// Truncate closes the connection in order but without the mark that ends the body, as
	// when a process behind the provider's edge is replaced.
	Truncate
)

// write sends the answer. It gives up without a word when the client has left or the
// upstream closes.
func (a Answer) write(w http.ResponseWriter, r *Request, closed <-chan struct{}) {
	if a.Held != nil && !a.Held.wait(r, closed) {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), a.Header)
	if length, whole := a.length(); whole {
		w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	status := a.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	control := http.NewResponseController(w)
	if len(a.Parts) == 0 {
		return
	}
	_ = control.Flush() // a failed write below tells as much
	for _, p := range a.Parts {
		switch {
		case p.End == Reset:
			reset(control)
			return
		case p.End == Truncate:
			panic(http.ErrAbortHandler)
		case p.Gate != nil:
			if !p.Gate.wait(r, closed) {
				panic(http.ErrAbortHandler)
			}
		case p.Silence > 0:
			timer := time.NewTimer(p.Silence)
			select {
			case <-timer.C:
			case <-r.left:
				panic(http.ErrAbortHandler)
			case <-closed:
				panic(http.ErrAbortHandler)
			}
		default:
			if _, err := w.Write(p.Data); err != nil {
				panic(http.ErrAbortHandler)
			}
			if err := control.Flush(); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
	}
}

// length is the body's, when it is one write that nothing interrupts. A stream has none,
// however short it turned out.
func (a Answer) length() (n int, whole bool) {
	if len(a.Parts) == 0 {
		return 0, true
	}
	if len(a.Parts) > 1 || a.Parts[0].Data == nil || strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		return 0, false
	}
	return len(a.Parts[0].Data), true
}

// reset takes the connection and closes it with unsent data thrown away, which makes the
// kernel send RST.
func reset(control *http.ResponseController) {
	conn, _, err := control.Hijack()
	if err != nil {
		panic("upstreamtest: take the connection: " + err.Error())
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
