package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/placement"
	"holdfast/internal/core/route"
	"holdfast/internal/provider"
	"holdfast/internal/transport/forward"
	"holdfast/internal/transport/roundtrip"
)

// This file is the one table that turns what went wrong into what the client hears.

// refuse answers in the provider's own shape of an error.
func (x *exchange) refuse(r provider.Refusal) {
	if x.w.status != 0 {
		return
	}
	if x.report.outcome == "" {
		x.report.outcome = "refused"
	}
	x.report.refusal, r.Request, r.Dialect = r.Kind, x.id, x.dialect()
	if x.key.ID != "" { // where the data is, is for those who may use it
		r.Message = x.g.advise(r.Message)
	}
	h := x.w.Header()
	extra, body := http.Header(nil), []byte(nil)
	if x.prov != nil {
		extra, body = x.prov.Refuse(r, x.g.now())
	} else {
		extra, body = plainRefusal(r)
	}
	for k, v := range extra {
		h[k] = v
	}
	r.Wait(h, x.g.now())
	x.mark(h)
	if !x.bodyRead && x.r.Body != nil && x.r.Body != http.NoBody {
		// The server reads on before it answers, and would wait for the rest for ever.
		h.Set("Connection", "close")
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(refuseWithin))
	}
	h.Set("X-Holdfast-Error", string(r.Kind))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(r.Status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(body) // a client that left does not hear it
	}
}

// plainRefusal is the shape for paths that belong to no provider.
func plainRefusal(r provider.Refusal) (http.Header, []byte) {
	var e struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	e.Error.Type, e.Error.Message = string(r.Kind), r.Message
	body, _ := json.Marshal(e) // strings always encode
	return http.Header{"Content-Type": {"application/json"}}, body
}

// unauthorized does not name the header of Anthropic's keys: where a message does, Claude
// Code shows words of its own in its place. why says what came instead of a client key.
func unauthorized(why string) provider.Refusal {
	return provider.Refusal{
		Kind: provider.Unauthorized, Status: http.StatusUnauthorized,
		Message: "holdfast: no valid client key was sent: " + why + ". Send a client key of holdfast's as the bearer token or as the API key; `holdfast key create NAME` makes one.",
	}
}

func badRequest(message string) provider.Refusal {
	return provider.Refusal{Kind: provider.BadRequest, Status: http.StatusBadRequest, Message: "holdfast: " + message}
}

// unreadModel is the answer on a path that providers share, to a body that says a model in no
// way that all of them read alike.
func unreadModel(path string) provider.Refusal {
	var outright []string
	for _, name := range route.WithoutModel() {
		outright = append(outright, fmt.Sprintf("/%s%s", name, path))
	}
	return badRequest(fmt.Sprintf("This path is for several providers, and the model that tells which of them could not be read from the body, so nothing was sent on. Send a JSON object or a form that names one model, or name the provider with the path %s.", strings.Join(outright, " or ")))
}

func notFound() provider.Refusal {
	return provider.Refusal{
		Kind: provider.NotFound, Status: http.StatusNotFound,
		Message: "holdfast: there is nothing at this path. Send the API's own path, such as /v1/messages or /v1/responses, or with the provider in front, such as /xai/v1/chat/completions.",
	}
}

// nothingThere is the answer where no credential of a provider is for a path, so that no
// account could serve it, now or later.
func nothingThere(name account.Provider, method, path string) provider.Refusal {
	return provider.Refusal{
		Kind: provider.NotFound, Status: http.StatusNotFound,
		Message: fmt.Sprintf("holdfast: no account of %s serves %s %s, be it an API key or a login. Behind /%[1]s comes the path as %[1]s documents it for API keys, such as /%[1]s/v1/models.", name, method, path),
	}
}

func noProvider(name account.Provider) provider.Refusal {
	return provider.Refusal{
		Kind: provider.NotFound, Status: http.StatusNotFound,
		Message: fmt.Sprintf("holdfast: this path belongs to provider %s, which this version does not serve.", name),
	}
}

func noMethod(method string) provider.Refusal {
	return provider.Refusal{
		Kind: provider.BadRequest, Status: http.StatusMethodNotAllowed,
		Message: fmt.Sprintf("holdfast: no API has requests of method %.16q.", method),
	}
}

