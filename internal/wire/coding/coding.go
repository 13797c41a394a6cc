package coding

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

var (
	// ErrUnknown reports a coding that is not known, or more codings than are undone.
	// To a client this is 415.
	ErrUnknown = errors.New("unknown content coding")
	// ErrCorrupt reports a body that is not what its codings say: damaged, cut, or with
	// something behind its end. To a client this is 400.
	ErrCorrupt = errors.New("corrupt or cut")
	// ErrTooLarge reports a body that grows over the limit, or that needs more memory
	// than is given. To a client this is 413.
	ErrTooLarge = errors.New("too large once decoded")
)

const (
	// maxCodings bounds how many codings are undone. More than one is rare already.
	maxCodings = 3
	// maxWindow is the largest window of a zstd frame, in bytes (RFC 9659, section 3).
	maxWindow = 8 << 20
)

// parse lists the codings that values of Content-Encoding name, in the order in which
// they were applied. The identity coding is left out.
func parse(values []string) ([]string, error) {
	var codings []string
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			switch name = strings.ToLower(strings.Trim(name, " \t")); name {
			case "", "identity":
			case "x-gzip":
				codings = append(codings, "gzip")
			case "gzip", "zstd", "br", "deflate":
				codings = append(codings, name)
			default:
				return nil, fmt.Errorf("%w %.40q", ErrUnknown, name)
			}
			if len(codings) > maxCodings {
				return nil, fmt.Errorf("%w: a list of more than %d", ErrUnknown, maxCodings)
			}
		}
	}
	return codings, nil
}

// Decode returns the plain body of raw, which the codings in encodings, the values of its
// Content-Encoding headers, were applied to. Without any, that is raw itself. The error
// is an ErrUnknown, ErrCorrupt or ErrTooLarge; the last also where raw itself is longer
// than limit, in bytes.
func Decode(encodings []string, raw []byte, limit int64) (plain []byte, err error) {
	codings, err := parse(encodings)
	if err != nil {
		return nil, err
	}
	if len(codings) == 0 {
		if int64(len(raw)) > limit {
			return nil, ErrTooLarge
		}
		return raw, nil
	}
	r, err := open(codings, bytes.NewReader(raw), limit)
	if err != nil {
		return nil, explain(codings, err)
	}
	plain, err = readAll(r, min(limit, 4*int64(len(raw))), limit)
	if err != nil {
		return nil, explain(codings, err)
	}
	return plain, nil
}

// readAll is io.ReadAll with a first guess at the size, and the largest that r may have, in
// bytes.
func readAll(r io.Reader, guess, largest int64) ([]byte, error) {
	b := make([]byte, 0, guess+bytes.MinRead)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(2*int64(cap(b)), max(largest, int64(cap(b)))+bytes.MinRead)), b...)
		}
	}
}

// NewReader returns a reader of r's body with the codings in encodings undone as it is read,
// of at most limit bytes. Its errors are those of Decode.
func NewReader(encodings []string, r io.Reader, limit int64) io.Reader {
	return &late{encodings: encodings, src: r, limit: limit}
}

// late opens its reader with the first Read, since that reads already.
type late struct {
	encodings []string
	src       io.Reader
	limit     int64
	plain     io.Reader
	err       error
}

func (l *late) Read(p []byte) (int, error) {
	if l.plain == nil && l.err == nil {
		var codings []string
		if codings, l.err = parse(l.encodings); l.err == nil {
			if l.plain, l.err = open(codings, l.src, l.limit); l.err != nil {
				l.err = explain(codings, l.err)
			}
		}
	}
	if l.err != nil {
		return 0, l.err
	}
	return l.plain.Read(p)
}

// open is a reader of what is left of r when codings are undone, the last one first.
// It, and every step before it, ends with ErrTooLarge when there is more than limit.
func open(codings []string, r io.Reader, limit int64) (io.Reader, error) {
	for i := len(codings) - 1; i >= 0; i-- {
		decoder, err := undo(codings[i], bufio.NewReader(r))
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		left := limit
		if i > 0 {
			// Compressing what cannot be compressed makes it longer, by far less than this.
			left += limit/64 + 1024
		}
		r = &bounded{decoder, left}
	}
	return r, nil
}

// undo is a reader that undoes one coding. It ends with io.EOF only when src did, too.
func undo(coding string, src *bufio.Reader) (io.Reader, error) {
	switch coding {
	case "gzip":
		return gzip.NewReader(src)
	case "br":
		return brotli.NewReader(src), nil
	case "zstd":
		// To zstd's reader nothing is a whole body of no frames.
		if _, err := src.Peek(1); err != nil {
			return nil, err
		}
		// One at a time means on the reader's own goroutine.
		return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	}
	head, err := src.Peek(2)
	if err != nil {
		return nil, err
	}
	if !zlibHeader(head) {
		return &whole{flate.NewReader(src), src}, nil
	}
	r, err := zlib.NewReader(src)
	return &whole{r, src}, err
}

// zlibHeader tells zlib's header (RFC 1950) from the beginning of bare deflate data. The
// latter never looks like it: a first byte that ends in 8 would begin a stored block, with
// a bit set where padding is zero.
func zlibHeader(head []byte) bool {
	const deflate, largestWindow = 8, 7
	return head[0]&15 == deflate && head[0]>>4 <= largestWindow && (uint(head[0])<<8|uint(head[1]))%31 == 0
}

// whole ends well only when nothing is behind the end of r in src.
type whole struct {
	r   io.Reader
	src *bufio.Reader
}

func (w *whole) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != io.EOF {
		return n, err
	}
	switch _, err := w.src.Peek(1); err {
	case io.EOF:
		return n, io.EOF
	case nil:
		return n, errors.New("data behind the end")
	default:
		return n, err
	}
}

// bounded ends with ErrTooLarge when r has more than left bytes.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		n, b.left = n-1, 0
		return n, ErrTooLarge
	}
	return n, err
}

// explain makes one of this package's errors of what a reader returned.
func explain(codings []string, err error) error {
	kind := ErrCorrupt
	if errors.Is(err, ErrTooLarge) || errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		kind = ErrTooLarge
	}
	return fmt.Errorf("decode %s: %w: %w", strings.Join(codings, ", "), kind, err)
}
