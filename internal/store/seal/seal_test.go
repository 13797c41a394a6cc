package seal_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/store/seal"
)

// keyOf is a data key of one byte repeated.
func keyOf(b byte) (key [seal.KeySize]byte) {
	copy(key[:], bytes.Repeat([]byte{b}, seal.KeySize))
	return key
}

func box(t testing.TB, b byte) *seal.Box {
	t.Helper()
	made, err := seal.New(keyOf(b))
	if err != nil {
		t.Fatalf("new box: got %v, want no error", err)
	}
	return made
}

func sealed(t testing.TB, b *seal.Box, plaintext, aad string) []byte {
	t.Helper()
	s, err := b.Seal([]byte(plaintext), aad)
	if err != nil {
		t.Fatalf("seal: got %v, want no error", err)
	}
	return s
}

const secret = "sk-ant-oat01-not-a-real-token"

func TestOpenGivesBack(t *testing.T) {
	b := box(t, 1)
	for _, c := range []struct{ name, plaintext, aad string }{
		{"a token", secret, "account/7"},
		{"nothing", "", "account/7"},
		{"without additional data", secret, ""},
		{"bytes", "\x00\xff\x00", "\x00"},
		{"long", strings.Repeat("0123456789", 10_000), "account/7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sealed(t, b, c.plaintext, c.aad)
			if len(c.plaintext) > 0 && bytes.Contains(s, []byte(c.plaintext)) {
				t.Error("got the plaintext in what is sealed")
			}
			// A box of the same key opens it, as another process would.
			got, err := box(t, 1).Open(s, c.aad)
			if err != nil || string(got) != c.plaintext {
				t.Errorf("got %d bytes and error %v, want the %d sealed", len(got), err, len(c.plaintext))
			}
		})
	}
}

func TestSealedAloneOpens(t *testing.T) {
	b := box(t, 1)
	s := sealed(t, b, secret, "account/7")
	for _, c := range []struct {
		name   string
		box    *seal.Box
		sealed []byte
		aad    string
	}{
		{"another key", box(t, 2), s, "account/7"},
		{"another account", b, s, "account/8"},
		{"no additional data", b, s, ""},
		{"longer additional data", b, s, "account/77"},
		{"nothing", b, nil, "account/7"},
		{"the first byte alone", b, s[:1], "account/7"},
		{"cut to less than nonce and tag", b, s[:28], "account/7"},
		{"cut by one", b, s[:len(s)-1], "account/7"},
		{"one more", b, append(slices.Clone(s), 0), "account/7"},
		{"format 0", b, append([]byte{0}, s[1:]...), "account/7"},
		{"the plaintext", b, []byte("\x01" + secret), "account/7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.box.Open(c.sealed, c.aad)
			if !errors.Is(err, seal.ErrCannotOpen) || got != nil {
				t.Errorf("got %d bytes and error %v, want none and ErrCannotOpen", len(got), err)
			}
		})
	}
}

func TestAnyFlippedBitIsFound(t *testing.T) {
	b := box(t, 1)
	s := sealed(t, b, secret, "account/7")
	for i := range len(s) * 8 {
		flipped := slices.Clone(s)
		flipped[i/8] ^= 1 << (i % 8)
		if got, err := b.Open(flipped, "account/7"); err == nil || got != nil {
			t.Fatalf("bit %d: got %d bytes and error %v, want an error", i, len(got), err)
		}
	}
}

func TestNewerFormatIsNamed(t *testing.T) {
	b := box(t, 1)
	s := sealed(t, b, secret, "account/7")
	s[0] = 2
	if _, err := b.Open(s, "account/7"); err == nil || !strings.Contains(err.Error(), "update holdfast") {
		t.Errorf("got %v, want to be told to update holdfast", err)
	}
}

func TestSealedTwiceDiffers(t *testing.T) {
	b := box(t, 1)
	seen := map[string]bool{}
	for range 100 {
		s := string(sealed(t, b, secret, "account/7"))
		if seen[s] || seen[s[1:13]] {
			t.Fatal("got the same bytes, or the same nonce, again")
		}
		seen[s], seen[s[1:13]] = true, true
	}
}

