package issuertest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/issuertest"
)

// ask sends a token as one provider's clients do.
func ask(t *testing.T, i *issuertest.Issuer, path, token string) (int, map[string]any) {
	t.Helper()
	body, kind := `{"grant_type":"refresh_token","client_id":"`+issuertest.ClientID+`","refresh_token":"`+token+`"}`, "application/json"
	if path == "/oauth2/token" {
		body = url.Values{"grant_type": {"refresh_token"}, "client_id": {issuertest.ClientID}, "refresh_token": {token}}.Encode()
		kind = "application/x-www-form-urlencoded"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("got %q, want JSON", text)
	}
	return resp.StatusCode, answer
}

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		path    string
		refused int
	}{{"/v1/oauth/token", http.StatusBadRequest}, {"/oauth/token", http.StatusUnauthorized}, {"/oauth2/token", http.StatusBadRequest}} {
		t.Run(c.path, func(t *testing.T) {
			i := issuertest.Start(t, issuertest.Options{})
			first := i.Login(time.Hour)
			status, answer := ask(t, i, c.path, first.Refresh.Reveal())
			if status != http.StatusOK || answer["access_token"] == first.Access.Reveal() || answer["refresh_token"] == first.Refresh.Reveal() {
				t.Fatalf("got %d, want new tokens", status)
			}
			if !i.Good(first) {
				t.Error("got the first access token ended, want it good as long as it lives")
			}
			// The spent token again costs the whole family.
			if status, _ := ask(t, i, c.path, first.Refresh.Reveal()); status != c.refused {
				t.Errorf("a spent one: got %d, want %d", status, c.refused)
			}
			if status, _ := ask(t, i, c.path, answer["refresh_token"].(string)); status != c.refused || i.Good(first) {
				t.Errorf("its heir: got %d, want %d", status, c.refused)
			}
			if status, _ := ask(t, i, c.path, first.Refresh.Reveal()); status != c.refused {
				t.Errorf("a refused one: got %d, want %d", status, c.refused)
			}
			want := issuertest.Counts{Requests: 4, Exchanges: 1, Reuses: 1, Revoked: 1, RefusedAgain: 1}
			if got := i.Counts(); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if status, _ := ask(t, i, c.path, i.Login(0).Refresh.Reveal()); status != http.StatusOK {
				t.Errorf("another family: got %d, want 200", status)
			}
		})
	}
}

func TestGrace(t *testing.T) {
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	i := issuertest.Start(t, issuertest.Options{Grace: time.Minute, Now: func() time.Time { return now }})
	first := i.Login(0)
	_, answer := ask(t, i, "/v1/oauth/token", first.Refresh.Reveal())
	now = now.Add(time.Minute - 1)
	status, again := ask(t, i, "/v1/oauth/token", first.Refresh.Reveal())
	if status != http.StatusOK || again["access_token"] != answer["access_token"] || again["refresh_token"] != answer["refresh_token"] {
		t.Errorf("within the grace: got %d, want the same tokens", status)
	}
	now = now.Add(1)
	if status, _ := ask(t, i, "/v1/oauth/token", first.Refresh.Reveal()); status != http.StatusBadRequest {
		t.Errorf("after it: got %d, want 400", status)
	}
}
