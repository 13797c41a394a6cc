package body_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// systemHash is that of a body with the system text.
func systemHash(t *testing.T, system string) [32]byte {
	t.Helper()
	quoted, err := json.Marshal(system)
	if err != nil {
		t.Fatal(err)
	}
	return inspect(t, `{"system":`+string(quoted)+`}`).SystemHash
}

func TestVolatileLines(t *testing.T) {
	const steady = "You are a coding agent."
	want := systemHash(t, steady)
	for _, line := range []string{
		"Today's date is 2027-03-04.",
		"Today's date: Thu Mar  4",
		"Today is Thursday, 4 March.",
		"Today is 4 March",
		"The 4th of MARCH, 2027", // by its year
		"sept. 4",
		"Since 2027",
		"20270304",
		"job zyxwvutsrqponml1",
		"Now 03/04/27",
		"Valid until 4-3",
		"It is 10:42.",
		"Started at 1804154400.",
		"Session 3b1e6c1a-5d0f-4a55-9c0b-0a4f2f7d1c11",
		"HEAD is at 41c7a9e",
		"sha256 9F86D081884C7D659A2FEAA0C55AD015",
		"request req_011CSHoEeqs5C35K2UUqR7Fy",
		"Model: claude-sonnet-4-5-20250929",
		"  x-anthropic-billing-header: cc_version=a; cch=abcde;",
	} {
		t.Run(line, func(t *testing.T) {
			for _, system := range []string{line + "\n" + steady, steady + "\n" + line, steady + "\r\n\r\n\t" + line + "\n"} {
				if got := systemHash(t, system); got != want {
					t.Errorf("hash of %q: got that of another text, want that of %q", system, steady)
				}
			}
			if got := systemHash(t, line); got != [32]byte{} {
				t.Errorf("hash of %q: got %x, want none", line, got)
			}
		})
	}
	for _, line := range []string{
		"Use at most 3 tools.",
		"1. Read first.",
		"Version 4.5 of the guide.",
		"You may ask.",
		"A decade of facade effaced.",
		"Port 808 is taken.",
		"may x 4", // a word between them
		"Step 3: 4 files",
		"job zyxwvutsrqponm1",
		"Maya 4",
		"internationalization",
	} {
		t.Run(line, func(t *testing.T) {
			if got := systemHash(t, line); got == ([32]byte{}) {
				t.Errorf("hash of %q: got none, want one", line)
			}
		})
	}
}

func TestSystemHash(t *testing.T) {
	agent := inspect(t, `{"system":"You are an agent.\nBe brief."}`).SystemHash
	same := map[string]string{
		"parts":             `{"system":[{"type":"text","text":"You are an agent."},{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]}`,
		"one part":          `{"system":[{"cache_control":{"type":"ephemeral","ttl":"1h"},"text":"You are an agent.\nBe brief.\n","type":"text"}]}`,
		"billing block":     `{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2; cch=fffff;\nand more"},{"type":"text","text":"You are an agent.\nBe brief."}]}`,
		"instructions":      `{"instructions":"You are an agent.\nBe brief."}`,
		"system message":    `{"messages":[{"role":"system","content":"You are an agent.\nBe brief."},{"role":"user","content":"a"}]}`,
		"two messages":      `{"input":[{"role":"system","content":"You are an agent."},{"role":"developer","content":[{"type":"input_text","text":"Be brief."}]}]}`,
		"a later message":   `{"messages":[{"role":"system","content":"You are an agent.\nBe brief."},{"role":"user","content":"a"},{"role":"system","content":"b"}]}`,
		"behind other item": `{"instructions":"You are an agent.\nBe brief.","input":[{"type":"reasoning"},{"role":"developer","content":"b"},{"role":"user","content":"b"}]}`,
		"behind a string":   `{"instructions":"You are an agent.\nBe brief.","input":["x",{"role":"developer","content":"b"}]}`,
	}
	for name, data := range same {
		t.Run(name, func(t *testing.T) {
			if got := inspect(t, data).SystemHash; got != agent {
				t.Errorf("hash of %s: got another than that of the plain text", data)
			}
		})
	}
	seen := map[[32]byte]string{agent: "the plain text"}
	for _, data := range []string{
		`{"system":"You are an agent."}`,
		`{"system":"Be brief.\nYou are an agent."}`,
		`{"system":[{"type":"text","text":"Hello"},{"type":"text","text":"x-anthropic-billing-header: a\nYou are"}]}`,
		`{"system":"You are"}`,
		`{"system":"x-anthropic-billing-header: a\nYou are"}`,
	} {
		got := inspect(t, data).SystemHash
		if other, ok := seen[got]; ok {
			t.Errorf("hash of %s: got the same as of %s", data, other)
		}
		seen[got] = data
	}
}

// A system text that is too long to be read whole has a hash all the same, and it does
// not depend on how long the volatile line before the cut is.
func TestSystemHashOfLongText(t *testing.T) {
	long := strings.Repeat("Prefer small steps, and say why.\n", 10000)
	a := systemHash(t, "It is 9:59.\n"+long)
	b := systemHash(t, "It is 10:00.\n"+long)
	if a != b || a == ([32]byte{}) {
		t.Errorf("hashes at two times: got %x and %x, want the same twice", a, b)
	}
	if c := systemHash(t, "Be brief.\n"+long); c == a {
		t.Error("hash of another text: got the same")
	}
}

