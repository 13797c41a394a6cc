package xai_test

import (
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/xai"
	"holdfast/internal/test/capture"
	"holdfast/internal/wire/body"
)

// t0 is the instant answers of these tests arrived: epoch 1804154400.
var t0 = time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)

var grokCLI = http.Header{
	"X-Grok-Session-Id": {session}, "X-Grok-Conv-Id": {session}, "X-Grok-Client-Version": {"1.0.41"},
	"X-Xai-Token-Auth": {"xai-grok-cli"}, "User-Agent": {"grok-shell/1.0.41 (linux; x86_64)"},
}

// inference is what the Grok CLI's ordinary request for a model is made into.
func inference(model string) provider.Request {
	return xai.Provider{}.Inspect("POST", "/v1/responses", grokCLI, body.Facts{Model: model, Stream: true})
}

type event struct{ name, data string }

func loadCaptures(t *testing.T) []capture.Capture {
	t.Helper()
	captures, err := capture.Load(os.DirFS("../../../testdata/captures"), "xai")
	if err != nil {
		t.Fatal(err)
	}
	return captures
}

func TestCaptures(t *testing.T) {
	p := xai.Provider{}
	for _, c := range loadCaptures(t) {
		t.Run(c.Name, func(t *testing.T) {
			answer, rejection := capture.Check(t, p, c, inference(c.Model))
			if !rejection.Rejected() {
				return
			}
			// The same error as an event of a stream means the same where its body tells it.
			inStream := answer
			inStream.InStream, inStream.Status = true, http.StatusOK
			told := []string{"unauthenticated", "incorrect-key", "team-limit", "team-credits", "spending-limit", "out-of-resources", "no-subscription", "free-usage", "chat-endpoint", "path-needs-key", "encrypted-content"}
			if x := p.Classify(inStream); slices.Contains(told, rejection.Rule) && x.Rule != rejection.Rule {
				t.Errorf("in a stream: got %s by %s, want it by %s", x.Kind, x.Rule, rejection.Rule)
			}
		})
	}
}

// No header of xAI's makes a window, whatever it counts down to.
func TestReadNeverMeters(t *testing.T) {
	h := http.Header{"X-Ratelimit-Limit-Requests": {"8300"}, "X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {"60"}, "Retry-After": {"60"}}
	r := xai.Provider{}.Read(h, t0)
	if !r.Empty() || !r.At.Equal(t0) || r.Source != account.FromAnswer || r.Organization != "" {
		t.Errorf("got %+v, want an empty reading of %v from an answer", r, t0)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("x-ratelimit-limit-tokens", "0")
	f.Add("xai-subscription-tier", "SuperGrok Heavy")
	f.Add("retry-after", "9223372037")
	f.Fuzz(func(t *testing.T, name, value string) {
		h := http.Header{}
		h.Add(name, value)
		if r := (xai.Provider{}).Read(h, t0); !r.Empty() || !r.At.Equal(t0) {
			t.Errorf("%q %q: got %+v, want nothing", name, value, r)
		}
		x := xai.Provider{}.Classify(provider.Answer{Status: 429, Header: h, At: t0, Request: inference("grok-4.6"), Kind: account.Subscription})
		if x.Kind != account.Bare && x.Kind != account.Throttle || x.Rule == "" {
			t.Errorf("%q %q: got %+v, want a throttle or a bare refusal", name, value, x)
		}
		if !x.Until.IsZero() && x.Until.Before(t0) {
			t.Errorf("%q %q: pauses until %v, before %v", name, value, x.Until, t0)
		}
	})
}
