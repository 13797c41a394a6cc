package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/object"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/placement"
	"holdfast/internal/core/route"
	"holdfast/internal/provider"
	"holdfast/internal/request/conversation"
	"holdfast/internal/wire/page"
)

// named is an object that a request names.
type named struct {
	provider account.Provider
	kind     string        // what its id is of, in words
	key      string        // object.Key of its id
	record   object.Record // as read; zero when nobody knows whose it is
	// perhaps: it may not name an object. The body that names it has a history, which may hold
	// a model's arguments for a client's own tool, and those may look like an object's id; or
	// it is an item of a client that has nothing stored.
	perhaps bool
	// model: it is the request's model. An account that does not have it refuses it, and another
	// one is asked.
	model bool
}

// nameObjects finds the objects that the request names. Where only the owner of an object can
// show which provider the request is for, the names are read as each possible provider spells
// them.
func (x *exchange) nameObjects(byOwner bool) {
	names := []account.Provider{x.name}
	if byOwner {
		names = route.WithoutModel()
	}
	for _, name := range names {
		p, ok := x.g.providers[name]
		if !ok {
			continue
		}
		ids := p.Names(x.route.Path, x.r.URL.RawQuery, x.facts)
		if h, ok := p.(provider.HeadNamer); ok {
			ids = append(slices.Clip(ids), h.HeadNames(x.r.Header)...)
		}
		for _, id := range ids {
			perhaps := x.facts.Messages > 1 && slices.Contains(x.facts.Objects, id) ||
				x.facts.Unstored && slices.Contains(x.facts.Items, id)
			x.named = append(x.named, named{provider: name, kind: kindOf(id, x.route.Path), key: object.Key(name, id), perhaps: perhaps, model: id == x.facts.Model})
		}
	}
}

// objectKeys are the keys of the records of owners to read. The list is empty where the
// request names no object.
func (x *exchange) objectKeys() []string {
	var keys []string
	if x.req.Upload {
		keys = append(keys, x.uploadsKey())
	}
	if len(x.named) == 0 {
		return keys
	}
	seen := map[string]bool{}
	for _, n := range x.named {
		if !seen[n.key] {
			seen[n.key] = true
			keys = append(keys, n.key)
		}
	}
	return keys
}

// asked are the accounts whose states may matter: those of the provider, and those of every
// other provider that may have one of the named objects.
func (x *exchange) asked() []account.ID {
	ids := x.config.ids[x.name]
	added := map[account.Provider]bool{x.name: true}
	for _, n := range x.named {
		if !added[n.provider] {
			added[n.provider] = true
			ids = append(ids[:len(ids):len(ids)], x.config.ids[n.provider]...)
		}
	}
	return ids
}

// findOwner chooses the owner that decides which account serves: the owner of the first named
// object that surely is one, else the owner of the first that may be one. The provider fixes
// the order of the names.
func (x *exchange) findOwner(records map[string]object.Record) {
	now := x.g.now()
	if x.req.Upload {
		x.uploads = records[x.uploadsKey()]
	}
	for i, n := range x.named {
		if r := records[n.key]; r.Live(now) {
			x.named[i].record = r
		}
	}
	decides := func(perhaps bool) int {
		return slices.IndexFunc(x.named, func(n named) bool { return n.record.Account != "" && n.perhaps == perhaps })
	}
	i := decides(false)
	if i < 0 {
		i = decides(true)
	}
	if i < 0 {
		return
	}
	x.owner, x.who.Source = x.named[i].record, conversation.Object
	if name := x.named[i].provider; name != x.name && x.speaks(name) {
		x.req = x.prov.Inspect(x.r.Method, x.route.Path, x.r.Header, x.facts)
		x.who = conversation.Identify(x.key.ID, x.name, x.r.Header.Get("X-Holdfast-Conversation"), x.req, x.facts)
		x.who.Source = conversation.Object
	}
}

// uploadsKey is the key of the record of the account that the client key's uploads go to.
func (x *exchange) uploadsKey() string { return object.UploadsKey(x.name, x.key.ID) }

// uploadsTo is the account that the client key's uploads go to; empty where no record of one
// is live.
func (x *exchange) uploadsTo() account.ID {
	if !x.uploads.Live(x.g.now()) {
		return ""
	}
	return x.uploads.Account
}

// secureUploads notes that the client key's uploads go to candidate i from now on, before the
// first one is sent there, since other uploads may be under way. It is false where another
// process chose an account before this one.
func (x *exchange) secureUploads(ctx context.Context, i int) (won bool, err error) {
	a, now := x.sit.Candidates[i].Account, x.g.now()
	if !x.req.Upload || x.owner.Account != "" || x.who.Key != "" {
		return true, nil
	}
	next := object.New(a, provider.Lasting, now)
	next.Revision = x.uploads.Revision
	switch {
	case x.uploadsTo() == a.ID:
		if x.uploads.TouchDue(now) {
			touched := x.uploads.Touch(now)
			x.beside("touch where uploads go", func(ctx context.Context) error {
				_, _, err := x.g.store.ReplaceOwner(ctx, x.uploadsKey(), touched)
				return err // a lost race is no error: the winner touched or moved it
			})
		}
		return true, nil
	case x.uploads.Live(now):
		x.uploads, won, err = x.g.store.ReplaceOwner(ctx, x.uploadsKey(), next)
	default:
		x.uploads, won, err = x.g.store.ClaimOwner(ctx, x.uploadsKey(), next, now)
	}
	if err != nil {
		return false, err
	}
	if won {
		x.sit.Uploads = "" // nothing is there yet that others could be named with
		return true, nil
	}
	x.sit.Uploads = x.uploadsTo()
	return x.sit.Uploads == a.ID || x.sit.Sent > 0, nil
}

