package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"holdfast/internal/core/metric"
	"holdfast/internal/logging"
	"holdfast/internal/provider/all"
	"holdfast/internal/request/gateway"
)

var providers = all.Providers()

// kind is a sort of request.
type kind struct {
	name string
	// perThousand is how many of a thousand requests are of this kind; 0 for a kind that is
	// shown alone.
	perThousand float64
	// pin is what X-Holdfast-Pin is to say, and streams whether the answer takes its time.
	pin     string
	streams bool
	// after is how long after the request before it comes, so that what is written at most
	// every so often is due, or is not.
	after   time.Duration
	session string
	path    string
	prepare func(*upstream)
}

const soonAfter = 6 * time.Second // by then the configuration in memory is read again

// kinds are counted in this order. A thousand requests are 20 conversations of 50: each
// streams for half a minute, so that a touch, due every minute, is due at every other
// request; a reading is written when it changed by half a percent, and every five minutes.
var kinds = []kind{
	{name: "new conversation, cold process", pin: "new", streams: true, session: "first"},
	{name: "new conversation", perThousand: 20, pin: "new", streams: true, session: "second", after: soonAfter},
	{name: "pinned", perThousand: 349, pin: "kept", streams: true, session: "second", after: soonAfter},
	{name: "pinned, touch due", perThousand: 480, pin: "kept", streams: true, session: "second", after: 70 * time.Second},
	{name: "pinned, reading changed", perThousand: 100, pin: "kept", streams: true, session: "second", after: soonAfter, prepare: func(u *upstream) { u.used += 0.01 }},
	{name: "count_tokens", perThousand: 50, pin: "none", session: "first", path: "/v1/messages/count_tokens", after: soonAfter},
	{name: "pinned, account rejects", perThousand: 1, streams: true, session: "second", after: soonAfter, prepare: func(u *upstream) { u.rejects = true }},
}

// made is what one request came to.
type made struct {
	kind
	operations
	status   int
	account  string
	logBytes float64
}

// lines counts what is written, line by line, and notes which fields the lines have.
type lines struct {
	text   bytes.Buffer
	fields map[string]bool
}

// perEvent is what CloudWatch adds to every line.
const perEvent = 26

func (l *lines) Write(p []byte) (int, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p, &members); err != nil {
		return 0, fmt.Errorf("a line that is no JSON: %w", err)
	}
	for name := range members {
		l.fields[name] = true
	}
	return l.text.Write(p)
}

func (l *lines) take() float64 {
	defer l.text.Reset()
	return float64(l.text.Len() + perEvent*bytes.Count(l.text.Bytes(), []byte("\n")))
}

// requests makes one request of each kind. It returns the fields, too, that lines of the log
// had.
func (o *owner) requests(ctx context.Context) ([]made, map[string]bool, error) {
	out := lines{fields: map[string]bool{}}
	g, err := gateway.New(gateway.Options{
		Store: o.store, Box: o.box, Providers: providers, Transport: o.up, Now: o.clock,
		Log: slog.New(logging.New(&out, slog.LevelInfo)),
		Measure: func(r metric.Request) {
			for _, line := range metric.Lines(o.now, metric.OfRequest(r)) {
				_, _ = out.Write(append(line, '\n')) // into memory
			}
		},
	})
	if err != nil {
		return nil, nil, err
	}
	var all []made
	for _, k := range kinds {
		o.advance(k.after)
		if k.prepare != nil {
			k.prepare(o.up)
		}
		path := k.path
		if path == "" {
			path = "/v1/messages"
		}
		body := fmt.Sprintf(`{"model":"claude-opus-5","max_tokens":1000,"stream":%v,"messages":[{"role":"user","content":"hello"}]}`, k.streams)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, path+"?beta=true", strings.NewReader(body))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Anthropic-Version": "2023-06-01", "Authorization": "Bearer " + o.key,
			"X-Claude-Code-Session-Id": "3b1e6c1a-5d0f-4a55-9c0b-" + k.session,
		} {
			r.Header.Set(name, value)
		}
		o.records.take()
		out.take()
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		answer := w.Result()
		_, _ = io.Copy(io.Discard, answer.Body)
		all = append(all, made{
			kind: k, operations: o.records.take(), status: answer.StatusCode, account: answer.Header.Get("X-Holdfast-Account"),
			logBytes: out.take(),
		})
		if got := answer.Header.Get("X-Holdfast-Pin"); k.pin != "" && got != k.pin {
			return nil, nil, fmt.Errorf("%s: got status %d and pin %q, want pin %q: %s", k.name, answer.StatusCode, got, k.pin, w.Body)
		}
	}
	return all, out.fields, nil
}
