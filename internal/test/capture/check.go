package capture

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/wire/sse"
)

// Check holds what a provider makes of a capture against what the capture expects. request is
// the client's request that was answered, where it was one. The answer and its rejection are
// returned for more to be asked of them; they are empty for a call of the gateway's own.
func Check(t *testing.T, p interface {
	provider.Provider
	provider.Renewer
	provider.Looker
}, c Capture, request provider.Request) (provider.Answer, account.Rejection) {
	t.Helper()
	var got []string
	var answer provider.Answer
	var rejection account.Rejection
	if c.Call != "" {
		got = OfCall(p, c)
	} else {
		got, answer, rejection = ofAnswer(p, c, request)
	}
	if !slices.Equal(got, c.Expect) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.Expect, "\n\t"))
	}
	if rejection.Rejected() && (rejection.Model != c.Model || !rejection.At.Equal(c.Recorded) || rejection.Generation != answer.Generation) {
		t.Errorf("got model %q at %v of generation %d, want those of the answer", rejection.Model, rejection.At, rejection.Generation)
	}
	return answer, rejection
}

// ofAnswer reads a capture as the gateway does: headers, then the events of a stream or the
// whole body. An error event is the answer from there on.
func ofAnswer(p provider.Provider, c Capture, request provider.Request) ([]string, provider.Answer, account.Rejection) {
	answer := provider.Answer{
		Status: c.Status, Header: c.Header, Body: c.Body, At: c.Recorded, Request: request, Kind: c.Kind, Generation: 3,
	}
	reading, rejection := p.Read(c.Header, c.Recorded), p.Classify(answer)
	if !strings.HasPrefix(c.Header.Get("Content-Type"), "text/event-stream") {
		return Describe(reading, rejection, p.BodyUsage(c.Body)), answer, rejection
	}
	var usage provider.Usage
	var stream sse.Parser
	stream.Feed(c.Body, func(name string, data []byte) {
		p.EventUsage(&usage, name, data)
		if r, ok := p.EventReading(name, data, c.Recorded); ok {
			reading = r
		}
		if p.Event(name, data) == provider.Failure {
			answer.InStream, answer.Body = true, bytes.Clone(data)
			rejection = p.Classify(answer)
		}
	})
	return Describe(reading, rejection, usage), answer, rejection
}
