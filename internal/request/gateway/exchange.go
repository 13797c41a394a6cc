package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/object"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/pin"
	"holdfast/internal/core/placement"
	"holdfast/internal/core/route"
	"holdfast/internal/provider"
	"holdfast/internal/request/conversation"
	"holdfast/internal/store"
	"holdfast/internal/transport/forward"
	"holdfast/internal/wire/body"
	"holdfast/internal/wire/browser"
)

// exchange is one request and its answer.
type exchange struct {
	g     *Gateway
	w     *answerWriter
	r     *http.Request
	id    string
	start time.Time

	route   route.Route
	name    account.Provider
	prov    provider.Provider // nil until the route is known
	box     Box               // set by authenticate
	config  *configuration
	hashes  []string // of the secrets shown that have the form of a client key
	key     catalog.ClientKey
	body    forward.Body
	facts   body.Facts
	size    int64 // of the body in bytes, decoded
	req     provider.Request
	who     conversation.Identity
	states  map[account.ID]store.StateRecord
	sit     placement.Situation
	serving servingSeen
	// named are the objects that the request names, and owner the record that decides.
	named []named
	owner object.Record
	// uploads is the record of where the client key's uploads go.
	uploads object.Record
	pinSaid string // X-Holdfast-Pin
	// moved is the pin as it was before this exchange moved it; nil when it did not.
	moved *pin.Record
	// refusedFor is the kind of the last rejection.
	refusedFor account.RejectionKind
	// unrenewed names the account whose login could not be renewed just now; empty if none.
	// unrenewedUntil is when that is tried again; zero if not known.
	unrenewed      string
	unrenewedUntil time.Time
	// unrenewedHost: it is not for want of a renewal, but since its host is being changed.
	unrenewedHost bool
	// touched is the pin as a touch beside the answer left it.
	touched atomic.Pointer[pin.Record]

	counted  bool // among the open requests
	bodyRead bool // to its end; what is left of one must not hold an answer up
	broken   bool // the answer that was begun must not end well
	// writes are the store writes that run beside the answer; the exchange ends after them.
	writes sync.WaitGroup
	report report
}

func newExchange(g *Gateway, w http.ResponseWriter, r *http.Request) *exchange {
	var id [9]byte
	_, _ = rand.Read(id[:]) // never fails
	x := &exchange{g: g, r: r, id: hex.EncodeToString(id[:]), start: g.now(), w: &answerWriter{ResponseWriter: w}}
	// An earlier answer on this connection may have left its deadline behind.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	return x
}

// answerWriter notes whether an answer was begun.
type answerWriter struct {
	http.ResponseWriter
	status int
	// page asked, and may read the answer; granted is a preflight that may go on. Both are nil
	// for whoever is not a browser's allowed page.
	page, granted *browser.Request
}

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		browser.Strip(w.Header())
		switch {
		case w.granted != nil:
			w.granted.Grant(w.Header())
		case w.page != nil:
			w.page.Mark(w.Header())
		}
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *answerWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets a response controller reach the connection.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish ends the exchange on every path: it turns a panic into an answer or a broken
// connection, answers where nothing did, waits for the writes and logs.
func (x *exchange) finish() {
	abort := x.broken
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler: // this very value is net/http's convention
		abort = true
	default:
		x.report.outcome = "panic"
		x.g.log.Error("panic", "request", x.id, "panic", p, "stack", string(debug.Stack()))
		if x.w.status == 0 {
			x.refuse(internalFault(x.id))
			x.report.outcome = "panic"
		} else {
			abort = true
		}
	}
	switch {
	case x.w.status != 0 || abort:
	case x.r.Context().Err() != nil:
		abort = true // nobody listens; left to itself the server would write an empty success
	default:
		x.g.log.Error("no answer", "request", x.id)
		x.refuse(internalFault(x.id))
	}
	x.countUsage()
	x.writes.Wait()
	if x.g.store.Noted() {
		x.beside("write events", func(ctx context.Context) error { return x.g.store.WriteEvents(ctx, x.g.now()) })
		x.writes.Wait()
	}
	if x.counted {
		x.g.open.Add(-1)
	}
	x.logLine()
	x.measure()
	if abort {
		x.breakOff()
	}
}

