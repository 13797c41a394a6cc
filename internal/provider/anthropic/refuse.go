package anthropic

import (
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
)

// Refuse implements provider.Provider.
//
// Claude Code calls a 429 without a unified status a hiccup of the server and keeps
// asking; with the status it shows the limit and its reset. So only a spent window says
// rejected, and a pause of seconds has no header of a limit.
func (Provider) Refuse(r provider.Refusal, now time.Time) (http.Header, []byte) {
	h := http.Header{"Content-Type": {"application/json"}}
	if r.Kind == provider.Exhausted {
		exhausted(h, r, r.Until(now))
	}
	d := r.Dialect
	if d == "" {
		d = provider.Messages
	}
	return h, append(failed(r).Body(d), '\n')
}

// exhausted reports the spent window in Anthropic's own headers. The utilization is left
// out: it is that of one account among several.
func exhausted(h http.Header, r provider.Refusal, until time.Time) {
	set := func(name, value string) { h.Set(limitPrefix+"Unified-"+name, value) }
	set("Status", "rejected")
	reset := r.ResetAt
	if reset.IsZero() {
		reset = until
	}
	wire, claim := claimOf(r.Window, r.Family)
	if claim != "" {
		set("Representative-Claim", claim)
		set(wire+"-Status", "rejected")
	}
	if reset.IsZero() {
		return
	}
	epoch := strconv.FormatInt(provider.EpochUp(reset), 10)
	set("Reset", epoch)
	if claim != "" {
		set(wire+"-Reset", epoch)
	}
}

// StreamError implements provider.Provider.
func (Provider) StreamError(r provider.Refusal) []byte { return failed(r).Event(r.Dialect) }

// failed puts a refusal into Anthropic's words.
func failed(r provider.Refusal) dialect.Failure {
	f := dialect.Failure{Type: typeOf(r.Status), Code: string(r.Kind), Message: r.Message, Request: r.Request}
	if f.Message == "" {
		f.Message = http.StatusText(r.Status)
	}
	return f
}
