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
// rejected, and a pause of seconds has no header of a limit.
func (Provider) Refuse(r provider.Refusal, now time.Time) (http.Header, []byte) {
	h := http.Header{"Content-Type": {"application/json"}}
	if r.Kind == provider.Exhausted {
		exhausted(h, r, r.Until(now))
	}
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
