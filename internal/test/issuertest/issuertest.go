// Package issuertest is a token issuer for tests: it exchanges refresh tokens as the
// providers' token endpoints do, and counts every one that it is sent.
//
// A refresh token does once: an exchange gives a new access token and a new refresh token.
// A token that comes a second time revokes its whole family, the newest tokens included,
// or, within Grace of its exchange, gets the same new tokens again. Exchanges can be held
// back after the issuer acted, cut in the middle of the answer, dropped, or refused with
// any status before it acts.
//
// It answers at the paths and in the shapes of Anthropic (JSON, /v1/oauth/token), OpenAI
// (JSON, /oauth/token, whose access tokens say by themselves when they end) and xAI (form,
// /oauth2/token), and refuses what is not asked in that shape. It proves nothing about the
// providers beyond that, issues tokens that are good nowhere, and logs nobody in by itself:
// Login begins a family.
package issuertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/core/credential"
)

// ClientID is the OAuth client that every login here was made with.
const ClientID = "client-EXAMPLE"

// Options are how an issuer behaves. The zero value is the strictest.
type Options struct {
	// Grace is how long after its exchange a spent token still gets the same new tokens.
	Grace time.Duration
	// Life is that of an access token; 0 stands for 8 h.
	Life time.Duration
	// KeepRefresh: refresh tokens do not rotate, and answers have none.
	KeepRefresh bool
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

// Fault is what happens to one exchange.
type Fault struct {
	// Status is answered, with Body, before the issuer acts; 0 for none.
	Status int
	Body   string
	// Hold keeps the answer back, after the issuer acted, until it is closed. Holding is
	// closed when it is kept back. Nil for none.
	Hold, Holding chan struct{}
	// Cut ends the connection after the issuer acted, in the middle of the answer's body;
	// Drop before the answer.
	Cut, Drop bool
}

// Issuer is running.
type Issuer struct {
	URL string

	options Options
	server  *httptest.Server

	mu       sync.Mutex
	families int
	tokens   map[string]*token
	access   map[string]*family
	faults   []Fault
	counts   Counts
}

// Counts are what an issuer saw.
type Counts struct {
	// Requests that asked for an exchange. Exchanges gave new tokens; Repeats gave the same
	// ones again, within the grace.
	Requests, Exchanges, Repeats int
	// Reuses are spent tokens that came again outside of it, Revoked the families that it cost.
	Reuses, Revoked int
	// RefusedAgain are tokens that came though they had been refused for good before.
	RefusedAgain int
}

type family struct {
	revoked bool
}

// token is a refresh token.
type token struct {
	family  *family
	spentAt time.Time
	grant   *answer
	refused bool
}

type answer struct {
	access, refresh string
	ends            time.Time
}

// Start runs an issuer until the test ends.
func Start(t testing.TB, o Options) *Issuer {
	t.Helper()
	if o.Life == 0 {
		o.Life = 8 * time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	i := &Issuer{options: o, tokens: map[string]*token{}, access: map[string]*family{}}
	i.server = httptest.NewServer(i)
	i.URL = i.server.URL
	t.Cleanup(i.server.Close)
	return i
}

// Login begins a family: a credential whose access token lives for life from now.
func (i *Issuer) Login(life time.Duration) credential.Credential {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.families++
	f := &family{}
	now := i.options.Now()
	a := i.issue(f, now.Add(life))
	return credential.Credential{
		Access: credential.NewSecret(a.access), Refresh: credential.NewSecret(a.refresh),
		IssuedAt: now.UTC(), ExpiresAt: a.ends.UTC(), ClientID: ClientID, Generation: 1,
	}
}

// issue makes new tokens of a family. Called with the lock held.
func (i *Issuer) issue(f *family, ends time.Time) *answer {
	a := &answer{
		access:  jwt(i.options.Now(), ends, fmt.Sprint(i.families, "-", len(i.access))),
		refresh: fmt.Sprintf("refresh-%d-%d-EXAMPLE", i.families, len(i.tokens)), ends: ends,
	}
	i.access[a.access] = f
	i.tokens[a.refresh] = &token{family: f}
	return a
}

// jwt is an unsigned one: it says when it was issued and when it ends.
func jwt(issued, ends time.Time, id string) string {
	part := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return part(map[string]any{"alg": "none"}) + "." + part(map[string]any{"iat": issued.Unix(), "exp": ends.Unix(), "jti": id}) + ".EXAMPLE"
}

// Next lets faults happen to the next exchanges that are asked for, one each.
func (i *Issuer) Next(faults ...Fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = append(i.faults, faults...)
}

// Counts returns what was seen so far.
func (i *Issuer) Counts() Counts {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.counts
}

// Revoke revokes every login, as the owner or the provider may at any time.
func (i *Issuer) Revoke() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, f := range i.access {
		f.revoked = true
	}
}

// Good reports whether an access token is one of the issuer's, and its family not revoked.
func (i *Issuer) Good(c credential.Credential) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	f := i.access[c.Access.Reveal()]
	return f != nil && !f.revoked
}

