package forward

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// hopByHop are the headers that concern one connection (RFC 9110, section 7.6.1), and
// those that older software treats so.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
}

// Credentials are the request headers in which a client may show a secret.
var credentials = []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Auth-Token", "Cookie"}

// scopes are the request headers by which clients say for whom they call, or describe the
// credential that they showed: they belong to that credential, whichever provider they are
// meant for, and a foreign one is refused. The account's own are put in with its credential.
// As the official SDKs of Anthropic, OpenAI and xAI, Claude Code, Codex and the Grok CLI send
// them, on 2026-12-01.
var scopes = []string{
	"Openai-Organization", "Openai-Project", "Chatgpt-Account-Id", "X-Openai-Fedramp", "X-Openai-Account-Routing-Override", "X-Gateway-Auth",
	"Anthropic-Workspace-Id", "Anthropic-Organization-Id",
	"X-Xai-Token-Auth", "X-Userid", "X-Grok-User-Id", "X-Grok-Deployment-Id", "X-Goog-User-Project",
}

// forwarding are headers by which proxies and platforms describe the hop before.
var forwarding = []string{"Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "X-Client-Ip"}

// own are headers that Send sets by itself.
var own = []string{"Accept-Encoding", "Content-Length", "Expect", "Host"}

// dropped are prefixes of request headers that never go upstream.
var dropped = []string{"X-Holdfast-", "X-Forwarded-", "X-Amzn-", "Cf-", "Cdn-"}

// Outgoing builds the headers that go upstream from a client's. No credential is in them, nor
// what belongs to one; the caller puts those in that go out.
func Outgoing(in http.Header) http.Header {
	out := make(http.Header, len(in)+2)
	named := connectionNames(in)
next:
	for k, v := range in {
		if slices.Contains(hopByHop, k) || slices.Contains(credentials, k) || slices.Contains(scopes, k) || slices.Contains(forwarding, k) ||
			slices.Contains(own, k) || slices.Contains(named, k) {
			continue
		}
		for _, p := range dropped {
			if strings.HasPrefix(k, p) {
				continue next
			}
		}
		out[k] = slices.Clip(v)
	}
	// The answer's coding is a matter of each hop; we read along, so we ask for none.
	out["Accept-Encoding"] = identity
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil // keeps the transport from naming itself for the client
	}
	return out
}

var identity = []string{"identity"}

// Returning copies an upstream's headers into the client's answer, without those that
// concern one connection and without cookies, which would belong to our account.
func Returning(dst, in http.Header) {
	named := connectionNames(in)
	for k, v := range in {
		if slices.Contains(hopByHop, k) || slices.Contains(named, k) || k == "Set-Cookie" || strings.HasPrefix(k, "X-Holdfast-") {
			continue
		}
		dst[k] = v
	}
}

// connectionNames returns the headers that a Connection header names as hop-by-hop.
func connectionNames(h http.Header) []string {
	var names []string
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			if name = textproto.TrimString(name); name != "" {
				names = append(names, http.CanonicalHeaderKey(name))
			}
		}
	}
	return names
}
