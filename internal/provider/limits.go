package provider

import (
	"net/http"
	"strings"
)

// limitHeaders are what the names of headers begin with that providers tell limits in.
var limitHeaders = []string{"Anthropic-Ratelimit-", "X-Ratelimit-", "X-Codex-", "Retry-After", "X-Should-Retry"}

// LimitHeaders are what an answer's headers say of limits, by their names in lower case, for
// the log: what a refusal was judged by.
func LimitHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for name, values := range h {
		for _, p := range limitHeaders {
			if strings.HasPrefix(name, p) {
				out[strings.ToLower(name)] = strings.Join(values, ", ")
			}
		}
	}
	return out
}
