package forward

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
)

const large = 1 << 20

// filled is a body of so many times one letter, in memory that may serve again.
func filled(letter byte) *Body {
	var b Body
	p := b.Make(large)
	for i := range p {
		p[i] = letter
	}
	return &b
}

func read(t *testing.T, r io.Reader, letter byte) {
	t.Helper()
	got, err := io.ReadAll(r)
	if err != nil || len(got) != large || bytes.Count(got, []byte{letter}) != large {
		t.Errorf("got %d bytes, %d of them %c (%v), want %d of it", len(got), bytes.Count(got, []byte{letter}), letter, err, large)
	}
}

// The memory of a body that was released serves others, and not before each attempt is done
// with it. Each loop would find some other body's letter otherwise.
func TestBodyIsNobodyElsesWhileItIsSent(t *testing.T) {
	for range 20 {
		first := filled('x')
		one, n := first.open()
		two, _ := first.open()
		if n != large {
			t.Fatalf("got a length of %d, want %d", n, large)
		}
		first.Release()
		if r, n := first.open(); r != http.NoBody || n != 0 {
			t.Errorf("a released body opens, with %d bytes", n)
		}
		other := filled('y')
		read(t, one, 'x')
		for range 2 { // as the transport may
			if err := one.Close(); err != nil {
				t.Fatal(err)
			}
		}
		third, fourth := filled('z'), filled('w')
		read(t, two, 'x')
		_ = two.Close()
		last := filled('v')
		for letter, b := range map[byte]*Body{'y': other, 'z': third, 'w': fourth, 'v': last} {
			r, _ := b.open()
			read(t, r, letter)
			_ = r.Close()
			b.Release()
		}
	}
}

// HTTP/2 closes a body while it reads it.
func TestBodyIsClosedWhileItIsRead(t *testing.T) {
	b := filled('x')
	r, _ := b.open()
	var reading sync.WaitGroup
	reading.Go(func() {
		p := make([]byte, 1000)
		for {
			n, err := r.Read(p)
			if bytes.Count(p[:n], []byte{'x'}) != n {
				t.Errorf("got %q, want nothing but x", p[:n])
			}
			if err != nil {
				return
			}
		}
	})
	_ = r.Close()
	b.Release()
	other := filled('y')
	reading.Wait()
	other.Release()
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("a closed body: got %d bytes and error %v", n, err)
	}
}

func TestBodyOfSomebodysOwnBytes(t *testing.T) {
	own := bytes.Repeat([]byte{'x'}, large)
	var b Body
	b.Hold(own)
	r, _ := b.open()
	read(t, r, 'x')
	_ = r.Close()
	b.Release()
	for range 4 {
		p := filled('y')
		p.Release()
	}
	if bytes.Count(own, []byte{'x'}) != large {
		t.Error("bytes that somebody handed over serve others")
	}
	var empty Body
	if p := empty.Make(0); len(p) != 0 {
		t.Errorf("got %d bytes of none", len(p))
	}
	empty.Release()
	empty.Release()
}

func BenchmarkBody(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var body Body
		body.Make(large)
		r, _ := body.open()
		_ = r.Close()
		body.Release()
	}
}
