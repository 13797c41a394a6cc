package forward_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/transport/forward"
)

func TestOutgoing(t *testing.T) {
	in := http.Header{
		"Authorization": {"Bearer client"}, "X-Api-Key": {"client"}, "Api-Key": {"client"}, "Proxy-Authorization": {"Basic x"}, "Cookie": {"a=b"},
		"X-Holdfast-Conversation": {"c"}, "X-Holdfast-Priority": {"background"},
		"Forwarded": {"for=1"}, "Via": {"1.1 x"}, "X-Forwarded-For": {"1"}, "X-Forwarded-Proto": {"https"}, "X-Real-Ip": {"1"}, "X-Amzn-Trace-Id": {"r"}, "Cf-Connecting-Ip": {"1"}, "True-Client-Ip": {"1"}, "X-Auth-Token": {"client"}, "Http2-Settings": {"x"},
		"Connection": {"close, X-Hop, Anthropic-Beta-Not"}, "X-Hop": {"1"}, "Keep-Alive": {"1"}, "Te": {"trailers"}, "Transfer-Encoding": {"chunked"}, "Upgrade": {"h2c"},
		"Openai-Organization": {"org-client"}, "Openai-Project": {"proj_client"}, "Chatgpt-Account-Id": {"client"}, "X-Openai-Fedramp": {"true"}, "Anthropic-Workspace-Id": {"wrkspc_client"}, "X-Userid": {"client"}, "X-Xai-Token-Auth": {"xai-grok-cli"},
		"Accept-Encoding": {"gzip, br"}, "Content-Length": {"7"}, "Expect": {"100-continue"},
		"Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"a,b", "c"}, "User-Agent": {"claude-cli/2"}, "Content-Encoding": {"zstd"},
		"X-Claude-Code-Session-Id": {"s"}, "Content-Type": {"application/json"},
	}
	want := http.Header{
		"Accept-Encoding":   {"identity"},
		"Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"a,b", "c"}, "User-Agent": {"claude-cli/2"}, "Content-Encoding": {"zstd"},
		"X-Claude-Code-Session-Id": {"s"}, "Content-Type": {"application/json"},
	}
	if diff := cmp.Diff(want, forward.Outgoing(in)); diff != "" {
		t.Errorf("want(-) got(+):\n%s", diff)
	}
}

// The transport would otherwise name itself where the client named nothing.
func TestOutgoingInventsNoUserAgent(t *testing.T) {
	v, ok := forward.Outgoing(http.Header{})["User-Agent"]
	if !ok || len(v) != 0 {
		t.Errorf("got %v, %v, want an empty entry", v, ok)
	}
}

// A credential that is put in afterwards must not end up in the client's own headers,
// which another attempt is built from.
func TestOutgoingSharesNothingThatIsAppendedTo(t *testing.T) {
	in := http.Header{"Anthropic-Beta": append(make([]string, 0, 4), "a")}
	out := forward.Outgoing(in)
	out["Anthropic-Beta"] = append(out["Anthropic-Beta"], "oauth")
	out.Set("X-Api-Key", "account")
	if got := in["Anthropic-Beta"][:cap(in["Anthropic-Beta"])]; got[1] != "" {
		t.Errorf("got %q in the client's header", got[1])
	}
	if in.Get("X-Api-Key") != "" {
		t.Error("got the account's key in the client's headers")
	}
}

func TestReturning(t *testing.T) {
	dst := http.Header{}
	forward.Returning(dst, http.Header{
		"Content-Type": {"text/event-stream"}, "Anthropic-Ratelimit-Unified-Status": {"allowed"}, "Request-Id": {"req_1"}, "Retry-After": {"3"},
		"Set-Cookie": {"a=b"}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "Transfer-Encoding": {"chunked"}, "Keep-Alive": {"1"},
		"X-Holdfast-Account": {"forged"}, "Content-Length": {"12"}, "Content-Encoding": {"gzip"},
	})
	want := http.Header{
		"Content-Type": {"text/event-stream"}, "Anthropic-Ratelimit-Unified-Status": {"allowed"}, "Request-Id": {"req_1"}, "Retry-After": {"3"},
		"Content-Length": {"12"}, "Content-Encoding": {"gzip"},
	}
	if diff := cmp.Diff(want, dst); diff != "" {
		t.Errorf("want(-) got(+):\n%s", diff)
	}
}