// twoOwners is the message that the request names objects on two accounts, so that neither can
// serve it; empty where that is not the case. A name that may not be an object's does not
// count, and two accounts that share their objects count as one.
func (x *exchange) twoOwners() string {
	accounts, states := x.config.accounts[x.name], make([]account.State, len(x.sit.Candidates))
	index := func(id account.ID) int {
		return slices.IndexFunc(accounts, func(a account.Account) bool { return a.ID == id })
	}
	first := index(x.owner.Account)
	if first < 0 || len(x.named) < 2 {
		return ""
	}
	for i, c := range x.sit.Candidates {
		states[i] = c.State
	}
	sharing := account.Sharing(accounts, states, first)
	for _, n := range x.named {
		second := index(n.record.Account)
		if n.perhaps || n.provider != x.name || second < 0 || second == first || slices.Contains(sharing, accounts[second].Name) {
			continue
		}
		for _, i := range []int{first, second} {
			if !x.sit.Candidates[i].Allowed {
				return "this request names several objects, and " + x.notAllowed()
			}
		}
		return fmt.Sprintf("this request names what is on account %s and what is on account %s, and one account serves a request. Make what is missing on one of them anew there, with a client key for that one alone: `holdfast key create NAME --accounts ACCOUNT`.",
			accounts[first].Name, accounts[second].Name)
	}
	return ""
}

// usedObjects touches the records of the objects that candidate i's good answer is about, and
// removes the record of an object that the request deleted.
func (x *exchange) usedObjects(i int, a *answer) {
	if a.resp.StatusCode >= 300 || len(x.named) == 0 {
		return
	}
	now, id := x.g.now(), x.sit.Candidates[i].Account.ID
	gone := ""
	if removed := x.prov.Removed(x.r.Method, x.route.Path); removed != "" {
		gone = object.Key(x.name, removed)
		x.g.told.forget(gone)
	}
	for _, n := range x.named {
		r := n.record
		switch {
		case r.Account != id:
		case n.key == gone:
			x.beside("forget an owner", func(ctx context.Context) error { return x.g.store.ForgetOwner(ctx, n.key, r) })
		case r.TouchDue(now):
			x.beside("touch an owner", func(ctx context.Context) error {
				_, _, err := x.g.store.ReplaceOwner(ctx, n.key, r.Touch(now))
				return err // a lost race is no error: the winner touched it too
			})
		}
	}
}

// objects records the owners of the objects that an answer names.
type objects struct {
	x      *exchange
	i      int
	wanted bool // the answer may name some
	read   bool // a whole body was
	found  []provider.Object
	// writes are those under way that note objects of this answer, ours and other answers'.
	writes []*noting
	// page reads a page of a listing; nil where the answer is not one. keep is that of its objects.
	page *page.Reader
	keep time.Duration
}

func (o *objects) begin(x *exchange, i int, a *answer) {
	o.x, o.i = x, i
	o.wanted = a.resp.StatusCode < 300 && x.req.Role != provider.Aside && x.r.Method != http.MethodDelete
	if !o.wanted {
		return
	}
	if keep, ok := x.prov.Lists(x.r.Method, x.route.Path); ok {
		o.page, o.keep = provider.NewPage(), keep
	}
	if p, ok := x.prov.(provider.HeadKeeper); ok {
		o.found = p.HeadMade(x.r.Method, x.route.Path, a.resp.Header)
		o.note(true)
	}
}

// listed takes bytes of a page of a listing, and records the owner of its cursor as soon as the
// page is whole, since the client may ask for the next page at once.
func (o *objects) listed(p []byte) {
	if o.page == nil {
		return
	}
	_, _ = o.page.Write(p) // never fails
	if o.page.Ended() {
		o.found = append(o.found, provider.Cursors(o.x.r.URL.RawQuery, o.page, o.keep)...)
		o.page = nil
		o.note(true)
	}
}

func (o *objects) event(name string, data []byte) {
	if o.wanted {
		o.found = append(o.found, o.x.prov.EventMade(o.x.facts, name, data)...)
	}
}

// body takes a JSON answer, or the excerpt of a large one.
func (o *objects) body(whole []byte) {
	if !o.wanted || o.read || len(whole) == 0 {
		return
	}
	o.read = true
	o.found = o.x.prov.BodyMade(o.x.r.Method, o.x.route.Path, o.x.facts, whole)
}