func noWebSocket() provider.Refusal {
	return provider.Refusal{
		Kind: provider.BadRequest, Status: http.StatusUpgradeRequired,
		Message: "holdfast: WebSocket is not served here; use plain HTTP.",
	}
}

func tooLarge(limit int64, inflated bool) provider.Refusal {
	what := "The request's body"
	if inflated {
		what += ", once decompressed,"
	}
	return provider.Refusal{
		Kind: provider.TooLarge, Status: http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("holdfast: %s is larger than the limit of %d bytes. Send less, or raise it with `holdfast settings set max_body SIZE`.", what, limit),
	}
}

func pausedBody() provider.Refusal {
	return provider.Refusal{
		Kind: provider.BadRequest, Status: http.StatusRequestTimeout,
		Message: fmt.Sprintf("holdfast: nothing more of the request's body came for %s. Send it whole, and check the network between the client and the gateway if it did.", wait(bodyPatience)),
	}
}

func tooManyDecoded(now time.Time) provider.Refusal {
	return busy(fmt.Sprintf("%d compressed bodies are being decoded at once, which is the limit. Try again, or send the body plain.", mostDecoding), now)
}

func unsupportedCoding(err error) provider.Refusal {
	return provider.Refusal{
		Kind: provider.BadRequest, Status: http.StatusUnsupportedMediaType,
		Message: fmt.Sprintf("holdfast: %v. Send the body plain, or as gzip, deflate, br or zstd.", err),
	}
}

func storeUnavailable(now time.Time) provider.Refusal {
	return provider.Refusal{
		Kind: provider.StoreUnavailable, Status: http.StatusServiceUnavailable, RetryAt: now.Add(2 * time.Second),
		Message: "holdfast: the gateway's store did not answer, so nothing was sent on. Try again; if it lasts, look at the gateway's log.",
	}
}

func contended(now time.Time) provider.Refusal {
	r := storeUnavailable(now)
	r.Message = "holdfast: other requests changed this conversation's pin at the same time, so nothing more was sent on. Try again."
	return r
}

// renewPause is the wait told when a login could not be renewed just now.
const renewPause = 5 * time.Second

// unrenewed is the answer where the only account to serve has a login that could not be
// renewed just now. The provider's own word on it would be taken for the client's login
// failing.
func unrenewed(name account.Provider, acct string, until, now time.Time) provider.Refusal {
	if least := now.Add(renewPause); until.Before(least) {
		until = least
	}
	return provider.Refusal{
		Kind: provider.UpstreamUnreachable, Status: http.StatusServiceUnavailable, RetryAt: until,
		Message: fmt.Sprintf("holdfast: the %s login of account %s does not serve as it is, and could not be renewed just now. No account was marked; it is tried again in %s. If it lasts, `holdfast account show %s` says more.", name, acct, wait(until.Sub(now)), acct),
	}
}

// busy is the answer to a request that could be served, though not at this moment.
func busy(message string, now time.Time) provider.Refusal {
	return provider.Refusal{
		Kind: provider.Busy, Status: http.StatusServiceUnavailable, RetryAt: now.Add(time.Second), Message: "holdfast: " + message,
	}
}

func tooManyOpen(limit int64, now time.Time) provider.Refusal {
	return busy(fmt.Sprintf("%d requests are open at once, which is the limit. Try again when some have ended.", limit), now)
}

func internalFault(id string) provider.Refusal {
	return provider.Refusal{
		Kind: provider.Internal, Status: http.StatusInternalServerError,
		Message: fmt.Sprintf("holdfast: something went wrong in the gateway. Its log tells more under request %s.", id),
	}
}

func unreachable(name account.Provider, acct string, err error) provider.Refusal {
	message := fmt.Sprintf("holdfast: %s did not answer over HTTP (account %s): %v. No account was marked; check the gateway's network, VPN or proxy, and try again.", name, acct, err)
	if proxy := (*roundtrip.ProxyError)(nil); errors.As(err, &proxy) {
		message = fmt.Sprintf("holdfast: %s did not answer (account %s): %v. No account was marked; check the proxy, and HTTPS_PROXY and NO_PROXY in the gateway's environment, and try again.", name, acct, proxy)
	}
	return provider.Refusal{Kind: provider.UpstreamUnreachable, Status: http.StatusBadGateway, Message: message}
}