// breakOff ends the connection so that the client sees a broken answer. In HTTP/1.0 the end
// of the connection is how an answer without a length ends well, so it is reset there.
func (x *exchange) breakOff() {
	if x.w.status != 0 && !x.r.ProtoAtLeast(1, 1) {
		if conn, _, err := http.NewResponseController(x.w).Hijack(); err == nil {
			reset(conn)
		}
	}
	panic(http.ErrAbortHandler)
}

// reset closes a connection with what was not sent yet thrown away, which makes the
// kernel send RST.
func reset(conn net.Conn) {
	tcp := conn
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok { // below TLS
		tcp = c.NetConn()
	}
	if l, ok := tcp.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = tcp.Close()
}

// beside runs a store write beside the answer.
func (x *exchange) beside(what string, write func(ctx context.Context) error) {
	ctx := context.WithoutCancel(x.r.Context()) // what was learnt is kept, also when the client left
	x.writes.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				x.g.log.Error("panic", "request", x.id, "panic", p, "in", what, "stack", string(debug.Stack()))
			}
		}()
		if err := write(ctx); err != nil {
			x.g.log.Error("write beside the answer", "request", x.id, "what", what, "error", err)
		}
	})
}

// serve is the way of a request up to its plan.
func (x *exchange) serve() {
	rt, err := route.Of(route.Request{
		Method: x.r.Method, EscapedPath: x.r.URL.EscapedPath(),
		AnthropicVersion: x.r.Header.Get("Anthropic-Version") != "", Upgrade: isUpgrade(x.r.Header),
	})
	x.route = rt
	if x.forBrowser() { // a page may read that its path is refused, too
		return
	}
	if err != nil {
		x.refuse(badRequest(err.Error()))
		return
	}
	switch rt.Kind {
	case route.Nowhere:
		x.refuse(notFound())
	case route.Hello:
		x.hello()
	case route.Health:
		x.healthCheck()
	case route.Status, route.StatusPage:
		x.status()
	case route.NoMethod:
		x.refuse(noMethod(x.r.Method))
	case route.NoWebSocket:
		x.refuse(noWebSocket())
	case route.Provider:
		x.forProvider(rt.Provider)
	case route.ByModel:
		// Until the body is read its errors have the shape that most clients of these paths know.
		x.forProvider("")
	}
}

// forProvider serves a request that goes to a provider; name is empty when only the
// body's model tells which.
func (x *exchange) forProvider(name account.Provider) {
	if name != "" && !x.speaks(name) {
		return
	}
	x.counted = true
	if open := x.g.open.Add(1); open > x.g.maxOpen {
		x.refuse(tooManyOpen(x.g.maxOpen, x.g.now()))
		return
	}
	if !x.authenticate() {
		return
	}
	if _, ok := priority(x.r.Header); !ok {
		x.refuse(badRequest("X-Holdfast-Priority has a value that means nothing. Send background, for a request that yields to interactive ones, or leave the header out."))
		return
	}
	uploaded := x.g.now()
	if !x.readBody() {
		return
	}
	x.report.uploading = x.g.now().Sub(uploaded)
	if name == "" && !x.byModel() {
		return
	}
	x.nameObjects(name == "" && x.facts.Model == "")
	x.req = x.prov.Inspect(x.r.Method, x.route.Path, x.r.Header, x.facts)
	if !x.served(account.Key) && !x.served(account.Subscription) {
		x.refuse(nothingThere(x.name, x.r.Method, x.route.Path))
		return
	}
	x.who = conversation.Identify(x.key.ID, x.name, x.r.Header.Get("X-Holdfast-Conversation"), x.req, x.facts)
	if !x.readStore() {
		return
	}
	if says := x.twoOwners(); says != "" {
		x.refuse(badRequest(says))
		return
	}
	x.run(x.plan())
}