// noteWithin is how long an answer is kept back until the owners of its objects are stored.
// The writes go on beside it; that a client uses an id within that time, while the store
// hangs, is less likely than that it gives up on an answer that does not end.
const noteWithin = time.Second

// note writes what was found beside the answer, one conditional write for each object that
// is not known yet. It waits for the writes if told to, for up to noteWithin.
func (o *objects) note(wait bool) {
	x := o.x
	a := x.sit.Candidates[o.i].Account
	for _, found := range o.found {
		key, now := object.Key(x.name, found.ID), x.g.now()
		if x.knows(key) {
			continue
		}
		w, first := x.g.told.first(key, now)
		o.writes = append(o.writes, w)
		if !first {
			continue
		}
		x.beside("note an owner", func(ctx context.Context) error {
			defer close(w.done)
			_, _, err := x.g.store.ClaimOwner(ctx, key, object.New(a, found.Keep, now), now)
			if err != nil {
				x.g.told.forget(key)
			}
			return err // what was seen first stays
		})
	}
	o.found = nil
	if wait {
		o.await()
	}
}

// await waits for the writes under way, for up to noteWithin or until the client has left.
func (o *objects) await() {
	if len(o.writes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(o.x.r.Context(), noteWithin)
	defer cancel()
	for _, w := range o.writes {
		select {
		case <-w.done:
		case <-ctx.Done():
		}
	}
	o.writes = nil
}

// knows reports whether the owner of an object was read with the request.
func (x *exchange) knows(key string) bool {
	for _, n := range x.named {
		if n.key == key && n.record.Account != "" {
			return true
		}
	}
	return false
}

const (
	// maxTold bounds the objects that are remembered to be noted.
	maxTold = 4096
	// toldFor is how long they are remembered. A client that polls gets the same objects again
	// and again.
	toldFor = time.Hour
)

// noting is the write that notes the owner of an object.
type noting struct {
	at   time.Time
	done chan struct{} // closed once the write is over
}

// objectsTold remembers the objects that this process noted not long ago, so that a further
// answer that names them costs no write.
type objectsTold struct {
	mu sync.Mutex
	at map[string]*noting
}

// first reports whether the object was not noted lately, and remembers it. The caller then
// writes, and closes done; every other caller gets the same write, which may be under way.
func (o *objectsTold) first(key string, now time.Time) (w *noting, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w, ok := o.at[key]; ok && now.Sub(w.at) < toldFor {
		return w, false
	}
	if o.at == nil || len(o.at) >= maxTold {
		o.at = map[string]*noting{} // to note one twice costs a write, no more
	}
	w = &noting{now, make(chan struct{})}
	o.at[key] = w
	return w, true
}

func (o *objectsTold) forget(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.at, key)
}

// unowned reports whether the request surely names objects, and the owner of none is known.
func (x *exchange) unowned() bool {
	return x.owner.Account == "" && slices.ContainsFunc(x.named, x.surely)
}

// surely reports whether a name surely is an object's of the request's provider.
func (x *exchange) surely(n named) bool { return n.provider == x.name && !n.perhaps && !n.model }

// unownedSays is the message that says what to do about an object whose owner is not known.
func (x *exchange) unownedSays() string {
	var names []string
	for _, c := range x.sit.Candidates {
		if c.Serves && c.Allowed {
			names = append(names, c.Account.Name)
		}
	}
	return fmt.Sprintf("no %s account is known to have what this request names: %s. Its id may be mistyped; or it was deleted, was made elsewhere, was only seen in a listing, or was not used for long. If it is there, say which account has it by a client key for that one alone: `holdfast key create NAME --accounts ACCOUNT`, where ACCOUNT is one of %s.",
		x.name, x.kindsOf(x.surely), strings.Join(names, ", "))
}

// notAllowed says that an object is on an account that the client key may not use. It names no
// account: whoever has a key for some accounts must not learn the names of others.
func (x *exchange) notAllowed() string {
	return fmt.Sprintf("what it names is on an account that the client key %q may not use. Show the client key that made it; `holdfast key list` tells which accounts each may use.", x.key.Name)
}

// noOwner is the message that says why the account that has a named object cannot serve the
// request: it never can, or not before the person who owns the account does something.
func (x *exchange) noOwner(r placement.Refusal) string {
	if len(r.Owner) == 0 {
		of := func(n named) bool { return n.record.Account == x.owner.Account }
		return fmt.Sprintf("the account that had what this request names (%s) was removed, and no other has it. Make it anew, or name nothing that was there.", x.kindsOf(of))
	}
	need := r.Owner[0]
	switch pick.Reason(need.Reason) {
	case pick.NotAllowed:
		return "this request cannot be served: " + x.notAllowed()
	case pick.NotServed:
		return fmt.Sprintf("what this request names is on account %s, which does not serve this path.", need.Account)
	default:
		return fmt.Sprintf("what this request names is on account %s, which needs its owner: %s. `holdfast account show %s` says how to use it again.", need.Account, need.Reason, need.Account)
	}
}
