package upstreamtest

import (
	"bytes"
	"compress/gzip"
	"time"

	"holdfast/internal/simulate"
)

// Mod changes an answer.
type Mod func(*Answer)

// With returns a script whose answers the mods have changed, in order.
func (s Script) With(mods ...Mod) Script {
	return func(r *Request) Answer {
		a := s(r)
		a.Parts = append([]Part(nil), a.Parts...)
		a.Header = a.Header.Clone()
		for _, mod := range mods {
			mod(&a)
		}
		return a
	}
}

// Header sets a header; an empty value removes it.
func Header(name, value string) Mod {
	return func(a *Answer) {
		if value == "" {
			a.Header.Del(name)
			return
		}
		a.Header.Set(name, value)
	}
}

// Held keeps even the status line back until the gate opens: a prompt that takes long to
// be read, or a provider that accepts a request and then says nothing.
func Held(g *Gate) Mod { return func(a *Answer) { a.Held = g } }

// HeldAfter stops a stream at the gate once n events have been written. With n 0 the
// headers are out and no event is.
func HeldAfter(n int, g *Gate) Mod { return inserted(n, Part{Gate: g}) }

// SilentAfter keeps a stream silent for d once n events have been written: a model that
// thinks, without the pings that usually fill such a pause.
func SilentAfter(n int, d time.Duration) Mod { return inserted(n, Part{Silence: d}) }

// ResetAfter writes n events and the first bytes of the next, as many as given, and then
// resets the connection: a stream cut in the middle of an event.
func ResetAfter(n, bytes int) Mod { return cut(n, bytes, Part{End: Reset}) }

// TruncatedAfter is ResetAfter with a connection that closes in order, but without the
// mark that ends a chunked body.
func TruncatedAfter(n, bytes int) Mod { return cut(n, bytes, Part{End: Truncate}) }

// EndedAfter writes n events and ends the body in order: a stream that stops without
// message_stop, which only the client's own protocol shows to be unfinished.
func EndedAfter(n int) Mod {
	return func(a *Answer) { a.Parts = a.Parts[:place(a.Parts, n)] }
}

// FailedAfter writes n events, then an error event, then ends the body in order, which is
// how the provider reports a failure once 200 has gone out. A good stream's first three events
// (message_start, content_block_start, ping) come before content.
func FailedAfter(n int, f simulate.Failure) Mod {
	return func(a *Answer) {
		a.Parts = append(a.Parts[:place(a.Parts, n)], Part{Data: f.Event().Bytes()})
	}
}

// ByteWise writes one byte at a time: the worst a network can do to a parser.
func ByteWise() Mod {
	return func(a *Answer) {
		var parts []Part
		for _, p := range a.Parts {
			if p.Data == nil {
				parts = append(parts, p)
			}
			for i := range p.Data {
				parts = append(parts, Part{Data: p.Data[i : i+1]})
			}
		}
		a.Parts = parts
	}
}

// Rewritten passes what would be written through f, part by part.
func Rewritten(f func([]byte) []byte) Mod {
	return func(a *Answer) {
		for i, p := range a.Parts {
			if p.Data != nil {
				a.Parts[i].Data = f(p.Data)
			}
		}
	}
}

// LineEnds frames a stream's lines with end, "\r\n" or "\r": both are legal in an event
// stream, and something between the provider and us may use them.
func LineEnds(end string) Mod {
	return Rewritten(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte(end)) })
}

// Unspaced leaves out the space after a field's colon, which is as legal.
func Unspaced() Mod {
	return Rewritten(func(b []byte) []byte {
		b = bytes.ReplaceAll(b, []byte("event: "), []byte("event:"))
		return bytes.ReplaceAll(b, []byte("data: "), []byte("data:"))
	})
}

// Gzip compresses the body, flushing with every part, and names the coding: the provider does so
// for a client that accepts it, error bodies included. Put it before ByteWise.
func Gzip() Mod {
	return func(a *Answer) {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		take := func() []byte {
			b := bytes.Clone(out.Bytes())
			out.Reset()
			return b
		}
		last := -1
		for i, p := range a.Parts {
			if p.Data == nil {
				continue
			}
			_, _ = z.Write(p.Data) // to memory: cannot fail
			_ = z.Flush()
			a.Parts[i].Data, last = take(), i
		}
		if last < 0 {
			return
		}
		_ = z.Close()
		a.Parts[last].Data = append(a.Parts[last].Data, take()...)
		a.Header.Set("Content-Encoding", "gzip")
	}
}

// place is the index of the part after n parts of data.
func place(parts []Part, n int) int {
	for i, p := range parts {
		if n == 0 {
			return i
		}
		if p.Data != nil {
			n--
		}
	}
	return len(parts)
}

func inserted(n int, p Part) Mod {
	return func(a *Answer) {
		at := place(a.Parts, n)
		a.Parts = append(a.Parts[:at:at], append([]Part{p}, a.Parts[at:]...)...)
	}
}

func cut(n, bytes int, end Part) Mod {
	return func(a *Answer) {
		at := place(a.Parts, n)
		var some []byte
		if at < len(a.Parts) {
			some = a.Parts[at].Data[:min(bytes, len(a.Parts[at].Data))]
		}
		a.Parts = a.Parts[:at:at]
		if len(some) > 0 {
			a.Parts = append(a.Parts, Part{Data: some})
		}
		a.Parts = append(a.Parts, end)
	}
}
