package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/hidden"
	"holdfast/internal/provider"
	"holdfast/internal/transport/forward"
	"holdfast/internal/wire/coding"
	"holdfast/internal/wire/excerpt"
)

// answer is an upstream's answer that the client has not got yet.
type answer struct {
	resp *http.Response
	at   time.Time // when its headers arrived
	// began is when the work for it began, as far as is known: the headers of a stream come
	// before the work, those of any other answer after it, so that the work may have begun as
	// soon as the request was sent.
	began  time.Time
	cancel context.CancelFunc
	// readings are what its headers said, and then what its events did.
	readings []account.Reading
	// credential is the one that it was asked with.
	credential credential.Credential
	// head is what was read of an error's body to judge it.
	head []byte
}

func (a *answer) close() {
	if a != nil {
		a.cancel()
		_ = a.resp.Body.Close() // nothing more is wanted of it
	}
}

// maxReadings bounds what is kept of an answer's readings. Each later one is usually of the
// same windows.
const maxReadings = 8

// read takes in what an event of the answer said of windows. Of readings of the same
// windows the last counts.
func (a *answer) read(r account.Reading) {
	told := func(name string) bool {
		return slices.ContainsFunc(r.Windows, func(w account.WindowReading) bool { return w.Name == name })
	}
	later := slices.DeleteFunc(slices.Clone(a.readings[1:]), func(old account.Reading) bool {
		return !slices.ContainsFunc(old.Windows, func(w account.WindowReading) bool { return !told(w.Name) })
	})
	if len(later) == maxReadings {
		later = later[1:]
	}
	a.readings = append(append([]account.Reading{a.readings[0]}, later...), r)
}

// send makes an attempt at candidate i.
func (x *exchange) send(i int, cred credential.Credential) (*answer, error) {
	acct := x.sit.Candidates[i].Account
	target, err := x.target(acct)
	if err != nil {
		return nil, err
	}
	header := forward.Outgoing(x.r.Header)
	x.prov.Authorize(header, acct.Kind, cred)
	if x.report.added == 0 {
		x.report.added = x.g.now().Sub(x.start) - x.report.uploading
	}
	sent := x.g.now()
	ctx, end := context.WithCancelCause(x.r.Context())
	cancel := func() { end(nil) }
	resp, err := forward.Send(ctx, end, x.g.transport, x.r.Method, target, header, &x.body, x.limits().Headers) //nolint:bodyclose // answer.close does
	if err != nil {
		cancel()
		return nil, err
	}
	now := x.g.now()
	if x.report.headers == 0 {
		x.report.headers = now.Sub(x.start)
	}
	a := &answer{resp: resp, at: now, began: now, readings: []account.Reading{x.prov.Read(resp.Header, now).Cleaned(hidden.Clean)}, cancel: cancel, credential: cred}
	if !x.isStream(resp.Header) {
		a.began, a.readings[0].Sent = sent, sent
	}
	return a, nil
}

// isStream reports whether an answer is a stream of events. A request that asked for a stream
// gets one, whatever the answer calls itself.
func (x *exchange) isStream(h http.Header) bool {
	media := mediaOf(h)
	return media == "text/event-stream" || (x.req.Stream && media != "application/json")
}

func mediaOf(h http.Header) string {
	media, _, _ := strings.Cut(strings.ToLower(h.Get("Content-Type")), ";")
	return strings.TrimSpace(media)
}

// limits are those of an attempt: the settings in force, where this gateway was not made with
// others.
func (x *exchange) limits() forward.Limits {
	l := x.g.limits
	if l.Headers == 0 {
		l.Headers = x.config.settings.UpstreamTimeout
	}
	if l.KeepAlive == 0 {
		l.KeepAlive = x.config.settings.KeepAlive
	}
	return l
}

