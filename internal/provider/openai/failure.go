package openai

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/provider/dialect"
	"holdfast/internal/wire/limits"
)

// failure is a refusal in the provider's words, as far as it could be read.
type failure struct {
	// kind is error.type, code is error.code.
	kind, code string
	// message is the message in lower case with plain apostrophes, for comparing.
	message string
	// resetsAt and resetsIn tell when a spent allowance returns; empty when not told.
	resetsAt, resetsIn number
	// status and header are those that an error within a stream repeats inside itself; 0
	// and nil when it does not.
	status int
	header http.Header
}

// name is the most telling word the provider itself has for the failure.
func (f failure) name() string {
	if f.code != "" {
		return f.code
	}
	return f.kind
}

// is reports whether the failure's code or type is one of the words. The same word comes
// as the one or as the other.
func (f failure) is(words ...string) bool {
	for _, w := range words {
		if f.code == w || f.kind == w {
			return true
		}
	}
	return false
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

// reset is when the allowance returns by the failure's own word; false when it is untold.
func (f failure) reset(at time.Time) (time.Time, bool) {
	if t, ok := limits.Instant(string(f.resetsAt), at); ok {
		return t, true
	}
	return after(string(f.resetsIn), at)
}

// word is an error in its innermost shape.
type word struct {
	Type            text   `json:"type"`
	Code            text   `json:"code"`
	Message         text   `json:"message"`
	ResetsAt        number `json:"resets_at"`
	ResetsInSeconds number `json:"resets_in_seconds"`
}

func (w word) empty() bool { return w.Type == "" && w.Code == "" && w.Message == "" }

// UnmarshalJSON reads an error object; a plain string is its message, or its code where
// it is written like one.
func (w *word) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		if strings.Contains(s, "_") && !strings.ContainsAny(s, " \n") {
			w.Code = text(s)
		} else {
			w.Message = text(s)
		}
		return nil
	}
	type plain word
	var p plain
	_ = json.Unmarshal(b, &p) // what is of another type is dropped alone
	*w = word(p)
	return nil
}

// readFailure reads every envelope in which errors come: {"error":{…}} of an answer and of
// a Chat Completions stream; {"type":"response.failed","response":{"error":{…}}} and
// {"type":"error","code":…,"message":…} of a Responses stream; {"type":"error",
// "error":{…},"status_code":…,"headers":{…}} of a WebSocket and its imitations;
// {"detail":…} of the plans' backend. A code that the body does not tell may be in the
// X-Error-Json header. A body that is no JSON is itself the message.
func readFailure(body []byte, h http.Header) failure {
	var envelope struct {
		Code       text   `json:"code"`
		Message    text   `json:"message"`
		Error      word   `json:"error"`
		Detail     word   `json:"detail"`
		Status     number `json:"status"`
		StatusCode number `json:"status_code"`
		Response   struct {
			Error word `json:"error"`
		} `json:"response"`
		Headers fields `json:"headers"`
	}
	var w word
	err := json.Unmarshal(body, &envelope)
	for _, w = range []word{envelope.Error, envelope.Response.Error, envelope.Detail, {Code: envelope.Code, Message: envelope.Message}} {
		if !w.empty() {
			break
		}
	}
	if plain := strings.TrimSpace(string(body)); err != nil && w.empty() && !strings.HasPrefix(plain, "{") && !strings.HasPrefix(plain, "<") {
		w.Message = text(plain)
	}
	if w.Code == "" {
		w.Code = text(headerCode(h))
	}
	f := failure{
		kind: string(w.Type), code: string(w.Code), message: dialect.Plain(string(w.Message)),
		resetsAt: w.ResetsAt, resetsIn: w.ResetsInSeconds, header: http.Header(envelope.Headers),
	}
	for _, n := range []number{envelope.StatusCode, envelope.Status} {
		if status, err := strconv.Atoi(string(n)); err == nil && status >= 400 && status < 600 && f.status == 0 {
			f.status = status
		}
	}
	return f
}

// headerCode reads the error's code from the header in which the plans' backend repeats
// it, as JSON in base64; empty when it has none.
func headerCode(h http.Header) string {
	value := strings.TrimRight(strings.TrimSpace(h.Get("X-Error-Json")), "=")
	decoded, err := base64.RawStdEncoding.DecodeString(value)
	if err != nil {
		decoded, _ = base64.RawURLEncoding.DecodeString(value)
	}
	var envelope struct {
		Error word `json:"error"`
	}
	_ = json.Unmarshal(decoded, &envelope) // what cannot be read tells no code
	return string(envelope.Error.Code)
}

// fields are headers told in JSON: strings, numbers or lists of strings.
type fields http.Header

func (f *fields) UnmarshalJSON(b []byte) error {
	var values map[string]json.RawMessage
	if json.Unmarshal(b, &values) != nil || len(values) == 0 {
		return nil
	}
	h := http.Header{}
	for name, raw := range values {
		var one text
		var several []text
		if json.Unmarshal(raw, &several) == nil {
			for _, v := range several {
				h.Add(name, string(v))
			}
			continue
		}
		if _ = json.Unmarshal(raw, &one); one == "" {
			var n number
			_ = json.Unmarshal(raw, &n)
			one = text(n)
		}
		h.Add(name, string(one))
	}
	*f = fields(h)
	return nil
}

var (
	tryAgain = regexp.MustCompile(`try again in ([0-9][0-9.hms]*)( seconds?\b)?`)
	sizes    = regexp.MustCompile(`limit:? ([0-9,]+).*requested:? ([0-9,]+)`)
)

// wait is how long the message says to wait ("try again in 6.596s"); false when it does not.
func (f failure) wait(at time.Time) (time.Time, bool) {
	m := tryAgain.FindStringSubmatch(f.message)
	if m == nil {
		return time.Time{}, false
	}
	told := strings.TrimRight(m[1], ".")
	if m[2] != "" {
		return after(told, at)
	}
	d, err := time.ParseDuration(told)
	if err != nil || d < 0 {
		return time.Time{}, false
	}
	return at.Add(min(d, limits.Furthest)), true
}

// sizes are how much the limit allows and how much the request needs, where the message
// tells: "Limit 30000, Used 18928, Requested 11159".
func (f failure) sizes() (limit, requested int64, told bool) {
	m := sizes.FindStringSubmatch(f.message)
	if m == nil {
		return 0, 0, false
	}
	limit, known := count(strings.TrimRight(m[1], ","))
	requested, told = count(strings.TrimRight(m[2], ","))
	return limit, requested, known && told
}
