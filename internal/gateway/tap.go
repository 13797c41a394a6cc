package gateway

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/coding"
	"holdfast/internal/forward"
	"holdfast/internal/hidden"
	"holdfast/internal/placement"
	"holdfast/internal/provider"
	"holdfast/internal/sse"
)

const (
	// maxJSON bounds what is kept of a whole JSON answer to read its usage from.
	maxJSON = 4 << 20
	// maxDecoded bounds what is decoded of a compressed answer.
	maxDecoded = 64 << 20
)

// tap reads along with an answer: it finds usage, errors and the answer's own end, and says
// how long an opening may be held back. It never changes a byte; if it cannot read, only our
// accounting suffers.
type tap struct {
	x          *exchange
	i          int
	a          *answer
	inference  bool
	dialect    provider.Dialect
	events     bool // the body is a stream of events
	insertable bool // between two of its events something may be put in
	mayHold    bool
	begun      func() bool // something went to the client
	page       bool        // the body is a web page

	parser  sse.Parser
	coded   bool        // the answer is compressed
	decoder *coding.Tap // of a compressed answer
	unread  bool        // the decoder could not read it to its end
	started bool
	content bool // content has begun
	ended   bool // the stream's own end came
	failed  bool // an event said that the stream failed
	framed  bool // a stream of events, by its type or by what came
	choices provider.Choices
	verdict forward.Verdict
	whole   []byte // of a JSON answer
	most    int    // of it to keep
	objects objects
	usage   provider.Usage
	// rejection is what an error event means.
	rejection account.Rejection
	// learnt: a reading that came as an event was written while the answer went on;
	// unlearnt: one came that has not been.
	learnt, unlearnt bool
}

func newTap(x *exchange, i int, a *answer) *tap {
	h := a.resp.Header
	media, _, _ := strings.Cut(strings.ToLower(h.Get("Content-Type")), ";")
	media = strings.TrimSpace(media)
	t := &tap{x: x, i: i, a: a, dialect: x.dialect()}
	t.inference = x.req.Role == provider.Inference && x.r.Method == http.MethodPost && a.resp.StatusCode < 300
	// A request that asked for a stream gets one, whatever the answer calls itself.
	t.events = media == "text/event-stream" || (x.req.Stream && media != "application/json")
	t.framed = media == "text/event-stream"
	t.page = t.inference && media == "text/html"
	if coded := h.Get("Content-Encoding"); coded != "" && !strings.EqualFold(coded, "identity") {
		t.coded = true
		t.decoder, _ = coding.NewTap(h.Values("Content-Encoding"), maxDecoded, t.read)
		t.unread = t.decoder == nil // an unknown coding is passed on unread
	}
	t.insertable = t.events && !t.coded && a.resp.ContentLength < 0
	t.objects.begin(x, i, a)
	switch {
	case t.inference:
		t.most = maxJSON
	case t.objects.wanted && t.objects.page == nil && (media == "application/json" || strings.HasSuffix(media, "+json")):
		t.most = maxObject
	}
	t.mayHold = t.page || (t.inference && t.events && placement.CanMove(x.sit, i))
	return t
}

// Chunk implements forward.Tap.
func (t *tap) Chunk(p []byte) forward.Verdict {
	if !t.started && t.inference && !t.coded {
		if text := bytes.TrimLeft(p, " \t\r\n"); len(text) > 0 {
			t.started = true
			t.page = t.page || text[0] == '<'
		}
	}
	if t.page {
		return forward.Abandon
	}
	switch {
	case t.decoder != nil:
		_, _ = t.decoder.Write(p) // what it cannot decode it says at the end
	case !t.coded:
		t.read(p)
	}
	switch {
	case t.verdict == forward.Abandon:
		return forward.Abandon
	case t.mayHold && !t.content && !t.failed:
		return forward.Hold
	}
	t.tell()
	if t.failedEarly() {
		t.x.unpin()
	}
	if t.over() {
		return forward.Last
	}
	return forward.Pass
}

// over reports whether the answer has said itself that it is at its end, well or not. A
// stream in no known dialect is at its end when its body is.
func (t *tap) over() bool { return t.dialect != "" && (t.ended || t.failed) }

