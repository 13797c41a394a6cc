package anthropic

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/provider"
)

// Refuse implements provider.Provider.
//
// Claude Code calls a 429 without a unified status a hiccup of the server and keeps
// asking; with the status it shows the limit and its reset. So only a spent window says
// rejected, and pauses of seconds carry nothing but Retry-After. SDKs sit a Retry-After
// out up to a minute and above it fall back to their own, shorter pauses; therefore a
// longer wait, and a refusal that only the owner can end, says not to retry.
func (Provider) Refuse(r provider.Refusal, now time.Time) (http.Header, []byte) {
	h := http.Header{"Content-Type": {"application/json"}}
	if r.Kind == provider.Exhausted {
		exhausted(h, r, r.Until(now))
	}
	r.Wait(h, now)
	return h, append(envelope(r), '\n')
}

// exhausted tells of the spent window in Anthropic's own headers. The utilization is left
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
func (Provider) StreamError(r provider.Refusal) []byte {
	return append(append([]byte("event: error\ndata: "), envelope(r)...), "\n\n"...)
}

func envelope(r provider.Refusal) []byte {
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	text := r.Message
	if text == "" {
		text = http.StatusText(r.Status)
	}
	b, err := json.Marshal(struct {
		Type      string `json:"type"`
		Error     inner  `json:"error"`
		RequestID string `json:"request_id,omitempty"`
	}{"error", inner{typeOf(r.Status), text}, r.Request})
	if err != nil {
		panic("anthropic: a struct of strings always encodes: " + err.Error())
	}
	return b
}
