package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"holdfast/internal/test/upstreamtest"
)

// upstream is every provider there is: it carries requests and answers them itself.
type upstream struct {
	now func() time.Time
	// used is how full every window is.
	used float64
	// rejects lets the next request be refused for a spent window.
	rejects bool
}

// usage is what Anthropic's endpoint says about a plan with a model's own window.
const usage = `{"five_hour":{"utilization":%[1]g,"resets_at":%[2]q},"seven_day":{"utilization":%[1]g,"resets_at":%[3]q},"seven_day_opus":null,` +
	`"limits":[{"kind":"session","percent":%[1]g,"resets_at":%[2]q},{"kind":"weekly_all","percent":%[1]g,"resets_at":%[3]q},` +
	`{"kind":"weekly_scoped","percent":%[1]g,"resets_at":%[3]q,"scope":{"model":{"id":null,"display_name":"Fable"}}}],"extra_usage":{"is_enabled":false}}`

// RoundTrip implements http.RoundTripper.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	short, week := u.resets()
	var s upstreamtest.Script
	path := r.URL.Path
	switch {
	case path == "/v1/messages" && u.rejects:
		u.rejects = false
		s = upstreamtest.FiveHourSpent(short)
	case path == "/v1/messages":
		s = upstreamtest.Good(upstreamtest.Plan(u.used, short, u.used, week))
	case path == "/v1/messages/count_tokens":
		s = answer(`{"input_tokens":2095}`)
	case path == "/api/oauth/usage":
		s = answer(fmt.Sprintf(usage, 100*u.used, short.Format(time.RFC3339), week.Format(time.RFC3339)))
	case path == upstreamtest.CodexUsage:
		s = upstreamtest.CodexUsed(u.used, short, u.used, week)
	case path == upstreamtest.GrokUsage:
		s = upstreamtest.GrokUsed(100*u.used, week)
	case strings.HasSuffix(path, "/token"):
		s = answer(fmt.Sprintf(`{"token_type":"Bearer","access_token":%q,"refresh_token":"EXAMPLE","expires_in":%d}`, u.token(), tokenLife/time.Second))
	default:
		return nil, fmt.Errorf("nobody answers at %s", r.URL)
	}
	return written(r, s(&upstreamtest.Request{Model: "claude-opus-5", Stream: path == "/v1/messages"})), nil
}

// tokenLife is that of every access token.
const tokenLife = 8 * time.Hour

func (u *upstream) token() string {
	return upstreamtest.JWT(map[string]any{"iat": u.now().Unix(), "exp": u.now().Add(tokenLife).Unix()})
}

// resets are the same for all requests of some hours, as those of a provider are.
func (u *upstream) resets() (short, week time.Time) {
	day := u.now().UTC().Truncate(24 * time.Hour)
	return u.now().UTC().Truncate(5 * time.Hour).Add(5 * time.Hour), day.Add(5 * 24 * time.Hour)
}

func answer(body string) upstreamtest.Script {
	return upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(body))
}

// written is an answer as it comes in.
func written(r *http.Request, a upstreamtest.Answer) *http.Response {
	var body bytes.Buffer
	for _, p := range a.Parts {
		body.Write(p.Data)
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	return &http.Response{
		Status: http.StatusText(a.Status), StatusCode: a.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.Header, Body: io.NopCloser(&body), ContentLength: int64(body.Len()), Request: r,
	}
}
