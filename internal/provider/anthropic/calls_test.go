package anthropic_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/test/capture"
)

const (
	claudeCodeID = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"
	antID        = "41077d10-94b8-4194-be48-d251e9eb21b4"
)

func held(client string, scopes ...string) credential.Credential {
	return credential.Credential{
		Access: credential.NewSecret("held-access"), Refresh: credential.NewSecret("held-refresh"), ClientID: client, Scopes: scopes,
		IssuedAt: t0.Add(-4 * time.Hour), ExpiresAt: t0.Add(4 * time.Hour), Principal: "somebody", Generation: 7,
	}
}

func TestRenewal(t *testing.T) {
	p := anthropic.Provider{}
	for _, c := range []struct{ name, client, url, named string }{
		{"Claude Code's", claudeCodeID, "https://platform.claude.com/v1/oauth/token", claudeCodeID},
		{"the ant command's", antID, "https://api.anthropic.com/v1/oauth/token", antID},
		{"of an unknown client", "", "https://platform.claude.com/v1/oauth/token", claudeCodeID},
	} {
		got, ok := p.Renewal(held(c.client))
		want := provider.Call{
			Method: "POST", URL: c.url,
			Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Anthropic-Beta": {"oauth-2025-04-20"}},
			Body:   []byte(`{"grant_type":"refresh_token","refresh_token":"held-refresh","client_id":"` + c.named + `"}`),
		}
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: %t (-want +got):\n%s", c.name, ok, diff)
		}
	}
	without := held(claudeCodeID)
	without.Refresh = credential.Secret{}
	for name, c := range map[string]credential.Credential{"a key": {Key: credential.NewSecret("key")}, "no refresh token": without} {
		if call, ok := p.Renewal(c); ok {
			t.Errorf("%s: got a call to %s, want none", name, call.URL)
		}
	}
}

