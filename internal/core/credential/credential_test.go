package credential_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/credential"
)

func full() credential.Credential {
	return credential.Credential{
		Key: credential.NewSecret("key-EXAMPLE"), Access: credential.NewSecret("access-EXAMPLE"), Refresh: credential.NewSecret("refresh-EXAMPLE"),
		IssuedAt: time.Date(2027, 3, 4, 2, 0, 0, 5, time.UTC), ExpiresAt: time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC),
		ClientID: "client", Scopes: []string{"a", "b"}, Principal: "somebody", Generation: 7,
		Scope: credential.Scope{Organization: "org-1", Project: "proj_1", Workspace: "wrkspc_1"}, BaseURL: new(string),
	}
}

// Everything is sealed: what the plaintext left out would be gone at the next start.
func TestPlaintextIsWhole(t *testing.T) {
	want := full()
	for v, i := reflect.ValueOf(want), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Fatalf("%s is not set here", v.Type().Field(i).Name)
		}
	}
	for _, c := range []credential.Credential{want, {Generation: 1}, {}} {
		b, err := c.Plaintext()
		if err != nil {
			t.Fatal(err)
		}
		got, err := credential.FromPlaintext(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, got, cmp.Comparer(func(a, b credential.Secret) bool { return a == b })); diff != "" {
			t.Errorf("sealed and opened (-want +got):\n%s", diff)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	c := full()
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%s %q", c.Key, c.Access), string(encoded)} {
		if strings.Contains(text, "EXAMPLE") {
			t.Errorf("got a secret in %s", text)
		}
	}
}

func TestBearer(t *testing.T) {
	c := full()
	if got := c.Bearer().Reveal(); got != "key-EXAMPLE" {
		t.Errorf("with a key: got %s, want it", got)
	}
	c.Key = credential.Secret{}
	if got := c.Bearer().Reveal(); got != "access-EXAMPLE" {
		t.Errorf("of a login: got %s, want the access token", got)
	}
}

func TestExpired(t *testing.T) {
	end := full().ExpiresAt
	for _, c := range []struct {
		name string
		ends time.Time
		now  time.Time
		want bool
	}{
		{"1 ns before", end, end.Add(-1), false},
		{"at its end", end, end, true},
		{"unknown", time.Time{}, end, false},
	} {
		if got := (credential.Credential{ExpiresAt: c.ends}).Expired(c.now); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
