package capture_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/test/capture"
)

const working = `expect: rejection kind=bare
expect: window five-hour
recorded: 2026-07-31T15:09:25Z
request: subscription claude-opus-5
comment: one
comment: two

HTTP/2 429
x-should-retry: true
retry-after: 5
retry-after: 90

{"a":1}

b`

func TestParse(t *testing.T) {
	c, err := capture.Parse([]byte(working))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"rejection kind=bare", "window five-hour"}; !slices.Equal(c.Expect, want) {
		t.Errorf("expect: got %q, want %q", c.Expect, want)
	}
	if want := time.Date(2026, 7, 31, 15, 9, 25, 0, time.UTC); !c.Recorded.Equal(want) {
		t.Errorf("recorded: got %v, want %v", c.Recorded, want)
	}
	if c.Kind != account.Subscription || c.Model != "claude-opus-5" || c.Comment != "one two" || c.Status != 429 {
		t.Errorf("got kind %q, model %q, comment %q, status %d", c.Kind, c.Model, c.Comment, c.Status)
	}
	if got, want := c.Header.Values("Retry-After"), []string{"5", "90"}; !slices.Equal(got, want) {
		t.Errorf("retry-after: got %q, want %q", got, want)
	}
	if got, want := string(c.Body), "{\"a\":1}\n\nb"; got != want {
		t.Errorf("body: got %q, want %q", got, want)
	}
}

func TestParseCall(t *testing.T) {
	text := strings.Replace(working, "comment: one", "call: look 1\nbody: hex", 1)
	text = strings.Replace(text, "{\"a\":1}\n\nb", "0a 3F\n00\n", 1)
	c, err := capture.Parse([]byte(text))
	if err != nil || c.Call != "look 1" || string(c.Body) != "\x0a\x3f\x00" {
		t.Errorf("got %q with %q (%v), want a second look with three bytes", c.Call, c.Body, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"an unknown key", "comment: one", "coment: one", "unknown key"},
		{"no value", "comment: one", "comment:", "key: value"},
		{"no expectation", "expect: rejection kind=bare\nexpect: window five-hour\n", "", "no expect"},
		{"no instant", "recorded: 2026-07-31T15:09:25Z\n", "", "no recorded"},
		{"no request", "request: subscription claude-opus-5\n", "", "no request"},
		{"an unknown kind", "request: subscription", "request: login", "key or subscription"},
		{"a second instant", "comment: one", "recorded: 2026-07-31T15:09:25Z", "twice"},
		{"a second request", "comment: one", "request: key", "twice"},
		{"an unknown call", "comment: one", "call: poke", "unknown call"},
		{"two calls", "comment: one\ncomment: two", "call: look\ncall: renewal", "twice"},
		{"a body in another form", "comment: one", "body: base64", "can be hex"},
		{"a body that is no hex", "comment: one", "body: hex", "hexadecimal"},
		{"a date without a time", "2026-07-31T15:09:25Z", "2026-07-31", "read recorded"},
		{"no answer", "\n\nHTTP", "\nHTTP", ""},
		{"another protocol", "HTTP/2", "HTTP/3", "HTTP/1.1 or HTTP/2"},
		{"a status that is not a number", "429", "42x", "no status"},
		{"headers that break off", "\n\n{\"a\":1}\n\nb", "", "read headers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(working, c.from, c.to, 1)
			if text == working {
				t.Fatalf("%q is not in the working capture", c.from)
			}
			_, err := capture.Parse([]byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	at := time.Date(2026, 7, 31, 17, 20, 0, 0, time.UTC)
	reading := account.Reading{
		Windows: []account.WindowReading{
			{Name: "five-hour", Utilization: 1.01, HasUtilization: true, ResetAt: at, Status: account.Rejected},
			{Name: "weekly", HasUtilization: true},
		},
		Claim: "five-hour", Overage: account.Overage{Available: true, Charged: true}, Organization: "org",
	}
	rejection := account.Rejection{
		Kind: account.WindowSpent, Code: "c", Rule: "r", Feature: "f", PerModel: true, Until: at,
		Spent: []account.Spent{{Window: "five-hour", ResetAt: at}, {Window: "weekly", Family: "opus"}},
	}
	got := capture.Describe(reading, rejection, provider.Usage{Model: "m", Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4})
	want := []string{
		"window five-hour utilization=1.01 resets=2026-07-31T17:20:00Z status=rejected",
		"window weekly utilization=0",
		"claim five-hour",
		"overage available",
		"overage charged",
		"organization org",
		"rejection kind=window code=c rule=r feature=f per-model until=2026-07-31T17:20:00Z",
		"spent five-hour resets=2026-07-31T17:20:00Z",
		"spent weekly family=opus",
		"usage model=m input=1 read=2 write=3 output=4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := capture.Describe(account.Reading{}, account.Rejection{}, provider.Usage{}); !slices.Equal(got, []string{"nothing"}) {
		t.Errorf("of nothing: got %q, want nothing", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(working))
	f.Add([]byte("expect: a\n\nHTTP/2 200\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := capture.Parse(text)
		if err != nil {
			return
		}
		if len(c.Expect) == 0 || c.Recorded.IsZero() || c.Kind == "" || c.Status < 100 {
			t.Errorf("parsed %q without what every capture has", text)
		}
		if !strings.HasSuffix(string(text), string(c.Body)) && !strings.Contains(string(text), "body: hex") {
			t.Errorf("the body of %q is %q", text, c.Body)
		}
	})
}
