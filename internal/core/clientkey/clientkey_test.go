package clientkey_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
)

func TestNew(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		secret, err := clientkey.New(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		text := secret.Reveal()
		if !strings.HasPrefix(text, "hf_") || len(text) != 52 || !clientkey.WellFormed(text) || seen[text] {
			t.Fatalf("a key of %d characters, well formed: %t, seen before: %t", len(text), clientkey.WellFormed(text), seen[text])
		}
		seen[text] = true
	}
	for _, bits := range [][]byte{make([]byte, 32), bytes.Repeat([]byte{0xff}, 32)} {
		secret, err := clientkey.New(bytes.NewReader(bits))
		if err != nil || !clientkey.WellFormed(secret.Reveal()) {
			t.Errorf("of %x: well formed %t, %v", bits[:1], clientkey.WellFormed(secret.Reveal()), err)
		}
	}
	broken := errors.New("no entropy")
	if _, err := clientkey.New(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("without random bytes: got %v, want %v", err, broken)
	}
}

func TestFromSeed(t *testing.T) {
	a, b, other := clientkey.FromSeed([]byte("seed")), clientkey.FromSeed([]byte("seed")), clientkey.FromSeed([]byte("Seed"))
	if a.Reveal() != b.Reveal() || a.Reveal() == other.Reveal() || !clientkey.WellFormed(a.Reveal()) {
		t.Errorf("same seed, same key: %t; other seed, same key: %t", a.Reveal() == b.Reveal(), a.Reveal() == other.Reveal())
	}
	if text := fmt.Sprintf("%v %+v %#v", a, a, a); strings.Contains(text, a.Reveal()) {
		t.Error("printing a key shows it")
	}
}

func TestWellFormed(t *testing.T) {
	good := clientkey.FromSeed([]byte("x")).Reveal()
	bad := map[string]string{
		"empty": "", "prefix alone": "hf_", "cut": good[:len(good)-1], "longer": good + "0", "newline": good[:51] + "\n",
		"other prefix": "sk_" + good[3:], "capital prefix": "HF_" + good[3:], "other characters": good[:10] + "-" + good[11:],
		"foreign key": "sk-ant-api03-" + strings.Repeat("A", 39), "space before": " " + good[:51],
	}
	for name, text := range bad {
		if clientkey.WellFormed(text) {
			t.Errorf("%s: taken for a key", name)
		}
	}
	for i := 3; i < len(good); i++ {
		for _, c := range "0Zaz" {
			if slip := good[:i] + string(c) + good[i+1:]; slip != good && clientkey.WellFormed(slip) {
				t.Errorf("with another character at %d: taken for a key", i)
			}
		}
	}
}

// mark stands for a box: it shows which purpose was hashed.
type mark struct{}

func (mark) KeyedHash(purpose string, data []byte) string { return purpose + ":" + string(data) }

func TestHash(t *testing.T) {
	if got := clientkey.Hash(mark{}, "abc"); got != "client-key:abc" {
		t.Errorf("got %q, want the purpose client-key", got)
	}
}

func TestFind(t *testing.T) {
	keys := []catalog.ClientKey{{Name: "a", Hash: "1111"}, {Name: "b", Hash: "2222"}, {Name: "none"}, {Name: "c", Hash: "33"}}
	for hash, want := range map[string]string{"1111": "a", "2222": "b", "33": "c", "3": "", "": "", "4444": "", "11112222": ""} {
		got, ok := clientkey.Find(keys, hash)
		if got.Name != want || ok != (want != "") {
			t.Errorf("Find(%q): got %q, %t, want %q", hash, got.Name, ok, want)
		}
	}
	if _, ok := clientkey.Find(nil, "1111"); ok {
		t.Error("found a key among none")
	}
}

func FuzzWellFormed(f *testing.F) {
	f.Add(clientkey.FromSeed([]byte("x")).Reveal())
	f.Add("hf_")
	f.Fuzz(func(t *testing.T, text string) {
		if clientkey.WellFormed(text) && (len(text) != 52 || strings.TrimSpace(text) != text) {
			t.Errorf("%q was taken for a key", text)
		}
	})
}
