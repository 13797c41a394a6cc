package coding_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"holdfast/internal/wire/coding"
)

const limit = 1 << 20

// flushWriter is what all compressors are.
type flushWriter interface {
	io.WriteCloser
	Flush() error
}

// form is one way to write a coding.
type form struct {
	name, coding string
	compressor   func(w io.Writer) flushWriter
}

var forms = []form{
	{"gzip", "gzip", func(w io.Writer) flushWriter { return gzip.NewWriter(w) }},
	{"zlib", "deflate", func(w io.Writer) flushWriter { return zlib.NewWriter(w) }},
	{"raw deflate", "deflate", func(w io.Writer) flushWriter { return must(flate.NewWriter(w, flate.DefaultCompression)) }},
	{"stored deflate", "deflate", func(w io.Writer) flushWriter { return must(flate.NewWriter(w, flate.NoCompression)) }},
	{"zstd", "zstd", func(w io.Writer) flushWriter { return must(zstd.NewWriter(w)) }},
	{"zstd without checksum", "zstd", func(w io.Writer) flushWriter { return must(zstd.NewWriter(w, zstd.WithEncoderCRC(false))) }},
	{"br", "br", func(w io.Writer) flushWriter { return brotli.NewWriter(w) }},
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func compress(f form, plain []byte) []byte {
	var b bytes.Buffer
	w := f.compressor(&b)
	_ = must(w.Write(plain))
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func byName(name string) form {
	return forms[slices.IndexFunc(forms, func(f form) bool { return f.name == name })]
}

var request = []byte(`{"model":"gpt-5.5","input":"` + strings.Repeat("Find out why the build fails. ", 200) + `"}`)

func TestDecodeCompressedRequestBodies(t *testing.T) {
	random := make([]byte, 300<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	bodies := map[string][]byte{
		"request": request, "empty": {}, "one byte": {'{'}, "random": random, "at the limit": bytes.Repeat([]byte("0123456789abcdef"), limit/16),
	}
	for _, f := range forms {
		for name, plain := range bodies {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				got, err := coding.Decode([]string{f.coding}, compress(f, plain), limit)
				if err != nil || !bytes.Equal(got, plain) {
					t.Errorf("Decode: got %d bytes, error %v, want the %d bytes", len(got), err, len(plain))
				}
			})
		}
	}
}

func TestDecodeLists(t *testing.T) {
	gz, zs, br, raw := byName("gzip"), byName("zstd"), byName("br"), byName("raw deflate")
	tests := []struct {
		name      string
		encodings []string
		body      []byte
	}{
		{"zstd, then gzip", []string{"zstd, gzip"}, compress(gz, compress(zs, request))},
		{"gzip, then zstd", []string{"gzip,zstd"}, compress(zs, compress(gz, request))},
		{"two headers", []string{"br", "deflate"}, compress(raw, compress(br, request))},
		{"three", []string{"gzip, br", "zstd"}, compress(zs, compress(br, compress(gz, request)))},
		{"the same twice", []string{"zstd, zstd"}, compress(zs, compress(zs, request))},
		{"case and space", []string{" GZip ,\tZSTD"}, compress(zs, compress(gz, request))},
		{"identity among them", []string{"identity, gzip, Identity"}, compress(gz, request)},
		{"empty elements", []string{"", ", gzip,,"}, compress(gz, request)},
		{"old name", []string{"x-gzip"}, compress(gz, request)},
		{"two gzip members", []string{"gzip"}, append(compress(gz, request[:100]), compress(gz, request[100:])...)},
		{"two zstd frames", []string{"zstd"}, append(compress(zs, request[:100]), compress(zs, request[100:])...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := coding.Decode(tt.encodings, tt.body, limit)
			if err != nil || !bytes.Equal(got, request) {
				t.Errorf("Decode(%q): got %d bytes, error %v, want the request", tt.encodings, len(got), err)
			}
		})
	}
}

func TestDecodeNothing(t *testing.T) {
	for _, encodings := range [][]string{nil, {}, {""}, {"identity"}, {"identity, Identity", " "}} {
		got, err := coding.Decode(encodings, request, int64(len(request)))
		if err != nil || len(got) != len(request) || &got[0] != &request[0] {
			t.Errorf("Decode(%q): got %d bytes, error %v, want the very bytes given", encodings, len(got), err)
		}
		if _, err := coding.Decode(encodings, request, int64(len(request))-1); !errors.Is(err, coding.ErrTooLarge) {
			t.Errorf("Decode(%q) over the limit: got %v, want %v", encodings, err, coding.ErrTooLarge)
		}
	}
	if got, err := coding.Decode(nil, nil, 10); len(got) != 0 || err != nil {
		t.Errorf("Decode of no body: got %q, %v, want nothing", got, err)
	}
}

func TestDecodeUnknown(t *testing.T) {
	for _, encodings := range [][]string{
		{"compress"}, {"gzip, lz4"}, {"gzip;q=1"}, {"gzip zstd"}, {"*"}, {"gzip,gzip,gzip,gzip"}, {"br", "br", "br", "br"},
	} {
		if got, err := coding.Decode(encodings, request, limit); !errors.Is(err, coding.ErrUnknown) || got != nil {
			t.Errorf("Decode(%q): got %d bytes, error %v, want %v", encodings, len(got), err, coding.ErrUnknown)
		}
	}
}

func TestDecodeCorrupt(t *testing.T) {
	check := func(t *testing.T, what, name string, body []byte) {
		t.Helper()
		if got, err := coding.Decode([]string{name}, body, limit); !errors.Is(err, coding.ErrCorrupt) || got != nil {
			t.Errorf("%s: got %d bytes, error %v, want %v", what, len(got), err, coding.ErrCorrupt)
		}
	}
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			body := compress(f, request)
			for n := range len(body) {
				check(t, fmt.Sprintf("cut after %d of %d bytes", n, len(body)), f.coding, body[:n])
			}
			for n := 1; n < 12; n++ {
				check(t, fmt.Sprintf("%d bytes of garbage behind", n), f.coding, append(body[:len(body):len(body)], "garbage text"[:n]...))
			}
			check(t, "a zero behind", f.coding, append(body[:len(body):len(body)], 0))
			check(t, "plain JSON", f.coding, request)
			check(t, "plain JSON, compressed once of twice", f.coding+", "+f.coding, body)
		})
	}
}