// ServeHTTP answers an exchange.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, ok := shapes[r.URL.Path]
	if !ok || r.Method != http.MethodPost {
		http.Error(w, `{"error":"not_found"}`, http.StatusNotFound)
		return
	}
	asked, err := s.parse(r)
	if err != nil || asked.Get("grant_type") != "refresh_token" || asked.Get("client_id") != ClientID {
		write(w, http.StatusBadRequest, []byte(`{"error":"invalid_request"}`))
		return
	}
	i.mu.Lock()
	i.counts.Requests++
	var f Fault
	if len(i.faults) > 0 {
		f, i.faults = i.faults[0], i.faults[1:]
	}
	if f.Status != 0 {
		i.mu.Unlock()
		write(w, f.Status, []byte(f.Body))
		return
	}
	granted, reused := i.exchange(asked.Get("refresh_token"))
	now := i.options.Now()
	i.mu.Unlock()

	status, body := s.refusal(reused)
	if granted != nil {
		status, body = http.StatusOK, s.answer(*granted, now, i.options.KeepRefresh)
	}
	if f.Holding != nil {
		close(f.Holding)
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-r.Context().Done():
		}
	}
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Cut:
		cut(w, status, body)
	default:
		write(w, status, body)
	}
}

// exchange spends a token; nil where it does not do. Called with the lock held.
func (i *Issuer) exchange(text string) (_ *answer, reused bool) {
	t := i.tokens[text]
	now := i.options.Now()
	switch {
	case t == nil:
		return nil, false
	case t.refused:
		i.counts.RefusedAgain++
		return nil, true
	case t.family.revoked:
		t.refused = true
		return nil, false
	case t.grant != nil && now.Sub(t.spentAt) < i.options.Grace:
		i.counts.Repeats++
		return t.grant, false
	case t.grant != nil:
		i.counts.Reuses++
		i.counts.Revoked++
		t.refused, t.family.revoked = true, true
		return nil, true
	}
	i.counts.Exchanges++
	a := i.issue(t.family, now.Add(i.options.Life))
	if !i.options.KeepRefresh {
		t.grant, t.spentAt = a, now
	}
	return a, false
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// cut sends half of the body and ends the connection.
func cut(w http.ResponseWriter, status int, body []byte) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprintf(buffered, "HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body[:len(body)/2])
	_ = buffered.Flush()
}

// shape is how one provider's token endpoint is spoken with.
type shape struct {
	form bool
	// answer and refusal render; reused tells a spent token from one that was revoked.
	answer  func(a answer, now time.Time, keepRefresh bool) []byte
	refusal func(reused bool) (int, []byte)
}

func (s shape) parse(r *http.Request) (url.Values, error) {
	want := "application/json"
	if s.form {
		want = "application/x-www-form-urlencoded"
	}
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || got != want {
		return nil, fmt.Errorf("content type %q", got)
	}
	if s.form {
		err := r.ParseForm()
		return r.PostForm, err
	}
	var members map[string]any
	if err := json.NewDecoder(r.Body).Decode(&members); err != nil {
		return nil, err
	}
	values := url.Values{}
	for name, v := range members {
		values.Set(name, fmt.Sprint(v))
	}
	return values, nil
}

func grant(a answer, keepRefresh bool, more map[string]any) []byte {
	more["access_token"] = a.access
	if !keepRefresh {
		more["refresh_token"] = a.refresh
	}
	b, _ := json.Marshal(more)
	return b
}

func seconds(a answer, now time.Time) int { return int(a.ends.Sub(now).Seconds()) }

var shapes = map[string]shape{
	"/v1/oauth/token": {
		answer: func(a answer, now time.Time, keep bool) []byte {
			return grant(a, keep, map[string]any{"token_type": "Bearer", "expires_in": seconds(a, now), "scope": "user:inference user:profile"})
		},
		refusal: func(bool) (int, []byte) {
			return http.StatusBadRequest, []byte(`{"error":"invalid_grant","error_description":"Refresh token not found or invalid"}`)
		},
	},
	"/oauth/token": {
		answer: func(a answer, _ time.Time, keep bool) []byte {
			return grant(a, keep, map[string]any{"id_token": a.access})
		},
		refusal: func(reused bool) (int, []byte) {
			code := "refresh_token_invalidated"
			if reused {
				code = "refresh_token_reused"
			}
			return http.StatusUnauthorized, []byte(strings.ReplaceAll(`{"error":{"message":"Please try signing in again.","type":"invalid_request_error","param":null,"code":"CODE"}}`, "CODE", code))
		},
	},
	"/oauth2/token": {
		form: true,
		answer: func(a answer, now time.Time, keep bool) []byte {
			return grant(a, keep, map[string]any{"token_type": "Bearer", "expires_in": seconds(a, now)})
		},
		refusal: func(bool) (int, []byte) {
			return http.StatusBadRequest, []byte(`{"error":"invalid_grant","error_description":"The refresh token is invalid."}`)
		},
	},
}