// target is the URL on an account: the provider's, or its path on the account's own host.
func (x *exchange) target(a account.Account) (*url.URL, error) {
	base, path := x.prov.Target(a.Kind, x.route.Path)
	if a.BaseURL != "" {
		base = a.BaseURL
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	u.Path, u.RawPath = path, ""
	if path == x.route.Path {
		u.RawPath = x.route.RawPath // as the client encoded it
	}
	u.RawQuery, u.ForceQuery = x.r.URL.RawQuery, x.r.URL.ForceQuery
	return u, nil
}

// Bounds of reading an error's body.
const (
	// maxErrorBody bounds it as it comes, and decoded.
	maxErrorBody  = 1 << 20
	errorPatience = 15 * time.Second
	// errorExcerpt bounds what is judged of one that has not come whole.
	errorExcerpt = 32 << 10
)

// classify says what candidate i's answer means, or an event of it, with what the provider
// does not know of the request, in words that repeat none of our secrets.
func (x *exchange) classify(i int, a *answer, judged provider.Answer) account.Rejection {
	judged.Request, judged.Kind, judged.Generation = x.req, x.sit.Candidates[i].Account.Kind, a.credential.Generation
	r := x.prov.Classify(judged).Cleaned(hidden.Clean)
	r.Size, r.Background = x.size, x.sit.Request.Background
	return r
}

// judge classifies an answer by its status and, where it is an error, by its body, as much
// as came of it.
func (x *exchange) judge(i int, a *answer) account.Rejection {
	if a.resp.StatusCode >= 400 {
		late := time.AfterFunc(errorPatience, a.cancel)
		a.head, _ = io.ReadAll(io.LimitReader(a.resp.Body, maxErrorBody)) // what came is judged
		late.Stop()
	}
	judged := provider.Answer{Status: a.resp.StatusCode, Header: a.resp.Header, Body: errorText(a.resp.Header, a.head), At: a.at}
	switch foreign(a.resp.StatusCode, a.resp.Header, judged.Body) {
	case "":
		return x.classify(i, a, judged)
	case notItsStatus:
		return account.Rejection{Kind: account.NotAnswered, At: a.at, Rule: notItsStatus}
	}
	// What stands between is no evidence about the account, whatever it says.
	a.readings = []account.Reading{{At: a.at}}
	switch a.resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden: // not handed back: clients would take it for their own login failing
		return account.Rejection{Kind: account.NotAnswered, At: a.at, Rule: webPage}
	case http.StatusTooManyRequests:
		judged.Header, judged.Body = nil, nil // the bare status is all there is
		return x.classify(i, a, judged)
	default:
		return account.Rejection{Kind: account.ClientFault, At: a.at, Rule: webPage}
	}
}

// Rules by which an answer is not the provider's.
const (
	notItsStatus = "status"
	webPage      = "web-page"
)

// foreign names what shows that an answer is not the provider's but of something between:
// an API never redirects (a client that followed would show its key elsewhere), never
// switches protocols unasked, and refuses in its own format. It is empty for all else; a
// server error may be told by a page of the provider's own edge.
func foreign(status int, h http.Header, body []byte) string {
	switch {
	case status < 200 || status > 599, status >= 300 && status < 400 && status != http.StatusNotModified:
		return notItsStatus
	case status >= 400 && status < 500 && isPage(h, body):
		return webPage
	}
	return ""
}

// isPage reports whether a body is a web page.
func isPage(h http.Header, body []byte) bool {
	return mediaOf(h) == "text/html" || bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n\ufeff"), []byte("<"))
}

