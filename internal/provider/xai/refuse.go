package xai

import (
	"encoding/json"
	"net/http"
	"time"

	"holdfast/internal/provider"
)

// Refuse implements provider.Provider.
//
// The body is xAI's flat one: the Grok CLI expects it, and OpenAI's SDKs show its error as
// the message. xAI has no header for a reset, so a spent window is told by Retry-After and
// the message. The code never says spending-limit or free-usage: clients would send the
// owner to a shop, though it is the time that helps.
func (Provider) Refuse(r provider.Refusal, _ time.Time) (http.Header, []byte) {
	h := http.Header{"Content-Type": {"application/json"}}
	return h, append(encode(struct {
		Code  string `json:"code"`
		Error string `json:"error"`
	}{codeOf(r.Status), message(r)}), '\n')
}

// StreamError implements provider.Provider. Which dialect the stream speaks is not known
// here, so the event is an error in each: Responses has code and message beside the type,
// with a sequence number that strict readers require; Chat Completions, and the SDKs that
// read either, look for an error object; Messages has that object under the type error.
func (Provider) StreamError(r provider.Refusal) []byte {
	type inner struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	code, words := codeOf(r.Status), message(r)
	data := encode(struct {
		Type     string  `json:"type"`
		Code     string  `json:"code"`
		Message  string  `json:"message"`
		Param    *string `json:"param"`
		Sequence int     `json:"sequence_number"`
		Error    inner   `json:"error"`
	}{"error", code, words, nil, 0, inner{typeOf(r.Status), code, words}})
	return append(append([]byte("event: error\ndata: "), data...), "\n\n"...)
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

// typeOf is the error type that goes with a status in the Messages dialect.
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
