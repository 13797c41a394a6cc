package openai

import (
	"encoding/json"
	"net/http"
	"time"

	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
	"holdfast/internal/wire/limits"
)

// Refuse implements provider.Provider.
//
// Codex understands a spent allowance only as a 429 of type usage_limit_reached: it ends
// the turn and shows the reset, in words of its own; other clients see an ordinary error
// with a code and our message. The reset is told only where it is known.
func (Provider) Refuse(r provider.Refusal, now time.Time) (http.Header, []byte) {
	h := http.Header{"Content-Type": {"application/json"}}
	e := errorOf(r)
	if r.Kind == provider.Exhausted && !r.ResetAt.IsZero() {
		e.ResetsAt, e.ResetsInSeconds = provider.EpochUp(r.ResetAt), limits.WaitSeconds(now, r.ResetAt)
	}
	return h, append(encode(struct {
		Error inner `json:"error"`
	}{e}), '\n')
}

// StreamError implements provider.Provider.
func (Provider) StreamError(r provider.Refusal) []byte {
	e := errorOf(r)
	return dialect.Failure{Type: e.Type, Code: e.Code, Message: e.Message, Request: r.Request}.Event(r.Dialect)
}

// inner is OpenAI's error object.
type inner struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
	// The reset of a spent allowance, in Unix seconds and in seconds from now.
	ResetsAt        int64 `json:"resets_at,omitempty"`
	ResetsInSeconds int64 `json:"resets_in_seconds,omitempty"`
}

func errorOf(r provider.Refusal) inner {
	e := inner{Message: r.Message, Type: typeOf(r.Status), Code: string(r.Kind)}
	if e.Message == "" {
		e.Message = http.StatusText(r.Status)
	}
	switch r.Kind {
	case provider.Exhausted:
		e.Type, e.Code = usageLimitReached, usageLimitReached
	case provider.Paused, provider.Yielded:
		e.Code = "rate_limit_exceeded"
	case provider.Unauthorized:
		e.Code = "invalid_api_key"
	case provider.UpstreamUnreachable, provider.Internal:
		e.Code = "server_error"
	default: // our own word says it
	}
	return e
}

// typeOf is the error type that goes with a status.
func typeOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusServiceUnavailable:
		return "service_unavailable_error"
	case status >= 500:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("openai: structs of strings and numbers always encode: " + err.Error())
	}
	return b
}