func TestRenewed(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // in the words of a capture
	}{
		{"no new refresh token", 200, `{"access_token":"a","expires_in":3600}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z expires=2027-03-04T11:00:00Z scopes=old"},
		{"an empty refresh token", 200, `{"access_token":"a","refresh_token":"","expires_in":3600,"scope":""}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z expires=2027-03-04T11:00:00Z scopes=old"},
		{"a refresh token of null", 200, `{"access_token":"a","refresh_token":null,"expires_in":"3600"}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z expires=2027-03-04T11:00:00Z scopes=old"},
		{"no life told", 200, `{"access_token":"a","refresh_token":"r"}`, "renewed access=new refresh=new issued=2027-03-04T10:00:00Z scopes=old"},
		{"a life of nothing", 200, `{"access_token":"a","expires_in":0}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z scopes=old"},
		{"a life that is not a number", 200, `{"access_token":"a","expires_in":"NaN"}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z scopes=old"},
		{"a life beyond any", 200, `{"access_token":"a","expires_in":9223372037}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z expires=2028-03-04T10:00:00Z scopes=old"},
		{"other members of other types", 200, `{"access_token":"a","expires_in":3600,"scope":["x"],"account":"?","organization":5}`, "renewed access=new refresh=old issued=2027-03-04T10:00:00Z expires=2027-03-04T11:00:00Z scopes=old"},

		{"cut", 200, `{"access_token":"a","refresh_to`, "lost"},
		{"empty", 200, ``, "lost"},
		{"a web page", 200, `<html></html>`, "lost"},
		{"no access token", 200, `{"refresh_token":"r","expires_in":3600}`, "lost"},
		{"an access token of another type", 200, `{"access_token":{"x":1}}`, "lost"},
		{"a token that no header can carry", 200, `{"access_token":"a\r\nX-Evil: 1"}`, "lost"},
		{"no content", 204, ``, "lost"},
		{"a refusal under 200", 200, `{"error":"invalid_grant"}`, "lost"},

		{"invalid_grant", 400, `{"error":"invalid_grant","error_description":"Refresh token not found or invalid"}`, "final"},
		{"invalid_grant within", 400, `{"type":"error","error":{"type":"invalid_grant","message":"x"}}`, "final"},
		{"401", 401, `{"error":"anything"}`, "final"},
		{"403", 403, `{"type":"error","error":{"type":"permission_error"}}`, "final"},

		{"another 400", 400, `{"error":"invalid_request"}`, "transient"},
		{"the words of the description alone", 400, `{"error":"temporarily_unavailable","error_description":"invalid_grant"}`, "transient"},
		{"401 of something in between", 401, `<html>proxy login</html>`, "transient"},
		{"403 of something in between", 403, "<!DOCTYPE html><title>Just a moment...</title>", "transient"},
		{"403 without a word", 403, "", "transient"},
		{"429", 429, `{"error":{"type":"rate_limit_error"}}`, "transient"},
		{"429 with a word that is final elsewhere", 429, `{"error":"invalid_grant"}`, "transient"},
		{"500", 500, `{"error":"invalid_grant"}`, "transient"},
		{"529", 529, `overloaded`, "transient"},
		{"a redirect", 302, ``, "transient"},
		{"404", 404, `{"error":"not_found"}`, "transient"},
	} {
		got := capture.OfCall(anthropic.Provider{}, capture.Capture{Call: "renewal", Status: c.status, Header: http.Header{}, Body: []byte(c.body), Recorded: t0})
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// Everything that an answer leaves out is kept.
func TestRenewedKeeps(t *testing.T) {
	old := held(antID, "user:inference", "user:profile")
	got, err := anthropic.Provider{}.Renewed(old, provider.Reply{Status: 200, Body: []byte(`{"access_token":"next","expires_in":28800}`), At: t0})
	if err != nil {
		t.Fatal(err)
	}
	want := old
	want.Access, want.IssuedAt, want.ExpiresAt, want.Generation = credential.NewSecret("next"), t0, t0.Add(8*time.Hour), 8
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b credential.Secret) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No error repeats what an answer or a login holds: servers quote what they were sent.
func TestCallErrorsAreSilent(t *testing.T) {
	p := anthropic.Provider{}
	for _, body := range []string{
		`{"error":"held-refresh","error_description":"held-refresh"}`, `{"error":{"type":"held-refresh","code":"held-refresh","message":"held-refresh"}}`,
		`held-refresh`, `{"code":"sk-ant-held-refresh`, `<html>held-refresh`, `{"access_token":5,"refresh_token":"held-refresh"}`,
	} {
		for _, status := range []int{200, 204, 400, 401, 403, 429, 500} {
			r := provider.Reply{Status: status, Header: http.Header{"X-Token": {"held-refresh"}}, Body: []byte(body), At: t0}
			if _, err := p.Renewed(held(claudeCodeID), r); err == nil || strings.Contains(err.Error(), "held") {
				t.Errorf("renewal, status %d, %s: got %v", status, body, err)
			}
			if _, err := p.Looked(0, r); err == nil || strings.Contains(err.Error(), "held") {
				t.Errorf("look, status %d, %s: got %v", status, body, err)
			}
		}
	}
}

func TestLooks(t *testing.T) {
	p := anthropic.Provider{}
	calls := p.Looks(account.Subscription, held(claudeCodeID, "user:inference", "user:profile"))
	want := []provider.Call{{Method: "GET", URL: "https://api.anthropic.com/api/oauth/usage", Header: http.Header{
		"Authorization": {"Bearer held-access"}, "Anthropic-Beta": {"oauth-2025-04-20"}, "Anthropic-Version": {"2023-06-01"},
		"Accept": {"application/json"}, "Content-Type": {"application/json"},
	}}}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := p.Looks(account.Subscription, held(claudeCodeID)); len(got) != 1 {
		t.Errorf("scopes unknown: got %d looks, want 1", len(got))
	}
	if got := p.Looks(account.Subscription, held(claudeCodeID, "user:inference")); got != nil {
		t.Errorf("a login for inference alone: got %d looks, want none", len(got))
	}
	if got := p.Looks(account.Key, credential.Credential{Key: credential.NewSecret("key")}); got != nil {
		t.Errorf("a key: got %d looks, want none", len(got))
	}
}

func TestLooked(t *testing.T) {
	const (
		five = `"five_hour":{"utilization":9.0,"resets_at":"2027-03-04T14:00:00Z"}`
		week = `"seven_day":{"utilization":41,"resets_at":"2027-03-10T10:00:00Z"}`
		w5   = "window five-hour utilization=0.09 resets=2027-03-04T14:00:00Z"
		w7   = "window weekly utilization=0.41 resets=2027-03-10T10:00:00Z"
	)
	scoped := func(percent, model string) string {
		return `"limits":[{"kind":"weekly_scoped","percent":` + percent + `,"resets_at":"2027-03-10T10:00:00Z","scope":{"model":` + model + `}}]`
	}
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"flat", five + `,` + week, []string{w5, w7}},
		{"above full", `"five_hour":{"utilization":108,"resets_at":"2027-03-04T14:00:00Z"}`, []string{"window five-hour utilization=1.08 resets=2027-03-04T14:00:00Z"}},
		{"a window not begun", `"five_hour":{"utilization":0,"resets_at":null},` + week, []string{"window five-hour utilization=0", w7}},
		{"a figure missing", `"five_hour":{"resets_at":"2027-03-04T14:00:00Z"},` + week, []string{"window five-hour resets=2027-03-04T14:00:00Z", w7}},
		{"a figure unreadable", `"five_hour":{"utilization":"much","resets_at":"2027-03-04T14:00:00Z"},` + week, []string{"window five-hour resets=2027-03-04T14:00:00Z", w7}},
		{"a negative figure", `"five_hour":{"utilization":-1,"resets_at":"2027-03-04T14:00:00Z"}`, []string{"window five-hour resets=2027-03-04T14:00:00Z"}},
		{"a reset unreadable", `"five_hour":{"utilization":9,"resets_at":"soon"}`, []string{"window five-hour utilization=0.09"}},
		{"a member of another type", `"five_hour":"full",` + week, []string{w7}},
		{"members not known", five + `,"iguana_necktie":{"utilization":100,"resets_at":"2027-03-10T10:00:00Z"},"seven_day_cowork":{"utilization":100},"seven_day_breakdown":[1],"limit_dollars":5`, []string{w5}},
		{"families, flat", `"seven_day_opus":{"utilization":12},"seven_day_sonnet":{"utilization":2},"seven_day_overage_included":{"utilization":50}`,
			[]string{"window weekly:fable utilization=0.5", "window weekly:opus utilization=0.12", "window weekly:sonnet utilization=0.02"}},
		{"a family by its name", five + `,` + scoped("100", `{"id":null,"display_name":"Fable"}`), []string{w5, "window weekly:fable utilization=1 resets=2027-03-10T10:00:00Z"}},
		{"a family by its long name", scoped("7", `{"display_name":"Claude Opus 5"}`), []string{"window weekly:opus utilization=0.07 resets=2027-03-10T10:00:00Z"}},
		{"a family by its id", scoped("7", `{"id":"claude-sonnet-5","display_name":"?"}`), []string{"window weekly:sonnet utilization=0.07 resets=2027-03-10T10:00:00Z"}},
		{"above full in the list", scoped("102", `{"display_name":"Fable"}`), []string{"window weekly:fable utilization=1.02 resets=2027-03-10T10:00:00Z"}},
		{"a surface, and no model", five + `,"limits":[{"kind":"weekly_scoped","percent":100,"resets_at":"2027-03-10T10:00:00Z","scope":{"model":null,"surface":"web"}}]`, []string{w5}},
		{"the list alone", `"limits":[{"kind":"session","percent":9,"resets_at":"2027-03-04T14:00:00Z"},{"kind":"weekly_all","percent":41,"resets_at":"2027-03-10T10:00:00Z"},{"kind":"new","percent":99},7,null]`, []string{w5, w7}},
		{"told twice, the stricter", `"five_hour":{"utilization":9.0,"resets_at":null},"limits":[{"kind":"session","percent":12,"resets_at":"2027-03-04T14:00:00Z"}]`, []string{"window five-hour utilization=0.12 resets=2027-03-04T14:00:00Z"}},
		{"told twice, once without a figure", `"five_hour":{"utilization":9.0,"resets_at":"2027-03-04T14:00:00Z"},"limits":[{"kind":"session","percent":null}]`, []string{w5}},

		{"extra usage", five + `,"extra_usage":{"is_enabled":true,"monthly_limit":1000,"used_credits":0.0,"utilization":null}`, []string{w5, "overage available"}},
		{"extra usage without a limit", five + `,"extra_usage":{"is_enabled":true,"monthly_limit":null,"used_credits":5}`, []string{w5, "overage available"}},
		{"extra usage, used up", five + `,"extra_usage":{"is_enabled":true,"monthly_limit":1000,"used_credits":1000}`, []string{w5}},
		{"extra usage, used up by its percent", five + `,"extra_usage":{"is_enabled":true,"utilization":100}`, []string{w5}},
		{"extra usage, off", five + `,"extra_usage":{"is_enabled":false,"monthly_limit":1000,"used_credits":0}`, []string{w5}},
		{"extra usage, on and refused", five + `,"extra_usage":{"is_enabled":true,"disabled_reason":"out_of_credits"}`, []string{w5}},
		{"extra usage of another type", five + `,"extra_usage":"yes"`, []string{w5}},

		{"nothing", ``, []string{"unread"}},
		{"null alone", `"five_hour":null,"seven_day":null,"limits":[]`, []string{"unread"}},
		{"an error under 200", `"error":{"type":"api_error"}`, []string{"unread"}},
	} {
		got := capture.OfCall(anthropic.Provider{}, capture.Capture{Call: "look", Status: 200, Header: http.Header{}, Body: []byte("{" + c.body + "}"), Recorded: t0})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Case usage-poll-throttled-or-harmful: a refusal to look blocks nobody, and only a
// refused token leads to a renewal.
func TestLookedRefusals(t *testing.T) {
	p := anthropic.Provider{}
	for _, c := range []struct {
		name    string
		status  int
		body    string
		refused bool
		says    string
	}{
		{"throttled", 429, `{"error":{"type":"rate_limit_error","message":"Rate limited. Please try again later."}}`, false, "429"},
		{"expired", 401, `{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."}}`, true, "401"},
		{"no scope", 403, `{"type":"error","error":{"type":"permission_error","message":"OAuth token does not meet scope requirement user:profile"}}`, false, "403"},
		{"a web page", 403, `<html>`, false, "a web page"},
		{"a web page with 200", 200, ` <!DOCTYPE html>`, false, "a web page"},
		{"not there", 404, `{"type":"error","error":{"type":"not_found_error"}}`, false, "404"},
		{"in trouble", 500, ``, false, "nothing"},
		{"a redirect", 307, ``, false, "307"},
		{"cut", 200, `{"five_hour":{"utilization":9.0`, false, "something else than JSON"},
		{"a list", 200, `[]`, false, "JSON"},
	} {
		r, err := p.Looked(0, provider.Reply{Status: c.status, Header: http.Header{}, Body: []byte(c.body), At: t0})
		if err == nil || errors.Is(err, provider.ErrCredentialRefused) != c.refused || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want refused %t and %q", c.name, err, c.refused, c.says)
		}
		if !r.Empty() || !r.At.IsZero() {
			t.Errorf("%s: got %+v beside an error", c.name, r)
		}
	}
}

func FuzzLooked(f *testing.F) {
	f.Add(`{"five_hour":{"utilization":48.0,"resets_at":"2026-03-02T11:00:00.521744+00:00"},"seven_day_opus":null}`)
	f.Add(`{"limits":[{"kind":"weekly_scoped","percent":1e400,"scope":{"model":{"display_name":"Fable"}}}],"extra_usage":{"is_enabled":true}}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := anthropic.Provider{}.Looked(0, provider.Reply{Status: 200, Body: []byte(body), At: t0})
		if (err == nil) == r.Empty() {
			t.Fatalf("error %v, and %d windows", err, len(r.Windows))
		}
		for i, w := range r.Windows {
			if !(w.Utilization >= 0 && w.Utilization < 1e308) || w.ResetAt.After(t0.AddDate(1, 0, 2)) || w.Name == "" || i > 0 && r.Windows[i-1].Name >= w.Name {
				t.Errorf("got %+v", w)
			}
		}
	})
}

func FuzzRenewed(f *testing.F) {
	f.Add(200, `{"access_token":"a","refresh_token":"r","expires_in":28800}`)
	f.Add(400, `{"error":"invalid_grant"}`)
	f.Add(200, `{"access_token":"a","expires_in":1e300}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		old := held(claudeCodeID)
		got, err := anthropic.Provider{}.Renewed(old, provider.Reply{Status: status, Body: []byte(body), At: t0})
		if err != nil {
			if !got.Access.Empty() || got.Generation != 0 {
				t.Error("a login came beside an error")
			}
			if len(err.Error()) > 400 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if status != 200 && status != 201 || got.Access.Empty() || got.Refresh.Empty() || got.Generation != 8 {
			t.Errorf("status %d renewed into generation %d", status, got.Generation)
		}
		if strings.ContainsFunc(got.Access.Reveal()+got.Refresh.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Error("a token that no header can carry")
		}
		if !got.ExpiresAt.IsZero() && (!got.ExpiresAt.After(t0) || got.ExpiresAt.After(t0.AddDate(1, 0, 2))) {
			t.Errorf("ends at %v", got.ExpiresAt)
		}
	})
}
