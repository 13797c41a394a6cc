package gateway

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/hidden"
	"holdfast/internal/core/placement"
	"holdfast/internal/provider"
	"holdfast/internal/transport/forward"
	"holdfast/internal/wire/coding"
	"holdfast/internal/wire/excerpt"
	"holdfast/internal/wire/sse"
)

const (
	// maxJSON bounds what is kept of a JSON answer to read its ids and its usage from. Of a
	// larger one an excerpt is kept, of about maxExcerpt: its id stands at the beginning and
	// its usage at the end, whatever is between.
	maxJSON, maxExcerpt = 256 << 10, 64 << 10
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
	replay     bool // what is read again tells how it went when it was made, and nothing of now
	dialect    provider.Dialect
	events     bool // the body is a stream of events
	insertable bool // between two of its events something may be put in
	mayHold    bool
	begun      func() bool // something went to the client

	// judged by its shape: the body must be JSON or events.
	judged    bool
	shape     shape
	beginning beginning

	parser  sse.Parser
	coded   bool        // the answer is compressed
	decoder *coding.Tap // of a compressed answer
	unread  bool        // the decoder could not read it to its end
	// finished: the end of the body was taken in.
	finished bool
	content  bool // content has begun
	ended    bool // the stream's own end came
	whole    bool // all of a JSON answer is there
	failed   bool // the answer said that it failed
	framed   bool // a stream of events, by its type or by what came
	choices  provider.Choices
	verdict  forward.Verdict
	wanted   bool            // a JSON answer is to be read
	text     []byte          // of a JSON answer
	long     *excerpt.Reader // of one that is larger than maxJSON; nil for others
	size     int64           // of it, as far as it came
	objects  objects
	usage    provider.Usage
	// rejection is what an error event means.
	rejection account.Rejection
	// learnt: a reading that came as an event was written while the answer went on;
	// unlearnt: one came that has not been.
	learnt, unlearnt bool
}

func newTap(x *exchange, i int, a *answer) *tap {
	h := a.resp.Header
	media := mediaOf(h)
	t := &tap{x: x, i: i, a: a, dialect: x.dialect()}
	t.inference = x.req.Role == provider.Inference && x.r.Method == http.MethodPost && a.resp.StatusCode < 300
	t.replay = x.r.Method == http.MethodGet
	t.events = x.isStream(h)
	t.framed = media == "text/event-stream"
	if coded := h.Get("Content-Encoding"); coded != "" && !strings.EqualFold(coded, "identity") {
		t.coded = true
		t.decoder, _ = coding.NewTap(h.Values("Content-Encoding"), maxDecoded, t.read)
		t.unread = t.decoder == nil // an unknown coding is passed on unread
	}
	t.insertable = t.events && !t.coded && a.resp.ContentLength < 0
	t.objects.begin(x, i, a)
	t.wanted = t.inference || t.objects.wanted && t.objects.page == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
	t.judged = t.inference && !t.unread
	if t.judged && media == "text/html" {
		t.shape = neither
	}
	return t
}

// Chunk implements forward.Tap.
func (t *tap) Chunk(p []byte) forward.Verdict {
	switch {
	case t.shape == neither:
	case t.decoder != nil:
		_, _ = t.decoder.Write(p)
		t.undecodable(t.decoder.Err())
	case !t.coded:
		t.read(p)
	}
	if !t.coded && !t.events && t.wanted && t.size > 0 && t.size == t.a.resp.ContentLength {
		t.complete()
	}
	switch {
	case t.shape == neither, t.verdict == forward.Abandon:
		return forward.Abandon
	case t.holds():
		return forward.Hold
	}
	return t.pass()
}

// End implements forward.Tap.
func (t *tap) End() forward.Verdict {
	t.finish()
	if t.shape == neither || t.verdict == forward.Abandon {
		return forward.Abandon
	}
	return t.pass()
}

// holds reports whether what came so far stays here: it does not show yet what the answer is,
// it is a part of a document, which may say at its end that it failed, or it is an opening.
func (t *tap) holds() bool {
	switch {
	case t.judged && t.shape == undecided:
		return true
	case t.shape == document:
		return !t.whole
	}
	return t.mayHold && !t.content && !t.failed
}

