package coding

import (
	"errors"
	"fmt"
	"io"
	"iter"
)

// Tap decodes an answer while it passes by. Write it what is passed on; it hands the
// plain text to its sink before Write returns, and nothing runs in between. It never
// makes its caller wait for anything else, and never fails it: when decoding fails, the
// sink hears no more, Err says why, and that is all.
//
// A Tap MUST be closed, or its memory is never given back. Its methods must not be called
// at the same time.
type Tap struct {
	codings []string
	left    int64 // plain bytes that the sink may get; counted down where nothing is decoded
	sink    func(plain []byte)

	// The decoder runs as a coroutine, because decoders ask for input and here input
	// comes by itself: next lets it run until it has used up chunk, or ended.
	// After the last chunk it always ends.
	next  func() (struct{}, bool)
	chunk []byte
	last  bool // no chunk will follow
	done  bool
	err   error
}

// NewTap returns a Tap for an answer with the values encodings of Content-Encoding, or
// ErrUnknown. After limit plain bytes it gives up with ErrTooLarge. The sink must not
// keep what it is given.
func NewTap(encodings []string, limit int64, sink func(plain []byte)) (*Tap, error) {
	codings, err := parse(encodings)
	if err != nil {
		return nil, err
	}
	t := &Tap{codings: codings, left: limit, sink: sink}
	if len(codings) > 0 {
		t.next, _ = iter.Pull(t.run)
	}
	return t, nil
}

// Write takes the next bytes of the answer. It always returns len(p) and no error.
func (t *Tap) Write(p []byte) (int, error) {
	if !t.done && len(p) > 0 {
		t.chunk = p
		t.step()
		t.chunk = nil
	}
	return len(p), nil
}

// Close ends the answer and returns what Err does. The sink gets what is still to come
// before Close returns, and nothing afterwards.
func (t *Tap) Close() error {
	if !t.done {
		t.last = true
		t.step()
		t.done = true
	}
	return t.err
}

// Err says why decoding ended early: an ErrCorrupt or ErrTooLarge, nil while all is well.
// That an answer was cut shows at Close.
func (t *Tap) Err() error { return t.err }

// step lets what there is be decoded.
func (t *Tap) step() {
	if t.next != nil {
		if _, more := t.next(); !more {
			t.done = true
		}
		return
	}
	plain := t.chunk
	if int64(len(plain)) > t.left {
		plain = plain[:t.left]
		t.err, t.done = ErrTooLarge, true
	}
	if t.left -= int64(len(plain)); len(plain) > 0 {
		t.sink(plain)
	}
}

// run is the coroutine. Yielding asks for the next chunk.
func (t *Tap) run(yield func(struct{}) bool) {
	var r io.Reader
	err := guard(func() (err error) {
		r, err = open(t.codings, &chunks{t, yield}, t.left)
		return err
	})
	buf := make([]byte, 16<<10)
	for err == nil {
		var n int
		err = guard(func() (err error) {
			n, err = r.Read(buf)
			return err
		})
		if n > 0 {
			t.sink(buf[:n])
		}
	}
	if !errors.Is(err, io.EOF) {
		t.err = explain(t.codings, err)
	}
}

// guard makes an error of a decoder's panic: odd bytes must not end the answer that they
// came in.
func guard(decode func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return decode()
}

// chunks reads what is written to a Tap.
type chunks struct {
	tap   *Tap
	yield func(struct{}) bool
}

func (c *chunks) Read(p []byte) (int, error) {
	for len(c.tap.chunk) == 0 {
		if c.tap.last {
			return 0, io.EOF
		}
		c.yield(struct{}{})
	}
	n := copy(p, c.tap.chunk)
	c.tap.chunk = c.tap.chunk[n:]
	return n, nil
}
