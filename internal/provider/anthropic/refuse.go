package anthropic

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"holdfast/internal/limits"
	"holdfast/internal/provider"
)

const (
	// patience is how long a wait clients sit out by themselves.
	patience = time.Minute
	// storePause is the wait told when the store was away and nothing else is known.
	storePause = 2 * time.Second
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
	until := r.RetryAt
	hopeless := r.Kind == provider.NoAccount
	switch r.Kind {
	case provider.Exhausted:
		if until.IsZero() {
			until = r.ResetAt
		}
		exhausted(h, r, until)
		hopeless = until.IsZero()
	case provider.StoreUnavailable:
		if until.IsZero() {
			until = now.Add(storePause)
		}
	default: // RetryAt says it all
	}
	if !until.IsZero() {
		h.Set("Retry-After", strconv.FormatInt(limits.WaitSeconds(now, until), 10))
	}
	if hopeless || (!until.IsZero() && until.Sub(now) > patience) {
		h.Set("X-Should-Retry", "false")
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
	epoch := strconv.FormatInt(epochUp(reset), 10)
	set("Reset", epoch)
	if claim != "" {
		set(wire+"-Reset", epoch)
	}
}

// epochUp rounds up, so that a client that waits for the reset is not early.
func epochUp(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
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