func TestDecodeTooLarge(t *testing.T) {
	check := func(t *testing.T, encodings string, body []byte) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := coding.Decode([]string{encodings}, body, limit)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, coding.ErrTooLarge) || got != nil {
			t.Errorf("got %d bytes, error %v, want %v", len(got), err, coding.ErrTooLarge)
		}
		// The window, the output as it grows, and the decoders' tables.
		if took := after.TotalAlloc - before.TotalAlloc; took > 48<<20 {
			t.Errorf("allocated %d MiB, want less than 48", took>>20)
		}
	}
	for _, f := range forms {
		t.Run(f.name+"/one byte over", func(t *testing.T) { check(t, f.coding, compress(f, make([]byte, limit+1))) })
		t.Run(f.name+"/64 MiB", func(t *testing.T) { check(t, f.coding, compress(f, make([]byte, 64<<20))) })
	}

	// 2 GiB of zeros: blocks of 128 KiB, each one byte repeated, in a frame without a size.
	bomb := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38}
	for n := range 2 << 30 / (128 << 10) {
		header := 128<<10<<3 | 1<<1
		if n == 2<<30/(128<<10)-1 {
			header |= 1
		}
		bomb = append(bomb, byte(header), byte(header>>8), byte(header>>16), 0)
	}
	t.Run("2 GiB in zstd", func(t *testing.T) { check(t, "zstd", bomb) })
	small := compress(byName("gzip"), bomb)
	if len(small) > 1024 {
		t.Errorf("the bomb has %d bytes, want at most 1024", len(small))
	}
	t.Run("2 GiB in a kilobyte", func(t *testing.T) { check(t, "zstd, gzip", small) })

	// Deflate's empty blocks are five bytes that come to nothing.
	nothing := append(bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 4*limit/5), 1, 0, 0, 0xff, 0xff)
	if got, err := coding.Decode([]string{"deflate"}, nothing, limit); err != nil || len(got) != 0 {
		t.Errorf("empty blocks: got %d bytes, error %v, want none", len(got), err)
	}
	t.Run("on the way", func(t *testing.T) { check(t, "deflate, gzip", compress(byName("gzip"), nothing)) })

	// A frame of one block, x, which says by its window descriptor (RFC 8878, section
	// 3.1.1.1.2) how much memory it wants: 8 MiB, 9 MiB, 16 MiB, 2 TiB.
	frame := func(window byte) []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd, 0, window, 9, 0, 0, 'x'} }
	if got, err := coding.Decode([]string{"zstd"}, frame(13<<3), 1); err != nil || string(got) != "x" {
		t.Errorf("zstd window of 8 MiB: got %q, error %v, want x", got, err)
	}
	for _, window := range []byte{13<<3 | 1, 14 << 3, 31 << 3} {
		t.Run(fmt.Sprintf("zstd window %x", window), func(t *testing.T) { check(t, "zstd", frame(window)) })
	}
}

func FuzzDecode(f *testing.F) {
	for i, form := range forms {
		body := compress(form, request[:200])
		f.Add(uint8(i), body, uint16(len(body)/2))
		f.Add(uint8(i), append(body, 'x'), uint16(3))
		f.Add(uint8(i)+uint8(len(forms)), request[:100], uint16(3))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte, split uint16) {
		form := forms[int(which)%len(forms)]
		encodings := []string{form.coding}
		if int(which) >= len(forms) {
			// What was compressed comes back.
			body := compress(form, data)
			if plain, err := coding.Decode(encodings, body, int64(len(data))); err != nil || !bytes.Equal(plain, data) {
				t.Fatalf("Decode of compressed %q: got %q, %v", data, plain, err)
			}
			return
		}
		const limit = 64 << 10
		plain, err := coding.Decode(encodings, data, limit)
		switch {
		case err == nil && len(plain) > limit:
			t.Fatalf("Decode: got %d bytes, want at most %d", len(plain), limit)
		case err != nil && (plain != nil || !errors.Is(err, coding.ErrCorrupt) && !errors.Is(err, coding.ErrTooLarge)):
			t.Fatalf("Decode: got %d bytes, error %v, want no bytes and an error of the package", len(plain), err)
		}
		// A tap says the same, however the bytes come.
		var tapped []byte
		tap := must(coding.NewTap(encodings, limit, func(plain []byte) { tapped = append(tapped, plain...) }))
		at := min(int(split), len(data))
		_, _ = tap.Write(data[:at])
		_, _ = tap.Write(data[at:])
		tapErr := tap.Close()
		if (tapErr == nil) != (err == nil) || errors.Is(tapErr, coding.ErrTooLarge) != errors.Is(err, coding.ErrTooLarge) {
			t.Fatalf("Tap: got error %v, want as Decode's: %v", tapErr, err)
		}
		if err == nil && !bytes.Equal(tapped, plain) {
			t.Fatalf("Tap: got %d bytes, want the %d that Decode has", len(tapped), len(plain))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	plain := bytes.Repeat(request, 1<<20/len(request))
	for _, f := range forms {
		body := compress(f, plain)
		b.Run(f.name, func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := coding.Decode([]string{f.coding}, body, 32<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