// read takes plain bytes of the body.
func (t *tap) read(p []byte) {
	if t.events {
		t.parser.Feed(p, t.event)
		return
	}
	t.objects.listed(p)
	if len(t.whole)+len(p) > t.most {
		t.most = 0 // a part tells nothing
		t.whole = nil
		return
	}
	t.whole = append(t.whole, p...)
}

// tell has noted what the answer so far tells of objects. What makes an object usable, the
// end of an answer, is passed on only when that is done: the next request may come at once,
// and to another process.
func (t *tap) tell() {
	whole := !t.events && !t.coded && len(t.whole) > 0 && int64(len(t.whole)) == t.a.resp.ContentLength
	if whole {
		t.objects.body(t.whole)
	}
	t.objects.note(t.ended || whole)
}

func (t *tap) event(name string, data []byte) {
	prov := t.x.prov
	t.framed = true
	prov.EventUsage(&t.usage, name, data)
	t.objects.event(name, data)
	at := t.x.g.now()
	if r, ok := prov.EventReading(name, data, at); ok {
		t.learn(r.Cleaned(hidden.Clean))
	}
	if t.dialect == provider.Chat && !t.ended {
		t.choices.Read(data)
	}
	if data == nil && name == "" { // too large to be held, and not JSON
		t.content = true
		return
	}
	switch prov.Event(name, data) {
	case provider.Content:
		t.content = true
	case provider.Terminal:
		t.content, t.ended = true, true
	case provider.Failure:
		t.failed = true
		t.fail(data, at)
	case provider.Opening:
	}
}

// learn takes in what an event says of windows. The first one is written at once, since an
// answer may take long and others pick by it; what comes after it, at the answer's end.
func (t *tap) learn(r account.Reading) {
	t.a.read(r)
	if t.learnt {
		t.unlearnt = true
		return
	}
	t.learnt = true
	t.x.learnBeside("write a reading that came in the stream", t.i, lesson{answer: t.a})
}

// fail judges an error event. Before any content it asks for the plan that would follow;
// where that is another account, nothing of this answer is to reach the client.
func (t *tap) fail(data []byte, at time.Time) {
	x, c := t.x, t.x.sit.Candidates[t.i]
	r := x.classify(provider.Answer{
		Status: http.StatusOK, Header: t.a.resp.Header, Body: bytes.Clone(data), At: at, InStream: true,
		Request: x.req, Kind: c.Account.Kind, Generation: t.a.credential.Generation,
	})
	if !r.Rejected() {
		return
	}
	t.rejection = r
	if t.content || !t.mayHold || t.begun() {
		return
	}
	sit := x.sit
	sit.Now = r.At
	sit.Candidates = slices.Clone(sit.Candidates)
	state := c.State
	for _, reading := range t.a.readings {
		state = state.Observe(reading, c.Placed, x.rules(t.i))
	}
	r = state.Settle(r)
	sit.Candidates[t.i].State = state.Reject(r, x.rules(t.i))
	if placement.After(sit, t.i, r).Step != placement.HandBack {
		t.verdict = forward.Abandon
	}
}

// failedEarly reports whether the stream failed before any content. What asks again must
// find that no pin was left by it, so it is ended before the client hears of the failure.
func (t *tap) failedEarly() bool { return t.failed && !t.content && t.verdict != forward.Abandon }

// unfinished reports whether a stream stopped without its own end and without an error:
// the body ended in order, yet the answer is not whole. Of Chat Completions it is, too, where
// each choice has its finish reason.
func (t *tap) unfinished() bool {
	return t.dialect != "" && t.framed && !t.unread && !t.over() && !t.choices.Finished()
}

// Boundary implements forward.Tap.
func (t *tap) Boundary() bool { return t.events && t.parser.Boundary() }

// boundary reports whether an event of ours may stand at the end of what was sent.
func (t *tap) boundary() bool { return t.insertable && t.parser.Boundary() }

// close ends the reading along.
func (t *tap) close() {
	if t.decoder != nil {
		t.unread = t.decoder.Close() != nil // only our accounting suffers
	}
	if !t.events && t.inference && len(t.whole) > 0 {
		t.usage = t.x.prov.BodyUsage(t.whole)
	}
	if t.page || t.verdict == forward.Abandon {
		return
	}
	if !t.events {
		t.objects.body(t.whole)
	}
	t.objects.note(false)
}
