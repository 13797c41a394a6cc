package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Proxy is for http.Transport.Proxy.
func Proxy(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" {
		return nil, nil
	}
	u, err := http.ProxyFromEnvironment(r)
	if err != nil { // net/http's words repeat it, with its password
		return nil, &ProxyError{cause: err}
	}
	return u, nil
}

// ProxyAnswered is for http.Transport.OnProxyConnectResponse. Without it net/http makes words
// of a proxy's refusal that do not tell that it was the proxy's.
func ProxyAnswered(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Proxy: proxy.Host, Status: resp.StatusCode, cause: errors.New("the proxy refused")}
}

// ProxyError reports that a request which goes through a proxy had no answer. Its text names
// the proxy, and never the user or the password in the proxy's URL.
type ProxyError struct {
	// Proxy is its host and port; empty where the environment names no valid proxy.
	Proxy string
	// Status is that of the proxy's refusal; 0 where it did not refuse.
	Status int
	// reached: what failed may have failed behind the proxy. refused: it was the proxy, which has
	// no status for that.
	reached, refused bool
	cause            error
}

func (e *ProxyError) Error() string {
	switch {
	case e.Proxy == "":
		return "what HTTPS_PROXY names is no proxy; set it to one such as http://127.0.0.1:3128, or unset it"
	case e.Status == http.StatusProxyAuthRequired:
		return fmt.Sprintf("the proxy %s (HTTPS_PROXY) wants another user name and password (status %d); HTTPS_PROXY takes them as http://USER:PASSWORD@HOST:PORT", e.Proxy, e.Status)
	case e.Status != 0:
		return fmt.Sprintf("the proxy %s (HTTPS_PROXY) refused to connect (status %d)", e.Proxy, e.Status)
	case e.refused:
		return fmt.Sprintf("the proxy %s (HTTPS_PROXY) refused to connect", e.Proxy)
	case e.reached:
		return fmt.Sprintf("through the proxy %s (HTTPS_PROXY): %s", e.Proxy, words(e.cause))
	}
	return fmt.Sprintf("the proxy %s (HTTPS_PROXY) could not be reached: %s", e.Proxy, words(e.cause))
}

func (e *ProxyError) Unwrap() error { return e.cause }

// throughProxy says of an error that a proxy stands on the way, where one does.
func (t *Transport) throughProxy(r *http.Request, err error) error {
	var known *ProxyError
	if t.Proxy == nil || errors.As(err, &known) {
		return err
	}
	proxy, none := t.Proxy(r)
	if none != nil || proxy == nil {
		return err
	}
	var op *net.OpError
	known = &ProxyError{Proxy: proxy.Host, reached: true, cause: err}
	switch {
	case !errors.As(err, &op):
	case op.Op == "proxyconnect": // of net/http: the way to the proxy
		known.reached, known.cause = false, op.Err
	case strings.HasPrefix(op.Op, "socks"): // of net/http: what a SOCKS proxy answered
		known.refused = true
	}
	return known
}
