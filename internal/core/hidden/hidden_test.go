package hidden_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/core/hidden"
)

// The secrets are of forms that no pattern knows.
var secrets = []string{
	"local-secret-key-0123456789", "gsk_AbCdEfGhIjKl", "6f1c2a9e-3b47-4d0a-9c55-0e8d7b6a5f41", `odd"key\with/marks`, "kingfisher",
}

func TestClean(t *testing.T) {
	hidden.Remember(secrets...)
	hidden.Remember("", "short", "rivalry-key-1", "rivalry-key-12345")
	for text, want := range map[string]string{
		"":                  "",
		"short":             "short", // too short to be told from words
		"nothing of a kind": "nothing of a kind",
		"the key local-secret-key-0123456789 is bad":             "the key [secret] is bad",
		"LOCAL-SECRET-KEY-0123456789":                            "[secret]",
		"local-secret-key-0123456789local-secret-key-0123456789": "[secret][secret]",
		"local-secret-key-0123456789!":                           "[secret]!",
		"cut: local-secret-k":                                    "cut: [secret]",
		"begins alike: local-secr":                               "begins alike: local-secr",
		"kingfisher and kingfishe":                               "[secret] and kingfishe",
		"x-limit-6F1C2A9E-3b47-4d0a-9c55-0e8d7b6a5f41-left":      "x-limit-[secret]-left",
		"rivalry-key-123456":                                     "[secret]6", // the longer of two that begin alike
		"öffne gsk_AbCdEfGhIjKl":                                 "öffne [secret]",
		"\xff\xfegsk_abcdefghijkl\xff":                           "\xff\xfe[secret]\xff",
	} {
		if got := hidden.Clean(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for _, s := range secrets {
		line, err := json.Marshal(map[string]string{"error": "said " + s})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		if err := json.Unmarshal(hidden.CleanLine(line), &got); err != nil || got["error"] != "said [secret]" {
			t.Errorf("%s: got %v, %v, want JSON without it", line, got, err)
		}
	}
}

// A line without a secret is returned as it is, and one with a secret is not written to.
func TestLinesAreNotChanged(t *testing.T) {
	hidden.Remember(secrets...)
	clean := []byte("an ordinary line")
	if got := hidden.CleanLine(clean); &got[0] != &clean[0] {
		t.Error("a line without a secret was copied")
	}
	dirty := []byte("a line with " + secrets[0])
	before := bytes.Clone(dirty)
	hidden.CleanLine(dirty)
	if !bytes.Equal(dirty, before) {
		t.Errorf("the line became %q", dirty)
	}
}

// What is remembered is bounded; the newest stay.
func TestManySecrets(t *testing.T) {
	hidden.Remember("first-of-all-the-secrets")
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 1024 {
				hidden.Remember(fmt.Sprintf("%d/%d-generated-secret", n, i))
				hidden.Clean("a line with 0/0-generated-secret")
			}
		})
	}
	all.Wait()
	if got := hidden.Clean("3/1023-generated-secret"); got != "[secret]" {
		t.Errorf("got %q, want the newest known", got)
	}
	if got := hidden.Clean("first-of-all-the-secrets"); got != "first-of-all-the-secrets" {
		t.Errorf("got %q, want the oldest forgotten", got)
	}
}

// A secret that is remembered again and again stays known, however many came after it, and
// so do the ways in which it is spelled in JSON. What nobody remembers again is forgotten first.
func TestSecretsInUseStay(t *testing.T) {
	inUse := `in-use/"since"-the-start`
	hidden.Remember("replaced-long-ago", inUse)
	for i := range 5 {
		var renewed []string
		for n := range 1000 {
			renewed = append(renewed, fmt.Sprintf("renewed-token-%d%03d", i, n))
		}
		hidden.Remember(renewed...)
		hidden.Remember(inUse)
	}
	for text, want := range map[string]string{
		inUse:                                  "[secret]",
		`"in-use/\"since\"-the-start"`:         `"[secret]"`,
		"replaced-long-ago":                    "replaced-long-ago",
		"renewed-token-4999":                   "[secret]",
		"the gateway answers without a secret": "the gateway answers without a secret",
	} {
		if got := hidden.Clean(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// No text, whatever stands in it, leaves with a secret.
func FuzzClean(f *testing.F) {
	f.Add("local-secret-key-0123456789", "a", "b")
	f.Add("gsk_AbCdEfGhIjKl", "gsk_", "\xff")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if len(secret) < 8 || strings.ContainsAny(secret, "[]") { // of the mark and what follows it, one of these could be made
			return
		}
		hidden.Remember(secret)
		got := hidden.Clean(before + secret + after)
		if strings.Contains(got, secret) {
			t.Errorf("%q left in %q", secret, got)
		}
	})
}
