package gateway

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"holdfast/internal/provider"
	"holdfast/internal/wire/coding"
	"holdfast/internal/wire/link"
)

// origin is where the client found this gateway: what it, or a proxy before us, says it
// asked. It goes into the client's own answer alone, so it need not be proven.
func (x *exchange) origin() link.Origin {
	o := link.Origin{Scheme: "http", Host: x.r.Host}
	if x.r.TLS != nil {
		o.Scheme = "https"
	}
	if proto := forwarded(x.r.Header, "X-Forwarded-Proto"); proto == "https" || proto == "http" {
		o.Scheme = proto
	}
	if host := forwarded(x.r.Header, "X-Forwarded-Host"); isHost(host) {
		o.Host = host
	}
	if prefix := "/" + string(x.name); strings.HasPrefix(x.r.URL.EscapedPath(), prefix+"/") {
		o.Prefix = prefix
	}
	return o
}

// forwarded is what the first of several proxies says in a header.
func forwarded(h http.Header, name string) string {
	first, _, _ := strings.Cut(h.Get(name), ",")
	return strings.TrimSpace(first)
}

func isHost(host string) bool {
	u, err := url.Parse("http://" + host)
	return err == nil && host != "" && u.Host == host
}

// leadBack makes the links in a good answer lead back here, where the provider says that it
// has some: a client would take its secret to where they lead. It is the one place where an
// answer is changed.
func (x *exchange) leadBack(a *answer) {
	location := a.resp.Header.Get("Location")
	if led := x.origin().Lead(location, "/v1"); led != location {
		a.resp.Header["Location"] = []string{led}
	}
	p, ok := x.prov.(provider.Linker)
	if !ok || x.r.Method == http.MethodHead {
		return
	}
	member, under := p.Links(x.r.Method, x.route.Path)
	if member == "" {
		return
	}
	body := io.Reader(a.resp.Body)
	if codings := a.resp.Header.Values("Content-Encoding"); len(codings) > 0 {
		body = coding.NewReader(codings, body, maxDecoded)
		delete(a.resp.Header, "Content-Encoding")
	}
	o := x.origin()
	body = link.New(body, member, func(text string) string { return o.Lead(text, under) })
	a.resp.Body = struct {
		io.Reader
		io.Closer
	}{body, a.resp.Body}
	a.resp.ContentLength = -1
	delete(a.resp.Header, "Content-Length")
}