// byModel settles the provider where only the model tells which. The query's counts where
// the body has none: nobody but the vendor of that one is meant.
func (x *exchange) byModel() bool {
	if x.facts.ModelUnread && !x.route.Modelless {
		x.refuse(unreadModel(x.route.RawPath))
		return false
	}
	model := x.facts.Model
	if model == "" {
		model = x.r.URL.Query().Get("model")
	}
	return x.speaks(route.ForModel(model))
}

// dialect is the one that the client speaks; empty until the provider is known.
func (x *exchange) dialect() provider.Dialect {
	if x.prov == nil {
		return ""
	}
	return x.prov.Dialect(x.route.Path)
}

// speaks settles the provider, or refuses one that this gateway does not have.
func (x *exchange) speaks(name account.Provider) bool {
	p, ok := x.g.providers[name]
	if !ok {
		x.refuse(noProvider(name))
		return false
	}
	x.name, x.prov = name, p
	return true
}

// served reports whether accounts of a kind can serve the request.
func (x *exchange) served(kind account.Kind) bool {
	return x.prov.Serves(kind, x.route.Path, x.r.Header, x.req)
}

// readStore reads what the decision needs, in one round trip, and settles the situation.
func (x *exchange) readStore() bool {
	g, ctx, now := x.g, x.r.Context(), x.g.now()
	stale := g.catalog.age(now) >= catalogFresh
	if !stale {
		// Authentication goes by whatever is in memory, however old, and a body takes long to
		// come; another request may have read the catalog since.
		x.config = g.catalog.current.Load()
	}
	q := store.Query{
		Catalog: stale,
		Owners:  x.objectKeys(),
		States:  x.asked(),
		Serving: x.servingOf(),
	}
	q.Credentials = g.credentials.missing(q.States)
	if x.who.Key != "" {
		q.Pins = append(q.Pins, x.who.Key)
		if x.who.Parent != "" && x.who.Parent != x.who.Key {
			q.Pins = append(q.Pins, x.who.Parent)
		}
	}
	v, err := g.store.Read(ctx, q)
	if err == nil && q.Catalog {
		if next := g.catalog.offer(v.Catalog, now); next.Revision != x.config.Revision {
			x.config = next
			err = x.readMore(ctx, &v)
		}
	}
	if err != nil {
		x.storeFailed(err)
		return false
	}
	for _, id := range x.hold(v.Credentials) {
		s := v.States[id]
		s.State = account.Unreadable(s.State, account.UnreadableCredential)
		v.States[id] = s
	}
	var ok bool
	if x.key, ok = x.config.key(x.hashes); !ok { // revoked since we last looked
		x.refuse(unauthorized(unknownKey))
		return false
	}
	x.report.storeFor = g.now().Sub(now)
	x.states = v.States
	x.findOwner(v.Owners)
	x.sawServing(q, v, now)
	x.sit = x.situation(v)
	x.together()
	return true
}

// readMore reads the states of accounts that a newer catalog brought.
func (x *exchange) readMore(ctx context.Context, v *store.View) error {
	var q store.Query
	for _, id := range x.asked() {
		if _, ok := v.States[id]; !ok {
			q.States = append(q.States, id)
		}
	}
	q.Credentials = x.g.credentials.missing(q.States)
	more, err := x.g.store.Read(ctx, q)
	if err != nil {
		return err
	}
	for id, s := range more.States {
		v.States[id] = s
	}
	for id, c := range more.Credentials {
		v.Credentials[id] = c
	}
	return nil
}

