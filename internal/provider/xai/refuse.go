package xai

import (
	"encoding/json"
	"net/http"
	"time"

	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
)

// Refuse implements provider.Provider.
//
// The body is xAI's flat one: the Grok CLI expects it, and OpenAI's SDKs show its error as
// the message. Clients of Messages get the body of that dialect, since Anthropic's SDKs find
// a message there alone. xAI has no header for a reset, so a spent window is told by Retry-After and
// the message. The code never says spending-limit or free-usage: clients would send the
// owner to a shop, though it is the time that helps.
func (Provider) Refuse(r provider.Refusal, _ time.Time) (http.Header, []byte) {
	h := http.Header{"Content-Type": {"application/json"}}
	if r.Dialect == provider.Messages {
		return h, append(failed(r).Body(r.Dialect), '\n')
	}
	return h, append(encode(struct {
		Code  string `json:"code"`
		Error string `json:"error"`
	}{codeOf(r.Status), message(r)}), '\n')
}

// StreamError implements provider.Provider.
func (Provider) StreamError(r provider.Refusal) []byte { return failed(r).Event(r.Dialect) }

func failed(r provider.Refusal) dialect.Failure {
	return dialect.Failure{Type: typeOf(r.Status), Code: codeOf(r.Status), Message: message(r), Request: r.Request}
}

func message(r provider.Refusal) string {
	if r.Message == "" {
		return http.StatusText(r.Status)
	}
	return r.Message
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("xai: a struct of strings always encodes: " + err.Error())
	}
	return b
}

// codeOf is the code that goes with a status, in the words of xAI's own.
func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "unauthenticated"
	case http.StatusForbidden:
		return "permission-denied"
	case http.StatusNotFound:
		return "not-found"
	case http.StatusTooManyRequests:
		return "resource-exhausted"
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return "unavailable"
	case http.StatusGatewayTimeout:
		return "deadline-exceeded"
	}
	if status >= 500 {
		return "internal"
	}
	return "invalid-argument"
}

// typeOf is the error type that goes with a status.
func typeOf(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "api_error"
	}
	return "invalid_request_error"
}