// errorText is an error's body as it is judged. Of JSON that has not come whole it is an
// excerpt, which is JSON.
func errorText(h http.Header, body []byte) []byte {
	body = plain(h, body)
	if text := bytes.TrimLeft(body, " \t\r\n"); len(text) == 0 || text[0] != '{' && text[0] != '[' || json.Valid(text) {
		return body
	}
	e := excerpt.New(errorExcerpt)
	_, _ = e.Write(bytes.TrimRight(body, `\`))
	_, _ = e.Write([]byte{'"'}) // a text that was cut ends here
	if part := e.JSON(); part != nil {
		return part
	}
	return body
}

// plain decodes the beginning of an error's body where it came compressed, as far as it
// goes: it may have been cut. What cannot be decoded is judged as it is.
func plain(h http.Header, body []byte) []byte {
	if h.Get("Content-Encoding") == "" {
		return body
	}
	var decoded []byte
	t, err := coding.NewTap(h.Values("Content-Encoding"), maxErrorBody, func(p []byte) { decoded = append(decoded, p...) })
	if err != nil {
		return body
	}
	_, _ = t.Write(body)
	_ = t.Close() // what could be decoded is there
	if len(decoded) == 0 {
		return body
	}
	return decoded
}

// begin writes the head of an upstream's answer.
func (x *exchange) begin(a *answer) {
	x.body.Release() // nothing is sent again from here on
	h := x.w.Header()
	forward.Returning(h, a.resp.Header)
	x.mark(h)
	x.w.WriteHeader(a.resp.StatusCode)
}

// mark puts this gateway's own headers on an answer.
func (x *exchange) mark(h http.Header) {
	h["X-Holdfast-Request"] = []string{x.id}
	if x.report.account != "" {
		h["X-Holdfast-Account"] = []string{x.report.account}
	}
	if x.pinSaid != "" { // else it was refused before a pin mattered
		h["X-Holdfast-Pin"] = []string{x.pinSaid}
	}
}

// handBack gives the client the upstream's error as it came.
func (x *exchange) handBack(a *answer) {
	x.report.outcome = "handed-back"
	x.notTheirLogin(a)
	relay := x.relay(a)
	x.settle(a, relay.Run(io.MultiReader(bytes.NewReader(a.head), a.resp.Body)), false)
}

// notTheirLogin changes the status of a refusal that is about our credential: with 401 or 403
// a client would take it for its own login failing. The words stay the provider's.
func (x *exchange) notTheirLogin(a *answer) {
	switch x.refusedFor {
	case account.Access, account.Entitlement:
	default:
		return
	}
	if a.resp.StatusCode != http.StatusUnauthorized && a.resp.StatusCode != http.StatusForbidden {
		return
	}
	a.resp.StatusCode = http.StatusServiceUnavailable
	a.resp.Header.Del("Www-Authenticate")
	a.resp.Header.Set("X-Should-Retry", "false")
	x.report.refusal = provider.NoAccount
	x.w.Header().Set("X-Holdfast-Error", string(provider.NoAccount))
}

func (x *exchange) relay(a *answer) *forward.Relay {
	return &forward.Relay{
		W: x.w, Client: x.r.Context(), Cancel: a.cancel, Limits: x.limits(), Begin: func() { x.begin(a) },
		Since: a.at, Length: a.resp.ContentLength,
	}
}

// deliver relays an answer that is good by its head, reading along. It returns the
// rejection where an error came before any content and may still be answered otherwise;
// nothing has gone to the client then. With none the exchange is at its end.
func (x *exchange) deliver(i int, a *answer) account.Rejection {
	x.learnBeside("write a reading", i, lesson{answer: a})
	x.usedObjects(i, a)
	x.leadBack(a)
	t := newTap(x, i, a)
	relay := x.relay(a)
	relay.Tap, relay.MayHold, relay.NeedBody = t, t.judged, t.inference
	t.begun = relay.Begun
	if t.inference && !t.events { // its headers may come ahead, and all of it at the end of the work
		relay.Limits.Idle = max(relay.Limits.Idle, relay.Limits.Headers)
	}
	if t.insertable {
		relay.KeepAlive = t.dialect.KeepAlive()
	}
	err := relay.Run(a.resp.Body)
	t.close()
	x.report.usage = t.usage
	switch {
	case errors.Is(err, forward.ErrAbandoned) && t.shape == neither:
		a.close()
		x.notAnswered(errors.New("what came instead of an answer is neither JSON nor events"))
		return account.Rejection{}
	case errors.Is(err, forward.ErrAbandoned):
		a.head = relay.Held() // should the plan be to hand it back, after all
		x.writes.Wait()       // the reading's fold and the rejection's are of one state
		return t.rejection
	case !relay.Begun() && err != nil && !errors.Is(err, forward.ErrClient):
		a.close()
		x.report.err = err
		if !x.gone() {
			x.notAnswered(err)
		}
		return account.Rejection{}
	}
	if t.over() && errors.Is(err, forward.ErrClient) {
		err = nil // it had all that there was to say, and some clients do not wait for the connection's end
	}
	if err == nil && (t.unfinished() || t.shape == neither) {
		err = forward.ErrCut
	}
	if t.events && !t.content && err != nil && !errors.Is(err, forward.ErrClient) {
		x.unpin()
	}
	x.report.outcome = "served"
	last := lesson{served: err == nil && x.heals(i), began: a.began}
	if t.unlearnt {
		last.answer = a
	}
	if t.rejection.Rejected() { // passed on after content had begun, and learnt from
		x.report.outcome, last.served = "failed-in-stream", false
		x.logRejection(i, a, x.sit.Candidates[i].State.Settle(t.rejection))
		if t.rejection.Kind != account.BadCredential || !x.renewable(i, a.credential) {
			last.rejection = t.rejection // else the next request's answer says more, and renews
		}
	}
	if last.answer != nil || last.served || last.rejection.Rejected() {
		x.learnBeside("write what an answer taught", i, last)
	}
	x.settle(a, err, t.boundary())
	x.touchLate()
	return account.Rejection{}
}

// settle ends an exchange whose answer was begun. A cut answer never ends well: it gets an
// error event where one may stand, and otherwise its connection is broken off.
func (x *exchange) settle(a *answer, err error, boundary bool) {
	defer a.close()
	switch {
	case err == nil:
	case errors.Is(err, forward.ErrClient):
		// It may have closed only its own half of the connection, and still read.
		x.report.outcome, x.broken = "client-left", x.begun()
	default:
		x.report.outcome, x.report.err = "cut", err
		if boundary {
			r := cut(err)
			r.Dialect = x.dialect()
			if event := x.prov.StreamError(r); event != nil {
				_, _ = x.w.Write(event) // between two events it is well formed
				return
			}
		}
		x.broken = true
	}
}

func (x *exchange) begun() bool { return x.w.status != 0 }
