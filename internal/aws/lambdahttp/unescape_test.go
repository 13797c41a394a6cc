package lambdahttp

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestUnescapeAnywhere: every byte that does not stand for itself, at every place around the
// eight bytes that are looked at together, with as many escapes before it as let them be
// moved.
func TestUnescapeAnywhere(t *testing.T) {
	for _, escape := range []string{`\"`, `\\`, `\n`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, "é", "\x7f", "\xff"} {
		for before := range 20 {
			for lead := range 20 {
				text := strings.Repeat(`\t`, before) + strings.Repeat("a", lead) + escape + "z" + escape + strings.Repeat("b", 20-lead)
				var want string
				if err := json.Unmarshal([]byte(`"`+text+`"`), &want); err != nil {
					t.Fatal(err)
				}
				if escape == "\xff" { // which stays as it is
					want = strings.ReplaceAll(want, "\ufffd", escape)
				}
				event := []byte("{" + text + `",`)
				got, end, err := unescape(event, 1)
				if err != nil || string(got) != want || end != 1+len(text) {
					t.Errorf("%d, then %d before %q: got %q to %d (%v), want %q to %d", before, lead, escape, got, end, err, want, 1+len(text))
				}
			}
		}
	}
	for lead := range 30 {
		for name, c := range map[string]struct {
			text string
			want error
		}{
			"control": {"\x1f\"", errControl}, "no end": {"", errUnterminated}, "no end of an escape": {`\`, errUnterminated}, "no escape": {`\x"`, errEscape},
		} {
			if _, _, err := unescape([]byte(strings.Repeat(`\n`, 9)+strings.Repeat("a", lead)+c.text), 0); !errors.Is(err, c.want) {
				t.Errorf("%s behind %d: got %v, want %v", name, lead, err, c.want)
			}
		}
	}
}

func BenchmarkUnescape(b *testing.B) {
	text := benchText(b, 5_000_000)
	event := make([]byte, len(text))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		copy(event, text)
		if _, _, err := unescape(event, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// benchText is the content of a JSON string that holds JSON: texts about source code.
func benchText(b *testing.B, size int) []byte {
	const turn = `{"role":"user","content":[{"type":"text","text":"func (r *Relay) Run(body io.Reader) error {\n\tnow := time.Now()\n\tlog.Printf(\"at %v\", now) // about one escape in twelve bytes\n}"}]},`
	text, err := json.Marshal(strings.Repeat(turn, size/len(turn)))
	if err != nil {
		b.Fatal(err)
	}
	return text[1:]
}