// situation is what the plan is made from.
func (x *exchange) situation(v store.View) placement.Situation {
	now := x.g.now()
	s := placement.Situation{
		Now: now, Policy: x.config.PolicyOf(x.name), Settings: x.config.settings,
		Request: pick.Request{
			Key: x.who.Key, Family: x.req.Family, Model: x.req.Model, Features: x.req.Features,
			Tier: x.req.Tier, Size: x.size, Background: x.background(),
		},
		Owner: x.owner.Account, Unowned: x.unowned(), Uploads: x.uploadsTo(),
		Pins: x.req.Role == provider.Inference && x.who.Key != "" && !x.req.SideCall,
		Stay: x.req.Stay, Bound: x.req.Bound,
	}
	s.Candidates = pick.Candidates(x.config.accounts[x.name], store.Known(v.States), v.Serving[x.name].Account)
	for i := range s.Candidates {
		c := &s.Candidates[i]
		c.Serves, c.Allowed = x.served(c.Account.Kind), x.key.Allows(c.Account.ID)
	}
	// That two conversations begin alike says nothing of where an object is.
	if p, ok := v.Pins[x.who.Key]; ok && !(s.Unowned && x.who.Source == conversation.Fingerprint) {
		s.Pin = &p
		s.Aside = p.Model != "" && x.req.Model != "" && p.Model != x.req.Model && !x.facts.Answered
	}
	if p, ok := v.Pins[x.who.Parent]; ok && x.who.Parent != "" {
		s.Parent = &p
	}
	return s
}

// background is the one value of X-Holdfast-Priority.
const background = "background"

// priority is what a client asks for by X-Holdfast-Priority, in any case; empty for nothing.
// It is false where that is a word which means nothing here.
func priority(h http.Header) (string, bool) {
	asked := ""
	for _, line := range h["X-Holdfast-Priority"] {
		for value := range strings.SplitSeq(line, ",") { // a Function URL joins lines so
			switch value = strings.TrimSpace(value); {
			case strings.EqualFold(value, background):
				asked = background
			case value != "":
				return "", false
			}
		}
	}
	return asked, true
}

// background reports whether the request yields to interactive traffic. A client key's
// mark or the client's own header makes it one; a known client's marks only where the owner
// chose to heed them.
func (x *exchange) background() bool {
	asked, _ := priority(x.r.Header)
	return x.key.Background || asked == background ||
		(x.req.KnownBackground && x.config.settings.YieldKnownBackground)
}

// plan makes the first plan.
func (x *exchange) plan() placement.Plan { return x.place(placement.Begin) }

// place makes a plan. One that takes the conversation or the request to another account is
// made with the counts of this process's own placements, and counted with them before the
// next one is made: a new conversation, a move and a hop alike.
func (x *exchange) place(plan func(placement.Situation) placement.Plan) placement.Plan {
	held := x.sit.Pin != nil && x.sit.Pin.Live(x.sit.Now)
	places := func(p placement.Plan) bool {
		if p.Step != placement.Serve {
			return false
		}
		hop := p.Decision != nil && (held || x.sit.Sent > 0)
		return p.Pin == placement.New || p.Pin == placement.Move || hop
	}
	if held || x.sit.Sent > 0 {
		if p := plan(x.sit); !places(p) {
			return p
		}
	}
	var p placement.Plan
	x.g.placements.pick(x.g.now(), x.sit.Candidates, func(cs []pick.Candidate) (int, bool) {
		x.sit.Candidates = cs
		p = plan(x.sit)
		return p.Chosen, places(p)
	})
	return p
}

func (x *exchange) storeFailed(err error) {
	if x.gone() {
		return
	}
	x.report.err = err
	x.g.storeFailedAt.Store(x.g.now().UnixNano())
	x.refuse(storeUnavailable(x.g.now()))
}

// gone reports whether there is nothing more to do: the client has left, or the time that
// the platform gives a request is up, which the client is told.
func (x *exchange) gone() bool {
	err := x.r.Context().Err()
	switch {
	case err == nil:
		return false
	case errors.Is(err, context.DeadlineExceeded):
		x.report.err = forward.ErrTimeUp
		x.refuse(timeUp())
	default:
		x.report.outcome = "client-left"
	}
	return true
}
