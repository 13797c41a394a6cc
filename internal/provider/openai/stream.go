package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
)

// Names of events that are about limits.
const (
	rateLimits    = "codex.rate_limits"
	codexMetadata = "codex.response.metadata"
	metadata      = "response.metadata"
)

// Event implements provider.Provider.
//
// Of a Responses stream, created, queued and in_progress precede content, and so does all
// that is about the answer and not of it: codex.rate_limits above all, which may say
// limit_reached at the head of a stream that then answers in full. The first item begins
// content, and an event not known counts as content. completed and incomplete end the
// stream well; there is no [DONE].
//
// Chat Completions name no events. A chunk without text, tool calls or a reason to end is
// an opening (the first tells the role alone, the last the usage alone); [DONE] ends the
// stream; a chunk with an error is a failure.
func (Provider) Event(name string, data []byte) provider.Meaning {
	if name == "" || name == "message" {
		data = bytes.TrimSpace(data)
		if dialect.IsDone(data) {
			return provider.Terminal
		}
		if len(data) == 0 {
			return provider.Opening // no event at all
		}
		if name = dialect.EventType(data); name == "" {
			return dialect.Chunk(data)
		}
	}
	switch name {
	case "response.created", "response.queued", "response.in_progress",
		rateLimits, codexMetadata, metadata, "responsesapi.websocket_timing", "keepalive", "ping":
		return provider.Opening
	case "response.completed", "response.incomplete":
		return provider.Terminal
	case "response.failed", "error":
		return provider.Failure
	default:
		return provider.Content
	}
}

// EventReading implements provider.Provider: it reads codex.rate_limits, and the events
// that repeat headers inside themselves. A plan's limits are no longer told in the headers
// of every answer, so this may be all there is.
func (Provider) EventReading(name string, data []byte, at time.Time) (account.Reading, bool) {
	if name == "" || name == "message" {
		if !bytes.Contains(data, []byte("rate_limits")) && !bytes.Contains(data, []byte(`"headers"`)) {
			return account.Reading{}, false // most events, without reading them for their name
		}
		name = dialect.EventType(data)
	}
	var r account.Reading
	switch name {
	case rateLimits:
		r = limitsEvent(data, at)
	case codexMetadata, metadata, "error":
		var event struct {
			Headers fields `json:"headers"`
		}
		_ = json.Unmarshal(data, &event) // what cannot be read says nothing
		r = readLimits(http.Header(event.Headers), at).reading
	}
	return r, !r.Empty()
}

// jsonSlot is a window as codex.rate_limits tells it.
type jsonSlot struct {
	Used       number `json:"used_percent"`
	Minutes    number `json:"window_minutes"`
	ResetAt    number `json:"reset_at"`
	ResetAfter number `json:"reset_after_seconds"`
	ResetsIn   number `json:"resets_in_seconds"` // an older word for the same
}

// jsonLimit is one limit's windows. Data of another type are dropped alone.
type jsonLimit struct {
	Primary   jsonSlot `json:"primary"`
	Secondary jsonSlot `json:"secondary"`
}

func (l jsonLimit) windows(id string, at time.Time) []planWindow {
	var out []planWindow
	for _, s := range []struct {
		name string
		jsonSlot
	}{{primary, l.Primary}, {"secondary", l.Secondary}} {
		wire := slot{string(s.Used), string(s.Minutes), string(s.ResetAt), string(s.ResetAfter)}
		if wire.resetAfter == "" {
			wire.resetAfter = string(s.ResetsIn)
		}
		if w, ok := wire.window(s.name, scopeOf(id, ""), at); ok {
			out = append(out, planWindow{w, id})
		}
	}
	return out
}

func limitsEvent(data []byte, at time.Time) account.Reading {
	var event struct {
		Limits     jsonLimit                  `json:"rate_limits"`
		Additional map[string]json.RawMessage `json:"additional_rate_limits"`
		Credits    struct {
			Has       bool            `json:"has_credits"`
			Unlimited bool            `json:"unlimited"`
			Balance   json.RawMessage `json:"balance"`
		} `json:"credits"`
		Metered text `json:"metered_limit_name"`
		Limit   text `json:"limit_name"` // the limit's id
	}
	_ = json.Unmarshal(data, &event) // fields that could not be read stay untold
	id := mainLimit
	for _, word := range []text{event.Limit, event.Metered} {
		if s := limitID(string(word)); s != "" && s != "premium" {
			id = s
		}
	}
	windows := event.Limits.windows(id, at)
	for name, raw := range event.Additional {
		var l jsonLimit
		_ = json.Unmarshal(raw, &l)
		if id := limitID(name); id != mainLimit {
			windows = append(windows, l.windows(id, at)...)
		}
	}
	r := account.Reading{At: at, Source: account.FromAnswer}
	r.Overage.Available = credits(event.Credits.Has, event.Credits.Unlimited, strings.Trim(string(event.Credits.Balance), `"`))
	for _, w := range merge(windows) {
		r.Windows = append(r.Windows, w.WindowReading)
	}
	return r
}
