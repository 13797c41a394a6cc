package command_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pick"
)

// vendor answers in a provider's place: exchanges of refresh tokens, and looks at usage.
type vendor struct {
	url string

	mu sync.Mutex
	// renewals and looks are the answers to come; the last one is given again and again.
	renewals, looks []answer
	// asked is what was asked for, in order: "renew TOKEN" or "look TOKEN".
	asked []string
}

type answer struct {
	status int
	body   string
}

// hangUp ends the connection instead of an answer.
const hangUp = 0

func newVendor(t *testing.T) *vendor {
	t.Helper()
	v := &vendor{}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	v.url = server.URL
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	queue := &v.looks
	if strings.HasSuffix(r.URL.Path, "/token") {
		queue = &v.renewals
		token := string(body)
		for _, between := range []string{`"refresh_token":"`, "refresh_token="} {
			if _, rest, ok := strings.Cut(token, between); ok && !strings.HasPrefix(rest, `,`) {
				token = rest[:strings.IndexAny(rest+"&", `"&`)]
			}
		}
		v.asked = append(v.asked, "renew "+token)
	} else {
		v.asked = append(v.asked, "look "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}
	a := answer{http.StatusNotFound, "{}"}
	if len(*queue) > 0 {
		a = (*queue)[0]
		if len(*queue) > 1 {
			*queue = (*queue)[1:]
		}
	}
	v.mu.Unlock()
	if a.status == hangUp {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

func (v *vendor) took() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.asked)
}

var (
	usage   = answer{200, `{"five_hour":{"utilization":12.0,"resets_at":"2027-03-04T13:00:00Z"},"seven_day":{"utilization":41.0,"resets_at":"2027-03-08T10:00:00Z"}}`}
	granted = answer{200, `{"token_type":"Bearer","access_token":"sk-ant-oat01-EXAMPLE-new","refresh_token":"sk-ant-ort01-EXAMPLE-new","expires_in":28800}`}
	spentFR = answer{400, `{"error":"invalid_grant","error_description":"Refresh token not found or invalid"}`}
	bad401  = answer{401, `{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired. Please obtain a new token or refresh your existing token."}}`}
	busy    = answer{429, `{"type":"error","error":{"type":"rate_limit_error","message":"Rate limited. Please try again later."}}`}
)

// oldLogin is Claude Code's file with a login that ended at t0.
const oldLogin = `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-EXAMPLE-old","refreshToken":"sk-ant-ort01-EXAMPLE-old","expiresAt":1804154400000,"subscriptionType":"max"}}`

// goodLogin lasts two hours more.
const goodLogin = `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-EXAMPLE-old","refreshToken":"sk-ant-ort01-EXAMPLE-old","expiresAt":1804161600000,"subscriptionType":"max"}}`

func TestImportProves(t *testing.T) {
	const renew, look, lookAnew = "renew sk-ant-ort01-EXAMPLE-old", "look sk-ant-oat01-EXAMPLE-old", "look sk-ant-oat01-EXAMPLE-new"
	tests := []struct {
		name, file      string
		renewals, looks []answer
		args            []string
		asked           []string
		// refused holds words of the refusal; empty where the account is added.
		refused string
		// warned holds words of the warning.
		warned string
		// access is the access token that is stored in the end.
		access string
	}{
		{name: "good", file: goodLogin, looks: []answer{usage}, asked: []string{look}, access: "sk-ant-oat01-EXAMPLE-old"},
		{name: "expired", file: oldLogin, renewals: []answer{granted}, looks: []answer{usage}, asked: []string{renew, lookAnew}, access: "sk-ant-oat01-EXAMPLE-new"},
		{name: "ended early", file: goodLogin, renewals: []answer{granted}, looks: []answer{bad401, usage}, asked: []string{look, renew, lookAnew}, access: "sk-ant-oat01-EXAMPLE-new"},
		{name: "unchecked", file: oldLogin, args: []string{"--no-check"}, access: "sk-ant-oat01-EXAMPLE-old"},
		{name: "refresh token refused", file: oldLogin, renewals: []answer{spentFR}, asked: []string{renew}, refused: "refused this login (its refresh token); log in with Claude Code again"},
		{name: "refused, and again when renewed", file: goodLogin, renewals: []answer{granted}, looks: []answer{bad401}, asked: []string{look, renew, lookAnew}, refused: "refused this login (its access token)"},
		{
			name: "refused and not to be renewed", file: `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-EXAMPLE-old","expiresAt":1804161600000}}`,
			looks: []answer{bad401}, asked: []string{look}, refused: "refused this login (its access token)",
		},
		{name: "usage is busy", file: goodLogin, looks: []answer{busy}, asked: []string{look}, warned: "the answer has status 429", access: "sk-ant-oat01-EXAMPLE-old"},
		{name: "an odd answer", file: goodLogin, looks: []answer{{200, "<html>"}}, asked: []string{look}, warned: "a web page", access: "sk-ant-oat01-EXAMPLE-old"},
		{name: "no answer", file: goodLogin, looks: []answer{{status: hangUp}}, asked: []string{look}, warned: "no whole answer came", access: "sk-ant-oat01-EXAMPLE-old"},
		{name: "token endpoint is down", file: oldLogin, renewals: []answer{{503, ""}}, asked: []string{renew}, warned: "status 503", access: "sk-ant-oat01-EXAMPLE-old"},
		{name: "renewed, and then usage is busy", file: oldLogin, renewals: []answer{granted}, looks: []answer{busy}, asked: []string{renew, lookAnew}, warned: "status 429", access: "sk-ant-oat01-EXAMPLE-new"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			v := newVendor(t)
			v.renewals, v.looks = tt.renewals, tt.looks
			file := b.file("login.json", tt.file)
			args := append([]string{"account", "add", "max", "--provider", "anthropic", "--import", file, "--base-url", v.url}, tt.args...)
			r := b.run(args...)
			if !slices.Equal(v.took(), tt.asked) {
				t.Errorf("asked %q, want %q", v.took(), tt.asked)
			}
			if tt.refused != "" {
				if r.code != 1 || !strings.Contains(r.stderr, tt.refused) || !strings.Contains(r.stderr, "nothing was added") {
					t.Errorf("got status %d: %s", r.code, r.stderr)
				}
				if b.order() != "" {
					t.Errorf("accounts %q are there", b.order())
				}
				return
			}
			if r.code != 0 || (tt.warned != "") != strings.Contains(r.stderr, "not known yet") || !strings.Contains(r.stderr, tt.warned) {
				t.Fatalf("got status %d, want a warning with %q:\n%s", r.code, tt.warned, r.stderr)
			}
			if slices.ContainsFunc(tt.looks, func(a answer) bool { return a == usage }) != strings.Contains(r.stderr, "The login is good. Its usage: five-hour 12% for 3h00m, weekly 41% for 4d00h.") {
				t.Errorf("what the look told is not said:\n%s", r.stderr)
			}
			s, vault := b.sealed()
			defer shut(t, s)
			snap, err := s.Snapshot(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := snap.Catalog.Account("max")
			held, _, err := vault.Load(t.Context(), a.ID)
			if err != nil || held.Access.Reveal() != tt.access {
				t.Errorf("the stored access token is the one that ends in %q: %t; %v", tt.access[len(tt.access)-3:], held.Access.Reveal() == tt.access, err)
			}
			if full, _, _ := pick.Fullest(t0, pick.Request{}, snap.States[a.ID].State); (full == account.Weekly) != slices.ContainsFunc(tt.looks, func(a answer) bool { return a == usage }) {
				t.Errorf("the reading of the look is not what is known: fullest %q", full)
			}
		})
	}
}

// A refresh token that was refused is never sent again, though nothing of the account was
// kept.
func TestImportRemembersRefusal(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	v.renewals = []answer{spentFR}
	add := []string{"account", "add", "max", "--provider", "anthropic", "--import", b.file("login.json", oldLogin), "--base-url", v.url}
	if r := b.run(add...); r.code != 1 {
		t.Fatalf("got status %d: %s", r.code, r.stderr)
	}
	before := len(v.took())
	b.refuses(1, "was refused before and is not sent again", add...)
	if got := len(v.took()); got != before {
		t.Errorf("the vendor was asked %d times more", got-before)
	}
}

func TestLoginProves(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	v.looks = []answer{usage}
	b.must("account", "add", "max", "--provider", "anthropic", "--import", b.file("first.json", goodLogin), "--base-url", v.url)
	b.fold("max", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.BadCredential, At: t0, Rule: "unauthorized", Generation: 1}, account.Rules{})
	})
	second := b.file("second.json", strings.ReplaceAll(oldLogin, "EXAMPLE-old", "EXAMPLE-second"))

	v.renewals = []answer{spentFR}
	r := b.run("account", "login", "max", "--import", second)
	if r.code != 1 || !strings.Contains(r.stderr, "account max keeps the credential that it has") {
		t.Errorf("refused: got status %d: %s", r.code, r.stderr)
	}
	if s := b.state("max"); s.Parked == nil || s.Generation != 0 {
		t.Errorf("a refused login changed the account: %+v", s.State)
	}

	third := b.file("third.json", strings.ReplaceAll(oldLogin, "EXAMPLE-old", "EXAMPLE-third"))
	v.renewals = []answer{granted}
	if r := b.must("account", "login", "max", "--import", third); !strings.Contains(r.stderr, "has a new credential") || strings.Contains(r.stderr, "not known yet") {
		t.Errorf("got %s", r.stderr)
	}
	if s := b.state("max"); s.Parked != nil || s.Generation != 2 {
		t.Errorf("after a good login: parked %v, generation %d; want it free at 2", s.Parked, s.Generation)
	}
	st, vault := b.sealed()
	defer shut(t, st)
	snap, err := st.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := snap.Catalog.Account("max")
	held, _, err := vault.Load(t.Context(), a.ID)
	if err != nil || held.Access.Reveal() != "sk-ant-oat01-EXAMPLE-new" || held.Generation != 2 {
		t.Errorf("stored: the renewed token: %t, generation %d, %v", held.Access.Reveal() == "sk-ant-oat01-EXAMPLE-new", held.Generation, err)
	}
	renewals, err := st.Renewals(t.Context(), []account.ID{a.ID})
	if err != nil || !renewals[a.ID].RenewedAt.Equal(t0) || renewals[a.ID].Failures != 0 {
		t.Errorf("renewal: got %+v, %v", renewals[a.ID], err)
	}
}

