package xai_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/xai"
	"holdfast/internal/test/capture"
)

const (
	grokID = "b1a00492-073a-47ea-816f-4c329264a828"
	person = "00000000-0000-4000-8000-000000000003"
	team   = "00000000-0000-4000-8000-000000000002"
)

// jwt makes a token of claims that are written as JSON.
func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"none"}`)) + "." + part([]byte(claims)) + ".signature"
}

func held(access, principal string) credential.Credential {
	return credential.Credential{
		Access: credential.NewSecret(access), Refresh: credential.NewSecret("held/refresh+1"), ClientID: grokID, Principal: principal,
		IssuedAt: t0.Add(-4 * time.Hour), ExpiresAt: t0.Add(2 * time.Hour), Generation: 7,
	}
}

func TestRenewal(t *testing.T) {
	for _, c := range []struct {
		name, principal string
		want            url.Values
	}{
		{"a person's", "User/" + person, url.Values{}},
		{"a team's", "Team/" + team, url.Values{"principal_type": {"Team"}, "principal_id": {team}}},
		{"nobody's that is known", "", url.Values{}},
	} {
		got, ok := xai.Provider{}.Renewal(held("held-access", c.principal))
		form, err := url.ParseQuery(string(got.Body))
		if !ok || err != nil || got.Method != "POST" || got.URL != "https://auth.x.ai/oauth2/token" {
			t.Fatalf("%s: got %t %s %s (%v)", c.name, ok, got.Method, got.URL, err)
		}
		c.want.Set("grant_type", "refresh_token")
		c.want.Set("refresh_token", "held/refresh+1")
		c.want.Set("client_id", grokID)
		if diff := cmp.Diff(c.want, form); diff != "" {
			t.Errorf("%s: form (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}, got.Header); diff != "" {
			t.Errorf("%s: header (-want +got):\n%s", c.name, diff)
		}
	}
	for name, c := range map[string]credential.Credential{"a key": {Key: credential.NewSecret("key")}, "no refresh token": {Access: credential.NewSecret("access")}} {
		if call, ok := (xai.Provider{}).Renewal(c); ok {
			t.Errorf("%s: got a call to %s, want none", name, call.URL)
		}
	}
}

func TestRenewed(t *testing.T) {
	const six = "issued=2027-03-04T10:00:00Z expires=2027-03-04T16:00:00Z scopes=old"
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // in the words of a capture
	}{
		{"its life by expires_in", 200, `{"access_token":"opaque","refresh_token":"r","expires_in":21600}`, "renewed access=new refresh=new " + six},
		{"its life by its claims", 200, `{"access_token":"` + jwt(`{"iat":1804154400,"exp":1804176000}`) + `"}`, "renewed access=new refresh=old " + six},
		{"its claims before expires_in", 200, `{"access_token":"` + jwt(`{"exp":1804176000}`) + `","expires_in":2592000}`, "renewed access=new refresh=old " + six},
		{"no life told", 200, `{"access_token":"opaque"}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z scopes=old"},

		{"no access token", 200, `{"refresh_token":"r"}`, "lost"},
		{"cut", 200, `{"access_token":"a"`, "lost"},
		{"a web page", 200, `<html>`, "lost"},

		{"invalid_grant", 400, `{"error":"invalid_grant"}`, "final"},
		{"invalid_client", 401, `{"error":"invalid_client"}`, "final"},
		{"invalid_grant under 403", 403, `{"error":"invalid_grant"}`, "final"},

		{"403", 403, `{"error":"access_denied"}`, "not-entitled"},
		{"403 of something in between", 403, `<!DOCTYPE html>`, "transient"},

		{"another 400", 400, `{"error":"invalid_request"}`, "transient"},
		{"401 without a word", 401, `{}`, "transient"},
		{"429", 429, `{"error":"slow_down"}`, "transient"},
		{"500 with a final word", 500, `{"error":"invalid_grant"}`, "transient"},
	} {
		got := capture.OfCall(xai.Provider{}, capture.Capture{Call: "renewal", Status: c.status, Header: http.Header{}, Body: []byte(c.body), Recorded: t0})
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCallErrorsAreSilent(t *testing.T) {
	p := xai.Provider{}
	for _, body := range []string{
		`{"error":"held-refresh","code":"held-refresh"}`, `{"error":{"code":"held-refresh"}}`, `held-refresh`, `<html>held-refresh`, `{"id_token":"held-refresh"}`,
	} {
		for _, status := range []int{200, 400, 401, 403, 429, 500} {
			r := provider.Reply{Status: status, Header: http.Header{"Grpc-Status": {"7"}, "Grpc-Message": {"held-refresh bad-credentials"}}, Body: []byte(body), At: t0}
			if _, err := p.Renewed(held("held-access", ""), r); err == nil || strings.Contains(err.Error(), "held") {
				t.Errorf("renewal, status %d, %s: got %v", status, body, err)
			}
			for n := range 2 {
				if _, err := p.Looked(n, r); err == nil || strings.Contains(err.Error(), "held") {
					t.Errorf("look %d, status %d, %s: got %v", n, status, body, err)
				}
			}
		}
	}
}

// The calls carry the credential's own headers and the protocol's, and nothing by which
// the Grok CLI or a browser would be known.
func TestLooks(t *testing.T) {
	access := jwt(`{"sub":"` + person + `"}`)
	rest := func(access, user string) provider.Call {
		h := http.Header{"Authorization": {"Bearer " + access}, "X-Xai-Token-Auth": {"xai-grok-cli"}, "Accept": {"application/json"}}
		if user != "" {
			h.Set("X-Userid", user)
		}
		return provider.Call{Method: "GET", URL: "https://cli-chat-proxy.grok.com/v1/billing?format=credits", Header: h}
	}
	web := func(access string) provider.Call {
		return provider.Call{
			Method: "POST", URL: "https://grok.com/grok_api_v2.GrokBuildBilling/GetGrokCreditsConfig",
			Header: http.Header{"Authorization": {"Bearer " + access}, "Accept": {"*/*"}, "Content-Type": {"application/grpc-web+proto"}, "X-Grpc-Web": {"1"}},
			Body:   []byte{0, 0, 0, 0, 0},
		}
	}
	for _, c := range []struct {
		name, access, principal string
		want                    []provider.Call
	}{
		{"a person's", access, "User/somebody", []provider.Call{rest(access, person), web(access)}},
		{"a person's, with a token that says nothing", "opaque", "User/" + person, []provider.Call{rest("opaque", person), web("opaque")}},
		{"of nobody that is known", "opaque", "", []provider.Call{rest("opaque", ""), web("opaque")}},
		{"a team's", "opaque", "Team/" + team, []provider.Call{rest("opaque", team)}},
	} {
		if diff := cmp.Diff(c.want, xai.Provider{}.Looks(account.Subscription, held(c.access, c.principal))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if got := (xai.Provider{}).Looks(account.Key, credential.Credential{Key: credential.NewSecret("key")}); got != nil {
		t.Errorf("a key: got %d looks, want none", len(got))
	}
}

func TestLookedRefusals(t *testing.T) {
	zero := func(status, message string) http.Header {
		return http.Header{"Grpc-Status": {status}, "Grpc-Message": {message}}
	}
	for _, c := range []struct {
		name    string
		n       int
		status  int
		header  http.Header
		body    string
		refused bool
		says    string
	}{
		{"expired", 0, 401, nil, `{"error":"Invalid or expired credentials (auth_kind=bearer)"}`, true, "401"},
		{"expired, as 403", 0, 403, nil, `{"code":"unauthenticated:bad-credentials","error":"x"}`, true, "403"},
		{"forbidden", 0, 403, nil, `{"code":"permission-denied","error":"x"}`, false, "403"},
		{"a version is asked for", 0, 426, nil, `{"error":"outdated"}`, false, "426"},
		{"a web page", 0, 200, nil, `<html>`, false, "a web page"},
		{"not there", 0, 404, nil, ``, false, "404"},
		{"no reset", 0, 200, nil, `{"config":{"creditUsagePercent":4}}`, false, "no reset"},
		{"the older shape", 0, 200, nil, `{"config":{"monthlyLimit":{"val":0},"used":{"val":14}}}`, false, "monthly limit"},

		{"gRPC: no credentials", 1, 200, zero("16", "No%20credentials%20presented."), "", false, "grpc status 16"},
		{"gRPC: bad credentials", 1, 200, zero("7", "bad-credentials"), "", true, "grpc status 7"},
		{"gRPC: bad credentials, well known", 1, 200, zero("7", "x%20%5BWKE%3Dunauthenticated%3Abad-credentials%5D"), "", true, "grpc status 7"},
		{"gRPC: no credentials, in the words of bad ones", 1, 200, zero("16", "bad-credentials"), "", false, "grpc status 16"},
		{"gRPC: not allowed", 1, 200, zero("7", "no"), "", false, "grpc status 7"},
		{"gRPC: a team", 1, 200, zero("9", "No%20personal%20team"), "", false, "grpc status 9"},
		{"gRPC: later", 1, 200, zero("4", ""), "", false, "grpc status 4"},
		{"gRPC: in a trailer", 1, 200, nil, string(frame(0x80, []byte("grpc-status: 7\r\ngrpc-message: bad-credentials\r\n"))), true, "grpc status 7"},
		{"gRPC: nothing", 1, 200, nil, "", false, "no message"},
		{"gRPC: a broken frame", 1, 200, nil, "\x00\x00\x00\x00\x41\x0a", false, "cut off"},
		{"gRPC: a web page", 1, 200, nil, "<html>", false, "a web page"},
		{"gRPC: 401 says nothing of the token", 1, 401, nil, "", false, "401"},
	} {
		h := c.header
		if h == nil {
			h = http.Header{}
		}
		r, err := xai.Provider{}.Looked(c.n, provider.Reply{Status: c.status, Header: h, Body: []byte(c.body), At: t0})
		if err == nil || errors.Is(err, provider.ErrCredentialRefused) != c.refused || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want refused %t and %q", c.name, err, c.refused, c.says)
		}
		if !r.Empty() || !r.At.IsZero() {
			t.Errorf("%s: got %+v beside an error", c.name, r)
		}
	}
}

func FuzzRenewed(f *testing.F) {
	f.Add(200, `{"access_token":"a.b.c","refresh_token":"r","expires_in":21600}`)
	f.Add(403, `{"error":"access_denied"}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		got, err := xai.Provider{}.Renewed(held("held-access", ""), provider.Reply{Status: status, Body: []byte(body), At: t0})
		switch {
		case err != nil && (!got.Access.Empty() || got.Generation != 0):
			t.Error("a login came beside an error")
		case err == nil && (got.Access.Empty() || got.Refresh.Empty() || got.Generation != 8):
			t.Errorf("renewed into generation %d", got.Generation)
		}
	})
}
