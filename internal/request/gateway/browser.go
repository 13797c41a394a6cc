package gateway

import (
	"fmt"
	"net/http"

	"holdfast/internal/core/route"
	"holdfast/internal/provider"
	"holdfast/internal/wire/browser"
)

// forBrowser settles what a page in a browser may read of the answer. It answers a preflight,
// which has no client key, and reports whether it did. What is said of accounts on the
// gateway's own paths is for no page but its own.
func (x *exchange) forBrowser() (answered bool) {
	asked := browser.Of(x.r.Method, x.r.Header)
	if asked.Origin == "" || x.route.Kind == route.Status || x.route.Kind == route.StatusPage {
		return false
	}
	config, err := x.g.configurationWithin(x.r.Context(), catalogFresh)
	switch {
	case err != nil && asked.Preflight:
		x.storeFailed(err)
		return true
	case err != nil:
		return false // the request itself hears of it
	case asked.Allowed(config.settings.AllowedOrigins):
		browser.Leave(x.r.Header)
		if !asked.Preflight {
			x.w.page = &asked
			return false
		}
	case asked.Preflight:
		x.refuse(foreignPage(asked.Origin))
		return true
	default:
		return false
	}
	x.report.outcome = "preflight"
	h := x.w.Header()
	h.Set("X-Holdfast-Request", x.id)
	x.w.granted = &asked
	x.w.WriteHeader(http.StatusNoContent)
	return true
}

// foreignPage is the answer to a page that may read nothing. It is read by whoever looks for
// the fault, in the browser's tools.
func foreignPage(origin string) provider.Refusal {
	return provider.Refusal{Kind: provider.Unauthorized, Status: http.StatusForbidden, Message: fmt.Sprintf(
		"holdfast: pages of %q may not read answers of this gateway. To allow them, add that origin to the setting: holdfast settings set allowed_origins ORIGIN,ORIGIN", short(origin))}
}

// short cuts what a client said for a message.
func short(text string) string {
	const most = 100
	if len(text) > most {
		return text[:most]
	}
	return text
}
