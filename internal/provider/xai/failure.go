package xai

import (
	"bytes"
	"encoding/json"
	"holdfast/internal/provider/dialect"
	"net/http"
	"strconv"
	"strings"
)

// failure is the body of a refusal, as far as it could be read. All of it is in lower
// case, for comparing.
type failure struct {
	// code is the most telling word for the failure: that of a [WKE=…] mark in the message,
	// else the body's own. It may be a sentence, or a number.
	code string
	// message is the message, with plain apostrophes.
	message string
}

// mark begins the word that ends many messages: the machine's name of a well-known error.
const mark = "[wke="

// readFailure reads the shapes in which xAI's servers refuse:
//
//	{"code":"word or sentence","error":"message"}   the usual one; code may be a number
//	{"error":{"message","type","code"}}             as OpenAI has it
//	{"error":"message"}                             as the proxy has it
//	"message", [{…}]                                seen as well
//	{"type":"error","code","message"}               an event of a stream
//	{"type":"response.failed","response":{"error":{…}}}
//
// A body that is no JSON is itself the message.
func readFailure(body []byte) failure {
	var f failure
	body = bytes.TrimSpace(body)
	f.take(body, 0)
	if f == (failure{}) && len(body) > 0 && !json.Valid(body) && body[0] != '{' && body[0] != '[' && body[0] != '<' && body[0] != '"' {
		f.message = string(body)
	}
	f.code, f.message = dialect.Plain(f.code), dialect.Plain(f.message)
	if i := strings.LastIndex(f.message, mark); i >= 0 {
		if word, _, ok := strings.Cut(f.message[i+len(mark):], "]"); ok && word != "" {
			f.code = word
		}
	}
	return f
}

// deepest bounds how far a failure is looked for inside another value.
const deepest = 4

// take takes in what a JSON value tells; what is told outside counts before what is told
// inside.
func (f *failure) take(value []byte, depth int) {
	if len(value) == 0 || depth > deepest {
		return
	}
	switch value[0] {
	case '"':
		if f.message == "" {
			var s text
			_ = json.Unmarshal(value, &s) // a text never fails
			f.message = string(s)
		}
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(value, &list) == nil && len(list) > 0 {
			f.take(list[0], depth+1)
		}
	case '{':
		var o struct {
			Type     text            `json:"type"`
			Code     word            `json:"code"`
			Message  text            `json:"message"`
			Error    json.RawMessage `json:"error"`
			Response struct {
				Error json.RawMessage `json:"error"`
			} `json:"response"`
		}
		_ = json.Unmarshal(value, &o) // members that could not be read stay untold
		if f.code == "" {
			f.code = string(o.Code)
		}
		if f.message == "" {
			f.message = string(o.Message)
		}
		f.take(o.Error, depth+1)
		f.take(o.Response.Error, depth+1)
		if f.code == "" && o.Type != "error" && !strings.HasPrefix(string(o.Type), "response.") {
			f.code = string(o.Type)
		}
	}
}

// word is a JSON string, or a number as it is written.
type word string

func (w *word) UnmarshalJSON(b []byte) error {
	if strings.Trim(string(b), "0123456789") == "" {
		*w = word(b)
		return nil
	}
	return (*text)(w).UnmarshalJSON(b)
}

// begins reports whether the message begins with one of the phrases. A message may go on
// to quote what the client wrote.
func (f failure) begins(phrases ...string) bool {
	for _, p := range phrases {
		if strings.HasPrefix(f.message, p) {
			return true
		}
	}
	return false
}

// has reports whether a phrase is anywhere in the message. It is for refusals whose
// status keeps them from being about what the client wrote.
func (f failure) has(phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(f.message, p) {
			return true
		}
	}
	return false
}

// status is the one that a failure has when it is an answer of its own, by its code. An
// unknown one in the midst of a stream is the server's trouble: the request had been
// accepted.
func (f failure) status() int {
	if n, err := strconv.Atoi(f.code); err == nil {
		return statusOfNumber(n)
	}
	switch kind, _, _ := strings.Cut(f.code, ":"); kind {
	case "invalid-argument", "failed-precondition", "out-of-range", "invalid_request_error", "context_length_exceeded", "invalid_prompt",
		"client specified an invalid argument":
		return http.StatusBadRequest
	case "unauthenticated", "authentication_error", "invalid_api_key":
		return http.StatusUnauthorized
	case "permission-denied", "unauthorized", "personal-team-blocked", "team-blocked", "permission_error", deniedSentence:
		return http.StatusForbidden
	case "not-found", "not_found_error", "model_not_found":
		return http.StatusNotFound
	case "resource-exhausted", "subscription", "rate_limit_exceeded", "rate_limit_error", "too_many_requests":
		return http.StatusTooManyRequests
	}
	if f.begins("too many tokens for team", "too many requests for team") {
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// deniedSentence is how gRPC describes a denied permission; older answers have it for a
// code.
const deniedSentence = "the caller does not have permission to execute the specified operation"

// statusOfNumber reads a code that is a number: an HTTP status, or one of gRPC's.
func statusOfNumber(n int) int {
	if n >= 400 && n <= 599 {
		return n
	}
	switch n {
	case 3, 9, 11: // invalid argument, failed precondition, out of range
		return http.StatusBadRequest
	case 5: // not found
		return http.StatusNotFound
	case 7: // permission denied
		return http.StatusForbidden
	case 8: // resource exhausted
		return http.StatusTooManyRequests
	case 16: // unauthenticated
		return http.StatusUnauthorized
	}
	return http.StatusInternalServerError
}
