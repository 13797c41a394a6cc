package capture_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// shapes are what must not be in a capture. What a shape finds is allowed where it
// matches the second expression: ids and addresses that say they are invented.
var shapes = []struct {
	name           string
	found, allowed *regexp.Regexp
}{
	{"secret key", regexp.MustCompile(`\b(sk|xai|rk|pk|hf|sess)[-_][A-Za-z0-9_-]{8,}`), nil},
	{"token", regexp.MustCompile(`\b(at|rt|oat|ort)[0-9]*[-_][A-Za-z0-9_-]{16,}`), nil},
	{"JWT", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}`), nil},
	{"bearer", regexp.MustCompile(`(?i)\bbearer +[A-Za-z0-9._~+/-]{8,}`), nil},
	{"credential header", regexp.MustCompile(`(?im)^(authorization|x-api-key|cookie|set-cookie|proxy-authorization):.*$`), nil},
	{"e-mail address", regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+`), regexp.MustCompile(`@example\.com$`)},
	{"UUID", regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), regexp.MustCompile(`^00000000-0000-4000-8000-`)},
	{"request or message id", regexp.MustCompile(`\b(req|msg|resp|org|acct|batch|file)_[A-Za-z0-9]{6,}`), regexp.MustCompile(`Example`)},
	{"long random text", regexp.MustCompile(`\b[0-9a-fA-F]{32,}\b`), nil},
}

func suspects(text string) []string {
	var out []string
	for _, s := range shapes {
		for _, hit := range s.found.FindAllString(text, -1) {
			if s.allowed == nil || !s.allowed.MatchString(hit) {
				out = append(out, s.name)
			}
		}
	}
	return out
}

// TestNoSecrets searches the captures of every provider. It prints where and what kind,
// and not the text.
func TestNoSecrets(t *testing.T) {
	files := 0
	root := os.DirFS("../../../testdata/captures")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files++
		for i, line := range strings.Split(string(text), "\n") {
			for _, s := range suspects(line) {
				t.Errorf("%s:%d looks like a real %s", name, i+1, s)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Error("no captures found")
	}
}

// TestSuspects proves that the search can find something. The samples are put together
// here so that no search of the repository stumbles over them.
func TestSuspects(t *testing.T) {
	for _, sample := range []string{
		"sk-ant-" + "api03-abcdefghijklmnop", "sk-ant-" + "oat01-abcdefgh", "x-api-key" + ": abc", "Bearer " + "abcdefgh12345678",
		"ey" + "JhbGciOiJIUzI1NiJ9.x.y", "some.person@" + "mail.test", "9b2f1c1a-5d0f-4a55-9c0b-" + "0a4f2f7d1c11",
		"req_011CYRQ9" + "cQJjTy2DHBkbPsQD", "hf_" + "abcdefghijkl", strings.Repeat("9f2c", 16),
	} {
		if len(suspects(sample)) == 0 {
			t.Errorf("%q: got no suspicion, want one", sample)
		}
	}
	for _, sample := range []string{
		"person@example.com", "00000000-0000-4000-8000-0000000000b1", "req_01ExampleExampleExample1",
		"tombii/better-ccflare#301", "anthropic-ratelimit-unified-5h-reset: 1785518400",
	} {
		if got := suspects(sample); len(got) != 0 {
			t.Errorf("%q: got %v, want no suspicion", sample, got)
		}
	}
}
