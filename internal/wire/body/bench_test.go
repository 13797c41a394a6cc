package body_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"holdfast/internal/wire/body"
)

// conversationBody is a request as an agent sends it, about size bytes long: system text,
// tools with their schemas, and turns whose texts are code with its escapes.
func conversationBody(size int) []byte {
	var b bytes.Buffer
	quote := func(text string) []byte {
		q, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		return q
	}
	b.WriteString(`{"model":"claude-sonnet-4-5","max_tokens":32000,"stream":true,"metadata":{"user_id":"user_0123"},"system":[{"type":"text","text":`)
	b.Write(quote(strings.Repeat("Prefer small steps, and say why in a sentence.\n", min(size/16, 16<<10)/48)))
	b.WriteString(`,"cache_control":{"type":"ephemeral"}}],"tools":[`)
	for i := range max(1, min(size/8, 32<<10)/512) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"tool_%d","description":"Reads a file below the folder and gives its lines.","input_schema":{"type":"object","properties":{"path":{"type":"string","description":"Where the file is"},"limit":{"type":"integer","minimum":0},"offset":{"type":"integer","minimum":0}},"required":["path"],"additionalProperties":false}}`, i)
	}
	b.WriteString(`],"messages":[{"role":"user","content":"Please find out why the build fails."}`)
	code := quote(strings.Repeat("\tif err := run(ctx, name); err != nil {\n\t\treturn fmt.Errorf(\"run %q: %w\", name, err)\n\t}\n// A comment that says at some length why it is done like this.\n", 12))
	for i := 1; b.Len() < size-len(code); i++ {
		role := [...]string{"user", "assistant"}[i%2]
		fmt.Fprintf(&b, `,{"role":%q,"content":[{"type":"text","text":%s}]}`, role, code)
	}
	fmt.Fprintf(&b, `,{"role":"user","content":%q}]}`, strings.Repeat("Say why. ", (size-b.Len())/9))
	return b.Bytes()
}

func BenchmarkInspect(b *testing.B) {
	for _, size := range []int{2 << 10, 200 << 10, 1 << 20} {
		data := conversationBody(size)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := body.Inspect(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
