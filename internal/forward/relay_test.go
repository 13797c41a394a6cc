package forward_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/forward"
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

// tap holds until it sees content, and gives up on the word abandon.
type tap struct {
	seen    strings.Builder
	content bool
}

func (t *tap) Chunk(p []byte) forward.Verdict {
	t.seen.Write(p)
	switch {
	case strings.Contains(string(p), "abandon"):
		return forward.Abandon
	case strings.Contains(string(p), "content"):
		t.content = true
	}
	if t.content {
		return forward.Pass
	}
	return forward.Hold
}

func (t *tap) Boundary() bool {
	return t.seen.Len() == 0 || strings.HasSuffix(t.seen.String(), "\n\n")
}

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
	limits.KeepAlive = 20 * time.Second
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
	hold := func(r *forward.Relay, _ *timed, _ *source) { r.MayHold, r.NeedBody, r.Events = true, true, true }
	tests := []struct {
		name  string
		parts []part
		at    time.Duration // of the first write
		body  string
	}{
		{"until content comes", []part{{0, "open\n\n"}, {time.Second, "content\n\n"}}, time.Second, "open\n\ncontent\n\n"},
		{"two seconds at most", []part{{0, "open\n\n"}, {5 * time.Second, "content\n\n"}}, 2 * time.Second, "open\n\ncontent\n\n"},
		{"64 KiB at most", []part{{0, strings.Repeat("x", 32<<10)}, {0, strings.Repeat("y", 32<<10)}, {time.Second, "z"}, {time.Second, "content"}}, time.Second, strings.Repeat("x", 32<<10) + strings.Repeat("y", 32<<10) + "zcontent"},
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
	events := func(r *forward.Relay, _ *timed, _ *source) { r.Events = true }
	tests := []struct {
		name  string
		edit  func(*forward.Relay, *timed, *source)
		parts []part
		want  string
	}{
		{"between two events", events, []part{{0, "a\n\n"}, {50 * time.Second, "b\n\n"}}, "a\n\n: keep-alive\n\n: keep-alive\n\nb\n\n"},
		{"before the first event", events, []part{{25 * time.Second, "a\n\n"}}, ": keep-alive\n\na\n\n"},
		{"never inside one", events, []part{{0, "a\n\nb"}, {50 * time.Second, "c\n\n"}}, "a\n\nbc\n\n"},
		{"not while something goes on", events, []part{{19 * time.Second, "a\n\n"}, {19 * time.Second, "b\n\n"}, {19 * time.Second, "c\n\n"}}, "a\n\nb\n\nc\n\n"},
		{"never where it is off", func(r *forward.Relay, _ *timed, _ *source) { r.Events, r.Limits.KeepAlive = true, 0 }, []part{{0, "a\n\n"}, {50 * time.Second, "b\n\n"}}, "a\n\nb\n\n"},
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
			w, err, begun := run(t, func(r *forward.Relay, _ *timed, _ *source) { r.Events = true }, part{0, "a\n\n"}, part{24 * time.Hour, "b"})
			if !errors.Is(err, forward.ErrIdle) || !begun || !strings.HasPrefix(w.Body.String(), "a\n\n: keep-alive\n\n") {
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
