package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/internal/wire/browser"
)

func TestPreflightIsBounded(t *testing.T) {
	h := http.Header{"Origin": {"https://a.example"}, "Access-Control-Request-Method": {"TRACE"}}
	for range 300 {
		h.Add("Access-Control-Request-Headers", "x-a, bad header, x-b")
	}
	r := browser.Of(http.MethodOptions, h)
	out := http.Header{}
	r.Grant(out)
	if got := out.Get("Access-Control-Allow-Headers"); strings.Count(got, ",") != 63 || strings.Contains(got, "bad") {
		t.Errorf("got %q", got)
	}
	if got := out.Get("Access-Control-Allow-Methods"); got != "" {
		t.Errorf("got method %q allowed", got)
	}
}

func TestAllowed(t *testing.T) {
	list := []string{"https://a.example"}
	for origin, want := range map[string]bool{"https://a.example": true, "HTTPS://A.EXAMPLE": true, "http://a.example": false, "https://a.example.evil.example": false, "null": false, "": false, "https://a.example:8443": false} {
		r := browser.Of(http.MethodPost, http.Header{"Origin": {origin}})
		if got := r.Allowed(list); got != want || r.Preflight {
			t.Errorf("%q: got %v, want %v", origin, got, want)
		}
	}
}
