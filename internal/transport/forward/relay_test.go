package forward_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/transport/forward"
)

// source is a body whose reads come after pauses. A read that would follow the last part
// gives end.
type source struct {
	parts []part
	end   error
	ctx   context.Context
}

type part struct {
	after time.Duration
	text  string
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, s.end
	}
	next := s.parts[0]
	wait := time.NewTimer(next.after)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	s.parts = s.parts[1:]
	return copy(p, next.text), nil
}

// tap holds until it sees content, gives up on the word abandon, and takes the word last for
// the answer's end.
type tap struct {
	seen    strings.Builder
	content bool
	last    bool
}

func (t *tap) Chunk(p []byte) forward.Verdict {
	t.seen.Write(p)
	switch {
	case strings.Contains(string(p), "abandon"):
		return forward.Abandon
	case strings.Contains(string(p), "content"):
		t.content = true
	case strings.Contains(string(p), "last"):
		t.last = true
	}
	if t.last {
		return forward.Last
	}
	if t.content {
		return forward.Pass
	}
	return forward.Hold
}

func (t *tap) End() forward.Verdict {
	if strings.Contains(t.seen.String(), "in the end") {
		return forward.Abandon
	}
	return forward.Pass
}

func (t *tap) Boundary() bool {
	seen := t.seen.String()
	return seen == "" || strings.HasSuffix(seen, "\n\n")
}

var comment = []byte(": keep-alive\n")

// timed notes when each write came.
type timed struct {
	*httptest.ResponseRecorder
	start  time.Time
	writes []part
	fail   error
}

func (w *timed) Write(p []byte) (int, error) {
	if w.fail != nil {
		return 0, w.fail
	}
	w.writes = append(w.writes, part{time.Since(w.start), string(p)})
	return w.ResponseRecorder.Write(p)
}

// run relays parts in a bubble and returns what the client got.
func run(t *testing.T, edit func(*forward.Relay, *timed, *source), parts ...part) (*timed, error, bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &timed{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
	src := &source{parts: parts, end: io.EOF, ctx: ctx}
	limits := forward.DefaultLimits
	limits.KeepAlive = 15 * time.Second
	r := &forward.Relay{
		W: w, Client: t.Context(), Cancel: cancel, Limits: limits, Since: time.Now(), Length: -1,
		Begin: func() { w.WriteHeader(http.StatusOK) }, Tap: &tap{},
	}
	if edit != nil {
		edit(r, w, src)
	}
	err := r.Run(src)
	return w, err, r.Begun()
}

func TestRelayPassesEveryReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err, _ := run(t, nil, part{0, "a\n\n"}, part{time.Second, "b\n\n"}, part{time.Second, "c"})
		want := []part{{0, "a\n\n"}, {time.Second, "b\n\n"}, {2 * time.Second, "c"}}
		if err != nil || len(w.writes) != 3 || w.writes[0] != want[0] || w.writes[1] != want[1] || w.writes[2] != want[2] {
			t.Errorf("got %v, %v, want %v", w.writes, err, want)
		}
		if !w.Flushed {
			t.Error("nothing was flushed")
		}
	})
}

func TestRelayHoldsOpeningsBack(t *testing.T) {
	hold := func(r *forward.Relay, _ *timed, _ *source) { r.MayHold, r.NeedBody, r.KeepAlive = true, true, comment }
	tests := []struct {
		name  string
		parts []part
		at    time.Duration // of the first write
		body  string
	}{
		{"until content comes", []part{{0, "open\n\n"}, {time.Second, "content\n\n"}}, time.Second, "open\n\ncontent\n\n"},
		{"two seconds at most", []part{{0, "open\n\n"}, {5 * time.Second, "content\n\n"}}, 2 * time.Second, "open\n\ncontent\n\n"},
		{"2 MiB at most", append(slices.Repeat([]part{{0, strings.Repeat("x", 32<<10)}}, 64), part{time.Second, "z"}, part{time.Second / 2, "content"}), time.Second, strings.Repeat("x", 2<<20) + "zcontent"},
		{"and lets them go at the end", []part{{0, "open\n\n"}}, 0, "open\n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err, _ := run(t, hold, tt.parts...)
				if err != nil || w.Body.String() != tt.body {
					t.Fatalf("got %d bytes, %v, want %d", w.Body.Len(), err, len(tt.body))
				}
				if w.writes[0].after != tt.at {
					t.Errorf("got the first byte after %v, want %v", w.writes[0].after, tt.at)
				}
			})
		})
	}
}

func TestRelayGivesUpBeforeAnythingWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err, begun := run(t, func(r *forward.Relay, _ *timed, _ *source) { r.MayHold = true }, part{0, "open\n\n"}, part{time.Second, "abandon\n\n"})
		if !errors.Is(err, forward.ErrAbandoned) || begun || w.Body.Len() != 0 {
			t.Errorf("got %v, begun %v, %q, want ErrAbandoned and nothing sent", err, begun, w.Body)
		}
	})
}

func TestRelayNeverGivesUpOnceSomethingWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err, _ := run(t, func(r *forward.Relay, _ *timed, _ *source) { r.MayHold = true }, part{0, "open\n\n"}, part{3 * time.Second, "abandon\n\n"})
		if err != nil || w.Body.String() != "open\n\nabandon\n\n" {
			t.Errorf("got %v, %q", err, w.Body)
		}
	})
}

func TestRelayKeepsSilentStreamsAlive(t *testing.T) {
	events := func(r *forward.Relay, _ *timed, _ *source) { r.KeepAlive = comment }
	tests := []struct {
		name  string
		edit  func(*forward.Relay, *timed, *source)
		parts []part
		want  string
	}{
		{"between two events", events, []part{{0, "a\n\n"}, {40 * time.Second, "b\n\n"}}, "a\n\n: keep-alive\n: keep-alive\nb\n\n"},
		{"before the first event", events, []part{{25 * time.Second, "a\n\n"}}, ": keep-alive\na\n\n"},
		{"never inside one", events, []part{{0, "a\n\nb"}, {50 * time.Second, "c\n\n"}}, "a\n\nbc\n\n"},
		{"not while something goes on", events, []part{{14 * time.Second, "a\n\n"}, {14 * time.Second, "b\n\n"}, {14 * time.Second, "c\n\n"}}, "a\n\nb\n\nc\n\n"},
		{"not where it is turned off", func(r *forward.Relay, _ *timed, _ *source) { r.KeepAlive, r.Limits.KeepAlive = comment, 0 }, []part{{0, "a\n\n"}, {50 * time.Second, "b"}}, "a\n\nb"},
		{"never in another body", nil, []part{{0, "a\n\n"}, {50 * time.Second, "b"}}, "a\n\nb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if w, err, _ := run(t, tt.edit, tt.parts...); err != nil || w.Body.String() != tt.want {
					t.Errorf("got %q, %v, want %q", w.Body, err, tt.want)
				}
			})
		})
	}
}

// TestRelayEndsWhenTheAnswerIsOver is field case a-stream-that-is-over: whatever the
// connection does behind the answer's own end, the client's answer ends soon, and well.
func TestRelayEndsWhenTheAnswerIsOver(t *testing.T) {
	const long = 24 * time.Hour
	noise := slices.Repeat([]part{{60 * time.Millisecond, ": x\n\n"}}, 100)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		name  string
		edit  func(*forward.Relay, *timed, *source)
		parts []part
		body  string
		after time.Duration
	}{
		{"the body ends with it", nil, []part{{0, "last\n\n"}}, "last\n\n", 0},
		{"the body ends a little later", nil, []part{{0, "last\n\n"}, {forward.Linger - 1, "usage\n\n"}}, "last\n\nusage\n\n", forward.Linger - 1},
		{"the connection stays open", nil, []part{{0, "content\n\n"}, {time.Second, "last\n\n"}, {long, "x"}}, "content\n\nlast\n\n", time.Second + forward.Linger},
		{"it stays open behind a held opening", func(r *forward.Relay, _ *timed, _ *source) { r.MayHold, r.NeedBody = true, true }, []part{{0, "open\n\n"}, {0, "last\n\n"}, {long, "x"}}, "open\n\nlast\n\n", forward.Linger},
		{"something comes all the time", nil, append([]part{{0, "last\n\n"}}, noise...), "last\n\n" + strings.Repeat(": x\n\n", 4), forward.Linger},
		{"it is not kept alive", func(r *forward.Relay, _ *timed, _ *source) {
			r.KeepAlive, r.Limits.KeepAlive = comment, 50*time.Millisecond
		}, []part{{0, "last\n\n"}, {long, "x"}}, "last\n\n", forward.Linger},
		{"the connection breaks", func(_ *forward.Relay, _ *timed, s *source) { s.end = errors.New("reset") }, []part{{0, "last\n\n"}}, "last\n\n", 0},
		{"the client needs no more", func(r *forward.Relay, _ *timed, s *source) { r.Client, s.end = gone, context.Canceled }, []part{{0, "last\n\n"}}, "last\n\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				w, err, _ := run(t, c.edit, c.parts...)
				if err != nil || w.Body.String() != c.body {
					t.Errorf("got %q, %v, want %q", w.Body, err, c.body)
				}
				if after := time.Since(start); after != c.after {
					t.Errorf("got an end after %v, want %v", after, c.after)
				}
			})
		})
	}
}

