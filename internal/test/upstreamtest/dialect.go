package upstreamtest

import (
	"fmt"
	"net/http"
	"strings"

	"holdfast/internal/simulate"
)

// dialect is what differs between the providers that an upstream can stand for.
type dialect struct {
	// scripted reports whether the request is one that the account's scripts answer.
	scripted func(*Request) bool
	// good is what an account answers before it is told otherwise.
	good Script
	// aside answers a known account's other requests; nil means that there is no such path.
	aside func(*Request) Script
	// probe answers those without a credential; nil means that the dialect has no probe.
	probe func(*Request) Script
	// unknown refuses a credential that is not known, nowhere a path that does not exist.
	unknown, nowhere Script
	// token is the path of the token endpoint; refresh reads the refresh token out of a
	// request to it; granted and reused answer.
	token   string
	refresh func(*Request) string
	granted func(Grant) Script
	reused  Script
}

// anthropic is the dialect of Start.
func anthropic() dialect {
	return dialect{
		scripted: func(r *Request) bool { return inference[r.Path] && r.Method == http.MethodPost },
		good:     Good(nil),
		aside: func(r *Request) Script {
			switch {
			case r.Path == "/v1/messages/count_tokens" && r.Method == http.MethodPost:
				return Raw(http.StatusOK, jsonType(), []byte(`{"input_tokens":12000}`))
			case r.Path == "/v1/models" && r.Method == http.MethodGet:
				return Raw(http.StatusOK, jsonType(), []byte(`{"data":[{"type":"model","id":"claude-opus-5",`+
					`"display_name":"Claude Opus 5","created_at":"2026-06-01T00:00:00Z"}],"has_more":false,`+
					`"first_id":"claude-opus-5","last_id":"claude-opus-5"}`))
			}
			return nil
		},
		probe: func(r *Request) Script {
			if (r.Path == "/" || r.Path == "/api/hello") && r.Method == http.MethodHead {
				return Raw(http.StatusOK, nil, nil)
			}
			return nil
		},
		unknown: Refusal("invalid-key"),
		nowhere: Failed(http.StatusNotFound, simulate.Failure{Type: "not_found_error", Message: "Not found"}),
		token:   "/v1/oauth/token",
		refresh: jsonRefresh,
		granted: func(g Grant) Script {
			return Raw(http.StatusOK, jsonType(), fmt.Appendf(nil, `{"token_type":"Bearer","access_token":%q,"refresh_token":%q,"expires_in":%d,`+
				`"scope":"user:inference user:profile"}`, g.Access, g.Refresh, g.seconds()))
		},
		reused: Raw(http.StatusBadRequest, jsonType(), []byte(`{"error":"invalid_grant","error_description":"Refresh token not found or invalid"}`)),
	}
}

// foreign marks reasoning by the account that made it.
const foreign = "enc-made-by-"

// encrypted is reasoning that only the request's account can read, for who asks for it.
func encrypted(r *Request) string {
	if !strings.Contains(string(r.Plain()), "reasoning.encrypted_content") || r.Account == "" {
		return ""
	}
	return fmt.Sprintf("%s%s-%06d", foreign, r.Account, r.Number)
}

// carriesForeign reports whether a request carries reasoning of another account.
func carriesForeign(r *Request) bool {
	parts := strings.Split(string(r.Plain()), foreign)
	for _, rest := range parts[1:] {
		if !strings.HasPrefix(rest, r.Account+"-") {
			return true
		}
	}
	return false
}

// Reply is a good answer of the Responses or the Chat Completions API, by the request's
// path, with the headers given: a stream when the request asks for one, else JSON. Its
// text is Text's. Reasoning of the account's own is in it for who asks for it encrypted.
func Reply(h http.Header) Script {
	return func(r *Request) Answer {
		usage := simulate.Usage{Input: 176, CacheRead: 1024, Output: 17}
		a := Raw(http.StatusOK, h, nil)(r)
		a.Header.Set("x-request-id", requestID(r))
		var events []simulate.Event
		var whole []byte
		if strings.HasSuffix(r.Path, "/chat/completions") {
			c := simulate.Completion{
				ID: fmt.Sprintf("chatcmpl_test_%06d", r.Number), Model: r.Model, CreatedAt: r.At.Unix(), Text: Text(r), Usage: usage,
			}
			events, whole = c.Events(strings.Contains(string(r.Plain()), `"include_usage":true`)), c.JSON()
		} else {
			c := simulate.Response{
				ID: fmt.Sprintf("resp_test_%06d", r.Number), Model: r.Model, CreatedAt: r.At.Unix(), Encrypted: encrypted(r), Text: Text(r), Usage: usage,
			}
			events, whole = c.Events(), c.JSON()
		}
		if !r.Stream {
			a.Header.Set("Content-Type", "application/json")
			a.Parts = []Part{{Data: whole}}
			return a
		}
		a.Header.Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range events {
			a.Parts = append(a.Parts, Part{Data: e.Bytes()})
		}
		return a
	}
}

// unlessForeign answers as the script does, except to a request that carries reasoning of
// another account, which the refusal answers.
func (s Script) unlessForeign(refusal Script) Script {
	return func(r *Request) Answer {
		if carriesForeign(r) {
			return refusal(r)
		}
		return s(r)
	}
}
