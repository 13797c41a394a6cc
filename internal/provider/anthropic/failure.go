package anthropic

import (
	"encoding/json"
	"holdfast/internal/provider/dialect"
	"net/http"
	"strings"
)

// failure is the body of a refusal, as far as it could be read.
type failure struct {
	// kind is error.type, code is error.details.error_code.
	kind, code string
	// message is error.message in lower case with plain apostrophes, for comparing.
	message string
}

// name is the most telling word the provider itself has for the failure.
func (f failure) name() string {
	if f.code != "" {
		return f.code
	}
	return f.kind
}

// says reports whether the message begins with one of the phrases. Beginnings only: a
// message may go on to quote what the client wrote.
func (f failure) says(phrases ...string) bool {
	for _, p := range phrases {
		if strings.HasPrefix(f.message, p) {
			return true
		}
	}
	return false
}

// readFailure reads Anthropic's error envelope. error.details may be null, an object, or
// anything a later version puts there. A body that is no JSON is itself the message.
func readFailure(body []byte) failure {
	var envelope struct {
		Error struct {
			Type    text            `json:"type"`
			Message text            `json:"message"`
			Details json.RawMessage `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil && envelope.Error.Type == "" && envelope.Error.Message == "" {
		plain := strings.TrimSpace(string(body))
		if strings.HasPrefix(plain, "{") || strings.HasPrefix(plain, "<") {
			return failure{}
		}
		return failure{message: dialect.Plain(plain)}
	}
	var details struct {
		ErrorCode text `json:"error_code"`
	}
	_ = json.Unmarshal(envelope.Error.Details, &details) // details of another shape tell no code
	return failure{
		kind:    string(envelope.Error.Type),
		code:    string(details.ErrorCode),
		message: dialect.Plain(string(envelope.Error.Message)),
	}
}

// statusOf is the status that an error type has when it is an answer of its own. An
// unknown type in the midst of a stream is the server's trouble: the request had been
// accepted.
func statusOf(kind string) int {
	switch kind {
	case "invalid_request_error":
		return http.StatusBadRequest
	case "authentication_error":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "conflict_error":
		return http.StatusConflict
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "timeout_error":
		return http.StatusGatewayTimeout
	case "overloaded_error":
		return statusOverloaded
	default:
		return http.StatusInternalServerError
	}
}

// typeOf is the error type that goes with a status.
func typeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusConflict:
		return "conflict_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case statusOverloaded:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// statusOverloaded is Anthropic's own status for a model without capacity.
const statusOverloaded = 529
