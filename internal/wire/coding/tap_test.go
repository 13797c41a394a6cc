package coding_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"holdfast/internal/wire/coding"
)

const event = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"word\"}}\n\n"

// What was flushed upstream is in the sink when Write returns, so that the tap keeps step
// with the stream.
func TestTapKeepsStep(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			var wire, got, want bytes.Buffer
			w := f.compressor(&wire)
			tap := must(coding.NewTap([]string{f.coding}, limit, func(plain []byte) { got.Write(plain) }))
			for n := range 50 {
				text := fmt.Sprintf(": %d\n%s", n, event)
				want.WriteString(text)
				_ = must(w.Write([]byte(text)))
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
				if n, err := tap.Write(wire.Bytes()); n != wire.Len() || err != nil {
					t.Fatalf("Write: got %d, %v, want %d", n, err, wire.Len())
				}
				wire.Reset()
				if got.String() != want.String() {
					t.Fatalf("after event %d: got %d bytes, want %d", n, got.Len(), want.Len())
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			_ = must(tap.Write(wire.Bytes()))
			if err := tap.Close(); err != nil || got.String() != want.String() {
				t.Errorf("Close: got %d bytes, error %v, want %d", got.Len(), err, want.Len())
			}
		})
	}
}

func TestTapByteByByte(t *testing.T) {
	bodies := map[string][]byte{"zstd, gzip": compress(byName("gzip"), compress(byName("zstd"), request)), "identity": request}
	for _, f := range forms {
		bodies[f.coding] = compress(f, request)
	}
	for encodings, body := range bodies {
		t.Run(encodings, func(t *testing.T) {
			var got []byte
			tap := must(coding.NewTap([]string{encodings}, limit, func(plain []byte) { got = append(got, plain...) }))
			for i := range body {
				_ = must(tap.Write(body[i : i+1]))
				_ = must(tap.Write(nil))
			}
			if err := tap.Close(); err != nil || !bytes.Equal(got, request) {
				t.Errorf("got %d bytes, error %v, want the %d", len(got), err, len(request))
			}
		})
	}
}

// A tap that fails takes all that follows, without a word, and ends its coroutine.
func TestTapFails(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, f := range forms {
		body := compress(f, bytes.Repeat([]byte(event), 2000))
		large := compress(f, make([]byte, limit+1))
		tests := []struct {
			name   string
			writes [][]byte
			want   error
		}{
			{"other bytes", [][]byte{request, request, request}, coding.ErrCorrupt},
			{"cut", [][]byte{body[:len(body)-1]}, coding.ErrCorrupt},
			{"cut at once", [][]byte{body[:1]}, coding.ErrCorrupt},
			{"nothing", nil, coding.ErrCorrupt},
			{"garbage behind", [][]byte{body, request, request}, coding.ErrCorrupt},
			{"over the limit", [][]byte{large[:len(large)/2], large[len(large)/2:], request}, coding.ErrTooLarge},
		}
		for _, tt := range tests {
			t.Run(f.name+"/"+tt.name, func(t *testing.T) {
				size := 0
				tap := must(coding.NewTap([]string{f.coding}, limit, func(plain []byte) { size += len(plain) }))
				for _, p := range tt.writes {
					if n, err := tap.Write(p); n != len(p) || err != nil {
						t.Errorf("Write: got %d, %v, want %d", n, err, len(p))
					}
				}
				for range 2 {
					if err := tap.Close(); !errors.Is(err, tt.want) {
						t.Errorf("Close: got %v, want %v", err, tt.want)
					}
				}
				if tap.Err() == nil || size > limit {
					t.Errorf("after it failed: got error %v and %d bytes, want an error and at most %d", tap.Err(), size, limit)
				}
				size = 0
				if n, err := tap.Write(body); n != len(body) || err != nil || size != 0 {
					t.Errorf("Write after Close: got %d, %v, %d bytes in the sink, want %d and none", n, err, size, len(body))
				}
			})
		}
		if f.name == "gzip" || f.name == "br" {
			t.Run(f.name+"/damaged", func(t *testing.T) {
				damaged := bytes.Clone(body)
				for i := len(damaged) / 2; i < len(damaged); i++ {
					damaged[i] ^= 0x55
				}
				tap := must(coding.NewTap([]string{f.coding}, limit, func([]byte) {}))
				_ = must(tap.Write(damaged))
				if err := tap.Close(); !errors.Is(err, coding.ErrCorrupt) {
					t.Errorf("Close: got %v, want %v", err, coding.ErrCorrupt)
				}
			})
		}
	}
	if after := runtime.NumGoroutine(); after != before {
		t.Errorf("goroutines: got %d, want %d as before", after, before)
	}
}

func TestTapClosedEarly(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, f := range forms {
		body := compress(f, bytes.Repeat([]byte(event), 2000))
		for _, n := range []int{0, 1, 2, 10, len(body) / 2} {
			tap := must(coding.NewTap([]string{f.coding}, limit, func([]byte) {}))
			_ = must(tap.Write(body[:n]))
			_ = tap.Close()
		}
	}
	if after := runtime.NumGoroutine(); after != before {
		t.Errorf("goroutines: got %d, want %d as before", after, before)
	}
}

func TestTapIdentity(t *testing.T) {
	var got []byte
	tap := must(coding.NewTap(nil, 10, func(plain []byte) { got = append(got, plain...) }))
	for _, p := range []string{"01234", "56789", "x", "y"} {
		if n, err := tap.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("Write(%q): got %d, %v, want %d", p, n, err, len(p))
		}
		if full := p == "x" || p == "y"; (tap.Err() != nil) != full {
			t.Errorf("after %q: got %v, want an error %v", p, tap.Err(), full)
		}
	}
	if err := tap.Close(); string(got) != "0123456789" || !errors.Is(err, coding.ErrTooLarge) {
		t.Errorf("got %q, %v, want the first ten bytes and %v", got, err, coding.ErrTooLarge)
	}
}

func TestTapUnknown(t *testing.T) {
	if tap, err := coding.NewTap([]string{"compress"}, limit, nil); tap != nil || !errors.Is(err, coding.ErrUnknown) {
		t.Errorf("NewTap: got %v, %v, want %v", tap, err, coding.ErrUnknown)
	}
}