func TestKeyedHash(t *testing.T) {
	b := box(t, 1)
	// By RFC 5869 with SHA-256 and RFC 2104, built from HMAC alone.
	mac := func(key []byte, data string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(data))
		return m.Sum(nil)
	}
	key := keyOf(1)
	extracted := mac([]byte("holdfast data key"), string(key[:]))
	want := hex.EncodeToString(mac(mac(extracted, "holdfast/hash/client key\x01"), "data"))
	for range 2 {
		if got := b.KeyedHash("client key", []byte("data")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := box(t, 1).KeyedHash("client key", []byte("data")); got != want {
		t.Errorf("another process: got %s, want %s", got, want)
	}
	for name, other := range map[string]string{
		"other data":    b.KeyedHash("client key", []byte("datb")),
		"other purpose": b.KeyedHash("conversation", []byte("data")),
		"other key":     box(t, 2).KeyedHash("client key", []byte("data")),
	} {
		if other == want {
			t.Errorf("%s: got the same hash, want another", name)
		}
	}
}

func TestDerive(t *testing.T) {
	b := box(t, 1)
	long := b.Derive("probe", 64)
	if len(long) != 64 || !bytes.Equal(long, box(t, 1).Derive("probe", 64)) {
		t.Errorf("got %d bytes, or others the second time, want the same 64", len(long))
	}
	if !bytes.Equal(b.Derive("probe", 16), long[:16]) {
		t.Error("got another beginning for a shorter key, want the same")
	}
	for name, other := range map[string][]byte{
		"other purpose": b.Derive("probf", 64), "other key": box(t, 2).Derive("probe", 64),
	} {
		if bytes.Equal(other, long) {
			t.Errorf("%s: got the same key, want another", name)
		}
	}
	if hash := b.KeyedHash("probe", nil); strings.HasPrefix(hash, hex.EncodeToString(long[:8])) {
		t.Error("got a hash that begins as the derived key, want them apart")
	}
}

// traces are the ways a value can be written out.
func traces(v any) string {
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
	encoded, _ := json.Marshal(v)
	return fmt.Sprintf("%v %+v %#v %s %q %x %d %p", v, v, v, v, v, v, v, v) + log.String() + string(encoded)
}

func TestNothingPrintsTheKey(t *testing.T) {
	key := keyOf(0xab)
	b, err := seal.New(key)
	if err != nil {
		t.Fatal(err)
	}
	s := sealed(t, b, secret, "account/7")
	_, wrong := box(t, 2).Open(s, "account/7")
	s[20] ^= 1
	_, altered := b.Open(s, "account/7")
	type holder struct {
		Box   *seal.Box
		Inner any
	}
	written := traces(b) + traces(*b) + traces(holder{b, b}) + traces(&holder{b, b}) + traces(wrong) + traces(altered)
	derived := b.Derive("probe", 32)
	for _, hidden := range []string{
		strings.Repeat("\xab", 4), "abababab", "ABABABAB", "171 171 171", "171,171,171", "0xab, 0xab", "q6urq6",
		secret, hex.EncodeToString(derived[:4]),
	} {
		if strings.Contains(written, hidden) {
			t.Errorf("got %q in what was written out, want no key and no plaintext", hidden)
		}
	}
	// The box holds no data key but one made of it; that must not show either.
	extracted := hmac.New(sha256.New, []byte("holdfast data key"))
	extracted.Write(key[:])
	sum := extracted.Sum(nil)
	for _, hidden := range []string{hex.EncodeToString(sum[:4]), fmt.Sprint(sum[:4])[1:10]} {
		if strings.Contains(strings.ToLower(written), hidden) {
			t.Error("got the derived secret in what was written out")
		}
	}
	if !strings.Contains(written, "REDACTED") {
		t.Errorf("got %q, want REDACTED", written)
	}
}

// FuzzOpen gives Open what nobody sealed: it must never answer with a plaintext.
func FuzzOpen(f *testing.F) {
	b := box(f, 1)
	f.Add([]byte{}, "")
	f.Add([]byte{1}, "account/7")
	f.Add(sealed(f, box(f, 2), secret, "account/7"), "account/7")
	f.Fuzz(func(t *testing.T, s []byte, aad string) {
		if got, err := b.Open(s, aad); err == nil || got != nil {
			t.Errorf("got %d bytes and error %v, want none and an error", len(got), err)
		}
	})
}

// FuzzSeal checks that whatever is sealed comes back, to the same additional data alone.
func FuzzSeal(f *testing.F) {
	b := box(f, 1)
	f.Add([]byte(secret), "account/7", "account/8")
	f.Add([]byte{}, "", "\x00")
	f.Fuzz(func(t *testing.T, plaintext []byte, aad, other string) {
		s, err := b.Seal(plaintext, aad)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := b.Open(s, aad); err != nil || !bytes.Equal(got, plaintext) {
			t.Errorf("got %d bytes and error %v, want the %d sealed", len(got), err, len(plaintext))
		}
		if got, err := b.Open(s, other); aad != other && (err == nil || got != nil) {
			t.Errorf("other additional data: got %d bytes and error %v, want an error", len(got), err)
		}
	})
}

func BenchmarkKeyedHash(b *testing.B) {
	made, data := box(b, 1), []byte("hf_0123456789abcdef0123456789abcdef")
	b.ReportAllocs()
	for b.Loop() {
		made.KeyedHash("client key", data)
	}
}

func BenchmarkOpen(b *testing.B) {
	made := box(b, 1)
	s := sealed(b, made, strings.Repeat("x", 1000), "account/7")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := made.Open(s, "account/7"); err != nil {
			b.Fatal(err)
		}
	}
}
