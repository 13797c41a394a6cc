// Package browser decides what a page in a browser may read of the gateway's answers.
//
// A browser sends a page's request anywhere, and shows the page the answer only if the answer
// names the page's origin (Cross-Origin Resource Sharing, in the Fetch standard of WHATWG).
// Before a request that a form could not make, it asks by a preflight, which carries no key.
//
// # What it decides
//
// Whether an origin is among those that the owner allows, what a preflight is answered, and
// with which headers an answer is marked. An answer never allows every origin: it names the
// one that asked. Cookies are never allowed.
//
// It does no I/O. The owner's list comes in as package catalog made it.
package browser

import (
	"net/http"
	"slices"
	"strings"
)

// Request is what a browser says of a request.
type Request struct {
	// Origin is the page's; empty for whoever is not a browser.
	Origin string
	// Preflight: the browser asks whether the page may.
	Preflight bool
	// Method and Headers are those that a preflight asks for.
	Method  string
	Headers []string
	// PrivateNetwork: the page comes from a public network, and this host is in a private one.
	PrivateNetwork bool
}

// Of reads what a browser says.
func Of(method string, h http.Header) Request {
	r := Request{Origin: h.Get("Origin")}
	if r.Origin == "" || method != http.MethodOptions || h.Get("Access-Control-Request-Method") == "" {
		return r
	}
	r.Preflight = true
	r.Method = h.Get("Access-Control-Request-Method")
	for _, line := range h.Values("Access-Control-Request-Headers") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				r.Headers = append(r.Headers, name)
			}
		}
	}
	r.PrivateNetwork = strings.EqualFold(h.Get("Access-Control-Request-Private-Network"), "true")
	return r
}

// Allowed reports whether a request's origin is among those allowed.
func (r Request) Allowed(origins []string) bool {
	return r.Origin != "" && slices.Contains(origins, strings.ToLower(r.Origin))
}

const (
	// mostAsked bounds the header names that a preflight is answered.
	mostAsked = 64
	// goodFor is for how many seconds a browser may remember the answer to a preflight, so that
	// a change of the owner's is heard soon.
	goodFor = "600"
)

// methods are those that a page may be allowed.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Grant answers an allowed preflight: it sets the headers of the answer.
func (r Request) Grant(h http.Header) {
	h.Set("Access-Control-Allow-Origin", r.Origin)
	h.Add("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	if slices.Contains(methods, r.Method) {
		h.Set("Access-Control-Allow-Methods", r.Method)
	}
	var names []string
	for _, name := range r.Headers {
		if token(name) && len(names) < mostAsked {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(names, ", "))
	}
	if r.PrivateNetwork {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", goodFor)
}

// Mark lets the page read an answer, all of its headers too. Call it when they are set.
func (r Request) Mark(h http.Header) {
	var names []string
	for name := range h {
		if !slices.Contains([]string{"Connection", "Vary", "Date", "Transfer-Encoding"}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	h.Set("Access-Control-Allow-Origin", r.Origin)
	h.Add("Vary", "Origin")
	if len(names) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(names, ", "))
	}
}

// Strip removes what an upstream said to browsers: it was for its own host.
func Strip(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
}

// Leave removes from a request what a browser said of the page, once that has been decided
// here: a provider refuses pages by it.
func Leave(h http.Header) {
	for name := range h {
		if name == "Origin" || strings.HasPrefix(name, "Sec-Fetch-") || strings.HasPrefix(name, "Access-Control-Request-") {
			delete(h, name)
		}
	}
}

// token reports whether a text is a header's name (RFC 9110, section 5.6.2).
func token(s string) bool {
	return s != "" && len(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool {
		return r >= 0x7f || r <= ' ' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}