func noHeaders(name account.Provider, acct string, within time.Duration) provider.Refusal {
	return provider.Refusal{
		Kind: provider.UpstreamUnreachable, Status: http.StatusBadGateway,
		Message: fmt.Sprintf("holdfast: %s did not begin its answer within %s (account %s). No account was marked. Ask for less at once or as a stream, or give it longer with `holdfast settings set upstream_timeout TIME`.", name, wait(within), acct),
	}
}

func notAnswered(name account.Provider) provider.Refusal {
	return provider.Refusal{
		Kind: provider.UpstreamUnreachable, Status: http.StatusBadGateway,
		Message: fmt.Sprintf("holdfast: what came back is no answer of %s; something between the gateway and it seems to have answered, or cut it off. No account was marked; try again.", name),
	}
}

func timeUp() provider.Refusal {
	return provider.Refusal{
		Kind: provider.UpstreamUnreachable, Status: http.StatusGatewayTimeout,
		Message: "holdfast: the time that the platform gives one request is up before the provider had answered. Ask for less at once, or raise the function's timeout.",
	}
}

// cut is what a stream that cannot go on says.
func cut(err error) provider.Refusal {
	message := "holdfast: the provider's answer broke off before its end. Try again."
	if errors.Is(err, forward.ErrIdle) {
		message = "holdfast: the provider fell silent in the middle of its answer and was given up. Try again."
	}
	if errors.Is(err, forward.ErrTimeUp) {
		message = "holdfast: the time for this request is up, and the provider's answer was not at its end. Ask it to go on."
	}
	return provider.Refusal{Kind: provider.UpstreamUnreachable, Status: http.StatusBadGateway, Message: message}
}

// renderRefusal puts a plan's refusal into words.
func (x *exchange) renderRefusal(r placement.Refusal) provider.Refusal {
	now := x.g.now()
	if back, ok := x.comesBack(); ok && r.Cause == placement.NoAccount {
		return back // others need their owner, and this one may serve again by itself
	}
	out := provider.Refusal{RetryAt: r.RetryAt, Window: r.Block.Window, Family: r.Block.Family, Status: http.StatusTooManyRequests}
	if r.Block.Told {
		out.ResetAt = r.RetryAt // the provider's word, and not our own ceiling
	}
	models := ""
	if r.Block.Family != "" {
		models = " for " + r.Block.Family + " models"
	}
	switch r.Cause {
	case placement.Exhausted:
		out.Kind = provider.Exhausted
		who := fmt.Sprintf("every %s account that could serve this is spent%s; the first one is back", x.name, models)
		if r.Bound {
			who = "the account that holds this conversation's state is spent" + models + " and no other can continue it; it is back"
		}
		if r.Object {
			who = "account " + r.Account + ", which has what this request names, is spent" + models + " and no other has it; it is back"
		}
		out.Message = fmt.Sprintf("holdfast: %s at %s (in %s).", who, r.RetryAt.UTC().Format(time.RFC3339), wait(r.RetryAt.Sub(now)))
		if r.Block.Cause == account.CauseOverage {
			out.Message += " Going on now would be charged as extra usage; `holdfast account overage NAME allow` permits that."
		}
		out.Message += needing(r.Owner)
	case placement.Busy:
		return busy(fmt.Sprintf("%d %s accounts refused this one after another, which are as many as one request is sent to; another is ready. Try again.", x.sit.Sent, x.name), now)
	case placement.Paused:
		out.Kind = provider.Paused
		out.Message = fmt.Sprintf("holdfast: %s refused the last requests for a moment (account %s); try again in %s.", x.name, r.Account, wait(r.RetryAt.Sub(now)))
	case placement.Yielded:
		out.Kind = provider.Yielded
		out.Message = "holdfast: too little allowance is left for background requests; interactive ones go first."
		if !r.RetryAt.IsZero() {
			out.Message += fmt.Sprintf(" There is more at %s (in %s).", r.RetryAt.UTC().Format(time.RFC3339), wait(r.RetryAt.Sub(now)))
		}
	case placement.Unowned:
		out.Kind, out.Status = provider.NotFound, http.StatusNotFound
		out.Message = "holdfast: " + x.unownedSays()
	case placement.NoAccount:
		out.Kind, out.Status = provider.NoAccount, http.StatusServiceUnavailable
		out.Message = "holdfast: " + x.noAccount(r)
	}
	return out
}

