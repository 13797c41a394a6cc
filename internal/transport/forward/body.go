package forward

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Body is a request's body, held once for all attempts. The zero value is empty.
type Body struct {
	mu   sync.Mutex
	held *buffer
}

// buffer holds a body's bytes as long as anybody uses them: the Body, and every attempt that
// has not been sent to its end.
type buffer struct {
	bytes []byte
	users atomic.Int64
	// again: the memory takes another body in the end.
	again bool
}

// spare has buffers that nobody uses: large ones cost more to make than to fill.
var spare sync.Pool

// Make gives n bytes to read the body into, which the Body holds. What they point into
// belongs to another body soon after Release: nothing else may keep them.
func (b *Body) Make(n int) []byte {
	if n <= inOneWrite {
		p := make([]byte, n)
		b.Hold(p)
		return p
	}
	used, _ := spare.Get().(*buffer)
	if used == nil || cap(used.bytes) < n || cap(used.bytes)/4 > n {
		// Each turn of a conversation is somewhat longer than the one before.
		used = &buffer{bytes: make([]byte, n+n/16), again: true}
	}
	used.bytes = used.bytes[:n]
	b.hold(used)
	return used.bytes
}

// Hold takes the bytes; they must not be changed afterwards.
func (b *Body) Hold(p []byte) { b.hold(&buffer{bytes: p}) }

func (b *Body) hold(next *buffer) {
	next.users.Store(1)
	b.mu.Lock()
	old := b.held
	b.held = next
	b.mu.Unlock()
	old.drop()
}

// Release lets go of the bytes: no attempt will follow. One that is still sending goes on.
func (b *Body) Release() {
	b.mu.Lock()
	old := b.held
	b.held = nil
	b.mu.Unlock()
	old.drop()
}

// drop is the word of one user that it uses the bytes no more.
func (u *buffer) drop() {
	if u != nil && u.users.Add(-1) == 0 && u.again {
		spare.Put(u)
	}
}

// open returns a reader from the beginning, and the length.
func (b *Body) open() (io.ReadCloser, int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil || len(b.held.bytes) == 0 {
		return http.NoBody, 0
	}
	n := int64(len(b.held.bytes))
	if n <= inOneWrite && !b.held.again {
		return io.NopCloser(bytes.NewReader(b.held.bytes)), n
	}
	b.held.users.Add(1)
	return &bodyReader{from: b.held, rest: b.held.bytes}, n
}

// inOneWrite is up to where the transport is shown that a body is in memory, which it knows
// by its type: it then sends the headers along instead of ahead. For a larger one that spares
// little, and would keep it in memory as long as its answer.
const inOneWrite = 32 << 10

// bodyReader lets go of the bytes when it is closed, which the transport does as soon as
// they are sent, while the request itself lives as long as its answer. HTTP/2 closes it while
// it is still reading where the server wants no more of it.
type bodyReader struct {
	mu   sync.Mutex
	from *buffer // nil once it is closed
	rest []byte
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.from == nil:
		return 0, http.ErrBodyReadAfterClose
	case len(r.rest) == 0:
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	from := r.from
	r.from, r.rest = nil, nil
	r.mu.Unlock()
	from.drop()
	return nil
}