func TestRelayPatience(t *testing.T) {
	idle := forward.DefaultLimits.Idle
	t.Run("no limit on the whole, 290 s of silence are borne", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, err, _ := run(t, nil, part{0, "a"}, part{290 * time.Second, "b"}, part{290 * time.Second, "c"}, part{290 * time.Second, "d"})
			if err != nil || w.Body.String() != "abcd" {
				t.Errorf("got %q, %v", w.Body, err)
			}
		})
	})
	t.Run("silence up to the limit is borne", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if w, err, _ := run(t, nil, part{0, "a"}, part{idle - 1, "b"}); err != nil || w.Body.String() != "ab" {
				t.Errorf("got %q, %v", w.Body, err)
			}
		})
	})
	t.Run("silence for ever is not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			w, err, begun := run(t, func(r *forward.Relay, _ *timed, _ *source) { r.KeepAlive = comment }, part{0, "a\n\n"}, part{24 * time.Hour, "b"})
			if !errors.Is(err, forward.ErrIdle) || !begun || !strings.HasPrefix(w.Body.String(), "a\n\n: keep-alive\n") {
				t.Errorf("got %v, %q", err, w.Body)
			}
			if waited := time.Since(start); waited != idle {
				t.Errorf("got an end after %v, want %v", waited, idle)
			}
		})
	})
}

func TestRelayEnds(t *testing.T) {
	errReset := errors.New("connection reset")
	gone, leave := context.WithCancel(t.Context())
	leave()
	tests := []struct {
		name  string
		edit  func(*forward.Relay, *timed, *source)
		parts []part
		err   error
		begun bool
	}{
		{"a cut answer is no good end", func(_ *forward.Relay, _ *timed, s *source) { s.end = errReset }, []part{{0, "a"}}, forward.ErrCut, true},
		{"one that is shorter than told is cut", func(_ *forward.Relay, _ *timed, s *source) { s.end = io.ErrUnexpectedEOF }, []part{{0, "a"}}, forward.ErrCut, true},
		{"a cut while held back sends nothing", func(r *forward.Relay, _ *timed, s *source) { r.MayHold, s.end = true, errReset }, []part{{0, "open"}}, forward.ErrCut, false},
		{"an empty body where one is needed", func(r *forward.Relay, _ *timed, _ *source) { r.NeedBody = true }, nil, forward.ErrEmpty, false},
		{"an empty body elsewhere", nil, nil, nil, true},
		{"the client left", func(r *forward.Relay, _ *timed, s *source) { r.Client, s.end = gone, context.Canceled }, []part{{0, "a"}}, forward.ErrClient, true},
		{"the client does not take it", func(_ *forward.Relay, w *timed, _ *source) { w.fail = errReset }, []part{{0, "a"}}, forward.ErrClient, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err, begun := run(t, tt.edit, tt.parts...); !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || begun != tt.begun {
				t.Errorf("got %v, begun %v, want %v, %v", err, begun, tt.err, tt.begun)
			}
		})
	}
}
