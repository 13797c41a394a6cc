package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/clientkey"
	"holdfast/internal/core/credential"
	"holdfast/internal/wire/body"
	"holdfast/internal/wire/coding"
)

// shown are the secrets that a request shows, in either place.
func shown(h http.Header) []string {
	var secrets []string
	for _, v := range h["Authorization"] {
		scheme, secret, ok := strings.Cut(strings.TrimSpace(v), " ")
		if ok && strings.EqualFold(scheme, "bearer") {
			secrets = append(secrets, strings.TrimSpace(secret))
		}
	}
	for _, v := range h["X-Api-Key"] {
		secrets = append(secrets, strings.TrimSpace(v))
	}
	return secrets
}

// authenticate finds who calls, by the newest configuration in memory; readStore checks again
// against the store's. A text that is not a client key by its form costs no read.
func (x *exchange) authenticate() bool {
	secrets := shown(x.r.Header)
	formed := slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return !clientkey.WellFormed(s) })
	if len(formed) == 0 { // what stands beside a valid key is ignored
		x.refuse(unauthorized(whatCame(secrets)))
		return false
	}
	var err error
	if x.box, err = x.g.openBox(x.r.Context()); err != nil {
		x.storeFailed(err)
		return false
	}
	for _, s := range formed {
		x.hashes = append(x.hashes, clientkey.Hash(x.box, s))
	}
	if x.config = x.g.catalog.current.Load(); x.config != nil {
		var ok bool
		if x.key, ok = x.config.key(x.hashes); ok {
			return true
		}
	}
	if x.config, err = x.g.configurationWithin(x.r.Context(), unknownKeyPause); err != nil {
		x.storeFailed(err)
		return false
	}
	var ok bool
	if x.key, ok = x.config.key(x.hashes); !ok {
		x.refuse(unauthorized(unknownKey))
	}
	return ok
}

// unknownKey is why a text in the form of a client key is refused.
const unknownKey = "this one is not known here: it was revoked, or made for another gateway"

// whatCame says what a client showed in place of a client key. It repeats nothing of that.
func whatCame(secrets []string) string {
	for _, s := range secrets {
		look, known := credential.LookOf(s)
		switch {
		case clientkey.LooksLike(s):
			return "what came begins as one and is mistyped, cut, or an example"
		case known:
			return "what came looks like " + look.What + ", which belongs into the gateway (`holdfast account add`) and not into its clients"
		case strings.HasPrefix(s, "$"):
			return "what came looks like the name of a variable that was not filled in"
		}
	}
	if len(secrets) > 0 && secrets[0] != "" {
		return "what came is something else"
	}
	return "there was none"
}

// Bounds of reading a request.
const (
	// bodyPatience is how long a client may pause within its body.
	bodyPatience = time.Minute
	// drainAtMost is what is read and dropped of a body that is too large, so that the
	// client hears the answer instead of a broken connection.
	drainAtMost = 64 << 20
	// drainFor bounds the same in time.
	drainFor = 10 * time.Second
	// refuseWithin is how long what is left of a body may hold up a refusal.
	refuseWithin = 2 * time.Second
)

// readBody reads the body once and inspects it in one pass.
func (x *exchange) readBody() bool {
	limit := x.config.settings.MaxBody
	raw, err := x.readAll(limit)
	var large *tooLargeError
	switch {
	case errors.As(err, &large):
		x.refuse(tooLarge(limit, false))
		return false
	case errors.Is(err, os.ErrDeadlineExceeded): // asked first: the server takes it for a client that has left
		x.report.err = err
		x.refuse(pausedBody())
		return false
	case err != nil && x.gone():
		return false
	case err != nil:
		x.report.err = err
		x.refuse(badRequest("The request's body broke off. Send it whole."))
		return false
	}
	if x.r.ContentLength <= 0 {
		x.body.Hold(raw)
	}
	if len(raw) == 0 {
		return true
	}
	codings := x.r.Header.Values("Content-Encoding")
	if len(codings) > 0 {
		leave, ok := x.g.decoding.enter(x.r.Context())
		if !ok {
			if !x.gone() {
				x.refuse(tooManyDecoded(x.g.now()))
			}
			return false
		}
		defer leave()
	}
	plain, err := coding.Decode(codings, raw, limit)
	switch {
	case errors.Is(err, coding.ErrUnknown):
		x.refuse(unsupportedCoding(err))
		return false
	case errors.Is(err, coding.ErrTooLarge):
		x.refuse(tooLarge(limit, true))
		return false
	case err != nil:
		x.refuse(badRequest(fmt.Sprintf("The request's body is not what its Content-Encoding says: %v. Send it as declared, or plain.", err)))
		return false
	}
	x.size = int64(len(plain))
	if x.facts, err = body.Read(plain, x.r.Header.Values("Content-Type")); err != nil {
		x.refuse(badRequest(fmt.Sprintf("The request's body is not a JSON object: %v.", err)))
		return false
	}
	return true
}

