// Package provider is what the gateway asks of a provider: which requests are its own,
// how they identify their conversation and the objects they name, how a credential goes onto
// the wire, and what an answer means. A Renewer and a Looker say, too, how a login is renewed
// and how the use of an account's allowance is looked at: the call, and what its reply means;
// others make it. Everything that differs between providers' wires is below here, one package
// each, and nothing outside asks which provider it is talking to.
//
// Providers only parse and render: they do no I/O, keep no state, and read no clock.
package provider

import (
	"net/http"
	"net/url"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/wire/body"
)

// Role says what a request is to its conversation.
type Role string

const (
	// Inference requests create, keep, touch and move pins.
	Inference Role = "inference"
	// Aside requests (token counts, model lists, one-token probes) follow a pin that
	// exists and never create, touch or move one.
	Aside Role = "aside"
	// Stateful requests concern an object that lives on one account (batches, files).
	Stateful Role = "stateful"
)

// Request is what a provider makes of a client's request.
type Request struct {
	Role Role
	// Model as the client named it; Family is the model family whose windows bind it.
	Model, Family string
	// Stream: the client asked for an event stream.
	Stream bool
	// Features are the entitlements the request needs beyond an ordinary one.
	Features []string
	// Tier is the service tier that the client chose, where one can be refused that others
	// are not; empty for the ordinary one.
	Tier string
	// Session and Agent identify the conversation: the client's own session, and its
	// sub-agent within it. Source names where Session was found, for the metric.
	Session, Agent, Source string
	// Bound: the body carries state that only the account which made it can read.
	Bound bool
	// Stay: the request must not go to another account whatever the answer.
	Stay bool
	// SideCall: a known client's title, summary or suggestion. It has no cache in common with
	// its conversation: it follows a pin, and never makes, extends or moves one.
	SideCall bool
	// Upload: it makes what later requests name together with other things that were made so,
	// such as a file.
	Upload bool
	// KnownBackground: a known client's title, summary or review.
	KnownBackground bool
}

// Answer is an upstream's answer, as far as classifying needs it.
type Answer struct {
	Status int
	Header http.Header
	// Body is the (decoded) beginning of an error's body, or the data of an error event.
	Body []byte
	// At is when the response headers arrived.
	At time.Time
	// InStream: the error came as an event inside a 200 stream; Status is 200 then.
	InStream bool
	Request  Request
	// Kind and Generation are those of the account and credential that served.
	Kind       account.Kind
	Generation int64
}

// Meaning says what one event of a stream is.
type Meaning int

const (
	// Opening events precede content; an error after them can still be answered elsewhere.
	Opening Meaning = iota
	// Content has begun: from here on nothing is sent to another account.
	Content
	// Failure is an error event.
	Failure
	// Terminal ends the stream well. Only what follows from the client's own protocol counts.
	Terminal
)

// Usage is what an answer consumed, in tokens. Fields that were not told are 0.
type Usage struct {
	Model                                string
	Input, CacheRead, CacheWrite, Output int64
	// Reasoning is a part of Output.
	Reasoning int64
}

// Prompt is the whole prompt in tokens.
func (u Usage) Prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite }

// RefusalKind is the reason of an answer made by the gateway; it goes out as
// X-Holdfast-Error.
type RefusalKind string

const (
	Unauthorized        RefusalKind = "unauthorized"
	BadRequest          RefusalKind = "bad_request"
	NotFound            RefusalKind = "not_found"
	TooLarge            RefusalKind = "too_large"
	StoreUnavailable    RefusalKind = "store_unavailable"
	NoAccount           RefusalKind = "no_account"
	Exhausted           RefusalKind = "exhausted"
	Paused              RefusalKind = "paused"
	Yielded             RefusalKind = "yielded"
	UpstreamUnreachable RefusalKind = "upstream_unreachable"
	Busy                RefusalKind = "busy"
	Internal            RefusalKind = "internal"
)

// Refusal is an answer made by the gateway, before it has a provider's shape.
type Refusal struct {
	Kind   RefusalKind
	Status int
	// Dialect is the one that the client speaks; empty where that is not known.
	Dialect Dialect
	// Message is one sentence that tells the owner what to do.
	Message string
	// Request is the gateway's id of the request, which some providers' errors repeat;
	// empty leaves it out.
	Request string
	// RetryAt is when trying again makes sense; zero when nothing is known.
	RetryAt time.Time
	// Window, Family and ResetAt describe the spent window that ends soonest (Exhausted).
	Window, Family string
	ResetAt        time.Time
}