func TestToolsHash(t *testing.T) {
	hash := func(tools string) [32]byte { return inspect(t, `{"tools":`+tools+`}`).ToolsHash }
	want := hash(`[{"name":"a","input_schema":{}},{"name":"bb"},{"type":"web_search"}]`)
	if want == ([32]byte{}) {
		t.Fatal("hash of three tools: got none")
	}
	for name, tools := range map[string]string{
		"other order":      `[{"type":"web_search"},{"name":"bb"},{"name":"a"}]`,
		"a mark":           `[{"name":"a"},{"cache_control":{"type":"ephemeral"},"name":"bb"},{"type":"web_search"}]`,
		"chat completions": `[{"type":"function","function":{"name":"bb"}},{"function":{"name":"a"},"type":"function"},{"type":"web_search"}]`,
		"escaped":          `[{"name":"b\u0062"},{"n\u0061me":"\u0061"},{"type":"web\u005fsearch"}]`,
	} {
		if hash(tools) != want {
			t.Errorf("hash with %s: got another, want the same", name)
		}
	}
	for name, tools := range map[string]string{
		"one more":   `[{"name":"a"},{"name":"bb"},{"type":"web_search"},{"name":"a"}]`,
		"one less":   `[{"name":"a"},{"name":"bb"}]`,
		"moved edge": `[{"name":"ab"},{"name":"b"},{"type":"web_search"}]`,
	} {
		if hash(tools) == want {
			t.Errorf("hash with %s: got the same, want another", name)
		}
	}
	if got := hash(`[]`); got != ([32]byte{}) {
		t.Errorf("hash of no tools: got %x, want none", got)
	}
}

// fallback-fingerprint-unstable-or-constant: what a fingerprint is made of stays the same
// over six turns of a conversation, and is another in the next conversation.
func TestFallbackFingerprintUnstableOrConstant(t *testing.T) {
	for _, dialect := range []string{"anthropic", "responses"} {
		t.Run(dialect, func(t *testing.T) {
			first := inspect(t, turnBody(dialect, 0, "Fix the build."))
			if first.FirstUser != "Fix the build." {
				t.Fatalf("first user text: got %q, want %q", first.FirstUser, "Fix the build.")
			}
			if first.SystemHash == ([32]byte{}) || first.ToolsHash == ([32]byte{}) {
				t.Fatal("hashes: got none, want both")
			}
			for n := 1; n < 6; n++ {
				got := inspect(t, turnBody(dialect, n, "Fix the build."))
				if got.FirstUser != first.FirstUser || got.SystemHash != first.SystemHash || got.ToolsHash != first.ToolsHash {
					t.Errorf("turn %d: got another fingerprint than in the first turn", n)
				}
			}
			if got := inspect(t, turnBody(dialect, 0, "Write the docs.")); got.FirstUser == first.FirstUser {
				t.Errorf("second conversation: got the first one's user text")
			}
		})
	}
}

// turnBody is turn n of a conversation: with a nonce, a date, a moving cache_control mark
// and tools in another order each time.
func turnBody(dialect string, n int, prompt string) string {
	mark := func(at int) string {
		if at == n {
			return `,"cache_control":{"type":"ephemeral"}`
		}
		return ""
	}
	tools := []string{"Bash", "Edit", "Read"}
	for i, name := range tools {
		tools[i] = fmt.Sprintf(`{"name":%q%s}`, name, mark(i))
	}
	list := strings.Join(append(tools[n%3:], tools[:n%3]...), ",")
	if dialect == "responses" {
		input := fmt.Sprintf(`%q`, prompt)
		if n > 0 {
			input = fmt.Sprintf(`[{"role":"user","content":[{"type":"input_text","text":%q}]}`, prompt)
			for i := range n {
				input += fmt.Sprintf(`,{"role":"assistant","content":[{"type":"output_text","text":"answer %d"}]},{"role":"user","content":"more"}`, i)
			}
			input += `]`
		}
		return fmt.Sprintf(`{"model":"gpt-5.5","instructions":"Be brief.\nIt is 10:%02d.","tools":[%s],"input":%s}`, n, list, input)
	}
	turns := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q%s}]}`, prompt, mark(0))
	if n%2 == 1 {
		turns = fmt.Sprintf(`{"role":"user","content":%q}`, prompt)
	}
	for i := range n {
		turns += fmt.Sprintf(`,{"role":"assistant","content":"answer %d"},{"role":"user","content":[{"type":"text","text":"more"%s}]}`, i, mark(i+1))
	}
	return fmt.Sprintf(`{"model":"claude-opus-4-6","system":[`+
		`{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.99; cc_entrypoint=cli; cch=%05x;"},`+
		`{"type":"text","text":"Be brief.\nToday's date is 2027-03-%02d.\nBe kind."%s}],"tools":[%s],"messages":[%s]}`, n*7919, n+1, mark(n), list, turns)
}