// pass does what must be done before the client hears what came so far.
func (t *tap) pass() forward.Verdict {
	t.objects.note(t.ended || t.whole)
	if t.failedEarly() {
		t.x.unpin()
	}
	if t.over() {
		return forward.Last
	}
	return forward.Pass
}

// undecodable deals with a coding that the body does not have, or that goes beyond our
// bounds.
func (t *tap) undecodable(err error) {
	if err == nil || !t.judged || t.shape != undecided {
		return
	}
	if t.judged = errors.Is(err, coding.ErrCorrupt); t.judged {
		t.shape = neither
	}
}

// finish takes the end of the body.
func (t *tap) finish() {
	if t.finished {
		return
	}
	t.finished = true
	if t.decoder != nil {
		err := t.decoder.Close()
		t.unread = err != nil // only our accounting suffers
		t.undecodable(err)
	}
	if t.judged && t.shape == undecided {
		t.shape = neither
	}
	if !t.events {
		t.complete()
	}
}

// complete takes in all of a JSON answer. One that says that it failed is judged like an
// error event.
func (t *tap) complete() {
	if t.whole {
		return
	}
	t.whole = true
	text := begun(t.text)
	if t.long != nil {
		text = t.long.JSON()
	}
	if len(text) == 0 {
		return
	}
	if t.inference {
		t.usage = t.x.prov.BodyUsage(text)
		if tellsError(text) && t.x.prov.Event("", text) == provider.Failure {
			t.failed = true
			t.fail(text, t.x.g.now())
		}
	}
	if t.verdict != forward.Abandon {
		t.objects.body(text)
	}
}

// over reports whether the answer has said itself that it is at its end, well or not. A
// stream in no known dialect is at its end when its body is.
func (t *tap) over() bool { return t.dialect != "" && (t.ended || t.failed) }

// read takes plain bytes of the body.
func (t *tap) read(p []byte) {
	if t.judged && t.shape == undecided {
		t.decide(t.beginning.take(p))
	}
	if t.events {
		t.parser.Feed(p, t.event)
		return
	}
	t.objects.listed(p)
	if t.wanted {
		t.keep(p)
	}
}

// keep takes more of a JSON answer.
func (t *tap) keep(p []byte) {
	t.size += int64(len(p))
	if t.long == nil && len(t.text)+len(p) <= maxJSON {
		t.text = append(t.text, p...)
		return
	}
	if t.long == nil {
		t.long = excerpt.New(maxExcerpt)
		_, _ = t.long.Write(begun(t.text)) // never fails
		t.text = nil
	}
	_, _ = t.long.Write(p)
}

// begun is a JSON text without what may stand before it.
func begun(text []byte) []byte {
	return bytes.TrimPrefix(bytes.TrimLeft(text, blanks), []byte(byteOrderMark))
}

// decide takes the shape that the body turns out to have.
func (t *tap) decide(s shape) {
	t.shape = s
	switch s {
	case document:
		t.events, t.framed, t.mayHold = false, false, true
	case stream:
		early := t.text // the beginning of its first line, where it was not expected
		t.events, t.framed, t.mayHold, t.text = true, true, placement.CanMove(t.x.sit, t.i), nil
		t.parser.Feed(early, t.event)
	case undecided, neither:
	}
}

func (t *tap) event(name string, data []byte) {
	prov := t.x.prov
	t.framed = true
	t.objects.event(name, data)
	at := t.x.g.now()
	if !t.replay {
		prov.EventUsage(&t.usage, name, data)
		if r, ok := prov.EventReading(name, data, at); ok {
			t.learn(r.Cleaned(hidden.Clean))
		}
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
		if !t.replay {
			t.fail(data, at)
		}
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
	r := x.classify(t.i, t.a, provider.Answer{Status: http.StatusOK, Header: t.a.resp.Header, Body: bytes.Clone(data), At: at, InStream: true})
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
func (t *tap) boundary() bool { return t.insertable && t.Boundary() }

// close ends the reading along.
func (t *tap) close() {
	t.finish()
	if t.shape != neither && t.verdict != forward.Abandon {
		t.objects.note(false)
	}
}