// Provider is one vendor's wire.
type Provider interface {
	Name() account.Provider

	Renewer
	Looker
	Keeper

	// Dialect is the one that clients speak on a path (the provider's own spelling).
	Dialect(path string) Dialect
	// Inspect makes a Request of a client's request to path (the provider's own spelling,
	// decoded, e.g. /v1/messages). It reads headers and facts only.
	Inspect(method, path string, h http.Header, f body.Facts) Request
	// Serves reports whether an account of the kind can serve the path and request.
	Serves(kind account.Kind, path string, h http.Header, r Request) bool
	// Target is the scheme, host and path that a request goes to on an account of the
	// kind; the account's base URL then replaces scheme and host.
	Target(kind account.Kind, path string) (base, upstreamPath string)
	// Authorize puts the one credential onto outgoing headers from which every inbound
	// one was removed, with what the credential itself requires and nothing else.
	Authorize(h http.Header, kind account.Kind, c credential.Credential)
	// ScopeHeaders names the header that carries each part of the scope of an account of the
	// kind; empty for a part that the provider does not have, or not for that kind.
	// Authorize sends those that the credential has.
	ScopeHeaders(kind account.Kind) credential.Scope

	// Read takes a reading from the headers of any answer, dated at.
	Read(h http.Header, at time.Time) account.Reading
	// Classify says what an answer that is not good means. For an answer that is good it
	// returns the zero Rejection.
	Classify(a Answer) account.Rejection
	// Event says what an event of a stream is, by its name and data. JSON that tells an error
	// where a whole answer was due is a Failure, as an event without a name.
	Event(name string, data []byte) Meaning
	// EventReading takes a reading from an event that reports limits, dated at. It is false
	// for every event that says nothing about any window. Such an event informs: it is
	// neither content nor an end, whatever it says.
	EventReading(name string, data []byte, at time.Time) (account.Reading, bool)
	// EventUsage folds the usage that an event reports into u.
	EventUsage(u *Usage, name string, data []byte)
	// BodyUsage reads usage from a whole JSON answer.
	BodyUsage(b []byte) Usage

	// Refuse renders a refusal as the provider's own error: headers to add and a body.
	// Status, the wait (Refusal.Wait) and the X-Holdfast headers are the gateway's.
	Refuse(r Refusal, now time.Time) (http.Header, []byte)
	// StreamError renders an error event for a stream of r.Dialect that cannot go on; nil
	// where there is no such event.
	StreamError(r Refusal) []byte
}

// OwnHosts are the hosts that a provider's accounts use where they have no base URL, for
// whatever purpose, each as scheme and host.
func OwnHosts(p Provider) []string {
	var hosts []string
	add := func(text string) {
		if u, err := url.Parse(text); err == nil {
			hosts = append(hosts, u.Scheme+"://"+u.Host)
		}
	}
	login := credential.Credential{Access: credential.NewSecret("access"), Refresh: credential.NewSecret("refresh")}
	for _, kind := range []account.Kind{account.Key, account.Subscription} {
		base, _ := p.Target(kind, "/v1/models")
		add(base)
		for _, call := range p.Looks(kind, login) {
			add(call.URL)
		}
	}
	if call, ok := p.Renewal(login); ok {
		add(call.URL)
	}
	return hosts
}

// PutScope puts a credential's scope onto outgoing headers, under the names that a
// provider's ScopeHeaders gives.
func PutScope(h http.Header, names, scope credential.Scope) {
	for _, part := range [...][2]string{
		{names.Organization, scope.Organization}, {names.Project, scope.Project}, {names.Workspace, scope.Workspace},
	} {
		if name, id := part[0], part[1]; name != "" && id != "" {
			h.Set(name, id)
		}
	}
}

// Hinter is the part of a provider whose subscriptions serve some clients and paths only.
type Hinter interface {
	// Hint says in a sentence, for the owner, why no subscription serves a request, and what
	// does; empty where there is nothing to say.
	Hint(path string, h http.Header) string
}

// Linker is the part of a provider some of whose answers tell clients where to ask next.
type Linker interface {
	// Links returns the member that has such a link in a good answer, at whatever depth, and
	// the path that all of them lie below; empty for none.
	Links(method, path string) (member, under string)
}

// OwnClient is the part of a provider some of whose accounts serve its own client alone.
type OwnClient interface {
	// OwnHeader is by what such an account knows that client, for asking what would become
	// of its requests. It is never sent.
	OwnHeader() http.Header
}
