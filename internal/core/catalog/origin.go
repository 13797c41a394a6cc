package catalog

import (
	"net/url"
	"strings"
)

// parseOrigin reads an origin as a person types it: scheme://host, or scheme://host:port. It returns
// it as browsers send it; false for anything else, such as a path, a wildcard, or the origin
// "null", which any page can have.
func parseOrigin(text string) (string, bool) {
	text = strings.TrimSuffix(strings.TrimSpace(text), "/")
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return "", false
	case strings.ContainsAny(u.Host, "*,\"\\<> \t") || strings.HasSuffix(u.Host, ":") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "#"):
		return "", false
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return scheme + "://" + host, true
}