// needing says which accounts need only their owner: one of them is back sooner than any reset.
func needing(owner []placement.Need) string {
	if len(owner) == 0 {
		return ""
	}
	return " Sooner with their owner's help: " + needs(owner) + "; `holdfast account show NAME` says what to do."
}

func needs(owner []placement.Need) string {
	var names []string
	for _, n := range owner {
		names = append(names, fmt.Sprintf("%s (%s)", n.Account, n.Reason))
	}
	return strings.Join(names, ", ")
}

func (x *exchange) noAccount(r placement.Refusal) string {
	names := needs(r.Owner)
	switch {
	case r.Object:
		return x.noOwner(r)
	case r.Bound && len(r.Owner) > 0 && pick.Reason(r.Owner[0].Reason) == pick.NotServed:
		return fmt.Sprintf("only account %s can continue this conversation, and it does not serve %s %s to this client. Send it as before, or begin a new conversation.", r.Owner[0].Account, x.r.Method, x.route.Path)
	case names != "" && r.Bound:
		return fmt.Sprintf("only one account can continue this conversation, and it needs its owner: %s. `holdfast account show NAME` says how to use it again.", names)
	case names != "":
		return fmt.Sprintf("no %s account can serve this; these need their owner: %s. `holdfast account show NAME` says how to use one again.", x.name, names)
	case r.Bound:
		return "the account that holds this conversation's state was removed, so the conversation cannot go on. Start a new one."
	case r.Draining:
		return fmt.Sprintf("every %s account that could serve this is draining. Run `holdfast account resume NAME`, or add one.", x.name)
	case len(x.sit.Candidates) == 0:
		return fmt.Sprintf("there is no account of %s to send %s %s to. Add one: `holdfast account add NAME --provider %[1]s --key-env VARIABLE`, or with --import FILE for a login.", x.name, x.r.Method, x.route.Path)
	}
	return x.noneServes()
}

// noneServes says why no account that there is serves the request at all.
func (x *exchange) noneServes() string {
	of := fmt.Sprintf("%s %s", x.r.Method, x.route.Path)
	allowed := 0
	for _, c := range x.sit.Candidates {
		if c.Allowed {
			allowed++
		}
		if c.Serves && !c.Allowed {
			return fmt.Sprintf("the client key %q may not use the %s accounts that serve %s. `holdfast key list` shows which it may.", x.key.Name, x.name, of)
		}
	}
	if allowed == 0 {
		return fmt.Sprintf("the client key %q may use no %s account. `holdfast key list` shows which it may.", x.key.Name, x.name)
	}
	if h, ok := x.prov.(provider.Hinter); ok {
		if hint := h.Hint(x.route.Path, x.r.Header); hint != "" {
			return hint
		}
	}
	return fmt.Sprintf("a subscription login of %s does not serve %s to this client, and there is no API key account that would. Add one: `holdfast account add NAME --provider %s --key-env VARIABLE`.", x.name, of, x.name)
}

// wait is a time to wait in words: 45s, 7m, 1h12m, 3d2h; rounded up.
func wait(d time.Duration) string {
	up := func(unit time.Duration) time.Duration { return max(unit, (d + unit - 1).Truncate(unit)) }
	switch {
	case d <= 2*time.Minute:
		return fmt.Sprintf("%ds", up(time.Second)/time.Second)
	case d <= time.Hour:
		return fmt.Sprintf("%dm", up(time.Minute)/time.Minute)
	case d <= 48*time.Hour:
		m := up(time.Minute) / time.Minute
		return fmt.Sprintf("%dh%02dm", m/60, m%60)
	default:
		h := up(time.Hour) / time.Hour
		return fmt.Sprintf("%dd%dh", h/24, h%24)
	}
}