const (
	// mostDecoding bounds the bodies that are decoded at once: a small one may become one of
	// max_body, and its reading takes that much again.
	mostDecoding = 4
	// decodingPatience is how long another one waits for its turn.
	decodingPatience = 5 * time.Second
)

// turns bounds how many do something at once. Make one with a capacity.
type turns chan struct{}

// enter waits for a turn, and returns what ends it; false when none came in time.
func (t turns) enter(ctx context.Context) (leave func(), ok bool) {
	leave = func() { <-t }
	select {
	case t <- struct{}{}:
		return leave, true
	default:
	}
	late := time.NewTimer(decodingPatience)
	defer late.Stop()
	select {
	case t <- struct{}{}:
		return leave, true
	case <-late.C:
	case <-ctx.Done():
	}
	return nil, false
}

type tooLargeError struct{}

func (*tooLargeError) Error() string { return "the body is over the limit" }

// readAll reads the body, held once, up to limit bytes.
func (x *exchange) readAll(limit int64) ([]byte, error) {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		x.bodyRead = true
		return nil, nil
	}
	in := &patientReader{r: x.r.Body, rc: http.NewResponseController(x.w), now: x.g.now}
	if x.r.ContentLength > limit {
		x.drain()
		return nil, &tooLargeError{}
	}
	if n := x.r.ContentLength; n > 0 {
		b := x.body.Make(int(n))
		got, err := io.ReadFull(in, b)
		if err == nil {
			x.bodyRead = true
			in.done()
		}
		return b[:got], err
	}
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(b)) > limit {
		x.drain()
		return nil, &tooLargeError{}
	}
	if err == nil {
		x.bodyRead = true
		in.done()
	}
	return b, err
}

// drain reads and drops what is left of a body that is too large, within bounds, so that
// the client hears the answer instead of a broken connection. A client that asked whether
// to send it at all has its answer without.
func (x *exchange) drain() {
	if strings.EqualFold(x.r.Header.Get("Expect"), "100-continue") {
		return
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(x.g.now().Add(drainFor))
	n, err := io.CopyN(io.Discard, x.r.Body, drainAtMost)
	x.bodyRead = n < drainAtMost && errors.Is(err, io.EOF)
}

// patientReader gives the client a limited time between two reads of its body.
type patientReader struct {
	r        io.Reader
	rc       *http.ResponseController
	now      func() time.Time
	deadline time.Time
}

func (p *patientReader) Read(b []byte) (int, error) {
	if now := p.now(); p.deadline.Sub(now) < bodyPatience*3/4 {
		p.deadline = now.Add(bodyPatience)
		_ = p.rc.SetReadDeadline(p.deadline) // not every platform has deadlines; those have their own
	}
	return p.r.Read(b)
}

func (p *patientReader) done() { _ = p.rc.SetReadDeadline(time.Time{}) }

// isUpgrade reports whether a client asks for a WebSocket. The key stands beside it always,
// and alone where something on the way took the hop-by-hop headers off (RFC 6455, section 4.1).
func isUpgrade(h http.Header) bool {
	if len(h["Sec-Websocket-Key"]) > 0 {
		return true
	}
	for _, v := range h["Upgrade"] {
		for protocol := range strings.SplitSeq(v, ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/")
			if strings.EqualFold(strings.TrimSpace(name), "websocket") {
				return true
			}
		}
	}
	return false
}
