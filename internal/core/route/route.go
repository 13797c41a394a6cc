// Package route says where a request belongs, by its path alone: to a provider, to the
// gateway itself, or nowhere.
//
// Paths are matched after splitting into segments. A path with dot segments, empty
// segments or encoded slashes is refused before any credential is chosen, so that what
// is matched here is what the upstream sees. A path that clients share and that comes with
// /v1 twice, or without it, is taken as meant. The provider comes from the route and never
// from the look of a secret. The package is pure and knows no provider's wire format.
package route

import (
	"errors"
	"net/url"
	"strings"
	"unicode"

	"holdfast/internal/core/account"
)

// Kind is what a path leads to.
type Kind int

const (
	// Nowhere: no such path.
	Nowhere Kind = iota
	// Hello: the client warms its connection up or looks whether anybody is there.
	Hello
	// Health, Status, StatusPage are the gateway's own.
	Health
	Status
	StatusPage
	// Provider: the request is for a provider.
	Provider
	// ByModel: the request is for the provider that the body's model or the owner of an id
	// in it says: xai for grok models, else openai.
	ByModel
	// NoMethod: no API has requests of this method.
	NoMethod
	// NoWebSocket: an upgrade, on any path, which is refused so that the client uses plain HTTP.
	NoWebSocket
)

// Route is where a request belongs.
type Route struct {
	Kind     Kind
	Provider account.Provider // Kind Provider
	// Modelless: Kind ByModel, and the API has no model in what is sent to this path (uploads,
	// the list of models), whatever its form.
	Modelless bool
	// Path is the path as the provider spells it, decoded: /v1/messages.
	Path string
	// RawPath is the same as the client encoded it.
	RawPath string
}

// ErrPath reports a path that is refused as it stands.
var ErrPath = errors.New("the path has empty, dot or encoded-slash segments; send the API path exactly as the provider documents it")

// Request is what routing looks at.
type Request struct {
	Method string
	// EscapedPath is the path as the client encoded it, without the query.
	EscapedPath string
	// AnthropicVersion: the request has an anthropic-version header.
	AnthropicVersion bool
	// Upgrade: the request asks to become a WebSocket.
	Upgrade bool
}

// Of routes a request. The error is ErrPath.
func Of(r Request) (Route, error) {
	switch r.Method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	default: // TRACE above all, which would send the account's credential back
		return Route{Kind: NoMethod}, nil
	}
	path := r.EscapedPath
	if path == "" {
		path = "/"
	}
	if path == "/" {
		switch {
		case r.Upgrade:
			return Route{Kind: NoWebSocket}, nil
		case r.Method == "GET" || r.Method == "HEAD":
			return Route{Kind: Hello}, nil
		}
		return Route{}, nil
	}
	segments, err := split(path)
	if err != nil {
		return Route{}, err
	}
	if r.Upgrade {
		return Route{Kind: NoWebSocket}, nil
	}
	switch segments[0] {
	case "_holdfast":
		return own(segments), nil
	case "api":
		if len(segments) == 2 && segments[1] == "hello" && r.Method == "HEAD" {
			return Route{Kind: Hello}, nil
		}
		return Route{}, nil
	case "anthropic", "openai", "xai":
		if len(segments) == 1 {
			return Route{}, nil
		}
		rest, raw, _ := asMeant(segments[1:], behindFirst(path), r)
		return Route{
			Kind: Provider, Provider: account.Provider(segments[0]),
			Path: "/" + strings.Join(rest, "/"), RawPath: raw,
		}, nil
	}
	meant, raw, rt := asMeant(segments, path, r)
	if meant[0] == "v1" && len(meant) > 1 {
		rt.Path, rt.RawPath = "/"+strings.Join(meant, "/"), raw
	}
	return rt, nil
}

// asMeant puts right what a base URL with, or without, /v1 at its end makes of a path that
// providers share: a client that adds /v1 itself doubles it, and one that does not leaves it
// out. Any other path stays as it is. It returns the path's segments, the path as encoded, and
// where the shared path leads.
func asMeant(segments []string, raw string, r Request) ([]string, string, Route) {
	if segments[0] != "v1" {
		with := append([]string{"v1"}, segments...)
		if rt := shared(with, r); rt.Kind != Nowhere {
			return with, "/v1" + raw, rt
		}
		return segments, raw, Route{}
	}
	if len(segments) > 2 && segments[1] == "v1" {
		if rt := shared(segments[1:], r); rt.Kind != Nowhere {
			return segments[1:], behindFirst(raw), rt
		}
	}
	if len(segments) < 2 {
		return segments, raw, Route{}
	}
	return segments, raw, shared(segments, r)
}

// behindFirst is an encoded path without its first segment.
func behindFirst(raw string) string { return raw[strings.IndexByte(raw[1:], '/')+1:] }

// split decodes a path's segments and refuses those that could mean another path to
// somebody else.
func split(path string) ([]string, error) {
	if path[0] != '/' {
		return nil, ErrPath
	}
	segments := strings.Split(path[1:], "/")
	for i, raw := range segments {
		s, err := url.PathUnescape(raw)
		if err != nil || s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\\\x00") {
			return nil, ErrPath
		}
		segments[i] = s
	}
	return segments, nil
}

func own(segments []string) Route {
	if len(segments) != 2 {
		return Route{}
	}
	switch segments[1] {
	case "health":
		return Route{Kind: Health}
	case "status":
		return Route{Kind: StatusPage}
	case "status.json":
		return Route{Kind: Status}
	}
	return Route{}
}

// shared routes the paths that clients send without a provider in front; the first segment
// is v1.
func shared(segments []string, r Request) Route {
	switch segments[1] {
	case "messages":
		return Route{Kind: Provider, Provider: account.Anthropic}
	case "complete":
		if len(segments) == 2 {
			return Route{Kind: Provider, Provider: account.Anthropic}
		}
	case "models", "files":
		if r.AnthropicVersion {
			return Route{Kind: Provider, Provider: account.Anthropic}
		}
		return Route{Kind: ByModel, Modelless: true}
	case "responses":
		return Route{Kind: ByModel}
	case "chat":
		if len(segments) == 3 && segments[2] == "completions" {
			return Route{Kind: ByModel}
		}
	case "completions", "embeddings":
		if len(segments) == 2 {
			return Route{Kind: ByModel}
		}
	case "images", "audio":
		if len(segments) > 2 {
			return Route{Kind: ByModel}
		}
	}
	return Route{}
}

// WithoutModel are the providers that a ByModel route without a model may be for, the one
// first that it is for when nobody owns what it names.
func WithoutModel() []account.Provider { return []account.Provider{account.OpenAI, account.XAI} }

// ForModel settles a ByModel route. What stands before a name, such as blanks, quotes and a
// vendor's own name (xai/grok-4.6), and the case of its letters, do not make it another
// vendor's.
func ForModel(model string) account.Provider {
	for part := range strings.SplitSeq(model, "/") {
		part = strings.TrimLeftFunc(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if strings.HasPrefix(strings.ToLower(part), "grok") {
			return account.XAI
		}
	}
	return account.OpenAI
}