// A renewal whose answer was lost goes on, with the account's next use, from where it was:
// the token may be spent, and is not sent as if it were new.
func TestLoginKeepsLostAnswer(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	v.looks = []answer{usage}
	b.must("account", "add", "max", "--provider", "anthropic", "--import", b.file("first.json", goodLogin), "--base-url", v.url)
	v.renewals = []answer{{status: hangUp}}
	second := b.file("second.json", strings.ReplaceAll(oldLogin, "EXAMPLE-old", "EXAMPLE-second"))
	if r := b.must("account", "login", "max", "--import", second); !strings.Contains(r.stderr, "not known yet") {
		t.Errorf("got %s", r.stderr)
	}
	s := b.open()
	defer shut(t, s)
	snap, err := s.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := snap.Catalog.Account("max")
	renewals, err := s.Renewals(t.Context(), []account.ID{a.ID})
	if mark := renewals[a.ID].Spending; err != nil || mark == nil || !mark.Lost || mark.Generation != 2 || mark.By != "" {
		t.Errorf("the mark: got %+v, %v", mark, err)
	}
}

// The file that an account's login came from holds a refresh token that is spent once the
// login was renewed: sent again, it would end the login that the account has.
func TestLoginOfTheSameFile(t *testing.T) {
	for name, tt := range map[string]struct{ file, want string }{
		"renewed since":   {oldLogin, "was given this login before and has renewed it since"},
		"not renewed yet": {goodLogin, "has this very login already"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			v := newVendor(t)
			v.renewals, v.looks = []answer{granted, spentFR}, []answer{usage}
			file := b.file("login.json", tt.file)
			b.must("account", "add", "max", "--provider", "anthropic", "--import", file, "--base-url", v.url)
			asked := len(v.took())
			for _, more := range []string{"--no-check", "--other-principal", ""} {
				b.refuses(1, tt.want, append([]string{"account", "login", "max", "--import", file}, strings.Fields(more)...)...)
			}
			if got := v.took(); len(got) != asked {
				t.Errorf("asked %q, want nothing", got[asked:])
			}
			st, vault := b.sealed()
			defer shut(t, st)
			snap, err := st.Snapshot(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := snap.Catalog.Account("max")
			if held, _, err := vault.Load(t.Context(), a.ID); err != nil || held.Generation != int64(1+min(asked-1, 1)) {
				t.Errorf("stored: generation %d, %v; want the login untouched", held.Generation, err)
			}
		})
	}
}
